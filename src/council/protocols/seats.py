"""Seats of a council before members are assigned: the panel, built from options and settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from council.errors import ConfigError
from council.protocols import CHAIR
from council.settings import SeatSetting, Settings
from council.settings.member_lookup import ADDED_SEATS, resolve_member, vendor_of
from council.types import Json, Question, Seat


@dataclass(frozen=True, slots=True)
class Panel:
    """Seats before assignment. `members` are settings of single seats, `default_member` is that of all others."""

    seats: tuple[Seat, ...]
    chair: Seat | None = CHAIR
    members: Mapping[str, SeatSetting] = field(default_factory=dict)
    default_member: str | None = None
    chair_setting: SeatSetting = field(default_factory=SeatSetting)  # overrides [chair]
    helpers: tuple[Seat, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()  # shown in the report
    hints: tuple[str, ...] = ()  # shown to the user who starts the run, once a day
    agents: int | None = None
    options: Json = field(default_factory=dict)  # options filled in from settings
    refusal: str = ""  # why the run cannot start; the plan can still be shown


def resize_seats(seats: Sequence[Seat], settings: Settings, added: Callable[[str], Seat] = Seat) -> tuple[Seat, ...]:
    """Return as many seats as `--seats` says or `-m` names, if at least two: these, then independent voices."""
    count = settings.seat_count or len(settings.named_members)
    if count < 2:
        return tuple(seats)
    return (*seats[:count], *map(added, ADDED_SEATS[: max(0, count - len(seats))]))


@dataclass(frozen=True, slots=True)
class PanelContext:
    """Inputs of a panel besides its options."""

    settings: Settings
    env: Mapping[str, str]
    folder: Path
    strict: bool = False
    question: Question | None = None
    # Cost of the same work; None if it is unknown.
    equal_work_price: Callable[[str], float | None] = lambda member: None

    def resolve_or_none(self, member: str) -> str | None:
        """Return the full name of the member, or None if it is not available or its vendor is excluded."""
        try:
            found = resolve_member(member, self.settings, self.env)
        except ConfigError:
            return None
        return found if self.may_use(found) else None

    def may_use(self, member: str) -> bool:
        return self.vendor(member) not in self.settings.excluded_vendors

    def price(self, member: str) -> float:
        """Return the cost of equal work of a member; infinite if its price is unknown."""
        found = self.equal_work_price(member)
        return float("inf") if found is None else found

    def vendor(self, member: str) -> str:
        return vendor_of(member, self.settings)
