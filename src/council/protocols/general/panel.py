"""Panel of the general protocol: seats, search provider, and why the run cannot start."""

from __future__ import annotations

from council.errors import SearchNotEnabled
from council.protocols.common.rosters import load_roster
from council.protocols.general.options import GeneralOptions
from council.protocols.seats import Panel, PanelContext, resize_seats
from council.search import not_enabled_message, resolve_search
from council.types import Seat

DEFAULT_ROSTER = "generals"


def general_panel(task: str, said: GeneralOptions, context: PanelContext) -> Panel:
    named = load_roster(said.preset or DEFAULT_ROSTER, context, min_seats=2, max_seats=9)
    seats = named.seats
    if not said.preset:
        seats = resize_seats(seats, context.settings, lambda name: Seat(name, name.capitalize()))
    search, refusal = _choose_search(said, context)
    off = said.no_deliberate or not context.settings.general.get("deliberate", True)
    return Panel(
        seats=seats,
        members=named.members,
        chair_setting=named.chair,
        options={"search": search, "no_deliberate": off},
        refusal=refusal,
    )


def _choose_search(options: GeneralOptions, context: PanelContext) -> tuple[str | None, str]:
    """Return the search provider and, if the run cannot start, the reason."""
    if options.no_search:
        return None, ""
    try:
        provider = resolve_search(options.search, context.settings, context.env, context.folder)
    except SearchNotEnabled as error:
        return options.search, error.template
    return provider, "" if provider else not_enabled_message()
