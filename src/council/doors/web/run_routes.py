"""Routes that read runs: the list, one run, its report, attempts and packet, and spending."""

from __future__ import annotations

import asyncio
import json
import time
from itertools import chain
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from pydantic import AfterValidator, BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from council.doors import limits
from council.doors.limits import find_run_cap
from council.doors.web import access, models, schemas
from council.doors.web.access import AppStateDep, KeyHeader, RunId, UserDep, make_key
from council.doors.web.app_state import AppState
from council.doors.web.responses import REPEATED, ApiResponse, run_json
from council.doors.web.schemas import (
    EXAMPLE_RUN,
    AskAnswer,
    EmptyRequest,
    ForkRequest,
    OutcomeRequest,
    RunChange,
    example_responses,
    stream_responses,
)
from council.doors.web.sse import EventStream
from council.errors import RunConflict, UsageError
from council.extensions import FORMATS
from council.render.formats import render_parts_as
from council.render.mermaid import render_mermaid
from council.render.positions import build_position_history
from council.runs.history import describe_packet, filter_evaluations, list_attempts, query_history
from council.runs.spending import parse_since
from council.runs.tokens import OWNER
from council.settings.schema import quote_value
from council.store.interface import RequestKey, RunRow, RunStatus
from council.text_cleanup import clean_json
from council.types import Json

history_router = APIRouter(prefix="/api", tags=["history"])
SINCE = "^(all|today|[0-9]{1,4}d|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2})$"
FilterValue = Annotated[str | None, Field(max_length=200)]
FilterTime = Annotated[float | None, Field(ge=0, allow_inf_nan=False)]
REPORT_FORMATS = (*FORMATS.names, "mermaid")


def _check_format(name: str) -> str:
    if name not in REPORT_FORMATS:
        raise ValueError(f"use one of {', '.join(REPORT_FORMATS)}")
    return name


ReportFormat = Annotated[str, Query(json_schema_extra={"enum": list(REPORT_FORMATS)}), AfterValidator(_check_format)]
# Others are plain text.
MEDIA_TYPES = {"json": "application/json", "sarif": "application/sarif+json", "html": "text/html"}
EXAMPLE_SARIF = {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "Council"}}, "results": []}]}
DISPOSITION_HEADER = {"Content-Disposition": {"description": "attachment, of HTML only.", "schema": {"type": "string"}}}
REPORT_RESPONSES = schemas.example_responses(schemas.EXAMPLE_REPORT, 404) | {
    200: {
        "description": "The report: Markdown, JUnit, GitHub annotations and Mermaid are plain text.",
        "headers": DISPOSITION_HEADER,
        "content": {
            "text/plain": {"schema": {"type": "string"}, "example": "## Council Verdict"},
            "application/json": {"schema": {"$ref": "#/components/schemas/Report"}, "example": schemas.EXAMPLE_REPORT},
            "application/sarif+json": {"schema": {"type": "object"}, "example": EXAMPLE_SARIF},
            "text/html": {"schema": {"type": "string"}, "example": "<!doctype html>"},
        },
    }
}
LINK_HEADER = {"Link": {"description": 'Address of the next page, with rel="next".', "schema": {"type": "string"}}}
EXAMPLE_PACKET = {
    "receipt": {"files": ["core.py"], "bytes": 5120, "tokens": 1707, "skipped": []},
    "dossier": {"files": [{"path": "core.py"}]},
}
EXAMPLE_ROW = {
    "kind": "point",
    "topic": "one node is enough",
    "text": "Write growth was not measured.",
    "status": "landed",
    "severity": "major",
    "disputed_by": ["beta"],
    "ids": ["beta-1"],
    "landed": True,
    "ruling": "It is right.",
    "seats": [
        {"seat": "alpha", "position": "agrees", "why": "its draft"},
        {"seat": "beta", "position": "opposes", "why": "Not measured."},
    ],
}
EXAMPLE_POSITIONS = [{"seq": 31, "rows": [EXAMPLE_ROW]}]
EXAMPLE_CALLS: Json = {
    "usd": 0.29,
    "estimated": 0.0,
    "in_doubt": 0.0,
    "calls": 7,
    "unpriced": 0,
    "tokens": schemas.EXAMPLE_TOKENS,
    "cached_saving": 0.0,
}
EXAMPLE_SPENT_RUNS: Json = {**EXAMPLE_CALLS, "runs": 1, "complete": 1, "mean": 0.29, "stops": 1, "saved": 0.09}
EXAMPLE_SPEND: Json = {
    "schema": "council.spend/1",
    "since": "2026-11-15",
    "total": EXAMPLE_SPENT_RUNS,
    "days": [{"day": "2026-11-15", **EXAMPLE_CALLS}],
    "members": [],
    "protocols": [{"protocol": "adversarial", **EXAMPLE_SPENT_RUNS}],
    "folders": [],
    "runs": [],
    "unpriced": [],
    "today": {"day": "2026-11-15", "usd": 0.29, "reserved": 0.0, "in_doubt": 0.0, "cap": None, "left": None},
}


