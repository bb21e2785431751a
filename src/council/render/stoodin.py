"""Seats served by a fallback member, and the failure of the requested one."""

from __future__ import annotations

from dataclasses import dataclass

from council.events import Attempted
from council.minutes import Minutes, Said

FALLBACK = "fallback: "  # start of `Attempted.why` for an attempt on another member


@dataclass(frozen=True, slots=True)
class StoodIn:
    seat: str
    phase: str
    requested: str
    state: str  # failure state of the requested member; empty if it was not recorded
    served_by: str

    @property
    def why(self) -> str:
        failed = f"which {self.state}" if self.state.startswith("failed") else f"which was {self.state or 'absent'}"
        return f"requested {self.requested}, {failed}: {self.served_by} answered instead"


def stood_in(minutes: Minutes) -> list[StoodIn]:
    """Return each fallback once per seat and member, with the first phase in which it happened, in seating order."""
    names = [seat.name for seat in [*minutes.planned, *([minutes.chair] if minutes.chair else [])]]
    found: dict[tuple[str, str], StoodIn] = {}
    for said in minutes.statements:
        requested = _requested(minutes, said)
        asked_here = said.seat in names and not minutes.is_taken_over(said)
        if asked_here and requested and said.served_by not in ("", requested):
            one = StoodIn(said.seat, said.phase, requested, _state(minutes, said, requested), said.served_by)
            found.setdefault((said.seat, said.served_by), one)
    return sorted(found.values(), key=lambda one: names.index(one.seat))


def _requested(minutes: Minutes, said: Said) -> str:
    asked = minutes.prompts.get(said.key)
    return minutes.seat(said.seat).model or (asked.member if asked else "")


def _state(minutes: Minutes, said: Said, requested: str) -> str:
    begin = f"{FALLBACK}{requested} "
    reasons = [one.why for one in minutes.troubles if isinstance(one, Attempted) and one.key == said.key]
    return next((why.removeprefix(begin) for why in reasons if why.startswith(begin)), "")
