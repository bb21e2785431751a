"""Reads the flags that a draft raises against itself and leaves open. Compiling its patterns takes a while, so it is
imported when it is needed.

A severity counts where it is a mark ("**Critical:** …", "[CRITICAL]", "Severity: critical", a table cell, a heading
over a list) and not where it is the everyday adjective. Denials, legends, settled and hypothetical problems do not
count. If the sense is unclear, it counts: a needless test is cheap, a missed error is not.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from council.protocols.common import flag_words as w
from council.protocols.common.draft_blocks import (
    LEVEL,
    LEVEL_LABEL,
    NAMED_FIELD,
    SEVERE,
    Block,
    split_blocks,
    split_sentences,
)
from council.protocols.common.flag_words import Severity
from council.protocols.common.flag_words import compile_words as _compile
from council.text_cleanup import single_line

MAX_FLAG_CHARS = 160
MAX_FLAGS = 20


class Problem(NamedTuple):
    """A problem of the highest severity that a draft raises against itself and leaves open."""

    severity: Severity
    text: str


def read_problems(text: str) -> list[Problem]:
    """Return the problems of the highest severity that a draft raises against itself and leaves open."""
    severe = SEVERE if _is_french(text) else SEVERE_WITHOUT_FRENCH
    return list(itertools.islice(_FlagReader(severe).read_blocks(split_blocks(text)), MAX_FLAGS))


def _is_french(text: str) -> bool:
    """Return whether "critique" may be the French adjective; in English it is a noun ("## Self-Critique")."""
    return len(FRENCH.findall(text)) >= len(ENGLISH.findall(text))


FRENCH = _compile(r"\b(?:le|la|les|des|du|une?|est|sont|pas|dans|sur|aucune?|pour|et|ne|que|de)\b|\b[nldc]['’]")
ENGLISH = _compile(r"\b(?:the|of|and|is|are|to|in|that|i|this|for|with|not|no|none|a|it)\b")
SEVERE_WITHOUT_FRENCH = _compile(rf"(?<![\w.])(?!critiques?\b){w.SEVERE}(?!\w)")


# Sections and tables


@dataclass(slots=True)
class _FlagReader:
    """Reads the blocks of a draft. A label without a problem, such as a heading, covers the list below it."""

    severe: re.Pattern[str]
    section: Severity | None = None
    section_level: int = 0
    has_items: bool = False

    def read_blocks(self, blocks: Sequence[Block]) -> Iterator[Problem]:
        for n, block in enumerate(blocks):
            label = self._find_bare_label(block.text)
            above = blocks[n - 1].text if n else ""
            if label is None:
                yield from self._read_block(block)
            elif label.is_field and NAMED_FIELD.match(above):  # "Issue: …" above "Severity: critical"
                status = blocks[n + 1].text if n + 1 < len(blocks) else ""
                if label.severity and not RESOLVED_STATUS.match(status):
                    yield Problem(label.severity, shorten(NAMED_FIELD.sub("", above)))
            else:
                self.section = label.severity
                self.section_level = block.level or MAX_LEVEL
                self.has_items = False
        if self.section and not self.has_items:  # a label below its problem, or a text that was cut off
            yield Problem(self.section, shorten(blocks[-2].text if len(blocks) > 1 else ""))

    def _read_block(self, block: Block) -> Iterator[Problem]:
        if block.kind == "table":
            yield from self._read_table(block.rows)
        elif self.section and self._is_in_section(block):
            if not block.text.rstrip().endswith(":"):
                self.has_items = True
                yield from _read_item(self.section, block.text)
        else:
            self.section = None
            yield from self._read_sentences(block.text)

    def _is_in_section(self, block: Block) -> bool:
        if LEVEL_LABEL.match(block.text):
            return False
        if block.kind == "heading":
            return block.level > self.section_level
        return block.kind == "item" or not self.has_items

    def _find_bare_label(self, text: str) -> _Label | None:
        """Return the label of a text that is nothing else: `CRITICAL`, `Critical issues:`, `[Critical] (2)`,
        `Critical (none)`.
        """
        match = self.severe.search(text) if len(text) <= MAX_LABEL_CHARS else None
        if match is None or is_part_of_word(text, match) or text.rstrip().endswith((".", "?", "!")):
            return None
        rest = f"{text[: match.start()]} {text[match.end() :]}"
        notes = " ".join(re.findall(r"\(([^)]*)\)", rest))
        if OTHER_THAN_LABEL.search(re.sub(r"\([^)]*\)", " ", rest)) or MINOR.search(rest):
            return None
        is_written_as_label = (
            match.group()[0].isupper() or PROBLEM.search(rest) or FIELD_BEFORE.search(text[: match.start()])
        )
        if not is_written_as_label:
            return None
        is_denied = EMPTY_LABEL.match(rest) or (notes and (is_denial(notes) or RESOLVED_NOTE.match(notes)))
        is_field = FIELD_BEFORE.search(text[: match.start()]) is not None
        return _Label(None if is_denied else name_severity(match.group()), is_field)

    def _read_table(self, rows: Sequence[tuple[str, ...]]) -> Iterator[Problem]:
        header, *body = rows
        if any(LEGEND_COLUMN.search(cell) for cell in header):
            return
        if self.section:
            self.has_items = True
            for row in body:
                yield from _read_item(self.section, max(row, key=len))
            return
        ordinary = {n for n, cell in enumerate(header) if ORDINARY_COLUMN.search(cell)}
        labels = {n: label.severity for n, cell in enumerate(header) if (label := self._find_bare_label(cell))}
        for row in body if labels else rows:
            if labels:  # the header has the levels, and the problems are below them
                columns = [(row[n], severity) for n, severity in labels.items() if severity and n < len(row)]
                for cell, severity in columns:
                    yield from _read_item(severity, cell)
            else:
                yield from self._read_row(tuple(cell for n, cell in enumerate(row) if n not in ordinary))

    def _read_row(self, row: tuple[str, ...]) -> Iterator[Problem]:
        labels = {n: label.severity for n, cell in enumerate(row) if (label := self._find_bare_label(cell))}
        if not labels:
            for cell in row:
                yield from self._read_sentences(cell)
            return
        others = [cell for n, cell in enumerate(row) if n not in labels and re.search(r"\w", cell)]
        severity = next(iter(labels.values()))
        if severity and others and not is_denial(others[0]) and not any(is_resolved(cell) for cell in others):
            yield Problem(severity, shorten(next((cell for cell in others if len(cell) > MAX_ID_CHARS), others[0])))

    def _read_sentences(self, text: str) -> Iterator[Problem]:
        sentences = split_sentences(collapse_level_lists(text))
        for n, sentence in enumerate(sentences):
            later = sentences[n + 1 : n + 1 + MAX_LATER]
            own = itertools.takewhile(lambda one: not LEVEL_LABEL.match(one), later)  # those before the next level
            if match := self._find_open_mark(sentence, " ".join(own)):
                earlier = sentences[n - 1] if n else ""
                yield Problem(name_severity(match.group()), _describe(match, earlier, next(iter(later), "")))

    def _find_open_mark(self, sentence: str, later: str) -> re.Match[str] | None:
        """Return the first word of a sentence that marks an open problem.

        Of a long sentence, only the words beside it are read.
        """
        for found in itertools.islice(self.severe.finditer(sentence), MAX_WORDS_READ):
            start = max(0, found.start() - MAX_BESIDE_CHARS)
            beside = sentence[start : found.end() + MAX_BESIDE_CHARS]
            match = self.severe.search(beside, found.start() - start)
            if match and is_mark(match) and not is_excused(match, later):
                return match
        return None


@dataclass(frozen=True, slots=True)
class _Label:
    severity: Severity | None  # None if the label itself says that there is nothing: `CRITICAL (0)`
    is_field: bool = False  # `Severity: critical`


MAX_LABEL_CHARS = 200
MAX_LEVEL = 7  # below every heading
MAX_ID_CHARS = 4  # a cell with a number or an id does not describe a problem
MINOR = _compile(rf"\b{w.MINOR}\b")
IMPORTANT = _compile(rf"\b{w.IMPORTANT}\b")
LEVELS = _compile(rf"\b{LEVEL}\b")
PROBLEM = _compile(rf"\b{w.PROBLEM}\b")
LEGEND_COLUMN = _compile(rf"\b{w.LEGEND_COLUMN}\b")
ORDINARY_COLUMN = _compile(rf"\b{w.ORDINARY_COLUMN}\b")
LABEL_PART = rf"(?<!\w){w.LABEL}(?!\w)|#?\d+"
OTHER_THAN_LABEL = _compile(rf"(?!{LABEL_PART})(?<!\w)\w")
EMPTY_LABEL = re.compile(r"^[^:=]*[:=]\s*(?:0|[^\w\s:\])]+)\s*$")  # "CRITICAL: —"
FIELD_BEFORE = _compile(rf"\b{w.FIELD}(?:\s+{w.COPULA})?[\"'”»]?\s*[:=–—-]?\s*[\"'“«\[({{]*\s*$")


def _read_item(severity: Severity, text: str) -> Iterator[Problem]:
    """Return the flag of an item below a label, unless it says that there is nothing."""
    if not is_denial(text) and not is_resolved(text):
        yield Problem(severity, shorten(text))


def name_severity(word: str) -> Severity:
    """Return the level of a word: FATAL if it says so, else CRITICAL."""
    return "FATAL" if word.lower().startswith("fatal") else "CRITICAL"


def shorten(text: str) -> str:
    """Return a problem in one line, without marks at its ends."""
    return single_line(text.strip(" \t:;,.–—-|*_`>→=()[]\"'"), MAX_FLAG_CHARS)


# Sentences

JOINED_LEVELS = _compile(
    rf"(?<![\w-]){LEVEL}(?:\s*[\"'”»\])*]*(?:[,/|>&+]|,?\s(?:and|or|nor|und|oder|noch|et|ou|ni|y|o|u|vs\.?)\s)+\s*[\"'“«\[(*]*{LEVEL}(?!\w))+"
)
LOWERED_LEVEL = _compile(rf"(?<![\w-]){w.SEVERE}\s*(?:{w.TO})\s*(?:{w.IMPORTANT}|{w.MINOR})(?!\w)")
LABEL_START = _compile(rf"^[^:–—]{{0,40}}?(?::|–|—|\s-\s)(?:\s*{w.OPEN}\s*:)?")
COUNTS = _compile(rf"^\d+\W+{LEVEL}\b")  # "1, IMPORTANT: 2": the problem is not named
MAX_BESIDE_CHARS = 300  # of a sentence, before and after the severity
MAX_WORDS_READ = 20  # words of severity in one sentence
MAX_LATER = 3  # sentences after a flag that may settle it
MAX_LABEL_WORDS = 6


def collapse_level_lists(text: str) -> str:
    """Replace `CRITICAL or FATAL` by one word, and a legend of the levels by none."""

    def replace(found: re.Match[str]) -> str:
        severe = SEVERE.search(found[0])
        if severe is None:
            return found[0]
        return "…" if MINOR.search(found[0]) else severe[0]

    return JOINED_LEVELS.sub(replace, LOWERED_LEVEL.sub("…", text))


def _describe(match: re.Match[str], earlier: str, later: str) -> str:
    """Return the problem: the words after a label, else the sentence without its mark, else the sentence beside it."""
    before, after = _split_at(match)
    is_label = LABEL_AFTER.match(after) and len(before.split()) <= MAX_LABEL_WORDS
    if is_label or FIELD_BEFORE.search(before) or not OTHER_THAN_LABEL.search(before):
        words = shorten(LABEL_START.sub("", after, count=1))
        return "" if COUNTS.match(words) else words or shorten(later) or shorten(earlier)
    if AT_END.match(after):
        return shorten(OPENED.sub("", before))
    opened = OPENED.search(before)
    return shorten(f"{before[: opened.start()].rstrip()}{CLOSING.sub('', after, count=1)}" if opened else match.string)


def _split_at(match: re.Match[str]) -> tuple[str, str]:
    """Return the words of a sentence before and after a match."""
    return match.string[: match.start()], match.string[match.end() :]


# Is the word a mark, or the everyday adjective?

LABEL_AFTER = _compile(rf"^(?:\s+{LABEL_PART}|\s*\([^)]*\)|[\])])*\s*(?::|–|—|-\s|→|=>|\]\s)")
AT_END = _compile(r"^\W*$")
DASH_BEFORE = _compile(r"(?:[–—→:]|\s-)\s*$")
COUNT_BEFORE = re.compile(r"(?<![\d.,])[1-9]\d?\s+$")
OPENED = _compile(r"[(\[{]\s*([^()\[\]{}]*)$")
CLOSING = re.compile(r"^[^)\]}]*[)\]}]")
CLOSED = _compile(rf"^\s*(?:[)\]}}]|[,;:–—][^()\[\]{{}}]*[)\]}}]|{w.PROBLEM}\b[^()\[\]{{}}]*[)\]}}])")
ORDINARY_AFTER = _compile(rf"^[\s-]+{w.ORDINARY}\b(?!\s*:)")
LABEL_ONLY = _compile(w.LABEL_ONLY)
LOG = _compile(r"\blog(?:s|ger|ging|ged)?\b")
LEVEL_BEFORE = _compile(r"\b(?:level|stufe|niveau|nivel)\b[^.:]{0,12}$")
NOUN = _compile(r"critiques?|cr[ií]ticas?")
ARTICLE_BEFORE = _compile(rf"(?<!\w){w.ARTICLE}\s+$")
RATE = _compile(rf"\b{w.RATE}\b(?:\W+\w+){{0,6}}?\W+$")
PURPOSE_AFTER = _compile(rf"^\s+{w.PURPOSE}\b")
PROBLEM_AFTER = _compile(rf"^[-\s]+(?:\w+\s+)?{w.PROBLEM}\b")
PROBLEM_BEFORE = _compile(rf"\b{w.PROBLEM}\s+$")
BLOCKER = _compile(w.BLOCKER)
EXISTS = _compile(
    rf"\b{w.OPEN}\b|\b{w.I_SEE}\b|\b(?:has|have)\s+(?:an?|one|two|three|\d)\b|\b(?:my|this)\s+(?:answer|draft|plan|proposal|design|argument)\b"
)
IS_A = _compile(rf"\b{w.COPULA}\s+(?:an?|the|one|ein\w*|une?|una)\s+(?:\w+\s+)?$")
PROBLEM_IS = _compile(rf"\b(?:{w.PROBLEM}|{w.LACK}|{w.ORDINAL})\b.*\b{w.COPULA}\s*$")
PART_AFTER = re.compile(r"[-‑_]([^\W\d]\w*)")


def is_part_of_word(text: str, match: re.Match[str]) -> bool:
    """Return whether the word is part of another: mission-critical, logging.CRITICAL, CRITICAL_SECTION."""
    if text[: match.start()].endswith(("-", "‑", "_")) and not text[: match.start()].endswith((" -", "--")):
        return True
    part = PART_AFTER.match(text, match.end())
    return part is not None and not PROBLEM.fullmatch(part[1])


def is_mark(match: re.Match[str]) -> bool:
    """Return whether a word of severity in a sentence marks a problem."""
    sentence, word, before, after = match.string, match.group(), *_split_at(match)
    if is_part_of_word(sentence, match):
        return False
    if LEVEL_BEFORE.search(before) and LOG.search(sentence):
        return False
    if NOUN.fullmatch(word) and not word.isupper() and ARTICLE_BEFORE.search(before):
        return False
    if AT_END.match(before) and AT_END.match(after):
        return True
    if _is_bracketed(before, after) or _is_label(before, after) or FIELD_BEFORE.search(before):
        return True
    if (DASH_BEFORE.search(before) or COUNT_BEFORE.search(before)) and AT_END.match(after):
        return True
    if ORDINARY_AFTER.match(after) or (LABEL_ONLY.fullmatch(word) and not word.isupper()):
        return False
    if word.isupper() and not LEVELS.sub("", sentence).isupper():  # in a line of capitals it may be the adjective
        return True
    if RATE.search(before) and not PURPOSE_AFTER.match(after):
        return True
    return _is_stated(word, before, after)


def _is_bracketed(before: str, after: str) -> bool:
    """Return whether the word stands in brackets, alone or with a problem: `[critical]`, `(a critical gap)`."""
    opened = OPENED.search(before)
    return opened is not None and not OTHER_THAN_LABEL.search(opened[1]) and CLOSED.match(after) is not None


def _is_label(before: str, after: str) -> bool:
    """Return whether the sentence begins with the word as a label before a colon or a dash."""
    return not OTHER_THAN_LABEL.search(before) and LABEL_AFTER.match(after) is not None


def _is_stated(word: str, before: str, after: str) -> bool:
    """Return whether a sentence in plain words says that there is such a problem."""
    if PROBLEM_AFTER.match(after) or PROBLEM_BEFORE.search(before) or BLOCKER.fullmatch(word):
        return bool(EXISTS.search(before) or EXISTS.search(after) or IS_A.search(before))
    return bool(PROBLEM_IS.search(before)) and not PURPOSE_AFTER.match(after)


# Is the problem denied, explained, settled or only thought of?


ADVICE_AFTER = _compile(rf"^[\])]*\s*[:–—]\s*{w.ADVICE}\b")


def is_excused(match: re.Match[str], later: str) -> bool:
    """Return whether a mark is denied, settled, hypothetical, advice or part of a legend.

    `later` are the sentences that belong to it.
    """
    before, after = _split_at(match)
    return (
        ADVICE_AFTER.match(after) is not None
        or _is_denied_before(before, after)
        or _is_denied_after(after, later)
        or _is_legend(match.string, after)
        or _is_past(before, after)
        or is_resolved(match.string, later)
        or _is_hypothetical(before, after)
    )


CLAUSE_START = _compile(rf"^.*(?:[:;()\[\]–—]|\s-\s|\s{w.CONNECTIVE}\s)")
NOBODY = _compile(rf"(?<!\w){w.NOBODY}(?!\w)")
EXCEPTION = _compile(rf"\b{w.EXCEPTION}\b")
NOT = _compile(rf"(?:(?<!\w){w.NOT}|n['’]t)(?!\w)")
UNSETTLED = _compile(rf"\b{w.UNSETTLED}\b")
DOING_IS = _compile(rf"^\s+\w+ing\b.*\b{w.COPULA}\s*$")
NO = _compile(rf"(?<!\w){w.NO}(?!\w)")
DENIABLE = _compile(rf"\b{w.DENIABLE}\b")
MODIFIERS = _compile(rf"^(?:\s+{w.MODIFIER})*\s*$")
MAX_NEGATED_WORDS = 8  # between a negation and the severity
ZERO_BEFORE = _compile(r"(?:^|[^\d.,])0\s+(?:\w+\s+)?$")


def _is_denied_before(before: str, after: str) -> bool:
    """Return whether the words before the severity deny it: `None of these is`, `no open`, `would not call this`."""
    if re.search(r"[(\[{]\s*$", before):  # "No backup (CRITICAL)"
        return False
    if ZERO_BEFORE.search(before):
        return True
    clause = CLAUSE_START.sub("", before)
    subject = NOBODY.search(clause)
    if subject and not EXCEPTION.search(clause, subject.end()):
        return True
    clause = clause.rpartition(",")[2]
    return any(_negates(clause[found.end() :]) for found in NOT.finditer(clause)) or any(
        _denies(clause[found.end() :], after) for found in NO.finditer(clause)
    )


def _negates(between: str) -> bool:
    """Return whether a negation reaches the severity: not in `could not resolve the CRITICAL flag` or `not testing
    this is CRITICAL`.
    """
    return len(between.split()) <= MAX_NEGATED_WORDS and not UNSETTLED.search(between) and not DOING_IS.match(between)


def _denies(between: str, after: str) -> bool:
    """Return whether "no" is about problems: `no claim is CRITICAL`, but not `no backup is CRITICAL`."""
    if len(between.split()) > MAX_NEGATED_WORDS:
        return False
    if MODIFIERS.match(between) or DENIABLE.search(between):
        return True
    return len(between.split()) <= 2 and PROBLEM_AFTER.match(after) is not None


CONTENT_AFTER = _compile(rf"^[\])]*(?:\s+{LABEL_PART})*\s*(?:[:=–—(→]+|-\s|\s(?=\d))\s*(.*)$")
ANSWERED_NO = _compile(r"^[\])]*\s*\?\s*(?:no|none|nein|non)\b")
NO_START = _compile(r"^(?:no|none|nein|non)\b")
NOT_FOUND_AFTER = _compile(rf"^(?:\s+{LABEL_PART})*\s+{w.NOT_FOUND}\b")
FOUND_NONE = _compile(rf"\b{w.FOUND_NONE}\b")
SEARCH_FOUND_NONE = _compile(rf"^(?:\W*\w+){{0,3}}\W*{w.FOUND_NONE}\W*$")  # "searched, none found"
ZERO = _compile(r"^\W*0(?![\w.,]*\d|[\w%]|\s*(?:of|/|von|sur|de)\s*\d)")
NO_PROBLEM = _compile(rf"^\W*(?:{w.I_SEE}\s+)?{w.NO}\s+(?:[\w'’-]+\s+){{0,3}}?(?:{w.PROBLEM}|ones)\b|^\W*{w.NO_SUCH}\b")
NOTHING = _compile(rf"^\W*(?:{w.I_SEE}\s+)?(?:{w.NOTHING}|n/?a|no|nope|nein|non)(?!\w)\s*(?:$|[.,;:()\[\]–—!/|]|-\s)")
NOTHING_ALONE = _compile(rf"^\s+(?:{w.NOTHING}|n/a)\W*$")
NOTHING_FOUND = _compile(rf"^\W*(?:{w.I_SEE}\s+)?{w.NOTHING}\s+{w.AFTER_NOTHING}\b")


def is_denial(text: str) -> bool:
    """Return whether the words after a label say that there is nothing: `None found.`, but not `None of the figures
    is checked.`
    """
    patterns = (ZERO, NO_PROBLEM, NOTHING, NOTHING_FOUND)
    return not re.search(r"\w", text) or any(pattern.match(text) for pattern in patterns)


def _is_denied_after(after: str, later: str) -> bool:
    """Return whether the words after the severity deny it: `issues: none`, `(0)`, `?

    No.`, `problems were not found`.
    """
    if ANSWERED_NO.match(after) or (after.rstrip().endswith("?") and NO_START.match(later)):
        return True
    if NOTHING_ALONE.match(after):
        return True
    if content := CONTENT_AFTER.match(after):
        said = content[1] if re.search(r"\w", content[1]) else later
        return bool(said and (is_denial(said) or RESOLVED_CONTENT.match(said) or SEARCH_FOUND_NONE.match(said)))
    return bool(NOT_FOUND_AFTER.match(after) or FOUND_NONE.search(after) or FOUND_NONE.match(later))


MEANS_AFTER = _compile(rf"^\W*(?:=|{w.MEANS}\b)")
LEGEND_START = _compile(rf"^\W*(?:{w.LEGEND}|{w.USE})\b")
EXPLAINED_AFTER = _compile(r"^\s*\((?!\s*\d)")


def _is_legend(sentence: str, after: str) -> bool:
    has_all_levels = MINOR.search(sentence) and IMPORTANT.search(sentence)
    explains = MEANS_AFTER.match(after) or LEGEND_START.match(sentence)
    return bool(explains or (has_all_levels and EXPLAINED_AFTER.match(after)))


FORMERLY_BEFORE = _compile(rf"\b{w.FORMERLY}\s+(?:(?:an?|rated|flagged|marked|as|als|comme|como)\s+)*\[?$")
NO_LONGER = _compile(rf"(?<!\w){w.NO_LONGER}\b")
LOWERED_BEFORE = _compile(rf"\b{w.LOWERED}\b.*\b{w.FROM}\s+\W*$")
OPEN = _compile(rf"\b{w.OPEN}\b")


def _is_past(before: str, after: str) -> bool:
    """Return whether the problem had this severity once."""
    if OPEN.search(after):
        return False
    return bool(LOWERED_BEFORE.search(before) or FORMERLY_BEFORE.search(before) or NO_LONGER.search(after))


RESOLVED_NOTE = _compile(rf"^\W*(?:(?:{w.NOW}|status:?)\s+)*(?:{w.RESOLVED}|{w.FIXED})\b")
RESOLVED_STATUS = _compile(
    rf"^\W*(?:status|stand|statut|état|estado)\s*:\s*(?:{w.NOW}\s+)*(?:{w.RESOLVED}|{w.FIXED})\b"
)
RESOLVED_CONTENT = _compile(
    rf"^\W*(?:(?:all|both|{w.NOW})\s+)*(?:{w.RESOLVED}\b|{w.FIXED}\s*(?:$|[.,;)–—]|\s{w.WHERE}\b))"
)
RESOLVED = _compile(
    rf"(?:^|(?<!\w))(?:{w.HAS_BEEN}\s+(?:\w+\s+)?(?:{w.RESOLVED}|{w.FIXED})|{w.IS_NOW}\s+(?:\w+\s+)?{w.RESOLVED}|{w.NOW}\s+(?:{w.RESOLVED}|{w.FIXED})"
    rf"|(?:{w.RESOLVED}|{w.FIXED})\s+{w.WHERE}|{w.RESOLVES}\s+(?:{w.THIS}|the\s+\w+)|i\s+(?:have\s+)?(?:{w.RESOLVED}|{w.FIXED})\s+{w.THIS}"
    rf"|{w.THIS}\s+{w.IS_NOW}\s+(?:\w+\s+)?{w.FIXED})\b"
    rf"|[(\[,–—→]\s*(?:{w.NOW}\s+)?(?:{w.RESOLVED}|fixed|closed|corrected)\b"
)
NOT_YET = _compile(rf"(?:(?<!\w){w.NOT_YET}|n['’]t)\W+(?:\w+\W+){{0,3}}?$")
LAST_WORD = re.compile(r"\w+$")


def is_resolved(sentence: str, later: str = "") -> bool:
    """Return whether the problem is said to be solved, in its own sentence or in those that belong to it."""
    for text in (sentence, later):
        for found in RESOLVED.finditer(text):
            last = LAST_WORD.search(found[0])
            start = found.start() + (last.start() if last else 0)
            if not NOT_YET.search(text[:start]):
                return True
    return RESOLVED_NOTE.match(later) is not None


INDEFINITE_BEFORE = _compile(rf"(?<!\w){w.INDEFINITE}\s+$")
WOULD_AFTER = _compile(rf"^(?:\s+\w+){{0,4}}\s+{w.WOULD}\b")
SUPPOSED_BEFORE = _compile(
    rf"\b{w.WOULD}\b[^:;()–—]{{0,40}}$|\b{w.COULD}\s+(?:\w+\s+){{0,2}}{w.BECOME}\s+\[?$|\b{w.ANY}\s+\[?$"
    rf"|^\W*{w.SUPPOSE}\b[^:;()\[\]–—]*$|\b{w.SUPPOSE}\s+(?:an?|any|some|ein\w*)\s+\[?$"
)
COULD_BEFORE = _compile(rf"\b{w.COULD}\b[^:;()–—]{{0,20}}$")
IF_AFTER = _compile(rf"^[\])]?,?\s+(?:{w.ONLY}\s+)?{w.IF}\b(?!\s+{w.NOT_DONE}\b)")
IF = _compile(rf"\b{w.IF}\b")


def _is_hypothetical(before: str, after: str) -> bool:
    if SUPPOSED_BEFORE.search(before) or IF_AFTER.match(after):
        return True
    if INDEFINITE_BEFORE.search(before) and WOULD_AFTER.match(after):
        return True
    return COULD_BEFORE.search(before) is not None and IF.search(after) is not None
