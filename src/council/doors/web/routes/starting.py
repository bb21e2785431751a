"""Before and at the start of a run: what it would be, and that it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter

from council.convene import Convener
from council.doors.web.answers import Answer
from council.doors.web.bodies import InHall, Wish
from council.doors.web.hall import Hall
from council.planning import Material, Plan

router = APIRouter(prefix="/api", tags=["starting"])


@router.post("/estimate")
async def estimate(wish: Wish, hall: InHall) -> Answer:
    """What a council would do and cost: the plan object. Spends nothing."""
    async with _planned(wish, hall) as (_, plan):
        return Answer(plan.as_json())


@router.post("/runs", status_code=201)
async def start(wish: Wish, hall: InHall) -> Answer:
    """Convene a council. It is queued at once, and the local worker holds it, whoever goes away."""
    async with _planned(wish, hall) as (convener, plan):
        run = await convener.enqueue(plan)
    hall.call_worker(run)
    return Answer({"run": run, "plan": plan.as_json()}, 201)


@asynccontextmanager
async def _planned(wish: Wish, hall: Hall) -> AsyncIterator[tuple[Convener, Plan]]:
    folder = hall.root(wish.root)
    async with hall.convener(folder) as convener:
        yield convener, await convener.plan([wish.question], wish.options, protocol=wish.protocol, material=Material())
