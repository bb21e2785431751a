"""Digest of statements, for a run that ended without an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from council.types import Seat, Statement

EXCERPT_WORDS = 120  # words of each position


def build_digest(cause: str, positions: Mapping[str, Statement[Any]], tally: Sequence[tuple[str, str]]) -> str:
    """Build the digest from each seat's latest statement and, if the protocol asks for them, the declared stances."""
    lines = [f"## {cause}: digest of statements", "", "These statements have not been weighed against each other.", ""]
    for statement in positions.values():
        lines += [
            f"### {_format_title(statement.seat)}",
            "",
            _make_excerpt(statement.said),
            "",
        ]
    if tally:
        lines += ["### Tally", "", *(f"- {seat.capitalize()}: {stance}" for seat, stance in tally), ""]
        lines += _format_dissent(tally)
    return "\n".join(lines).rstrip()


def _format_title(seat: Seat) -> str:
    """Return the seat's label, with its role unless both are the same."""
    same = seat.role.lower() == seat.name.lower().replace("_", " ").replace("-", " ")
    return seat.role if same else f"{seat.label} ({seat.role})" if seat.role else seat.label


def _make_excerpt(text: str) -> str:
    words = text.split(" ")
    return text if len(words) <= EXCERPT_WORDS else " ".join(words[:EXCERPT_WORDS]) + " …"


def _format_dissent(tally: Sequence[tuple[str, str]]) -> list[str]:
    """List the seats outside the majority; a tie has no majority and so no dissent."""
    counts: dict[str, int] = {}
    for _, stance in tally:
        counts[stance] = counts.get(stance, 0) + 1
    most = max(counts.values())
    if list(counts.values()).count(most) > 1 or len(counts) == 1:
        return []
    return ["### Dissent", "", *(f"- {seat.capitalize()}: {stance}" for seat, stance in tally if counts[stance] < most)]
