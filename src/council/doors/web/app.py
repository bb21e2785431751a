"""FastAPI app with every route behind one guard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from itertools import chain

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from fastapi.telemetry import TelemetryConfig
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route

from council.doors.web import (
    access,
    chat_routes,
    eval_routes,
    models,
    response_routes,
    responses,
    run_routes,
    setup_routes,
    start_routes,
    upload_routes,
)
from council.doors.web.app_state import AppState
from council.doors.web.guard import Guard
from council.doors.web.health_routes import HEALTH_ROUTES
from council.errors import CouncilError
from council.types import Json

ROUTERS = (
    start_routes.start_router,
    upload_routes.upload_router,
    setup_routes.setup_router,
    run_routes.history_router,
    eval_routes.eval_router,
    run_routes.action_router,
    run_routes.event_router,
    chat_routes.chat_router,
    response_routes.response_router,
    start_routes.page_router,
)
EVENT_STREAM = "text/event-stream"
MIN_GZIP_BYTES, GZIP_LEVEL = 1024, 5  # event streams are never compressed
TAGS = [
    {"name": "starting", "description": "Plan and start runs."},
    {"name": "history", "description": "Read runs."},
    {"name": "acting", "description": "Act on a run."},
    {"name": "events", "description": "Follow runs."},
    {"name": "chat", "description": "Use a council as a model, with any client of the OpenAI API."},
    {"name": "setup", "description": "Set up keys and search on the machine of the server."},
    {"name": "session", "description": "Check a token."},
]
NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def create_app(app_state: AppState, token: str, origins: Mapping[str, str]) -> Guard:
    """Return the app of `council serve`. `origins` has the accepted Host headers, each with the origin of its page."""
    app = _make_api()
    app.add_middleware(GZipMiddleware, minimum_size=MIN_GZIP_BYTES, compresslevel=GZIP_LEVEL)
    app.add_exception_handler(CouncilError, responses.on_council_error)
    app.add_exception_handler(HTTPException, responses.on_http_error)
    app.add_exception_handler(RequestValidationError, responses.on_validation_error)
    app.add_exception_handler(Exception, responses.on_internal_error)
    app.openapi = describe_api  # type: ignore[method-assign]
    app.state.app_state = app_state
    app.state.find_methods = find_methods
    app.state.guard = guard = Guard(app, token, origins, app_state.find_user, find_methods)
    return guard


def find_methods(path: str) -> list[str]:
    """Return the methods that the routes of a path accept; none if the path is unknown."""
    routes = chain(*(router.routes for router in ROUTERS), HEALTH_ROUTES)
    known = {
        method
        for route in routes
        if isinstance(route, Route) and route.path_regex.match(path)
        for method in route.methods or ()
    }
    if "GET" in known:
        known.add("HEAD")
    return sorted(known | {"OPTIONS"}) if known else []


def _make_api() -> FastAPI:
    app = FastAPI(
        title="Council",
        version="1",
        description="Start councils, follow them, and read their reports.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
        lifespan=_lifespan,
        dependencies=[Depends(HTTPBearer(auto_error=False)), Depends(access.check_scope)],
        generate_unique_id_function=lambda route: route.name,
    )
    for router in ROUTERS:
        app.include_router(router)
    app.router.routes.extend(HEALTH_ROUTES)
    return app


@cache
def describe_api() -> Json:
    """Return the OpenAPI description, with the events of the streams.

    It depends on the routes only, so it is made once.
    """
    app = _make_api()
    described = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, tags=TAGS
    )
    for route in chain.from_iterable(router.routes for router in ROUTERS):
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                _correct_responses(described["paths"][route.path_format][method.lower()]["responses"], route)
    kinds: list[type[BaseModel]] = [*models.EVENT_BY_TAG.values(), models.StreamEnd]
    template = "#/components/schemas/{model}"
    _, events = models_json_schema([(kind, "serialization") for kind in kinds], ref_template=template)
    schemas: Json = described["components"]["schemas"]
    schemas |= events["$defs"]
    del schemas["HTTPValidationError"], schemas["ValidationError"]  # of FastAPI, which are not sent
    references = {tag: template.format(model=model.__name__) for tag, model in models.EVENT_BY_TAG.items()}
    schemas["RunEvent"] = {
        "title": "RunEvent",
        "description": "An event of a run.",
        "oneOf": [{"$ref": reference} for reference in references.values()],
        "discriminator": {"propertyName": "type", "mapping": references},
    }
    return described


def _correct_responses(described: Json, route: APIRoute) -> None:
    """Correct what FastAPI describes: its own errors, the type of errors of streams, a schema of whole streams, and
    examples without nulls.
    """
    if 422 not in route.responses:
        described.pop("422", None)
    for status, about in route.responses.items():
        contents = described[str(status)].get("content", {})
        if int(status) >= 400 and EVENT_STREAM in contents:
            contents.setdefault("application/json", {}).update(contents.pop(EVENT_STREAM))
        if EVENT_STREAM in contents:
            contents[EVENT_STREAM].pop("schema", None)
        for kind, content in about.get("content", {}).items():
            contents[kind]["example"] = content["example"]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app_state: AppState = app.state.app_state
    try:
        async with app_state.owner.run_worker(app_state.shared_convener):
            await app_state.forget_requests()
            app_state.has_started = True
            removal = asyncio.create_task(app_state.uploads.keep_removing())
            try:
                yield
            finally:
                removal.cancel()
    except CouncilError as error:
        if not app_state.has_started:
            app_state.start_error = error
        raise
    finally:
        await app_state.close()
