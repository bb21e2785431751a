"""Seats served by a fallback member, and the failure of the requested one."""

from __future__ import annotations

from dataclasses import dataclass

from council.events import Attempted
from council.minutes import Minutes, StatementMinutes

FALLBACK_PREFIX = "fallback: "  # start of `Attempted.why` for an attempt on another member


@dataclass(frozen=True, slots=True)
class Fallback:
    seat: str
    phase: str
    requested: str
    state: str  # failure state of the requested member; empty if it was not recorded
    served_by: str

    @property
    def reason(self) -> str:
        failed = f"which {self.state}" if self.state.startswith("failed") else f"which was {self.state or 'absent'}"
        return f"requested {self.requested}, {failed}: {self.served_by} answered instead"


def list_fallbacks(minutes: Minutes) -> list[Fallback]:
    """Return each fallback once per seat and member, with the first phase in which it happened, in seating order."""
    names = [seat.name for seat in [*minutes.planned_seats, *([minutes.chair] if minutes.chair else [])]]
    found: dict[tuple[str, str], Fallback] = {}
    for said in minutes.statements:
        requested = _requested_member(minutes, said)
        asked_here = said.seat in names and not minutes.is_from_fork(said)
        if asked_here and requested and said.served_by not in ("", requested):
            one = Fallback(said.seat, said.phase, requested, _failure_state(minutes, said, requested), said.served_by)
            found.setdefault((said.seat, said.served_by), one)
    return sorted(found.values(), key=lambda one: names.index(one.seat))


def _requested_member(minutes: Minutes, said: StatementMinutes) -> str:
    asked = minutes.prompts.get(said.key)
    return minutes.seat(said.seat).model or (asked.member if asked else "")


def _failure_state(minutes: Minutes, said: StatementMinutes, requested: str) -> str:
    begin = f"{FALLBACK_PREFIX}{requested} "
    reasons = [one.why for one in minutes.troubles if isinstance(one, Attempted) and one.key == said.key]
    return next((why.removeprefix(begin) for why in reasons if why.startswith(begin)), "")
