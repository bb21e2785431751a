"""What a request may say, with an example of each. Anything else is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from council.doors.web.hall import Hall
from council.types import Json

EXAMPLE_RUN = "r2abcd"


def _with(example: Json) -> ConfigDict:
    return ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [example]})


def _hall(request: Request) -> Hall:
    hall: Hall = request.app.state.hall
    return hall


InHall = Annotated[Hall, Depends(_hall)]


class Token(BaseModel):
    model_config = _with({"token": "what stood behind #token="})

    token: str


class Nothing(BaseModel):
    """An empty object: only that it is JSON counts."""

    model_config = _with({})


class Wish(BaseModel):
    """A council that is to be planned."""

    model_config = _with(
        {"question": "Should we shard the database or buy a bigger machine?", "protocol": "adversarial"}
    )

    question: str = Field(
        default="", description="What is asked; it may name files and begin with a task, as at the shell."
    )
    protocol: str | None = Field(default=None, description="Left out: the words choose.")
    options: dict[str, Any] = Field(default_factory=dict, description="Those of the protocol, see /api/protocols.")
    targets: list[str] = Field(default_factory=list, max_length=400, description="Files and folders of the root.")
    root: str | None = Field(default=None, description="By its name, see /api/roots; left out: the first.")
    seats: dict[str, str] = Field(default_factory=dict, description="Members by seat, of those that are configured.")
    decisions: list[str] = Field(default_factory=list, description="Decisions already taken, for the packet.")
    effort: Literal["low", "medium", "high"] | None = None
    redact: bool = Field(default=False, description="Mask secrets in the packet instead of refusing it.")
    skip_secrets: bool = Field(default=False, description="Leave files with secrets out of the packet.")
    max_cost: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="In dollars; no more than the owner's."
    )


class Fork(BaseModel):
    model_config = _with({"from": "improve", "seats": {"beta": "openai:gpt-5.2"}})

    from_: str | None = Field(default=None, alias="from", description="The first phase that is held again.")
    seats: dict[str, str] = Field(default_factory=dict, description="Other members for some seats.")


class Reply(BaseModel):
    model_config = _with({"answer": "Cold storage, if it can be read within a day."})

    answer: str
