"""Panel of the general protocol: seats, search provider, and why the run cannot start."""

from __future__ import annotations

from council.errors import SearchNotEnabled
from council.panel import Panel, Where
from council.panel.rosters import roster
from council.protocols.options import GeneralOptions
from council.search import NOT_ENABLED, chosen
from council.types import Json

USUAL = "generals"


def general_panel(task: str, options: Json, where: Where) -> Panel:
    said = GeneralOptions.model_validate(options)
    named = roster(said.preset or USUAL, where, least=2, most=9)
    search, refusal = _search(said, where)
    off = said.no_deliberate or not where.settings.general.get("deliberate", True)
    return Panel(
        seats=named.seats,
        members=named.members,
        presiding=named.chair,
        options={"search": search, "no_deliberate": off},
        refusal=refusal,
    )


def _search(said: GeneralOptions, where: Where) -> tuple[str | None, str]:
    """Return the search provider and, if the run cannot start, the reason."""
    if said.no_search:
        return None, ""
    try:
        provider = chosen(said.search, where.settings, where.env, where.folder)
    except SearchNotEnabled as error:
        return said.search, str(error)
    return provider, "" if provider else NOT_ENABLED
