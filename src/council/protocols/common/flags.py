"""What a draft says against itself: the CRITICAL flags that it leaves open and its confidence marks, and whether an
answer settles them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from council.protocols.common import flag_words as w
from council.protocols.common.draft_blocks import drop_code, split_blocks, split_sentences
from council.protocols.common.flag_words import Severity, compile_words
from council.similarity import stem
from council.types import TrustFact

ConfidenceLevel = Literal["HIGH", "MEDIUM", "LOW"]


@dataclass(frozen=True, slots=True)
class Flag:
    """A problem of the highest severity that a draft raises against itself and leaves open."""

    severity: Severity
    text: str  # the problem in a few words; empty if the draft does not name it


SEVERE = compile_words(w.SEVERE)


def find_flags(text: str) -> list[Flag]:
    """Return the flags of the highest severity that a draft raises against itself and leaves open."""
    if not SEVERE.search(text):
        return []
    from council.protocols.common.flag_reader import read_problems

    return [Flag(severity, words) for severity, words in read_problems(text)]


def choose_leader(drafts: Mapping[str, str]) -> str:
    """Return the seat whose draft leaves the fewest CRITICAL flags open, the first of several.

    Used if no chair triages.
    """
    return min(drafts, key=lambda name: len(find_flags(drafts[name])))


def list_flagged_drafts(drafts: Mapping[str, str]) -> list[str]:
    """Return the seats whose drafts leave a CRITICAL flag against themselves open."""
    return [name for name, text in drafts.items() if find_flags(text)]


def list_draft_facts(drafts: Mapping[str, str], answer: str) -> list[TrustFact]:
    """Return what the drafts of a merged answer say against it: flags that it does not settle, and marks that are
    mostly LOW.
    """
    facts = []
    if flags := list_unsettled_flags(drafts, answer):
        seats = tuple(dict.fromkeys(seat for seat, _ in flags))
        facts.append(TrustFact("unsettled_flag", flags[0][1].text, seats, len(flags)))
    if unsure := tuple(seat for seat, text in drafts.items() if is_mostly_low(text)):
        facts.append(TrustFact("low_marks", "", unsure, len(unsure), len(drafts)))
    return facts


# Does the answer settle a flag?

MIN_SHARED_WORDS = 2
MIN_SHARE = 0.5  # of the main words of a flag that a caveat or a step repeats
KEY_CHARS = 6  # of a word: endings differ
WORD = re.compile(r"[^\W_]+")
STOP_WORDS = frozenset(f"{w.FUNCTION_WORDS} {w.GENERAL_WORDS}".split())
CAVEAT = compile_words(rf"\b{w.CAVEAT}\b|{w.SEVERE}")
NEEDLESS = compile_words(rf"\b{w.NEEDLESS}\b")
CAVEAT_HEADING = compile_words(rf"\b{w.CAVEAT_HEADING}\b")


def list_unsettled_flags(drafts: Mapping[str, str], answer: str) -> list[tuple[str, Flag]]:
    """Return the flags of drafts, with their seats, that an answer neither repeats as a caveat nor takes up in a
    step.
    """
    flags = [(seat, flag) for seat, text in drafts.items() for flag in find_flags(text)]
    if not flags:
        return []
    passages = [_main_words(passage) for passage in _find_caveats(answer)]
    return [(seat, flag) for seat, flag in flags if not _is_settled(_main_words(flag.text), passages)]


def _main_words(text: str) -> frozenset[str]:
    """Return the words that carry the sense, cut to a few letters so that their forms are equal."""
    words = (word.lower() for word in WORD.findall(text))
    return frozenset(
        stem(word)[:KEY_CHARS] for word in words if word not in STOP_WORDS and (len(word) > 2 or word.isdigit())
    )


def _is_settled(words: frozenset[str], passages: list[frozenset[str]]) -> bool:
    """Return whether a passage repeats enough of the main words. A flag of one word could be about anything."""
    shared = max((len(words & passage) for passage in passages), default=0)
    return shared >= MIN_SHARED_WORDS and shared >= MIN_SHARE * len(words)


def _find_caveats(answer: str) -> Iterator[str]:
    """Return the sentences of an answer that are a caveat or a step, and those below such a heading."""
    is_below_heading = False
    for block in split_blocks(answer):
        if block.kind == "heading":
            is_below_heading = CAVEAT_HEADING.search(block.text) is not None
        sentences = [" ".join(row) for row in block.rows] if block.kind == "table" else split_sentences(block.text)
        for sentence in sentences:
            if (is_below_heading or CAVEAT.search(sentence)) and not NEEDLESS.search(sentence):
                yield sentence


# Confidence marks

LEVEL = f"(?:{w.HIGH}|{w.MEDIUM}|{w.LOW})"
RANGE = rf"{LEVEL}(?:(?:\s*[-–/]\s*|\s+(?:to|bis|à|a)\s+){LEVEL})?(?!\w)"  # "MEDIUM to HIGH": the lower level counts
LOWEST_FIRST: dict[ConfidenceLevel, re.Pattern[str]] = {
    "LOW": compile_words(rf"\b{w.LOW}\b"),
    "MEDIUM": compile_words(rf"\b{w.MEDIUM}\b"),
    "HIGH": compile_words(rf"\b{w.HIGH}\b"),
}
# A mark with the word "confidence" counts in any case, another one only in capitals: "the cost is (low)" is no mark.
STATED_MARK = compile_words(
    rf"\b{w.CONFIDENCE}(?:\s+level)?(?:\s+(?:in|of)\s[^.:()]{{1,40}}?)?[*_]*\s*[:=–—(\[-]*\s*(?:is|ist|est|es)?\s*[*_:]*\s*(?P<stated>{RANGE})(?!\w)"
    rf"|(?<!\w)(?P<before>{RANGE})[*_]*[\s-]+{w.CONFIDENCE}(?!\w)"
)
SHORT_MARK = compile_words(
    rf"[(\[{{]\s*[*_`]*(?P<bracket>{RANGE})[*_`]*\s*(?=[)\]}},;:–—|])"
    rf"|(?<!\w)(?:\*\*|__|`)(?P<bold>{RANGE})\s*[:.]?(?:\*\*|__|`)(?=\s*(?:$|[-–—:,.;)|(]))"
    rf"|[–—→]\s*(?P<end>{RANGE})\s*[.)]*\s*$"
    rf"|^\s*(?:[-*+•]|\d+[.)])?\s*(?P<label>{RANGE})\s*[:–—]"
)
OTHER_SCALE_BEFORE = compile_words(
    rf"(?:^|[|,;(\[]|[-*+•]\s)\s*[*_]*(?:\w+\s)?{w.OTHER_SCALE}[*_]*\s*[:=]?[*_]*\s*[(\[*_]*$"
)
MAX_SCALE_CHARS = 60  # before a mark, where the name of another scale is looked for
UPPER = "(?:HIGH|MEDIUM|MED|LOW|HOCH|MITTEL|NIEDRIG|GERING|ÉLEVÉE?|MOYENNE?|FAIBLE|ALT[OA]|MEDI[OA]|BAJ[OA])"
LEGEND = re.compile(
    rf"(?:[(\[*]*{UPPER}[)\]*]*\s*(?:[,/|]|\s(?:and|or|und|oder|et|ou|y|o)\s)+\s*){{2}}[(\[*]*{UPPER}[)\]*]*|{UPPER}[)\]*]*\s*(?:=|means)"
)
CONFIDENCE_COLUMN = compile_words(rf"\b{w.CONFIDENCE}\b")
TABLE_LINE = re.compile(r"^\s*\|.*\|")
CONCLUSION = compile_words(rf"^\W*(?:\w+\s)?{w.CONCLUSION}\b")
HEADING = re.compile(r"^\s*#{1,6}\s")
LONE_MARK = re.compile(r"[(\[*]+\w+[)\]*]+\.?")  # "Use it. (LOW)"


def count_confidence_marks(text: str) -> dict[ConfidenceLevel, int]:
    """Return how often a draft marks a claim HIGH, MEDIUM and LOW: `(HIGH)`, `**LOW**`, `Confidence: medium`."""
    counts = dict.fromkeys(LOWEST_FIRST, 0)
    column = None  # of a table, with the confidence of its rows
    for line in drop_code(text):
        is_table = TABLE_LINE.match(line) is not None
        cells = line.strip().strip("|").split("|") if is_table else [line]
        if is_table and column is not None:
            cell = cells[column] if column < len(cells) else ""
            marks = [_lowest_level(cell)] if any(level.search(cell) for level in LOWEST_FIRST.values()) else []
        else:
            marks = [level for cell in cells for level in _read_marks(cell)]
        headers = [n for n, cell in enumerate(cells) if is_table and CONFIDENCE_COLUMN.search(cell)]
        column = (headers[0] if headers else column) if is_table else None
        for level in marks:
            counts[level] += 1
    return counts


def _read_marks(line: str) -> list[ConfidenceLevel]:
    line = LEGEND.sub(" ", line)
    stated = [_lowest_level(found["stated"] or found["before"]) for found in STATED_MARK.finditer(line)]
    rest = STATED_MARK.sub(" ", line)
    short = [found for found in SHORT_MARK.finditer(rest) if not _is_of_other_scale(found)]
    words = [next(filter(None, found.groups())) for found in short]
    return [*stated, *(_lowest_level(word) for word in words if word.isupper())]


def _is_of_other_scale(mark: re.Match[str]) -> bool:
    """Return whether a mark is about something else: `Risk: **HIGH**`."""
    start = max(0, mark.start() - MAX_SCALE_CHARS)
    return OTHER_SCALE_BEFORE.search(mark.string, start, mark.start()) is not None


def _lowest_level(words: str) -> ConfidenceLevel:
    return next(level for level, pattern in LOWEST_FIRST.items() if pattern.search(words))


def is_mostly_low(text: str) -> bool:
    """Return whether a draft marks its own conclusion or most of its claims LOW."""
    counts = count_confidence_marks(text)
    is_most = counts["LOW"] * 2 > sum(counts.values())
    return is_most or any(set(_read_marks(passage)) == {"LOW"} for passage in _find_conclusions(text))


def _find_conclusions(text: str) -> Iterator[str]:
    """Return the first sentence of a draft, of the part under a heading such as "Recommendation", and lines that
    begin like it.
    """
    is_expected = True
    has_text = False
    for line in filter(str.strip, drop_code(text)):
        is_conclusion = CONCLUSION.match(line) is not None
        if HEADING.match(line):
            is_expected = is_conclusion or not has_text
            if is_conclusion:
                yield line
        elif is_expected or is_conclusion:
            first, *rest = split_sentences(line) or [line]
            yield f"{first} {rest[0]}" if rest and LONE_MARK.fullmatch(rest[0]) else first
            is_expected, has_text = False, True
        else:
            has_text = True
