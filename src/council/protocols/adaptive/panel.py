"""Panel of the adaptive protocol: three seats or as many as `-m` names, and a cheap clerk."""

from __future__ import annotations

from council.protocols.adaptive import SEATS
from council.protocols.adaptive.options import AdaptiveOptions
from council.protocols.common.clerk import build_clerk, list_light_members
from council.protocols.seats import Panel, PanelContext, resize_seats
from council.types import Seat


def adaptive_panel(task: str, chosen: AdaptiveOptions, context: PanelContext) -> Panel:
    clerk = choose_clerk(context)
    return Panel(resize_seats(SEATS, context.settings), helpers=(clerk,) if clerk else ())


def choose_clerk(context: PanelContext) -> Seat | None:
    """Return the clerk with the cheapest light member.

    Of the members of `-m`, only equally cheap ones are its fallbacks: the protocol must not cost more than
    collaborative.
    """
    members = context.sort_by_price(list_light_members(context))
    if context.settings.named_members and members:
        members = [one for one in members if context.price(one) <= context.price(members[0])]
    return build_clerk(members, context)
