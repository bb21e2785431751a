"""Panel of the ranking protocol: the default three seats or a roster."""

from __future__ import annotations

from council.panel import Panel, Where
from council.panel.rosters import roster
from council.protocols.options import RankingOptions
from council.rules.seating import TABLE
from council.settings import SeatSetting
from council.types import Json, Seat

USUAL = tuple(Seat(name) for name in TABLE)
TWO = "with two seats each reads only one answer, so nothing can be ranked: use at least 3 seats"
MOST = 60  # seats; each reads the answers of all others


def ranking_panel(task: str, options: Json, where: Where) -> Panel:
    """Return the panel. Seats without a member in the roster use those of alpha, beta and gamma in turn."""
    chosen = RankingOptions.model_validate(options)
    if not chosen.roster:
        return Panel(USUAL)
    named = roster(chosen.roster, where, 2, MOST)
    by_hand = where.settings.origins.get("chair.model") == "flag --seat"
    few = (TWO,) if len(named.seats) == 2 else ()
    presiding = SeatSetting() if by_hand else named.chair
    return Panel(named.seats, members=named.members, presiding=presiding, warnings=few)
