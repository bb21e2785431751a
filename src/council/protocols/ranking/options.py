"""Options of the ranking protocol."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from council.protocols.options import ROSTER_HELP, CaseInsensitive, Options, choices_of


class RankingOptions(Options):
    roster: str | None = Field(default=None, description=ROSTER_HELP, json_schema_extra=choices_of("rosters"))
    weights: Annotated[Literal["equal", "track-record"], CaseInsensitive] = Field(
        default="equal", description="Weight of each ballot: equal, or by the reader's labelled outcomes (from 30 on)."
    )
    # By member. The plan fills it in from the store, so that a resumed run has the same weights.
    record_weights: dict[str, float] = Field(default={}, repr=False, json_schema_extra={"internal": True})
