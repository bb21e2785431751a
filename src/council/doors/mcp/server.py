"""MCP server with the tools of Council. Every error is one line for the model, never a traceback."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from council.doors.http_server import LOOPBACK, listen, make_config
from council.doors.limits import Owner, default_root, parse_roots
from council.doors.mcp.elicitation import ClientCall, Context, InputRequired
from council.doors.mcp.handshake import INSTRUCTIONS, Handshake
from council.doors.mcp.resources import TEMPLATES, RunResources
from council.doors.mcp.results import ToolResult
from council.doors.mcp.tasks import EXTENSION, RunTasks, TaskParams, TaskUpdateParams, has_tasks
from council.doors.mcp.tools import find_tool, list_tool_definitions, name_tools
from council.doors.mcp.tools_impl import ClientContext, CouncilTools
from council.errors import CouncilError, message_for
from council.text_cleanup import clean, single_line
from council.types import Json
from council.version import __version__

MAX_ERROR_CHARS = 1_000
ToolResponse = types.CallToolResult | types.InputRequiredResult


def make_server(council_tools: CouncilTools) -> Server[Any]:
    tools = types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in list_tool_definitions()])

    resources, tasks, roots_of = (
        RunResources(council_tools),
        RunTasks(council_tools, _make_result),
        ClientRoots(council_tools),
    )

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return tools

    async def list_resources(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        roots = await roots_of.find_known(ClientCall(context, {}))
        return types.ListResourcesResult(resources=await resources.list_newest(roots))

    async def list_templates(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=TEMPLATES)

    async def read_resource(
        context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        try:
            roots = await roots_of.find(ClientCall(context, params.input_responses or {}))
            return types.ReadResourceResult(contents=[await resources.read(params.uri, roots)])
        except InputRequired as needed:
            return types.InputRequiredResult(input_requests=needed.requests)

    async def listen(
        context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        roots = await roots_of.find_known(ClientCall(context, {}))
        return await resources.listen(context, params.notifications, roots)

    server: Server[Any] = Server(
        "council",
        version=__version__,
        title="Council",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_list_resources=_with_errors(list_resources),
        on_list_resource_templates=list_templates,
        on_read_resource=_with_errors(read_resource),
        on_subscriptions_listen=_with_errors(listen),
    )
    # These may return a task, which the arguments of the constructor have no type for.
    server.add_request_handler(
        "tools/call", types.CallToolRequestParams, partial(_call_tool, council_tools, tasks, roots_of)
    )
    server.add_request_handler("tasks/get", TaskParams, _with_errors(tasks.get))
    server.add_request_handler("tasks/update", TaskUpdateParams, _with_errors(tasks.update))
    server.add_request_handler("tasks/cancel", TaskParams, _with_errors(tasks.cancel))
    server.extensions[EXTENSION] = {}
    return server


Params = TypeVar("Params")
Result = TypeVar("Result")


def _with_errors(
    handle: Callable[[Context, Params], Awaitable[Result]],
) -> Callable[[Context, Params], Awaitable[Result]]:
    """Return a handler whose errors are one line in the words of MCP."""

    async def handle_request(context: Context, params: Params) -> Result:
        try:
            return await handle(context, params)
        except CouncilError as error:
            raise MCPError(code=types.INVALID_PARAMS, message=_format_error(message_for(error, "http"))) from None

    return handle_request


async def run_stdio(council_tools: CouncilTools, handshake: Handshake) -> None:
    """Serve until the client closes the pipe. Standard output carries only protocol messages."""
    server = make_server(council_tools)
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)

    async def forward_input(pipe: Any) -> None:
        async with incoming:
            for line in handshake.lines:
                await incoming.send(_parse_message(line))
            async for message in pipe:
                await incoming.send(message)

    async def forward_output(pipe: Any) -> None:
        answered = handshake.answered
        async with pipe:
            async for message in outgoing:
                if answered is None or getattr(message.message, "id", None) != answered:
                    await pipe.send(message)
                else:
                    answered = None  # the handshake has sent this answer

    async with stdio_server() as (pipe_in, pipe_out), anyio.create_task_group() as group:
        group.start_soon(forward_input, pipe_in)
        group.start_soon(forward_output, pipe_out)
        await server.run(read, write, server.create_initialization_options())
        group.cancel_scope.cancel()


def _parse_message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _call_tool(
    council_tools: CouncilTools,
    tasks: RunTasks,
    roots_of: ClientRoots,
    context: Context,
    params: types.CallToolRequestParams,
) -> ToolResponse | Json:
    try:
        tool = find_tool(params.name)
        given = tool.parse_arguments(params.name, params.arguments or {})
        guest = await _identify_client(roots_of, ClientCall(context, params.input_responses or {}))
        if has_tasks(context) and params.name == "council_start":
            return await tasks.create("council_start", (await council_tools.start(given, guest))["run"])
        if has_tasks(context) and params.name == "council_panel":
            return await tasks.create("council_panel", (await council_tools.start_panel(given, guest))["run"])
        return _make_result(await council_tools.call(params.name, given, guest))
    except InputRequired as needed:
        return types.InputRequiredResult(input_requests=needed.requests)
    except CouncilError as error:
        return _error_result(message_for(error, "http"))
    except Exception as error:
        return _error_result(f"internal error ({type(error).__name__}: {error}): report it")


async def _identify_client(roots_of: ClientRoots, caller: ClientCall) -> ClientContext:
    started = time.monotonic()

    async def report_progress(line: str) -> None:
        await caller.context.session.report_progress(time.monotonic() - started, None, clean(line))

    roots = await roots_of.find(caller)
    return ClientContext(roots, report_progress, caller if caller.has_forms else None)


class ClientRoots:
    """The folders that clients may use: those that they declare, or the server's own if that is not the root of the
    file system.
    """

    def __init__(self, council_tools: CouncilTools) -> None:
        self.tools = council_tools
        self._known: tuple[Path, ...] = ()  # of the only client of a server over standard input and output

    async def find(self, caller: ClientCall) -> tuple[Path, ...]:
        declared = await caller.roots()
        roots = parse_roots(declared) if declared else default_root(self.tools.owner)
        if caller.context.request is None:
            self._known = roots
        return roots

    async def find_known(self, caller: ClientCall) -> tuple[Path, ...]:
        """Return the folders for a request that cannot ask the client for them: those of its last call, or none."""
        try:
            return await self.find(caller)
        except InputRequired:
            return self._known if caller.context.request is None else ()


def _make_result(value: ToolResult) -> types.CallToolResult:
    text = json.dumps(value, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=dict(value))


def _error_result(line: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=_format_error(line))], is_error=True)


def _format_error(line: str) -> str:
    return single_line(name_tools(line), MAX_ERROR_CHARS)


HTTP_PATH = "/mcp"
OWN_FETCH_SITES = frozenset({"same-origin", "none"})  # values of Sec-Fetch-Site


class HttpGuard:
    """Middleware that refuses a wrong Host, a foreign Origin, or a missing token."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._check_headers(Headers(scope=scope)) if scope["type"] == "http" else None
        await (refusal or self.app)(scope, receive, send)

    def _check_headers(self, headers: Headers) -> JSONResponse | None:
        """Return the refusal of a request, or None. A header that is sent twice has to be valid twice."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return _error_response(400, f"unknown Host: use {LOOPBACK} or localhost with the port of this server")
        is_own_origin = self.origins.issuperset(headers.getlist("origin"))
        if not is_own_origin or not OWN_FETCH_SITES.issuperset(headers.getlist("sec-fetch-site")):
            return _error_response(403, "requests from pages of another origin are not allowed")
        values = headers.getlist("authorization")
        kind, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        if kind.lower() != "bearer" or not secrets.compare_digest(token.strip().encode(), self.token.encode()):
            return _error_response(
                401,
                "missing or wrong token: send the one that `council mcp --http` printed as Authorization: Bearer TOKEN",
            )
        return None


def _error_response(status: int, error: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse({"schema": "council.error/1", "error": error, "exit": 2}, status, headers)


async def run_http(council_tools: CouncilTools, port: int) -> None:
    """Serve until stopped. Print the address and the token once, on standard error."""
    listening = listen(LOOPBACK, port)  # not configurable by any flag or variable
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # HttpGuard is stricter
    app = make_server(council_tools).streamable_http_app(streamable_http_path=HTTP_PATH, transport_security=unchecked)
    print(f"council mcp: http://{LOOPBACK}:{port}{HTTP_PATH}", file=sys.stderr)
    print(f"Authorization: Bearer {token}", file=sys.stderr, flush=True)
    await uvicorn.Server(make_config(HttpGuard(app, port, token))).serve(sockets=[listening])


def serve(
    place: Path,
    handshake: Handshake,
    *,
    config: str | None = None,
    max_cost: float | None = None,
    allow_unpriced: bool = False,
    http: bool = False,
    port: int = 0,
    no_worker: bool = False,
) -> int:
    """Serve until the client disconnects."""
    owner = Owner(
        place, dict(os.environ), Path(config).resolve() if config else None, max_cost, allow_unpriced, not no_worker
    )
    council_tools = CouncilTools(owner)
    if refused := owner.describe_untrusted():
        print(refused, file=sys.stderr)
    asyncio.run(_run_server(council_tools, http, port, handshake))
    return 0


async def _run_server(council_tools: CouncilTools, http: bool, port: int, handshake: Handshake) -> None:
    try:
        async with council_tools.owner.run_worker(council_tools.shared_convener):
            await (run_http(council_tools, port) if http else run_stdio(council_tools, handshake))
    finally:
        await council_tools.close()
