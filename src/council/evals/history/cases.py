"""Cases of a history: commits to review, with the later fixes of the bugs that they introduced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


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


Reason = Literal["size", "no_source", "merge", "too_old", "long_ago", "no_lines", "scattered", "reviewable", "other_named", "unclear_revert", "git_failed"]  # fmt: skip
REASONS: Mapping[Reason, str] = {  # why a fix led to no case
    "size": "the fix changes too many files or lines of source code",
    "no_source": "the fix changes no source code: only tests, documents, comments, imports or generated files",
    "no_lines": "no line leads to an earlier commit: new code, or code that was only moved or reformatted",
    "merge": "the bug came with a merge",
    "too_old": "the bug came with the first commit that the repository has",
    "long_ago": "the lines are years older than the fix, so what it repairs is often newer than they are",
    "scattered": "the lines come from several commits",
    "reviewable": "the commit that introduced the bug is too large or too small to review",
    "other_named": "the message names another commit than the lines lead to",
    "unclear_revert": "the revert does not say what it reverts",
    "git_failed": "git failed or took too long",
}
SHALLOW_NOTE = "the repository is a shallow clone, so older commits are unknown: run git fetch --unshallow to find more"


@dataclass(frozen=True, slots=True)
class Mined:
    """The cases of a repository, with the counts of what was looked at and left out."""

    cases: tuple[HistoryCase, ...]  # bugs and controls, mixed in a seeded order
    commits: int = 0  # commits whose messages were read
    fixes: int = 0  # of those, commits that say that they fix a bug
    traced: int = 0  # of those, fixes of the cases
    left_out: Mapping[Reason, int] = field(default_factory=dict)  # the other fixes
    is_shallow: bool = False  # see SHALLOW_NOTE
