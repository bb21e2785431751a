"""Options of the advisors protocol."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from council.errors import option, wording
from council.protocols.options import EARLY_STOP_HELP, ROSTER_HELP, CaseInsensitive, Options, choices_of, lowercase

Flow = Annotated[Literal["parallel", "sequential", "debate"], CaseInsensitive]
Tier = Annotated[Literal["light", "medium", "heavy"], CaseInsensitive]


class AdvisorsOptions(Options):
    flow: Flow = Field(
        default="parallel", description="Order of the advisors: all at once, one after another, or a debate."
    )
    rounds: int = Field(
        default=1, ge=1, le=5, description="Rounds of deliberation, 1 to 5 (default 1; debate 3, at least 2)."
    )
    tier: Tier | None = Field(
        default=None,
        description="Models: default for all seats (light), strong referee (medium), strong for all seats (heavy).",
    )
    roster: str | None = Field(default=None, description=ROSTER_HELP, json_schema_extra=choices_of("rosters"))
    early_stop: bool = Field(default=False, description=EARLY_STOP_HELP)

    @model_validator(mode="before")
    @classmethod
    def _default_rounds(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("rounds") is None:
            return {**values, "rounds": 3 if lowercase(values.get("flow")) == "debate" else 1}
        return values

    @model_validator(mode="after")
    def _check_debate_rounds(self) -> Self:
        if self.flow == "debate" and self.rounds < 2:
            rounds = wording(python="rounds to a number from 2 to 5", cli="--rounds 2 to 5")
            raise ValueError(f"{option('flow', 'debate')} needs at least 2 rounds: set {rounds}")
        return self

    @model_validator(mode="after")
    def _check_early_stop(self) -> Self:
        if self.early_stop and self.rounds < 2:
            rounds = wording(
                python="rounds to a number from 2 to 5 (judges: debate=True)",
                cli="--rounds 2 to 5 (judges: --debate)",
                http="rounds to a number from 2 to 5 (judges: debate)",
            )
            raise ValueError(f"{option('early_stop', True)} needs at least 2 rounds: set {rounds}, or drop it")
        return self