class RunQuery(BaseModel):
    """Which runs are listed."""

    task: FilterValue = None
    verdict: FilterValue = None
    protocol: FilterValue = None
    status: FilterValue = None
    q: FilterValue = None
    owner: FilterValue = Field(
        default=None, description="Owner of the runs, such as ann@laptop; only with the token of the server."
    )
    project: FilterValue = Field(default=None, description="Name of the repository or folder.")
    all: bool = Field(default=False, description="Also list the runs of evaluations.")
    from_: FilterTime = Field(
        default=None, alias="from", description="Created at or after this time, in seconds since 1970."
    )
    to: FilterTime = Field(default=None, description="Created before this time.")
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    before: FilterValue = Field(default=None, description="Last run of the previous page.")


@history_router.get(
    "/runs",
    response_model=models.RunList,
    responses=example_responses(
        {"runs": [schemas.EXAMPLE_RUN_ROW], "more": False, "next": None}, 404, headers=LINK_HEADER
    ),
)
async def get_runs(
    request: Request, app_state: AppStateDep, user: UserDep, query: Annotated[RunQuery, Query()]
) -> ApiResponse:
    """List runs: unfinished first, then newest."""
    given = query.model_dump(by_alias=True, exclude_none=True, exclude={"limit", "before", "all"})
    filters = {name: value for name, value in given.items() if value != ""} | filter_evaluations(query.all)
    if not user.sees_all:
        access.check_fields(owner=query.owner)
        filters["owner"] = user.owner
    last = await app_state.resolve_run(query.before, user) if query.before else None
    found = await query_history(app_state.store, filters, last, query.limit)
    link = _link_next(request, before=found["next"]) if found["next"] else {}
    return ApiResponse({**found, "runs": [_add_id(row) for row in found["runs"]]}, headers=link)


class IdentifiedRun(RunRow):
    """A run in a list, with the older name of its id."""

    id: str


def _add_id(row: RunRow) -> IdentifiedRun:
    """Return a row with the older name of its run."""
    return {"id": row["run"], **row}


def _link_next(request: Request, **values: str | int) -> dict[str, str]:
    """Return the header with the address of the next page."""
    url = request.url.include_query_params(**values)
    return {"link": f'<{url.path}?{url.query}>; rel="next"'}


@history_router.get(
    "/runs/{run}", response_model=models.RunDetail, responses=example_responses(schemas.EXAMPLE_RUN_DETAIL, 404)
)
async def get_run(run: RunId, app_state: AppStateDep) -> ApiResponse:
    """Return a run: report, plan, minutes and cost."""
    state = await app_state.shared_convener.run_state(run)
    return ApiResponse(run_json(await app_state.shared_convener.minutes(run), state))


@history_router.get("/runs/{run}/report", responses=REPORT_RESPONSES)
async def get_report(run: RunId, app_state: AppStateDep, format: ReportFormat = "md") -> Response:
    """Return the report in a format. HTML is a download, so that no page with model text opens on this origin."""
    minutes, entries = await app_state.shared_convener.load_minutes(run)
    headers = {"content-disposition": f'attachment; filename="{minutes.run}.html"'} if format == "html" else {}
    parts = iter([render_mermaid(minutes)]) if format == "mermaid" else render_parts_as(minutes, format, entries)
    first = await asyncio.to_thread(next, parts, "")  # an error is a response of its own
    content = (part.encode("utf-8", "replace") for part in chain([first], parts))
    return StreamingResponse(content, media_type=MEDIA_TYPES.get(format, "text/plain"), headers=headers)


