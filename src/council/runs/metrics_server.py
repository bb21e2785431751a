"""Small server of a worker for its health and its metrics."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from council.errors import UsageError
from council.runs.metrics import (
    HEALTH_PATH,
    METRICS_PATH,
    READY_PATH,
    TOKEN_VARIABLE,
    may_read_metrics,
    render_metrics,
    require_package,
)
from council.store.run_store import RunStore

LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def serve_metrics(
    find_store: Callable[[], RunStore | None], host: str, port: int, is_ready: Callable[[], bool]
) -> AsyncIterator[int]:
    """Serve health and metrics inside the block. Yield the port. There is no store until it is open."""
    require_package()

    async def get_health(request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def get_readiness(request: web.Request) -> web.Response:
        return web.Response(text="ready\n") if is_ready() else web.Response(status=503, text="not ready\n")

    async def get_metrics(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        if not may_read_metrics(headers, request.remote or "", os.environ):
            return web.Response(status=401, text=f"send Authorization: Bearer with the value of {TOKEN_VARIABLE}\n")
        if (store := find_store()) is None:
            return web.Response(status=503, text="the run store is not open yet\n")
        body, content_type = await render_metrics(store)
        return web.Response(body=body, headers={"Content-Type": content_type})

    app = web.Application()
    app.add_routes(
        [web.get(HEALTH_PATH, get_health), web.get(READY_PATH, get_readiness), web.get(METRICS_PATH, get_metrics)]
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise UsageError(
                f"--metrics-port {port} of {host} cannot be used ({error.strerror}): choose another one"
            ) from error
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
