"""Unified diffs: their files, their hunks, and the numbers of their lines.

A diff without headers, or with rows that follow no rule, is kept as it is: its section has no hunks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

_HUNK = re.compile(
    r"@@ -(?P<old>\d{1,9})(?:,(?P<olds>\d{1,9}))? \+(?P<new>\d{1,9})(?:,(?P<news>\d{1,9}))? @@(?P<where>.*)"
)
_GIT_NAMES = re.compile(r'diff --git (?:"?a/(?P<same>.+?)"? "?b/(?P=same)"?|.* "?b/(?P<new>.+?)"?)')
_NO_NEWLINE = "\\"  # first sign of the row that says so
SIGNS = ("+", "-", " ", _NO_NEWLINE)
MAIL_SIGNATURE = "-- "  # ends a patch in a mail


class DiffLine(NamedTuple):
    """A row of a hunk. `number` is that of the new file, or of the old one for a removed line."""

    sign: str  # "+", "-" or " "
    number: int
    following: int  # the number of the next line of the new file; the same as `number` unless the line is removed
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """Changes at one place of a file. `rows` are as in the diff, each with its sign."""

    old: int
    new: int
    rows: tuple[str, ...]
    where: str = ""  # what follows the numbers of its header: the enclosing definition

    @property
    def header(self) -> str:
        olds, news = _count_rows(self.rows)
        return f"@@ -{self.old},{olds} +{self.new},{news} @@{self.where}"

    def list_lines(self) -> list[DiffLine]:
        """Return the lines with their numbers, without the signs and the carriage returns of the rows."""
        old, new, lines = self.old, self.new, list[DiffLine]()
        for row in self.rows:
            sign, text = row[:1] or " ", row[1:].removesuffix("\r")
            if sign == _NO_NEWLINE:
                continue
            lines.append(DiffLine(sign, old if sign == "-" else new, new, text))
            old += sign != "+"
            new += sign != "-"
        return lines

    def split(self, counts: Iterable[int]) -> Iterator[Hunk]:
        """Yield hunks with these numbers of rows."""
        old, new, start = self.old, self.new, 0
        for count in counts:
            part = self.rows[start : start + count]
            start += count
            yield replace(self, old=old, new=new, rows=part)
            olds, news = _count_rows(part)
            old, new = old + olds, new + news


def _count_rows(rows: Sequence[str]) -> tuple[int, int]:
    """Return how many rows are lines of the old file, and how many are lines of the new one."""
    signs = [row[:1] for row in rows]
    return sum(sign in "- " for sign in signs), sum(sign in "+ " for sign in signs)


@dataclass(frozen=True, slots=True)
class FileDiff:
    """Section of a diff: the rows before its first hunk, and its hunks."""

    path: str
    head: tuple[str, ...]
    hunks: tuple[Hunk, ...] = ()

    @property
    def text(self) -> str:
        rows = [*self.head, *(row for hunk in self.hunks for row in (hunk.header, *hunk.rows))]
        return "".join(f"{row}\n" for row in rows)

    @property
    def is_listed(self) -> bool:
        """Return whether the section only lists a new file, whose content is a file of the packet."""
        return not self.hunks and any(row.startswith("new file mode") for row in self.head)


@dataclass(slots=True)
class _Section:
    head: list[str] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)  # of the open hunk
    start: re.Match[str] | None = None
    olds: int = 0  # rows that the open hunk still has
    news: int = 0

    @property
    def is_open(self) -> bool:
        return self.start is not None and (self.olds > 0 or self.news > 0)

    def open_hunk(self, start: re.Match[str]) -> None:
        self.close_hunk()
        self.start = start
        self.olds, self.news = (int(start[name] or 1) for name in ("olds", "news"))

    def close_hunk(self) -> None:
        if self.start:
            old, new = (int(self.start[name]) for name in ("old", "new"))
            self.hunks.append(Hunk(old, new, tuple(self.rows), self.start["where"]))
        self.start, self.rows = None, []

    def add_row(self, row: str) -> None:
        if self.start is None:
            self.head.append(row)
            return
        self.rows.append(row)
        self.olds -= row[:1] in "- "
        self.news -= row[:1] in "+ "

    def finish(self) -> FileDiff:
        self.close_hunk()
        return FileDiff(_find_path(self.head), tuple(self.head), tuple(self.hunks))


@lru_cache(maxsize=16)  # every seat is shown the same diff, and its findings are looked up in it
def parse_diff(diff: str) -> tuple[FileDiff, ...]:
    """Return the sections of a diff, one per file.

    Together their texts are the diff, but for the counts in the headers.
    """
    rows = diff.split("\n")
    if rows[-1] == "":
        rows.pop()
    sections = [section := _Section()]
    for n, row in enumerate(rows):
        hunk = _HUNK.match(row)
        if hunk:  # also before the counted rows are complete: a row of a hunk starts with a sign
            section.open_hunk(hunk)
            continue
        if row.startswith("diff --git ") or _begins_file(section, rows, n):
            sections.append(section := _Section())
        elif section.start and not section.is_open and (row[:1] not in SIGNS or row == MAIL_SIGNATURE):
            section.close_hunk()
        section.add_row(row)
    found = (section.finish() for section in sections)
    return tuple(file for file in found if file.head or file.hunks)


def _begins_file(section: _Section, rows: Sequence[str], at: int) -> bool:
    """Return whether a section begins here without a line of git: `--- old`, then `+++ new`."""
    if section.is_open or not rows[at].startswith("--- ") or at + 1 >= len(rows) or not rows[at + 1].startswith("+++ "):
        return False
    return bool(section.start or section.hunks) or not any(row.startswith("diff --git ") for row in section.head)


def _find_path(head: Sequence[str]) -> str:
    """Return the path of the new file, or of the old one if the file is deleted; empty without a name."""
    for start in ("+++ ", "--- ", "rename to "):
        for row in head:
            name = row[len(start) :].partition("\t")[0].strip().strip('"') if row.startswith(start) else ""
            if name and name != "/dev/null":
                return name.removeprefix("b/" if start == "+++ " else "a/") if start != "rename to " else name
    named = next((found for row in head if (found := _GIT_NAMES.fullmatch(row))), None)
    return (named["same"] or named["new"] or "") if named else ""
