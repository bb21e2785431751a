"""The page, and the routes with which a run is planned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from council.doors import limits
from council.doors.limits import list_folder, preview_file, search_files
from council.doors.web import access, models, page_files, schemas
from council.doors.web.access import AppStateDep, KeyHeader, UserDep, make_key
from council.doors.web.app_state import AppState
from council.doors.web.guard import Guard
from council.doors.web.responses import REPEATED, ApiResponse, Forbidden, error_response
from council.doors.web.schemas import EXAMPLE_RUN, EmptyRequest, RunRequest, SessionRequest, example_responses
from council.engine.plan_object import PlanObject
from council.errors import UsageError
from council.flags import negatable_options
from council.packet.attachments import Content
from council.planning.plan import Material, Plan
from council.protocols.common.perspectives import list_presets, load_preset
from council.protocols.common.rosters import DescribedRoster
from council.runs.doctor import list_members, list_protocols, list_warnings, preview_seating
from council.runs.service import Convener
from council.runs.tokens import User
from council.settings.config_files import config_folder

page_router = APIRouter()


@page_router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def get_page(request: Request) -> Response:
    return page_files.respond("index.html", request)


@page_router.api_route("/page/{name:path}", methods=["GET", "HEAD"], include_in_schema=False)
async def get_page_file(name: str, request: Request) -> Response:
    return page_files.respond(name, request)


@page_router.api_route("/docs", methods=["GET", "HEAD"], include_in_schema=False)
async def get_docs(request: Request) -> Response:
    """Serve the description of the API for people. It needs no token; what it shows does."""
    return page_files.respond("docs.html", request)


@page_router.post(
    "/api/session",
    tags=["session"],
    response_model=models.Session,
    responses=example_responses({"session": "open", "user": None, "scope": "admin"}, has_body=True),
)
async def open_session(body: SessionRequest, request: Request) -> ApiResponse:
    """Check a token, or exchange a one-time code for one.

    The token belongs in the `Authorization` header of every request.
    """
    guard: Guard = request.app.state.guard
    token = guard.token if body.code and guard.codes.redeem(body.code) else body.token
    if not (user := await guard.identify(token)):
        field, what = ("code", "code, or one that was used") if body.code else ("token", "token")
        line = f"wrong {what}: open the address of the server with its token"
        return error_response(401, "unauthorized", line, field)
    about = {"session": "open", "user": user.name or None, "scope": user.scope}
    return ApiResponse(about | ({"token": token} if body.code else {}))


@page_router.post(
    "/api/codes",
    tags=["session"],
    status_code=201,
    response_model=models.SessionCode,
    responses=example_responses({"code": "…"}, status=201, has_body=True),
    openapi_extra=schemas.NEEDS_BODY,
)
async def create_code(request: Request, user: UserDep, body: EmptyRequest | None = None) -> ApiResponse:
    """Create a one-time code with which a page gets the token of the server. Only for the owner."""
    if user.name:
        raise Forbidden("only the owner of the server can create a code: use the token of the server")
    guard: Guard = request.app.state.guard
    return ApiResponse({"code": guard.codes.create()}, 201)


VERBS = ("validate", "brainstorm", "research")


@asynccontextmanager
async def plan_request(request: RunRequest, app_state: AppState, user: User) -> AsyncIterator[tuple[Convener, Plan]]:
    """Yield the convener and the plan. A user's run reads no file of this machine."""
    material_folder = None if user.sees_all else app_state.empty_folder
    if material_folder:
        access.check_fields(root=request.root, targets=request.targets, look=request.look)
        if user.scope == "chat":
            access.check_fields(seats=request.seats, models=request.models, options=request.options)
        access.check_members([*request.seats.values(), *request.models])
    folder = app_state.find_root(request.root)
    roots = [material_folder] if material_folder else list(app_state.roots.values())
    after = await app_state.resolve_run(request.continues, user) if request.continues else None
    options = {name: value for name, value in request.options.items() if _is_filled(name, value)}
    limits.refuse_owner_options(request.options)
    limits.check_files(options, material_folder or folder, roots)
    uploaded = await asyncio.to_thread(app_state.uploads.read_contents, user.name, request.uploads)
    settings, flags = limits.check_request(app_state.owner, app_state.caps, folder, request, options)
    async with app_state.open_convener(folder, user, **flags) as convener:
        plan = await convener.plan(
            _question_words(request),
            options,
            protocol=request.protocol,
            material=_make_material(request, uploaded),
            after=after,
            folder=material_folder,
        )
        limits.check_members(plan.roster.member_names, settings)
        if material_folder:
            access.check_plan(plan)
        limits.check_search(plan.options.get("search"), options.get("search"), folder, roots, settings)
        yield convener, plan


