"""Caveats of statements that count: the prompt was cut, the answer was truncated, or parameters were dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from council.minutes import Minutes, StatementMinutes
from council.render.labels import unblind
from council.types import STATEMENT_CUT_PREFIX

COVERAGE_HOLE = "coverage_hole"  # state that the CI gate looks for: the judges did not see all of the material


@dataclass(frozen=True, slots=True)
class StatementCaveat:
    seat: str
    phase: str
    state: str  # coverage_hole | cut | truncated | dropped
    reason: str
    line: str  # the sentence above the answer; empty if another line covers it


def list_caveats(minutes: Minutes) -> list[StatementCaveat]:
    """Return each caveat once per seat, with the first phase in which it happened, in seating order."""
    names = [seat.name for seat in [*minutes.planned_seats, *([minutes.chair] if minutes.chair else [])]]
    judging = minutes.plan.get("task") == "validate"
    found: dict[tuple[str, str, str], StatementCaveat] = {}
    for said in minutes.statements:
        labels = minutes.phases[said.phase].labels.get(said.seat, {})
        for one in _statement_caveats(said, judging, labels) if said.seat in names else ():
            found.setdefault((one.seat, one.state, one.reason), one)
    return sorted(found.values(), key=lambda one: names.index(one.seat))


def _statement_caveats(said: StatementMinutes, judging: bool, labels: Mapping[str, str]) -> Iterator[StatementCaveat]:
    unseen = [cut for cut in said.cut if judging and not cut.startswith(STATEMENT_CUT_PREFIX)]
    for cut in unseen:
        yield StatementCaveat(
            said.seat, said.phase, COVERAGE_HOLE, f"{cut}: too long for {said.served_by} as {said.seat}", ""
        )
    if rest := [cut for cut in said.cut if cut not in unseen]:
        reason = unblind(f"cut to fit {said.served_by}: {', '.join(rest)}", labels)
        yield StatementCaveat(said.seat, said.phase, "cut", reason, f"{said.seat} did not see everything: {reason}.")
    if said.state == "truncated":
        reason = "cut off at its length limit, but complete as a reply: it counts with confidence LOW"
        yield StatementCaveat(
            said.seat, said.phase, "truncated", reason, f"{said.seat}'s answer was {reason} (truncated)."
        )
    if said.dropped:
        reason = f"{said.served_by} was asked without {', '.join(said.dropped)}, which it refused"
        yield StatementCaveat(said.seat, said.phase, "dropped", reason, f"{said.seat}: {reason}.")
