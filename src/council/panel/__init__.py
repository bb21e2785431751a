"""Who sits: from options and settings to named seats, the members they want, and the helpers they may send out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from council.errors import ConfigError
from council.protocols import CHAIR
from council.rules.seating import resolve, vendor_of
from council.settings import SeatSetting, Settings
from council.types import Json, Seat


@dataclass(frozen=True, slots=True)
class Panel:
    """Seats before they are taken. `members` says what single seats want, `everyone` what all others do."""

    seats: tuple[Seat, ...]
    chair: Seat | None = CHAIR
    members: Mapping[str, SeatSetting] = field(default_factory=dict)
    everyone: str | None = None
    presiding: SeatSetting = field(default_factory=SeatSetting)  # what the chair is to be, whatever [chair] says
    helpers: tuple[Seat, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()  # what a reader of the verdict must know
    agents: int | None = None
    options: Json = field(default_factory=dict)  # what settings made of options nobody gave
    refusal: str = ""  # why this council can be planned and not be held


@dataclass(frozen=True, slots=True)
class Where:
    """What a panel is put together from, besides its options."""

    settings: Settings
    env: Mapping[str, str]
    folder: Path
    strict: bool = False

    def reachable(self, member: str) -> str | None:
        try:
            return resolve(member, self.settings, self.env)
        except ConfigError:
            return None

    def vendor(self, member: str) -> str:
        return vendor_of(member, self.settings)