def _question_words(request: RunRequest) -> list[str]:
    """Return the question; add the targets if it is empty or only a task."""
    question = request.question.strip()
    if question and question not in VERBS:
        return [question]
    if not question and not request.targets:
        raise UsageError("no question was given, nothing was sent: add a question or targets", field="question")
    return [*([question] if question else []), *request.targets]


def _make_material(request: RunRequest, uploaded: Sequence[Content]) -> Material:
    return Material(
        decisions=tuple(request.decisions),
        redact=request.redact,
        skip_secrets=request.skip_secrets,
        look=request.look,
        targets=tuple(request.targets),
        attachments=(
            *((file.name, limits.read_inline(file.name, file.text, file.data)) for file in request.attachments),
            *uploaded,
        ),
    )


def _is_filled(name: str, value: Any) -> bool:
    """Return whether a form field has a value; false is one only if the option is on by default."""
    return name in negatable_options() if value is False else limits.is_filled(value)


start_router = APIRouter(prefix="/api", tags=["starting"])
EXAMPLE_FILE = {"name": "core.py", "path": "src/core.py", "kind": "file", "bytes": 5120}
EXAMPLE_PROTOCOL = {
    "name": "adversarial",
    "summary": "draft independently, attack the leading draft, rule",
    "purpose": "Test a decision before it is made.",
    "use": "Decide",
    "tasks": ["ask"],
    "cost": None,
    "example": 'council adversarial "Shard or scale up?"',
    "seats": ["alpha", "beta", "gamma"],
    "options": {"type": "object", "properties": {}},
    "phases": [{"name": "draft", "calls": 3, "parallel": True}],
    "calls": {"min": 5, "max": 7},
    "package": "",
    "note": "",
}
EXAMPLE_MEMBERS = {
    "members": [
        {
            "member": "local:smollm2",
            "vendor": "local",
            "available": True,
            "needs": "",
            "context": 8192,
            "price": None,
            "line": None,
            "retired": None,
        }
    ],
    "protocol": "collaborative",
    "seats": [{"seat": "alpha", "member": "local:smollm2", "vendor": "local", "fallbacks": []}],
    "families": 1,
    "notices": [],
    "warnings": [],
    "rosters": [{"name": "board", "about": "", "seats": ["cfo", "coo"], "error": None}],
    "presets": [{"name": "security-audit", "about": ""}],
}
# Fields of a run that the form has its own controls for; the others are generated from their descriptions.
OWN_FIELDS = ("question", "protocol", "options", "targets", "root", "seats", "attachments", "uploads", "continues")
EXAMPLE_PREVIEW = {
    "path": "src/core.py",
    "bytes": 27,
    "tokens": 9,
    "text": "def core():\n    return 1\n",
    "cut": False,
    "secrets": [],
}


@start_router.get(
    "/protocols", response_model=list[models.ProtocolInfo], responses=example_responses([EXAMPLE_PROTOCOL])
)
async def get_protocols(app_state: AppStateDep) -> ApiResponse:
    """List the protocols with their seats, options and phases."""
    async with app_state.open_convener() as convener:
        return ApiResponse(await list_protocols(convener))


@start_router.get("/members", response_model=models.Members, responses=example_responses(EXAMPLE_MEMBERS))
async def get_members(app_state: AppStateDep, user: UserDep) -> ApiResponse:
    """List the members with prices, the current seating, and the named rosters and presets."""
    async with app_state.open_convener() as convener:
        rows = list_members(convener, prices=True)
        if not user.sees_all:
            rows = [row for row in rows if not row["member"].startswith("cli:")]
        rosters = [_describe_roster(row) for row in convener.rosters()]
        warnings = list_warnings(convener) if user.sees_all else []  # about the machine
        found = {"members": rows, **await preview_seating(convener), "warnings": warnings, "rosters": rosters}
        return ApiResponse(found | {"presets": _list_presets(convener)})


def _list_presets(convener: Convener) -> list[models.PresetInfo]:
    """Return the named sets of perspectives; one that cannot be read has its error instead of a description."""
    folder = config_folder(convener.env) / "presets"
    rows: list[models.PresetInfo] = []
    for name in list_presets(folder):
        try:
            rows.append({"name": name, "about": load_preset(name, folder).about})
        except UsageError as error:
            rows.append({"name": name, "about": str(error)})
    return rows


