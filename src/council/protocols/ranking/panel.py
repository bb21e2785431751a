"""Panel of the ranking protocol: three seats, as many as `-m` names, or a roster."""

from __future__ import annotations

from council.protocols import PLAIN_SEATS
from council.protocols.common.rosters import load_roster
from council.protocols.ranking.options import RankingOptions
from council.protocols.seats import Panel, PanelContext, resize_seats
from council.settings import SEAT_FLAG, SeatSetting

TWO_SEATS_WARNING = "with two seats each reads only one answer, so nothing can be ranked: use at least 3 seats"
MAX_SEATS = 60  # seats; each reads the answers of all others


def ranking_panel(task: str, chosen: RankingOptions, context: PanelContext) -> Panel:
    """Return the panel. Seats without a member in the roster use those of alpha, beta and gamma in turn."""
    named = load_roster(chosen.roster, context, 2, MAX_SEATS) if chosen.roster else None
    seats = named.seats if named else resize_seats(PLAIN_SEATS, context.settings)
    warnings = (TWO_SEATS_WARNING,) if len(seats) == 2 else ()
    if named is None:
        return Panel(seats, warnings=warnings)
    by_hand = context.settings.is_set_by_flag("chair.model", SEAT_FLAG)
    presiding = SeatSetting() if by_hand else named.chair
    return Panel(seats, members=named.members, chair_setting=presiding, warnings=warnings)
