"""Panel of the solo protocol: one seat with the strong model."""

from __future__ import annotations

from council.protocols.options import NoOptions
from council.protocols.seats import Panel, PanelContext
from council.settings.member_lookup import tier_member
from council.types import Seat

SOLO_SEAT = Seat("alpha")


def solo_panel(task: str, chosen: NoOptions, context: PanelContext) -> Panel:
    """Return the panel. `-m`, `--seat alpha=…` and [seats.alpha] replace the strong model."""
    tier = "default" if context.settings.cheap else "strong"
    return Panel((SOLO_SEAT,), chair=None, default_member=tier_member(tier, context.settings, context.env))
