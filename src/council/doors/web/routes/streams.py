"""Routes that stream the events of runs, whichever process owns them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query

from council.doors.web.bodies import AppStateDep
from council.doors.web.examples import stream_responses
from council.doors.web.hall import AppState
from council.doors.web.sse import EventStream
from council.errors import UsageError
from council.settings import quote_value

router = APIRouter(prefix="/api", tags=["events"])
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID")]
MAX_SEQ = 1 << 53


@router.get("/runs/{run}/events", status_code=200, response_class=EventStream, responses=stream_responses(404))
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


@router.get("/stream", status_code=200, response_class=EventStream, responses=stream_responses(404))
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
