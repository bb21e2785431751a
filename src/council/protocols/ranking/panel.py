"""Panel of the ranking protocol: the default three seats or a roster."""

from __future__ import annotations

from council.protocols.common.rosters import load_roster
from council.protocols.panel import Panel, PanelContext
from council.protocols.ranking.options import RankingOptions
from council.settings import SEAT_FLAG, SeatSetting
from council.settings.member_lookup import DEFAULT_SEATS
from council.types import Seat

RANKING_SEATS = tuple(Seat(name) for name in DEFAULT_SEATS)
TWO_SEATS_WARNING = "with two seats each reads only one answer, so nothing can be ranked: use at least 3 seats"
MAX_SEATS = 60  # seats; each reads the answers of all others


def ranking_panel(task: str, chosen: RankingOptions, context: PanelContext) -> Panel:
    """Return the panel. Seats without a member in the roster use those of alpha, beta and gamma in turn."""
    if not chosen.roster:
        return Panel(RANKING_SEATS)
    named = load_roster(chosen.roster, context, 2, MAX_SEATS)
    by_hand = context.settings.is_set_by_flag("chair.model", SEAT_FLAG)
    few = (TWO_SEATS_WARNING,) if len(named.seats) == 2 else ()
    presiding = SeatSetting() if by_hand else named.chair
    return Panel(named.seats, members=named.members, chair_setting=presiding, warnings=few)
