"""FastAPI app with every route behind one guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException

from council.doors.web import responses, run_routes, start_routes
from council.doors.web.app_state import AppState
from council.doors.web.guard import Guard
from council.errors import CouncilError

ROUTERS = (
    start_routes.start_router,
    run_routes.history_router,
    run_routes.action_router,
    run_routes.event_router,
    start_routes.page_router,
)
NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def create_app(app_state: AppState, token: str, hosts: tuple[str, ...], port: int) -> Guard:
    """Return the app of `council serve`. `hosts` are the accepted host names."""
    app = FastAPI(
        title="Council", version="1", description="Start councils, follow them, and read their reports.",
        openapi_url="/api/openapi.json", docs_url=None, redoc_url=None, redirect_slashes=False,
        telemetry=NO_TELEMETRY, lifespan=_lifespan, dependencies=[Depends(HTTPBearer(auto_error=False))],
    )  # fmt: skip
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(CouncilError, responses.on_council_error)
    app.add_exception_handler(HTTPException, responses.on_http_error)
    app.add_exception_handler(RequestValidationError, responses.on_validation_error)
    app.add_exception_handler(Exception, responses.on_internal_error)
    app.state.app_state = app_state
    app.state.guard = Guard(app, token, tuple(f"{host}:{port}" for host in hosts))
    guard: Guard = app.state.guard
    return guard


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with app.state.app_state.run_worker():
        yield
        await app.state.app_state.close()