@history_router.get(
    "/runs/{run}/positions",
    response_model=list[models.PositionsAt],
    responses=example_responses(EXAMPLE_POSITIONS, 404),
)
async def get_positions(run: RunId, app_state: AppStateDep) -> ApiResponse:
    """Return the positions of the seats after each phase and now: one row per finding, point or topic."""
    entries = await app_state.shared_convener.entries(run)
    return ApiResponse(clean_json(await asyncio.to_thread(build_position_history, entries)))


@history_router.get(
    "/runs/{run}/attempts",
    response_model=list[models.AttemptRow],
    responses=example_responses([schemas.EXAMPLE_ATTEMPT], 404, headers=LINK_HEADER),
)
async def get_attempts(
    run: RunId,
    request: Request,
    app_state: AppStateDep,
    key: Annotated[str, Query(max_length=400, description="Only attempts of this step.")] = "",
    after: Annotated[str, Query(max_length=400, description="Step of the last attempt of the previous page.")] = "",
    after_n: Annotated[int, Query(ge=0, le=1_000_000, description="Number of that attempt.")] = 0,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 100_000,
) -> ApiResponse:
    """List the requests as sent, with their results, sorted by step and number."""
    attempts, events = await app_state.store.load_attempts(run, key, (after, after_n), limit + 1)
    rows = await asyncio.to_thread(list_attempts, attempts, events)
    last = rows[limit - 1] if len(rows) > limit else None
    return ApiResponse(rows[:limit], headers=_link_next(request, after=last["key"], after_n=last["n"]) if last else {})


@history_router.get(
    "/runs/{run}/packet", response_model=models.PacketBody, responses=example_responses(EXAMPLE_PACKET, 404)
)
async def get_packet(run: RunId, app_state: AppStateDep) -> ApiResponse:
    """Return the packet sent with the question: the receipt and the dossier of the first seat."""
    return ApiResponse(describe_packet(await app_state.store.load(run)))


@history_router.get("/spend", response_model=models.Spending, responses=example_responses(EXAMPLE_SPEND))
async def get_spend(
    app_state: AppStateDep,
    user: UserDep,
    since: Annotated[str, Query(max_length=40, json_schema_extra={"pattern": SINCE})] = "30d",
) -> ApiResponse:
    """Return spending by day, member, protocol and run since a day (2026-11-15, today, 7d, all), and the rest of
    today's budget.
    """
    day, convener = parse_since(since, time.time()), app_state.shared_convener
    if user.sees_all:
        return ApiResponse(await convener.spending(day))
    return ApiResponse(await convener.spending(day, user.name, user.max_cost_per_day))


def get_empty_key(
    request: Request, user: UserDep, body: EmptyRequest | None = None, idempotency_key: KeyHeader = None
) -> RequestKey | None:
    return make_key(request, user, idempotency_key, body)


EmptyRequestKey = Annotated[RequestKey | None, Depends(get_empty_key)]  # of a request whose body says nothing
action_router = APIRouter(prefix="/api/runs/{run}", tags=["acting"])
EXAMPLE_STATUS = {"run": EXAMPLE_RUN, "id": EXAMPLE_RUN, "status": "queued"}
STATUS_RESPONSE: Json = {
    "status_code": 202,
    "response_model": models.RunStatusBody,
    "responses": example_responses(EXAMPLE_STATUS, 404, 409, status=202, has_body=True),
    "openapi_extra": schemas.NEEDS_BODY,
}
EXAMPLE_ASK: Json = {
    "run": EXAMPLE_RUN,
    "key": "draft/gamma",
    "seat": "gamma",
    "prompt": "…",
    "schema": None,
    "at": 1794742800.0,
    "fields": [],
}


