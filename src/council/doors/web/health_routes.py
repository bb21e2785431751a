"""Health and metrics of the server. They need no token of a user and are no part of the API."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from council.doors.web.access import get_app_state
from council.errors import UsageError
from council.runs.metrics import HEALTH_PATH, METRICS_PATH, READY_PATH, is_store_ready, render_metrics


async def get_health(request: Request) -> Response:
    return PlainTextResponse("ok\n")


async def get_readiness(request: Request) -> Response:
    if await is_store_ready(get_app_state(request).store):
        return PlainTextResponse("ready\n")
    return PlainTextResponse("not ready\n", status_code=503)


async def get_metrics(request: Request) -> Response:
    try:
        body, content_type = await render_metrics(get_app_state(request).store)
    except UsageError as error:
        return PlainTextResponse(f"{error}\n", status_code=501)
    return Response(body, headers={"Content-Type": content_type})


HEALTH_ROUTES = [
    Route(HEALTH_PATH, get_health, include_in_schema=False),
    Route(READY_PATH, get_readiness, include_in_schema=False),
    Route(METRICS_PATH, get_metrics, include_in_schema=False),
]
