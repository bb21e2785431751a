"""Checks of a synthesis: citations, shape and disagreements. Code, footnotes, checkboxes and years are no citations."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from council.final_answers.values import name_key
from council.protocols.general.claims import Dispute, Side
from council.wording import Wording

Sources = Mapping[int, Mapping[str, str]]

MAX_RANGE = 30  # sources: three searches of ten

FENCED = re.compile(r"^[ \t]*(```|~~~)[^`\n]*\n.*?(?:^[ \t]*\1[^\n]*|\Z)", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)(`{1,3})(?!`)[^\n]*?(?<!`)\1(?!`)")
_ESCAPED = re.compile(r"\\([\[\]()_*~&#-])")
_NUMBERS = re.compile(r"\[\s*(\d{1,3}(?:\s*(?:[,;&–-]|and)\s*\d{1,3})*)\s*\]")  # a year has four digits
_RANGE = re.compile(r"(\d+)\s*[–-]\s*(\d+)|(\d+)")
_URL = re.compile(r"https?://(?:(?![,;]https?://)[^\s<>\"`|\\^{}。，、；）」』】》”’“‘«»])+", re.IGNORECASE)
_TRAILING_PUNCTUATION = ".,;:!?'\"*_~…"
_BRACKET_PAIRS = {")": "(", "]": "["}
_LOCAL_HOST = re.compile(r"(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1\])\Z", re.IGNORECASE)


def find_citations(text: str, sources: Sources | None = None) -> list[int]:
    """Return the numbers cited as [1], [2, 3], [1-3] or by a source's URL, once each, in order."""
    prose = _ESCAPED.sub(r"\1", _INLINE.sub(" ", FENCED.sub(" ", text)))
    number = {_canonical_url(source.get("url", "")): n for n, source in (sources or {}).items()}
    found = [(match.start(), n) for match in _NUMBERS.finditer(prose) for n in _expand_numbers(match[1])]
    found += [(at, number[key]) for at, url in _find_urls(prose) if (key := _canonical_url(url)) in number]
    return list(dict.fromkeys(n for _, n in sorted(found, key=lambda one: one[0])))


def find_unknown_urls(text: str, known_urls: Collection[str]) -> list[str]:
    """Return the unknown URLs without local hosts and code blocks. Another ending of a known URL is unknown."""
    known = {_canonical_url(url) for url in known_urls}
    prose = _ESCAPED.sub(r"\1", FENCED.sub(" ", text))
    urls = dict.fromkeys(url for _, url in _find_urls(prose))
    return [url for url in urls if _canonical_url(url) not in known and not _is_local(url)]


def _expand_numbers(numbers: str) -> list[int]:
    """Expand a list or range; return nothing if it contains 0, which is an interval rather than a citation."""
    found: list[int] = []
    for first, last, one in _RANGE.findall(numbers):
        ends = [int(one)] if one else [int(first), int(last)]
        is_range = 0 <= ends[-1] - ends[0] < MAX_RANGE  # else it is too long or reversed, and only its ends count
        found += range(ends[0], ends[-1] + 1) if is_range else ends
    return found if 0 not in found else []


def _find_urls(text: str) -> Iterator[tuple[int, str]]:
    for match in _URL.finditer(text):
        url = _trim_unmatched_bracket(match.group()).rstrip(_TRAILING_PUNCTUATION)
        if re.match(r"https?://\[?\w", url):
            yield match.start(), url


def _trim_unmatched_bracket(url: str) -> str:
    """Cut the URL at a closing bracket that has no opening bracket inside it."""
    balance = Counter[str]()  # by the opening bracket
    for place, char in enumerate(url):
        balance[_BRACKET_PAIRS.get(char, char)] += -1 if char in _BRACKET_PAIRS else 1
        if balance[_BRACKET_PAIRS.get(char, char)] < 0:
            return url[:place]
    return url


def _canonical_url(url: str) -> str:
    """Normalise for comparison: no trailing punctuation or slash, scheme and host in lower case."""
    url = url.strip().replace("&amp;", "&").rstrip(_TRAILING_PUNCTUATION + "/")
    scheme, colon, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{colon}{host.lower()}{slash}{path}"


def _is_local(url: str) -> bool:
    try:
        return bool(_LOCAL_HOST.match(re.sub(r":\d*\Z", "", urlsplit(url).netloc)))
    except ValueError:  # not a valid URL
        return False


# Problems and disagreements

MAX_LISTED = 10  # numbers or URLs listed in one problem
JSON_REMOVED = "(a reply in JSON was removed)"
MAX_JSON_STARTS = 50  # places where an object is looked for

