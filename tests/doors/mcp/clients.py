"""Clients of `council mcp`: the SDK client on the real command, and one that writes and reads raw lines."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.acceptance.helpers import wait_until
from tests.fork_server import SERVERS, client_command

Json = dict[str, Any]
SCRIPTED = """
[models]
default = "scripted:"
[chair]
model = "scripted:"
""" + "".join(f'[seats.{seat}]\nmodel = "scripted:"\n' for seat in ("alpha", "beta", "gamma"))
IDLE = "0.2"  # idle seconds before the worker of a test exits
QUESTION = "Should the archive move to cold storage?"
HELLO: Json = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "lines", "version": "1"}}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "lines", "version": "1"},
}


def environment(**more: str) -> dict[str, str]:
    """Return the test's environment with a short worker idle timeout."""
    return {**os.environ, "COUNCIL_WORKER_IDLE": IDLE, **more}


def mcp_command(*flags: str) -> list[str]:
    return [*client_command(*SERVERS), "mcp", *flags]


def connect(*flags: str, cwd: Path | None = None, mode: str = "auto", roots: Iterable[Path] | None = None, **more: Any) -> Client:  # fmt: skip
    """Return the SDK client on the real command, with the server's standard error discarded."""
    program, *arguments = mcp_command(*flags)
    command = StdioServerParameters(command=program, args=arguments, env=environment(), cwd=cwd)
    quiet = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    return Client(stdio_client(command, errlog=quiet), mode=mode, list_roots_callback=roots_callback(roots), **more)


def roots_callback(roots: Iterable[Path] | None) -> Any:
    if roots is None:
        return None
    listed = [types.Root.model_validate({"uri": root.as_uri()}) for root in roots]

    async def list_roots(context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=listed)

    return list_roots


async def call_tool(client: Client, tool: str, /, **arguments: Any) -> Json:
    """Call a tool and return its result, checked to be the same as text and as a value."""
    result = await client.call_tool(tool, arguments)
    [content] = result.content
    assert isinstance(content, types.TextContent)
    assert not result.is_error, content.text
    assert json.loads(content.text) == result.structured_content
    return dict(result.structured_content)


async def call_refused(client: Client, tool: str, /, **arguments: Any) -> str:
    """Call a tool that must fail, and return its one-line error."""
    result = await client.call_tool(tool, arguments)
    [content] = result.content
    assert isinstance(content, types.TextContent)
    assert result.is_error, content.text
    assert "\n" not in content.text
    assert "Traceback" not in content.text
    return content.text


async def wait_until_done(client: Client, run: str) -> Json:
    """Call council_wait until the run is done."""
    while not (status := await call_tool(client, "council_wait", run=run))["done"]:
        pass
    return status


def processes(data: Path) -> list[str]:
    """Return the commands of the other processes that use this data folder."""
    return list(_find_processes(data).values())


def wait_for_exit(data: Path) -> None:
    """Wait until no process uses this data folder.

    Only the found ones are polled: looking at all processes is expensive.
    """
    while found := _find_processes(data):
        wait_until(partial(_are_gone, found, data), "the worker exits when idle")


def _are_gone(places: Iterable[Path], data: Path) -> bool:
    return not any(_read_command(place, data) for place in places)


def _find_processes(data: Path) -> dict[Path, str]:
    places = (place for place in Path("/proc").glob("[0-9]*") if int(place.name) != os.getpid())
    return {place: command for place in places if (command := _read_command(place, data))}


def _read_command(place: Path, data: Path) -> str:
    """Return the command of a process that uses this data folder, otherwise ""."""
    try:
        is_user = f"COUNCIL_DATA={data}".encode() in (place / "environ").read_bytes().split(b"\0")
        command = (place / "cmdline").read_bytes() if is_user else b""
    except OSError:
        return ""
    return command.replace(b"\0", b" ").decode().strip()


class LineClient:
    """Client on a bare pipe, to read the exact lines."""

    def __init__(self, *flags: str) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            mcp_command(*flags), stdin=pipe, stdout=pipe, stderr=pipe, env=environment(), text=True
        )

    def __enter__(self) -> LineClient:
        return self

    def __exit__(self, *what: object) -> None:
        self.process.kill()
        self.process.communicate()

    def send(self, method: str, params: Json, number: int | None = None) -> None:
        assert self.process.stdin
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {})
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().rstrip("\n")

    def request(self, method: str, params: Json, number: int) -> str:
        self.send(method, params, number)
        return self.line()

    def initialize(self) -> None:
        self.request("initialize", HELLO, 1)
        self.send("notifications/initialized", {})

    def close_pipe(self) -> tuple[int, list[str], str]:
        """Close the pipe and return the exit code, the remaining lines and the errors."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out.splitlines(), err