@start_router.get(
    "/options", response_model=models.OptionSchema, responses=example_responses({"type": "object", "properties": {}})
)
async def get_options(user: UserDep) -> ApiResponse:
    """Describe the options of every run as JSON Schema; those of a protocol are in /api/protocols."""
    schema, hidden = RunRequest.model_json_schema(), OWN_FIELDS if user.sees_all else (*OWN_FIELDS, "look")
    shown = {name: about for name, about in schema["properties"].items() if name not in hidden}
    return ApiResponse({"type": "object", "properties": shown})


def _describe_roster(row: DescribedRoster) -> models.RosterInfo:
    return {
        "name": row["name"],
        "about": row["about"],
        "seats": [seat["name"] for seat in row["seats"]],
        "error": row["error"],
    }


@start_router.get(
    "/roots", response_model=list[models.Root], responses=example_responses([{"name": "shop", "path": "/srv/shop"}])
)
async def get_roots(app_state: AppStateDep, user: UserDep) -> ApiResponse:
    """List the folders whose files may be named; the first is the default. Users have none."""
    roots = app_state.roots.items() if user.sees_all else ()
    return ApiResponse([{"name": name, "path": str(path)} for name, path in roots])


@start_router.get("/files", response_model=list[models.FileEntry], responses=example_responses([EXAMPLE_FILE]))
async def get_files(
    app_state: AppStateDep, root: str | None = None, path: Annotated[str, Query(max_length=4096)] = ""
) -> ApiResponse:
    """List a folder of a root, without files that hold secrets."""
    return ApiResponse(await asyncio.to_thread(list_folder, app_state.find_root(root), path))


@start_router.get(
    "/files/search",
    response_model=models.FoundFiles,
    responses=example_responses({"files": [EXAMPLE_FILE], "more": False}),
)
async def get_found_files(
    app_state: AppStateDep, q: Annotated[str, Query(min_length=1, max_length=200)], root: str | None = None
) -> ApiResponse:
    """Find files of a root by words of their path, without files that hold secrets."""
    return ApiResponse(await asyncio.to_thread(search_files, app_state.find_root(root), q))


@start_router.get("/files/text", response_model=models.FilePreview, responses=example_responses(EXAMPLE_PREVIEW))
async def get_file_text(
    app_state: AppStateDep, path: Annotated[str, Query(min_length=1, max_length=4096)], root: str | None = None
) -> ApiResponse:
    """Return the beginning of a text file of a root, with secrets masked, and where the packet gate finds them."""
    return ApiResponse(await asyncio.to_thread(preview_file, app_state.find_root(root), path))


@start_router.post(
    "/estimate", response_model=PlanObject, responses=example_responses(schemas.EXAMPLE_PLAN, 404, has_body=True)
)
async def estimate_run(body: RunRequest, app_state: AppStateDep, user: UserDep) -> ApiResponse:
    """Return the plan with its cost estimate. Spends nothing."""
    async with plan_request(body, app_state, user) as (_, plan):
        return ApiResponse(plan.as_json())


@start_router.post(
    "/runs",
    status_code=201,
    response_model=models.StartedRun,
    responses=example_responses(
        {"run": EXAMPLE_RUN, "id": EXAMPLE_RUN, "plan": schemas.EXAMPLE_PLAN},
        404,
        status=201,
        headers=schemas.REPLAYED_HEADER,
        has_body=True,
    ),
)
async def start_run(
    body: RunRequest, request: Request, app_state: AppStateDep, user: UserDep, idempotency_key: KeyHeader = None
) -> ApiResponse:
    """Start a run. It is queued at once and runs in the local worker."""
    key, plans = make_key(request, user, idempotency_key, body), list[PlanObject]()

    async def start() -> str:
        async with plan_request(body, app_state, user) as (convener, plan):
            plans.append(plan.as_json())
            return await convener.enqueue(plan, key)

    run, is_repeated = await app_state.run_once(key, start)
    if is_repeated:
        plan = (await app_state.shared_convener.minutes(run)).plan
        return ApiResponse({"run": run, "id": run, "plan": plan}, 201, REPEATED)
    app_state.call_worker(run)
    await asyncio.to_thread(app_state.uploads.remove, user.name, body.uploads)
    return ApiResponse({"run": run, "id": run, "plan": plans[-1]}, 201)
