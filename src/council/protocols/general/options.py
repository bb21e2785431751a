"""Options of the general protocol."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from council.errors import option
from council.protocols.options import PRESET_HELP, Options, choices_of


class GeneralOptions(Options):
    search: str | None = Field(
        default=None, description="Search provider: tavily, brave, searxng, or files:FOLDER for local documents."
    )
    no_search: bool = Field(default=False, description="Run without research; the report says so.")
    spec_review: bool = Field(default=False, description="Review a specification and propose changes to it.")
    no_deliberate: bool = Field(default=False, description="Skip the second round, in which seats answer disputes.")
    preset: str | None = Field(default=None, description=PRESET_HELP, json_schema_extra=choices_of("rosters"))

    @model_validator(mode="after")
    def _check_search(self) -> Self:
        if self.search and self.no_search:
            raise ValueError(
                f"{option('search')} and {option('no_search', True)} cannot be combined: drop one of the two"
            )
        return self