# Keys that identify a member's reply, alone or together.
_REPLY_KEYS = ("memberId", "areasOfUncertainty", "disagreementTopics")
_REPLY_KEY_SETS = (
    *({key} for key in _REPLY_KEYS),
    {"response", "confidence"},
    {"response", "claims"},
    {"topic", "stance"},
    {"question", "answer", "confidence"},
)
_REPLY_KEY = re.compile(rf'"(?:{"|".join(_REPLY_KEYS)})"\s*:')
_JSON_START = re.compile(r'\{\s*"[^"\n]{1,100}"\s*:|\[\s*\{\s*"')


def find_problems(
    answer: str,
    summaries: Mapping[str, Sequence[str]],
    sources: Sources,
    persisting: Mapping[str, Dispute],
) -> list[str]:
    """Return the problems a synthesis is sent back for, such as "cites [7], but …".

    `summaries` maps disagreement names to the sides it reports, `persisting` to the disputes it must report.
    """
    if not answer.strip():
        return ["is empty: write the answer"]
    whole = "\n\n".join((answer, *(side for sides in summaries.values() for side in sides)))
    return [*_check_shape(answer), *_check_citations(whole, sources), *_check_disagreements(summaries, persisting)]


def number_disputes(disputes: Sequence[Dispute]) -> dict[str, Dispute]:
    """Name the disputes D1, D2 and so on, for the second round and the synthesis; skip possible ones."""
    return {f"D{n}": one for n, one in enumerate((one for one in disputes if not one.is_possible), 1)}


def _check_shape(answer: str) -> Iterator[str]:
    blocks = [block.group() for block in FENCED.finditer(answer)]
    whole = answer.strip()
    if _is_json(_strip_fence(whole) if [block.strip() for block in blocks] == [whole] else whole):
        yield "is raw JSON: write Markdown prose"
    elif _REPLY_KEY.search(answer) or any(_is_reply(_parse_json(_strip_fence(block))) for block in blocks):
        yield "repeats a member's reply as raw JSON: rewrite it as prose"


def _check_citations(text: str, sources: Sources) -> Iterator[str]:
    wrong = [f"[{number}]" for number in find_citations(text, sources) if number not in sources]
    if wrong:
        yield f"cites {', '.join(wrong[:MAX_LISTED])}, but {_describe_range(sources)}"
    for url in find_unknown_urls(text, [source.get("url", "") for source in sources.values()])[:MAX_LISTED]:
        yield f'gives the address "{url}", which is not in the context: leave it out'


def _describe_range(sources: Sources) -> str:
    numbers = sorted(sources)
    if not numbers:
        return "there is no research context: cite nothing"
    if numbers == list(range(1, len(numbers) + 1)):
        return f"the context has 1 to {len(numbers)}" if len(numbers) > 1 else "the context has only 1"
    return f"the context has {', '.join(map(str, numbers))}"


def _check_disagreements(summaries: Mapping[str, Sequence[str]], persisting: Mapping[str, Dispute]) -> Iterator[str]:
    by_name = {name.strip().upper(): sides for name, sides in summaries.items()}
    for name, dispute in persisting.items():
        sides = by_name.get(name, ())
        if not _has_two_sides(sides):
            problem = "gives only one side of" if any(side.strip() for side in sides) else "says nothing about"
            yield f'{problem} the disagreement {name} on "{_one_line(dispute.question)}": give both sides'


def _has_two_sides(sides: Sequence[str]) -> bool:
    return len({name_key(side) for side in sides if side.strip()}) > 1


_BECAUSE = re.compile(r"\A(?:because|since)\b\s*", re.IGNORECASE)
_CAPITAL_WORD = re.compile(  # a word that has a capital only at the beginning of a sentence
    r"\A(?:They|Their|The|This|These|Those|There|It|Its|A|An|One|Some|Each|Both|Neither|All|Most|No|Not|Different|What|When|"
    r"Where|Which|Who|Whether|How|If|In|On|At|For|With|Without|Under|Only|Members|Experts|Estimates|Costs?|We)\b"
)
_CLAUSE = re.compile(  # a statement such as "the latency is acceptable"; a topic has no verb
    r"(?!(?:whether|how|what|when|where|which|who|why|if|that)\b)(?:\S+ ){1,8}?"
    r"(?:is|are|was|were|should|can|could|will|would|must|has|have|does|needs?|requires?|remains?)(?= )",
    re.IGNORECASE,
)


MARKS = {"possible": "possible", "chair": "noted_by_the_chair"}  # by how a disagreement was found


