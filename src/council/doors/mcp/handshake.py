"""First messages of an MCP client over standard input and output, answered before the SDK is loaded.

The SDK takes a second to load, and some clients offer no tools in their first turn if a server is not ready by then.
So `initialize` and the list of tools are answered here, and `server/discover` and a subscription to changed lists of
the revision without a handshake. The SDK then gets `initialize` too, and its answer is dropped.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from council.errors import UsageError
from council.types import Json
from council.version import __version__

if TYPE_CHECKING:  # the module needs pydantic
    from council.doors.mcp.tools import ToolDefinition

STDIN, STDOUT = 0, 1
IDLE_S = 0.1  # without another message for this long, the SDK is loaded
# Versions with a handshake, newest last; a client with another one is offered the newest.
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION = "2026-07-28"  # each request says what the client can do, and none depends on an earlier one
META = "io.modelcontextprotocol/"
EARLY = (b'"notifications/initialized"', b'"resources/list"', b'"resources/templates/list"')  # sent before tools/list
LISTS = {"toolsListChanged", "promptsListChanged", "resourcesListChanged"}  # the lists of this server never change
INSTRUCTIONS = (
    "Several language models deliberate on one question and return one answer with a confidence. "
    "It takes a minute or more and costs money; council_estimate shows how much. Call council_start, then council_wait "
    "until done, then council_result."
)


def begin(folder: str | None, http: bool, port: int) -> tuple[Path, Handshake]:
    """Check the arguments and answer the first messages. Return the folder, and what the SDK needs to know."""
    if port and not http:
        raise UsageError(f"--port {port} needs --http: add --http, or drop --port")
    place = Path(folder or ".").expanduser().resolve()
    if not place.is_dir():
        raise UsageError(
            f"--folder {json.dumps(folder, ensure_ascii=False)} does not exist or is not a folder: pass an existing folder"
        )
    if http:
        return place, Handshake()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C exits at once; no run is lost, because the worker has them
    if sys.stdin.isatty():
        hint = "council mcp is waiting for an MCP client on standard input; docs/mcp.md shows how to add it to one"
        print(hint, file=sys.stderr)
    is_quick = os.name == "posix" and not sys.stdin.isatty()
    return place, answer_handshake() if is_quick else Handshake()


@dataclass(slots=True)
class Handshake:
    """What the SDK has to be given first, and the request whose answer it must not send again."""

    lines: list[bytes] = field(default_factory=list)
    answered: str | int | None = None


def answer_handshake() -> Handshake:
    """Answer the first messages. Return when another message came, none came for a moment, or the input ended."""
    handshake = Handshake()
    line = _read_line()
    message = _parse_request(line)
    handshake.lines += [line] if line else []
    if message is None or message["method"] == "tools/list":
        return handshake
    if message["method"] == "initialize":
        handshake.answered = message["id"]
        _write_result(message, _initialize_result(message))
    else:
        handshake.lines.clear()
        _write_result(message, _discover_result())
    while select.select([STDIN], [], [], IDLE_S)[0] and (line := _read_line()):
        message = _parse_request(line)
        if message and message["method"] == "server/discover":
            _write_result(message, _discover_result())
        elif message and message["method"] == "subscriptions/listen":
            _write(_acknowledge(message))
        elif message and message["method"] == "tools/list":
            _write_result(message, _list_result(message))
            break
        else:
            handshake.lines.append(line)
            if not any(method in line for method in EARLY):
                break
    return handshake


def _read_line() -> bytes:
    """Read one line byte by byte, so that the SDK finds all others in the pipe."""
    line = bytearray()
    while not line.endswith(b"\n") and (piece := os.read(STDIN, 1)):
        line += piece
    return bytes(line)


def _parse_request(line: bytes) -> Json | None:
    """Return a request that is answered here, if it has a plain form; the SDK answers all other messages."""
    try:
        message: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match message:
        case {"jsonrpc": "2.0", "id": str() | int(), "method": "initialize", "params": params}:
            is_plain = _is_valid_hello(params)
        case {"jsonrpc": "2.0", "id": str() | int(), "method": "server/discover"}:
            is_plain = _is_modern(message)
        case {"jsonrpc": "2.0", "id": str() | int(), "method": "subscriptions/listen"}:
            is_plain = _is_subscription_to_lists(message)
        case {"jsonrpc": "2.0", "id": str() | int(), "method": "tools/list"}:
            is_plain = message.get("params") in (None, {}) or _is_modern(message)
        case _:
            is_plain = False
    return message if is_plain and not isinstance(message["id"], bool) else None


def _is_valid_hello(params: object) -> bool:
    match params:
        case {"protocolVersion": str(), "capabilities": dict(), "clientInfo": {"name": str(), "version": str()}}:
            return True
    return False


def _is_subscription_to_lists(message: Json) -> bool:
    match message.get("params"):
        case {"_meta": dict() as envelope, "notifications": dict() as wanted, **others} if not others:
            is_known = LISTS.issuperset(wanted) and all(value in (True, False) for value in wanted.values())
            return is_known and _is_envelope(envelope)
    return False


def _is_modern(message: Json) -> bool:
    """Return whether a request has no parameters but the envelope of the revision without a handshake."""
    match message.get("params"):
        case {"_meta": dict() as envelope, **others} if not others:
            return _is_envelope(envelope)
    return False


def _is_envelope(envelope: Json) -> bool:
    match envelope.get(f"{META}clientInfo", {"name": "", "version": ""}):
        case {"name": str(), "version": str()}:
            is_known = envelope.get(f"{META}protocolVersion") == MODERN_VERSION
            return is_known and isinstance(envelope.get(f"{META}clientCapabilities"), dict)
    return False


class ServerInfo(TypedDict):
    name: str
    title: str
    version: str


class InitializeResult(TypedDict):
    capabilities: Json
    instructions: str
    protocolVersion: str
    serverInfo: ServerInfo


class ToolList(TypedDict):
    """The result of `tools/list`."""

    tools: list[ToolDefinition]


SERVER_INFO: ServerInfo = {"name": "council", "title": "Council", "version": __version__}
# What each result of the revision without a handshake has, as the SDK sends it.
ENVELOPE: Json = {
    "_meta": {f"{META}serverInfo": SERVER_INFO},
    "resultType": "complete",
    "cacheScope": "private",
    "ttlMs": 0,
}


def _initialize_result(message: Json) -> InitializeResult:
    wanted = message["params"]["protocolVersion"]
    return {
        "capabilities": {
            "resources": {"listChanged": False, "subscribe": False},
            "tools": {"listChanged": False},
        },
        "instructions": INSTRUCTIONS,
        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[-1],
        "serverInfo": SERVER_INFO,
    }


def _discover_result() -> Json:
    return {
        "capabilities": {
            "extensions": {f"{META}tasks": {}},
            "resources": {"listChanged": True, "subscribe": True},
            "tools": {"listChanged": True},
        },
        "instructions": INSTRUCTIONS,
        "supportedVersions": [MODERN_VERSION],
        **ENVELOPE,
    }


def _acknowledge(message: Json) -> Json:
    """Return the first and only message of a subscription to lists that never change. It has no end either."""
    params = {"_meta": {f"{META}subscriptionId": message["id"]}, "notifications": {}}
    return {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}


def _list_result(message: Json) -> ToolList | Json:
    from council.doors.mcp.tools import list_tool_definitions

    tools: ToolList = {"tools": list_tool_definitions()}
    return {**tools, **ENVELOPE} if message.get("params") else tools


def _write_result(message: Json, result: InitializeResult | ToolList | Json) -> None:
    _write({"jsonrpc": "2.0", "id": message["id"], "result": result})


def _write(answer: Json) -> None:
    data = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    while data:
        data = data[os.write(STDOUT, data) :]
