"""Routes that stream the events of runs, whichever process owns them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query

from council.doors.web.bodies import InHall
from council.doors.web.examples import streamed
from council.doors.web.hall import Hall
from council.doors.web.sse import EventStream
from council.errors import UsageError
from council.settings import quoted

router = APIRouter(prefix="/api", tags=["events"])
LastSeen = Annotated[str | None, Header(alias="Last-Event-ID")]
FARTHEST = 1 << 53


@router.get("/runs/{run}/events", status_code=200, response_class=EventStream, responses=streamed(404))
async def events(
    run: str, hall: InHall, since: Annotated[int, Query(ge=0, le=FARTHEST)] = 0, last_seen: LastSeen = None
) -> EventStream:
    """Stream the stored events after `since`, then new ones until the run ends."""
    return EventStream(hall.feeds, [(await _heard(run, hall), _number(last_seen) if last_seen else since)])


@router.get("/stream", status_code=200, response_class=EventStream, responses=streamed(404))
async def stream(
    hall: InHall,
    run: Annotated[list[str], Query(min_length=1, max_length=100)],
    since: str = "",
    last_seen: LastSeen = None,
) -> EventStream:
    """Stream several runs at once; every event names its run."""
    known = {name: await _heard(name, hall) for name in run}
    places = {known.get(name, name): seq for name, seq in _places(last_seen or since)}
    return EventStream(
        hall.feeds, [(name, places.get(name, 0)) for name in dict.fromkeys(known.values())], several=True
    )


async def _heard(run: str, hall: Hall) -> str:
    """Return the run id, and make sure that a detached run has a worker."""
    run = await hall.known(run)
    await hall.see_to(run)
    return run


def _places(said: str) -> list[tuple[str, int]]:
    """Parse positions such as `A:12,B:3`."""
    parts = [part.strip().rpartition(":") for part in said.split(",") if part.strip()]
    return [(run, _number(seq)) for run, _, seq in parts]


def _number(said: str) -> int:
    if not (said.isascii() and said.isdigit() and len(said) < 16):
        raise UsageError(f"{quoted(said[:40])} is not a stream position: send the last `id:`, or omit it")
    return int(said)
