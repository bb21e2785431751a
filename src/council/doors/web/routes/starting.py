"""Routes to plan and start a run: protocols, members, roots, files, estimate, start."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query

from council import protocols
from council.convene import Convener
from council.convene.browsing import listed
from council.doctor import members, seating, warnings
from council.doors.web import examples
from council.doors.web.answers import Answer
from council.doors.web.bodies import EXAMPLE_RUN, InHall, Wish
from council.doors.web.examples import shown
from council.doors.web.wishes import planned
from council.errors import CouncilError
from council.planning import Material, Plan
from council.protocols import Protocol
from council.protocols.options import OPTIONS, DualOptions
from council.types import Json

router = APIRouter(prefix="/api", tags=["starting"])
SPOKEN_OF = "Which way should it be done?"  # names no file, to get a plan of each protocol
FILE = {"name": "core.py", "path": "src/core.py", "kind": "file", "bytes": 5120}
PROTOCOL = {
    "name": "adversarial", "summary": "draft independently, attack the leading draft, rule", "seats": ["alpha", "beta", "gamma"],
    "options": {"type": "object", "properties": {}}, "phases": [{"name": "draft", "calls": 3, "parallel": True}], "note": "",
}  # fmt: skip
MEMBERS = {
    "members": [{"member": "local:smollm2", "vendor": "local", "available": True, "needs": "", "context": 8192, "price": None}],
    "seats": [{"seat": "alpha", "member": "local:smollm2", "vendor": "local"}], "families": 1, "notices": [], "warnings": [],
    "rosters": [{"name": "board", "about": "", "seats": ["cfo", "coo"], "error": None}],
}  # fmt: skip


@router.get("/protocols", responses=shown([PROTOCOL]))
async def known_protocols(hall: InHall) -> Answer:
    """List the protocols with their seats, options and phases."""
    async with hall.convener() as convener:
        return Answer([await _described(protocols.find(name), convener) for name in protocols.known()])


async def _described(protocol: Protocol, convener: Convener) -> Json:
    options = (protocol.options or OPTIONS.get(protocol.name, DualOptions)).model_json_schema()
    row: Json = {"name": protocol.name, "summary": protocol.summary, "options": options}
    plan, note = await _example(protocol, convener)
    if plan is None:
        return row | {"seats": [seat.name for seat in protocol.seats], "phases": [], "note": note}
    return row | {
        "seats": [seat.name for seat in plan.roster.seats],
        "phases": list(plan.phases),
        "note": plan.refusal,
    }


async def _example(protocol: Protocol, convener: Convener) -> tuple[Plan | None, str]:
    """Plan the protocol with a sample question, or return why it cannot run."""
    try:
        return await convener.plan([SPOKEN_OF], protocol=protocol.name, material=Material(match=False)), ""
    except CouncilError as error:
        return None, str(error)


@router.get("/members", responses=shown(MEMBERS))
async def who_can_sit(hall: InHall) -> Answer:
    """List the members with prices, the current seating, and the named rosters."""
    async with hall.convener() as convener:
        rows = members(convener, prices=True)
        rosters = [_roster(row) for row in convener.rosters()]
        return Answer({"members": rows, **seating(convener), "warnings": warnings(convener), "rosters": rosters})


def _roster(row: Json) -> Json:
    return {
        "name": row["name"],
        "about": row["about"],
        "seats": [seat["name"] for seat in row["seats"]],
        "error": row["error"],
    }


@router.get("/roots", responses=shown([{"name": "shop", "path": "/srv/shop"}]))
async def roots(hall: InHall) -> Answer:
    """List the folders whose files may be named; the first is the default."""
    return Answer([{"name": name, "path": str(path)} for name, path in hall.roots.items()])


@router.get("/files", responses=shown([FILE]))
async def files(hall: InHall, root: str | None = None, path: Annotated[str, Query(max_length=4096)] = "") -> Answer:
    """List a folder of a root, without files that hold secrets."""
    return Answer(await asyncio.to_thread(listed, hall.root(root), path))


@router.post("/estimate", responses=shown(examples.PLAN, 415))
async def estimate(wish: Wish, hall: InHall) -> Answer:
    """Return the plan with its cost estimate. Spends nothing."""
    async with planned(wish, hall) as (_, plan):
        return Answer(plan.as_json())


@router.post("/runs", status_code=201, responses=shown({"run": EXAMPLE_RUN, "plan": examples.PLAN}, 415, status=201))
async def start(wish: Wish, hall: InHall) -> Answer:
    """Start a run. It is queued at once and runs in the local worker."""
    async with planned(wish, hall) as (convener, plan):
        run = await convener.enqueue(plan)
    hall.call_worker(run)
    return Answer({"run": run, "plan": plan.as_json()}, 201)
