"""The clerk: a helper seat with a light member that compares what other seats wrote and takes no position."""

from __future__ import annotations

from collections.abc import Sequence

from council.errors import ConfigError
from council.protocols.seats import PanelContext
from council.settings import SEAT_FLAG, SeatSetting
from council.settings.member_lookup import available_members, fast_members, require_available, resolve_member
from council.types import Seat

CLERK = "clerk"
NO_FALLBACKS = ("human:", "local:", "scripted:")  # members that answer for no other one


def find_clerk(helpers: Sequence[Seat]) -> Seat | None:
    return next((seat for seat in helpers if seat.name == CLERK), None)


def build_clerk(members: Sequence[str], context: PanelContext) -> Seat | None:
    """Return the clerk with the first of these members, and the others as its fallbacks. None if there is no member.

    The model and the fallbacks of [seats.clerk] or `--seat` override them.
    """
    own = _find_setting(context)
    usable = [member for member in members if not is_human(member)]
    if own.model:
        member = require_available(own.model, context.settings, context.env)
    elif usable:
        member = usable[0]
    else:
        return None
    others = own.fallback
    if others is None:
        others = tuple(one for one in usable if not one.startswith(NO_FALLBACKS))
    fallbacks = dict.fromkeys(resolve_member(one, context.settings, context.env) for one in others)
    return Seat(
        CLERK,
        "Clerk",
        member=member,
        vendor=context.vendor(member),
        fallbacks=tuple(one for one in fallbacks if one != member),
    )


def _find_setting(context: PanelContext) -> SeatSetting:
    """Return the setting of [seats.clerk] or `--seat`; with `-m` only that of `--seat` applies."""
    settings = context.settings
    if settings.named_members and not settings.is_set_by_flag(f"seats.{CLERK}.model", SEAT_FLAG):
        return SeatSetting()
    return settings.seats.get(CLERK) or SeatSetting()


def list_light_members(context: PanelContext) -> list[str]:
    """Return the members for the clerk of a council of several vendors: those of `-m`, else the fast ones."""
    settings = context.settings
    if settings.named_members:
        return [resolve_member(name, settings, context.env) for name in settings.named_members]
    try:
        found = fast_members(settings, context.env)
    except ConfigError:  # no fast model is known for the members that there are
        found = available_members(settings, context.env)
    return [candidate.member for candidate in found]


def is_human(member: str) -> bool:
    return member.startswith("human:")
