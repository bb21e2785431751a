"""Cases of a history: commits to review, with the later fixes of the bugs that they introduced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FixedLine:
    """A line of the reviewed commit that a fix changed or removed later."""

    path: str  # at the reviewed commit
    line: int  # at the reviewed commit
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A later commit that repaired what the reviewed commit introduced."""

    commit: str
    subject: str
    date: str  # ISO 8601, day
    lines: tuple[FixedLine, ...]


@dataclass(frozen=True, slots=True)
class HistoryCase:
    """A commit that is reviewed as if it were new."""

    id: str  # first 10 characters of the commit
    commit: str
    parent: str
    subject: str
    date: str  # ISO 8601, day
    changed_lines: int  # added plus removed lines of source code
    fixes: tuple[Fix, ...] = ()  # later fixes of bugs that it introduced; empty: a control

    @property
    def is_control(self) -> bool:
        return not self.fixes


@dataclass(frozen=True, slots=True)
class Mined:
    """The cases of a repository, with the counts of what was looked at and left out."""

    cases: tuple[HistoryCase, ...]  # bugs and controls, mixed in a seeded order
    commits: int = 0  # commits whose messages were read
    fixes: int = 0  # commits that fix a bug by message and size
    traced: int = 0  # of those, traced to the commits that introduced the bug
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason: commits
    remarks: tuple[str, ...] = ()  # what a reader of the result should know, such as a shallow clone
