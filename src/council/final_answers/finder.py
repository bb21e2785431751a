"""Places of a reply that state its final answer: label lines, boxed values, sentences, and the last lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from council.final_answers.markup import BOLD, BOLD_END, BOX, BOX_END, strip_marks, to_plain

MAX_CLAIM_CHARS = 600
MAX_SHORT_CHARS = 80  # of a line that is an answer alone


class Strength(IntEnum):
    """How clearly a place says that it is the final answer."""

    LAST = 1  # a sentence, the last one first
    CONCLUSION = 2  # a sentence with "so" or "therefore"
    EMPHASIS = 3  # the only emphasised words
    ALONE = 4  # a short line that is emphasised or the whole reply
    SENTENCE = 5  # "the answer is …"
    LABEL = 6  # a line "Answer: …", or a boxed value


class Claim(NamedTuple):
    """A place that states an answer."""

    strength: Strength
    start: int
    text: str
    is_final: bool = False  # whether it is called final


class Correction(NamedTuple):
    """A place where a reply takes back what it said."""

    start: int
    is_clear: bool  # whether it can mean nothing else: "scratch that", not "actually"


_MARK = f"{BOLD}{BOLD_END}{BOX}{BOX_END}"
_ADJECTIVE = r"(?:final|correct|short|best|overall|right|main|direct|most likely)"
_ANSWER = r"(?:answers?|antwort|réponse|respuesta|risposta|resposta|答案|答え)"
_LABEL = re.compile(
    rf"(?:^[^\w\n]{{0,12}}|(?<=[.!?;)]) ?[{_MARK}]?|(?<=[{_MARK}]))(?:(?:so|thus|therefore|hence|my|the|our),? ){{0,3}}(?P<final>final |endgültige )?"
    rf"(?:{_ADJECTIVE} ){{0,2}}{_ANSWER}(?: choice| option| letter)?(?: \([^()\n]{{1,40}}\))?(?: is| are)?[ \t{_MARK}]*"
    rf"(?:[:：=][ \t]*(?:is\b)?|[ \t][-–—][ \t]|[ \t]*[→⇒])[ \t:{_MARK}]*",
    re.IGNORECASE | re.MULTILINE,
)
_LABEL_ALONE = re.compile(
    rf"^[^\w\n]{{0,12}}(?:my |the )?(?P<final>final )?(?:{_ADJECTIVE} ){{0,2}}{_ANSWER}(?: choice| option)?[^\w\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_LABEL_BOLD = re.compile(
    rf"^[^\w\n]{{0,12}}{BOLD}(?P<final>final )?(?:{_ADJECTIVE} ){{0,2}}{_ANSWER}{BOLD_END} +(?=\S)",
    re.IGNORECASE | re.MULTILINE,
)
_OTHER_LABEL = re.compile(
    rf"^[^\w\n]{{0,12}}(?:(?:my|the|our|final|overall|in) ){{0,3}}(?:results?|solutions?|conclusion|verdict|choice|decision|selection|pick|summary|"
    rf"tl;?dr|total|bottom line|short|outcome|ergebnis|lösung|fazit|résultat|conclusión|resultado)[ \t{_MARK}]*[:：=][ \t:{_MARK}]*",
    re.IGNORECASE | re.MULTILINE,
)
_TAGGED = re.compile(r"<(?P<tag>(?:final_?)?answer)>\s*(?P<said>[^<]{1,300}?)\s*</(?P=tag)>", re.IGNORECASE)
_BOLD_SPAN = re.compile(f"{BOLD}([^{BOLD}{BOLD_END}\n]+){BOLD_END}")
_BOXED = re.compile(f"{BOX}([^{BOX}{BOX_END}]+){BOX_END}")
_SAYS = re.compile(
    r"\b(?:answer|choice|option|solution|result|response|pick|guess|vote|antwort|lösung|réponse|respuesta)\b(?: to [^.:?!\n]{1,80}?| here| for [^.:?!\n]{1,60}?| choice| that [^.:?!\n]{1,40}?)?"
    r" (?:is|are|would be|should be|must be|has to be|would have to be|will be|ist|lautet|est|es)\b(?: (?:therefore|thus|then|hence|simply|clearly|indeed|still|also))*[ :,]*"
    r"|\bI(?:'d| would| will|'ll| am going to)? (?:choose|pick|select|say|go with|go for|answer|opt for|conclude)(?: that)?(?: it is| it's)?[ :,]+"
    r"|\bI (?:believe|think|am confident|am sure)(?: that)? (?:it is|it's|it was|the answer is)[ :,]+"
    r"|\b(?:let's|we) go with[ :,]+",
    re.IGNORECASE,
)
_IS_ANSWER = re.compile(
    rf"[\s{_MARK}\"']*\b(?:is|are|would be|remains|should be)\s+(?:(?:therefore|thus|then|clearly|indeed|still)\s+)?(?:the|my|our)\s+(?:{_ADJECTIVE}\s+)?(?:answers?|choice|pick|guess|solution|result)\b(?![\w' ]*\?)(?! (?:to|of) (?:a|an|another|the (?:wrong|other|first))\b)",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"\A\s*=|(?:\A|[\W_])(?:so|thus|therefore|hence|consequently|in conclusion|in total|in summary|altogether|overall|finally|which (?:gives|means|makes|leaves)|"
    r"this (?:gives|means|leaves)|we (?:get|have|find|obtain)|also|somit|daher|donc|por (?:lo )?tanto)\b|[⇒→∴]",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"\b(?:wait|hold on|once more|let me recount|actually|correction|corrected|on (?:second thought|reflection|closer)|upon (?:re|closer|reflection)\w*|let me (?:re-?\w+|correct|fix)|"
    r"i made (?:a|an)|i (?:mis\w+|was wrong)|scratch that|oops|my mistake|reconsider\w*|strike that|sorry|that's (?:wrong|not right)|"
    r"that is (?:wrong|not right|incorrect)|revis\w+|hmm|apologies|i (?:should|need to) correct|made an? (?:error|mistake))\b",
    re.IGNORECASE,
)
_RETRACTION = re.compile(
    r"scratch|strike|mistake|wrong|not right|incorrect|second thought|reflection|correction|mis\w+|apologies|oops|hold on|wait|sorry|made an?",
    re.IGNORECASE,
)
# Lines that are no answer: courtesy, checks, remarks, and headings of a working.
_ASIDE = re.compile(
    r"[^\w]*(?:let me know|i hope|hope (?:this|that)|feel free|would you like|if you (?:have|need|want|'d)|happy to|is there anything|"
    r"check\b|to check|checking|we can (?:check|verify)|(?:quick |sanity )?(?:check|verification|proof)\b|verif\w+|note\b|nb\b|p\.?s\b|remark|confidence|explanation|reasoning|"
    r"rationale|justification|why\b|hint|sources?:|references?:|caveat|disclaimer|assum(?:ing|ption)|given\b|step \d|part \d|for (?:reference|comparison|context)|"
    r"let's|let us|we need to|first,? (?:we|let)|question\b|(?:the )?other (?:options|choices)|here'?s (?:why|how)|probe)",
    re.IGNORECASE,
)
_BULLET = re.compile(rf"^[ \t{_MARK}]*(?:[-*•–+‣◦]|\(?\d{{1,2}}[.)](?!\d))[ \t]+", re.MULTILINE)
_ABBREVIATION = re.compile(
    r"(?:\b(?i:e\.g|i\.e|vs?|approx|ca|dr|mr|mrs|ms|prof|st|sr|jr|nr|fig|eq|u\.s|u\.k|a\.m|p\.m|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|mt|gen|col|lt|rev)"
    r"|(?<![\w'])[A-Z]|^[ \W]*\d{1,2})\Z"
)
_STOP = re.compile(rf"[.!?。！？][)\"'{_MARK}]*(?=\s+|\Z|(?<=[。！？]))|\n")
_MONTH_AFTER = re.compile(r"\s*(?:jan|feb|mär|mar|apr|mai|may|jun|jul|aug|sep|okt|oct|nov|dez|dec)", re.IGNORECASE)
_FACTORIAL = re.compile(r"(?:\d|(?<![A-Za-z])[a-z]|\))\Z")
_GOES_ON = re.compile(r"[ \t]*(?:[a-z=+×*/<>≈^)-]|\d)")
MAX_SENTENCES = 60


def find_claims(reply: str) -> list[list[Claim]]:
    """Return the claims of a reply in groups, the group that decides first. In a group the last claim counts."""
    return list(_group_claims(to_plain(reply)))


def is_corrected(reply: str, first: Claim, last: Claim) -> bool:
    """Return whether the reply takes back the first claim before the last one."""
    return _CORRECTION.search(to_plain(reply), first.start, last.start) is not None


def find_correction(reply: str) -> Correction | None:
    """Return the last correction of a reply, with the sentences after it begins."""
    text = to_plain(reply)
    found = list(_CORRECTION.finditer(text))
    if not found:
        return None
    is_clear = any(_RETRACTION.search(one[0]) for one in found)
    return Correction(found[-1].start(), is_clear)


def is_bracketed(text: str) -> bool:
    """Return whether a sentence stands in brackets, beside what a reply says."""
    bare = strip_marks(text).strip()
    return bare.startswith("(") and bare.rstrip(".!").endswith(")") and bare.count("(") == bare.count(")")


def find_last_answer(reply: str) -> str:
    """Return the text of the last claim that says that it is the answer; empty if no line, box or sentence does."""
    claims = [claim for group in find_claims(reply) for claim in group if claim.strength >= Strength.SENTENCE]
    best = max((claim.strength for claim in claims), default=None)
    last = max((claim for claim in claims if claim.strength == best), key=lambda claim: claim.start, default=None)
    return trim(last.text) if last else ""


def trim(text: str) -> str:
    """Return the text of a claim without marks and the punctuation around it."""
    return strip_marks(text).strip().lstrip("*_`\"' ").rstrip("*_`\"'\\. \t")


def _group_claims(text: str) -> Iterator[list[Claim]]:
    labels, says = list(_find_labels(text)), list(_find_sayings(text))
    rest = list(_find_others(text))
    strong = sorted(labels or says, key=lambda claim: claim.start)
    if strong:
        end = strong[-1].start + len(strong[-1].text)
        corrections = list(_CORRECTION.finditer(text, end))
        if corrections:
            later = [claim for claim in (*says, *rest) if claim.start >= corrections[0].start()]
            yield from _split_by_strength(later)
    for group in (labels, says):
        if group:
            yield sorted(group, key=lambda claim: claim.start)
    yield from _split_by_strength(rest)


def _split_by_strength(claims: list[Claim]) -> Iterator[list[Claim]]:
    for strength in sorted(Strength, reverse=True):
        group = sorted((claim for claim in claims if claim.strength == strength), key=lambda claim: claim.start)
        if strength >= Strength.EMPHASIS:
            if group:
                yield group
        else:
            yield from ([claim] for claim in reversed(group))


def _find_labels(text: str) -> Iterator[Claim]:
    taken: list[tuple[int, int]] = []
    for pattern in (_LABEL, _LABEL_BOLD, _LABEL_ALONE):
        for found in pattern.finditer(text):
            if any(start <= found.start() < end for start, end in taken):
                continue
            said, end = _read_block(text, found.end())
            if not said.strip(f" \n{_MARK}:."):
                continue
            taken.append((found.start(), end))
            boxes = _BOXED.findall(said)
            yield Claim(Strength.LABEL, found.end(), boxes[0] if len(boxes) == 1 else said, bool(found["final"]))
    for tag in _TAGGED.finditer(text):
        yield Claim(Strength.LABEL, tag.start(), tag["said"], is_final=True)
    for box in _BOXED.finditer(text):
        if not any(start <= box.start() < end for start, end in taken):
            yield Claim(Strength.LABEL, box.start(), box[1])


def is_aside(text: str) -> bool:
    """Return whether a sentence is courtesy, a check or a remark, and no answer."""
    return _ASIDE.match(strip_marks(text).strip()) is not None


def _read_block(text: str, start: int) -> tuple[str, int]:
    """Return the rest of a line, with the lines of the block after it if the line is empty or ends with a colon."""
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    line = text[start:end]
    bare = strip_marks(line).strip()
    if bare and not bare.endswith((":", "：")) and not _BULLET.match(line):
        return line[:MAX_CLAIM_CHARS], end
    lines, at, is_list = [line], end + 1, bool(_BULLET.match(line))
    while at < len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        line = text[at:stop]
        has_text, is_bullet = bool(line.strip(f" \t{_MARK}")), bool(_BULLET.match(line))
        said = any(one.strip(f" \t{_MARK}") for one in lines[1:])
        if has_text and said and is_list and not is_bullet:
            break
        if not has_text and said and not is_list:
            break
        is_list = is_list or is_bullet
        lines.append(line)
        end, at = stop, stop + 1
    return "\n".join(lines)[:MAX_CLAIM_CHARS].strip("\n"), end


def _find_sayings(text: str) -> Iterator[Claim]:
    for start, sentence in split_sentences(text):
        for found in list(_SAYS.finditer(sentence))[-1:]:
            said = sentence[found.end() :]
            if not said.strip(f" \n{_MARK}:."):
                said, _ = _read_block(text, start + found.end())
            if said.strip(f" \n{_MARK}:.") and not sentence.rstrip().endswith("?"):
                yield Claim(Strength.SENTENCE, start + found.start(), said[:MAX_CLAIM_CHARS])
        if after := _IS_ANSWER.search(sentence):
            said = sentence[: after.start()].strip()
            if said and not re.search(r"\b(?:this|that|it|which|what|here|below|above)\Z", said, re.IGNORECASE):
                yield Claim(Strength.SENTENCE, start, said[-MAX_CLAIM_CHARS:])
    for label in _OTHER_LABEL.finditer(text):
        said, _ = _read_block(text, label.end())
        if said.strip(f" \n{_MARK}:."):
            yield Claim(Strength.SENTENCE, label.start(), said)


def _find_others(text: str) -> Iterator[Claim]:
    """Yield short lines that stand alone, and the sentences."""
    if len(text.strip()) <= MAX_CLAIM_CHARS and len(split_sentences(text)) == 1:
        yield Claim(Strength.ALONE, 0, text)
    lines = split_lines(text)
    is_list = 2 <= len(lines) <= 20 and all(_is_item(line) for _, line in lines)
    if is_list:
        yield Claim(Strength.ALONE, 0, text)
    headings = _find_headings(lines)
    for number, (start, line) in enumerate(lines):
        bare = strip_marks(line).strip()
        if number in headings:
            continue
        is_bold = _is_alone(line)
        is_outer = number in (0, len(lines) - 1)
        if len(bare) <= MAX_SHORT_CHARS and not bare.endswith((":", "?")) and not _ASIDE.match(bare):
            is_step = number == 0 and len(lines) > 1 and (re.search(r"=|:\s", bare) or _is_first_step(bare, lines))
            is_short = is_outer and not is_list and len(bare.split()) <= 3 and not _BULLET.match(line) and not is_step
            if is_bold or is_short:
                yield Claim(Strength.ALONE, start, line)
    spans = [
        span
        for span in _BOLD_SPAN.finditer(text)
        if not any(start <= span.start() < start + len(line) and _is_alone(line) for start, line in lines)
        and not _DENIED_SPAN.search(text[max(0, span.start() - MAX_DENIAL_CHARS) : span.start()])
    ]
    if (
        len(spans) == 1
        and len(spans[0][1]) <= MAX_SHORT_CHARS
        and not _ASIDE.match(spans[0][1])
        and not spans[0][1].rstrip().endswith(":")
    ):
        yield Claim(Strength.EMPHASIS, spans[0].start(), spans[0][1])
    block = _last_list(text, lines)
    if block:
        yield block
    sentences = split_sentences(text)[-MAX_SENTENCES:]
    remarks = [(at, at + len(line)) for at, line in lines if is_bracketed(line)]
    remarks += [(at, at + len(sentence)) for at, sentence in sentences if is_bracketed(sentence)]
    beside = [start for start, _ in sentences if not any(at <= start < end for at, end in remarks)]
    for start, sentence in sentences:
        bare = strip_marks(sentence).strip()
        if beside and start not in beside:
            continue
        is_last_step = start == sentences[-1][0] and re.match(r"step \d", bare, re.IGNORECASE)
        if bare and (is_last_step or not _ASIDE.match(bare)) and not bare.endswith("?"):
            said = sentence if not bare.endswith(":") else _read_block(text, start)[0]
            concludes = _CONCLUDES.search(bare) is not None
            yield Claim(Strength.CONCLUSION if concludes else Strength.LAST, start, said[:MAX_CLAIM_CHARS])


_NAMED_VALUE = re.compile(r"(?!(?:it|that|this|there|he|she|they|answer)\b)\w+ (?:is|are|was|were)\b", re.IGNORECASE)


_DENIED_SPAN = re.compile(
    r"(?:\bnot|n't|\bnever|\binstead of|\brather than|\bunlike)\s+(?:(?:be|use|with|by|simply|just|the|an?)\s+)*[\"'(]*\Z",
    re.IGNORECASE,
)
MAX_DENIAL_CHARS = 40  # before an emphasised span


def _is_first_step(line: str, lines: list[tuple[int, str]]) -> bool:
    """Return whether a first line such as "LCD is 24" begins a working that ends with an equation."""
    return _NAMED_VALUE.match(line) is not None and re.search(r"[=:]", strip_marks(lines[-1][1])) is not None


def _find_headings(lines: list[tuple[int, str]]) -> set[int]:
    """Return the numbers of emphasised lines that are headings: several of them, with text below each."""
    alone = [number for number, (_, line) in enumerate(lines) if _is_alone(line)]
    headings = [number for number in alone if number + 1 < len(lines) and number + 1 not in alone]
    return set(headings) if len(headings) > 1 else set()


def _is_alone(line: str) -> bool:
    bare = line.strip(" .,!")
    return bare.startswith((BOLD, BOX)) and bare.endswith((BOLD_END, BOX_END))


def _is_item(line: str) -> bool:
    bare = strip_marks(line).strip()
    return bool(_BULLET.match(line)) or bare.startswith("|") or (len(bare.split()) <= 4 and bare[-1:] not in ".:?!")


def _last_list(text: str, lines: list[tuple[int, str]]) -> Claim | None:
    """Return the list that ends a reply, as one claim."""
    rows = list(lines)
    while rows and not _BULLET.match(rows[-1][1]):
        rows.pop()
    items: list[tuple[int, str]] = []
    while rows and _BULLET.match(rows[-1][1]):
        items.insert(0, rows.pop())
    if len(items) < 2:
        return None
    end = items[-1][0] + len(items[-1][1])
    return Claim(Strength.CONCLUSION, items[0][0], text[items[0][0] : end][:MAX_CLAIM_CHARS])


def split_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines with text, with their places."""
    rows, at = [], 0
    for line in text.split("\n"):
        if line.strip(f" \t{_MARK}"):
            rows.append((at, line))
        at += len(line) + 1
    return rows


def split_items(text: str) -> list[str]:
    """Return the items of a list with bullets or numbers; empty if the text is none."""
    lines = [line for line in text.split("\n") if line.strip(f" \t{_MARK}")]
    items = [_BULLET.sub("", line) for line in lines if _BULLET.match(line)]
    return items if len(items) >= 2 or (len(items) == 1 and len(lines) == 1) else []


def split_sentences(text: str) -> list[tuple[int, str]]:
    """Return the sentences with their places. A line ends a sentence; an abbreviation does not."""
    rows, start = [], 0
    for stop in _STOP.finditer(text):
        before = text[max(start, stop.start() - 12) : stop.start()]
        if stop[0].startswith(".") and _ABBREVIATION.search(strip_marks(before)):
            continue
        if re.search(r"\b\d{1,2}\Z", before) and _MONTH_AFTER.match(text, stop.end()):
            continue  # "31. März"
        if stop[0].startswith("!") and _FACTORIAL.search(before) and _GOES_ON.match(text, stop.end()):
            continue  # "100! ends in"
        rows.append((start, text[start : stop.end()]))
        start = stop.end()
    rows.append((start, text[start:]))
    return [(at, sentence) for at, sentence in rows if sentence.strip(f" \n\t{_MARK}")]
