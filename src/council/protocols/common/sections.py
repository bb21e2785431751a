"""Sections of an answer that code composes.

They are stored with the verdict, so that no reader has to find their headings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from council.engine.records import SectionRow, VerdictObject


class Section(NamedTuple):
    """A part of an answer: its name in the report, its heading, and its text."""

    name: str
    title: str
    text: str

    def format(self) -> str:
        return f"## {self.title}\n\n{self.text}"


def dump_sections(sections: Sequence[Section]) -> list[SectionRow]:
    return [{"name": name, "title": title, "text": text} for name, title, text in sections]


def load_sections(verdict: VerdictObject) -> list[Section] | None:
    """Return the sections of a verdict that are still in its answer; None for a verdict of an earlier version."""
    stored = (verdict.get("details") or {}).get("sections")
    if stored is None:
        return None
    answer = str(verdict.get("answer") or "")
    return [section for section in (Section(**row) for row in stored) if section.text in answer]
