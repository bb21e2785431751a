"""Routes that act on a run: cancel, resume, fork, and answer its questions."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fastapi import APIRouter

from council.convene import Convener
from council.doors import bounds
from council.doors.web.answers import ApiResponse
from council.doors.web.bodies import EXAMPLE_RUN, AppStateDep, AskAnswer, EmptyRequest, ForkRequest
from council.doors.web.examples import example_responses
from council.doors.web.hall import AppState
from council.errors import RunOwned
from council.record import Record
from council.types import Json

router = APIRouter(prefix="/api/runs/{run}", tags=["acting"])
MAX_REQUEUE_ATTEMPTS, REQUEUE_INTERVAL_S = 30, 0.1  # attempts and seconds between them
EXAMPLE_STATUS = {"run": EXAMPLE_RUN, "status": "queued"}
EXAMPLE_ASK: Json = {
    "run": EXAMPLE_RUN, "key": "draft/gamma", "seat": "gamma", "prompt": "…", "schema": None, "at": 1794742800.0, "fields": [],
}  # fmt: skip


@router.post("/cancel", status_code=202, responses=example_responses(EXAMPLE_STATUS, 404, 415, status=202))
async def cancel_run(run: str, app_state: AppStateDep, body: EmptyRequest | None = None) -> ApiResponse:
    """Stop a run. Its answers are kept, and it can be resumed."""
    run = await app_state.resolve_run(run)
    async with app_state.open_convener() as convener:
        await convener.cancel(run)
    return await _status_response(run, app_state)


@router.post("/resume", status_code=202, responses=example_responses(EXAMPLE_STATUS, 404, 409, 415, status=202))
async def resume_run(run: str, app_state: AppStateDep, body: EmptyRequest | None = None) -> ApiResponse:
    """Queue an unfinished run for the local worker, which continues where it stopped."""
    record = await app_state.shared_convener.store.load(await app_state.resolve_run(run))
    async with app_state.open_convener(max_cost=_effective_cap(record, app_state)) as convener:
        await _requeue(record.run, convener, app_state)
    await app_state.ensure_worker(record.run)
    return await _status_response(record.run, app_state)


@router.post("/fork", status_code=202, responses=example_responses({"run": EXAMPLE_RUN}, 404, 409, 415, status=202))
async def fork_run(run: str, body: ForkRequest, app_state: AppStateDep) -> ApiResponse:
    """Start a new run that reuses everything before a phase, optionally with other members."""
    record = await app_state.shared_convener.store.load(await app_state.resolve_run(run))
    bounds.check_members(body.seats.values(), app_state.owner.settings(Path(record.folder)))
    async with app_state.open_convener(max_cost=_effective_cap(record, app_state)) as convener:
        forked = await convener.enqueue_fork(record.run, phase=body.from_, seats=body.seats)
    app_state.call_worker(forked)
    return ApiResponse({"run": forked}, 202)


@router.get("/asks", responses=example_responses([EXAMPLE_ASK], 404))
async def get_asks(run: str, app_state: AppStateDep) -> ApiResponse:
    """List the open questions to people, with their form fields."""
    return ApiResponse(await app_state.shared_convener.open_asks(await app_state.resolve_run(run)))


@router.post(
    "/asks/{key:path}", responses=example_responses({"run": EXAMPLE_RUN, "key": "draft/gamma", "taken": True}, 404, 415)
)
async def answer_ask(run: str, key: str, reply: AskAnswer, app_state: AppStateDep) -> ApiResponse:
    """Answer a question to a person: text, or JSON where fields are asked for. The first answer counts."""
    run = await app_state.resolve_run(run)
    return ApiResponse(
        {"run": run, "key": key, "taken": await app_state.shared_convener.answer(run, key, reply.answer)}
    )


async def _requeue(run: str, convener: Convener, app_state: AppState) -> None:
    """Requeue the run, retrying while the process that closed it still writes the report."""
    for left in range(MAX_REQUEUE_ATTEMPTS, -1, -1):
        try:
            await convener.requeue(run)
        except RunOwned:
            if left == 0 or (await app_state.shared_convener.run_state(run))["status"] in ("queued", "running"):
                raise
            await asyncio.sleep(REQUEUE_INTERVAL_S)
        else:
            return


def _effective_cap(record: Record, app_state: AppState) -> float | None:
    """Return the lower of the run's cap and this server's cap."""
    caps = [cap for cap in (record.setup.get("max_cost"), app_state.owner.max_cost) if cap is not None]
    return min(caps, default=None)


async def _status_response(run: str, app_state: AppState) -> ApiResponse:
    return ApiResponse({"run": run, "status": (await app_state.run_state(run))["status"]}, 202)
