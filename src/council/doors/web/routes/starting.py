"""Routes to plan and start a run: protocols, members, roots, files, estimate, start."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query

from council import protocols
from council.convene import Convener
from council.convene.browsing import list_folder
from council.doctor import list_members, list_warnings, preview_seating
from council.doors.web import examples
from council.doors.web.answers import ApiResponse
from council.doors.web.bodies import EXAMPLE_RUN, AppStateDep, RunRequest
from council.doors.web.examples import example_responses
from council.doors.web.wishes import plan_request
from council.errors import CouncilError
from council.planning import Material, Plan
from council.protocols import Protocol
from council.protocols.options import OPTIONS, NoOptions
from council.types import Json

router = APIRouter(prefix="/api", tags=["starting"])
SAMPLE_QUESTION = "Which way should it be done?"  # names no file, to get a plan of each protocol
EXAMPLE_FILE = {"name": "core.py", "path": "src/core.py", "kind": "file", "bytes": 5120}
EXAMPLE_PROTOCOL = {
    "name": "adversarial", "summary": "draft independently, attack the leading draft, rule", "seats": ["alpha", "beta", "gamma"],
    "options": {"type": "object", "properties": {}}, "phases": [{"name": "draft", "calls": 3, "parallel": True}], "note": "",
}  # fmt: skip
EXAMPLE_MEMBERS = {
    "members": [{"member": "local:smollm2", "vendor": "local", "available": True, "needs": "", "context": 8192, "price": None}],
    "seats": [{"seat": "alpha", "member": "local:smollm2", "vendor": "local"}], "families": 1, "notices": [], "warnings": [],
    "rosters": [{"name": "board", "about": "", "seats": ["cfo", "coo"], "error": None}],
}  # fmt: skip


@router.get("/protocols", responses=example_responses([EXAMPLE_PROTOCOL]))
async def get_protocols(app_state: AppStateDep) -> ApiResponse:
    """List the protocols with their seats, options and phases."""
    async with app_state.open_convener() as convener:
        return ApiResponse(
            [await _describe_protocol(protocols.get_protocol(name), convener) for name in protocols.protocol_names()]
        )


async def _describe_protocol(protocol: Protocol, convener: Convener) -> Json:
    options = (protocol.options or OPTIONS.get(protocol.name, NoOptions)).model_json_schema()
    row: Json = {"name": protocol.name, "summary": protocol.summary, "options": options}
    plan, note = await _plan_sample(protocol, convener)
    if plan is None:
        return row | {"seats": [seat.name for seat in protocol.seats], "phases": [], "note": note}
    return row | {
        "seats": [seat.name for seat in plan.roster.seats],
        "phases": list(plan.phases),
        "note": plan.refusal,
    }


async def _plan_sample(protocol: Protocol, convener: Convener) -> tuple[Plan | None, str]:
    """Plan the protocol with a sample question, or return why it cannot run."""
    try:
        return await convener.plan([SAMPLE_QUESTION], protocol=protocol.name, material=Material(match=False)), ""
    except CouncilError as error:
        return None, str(error)


@router.get("/members", responses=example_responses(EXAMPLE_MEMBERS))
async def get_members(app_state: AppStateDep) -> ApiResponse:
    """List the members with prices, the current seating, and the named rosters."""
    async with app_state.open_convener() as convener:
        rows = list_members(convener, prices=True)
        rosters = [_describe_roster(row) for row in convener.rosters()]
        return ApiResponse(
            {"members": rows, **preview_seating(convener), "warnings": list_warnings(convener), "rosters": rosters}
        )


def _describe_roster(row: Json) -> Json:
    return {
        "name": row["name"],
        "about": row["about"],
        "seats": [seat["name"] for seat in row["seats"]],
        "error": row["error"],
    }


@router.get("/roots", responses=example_responses([{"name": "shop", "path": "/srv/shop"}]))
async def get_roots(app_state: AppStateDep) -> ApiResponse:
    """List the folders whose files may be named; the first is the default."""
    return ApiResponse([{"name": name, "path": str(path)} for name, path in app_state.roots.items()])


@router.get("/files", responses=example_responses([EXAMPLE_FILE]))
async def get_files(
    app_state: AppStateDep, root: str | None = None, path: Annotated[str, Query(max_length=4096)] = ""
) -> ApiResponse:
    """List a folder of a root, without files that hold secrets."""
    return ApiResponse(await asyncio.to_thread(list_folder, app_state.find_root(root), path))


@router.post("/estimate", responses=example_responses(examples.EXAMPLE_PLAN, 415))
async def estimate_run(body: RunRequest, app_state: AppStateDep) -> ApiResponse:
    """Return the plan with its cost estimate. Spends nothing."""
    async with plan_request(body, app_state) as (_, plan):
        return ApiResponse(plan.as_json())


@router.post(
    "/runs",
    status_code=201,
    responses=example_responses({"run": EXAMPLE_RUN, "plan": examples.EXAMPLE_PLAN}, 415, status=201),
)
async def start_run(body: RunRequest, app_state: AppStateDep) -> ApiResponse:
    """Start a run. It is queued at once and runs in the local worker."""
    async with plan_request(body, app_state) as (convener, plan):
        run = await convener.enqueue(plan)
    app_state.call_worker(run)
    return ApiResponse({"run": run, "plan": plan.as_json()}, 201)
