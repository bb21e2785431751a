"""MCP server with the five tools. Every error is one line for the model, never a traceback."""

from __future__ import annotations

import json
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from council.doors.bounds import own_root, roots_from
from council.doors.mcp.asking import Caller, Context, Needed
from council.doors.mcp.desk import Desk
from council.doors.mcp.tools import tool_list, tool_named
from council.doors.mcp.waiting import Guest
from council.errors import CouncilError
from council.render.clean import clean
from council.types import Json

Answer = types.CallToolResult | types.InputRequiredResult
INSTRUCTIONS = (
    "Several language models deliberate on one question and return one answer with a confidence. "
    "It takes a minute or more and costs money; council_estimate shows how much. Call council_start, then council_wait "
    "until done, then council_result."
)


def server_of(desk: Desk) -> Server[Any]:
    tools = types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in tool_list()])

    async def listed(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return tools

    async def called(context: Context, params: types.CallToolRequestParams) -> Answer:
        return await _answer(desk, context, params)

    return Server(
        "council", version=_version(), title="Council", instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called
    )  # fmt: skip


async def over_stdio(desk: Desk) -> None:
    """Serve until the client closes the pipe. Standard output carries only protocol messages."""
    server = server_of(desk)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _answer(desk: Desk, context: Context, params: types.CallToolRequestParams) -> Answer:
    try:
        tool = tool_named(params.name)
        given = tool.read(params.name, params.arguments or {})
        guest = await _met(desk, Caller(context, params.input_responses or {}))
        return _done(await desk.serve(params.name, given, guest))
    except Needed as needed:
        return types.InputRequiredResult(input_requests=needed.requests)
    except CouncilError as error:
        return _failed(str(error))
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        return _failed(f"internal error ({what}): report it")


async def _met(desk: Desk, caller: Caller) -> Guest:
    """Return the client's context; a client without roots gets the folder the server was started in."""
    started = time.monotonic()

    async def tell(line: str) -> None:
        await caller.context.session.report_progress(time.monotonic() - started, None, clean(line))

    declared = await caller.roots()
    roots = roots_from(declared) if declared else own_root(desk.owner)
    return Guest(roots, tell, caller if caller.has_forms else None)


def _done(value: Json) -> types.CallToolResult:
    text = json.dumps(value, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=value)


def _failed(line: str) -> types.CallToolResult:
    text = " ".join(clean(line).split())
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def _version() -> str:
    try:
        return version("council")
    except PackageNotFoundError:  # run from the source tree
        return ""
