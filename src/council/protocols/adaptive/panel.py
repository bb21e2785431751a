"""Panel of the adaptive protocol: three seats or as many as `-m` names, and a cheap clerk."""

from __future__ import annotations

from council.protocols import PLAIN_SEATS
from council.protocols.adaptive.options import AdaptiveOptions
from council.protocols.common.clerk import build_clerk, list_light_members
from council.protocols.seats import Panel, PanelContext, resize_seats


def adaptive_panel(task: str, chosen: AdaptiveOptions, context: PanelContext) -> Panel:
    """Return the panel. The clerk costs as little as it can: the run must not cost more than collaborative."""
    members = sorted(list_light_members(context), key=context.price)
    if context.settings.named_members and members:  # only equally cheap ones are fallbacks
        members = [one for one in members if context.price(one) <= context.price(members[0])]
    clerk = build_clerk(members, context)
    return Panel(resize_seats(PLAIN_SEATS, context.settings), helpers=(clerk,) if clerk else ())
