"""Panel of the advisors protocol: the default or a chosen roster, the tier, and the referee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle

from council.errors import UsageError, option
from council.protocols.advisors.options import AdvisorsOptions
from council.protocols.common.rosters import NamedRoster, load_roster
from council.protocols.seats import Panel, PanelContext
from council.settings import SEAT_FLAG, SeatSetting
from council.settings.member_lookup import spread_members, tier_member
from council.types import Seat

REFEREE = Seat("referee", "Referee")
DEFAULT_ROSTER = "advisors"
SAME_MODEL_WARNING = (
    "several rounds between advisors on one model: agreement means less; "
    "use a roster whose seats name models of different families"
)


def advisors_panel(task: str, chosen: AdvisorsOptions, context: PanelContext) -> Panel:
    by = "models" if context.settings.named_members else "cheap" if context.settings.cheap else ""
    if chosen.tier and by:
        raise UsageError(f"{option('tier', chosen.tier)} and {option(by)} both choose the models: drop one of the two")
    named = load_roster(DEFAULT_ROSTER if chosen.roster is None else chosen.roster, context)
    tier = "strong" if chosen.tier == "heavy" else "default"
    default = tier_member(tier, context.settings, context.env)
    turns = cycle(spread_members(default, tier, context.settings, context.env))
    # The member of the roster, else one of each vendor in turn.
    members = {name: own if own.model else replace(own, model=next(turns)) for name, own in named.members.items()}
    return Panel(
        seats=named.seats,
        chair=REFEREE,
        members=members,
        default_member=default,
        chair_setting=_chair_setting(chosen, named, context),
        warnings=_warn_same_tier(chosen, context),
        hints=() if chosen.rounds == 1 or _has_several_models(members, context) else (SAME_MODEL_WARNING,),
        options={"tier": chosen.tier or "light"},
    )


def _chair_setting(options: AdvisorsOptions, roster: NamedRoster, context: PanelContext) -> SeatSetting:
    """Return the setting of the referee: `--seat chair=…` overrides --tier, which overrides [chair]."""
    if context.settings.is_set_by_flag("chair.model", SEAT_FLAG):
        return SeatSetting()
    if options.tier is None:
        return roster.chair
    return SeatSetting(tier_member("default" if options.tier == "light" else "strong", context.settings, context.env))


def _warn_same_tier(options: AdvisorsOptions, context: PanelContext) -> tuple[str, ...]:
    """Return a warning if the chosen tier changes nothing."""
    default, strong = (tier_member(tier, context.settings, context.env) for tier in ("default", "strong"))
    if options.tier in (None, "light") or default != strong:
        return ()
    return (
        f"--tier {options.tier} has no effect, no stronger model than {strong} is set: set [models] strong in council.toml",
    )


def _has_several_models(members: Mapping[str, SeatSetting], context: PanelContext) -> bool:
    """Return whether the advisors are set to more than one model."""
    if context.settings.named_members:
        return len(set(context.settings.named_members)) > 1
    settings = [context.settings.seats.get(name) or setting for name, setting in members.items()]
    return len({setting.model for setting in settings}) > 1
