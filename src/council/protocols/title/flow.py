"""Title protocol: one seat with a fast model answers a small request in the form it asks for."""

from __future__ import annotations

from council.engine.council import Council
from council.protocols.options import NoOptions
from council.protocols.seats import Panel, PanelContext
from council.settings.member_lookup import tier_member
from council.types import Seat, Verdict

WRITER = Seat("writer", "Writer")


def title_panel(task: str, options: NoOptions, context: PanelContext) -> Panel:
    return Panel((WRITER,), None, default_member=tier_member("fast", context.settings, context.env))


async def title(council: Council) -> Verdict:
    """Ask one seat once."""
    async with council.phase("answer"):
        said = await council.ask(council.members[0], "title/answer")
    return Verdict(said.text)