@action_router.post("/cancel", **STATUS_RESPONSE)
async def cancel_run(run: RunId, app_state: AppStateDep, key: EmptyRequestKey) -> ApiResponse:
    """Stop a run. Its answers are kept, and it can be resumed. A run that has ended is a conflict (409)."""

    async def cancel() -> str:
        async with app_state.open_convener() as convener:
            if not await convener.cancel(run):
                status = (await convener.run_state(run)).status
                raise RunConflict(f"run {run} has already ended ({status}), so there is nothing to cancel")
        return await _keep_key(run, key, app_state)

    await app_state.run_once(key, cancel)
    return await _status_response(run, app_state)


@action_router.delete("", status_code=204, responses=example_responses(None, 404, 409, status=204))
async def delete_run(run: RunId, app_state: AppStateDep) -> Response:
    """Delete a run and its report in the data folder.

    Its spending stays in the totals. A run that has not ended is a conflict (409).
    """
    async with app_state.open_convener() as convener:
        removal = await convener.remove_all([run], may_rewrite=False)
    if removal.kept:
        raise removal.kept[run]
    return Response(status_code=204)


@action_router.post("/resume", **STATUS_RESPONSE)
async def resume_run(run: RunId, app_state: AppStateDep, user: UserDep, key: EmptyRequestKey) -> ApiResponse:
    """Queue an unfinished run for the local worker, which continues where it stopped.

    A complete run is a conflict (409).
    """

    async def resume() -> str:
        record = await app_state.store.load(run)
        if record.status == RunStatus.COMPLETE:
            raise RunConflict(f"run {run} is complete, so there is nothing to resume: fork it, or start a new run")
        payer = OWNER if user.sees_all else user  # the cap of a user's run stays, or becomes the present one
        async with app_state.open_convener(
            user=payer, max_cost=find_run_cap(app_state.owner, app_state.caps, record)
        ) as convener:
            await convener.find_missing_keys(run)  # raises if the settings of its folder need trust
            await convener.requeue_after_close(run)
        return await _keep_key(run, key, app_state)

    await app_state.run_once(key, resume)
    await app_state.ensure_worker(run)
    return await _status_response(run, app_state)


@action_router.post(
    "/fork",
    status_code=202,
    response_model=models.ForkedRun,
    responses=example_responses(
        {"run": EXAMPLE_RUN, "id": EXAMPLE_RUN},
        404,
        409,
        status=202,
        headers=schemas.REPLAYED_HEADER,
        has_body=True,
    ),
)
async def fork_run(
    run: RunId,
    body: ForkRequest,
    request: Request,
    app_state: AppStateDep,
    user: UserDep,
    idempotency_key: KeyHeader = None,
) -> ApiResponse:
    """Start a new run that reuses everything before a phase, optionally with other members."""
    key = make_key(request, user, idempotency_key, body)
    if not user.sees_all:
        access.check_members(list(body.seats.values()))

    async def fork() -> str:
        record = await app_state.store.load(run)
        limits.check_members(body.seats.values(), app_state.owner.settings(Path(record.folder)))
        async with app_state.open_convener(
            user=user, max_cost=find_run_cap(app_state.owner, app_state.caps, record)
        ) as convener:
            return await convener.enqueue_fork(run, body.from_, body.seats, key)

    forked, is_repeated = await app_state.run_once(key, fork)
    app_state.call_worker(forked)
    return ApiResponse({"run": forked, "id": forked}, 202, REPEATED if is_repeated else None)


@action_router.get("/asks", response_model=list[models.AskRow], responses=example_responses([EXAMPLE_ASK], 404))
async def get_asks(run: RunId, app_state: AppStateDep) -> ApiResponse:
    """List the open questions to people, with their form fields."""
    return ApiResponse(await app_state.shared_convener.open_asks(run))


@action_router.post(
    "/asks/{key:path}",
    response_model=models.AnswerTaken,
    responses=example_responses({"run": EXAMPLE_RUN, "key": "draft/gamma", "taken": True}, 404, has_body=True),
)
async def answer_ask(run: RunId, key: str, reply: AskAnswer, app_state: AppStateDep) -> ApiResponse:
    """Answer a question to a person: text, or JSON where fields are asked for. The first answer counts."""
    return ApiResponse(
        {"run": run, "key": key, "taken": await app_state.shared_convener.answer(run, key, reply.answer)}
    )


