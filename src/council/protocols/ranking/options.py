"""Options of the ranking protocol."""

from __future__ import annotations

from pydantic import Field

from council.protocols.options import ROSTER_HELP, Options


class RankingOptions(Options):
    roster: str | None = Field(default=None, description=ROSTER_HELP)
