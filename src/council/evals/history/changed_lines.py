"""Changed lines of a diff: which belong together, which were only moved or reformatted, and which words changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from council.packet.definitions import split_words
from council.unified_diff import DiffLine, FileDiff

MIN_SIMILARITY = 0.5  # of two lines of which one replaces the other
MIN_CONTAINED = 3  # tokens of a line that a longer line contains
MIN_CONTAINED_RATIO = 0.2
MIN_MOVED_CHARS = 8  # a shorter line is found again by chance
MIN_JOINED = 0.8  # of the tokens of a line that several lines together must have
MAX_JOINED = 12
MAX_PARTNERS = 400  # lines that a line is compared with
MAX_TOKENS = 200  # of a line
PLAIN_TOKENS = split_words(
    "var let const final auto _ f u r b self this return await async new public private static if else elif for while in "
    "not and or is def fn func function class end then do unless None null nil true false True False"
)
TOKEN = re.compile(r"\w+|[^\w\s]")
COMMENT = re.compile(r"\s*(?:#(?![a-z])|//|/\*|\*[\s/]|--\s)")
FORMATTING = re.compile(r"[\s,;()'\"`\\]+")


class Block(NamedTuple):
    """Removed and added lines at one place, with no unchanged line between them."""

    removed: tuple[DiffLine, ...]
    added: tuple[DiffLine, ...]

    @property
    def is_reformatted(self) -> bool:
        """Return whether the added lines say the same as the removed ones."""
        return bool(self.removed and self.added) and _join(self.removed) == _join(self.added)


def list_blocks(file: FileDiff) -> Iterator[Block]:
    for hunk in file.hunks:
        removed, added = list[DiffLine](), list[DiffLine]()
        for line in hunk.list_lines():
            if line.sign == " " or (line.sign == "-" and added):
                if removed or added:
                    yield Block(tuple(removed), tuple(added))
                removed, added = [], []
            if line.sign == "-":
                removed.append(line)
            elif line.sign == "+":
                added.append(line)
        if removed or added:
            yield Block(tuple(removed), tuple(added))


def read_old_lines(file: FileDiff) -> dict[int, str]:
    """Return the lines of the old file that a diff shows, by their numbers."""
    found = dict[int, str]()
    for hunk in file.hunks:
        rows = [line for line in hunk.list_lines() if line.sign != "+"]
        found |= {number: line.text for number, line in enumerate(rows, hunk.old)}
    return found


def squeeze(text: str) -> str:
    """Return a line without what a formatter changes."""
    return FORMATTING.sub("", text)


def find_moved(lines: Iterable[DiffLine], others: Iterable[DiffLine]) -> set[str]:
    """Return the squeezed texts of lines that the others contain too."""
    texts = {squeeze(line.text) for line in others}
    return {text for line in lines if len(text := squeeze(line.text)) >= MIN_MOVED_CHARS and text in texts}


def split_tokens(text: str) -> list[str]:
    return TOKEN.findall(text)[:MAX_TOKENS]


def find_partner(text: str, others: Sequence[DiffLine], least: float = MIN_SIMILARITY) -> DiffLine | None:
    """Return the most similar of the other lines, or None if all differ too much."""
    tokens = split_tokens(text)
    best, best_ratio = None, least
    for other in others[:MAX_PARTNERS]:
        other_tokens = split_tokens(other.text)
        matcher = SequenceMatcher(None, tokens, other_tokens, autojunk=False)
        if matcher.quick_ratio() < min(best_ratio, MIN_CONTAINED_RATIO):
            continue
        ratio = matcher.ratio()
        shorter = min(len(tokens), len(other_tokens))
        is_contained = shorter >= MIN_CONTAINED and ratio * (len(tokens) + len(other_tokens)) / 2 >= shorter - 1e-9
        if is_contained and least <= MIN_SIMILARITY:  # the longer line has all tokens of the shorter one
            ratio = max(ratio, MIN_SIMILARITY)
        if ratio >= best_ratio:
            best, best_ratio = other, ratio + 1e-9
    return best


class ChangedTokens(NamedTuple):
    """Positions of the tokens of a line that differ from another version of it."""

    positions: frozenset[int]
    is_insertion: bool = False  # only the other version has tokens of its own; the positions are those beside them
    is_whole: bool = False  # there is no other version


def find_changed_tokens(text: str, others: Sequence[DiffLine]) -> ChangedTokens:
    """Return the tokens of a line that differ from its other version: the most similar line, or all lines together."""
    partner = find_partner(text, others)
    found = None if partner is None else _compare(text, partner.text)
    if 1 < len(others) <= MAX_JOINED:  # a line can be split, or lines can be joined
        joined = _compare(text, "\n".join(line.text for line in others))
        is_similar = len(joined.positions) <= (1 - MIN_JOINED) * len(split_tokens(text)) or joined.is_insertion
        if is_similar and (found is None or _count(joined) < _count(found)):
            found = joined
    return found or ChangedTokens(frozenset(range(len(split_tokens(text)))), is_whole=True)


def _count(changed: ChangedTokens) -> int:
    return 0 if changed.is_insertion else len(changed.positions)


def _compare(text: str, other: str) -> ChangedTokens:
    tokens, others = split_tokens(text), split_tokens(other)
    found, beside = set[int](), set[int]()
    for tag, start, end, _, _ in SequenceMatcher(None, tokens, others, autojunk=False).get_opcodes():
        if tag == "insert":
            beside |= {at for at in (start - 1, start) if 0 <= at < len(tokens)}
        elif tag != "equal":
            found |= set(range(start, end))
    return ChangedTokens(frozenset(found)) if found else ChangedTokens(frozenset(beside), is_insertion=True)


def keep_words(positions: Iterable[int], text: str) -> frozenset[int]:
    """Return the positions of words with a meaning. Signs and words such as `const` say little."""
    tokens = split_tokens(text)
    return frozenset(at for at in positions if re.match(r"\w", tokens[at]) and tokens[at] not in PLAIN_TOKENS)


def map_tokens(positions: frozenset[int], text: str, other: str) -> frozenset[int]:
    """Return the positions of tokens in another version of a line; empty if the other version lacks most of them."""
    tokens, others = split_tokens(text), split_tokens(other)
    if tokens == others:
        return positions
    found = set[int]()
    for start, at, size in SequenceMatcher(None, tokens, others, autojunk=False).get_matching_blocks():
        found |= {at + n - start for n in positions if start <= n < start + size}
    return frozenset(found) if 2 * len(found) > len(positions) else frozenset()


def _join(lines: Iterable[DiffLine]) -> str:
    return squeeze("".join(line.text for line in lines if not COMMENT.match(line.text)))
