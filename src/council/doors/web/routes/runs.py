"""Routes that read runs: the list, one run, its report, attempts and packet, and spending."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated, Literal

import click
from fastapi import APIRouter, Query
from starlette.responses import Response

from council.convene.history import attempts_of, history, packet_of
from council.doors.cli.formats import rendered
from council.doors.cli.spend import first_day
from council.doors.web import examples
from council.doors.web.answers import Answer
from council.doors.web.bodies import InHall
from council.doors.web.examples import shown
from council.doors.web.views import whole
from council.errors import UsageError
from council.events import Entry
from council.minutes import Minutes
from council.render.mermaid import mermaid

router = APIRouter(prefix="/api", tags=["history"])
Word = Annotated[str | None, Query(max_length=200)]
Format = Literal["md", "json", "sarif", "junit", "github", "html", "mermaid"]
TYPES = {"json": "application/json", "sarif": "application/sarif+json", "html": "text/html"}  # others are plain text
REPORT = examples.shown(examples.REPORT, 404) | {
    200: {"description": "The report.", "content": {"text/plain": {"example": "## Council Verdict"}, "application/json": {"example": examples.REPORT}}}
}  # fmt: skip
PACKET = {
    "receipt": {"files": 1, "bytes": 5120, "tokens": 1707, "skipped": []},
    "dossier": {"files": [{"path": "core.py"}]},
}
SPEND = {
    "schema": "council.spend/1",
    "since": "2026-11-15",
    "total": {"usd": 0.29},
    "days": [],
    "members": [],
    "runs": [],
}


@router.get("/runs", responses=shown({"runs": [examples.ROW], "more": False}))
async def runs(
    hall: InHall, task: Word = None, verdict: Word = None, protocol: Word = None, status: Word = None, q: Word = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50, before: Annotated[Word, Query(description="Last run of the previous page.")] = None,
) -> Answer:  # fmt: skip
    """List runs: unfinished first, then newest."""
    params = {"task": task, "verdict": verdict, "protocol": protocol, "status": status, "q": q}
    filters = {name: value for name, value in params.items() if value}
    return Answer(await history(hall.main.store, filters, await hall.known(before) if before else None, limit))


@router.get("/runs/{run}", responses=shown(examples.WHOLE, 404))
async def one_run(run: str, hall: InHall) -> Answer:
    """Return a run: report, plan, minutes and cost."""
    run_state = await hall.standing(run)
    return Answer(whole(await hall.main.minutes(run), run_state))


@router.get("/runs/{run}/report", responses=REPORT)
async def report(run: str, hall: InHall, format: Format = "md") -> Response:
    """Return the report in a format. HTML is a download, so that no page with model text opens on this origin."""
    entries = await hall.main.entries(run)
    minutes = Minutes.fold(entries)
    text = await asyncio.to_thread(_as, minutes, entries, format)
    headers = {"content-disposition": f'attachment; filename="{minutes.run}.html"'} if format == "html" else {}
    return Response(text.encode("utf-8", "replace"), media_type=TYPES.get(format, "text/plain"), headers=headers)


def _as(minutes: Minutes, entries: Sequence[Entry], form: str) -> str:
    return mermaid(minutes) if form == "mermaid" else rendered(minutes, form, entries)


@router.get("/runs/{run}/attempts", responses=shown([examples.ATTEMPT], 404))
async def attempts(
    run: str, hall: InHall, key: Annotated[str, Query(max_length=400, description="Only attempts of this step.")] = ""
) -> Answer:
    """List every request as sent, with its result."""
    record = await hall.main.store.load(await hall.known(run))
    return Answer(await asyncio.to_thread(attempts_of, record, key))


@router.get("/runs/{run}/packet", responses=shown(PACKET, 404))
async def packet(run: str, hall: InHall) -> Answer:
    """Return the packet sent with the question: the receipt and the dossier of the first seat."""
    return Answer(packet_of(await hall.main.store.load(await hall.known(run))))


@router.get("/spend", responses=shown(SPEND))
async def spend(hall: InHall, since: Annotated[str, Query(max_length=40)] = "30d") -> Answer:
    """Return spending by day, member and run since a day (2026-11-15, today, 7d, all), and the rest of today's budget."""
    try:
        day = first_day(since, time.time())
    except click.UsageError as problem:
        raise UsageError(problem.format_message().removeprefix("--")) from None
    return Answer(await hall.main.spending(day))
