"""Routes that read runs: the list, one run, its report, attempts and packet, and spending."""

from __future__ import annotations

import asyncio
import time
from itertools import chain
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header, Query
from pydantic import AfterValidator
from starlette.responses import Response, StreamingResponse

from council.doors import limits
from council.doors.web import schemas
from council.doors.web.app_state import AppState
from council.doors.web.responses import ApiResponse, run_json
from council.doors.web.schemas import (
    EXAMPLE_RUN,
    AppStateDep,
    AskAnswer,
    EmptyRequest,
    ForkRequest,
    example_responses,
    stream_responses,
)
from council.doors.web.sse import EventStream
from council.engine.minutes import Minutes
from council.errors import RunOwned, UsageError
from council.extensions import FORMATS
from council.render.formats import render_parts_as
from council.render.mermaid import render_mermaid
from council.runs.history import describe_packet, list_attempts, query_history
from council.runs.service import Convener
from council.runs.spending import parse_since
from council.settings.schema import quote_value
from council.store.interface import Record, RunStatus
from council.types import Json

history_router = APIRouter(prefix="/api", tags=["history"])
FilterValue = Annotated[str | None, Query(max_length=200)]
REPORT_FORMATS = (*FORMATS.names, "mermaid")


def _check_format(name: str) -> str:
    if name not in REPORT_FORMATS:
        raise ValueError(f"use one of {', '.join(REPORT_FORMATS)}")
    return name


ReportFormat = Annotated[str, Query(json_schema_extra={"enum": list(REPORT_FORMATS)}), AfterValidator(_check_format)]
MEDIA_TYPES = {
    "json": "application/json",
    "sarif": "application/sarif+json",
    "html": "text/html",
}  # others are plain text
REPORT_RESPONSES = schemas.example_responses(schemas.EXAMPLE_REPORT, 404) | {
    200: {"description": "The report.", "content": {"text/plain": {"example": "## Council Verdict"}, "application/json": {"example": schemas.EXAMPLE_REPORT}}}
}  # fmt: skip
EXAMPLE_PACKET = {
    "receipt": {"files": 1, "bytes": 5120, "tokens": 1707, "skipped": []},
    "dossier": {"files": [{"path": "core.py"}]},
}
EXAMPLE_SPEND = {
    "schema": "council.spend/1",
    "since": "2026-11-15",
    "total": {"usd": 0.29},
    "days": [],
    "members": [],
    "runs": [],
}


@history_router.get("/runs", responses=example_responses({"runs": [schemas.EXAMPLE_RUN_ROW], "more": False}))
async def get_runs(
    app_state: AppStateDep, task: FilterValue = None, verdict: FilterValue = None, protocol: FilterValue = None, status: FilterValue = None, q: FilterValue = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50, before: Annotated[FilterValue, Query(description="Last run of the previous page.")] = None,
) -> ApiResponse:  # fmt: skip
    """List runs: unfinished first, then newest."""
    params = {"task": task, "verdict": verdict, "protocol": protocol, "status": status, "q": q}
    filters = {name: value for name, value in params.items() if value}
    return ApiResponse(
        await query_history(
            app_state.shared_convener.store, filters, await app_state.resolve_run(before) if before else None, limit
        )
    )


@history_router.get("/runs/{run}", responses=example_responses(schemas.EXAMPLE_RUN_DETAIL, 404))
async def get_run(run: str, app_state: AppStateDep) -> ApiResponse:
    """Return a run: report, plan, minutes and cost."""
    state = await app_state.shared_convener.run_state(run)
    return ApiResponse(run_json(await app_state.shared_convener.minutes(run), state))


@history_router.get("/runs/{run}/report", responses=REPORT_RESPONSES)
async def get_report(run: str, app_state: AppStateDep, format: ReportFormat = "md") -> Response:
    """Return the report in a format. HTML is a download, so that no page with model text opens on this origin."""
    entries = await app_state.shared_convener.entries(run)
    minutes = Minutes.fold(entries)
    headers = {"content-disposition": f'attachment; filename="{minutes.run}.html"'} if format == "html" else {}
    parts = iter([render_mermaid(minutes)]) if format == "mermaid" else render_parts_as(minutes, format, entries)
    first = await asyncio.to_thread(next, parts, "")  # an error is a response of its own
    content = (part.encode("utf-8", "replace") for part in chain([first], parts))
    return StreamingResponse(content, media_type=MEDIA_TYPES.get(format, "text/plain"), headers=headers)


@history_router.get("/runs/{run}/attempts", responses=example_responses([schemas.EXAMPLE_ATTEMPT], 404))
async def get_attempts(
    run: str,
    app_state: AppStateDep,
    key: Annotated[str, Query(max_length=400, description="Only attempts of this step.")] = "",
    after: Annotated[str, Query(max_length=400, description="Step of the last attempt of the previous page.")] = "",
    after_n: Annotated[int, Query(ge=0, le=1_000_000, description="Number of that attempt.")] = 0,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 100_000,
) -> ApiResponse:
    """List the requests as sent, with their results, sorted by step and number."""
    store, run = app_state.shared_convener.store, await app_state.resolve_run(run)
    await store.run_state(run)  # raises if there is no such run
    found = await store.load_attempts(run, key, (after, after_n), limit)
    return ApiResponse(await asyncio.to_thread(list_attempts, *found))


@history_router.get("/runs/{run}/packet", responses=example_responses(EXAMPLE_PACKET, 404))
async def get_packet(run: str, app_state: AppStateDep) -> ApiResponse:
    """Return the packet sent with the question: the receipt and the dossier of the first seat."""
    return ApiResponse(describe_packet(await app_state.shared_convener.store.load(await app_state.resolve_run(run))))


