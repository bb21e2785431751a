"""Routes that act on a run: cancel, resume, fork, and answer its questions."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fastapi import APIRouter

from council.convene import Convener
from council.doors import bounds
from council.doors.web.answers import Answer
from council.doors.web.bodies import EXAMPLE_RUN, Fork, InHall, Nothing, Reply
from council.doors.web.examples import shown
from council.doors.web.hall import Hall
from council.errors import RunOwned
from council.record import Record
from council.types import Json

router = APIRouter(prefix="/api/runs/{run}", tags=["acting"])
LOOKS, LOOK = 30, 0.1  # attempts and seconds between them
STANDS = {"run": EXAMPLE_RUN, "status": "queued"}
ASK: Json = {
    "run": EXAMPLE_RUN, "key": "draft/gamma", "seat": "gamma", "prompt": "…", "schema": None, "at": 1794742800.0, "fields": [],
}  # fmt: skip


@router.post("/cancel", status_code=202, responses=shown(STANDS, 404, 415, status=202))
async def cancel(run: str, hall: InHall, body: Nothing | None = None) -> Answer:
    """Stop a run. Its answers are kept, and it can be resumed."""
    run = await hall.known(run)
    async with hall.convener() as convener:
        await convener.cancel(run)
    return await _stands(run, hall)


@router.post("/resume", status_code=202, responses=shown(STANDS, 404, 409, 415, status=202))
async def resume(run: str, hall: InHall, body: Nothing | None = None) -> Answer:
    """Queue an unfinished run for the local worker, which continues where it stopped."""
    record = await hall.main.store.load(await hall.known(run))
    async with hall.convener(max_cost=_cap(record, hall)) as convener:
        await _requeued(record.run, convener, hall)
    await hall.see_to(record.run)
    return await _stands(record.run, hall)


@router.post("/fork", status_code=202, responses=shown({"run": EXAMPLE_RUN}, 404, 409, 415, status=202))
async def fork(run: str, wish: Fork, hall: InHall) -> Answer:
    """Start a new run that reuses everything before a phase, optionally with other members."""
    record = await hall.main.store.load(await hall.known(run))
    bounds.check_members(wish.seats.values(), hall.owner.settings(Path(record.folder)))
    async with hall.convener(max_cost=_cap(record, hall)) as convener:
        forked = await convener.enqueue_fork(record.run, phase=wish.from_, seats=wish.seats)
    hall.call_worker(forked)
    return Answer({"run": forked}, 202)


@router.get("/asks", responses=shown([ASK], 404))
async def asks(run: str, hall: InHall) -> Answer:
    """List the open questions to people, with their form fields."""
    return Answer(await hall.main.open_asks(await hall.known(run)))


@router.post("/asks/{key:path}", responses=shown({"run": EXAMPLE_RUN, "key": "draft/gamma", "taken": True}, 404, 415))
async def answer(run: str, key: str, reply: Reply, hall: InHall) -> Answer:
    """Answer a question to a person: text, or JSON where fields are asked for. The first answer counts."""
    run = await hall.known(run)
    return Answer({"run": run, "key": key, "taken": await hall.main.answer(run, key, reply.answer)})


async def _requeued(run: str, convener: Convener, hall: Hall) -> None:
    """Requeue the run, retrying while the process that closed it still writes the report."""
    for left in range(LOOKS, -1, -1):
        try:
            await convener.requeue(run)
        except RunOwned:
            if left == 0 or (await hall.main.standing(run))["status"] in ("queued", "running"):
                raise
            await asyncio.sleep(LOOK)
        else:
            return


def _cap(record: Record, hall: Hall) -> float | None:
    """Return the lower of the run's cap and this server's cap."""
    caps = [cap for cap in (record.setup.get("max_cost"), hall.owner.max_cost) if cap is not None]
    return min(caps, default=None)


async def _stands(run: str, hall: Hall) -> Answer:
    return Answer({"run": run, "status": (await hall.standing(run))["status"]}, 202)
