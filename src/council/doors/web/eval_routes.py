"""Routes of evaluations: the list of kept results of `council eval`, and one of them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field

from council.doors.web.access import AppStateDep
from council.doors.web.models import Body
from council.doors.web.responses import ApiResponse, UnknownEval
from council.doors.web.schemas import example_responses
from council.runs.advice import list_all_results
from council.runs.eval_object import StoredEval, StoredHistoryEval
from council.settings.schema import quote_value
from council.types import Json

eval_router = APIRouter(prefix="/api", tags=["history"])
EXAMPLE_EVAL = {
    "id": "0f3a9c51d2b7",
    "at": 1_795_000_000.0,
    "dataset": "questions.jsonl",
    "questions": 120,
    "equal": "tokens",
    "unfinished": 0,
    "members": ["anthropic:claude-opus-5.5"],
    "arms": ["single", "collaborative", "self-consistency=collaborative"],
}
EXAMPLE_RESULT = EXAMPLE_EVAL | {
    "schema": "council.eval/1",
    "seed": 0,
    "folder": "questions.eval",
    "arms": [],
    "conclusions": ["120 questions …"],
}


EqualBy = Annotated[Literal["tokens", "calls", "cost"], Field(description="What equal arms have in common.")]


class EvalSummary(Body):
    """What the list and the results of evaluations have in common."""

    id: str
    at: Annotated[float, Field(description="When the result was written, in seconds since 1970.")]
    dataset: Annotated[str, Field(description="The data set; history:PATH for reviews of the commits of a repository.")]
    questions: Annotated[int, Field(description="Questions, or reviewed commits.")]
    unfinished: Annotated[int, Field(description="Answers that are missing.")]
    members: list[str]


class EvalRow(EvalSummary):
    """An evaluation in the list."""

    equal: EqualBy | None = None
    arms: list[str]


class EvalList(Body):
    evals: list[EvalRow]


class EvalResult(EvalSummary):
    """The result of an evaluation, `council.eval/1`, as `council eval --json` prints it."""

    schema_name: Annotated[Literal["council.eval/1"], Field(alias="schema")]
    equal: EqualBy
    folder: str
    seed: int
    arms: list[Json]
    blind: Annotated[Json | None, Field(description="Blind comparisons: the base, the judges and their use.")] = None
    conclusions: list[str]


class HistoryEvalResult(EvalSummary):
    """The result of reviews of old commits, `council.history-eval/1`: that of `council eval history:PATH --json`."""

    schema_name: Annotated[Literal["council.history-eval/1"], Field(alias="schema")]
    folder: Annotated[str, Field(description="It has cases.html, with every case.")]
    since: str
    seed: int
    bugs: Annotated[int, Field(description="Reviewed commits whose bug a later commit fixed.")]
    controls: Annotated[int, Field(description="Reviewed commits that no later fix touched.")]
    without_bug: Annotated[int, Field(description="Commits whose fixes a person labelled as no bug, or as unclear.")]
    near_lines: Annotated[int, Field(description="How far a finding may be from the line of a bug.")]
    arms: list[Json]
    conclusions: list[str]


@eval_router.get("/evals", response_model=EvalList, responses=example_responses({"evals": [EXAMPLE_EVAL]}))
async def get_evals(app_state: AppStateDep) -> ApiResponse:
    """List the results of `council eval` on this machine, newest first."""
    rows = [
        {name: value for name, value in one.items() if name in EvalRow.model_fields}
        | {"arms": [arm["arm"] for arm in one["arms"]]}
        for one in await _load(app_state)
    ]
    return ApiResponse({"evals": rows})


@eval_router.get(
    "/evals/{id}", response_model=EvalResult | HistoryEvalResult, responses=example_responses(EXAMPLE_RESULT, 404)
)
async def get_eval(id: str, app_state: AppStateDep) -> ApiResponse:
    """Return one result: every arm with its intervals and its comparison, and what can be concluded."""
    for one in await _load(app_state):
        if one["id"] == id:
            return ApiResponse(one)
    raise UnknownEval(f"no evaluation {quote_value(id[:40])}: list them at /api/evals")


async def _load(app_state: AppStateDep) -> list[StoredEval | StoredHistoryEval]:
    return await asyncio.to_thread(list_all_results, app_state.shared_convener.env)
