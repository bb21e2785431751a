"""`council mcp`: MCP server for coding agents and other MCP clients."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from council.errors import UsageError
from council.settings import quote_value

if TYPE_CHECKING:
    from council.doors.mcp.desk import CouncilTools


def serve(
    folder: str | None = None, *, config: str | None = None, max_cost: float | None = None, allow_unpriced: bool = False,
    http: bool = False, port: int = 0,
) -> int:  # fmt: skip
    """Serve until the client disconnects. Import the SDK here so that other commands start without it."""
    if find_spec("mcp") is None:
        raise UsageError("`council mcp` needs the MCP SDK, which is not installed: pip install 'council[mcp]'")
    from council.doors.bounds import Owner
    from council.doors.mcp.desk import CouncilTools

    if port and not http:
        raise UsageError(f"--port {port} needs --http: add --http, or drop --port")
    place = Path(folder or ".").expanduser().resolve()
    if not place.is_dir():
        raise UsageError(f"--folder {quote_value(folder)} does not exist or is not a folder: pass an existing folder")
    desk = CouncilTools(
        Owner(place, dict(os.environ), Path(config).resolve() if config else None, max_cost, allow_unpriced)
    )
    if not http:
        _prepare_stdio()
    asyncio.run(_run_server(desk, http, port))
    return 0


def _prepare_stdio() -> None:
    """Make Ctrl-C exit at once, and print a hint on a terminal. Runs belong to the worker, so none is lost."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.stdin.isatty():
        print(
            "council mcp is waiting for an MCP client on standard input; docs/mcp.md shows how to add it to one",
            file=sys.stderr,
        )


async def _run_server(council_tools: CouncilTools, http: bool, port: int) -> None:
    from council.doors.mcp.speaking import run_stdio

    try:
        if not http:
            return await run_stdio(council_tools)
        from council.doors.mcp.http import run_http

        await run_http(council_tools, port)
    finally:
        await council_tools.close()