@action_router.patch(
    "", response_model=models.RunRow, responses=example_responses(schemas.EXAMPLE_RUN_ROW, 404, has_body=True)
)
async def change_run(run: RunId, body: RunChange, app_state: AppStateDep) -> ApiResponse:
    """Change the title of a run, and return its row of the list."""
    await app_state.shared_convener.rename(run, body.title)
    found = await query_history(app_state.store, {"ids": json.dumps([run])}, None, 1)
    return ApiResponse(_add_id(found["runs"][0]))


@action_router.post(
    "/outcome",
    response_model=models.OutcomeBody,
    responses=example_responses(schemas.EXAMPLE_OUTCOME, 404, has_body=True),
)
async def record_outcome(run: RunId, body: OutcomeRequest, app_state: AppStateDep) -> ApiResponse:
    """Record how the decision of a complete run turned out. The newest outcome counts; the earlier ones are kept."""
    recorded = await app_state.shared_convener.record_outcome(run, body.label, body.note)
    return ApiResponse(recorded.row)


async def _keep_key(run: str, key: RequestKey | None, app_state: AppState) -> str:
    """Store the key of a request that has been done, and return its run."""
    if key:
        await app_state.store.save_request(run, key)
    return run


async def _status_response(run: str, app_state: AppState) -> ApiResponse:
    status = (await app_state.shared_convener.run_state(run)).status
    return ApiResponse({"run": run, "id": run, "status": status}, 202)


event_router = APIRouter(prefix="/api", tags=["events"])
POSITION, POSITIONS = "^[0-9]{0,15}$", "^([A-Za-z0-9]+:[0-9]{1,15}(,[A-Za-z0-9]+:[0-9]{1,15})*)?$"
LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", description="Instead of `since`.", json_schema_extra={"pattern": POSITION}),
]
LastEventIds = Annotated[
    str | None,
    Header(alias="Last-Event-ID", description="Instead of `since`.", json_schema_extra={"pattern": POSITIONS}),
]
MAX_SEQ = 1 << 53
PATCHES_HELP = (
    "Add `patch` to each stored event: a JSON merge patch (RFC 7396) of the minutes as the page of this server shows them. "
    "Their fields may change with each version."
)
Patches = Annotated[bool, Query(description=PATCHES_HELP)]


@event_router.get("/runs/{run}/events", status_code=200, response_class=EventStream, responses=stream_responses(404))
async def stream_run(
    run: RunId,
    app_state: AppStateDep,
    since: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0,
    patches: Patches = False,
    last_event_id: LastEventId = None,
) -> EventStream:
    """Stream the stored events after `since`, then new ones until the run ends."""
    seq = _parse_seq(last_event_id) if last_event_id else since
    await app_state.ensure_worker(run)
    return EventStream(app_state.feeds, [(run, seq)], patches=patches)


@event_router.get("/stream", status_code=200, response_class=EventStream, responses=stream_responses(404))
async def stream_runs(
    app_state: AppStateDep,
    user: UserDep,
    run: Annotated[list[str], Query(min_length=1, max_length=100)],
    since: Annotated[
        str, Query(description="Positions such as `A:12,B:3`.", json_schema_extra={"pattern": POSITIONS})
    ] = "",
    patches: Patches = False,
    last_event_id: LastEventIds = None,
) -> EventStream:
    """Stream several runs at once; every event names its run."""
    known = {name: await app_state.resolve_run(name, user) for name in run}
    for name in known.values():
        await app_state.ensure_worker(name)
    parts = [part.strip().rpartition(":") for part in (last_event_id or since).split(",") if part.strip()]
    places = {known.get(name, name): _parse_seq(seq) for name, _, seq in parts}
    positions = [(name, places.get(name, 0)) for name in dict.fromkeys(known.values())]
    return EventStream(app_state.feeds, positions, several=True, patches=patches)


def _parse_seq(value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 16):
        raise UsageError(f"{quote_value(value[:40])} is not a stream position: send the last `id:`, or omit it")
    return int(value)
