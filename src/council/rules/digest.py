"""What a council without a chair still ends with: the statements themselves, told apart from an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from council.types import Seat, Statement

EXCERPT = 120  # words of each position


def digest(cause: str, positions: Mapping[str, Statement[Any]], tally: Sequence[tuple[str, str]]) -> str:
    """`positions` is each seat's latest statement, `tally` what seats declared where the protocol asked them to (seat, stance)."""
    lines = [f"## {cause}: digest of statements", "", "No one has weighed these statements against each other.", ""]
    for statement in positions.values():
        lines += [
            f"### {_title(statement.seat)}",
            "",
            _excerpt(statement.said),
            "",
        ]
    if tally:
        lines += ["### Tally", "", *(f"- {seat.capitalize()}: {stance}" for seat, stance in tally), ""]
        lines += _dissent(tally)
    return "\n".join(lines).rstrip()


def _title(seat: Seat) -> str:
    """By its name, and by its role where that says more."""
    same = seat.role.lower() == seat.name.lower().replace("_", " ").replace("-", " ")
    return seat.role if same else f"{seat.label} ({seat.role})" if seat.role else seat.label


def _excerpt(text: str) -> str:
    words = text.split(" ")
    return text if len(words) <= EXCERPT else " ".join(words[:EXCERPT]) + " …"


def _dissent(tally: Sequence[tuple[str, str]]) -> list[str]:
    """Those who hold what fewer hold than the most held stance; a tie has no majority and so no dissent."""
    counts: dict[str, int] = {}
    for _, stance in tally:
        counts[stance] = counts.get(stance, 0) + 1
    most = max(counts.values())
    if list(counts.values()).count(most) > 1 or len(counts) == 1:
        return []
    return ["### Dissent", "", *(f"- {seat.capitalize()}: {stance}" for seat, stance in tally if counts[stance] < most)]
