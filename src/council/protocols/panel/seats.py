"""Seats of the panel protocol: three without a role, or as many as `-m` or `--seats` says, and the clerk."""

from __future__ import annotations

from council.protocols import PLAIN_SEATS
from council.protocols.common.clerk import build_clerk, list_light_members
from council.protocols.options import NoOptions
from council.protocols.seats import Panel, PanelContext, resize_seats


def build_panel(task: str, chosen: NoOptions, context: PanelContext) -> Panel:
    clerk = build_clerk(list_light_members(context), context)
    return Panel(resize_seats(PLAIN_SEATS, context.settings), chair=None, helpers=(clerk,) if clerk else ())
