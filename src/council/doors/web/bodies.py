"""Request bodies, each with an example. Unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field

from council.doors.web.hall import AppState
from council.types import Json

EXAMPLE_RUN = "r2abcd"


def _model_config(example: Json) -> ConfigDict:
    return ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [example]})


def _get_app_state(request: Request) -> AppState:
    app_state: AppState = request.app.state.app_state
    return app_state


AppStateDep = Annotated[AppState, Depends(_get_app_state)]


class SessionRequest(BaseModel):
    model_config = _model_config({"token": "the value after #token="})

    token: str


class EmptyRequest(BaseModel):
    """Empty object; a POST must be JSON."""

    model_config = _model_config({})


class RunRequest(BaseModel):
    """Council to plan or start."""

    model_config = _model_config(
        {"question": "Should we shard the database or buy a bigger machine?", "protocol": "adversarial"}
    )

    question: str = Field(
        default="", description="The question; it may name files and begin with a task, as on the command line."
    )
    protocol: str | None = Field(default=None, description="Default: chosen from the wording of the question.")
    options: dict[str, Any] = Field(default_factory=dict, description="Options of the protocol, see /api/protocols.")
    targets: list[str] = Field(default_factory=list, max_length=400, description="Files and folders in the root.")
    root: str | None = Field(default=None, description="Name of a root, see /api/roots; default: the first.")
    seats: dict[str, str] = Field(default_factory=dict, description="Configured members by seat.")
    decisions: list[str] = Field(default_factory=list, description="Decisions already made, for the packet.")
    effort: Literal["low", "medium", "high"] | None = None
    redact: bool = Field(default=False, description="Mask secrets in the packet instead of refusing it.")
    skip_secrets: bool = Field(default=False, description="Leave files with secrets out of the packet.")
    max_cost: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="In dollars; at most the owner's limit."
    )


class ForkRequest(BaseModel):
    model_config = _model_config({"from": "improve", "seats": {"beta": "openai:gpt-5.2"}})

    from_: str | None = Field(default=None, alias="from", description="First phase to run again.")
    seats: dict[str, str] = Field(default_factory=dict, description="Other members for some seats.")


class AskAnswer(BaseModel):
    model_config = _model_config({"answer": "Cold storage, if it can be read within a day."})

    answer: str
