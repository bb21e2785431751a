"""Who advises: the usual three or a roster of the user's own, on the tier that was asked for, and the referee."""

from __future__ import annotations

from council.panel import Panel, Where
from council.panel.rosters import Named, roster
from council.protocols.options import AdvisorsOptions
from council.rules.seating import tier_member
from council.settings import SeatSetting
from council.types import Json, Seat

REFEREE = Seat("referee", "Referee")
USUAL = "advisors"
COPIES = (
    "several rounds between advisors of one model: copies that talk each other round prove little; "
    "a roster whose seats name members of other families is worth more"
)


def advisors_panel(task: str, options: Json, where: Where) -> Panel:
    chosen = AdvisorsOptions.model_validate(options)
    named = roster(USUAL if chosen.roster is None else chosen.roster, where)
    return Panel(
        seats=named.seats,
        chair=REFEREE,
        members=named.members,
        everyone=_everyone(chosen, where),
        presiding=_presiding(chosen, named, where),
        warnings=(*_no_stronger(chosen, where), *(() if chosen.rounds == 1 or _several(named, where) else (COPIES,))),
        options={"tier": chosen.tier or "light"},
    )


def _everyone(chosen: AdvisorsOptions, where: Where) -> str:
    return tier_member("strong" if chosen.tier == "heavy" else "default", where.settings, where.env)


def _presiding(chosen: AdvisorsOptions, named: Named, where: Where) -> SeatSetting:
    """A tier that was asked for decides over [chair]; `--seat chair=…` decides over a tier."""
    by_hand = where.settings.origins.get("chair.model") == "flag --seat"
    if chosen.tier is None or by_hand:
        return SeatSetting() if by_hand else named.chair
    return SeatSetting(tier_member("default" if chosen.tier == "light" else "strong", where.settings, where.env))


def _no_stronger(chosen: AdvisorsOptions, where: Where) -> tuple[str, ...]:
    """A tier that changes nothing is told, not left to be believed in."""
    default, strong = (tier_member(tier, where.settings, where.env) for tier in ("default", "strong"))
    if chosen.tier in (None, "light") or default != strong:
        return ()
    return (f"--tier {chosen.tier} finds nobody stronger than {strong}: name one as [models] strong in council.toml",)


def _several(named: Named, where: Where) -> bool:
    """Whether somebody saw to it that the advisors are not all of one model."""
    said = {seat.name: where.settings.seats.get(seat.name) or named.members[seat.name] for seat in named.seats}
    return len({one.model for one in said.values()}) > 1
