"""Options of the ranking protocol."""

from __future__ import annotations

from pydantic import Field

from council.protocols.options import ROSTER_HELP, Options, choices_of


class RankingOptions(Options):
    roster: str | None = Field(default=None, description=ROSTER_HELP, json_schema_extra=choices_of("rosters"))