@history_router.get("/spend", responses=example_responses(EXAMPLE_SPEND))
async def get_spend(app_state: AppStateDep, since: Annotated[str, Query(max_length=40)] = "30d") -> ApiResponse:
    """Return spending by day, member and run since a day (2026-11-15, today, 7d, all), and the rest of today's budget."""
    return ApiResponse(await app_state.shared_convener.spending(parse_since(since, time.time())))


action_router = APIRouter(prefix="/api/runs/{run}", tags=["acting"])
MAX_REQUEUE_ATTEMPTS, REQUEUE_INTERVAL_S = 30, 0.1  # attempts and seconds between them
EXAMPLE_STATUS = {"run": EXAMPLE_RUN, "status": "queued"}
EXAMPLE_ASK: Json = {
    "run": EXAMPLE_RUN, "key": "draft/gamma", "seat": "gamma", "prompt": "…", "schema": None, "at": 1794742800.0, "fields": [],
}  # fmt: skip


@action_router.post("/cancel", status_code=202, responses=example_responses(EXAMPLE_STATUS, 404, 415, status=202))
async def cancel_run(run: str, app_state: AppStateDep, body: EmptyRequest | None = None) -> ApiResponse:
    """Stop a run. Its answers are kept, and it can be resumed."""
    run = await app_state.resolve_run(run)
    async with app_state.open_convener() as convener:
        await convener.cancel(run)
    return await _status_response(run, app_state)


@action_router.post("/resume", status_code=202, responses=example_responses(EXAMPLE_STATUS, 404, 409, 415, status=202))
async def resume_run(run: str, app_state: AppStateDep, body: EmptyRequest | None = None) -> ApiResponse:
    """Queue an unfinished run for the local worker, which continues where it stopped."""
    record = await app_state.shared_convener.store.load(await app_state.resolve_run(run))
    async with app_state.open_convener(max_cost=_effective_cap(record, app_state)) as convener:
        if record.status is not RunStatus.COMPLETE:
            await convener.find_missing_keys(record.run)  # raises if the settings of its folder need trust
        await _requeue(record.run, convener, app_state)
    await app_state.ensure_worker(record.run)
    return await _status_response(record.run, app_state)


@action_router.post(
    "/fork", status_code=202, responses=example_responses({"run": EXAMPLE_RUN}, 404, 409, 415, status=202)
)
async def fork_run(run: str, body: ForkRequest, app_state: AppStateDep) -> ApiResponse:
    """Start a new run that reuses everything before a phase, optionally with other members."""
    record = await app_state.shared_convener.store.load(await app_state.resolve_run(run))
    limits.check_members(body.seats.values(), app_state.owner.settings(Path(record.folder)))
    async with app_state.open_convener(max_cost=_effective_cap(record, app_state)) as convener:
        forked = await convener.enqueue_fork(record.run, phase=body.from_, seats=body.seats)
    app_state.call_worker(forked)
    return ApiResponse({"run": forked}, 202)


@action_router.get("/asks", responses=example_responses([EXAMPLE_ASK], 404))
async def get_asks(run: str, app_state: AppStateDep) -> ApiResponse:
    """List the open questions to people, with their form fields."""
    return ApiResponse(await app_state.shared_convener.open_asks(await app_state.resolve_run(run)))


@action_router.post(
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
            if left == 0 or (await app_state.shared_convener.run_state(run)).is_open:
                raise
            await asyncio.sleep(REQUEUE_INTERVAL_S)
        else:
            return


def _effective_cap(record: Record, app_state: AppState) -> float | None:
    """Return the lower of the run's cap and this server's cap."""
    caps = [cap for cap in (record.setup.get("max_cost"), app_state.owner.max_cost) if cap is not None]
    return min(caps, default=None)


async def _status_response(run: str, app_state: AppState) -> ApiResponse:
    return ApiResponse({"run": run, "status": (await app_state.shared_convener.run_state(run)).status}, 202)


event_router = APIRouter(prefix="/api", tags=["events"])
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID")]
MAX_SEQ = 1 << 53


@event_router.get("/runs/{run}/events", status_code=200, response_class=EventStream, responses=stream_responses(404))
async def stream_run(
    run: str,
    app_state: AppStateDep,
    since: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0,
    last_event_id: LastEventId = None,
) -> EventStream:
    """Stream the stored events after `since`, then new ones until the run ends."""
    return EventStream(
        app_state.feeds,
        [(await _resolve_live_run(run, app_state), _parse_seq(last_event_id) if last_event_id else since)],
    )


@event_router.get("/stream", status_code=200, response_class=EventStream, responses=stream_responses(404))
async def stream_runs(
    app_state: AppStateDep,
    run: Annotated[list[str], Query(min_length=1, max_length=100)],
    since: str = "",
    last_event_id: LastEventId = None,
) -> EventStream:
    """Stream several runs at once; every event names its run."""
    known = {name: await _resolve_live_run(name, app_state) for name in run}
    places = {known.get(name, name): seq for name, seq in _parse_positions(last_event_id or since)}
    return EventStream(
        app_state.feeds, [(name, places.get(name, 0)) for name in dict.fromkeys(known.values())], several=True
    )


async def _resolve_live_run(run: str, app_state: AppState) -> str:
    """Return the run id, and make sure that a detached run has a worker."""
    run = await app_state.resolve_run(run)
    await app_state.ensure_worker(run)
    return run


def _parse_positions(value: str) -> list[tuple[str, int]]:
    """Parse positions such as `A:12,B:3`."""
    parts = [part.strip().rpartition(":") for part in value.split(",") if part.strip()]
    return [(run, _parse_seq(seq)) for run, _, seq in parts]


def _parse_seq(value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 16):
        raise UsageError(f"{quote_value(value[:40])} is not a stream position: send the last `id:`, or omit it")
    return int(value)
