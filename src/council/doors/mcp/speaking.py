"""MCP server with the five tools. Every error is one line for the model, never a traceback."""

from __future__ import annotations

import json
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from council.doors.bounds import default_root, parse_roots
from council.doors.mcp.asking import ClientCall, Context, InputRequired
from council.doors.mcp.desk import CouncilTools
from council.doors.mcp.tools import find_tool, list_tool_definitions
from council.doors.mcp.waiting import ClientContext
from council.errors import CouncilError
from council.render.clean import clean
from council.types import Json

ToolResponse = types.CallToolResult | types.InputRequiredResult
INSTRUCTIONS = (
    "Several language models deliberate on one question and return one answer with a confidence. "
    "It takes a minute or more and costs money; council_estimate shows how much. Call council_start, then council_wait "
    "until done, then council_result."
)


def make_server(council_tools: CouncilTools) -> Server[Any]:
    tools = types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in list_tool_definitions()])

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return tools

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> ToolResponse:
        return await _call_tool(council_tools, context, params)

    return Server(
        "council", version=_package_version(), title="Council", instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )  # fmt: skip


async def run_stdio(council_tools: CouncilTools) -> None:
    """Serve until the client closes the pipe. Standard output carries only protocol messages."""
    server = make_server(council_tools)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _call_tool(
    council_tools: CouncilTools, context: Context, params: types.CallToolRequestParams
) -> ToolResponse:
    try:
        tool = find_tool(params.name)
        given = tool.parse_arguments(params.name, params.arguments or {})
        guest = await _identify_client(council_tools, ClientCall(context, params.input_responses or {}))
        return _success_result(await council_tools.call(params.name, given, guest))
    except InputRequired as needed:
        return types.InputRequiredResult(input_requests=needed.requests)
    except CouncilError as error:
        return _error_result(str(error))
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        return _error_result(f"internal error ({what}): report it")


async def _identify_client(council_tools: CouncilTools, caller: ClientCall) -> ClientContext:
    """Return the client's context; a client without roots gets the folder the server was started in."""
    started = time.monotonic()

    async def report_progress(line: str) -> None:
        await caller.context.session.report_progress(time.monotonic() - started, None, clean(line))

    declared = await caller.roots()
    roots = parse_roots(declared) if declared else default_root(council_tools.owner)
    return ClientContext(roots, report_progress, caller if caller.has_forms else None)


def _success_result(value: Json) -> types.CallToolResult:
    text = json.dumps(value, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=value)


def _error_result(line: str) -> types.CallToolResult:
    text = " ".join(clean(line).split())
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def _package_version() -> str:
    try:
        return version("council")
    except PackageNotFoundError:  # run from the source tree
        return ""
