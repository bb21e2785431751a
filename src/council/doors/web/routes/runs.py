"""Routes that read runs: the list, one run, its report, attempts and packet, and spending."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated, Literal

import click
from fastapi import APIRouter, Query
from starlette.responses import Response

from council.convene.history import describe_packet, list_attempts, query_history
from council.doors.cli.formats import render_as
from council.doors.cli.spend import parse_since
from council.doors.web import examples
from council.doors.web.answers import ApiResponse
from council.doors.web.bodies import AppStateDep
from council.doors.web.examples import example_responses
from council.doors.web.views import run_json
from council.errors import UsageError
from council.events import Entry
from council.minutes import Minutes
from council.render.mermaid import render_mermaid

router = APIRouter(prefix="/api", tags=["history"])
FilterValue = Annotated[str | None, Query(max_length=200)]
ReportFormat = Literal["md", "json", "sarif", "junit", "github", "html", "mermaid"]
MEDIA_TYPES = {
    "json": "application/json",
    "sarif": "application/sarif+json",
    "html": "text/html",
}  # others are plain text
REPORT_RESPONSES = examples.example_responses(examples.EXAMPLE_REPORT, 404) | {
    200: {"description": "The report.", "content": {"text/plain": {"example": "## Council Verdict"}, "application/json": {"example": examples.EXAMPLE_REPORT}}}
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


@router.get("/runs", responses=example_responses({"runs": [examples.EXAMPLE_RUN_ROW], "more": False}))
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


@router.get("/runs/{run}", responses=example_responses(examples.EXAMPLE_RUN_DETAIL, 404))
async def get_run(run: str, app_state: AppStateDep) -> ApiResponse:
    """Return a run: report, plan, minutes and cost."""
    run_state = await app_state.run_state(run)
    return ApiResponse(run_json(await app_state.shared_convener.minutes(run), run_state))


@router.get("/runs/{run}/report", responses=REPORT_RESPONSES)
async def get_report(run: str, app_state: AppStateDep, format: ReportFormat = "md") -> Response:
    """Return the report in a format. HTML is a download, so that no page with model text opens on this origin."""
    entries = await app_state.shared_convener.entries(run)
    minutes = Minutes.fold(entries)
    text = await asyncio.to_thread(_render_report, minutes, entries, format)
    headers = {"content-disposition": f'attachment; filename="{minutes.run}.html"'} if format == "html" else {}
    return Response(text.encode("utf-8", "replace"), media_type=MEDIA_TYPES.get(format, "text/plain"), headers=headers)


def _render_report(minutes: Minutes, entries: Sequence[Entry], form: str) -> str:
    return render_mermaid(minutes) if form == "mermaid" else render_as(minutes, form, entries)


@router.get("/runs/{run}/attempts", responses=example_responses([examples.EXAMPLE_ATTEMPT], 404))
async def get_attempts(
    run: str,
    app_state: AppStateDep,
    key: Annotated[str, Query(max_length=400, description="Only attempts of this step.")] = "",
) -> ApiResponse:
    """List every request as sent, with its result."""
    record = await app_state.shared_convener.store.load(await app_state.resolve_run(run))
    return ApiResponse(await asyncio.to_thread(list_attempts, record, key))


@router.get("/runs/{run}/packet", responses=example_responses(EXAMPLE_PACKET, 404))
async def get_packet(run: str, app_state: AppStateDep) -> ApiResponse:
    """Return the packet sent with the question: the receipt and the dossier of the first seat."""
    return ApiResponse(describe_packet(await app_state.shared_convener.store.load(await app_state.resolve_run(run))))


@router.get("/spend", responses=example_responses(EXAMPLE_SPEND))
async def get_spend(app_state: AppStateDep, since: Annotated[str, Query(max_length=40)] = "30d") -> ApiResponse:
    """Return spending by day, member and run since a day (2026-11-15, today, 7d, all), and the rest of today's budget."""
    try:
        day = parse_since(since, time.time())
    except click.UsageError as problem:
        raise UsageError(problem.format_message().removeprefix("--")) from None
    return ApiResponse(await app_state.shared_convener.spending(day))
