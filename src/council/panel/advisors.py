"""Panel of the advisors protocol: the default or a chosen roster, the tier, and the referee."""

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
    "several rounds between advisors on one model: agreement means less; "
    "use a roster whose seats name models of different families"
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
    """Return the setting of the referee: `--seat chair=…` overrides --tier, which overrides [chair]."""
    by_hand = where.settings.origins.get("chair.model") == "flag --seat"
    if chosen.tier is None or by_hand:
        return SeatSetting() if by_hand else named.chair
    return SeatSetting(tier_member("default" if chosen.tier == "light" else "strong", where.settings, where.env))


def _no_stronger(chosen: AdvisorsOptions, where: Where) -> tuple[str, ...]:
    """Return a warning if the chosen tier changes nothing."""
    default, strong = (tier_member(tier, where.settings, where.env) for tier in ("default", "strong"))
    if chosen.tier in (None, "light") or default != strong:
        return ()
    return (
        f"--tier {chosen.tier} has no effect, no stronger model than {strong} is set: set [models] strong in council.toml",
    )


def _several(named: Named, where: Where) -> bool:
    """Return whether the advisors are set to more than one model."""
    settings = {seat.name: where.settings.seats.get(seat.name) or named.members[seat.name] for seat in named.seats}
    return len({one.model for one in settings.values()}) > 1
