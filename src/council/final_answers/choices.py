"""Choices: which of the lettered choices of a question a text names, and which it rejects.

No letter is special: the rules for "A" and "I" are those for every letter.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from council.final_answers.markup import BOLD, BOLD_END, BOX, BOX_END, strip_marks, to_plain

MAX_LEAD_WORDS = 6
MAX_CHARS = 3_000  # of the end of a reply in which a choice is looked for
MAX_SCOPE_CHARS = 60  # of a negation before a choice
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MARK = f"{BOLD}{BOLD_END}{BOX}{BOX_END}"
# Words after a letter alone. "I would", "I can" and "A dog" are no letters.
_VERBS = r"(?:it|here|as|then|alone|correctly|accurately|directly|is|isn't|are|aren't|seems?|appears?|fits?|matches|works?|holds?|gives?|has|doesn't|does|remains?|makes?|follows|says|describes|states|corresponds|represents|satisfies|and|or|nor|but|because|since|fails|contradicts|over|rather|instead)"
_ORDINALS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fourth": 4,
    "fifth": 5,
    "1st": 1,
    "2nd": 2,
    "3rd": 3,
    "4th": 4,
    "5th": 5,
}
_NAMED = re.compile(
    rf"\b(?:options?|choices?|answers?|letters?|statements?|alternatives?)[ {_MARK}:]*[(\[\"']?[{_MARK}]?(?P<letter>[A-Za-z])[{_MARK}]?[)\]\"']?(?![\w'])",
    re.IGNORECASE,
)
_BRACKETED = re.compile(rf"(?<![\w)])[(\[][{_MARK} ]*(?P<letter>[A-Za-z])[{_MARK} ]*[)\]]")
_MARKED = re.compile(rf"[{_MARK}\"'][(]?(?P<letter>[A-Za-z])[).:]?[{_MARK}\"'](?!\w)")
_WITH_PAREN = re.compile(rf"(?:^|(?<=[\s{_MARK}]))(?P<letter>[A-Za-z])\)")
_WITH_STOP = re.compile(rf"(?:\A|(?<=\n))[\s{_MARK}*•-]*(?P<letter>[A-Za-z])[{_MARK}]?[.:](?=[\s{_MARK}]|\Z)")
_BARE = re.compile(
    rf"(?<![\w'.])(?P<letter>[A-Z])(?:'s)?(?=[{_MARK}]*(?:\s*\Z|[.,;:!?](?:\s|\Z|[{_MARK}])|\s*[)\]/&=→]|\s+[-–—(]|\s*[✓✔✅✗✘❌]|\s*\n|\s+{_VERBS}\b))"
)
_TITLE = re.compile(r"\b(?:mr|mrs|ms|dr|st|vs|e\.g|i\.e|prof)\Z", re.IGNORECASE)
_LINKED_LETTER = re.compile(rf"[{_MARK}\s]*(?:,|/|&|,?\s*\b(?:or|and|nor))[{_MARK}\s(]*([A-Z])(?![\w'])")
_ORDINAL = re.compile(
    r"\b(?:the )?(?P<word>first|second|third|fourth|fifth|last|1st|2nd|3rd|4th|5th) (?:option|choice|answer|alternative|statement|one(?= is (?:correct|right|the)\b|\W*\Z))\b"
    r"|\b(?:option|choice|answer|alternative)(?: number| no\.?| #)? ?(?P<number>[1-9]|10)\b(?![.,]?\d|[ ]?%)",
    re.IGNORECASE,
)
_BREAK = re.compile(
    r"(?P<stop>[.!?;]+(?=[\s\ue000-\ue003]|\Z)|\n+)|,?\s*\b(?P<turn>but|however|actually|therefore|thus|hence|so(?! (?:is|are|do|does)\b)|wait|instead(?! of)|correction)\b[,:]?"
    r"|,?\s*\b(?P<side>while|whereas|though|although|because|since|as|which)\b",
    re.IGNORECASE,
)
_LINK = r"[\s\ue000-\ue003(),/&\"']*(?:(?:and|or|nor|und|oder|as well as|plus)\b)?[\s\ue000-\ue003(),/&\"']*(?:(?:options?|choices?|answers?|letters?|the|either|also|is|neither|possibly|maybe|perhaps) ){0,2}[\s\ue000-\ue003(),\"']*"
_LINKED = re.compile(_LINK)
_DENIED_BEFORE = re.compile(
    r"(?:\bnot|n't(?: be)?|\bnever|\bneither|\bnor|\brather than|\binstead of|\bunlike|\brul\w+ out|\beliminat\w+|\bexclud\w+|\bexcept|\bdiscard\w*|\breject\w*|"
    r"\bover|\bthan|\bcross(?:ed|ing)? out|\bdismiss\w*|\bagainst|\bwrong (?:answer|option|choice)s? (?:is|are))"
    r"(?:[\s\ue000-\ue003(\"':]|\b(?:the|option|options|choice|answer|letter|is|be|really|simply|just|also|either|both|it|with)\b)*\Z",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"[✗✘❌]|\b(?:wrong|incorrect|false|eliminated|excluded|rejected|discarded|invalid|impossible|implausible|unlikely|irrelevant|inaccurate|ruled out|(?<!odd one )(?<!odd man )out|fails?|contradicts?|"
    r"incompatible|distractors?|too (?:high|low|big|small|broad|narrow|large|strong|weak)|falsch|nope)\b"
    r"|(?:\b(?:is|are|was|were|be|seems?|looks?|would be|am) not|\b(?:isn't|aren't|wasn't|weren't)|\bnot)\s+(?:\w+ ){0,2}?(?:correct|right|true|it|the|an?|valid|possible|supported|accurate|what|"
    r"relevant|applicable|plausible|one|among|enough|my|in|as)\b"
    r"|(?:\b(?:does|do|did|can|could|would|will) not|\bcannot|\b(?:doesn't|don't|didn't|can't|couldn't|wouldn't|won't))\s+(?:\w+ ){0,2}?(?:be|fit|work|match|apply|satisfy|explain|make|hold|"
    r"answer|follow|meet|qualify|correspond|describe|address|count)\b|\b(?:is|are|was|were)(?:n't| not)\s*\Z",
    re.IGNORECASE,
)
_CONFIRMED = re.compile(
    r"[✓✔✅]|\b(?:correct|right|true|best|the (?:final )?answer|the (?:only )?(?:one|option|choice|match)|the odd (?:one|man) out|only (?:one|option|choice|remaining)|remains|left|fits|matches|my (?:final )?(?:answer|choice)|richtig)\b",
    re.IGNORECASE,
)
_LEAVES = re.compile(
    r"\b(?:leaves|leaving|left with|are left with|remains|must be|has to be|can only be)\b(?: us)?(?: with)?(?: only| just)?(?: option| choice| answer)?[\s\ue000-\ue003(]*\Z",
    re.IGNORECASE,
)
_NOT_CONFIRMED = re.compile(r"\b(?:not|isn't|aren't|never|no longer|n't)\b[^,;.]{0,25}\Z", re.IGNORECASE)
# A clause without a choice that denies the one before it: "Not prime either."
_ALSO_DENIED = re.compile(
    r"(?:(?:that|this|it)(?:'s| is) )?(?:not (?:\w+ ){0,3}(?:either|it|correct|right)|(?:also |clearly )?(?:wrong|false|incorrect|out)|no good|doesn't (?:fit|work)|no(?:pe)?)\W*\Z",
    re.IGNORECASE,
)
_SAME_AS_BEFORE = re.compile(r"\b(?:so|as) (?:is|are)\b", re.IGNORECASE)


class _Mention(NamedTuple):
    start: int
    end: int
    choice: int


@dataclass(frozen=True, slots=True)
class ChoiceReading:
    """The choices that a text gives as the answer, by number, and those that it rejects."""

    chosen: tuple[int, ...] = ()
    rejected: frozenset[int] = frozenset()
    is_explicit: bool = False  # whether one is called correct, or nothing but a choice is said


@lru_cache(maxsize=512)
def fold(text: str) -> str:
    """Return a text for comparison with a choice: words and signs without articles, case and outer punctuation."""
    plain = " ".join(strip_marks(unicodedata.normalize("NFKC", to_plain(text[:MAX_CHARS]))).casefold().split())
    plain = re.sub(r"\b(?:the|an|a)\b(?=\s+\w)", " ", plain)
    plain = " ".join(re.sub(r"(?<=\d),(?=\d{3}\b)", "", plain).split()).replace('"', "")
    return " ".join(re.sub(r"\s*([-–—/×=])\s*", r" \1 ", plain).replace("–", "-").replace("—", "-").split()).strip(
        " .,:;!*'`"
    )


def read_choice(text: str, choices: Sequence[str], *, is_claim: bool = True) -> ChoiceReading:
    """Read a text that states an answer; in one that is no claim a choice counts only if it is called correct."""
    keys = [fold(choice) for choice in choices]
    if not is_claim:
        found = _read_clauses(text, choices, keys)
        return found if found.is_explicit else ChoiceReading((), found.rejected)
    whole = fold(text)
    if keys.count(whole) == 1:
        return ChoiceReading((keys.index(whole),), frozenset(), True)
    bare = strip_marks(text).strip(" \n*_`\"'()[]{}.:,!")
    if len(bare) == 1 and bare.upper() in LETTERS[: len(choices)]:
        return ChoiceReading((LETTERS.index(bare.upper()),), frozenset(), True)
    if lead := _read_lead(text, keys):
        return lead
    found = _read_clauses(text, choices, keys)
    if found.chosen or found.rejected:
        return found
    part = _match_part(whole, keys)
    return ChoiceReading((part,), frozenset(), True) if part is not None else ChoiceReading()


# A choice at the beginning

_LEAD = re.compile(
    rf"[\s{_MARK}*•-]*(?:(?:it is|it's|is|be|that|clearly|definitely|most likely|likely|probably|option|choice|answer|letter|number)[\s{_MARK}:]+){{0,3}}"
    rf"(?P<open>[(\[\"']?)[{_MARK}]*(?P<letter>[A-Za-z])[{_MARK}]*(?P<close>[)\]\"']?[{_MARK}]*[.:]?)"
    rf"(?:\s*[{_MARK}]*\s*[-–—:,]?\s+|[{_MARK}\s]*\Z|(?=[,;!(—–]))(?P<rest>.*)",
    re.DOTALL | re.IGNORECASE,
)
_ALTERNATIVE = re.compile(
    rf"[\s{_MARK},]*(?:or|and|/|&|und|oder|possibly|maybe|perhaps|but possibly)[\s{_MARK}]+(?:(?:maybe|perhaps|possibly|also|option|choice|even)\s+)*[(\[]?[{_MARK}]*(?P<letter>[A-Za-z])[{_MARK}]*[)\]]?(?![\w'])",
    re.IGNORECASE,
)


def _read_lead(text: str, keys: Sequence[str]) -> ChoiceReading | None:
    """Read a text that begins with a letter: "C) Mars", "(C) because …", "C or D"."""
    found = _LEAD.match(text)
    if found is None or found["letter"].upper() not in LETTERS[: len(keys)]:
        return None
    letter, rest = LETTERS.index(found["letter"].upper()), found["rest"]
    before = text[: found.start("letter")][-1:]
    has_sign = bool(found["open"] or strip_marks(found["close"]) or (before and before in _MARK))
    is_named = re.search(r"\b(?:option|choice|answer|letter)\W*\Z", text[: found.start("letter")], re.IGNORECASE)
    if not (has_sign or is_named) and (found["letter"].islower() or not _BARE.match(text, found.start("letter"))):
        return None
    first = re.split(r"[.;\n]|\s[-–—]\s|\bbecause\b|\bsince\b", rest, maxsplit=1)[0] if rest else ""
    if _DENIED_AFTER.match(re.sub(r"\A[\s\ue000-\ue003]*(?:is|are|was)\s+", "", strip_marks(rest))):
        return None
    chosen = [letter]
    if (other := _ALTERNATIVE.match(rest)) and other["letter"].upper() in LETTERS[: len(keys)]:
        if not has_sign and len(rest.split()) > MAX_LEAD_WORDS:
            return None  # "A and B are both involved, but …"
        chosen.append(LETTERS.index(other["letter"].upper()))
    said = fold(first)
    texts = {fold(part) for part in (rest.split("\n")[0], first, re.sub(r"\([^()]*\)", "", first)) if part.strip()}
    named = [n for n, key in enumerate(keys) if key and key in texts and keys.count(key) == 1]
    named = named or [n for n in _find_texts(said, keys) if re.match(rf"{re.escape(keys[n])}(?!\w)", said)]
    if named and letter not in named and not keys[letter].startswith(keys[named[0]]):
        chosen.append(named[0])  # the letter and the text name different choices
    turn = re.search(r"\b(?:wait|actually|correction|no,)\b", rest, re.IGNORECASE)
    if turn:
        later = read_choice(rest[turn.end() :], keys)
        if later.chosen:
            return later
    return ChoiceReading(tuple(dict.fromkeys(chosen)), frozenset(), True)


# Choices in sentences


def _read_clauses(text: str, choices: Sequence[str], keys: Sequence[str]) -> ChoiceReading:
    chosen: dict[int, bool] = {}  # whether each is called correct
    rejected: set[int] = set()
    was_denied = False
    last_named: tuple[int, ...] = ()
    for turns, is_reason, clause in _split_clauses(text[-MAX_CHARS:]):
        mentions = list(_find_mentions(clause, keys))
        if is_reason:  # up to its comma: "Since C is false, it is B"
            comma = clause.find(",")
            mentions = [one for one in mentions if 0 <= comma < one.start]
        if not mentions:
            if _ALSO_DENIED.match(clause.strip()) and len(last_named) == 1:
                rejected.add(last_named[0])
                chosen.pop(last_named[0], None)
                was_denied = True
            continue
        last_named = tuple(dict.fromkeys(mention.choice for mention in mentions))
        denied = [_is_denied(clause, mentions, at, was_denied) for at in range(len(mentions))]
        confirmed = [_is_confirmed(clause, mentions, at) for at in range(len(mentions))]
        if turns and not all(denied):
            chosen.clear()
        for mention, is_denied, is_confirmed in zip(mentions, denied, confirmed, strict=True):
            if is_denied:
                rejected.add(mention.choice)
                chosen.pop(mention.choice, None)
            else:
                chosen[mention.choice] = chosen.get(mention.choice, False) or is_confirmed
                rejected.discard(mention.choice)
        was_denied = all(denied)
    if not chosen:
        left = set(range(len(choices))) - rejected
        return ChoiceReading(tuple(left) if len(left) == 1 else (), frozenset(rejected), len(left) == 1)
    called = [choice for choice, is_called in chosen.items() if is_called]
    return ChoiceReading(tuple(called or chosen), frozenset(rejected), bool(called))


def _split_clauses(text: str) -> Iterator[tuple[bool, bool, str]]:
    """Yield the clauses, each with whether it turns against what was said before, and whether it is a reason."""
    start, turns, is_reason = 0, False, False
    for found in _BREAK.finditer(text):
        if found["stop"] == "." and _TITLE.search(text, max(0, found.start() - 5), found.start()):
            continue
        if (
            found["stop"]
            and found["stop"][0] == "."
            and re.search(r"(?:\A|\W)[A-Z]\Z", text[: found.start()])
            and "\n" not in found["stop"]
        ) and re.match(r"[.\s]+[A-Z]", text[found.start() :]) is None:
            continue  # "A. the first"
        if text[start : found.start()].strip():
            yield turns, is_reason, text[start : found.start()]
            turns = False
        start = found.end()
        is_reason = bool(found["side"])
        if found["turn"]:
            turns = True
        elif found["stop"] is None:
            turns = False
    if text[start:].strip():
        yield turns, is_reason, text[start:]


def _find_mentions(clause: str, keys: Sequence[str]) -> Iterator[_Mention]:
    """Yield the choices that a clause names, by their letters and by their texts, in order."""
    rows: list[_Mention] = []
    folded = clause.casefold()
    taken = [False] * len(clause)
    for choice in sorted(range(len(keys)), key=lambda n: -len(keys[n])):
        key = keys[choice]
        if len(key) < 2 or keys.count(key) > 1:
            continue
        words = (
            r"[\W_]+(?:(?:the|a|an)[\W_]+)?".join(re.escape(part) for part in key.split(" "))
            if key.replace(" ", "").isalnum()
            else re.escape(key)
        )
        for found in re.finditer(rf"(?<![\w.]){words}(?!\w|[.,]\d)", folded):
            if found.end() <= len(taken) and not any(taken[found.start() : found.end()]):
                taken[found.start() : found.end()] = [True] * (found.end() - found.start())
                rows.append(_Mention(found.start(), found.end(), choice))
    for pattern in (_NAMED, _BRACKETED, _MARKED, _WITH_PAREN, _WITH_STOP, _BARE):
        for found in pattern.finditer(clause):
            letter, at = found["letter"], found.start("letter")
            if taken[at] or letter.upper() not in LETTERS[: len(keys)]:
                continue
            if (
                letter.islower()
                and pattern is _NAMED
                and not re.match(r"[)\]\"']|\s*(?:\Z|[.,;:!\n\ue000-\ue003]|is\b)", clause[found.end("letter") :])
            ):
                continue  # "answer a question"
            taken[at] = True
            rows.append(_Mention(found.start(), found.end(), LETTERS.index(letter.upper())))
    for row in list(rows):
        linked = _LINKED_LETTER.match(clause, row.end)
        if linked and linked[1] in LETTERS[: len(keys)] and not taken[linked.start(1)]:
            taken[linked.start(1)] = True
            rows.append(_Mention(linked.start(1), linked.end(1), LETTERS.index(linked[1])))
    for found in _ORDINAL.finditer(clause):
        number = int(found["number"] or 0) or _ORDINALS.get((found["word"] or "").casefold(), len(keys))
        if 1 <= number <= len(keys) and not any(taken[found.start() : found.end()]):
            rows.append(_Mention(found.start(), found.end(), number - 1))
    rows.sort()
    return iter(_join_letters_and_texts(clause, rows))


def _join_letters_and_texts(clause: str, rows: list[_Mention]) -> list[_Mention]:
    """Join "Sydney (A)" and "C) Mars", which name one choice twice."""
    joined: list[_Mention] = []
    for row in rows:
        if joined and joined[-1].choice == row.choice and not re.search(r"\w", clause[joined[-1].end : row.start]):
            joined[-1] = _Mention(joined[-1].start, row.end, row.choice)
        else:
            joined.append(row)
    return joined


def _is_denied(clause: str, mentions: Sequence[_Mention], at: int, was_denied: bool) -> bool:
    start = mentions[at].start
    if _DENIED_BEFORE.search(clause[max(0, start - MAX_SCOPE_CHARS) : start]):
        return True
    first = at  # the first of "A and B" that are named together
    while first and _LINKED.fullmatch(clause, mentions[first - 1].end, mentions[first].start):
        first -= 1
    start = mentions[first].start
    if first < at and _DENIED_BEFORE.search(clause[max(0, start - MAX_SCOPE_CHARS) : start]):
        return True
    if was_denied and _SAME_AS_BEFORE.search(clause):
        return True
    last = at
    while last + 1 < len(mentions) and _LINKED.fullmatch(clause, mentions[last].end, mentions[last + 1].start):
        last += 1
    end = mentions[last + 1].start if last + 1 < len(mentions) else len(clause)
    after = clause[mentions[last].end : end]
    if last + 1 < len(mentions) and (denial := _DENIED_BEFORE.search(after)):
        after = after[: denial.start()]
    found = _DENIED_AFTER.search(after)
    return (
        found is not None
        and not re.match(r"\W*not only\b", after[found.start() :], re.IGNORECASE)
        and not re.search(r"\b(?:can|could) not be (?:false|wrong)\b", after)
    )


def _is_confirmed(clause: str, mentions: Sequence[_Mention], at: int) -> bool:
    mention = mentions[at]
    start = mentions[at - 1].end if at else 0
    end = mentions[at + 1].start if at + 1 < len(mentions) else len(clause)
    if _LEAVES.search(clause[start : mention.start]):
        return True
    for part in (clause[start : mention.start], clause[mention.end : end]):
        if (found := _CONFIRMED.search(part)) and not _NOT_CONFIRMED.search(part[: found.start()]):
            return True
    return False


# Parts of the text of a choice


def _find_texts(said: str, keys: Sequence[str]) -> list[int]:
    return [n for n, key in enumerate(keys) if len(key) > 1 and re.search(rf"(?<!\w){re.escape(key)}(?!\w)", said)]


def _match_part(said: str, keys: Sequence[str]) -> int | None:
    """Return the one choice whose words include all words of a short text, as "Goethe" for "J. W. von Goethe"."""
    small = {
        "it",
        "is",
        "i'd",
        "i",
        "say",
        "think",
        "of",
        "so",
        "must",
        "be",
        "that",
        "this",
        "answer",
        "would",
        "without",
        "doubt",
        "clearly",
        "therefore",
        "to",
        "in",
        "and",
    }
    words = set(re.findall(r"[\w'+#.-]*[\w+#]", said)) - small
    if not words or len(words) > 12:
        return None
    own = [set(re.findall(r"[\w'+#.-]*[\w+#]", key)) - small for key in keys]
    found = [n for n, key in enumerate(own) if words <= key]
    if len(found) == 1 and sum(bool(words & key) for key in own) == 1:
        return found[0]
    # or the choice whose own words are all in the text
    covering = [n for n, key in enumerate(own) if key and key <= words]
    return covering[0] if len(covering) == 1 else None