def format_disagreement(dispute: Dispute, because: str, sides: Sequence[tuple[str, str]], wording: Wording) -> str:
    """Format a disagreement in Markdown, with the chair's sides if there are two, else with the seats' positions."""
    if _has_two_sides([f"{position} {case}" for position, case in sides]):
        named = [(_one_line(name).strip("*_ :：\u00a0"), _one_line(why)) for name, why in sides]
        bullets = [f"**{name}**{wording.colon}{why}" if name and why else name or why for name, why in named]
        bullets = list(filter(None, bullets))
    else:
        bullets = [_format_seat_side(side, wording) for side in dispute.positions]
    return "\n".join((_format_lead(dispute, because, wording), "", *(f"- {bullet}" for bullet in bullets)))


def _format_lead(dispute: Dispute, because: str, wording: Wording) -> str:
    """Return the sentence that names a disagreement and its reason."""
    mark = wording.enclose(wording.heading(MARKS[dispute.how])) if dispute.how in MARKS else ""
    named = _one_line(dispute.question).rstrip(" .:;。：；")
    why = _one_line(because).rstrip(".。")
    if wording.language == "en":  # point and reason are clauses of the sentence
        why = _CAPITAL_WORD.sub(lambda word: word[0].lower(), _BECAUSE.sub("", why))
        named = f"whether {named}" if _CLAUSE.match(named) and not named.endswith("?") else named
    named = wording.quote(named) if named.endswith(("?", "？")) else named
    lead = wording.heading("experts_may_disagree" if dispute.is_possible else "experts_disagree", point=named)
    reason = wording.heading("experts_because", why=why) if why else ""
    return f"{lead}{mark}{reason}{wording.period.rstrip()}"


def _format_seat_side(side: Side, wording: Wording) -> str:
    shows_answer = side.answer and name_key(side.answer) != name_key(side.claim)
    answer = wording.enclose(side.answer) if shows_answer else ""
    evidence = "".join(f" [{number}]" for number in side.evidence)
    seat = side.seat.replace("_", " ").capitalize() or wording.heading("a_member_speaks")
    return f"{_one_line(f'{seat}{answer}')}{wording.colon}{_one_line(f'{side.claim}{evidence}')}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


# Removal after the second try


def remove_failures(text: str, sources: Sources) -> str:
    """Remove citations and addresses that are not in the context, and raw JSON."""
    text = remove_json(text)
    for url in sorted(find_unknown_urls(text, [one.get("url", "") for one in sources.values()]), key=len, reverse=True):
        text = re.sub(rf"\[([^\[\]\n]*)\]\({re.escape(url)}\)", r"\1", text).replace(url, "(address removed)")
    outside = [match.span() for pattern in (FENCED, _INLINE) for match in pattern.finditer(text)]

    def keep_known(match: re.Match[str]) -> str:
        numbers = list(_expand_numbers(match[1]))
        if not numbers or all(n in sources for n in numbers) or any(a <= match.start() < b for a, b in outside):
            return match[0]
        known = [str(n) for n in numbers if n in sources]
        return f"[{', '.join(known)}]" if known else ""

    struck = _NUMBERS.sub(keep_known, text)
    return struck if struck == text else re.sub(r"(?<=\S)[ \t]+(?=[.,;:!?)])", "", struck)


def remove_json(text: str) -> str:
    """Return the prose without raw JSON; of a JSON answer, the text of its field `answer` or `response`."""
    whole = _strip_fence(text.strip()) if FENCED.fullmatch(text.strip()) else text.strip()
    if _is_json(whole):
        value = _parse_json(whole)
        said = [value.get(key) for key in ("answer", "response")] if isinstance(value, dict) else []
        return next((text for text in said if isinstance(text, str)), "")
    text = FENCED.sub(lambda block: JSON_REMOVED if _is_reply(_parse_json(_strip_fence(block[0]))) else block[0], text)
    for start in list(islice(_JSON_START.finditer(text), MAX_JSON_STARTS))[::-1]:
        try:
            value, end = json.JSONDecoder().raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        if _is_reply(value):
            text = text[: start.start()] + JSON_REMOVED + text[end:]
    return text


# JSON


def _is_json(text: str) -> bool:
    """Return whether the text is a JSON object or list, even truncated; a list of numbers, as in [1], is a citation."""
    value = _parse_json(text)
    if value is None:
        return bool(_JSON_START.match(text.strip()))
    return isinstance(value, dict) or (isinstance(value, list) and any(not isinstance(one, int) for one in value))


def _is_reply(value: Any) -> bool:
    rows = value if isinstance(value, list) else [value]
    return any(isinstance(row, dict) and any(keys <= row.keys() for keys in _REPLY_KEY_SETS) for row in rows)


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _strip_fence(block: str) -> str:
    """Return the text between the opening and the closing fence."""
    return block.strip().partition("\n")[2].rstrip().rstrip("`~")
