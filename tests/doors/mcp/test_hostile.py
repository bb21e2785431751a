"""Hosts that send odd arguments, huge ids and cancellations, and several clients at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.doors.mcp.clients import (
    QUESTION,
    SCRIPTED,
    LineClient,
    call_refused,
    call_tool,
    connect,
    roots_callback,
    wait_for_exit,
    wait_until_done,
)
from tests.doors.mcp.test_http import GREETING, Served, serve
from tests.doors.mcp.test_outputs import STALL, write_script

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
HUGE = "r" * 100_000
NO_TEXTS: list[Any] = [7, 1e400, True, [["r"]], {"run": "r"}]
ODD: list[Any] = [HUGE, "", " ", "\0", "\u202e", "../../etc/passwd", "r' OR 1=1 --", "r%", "r_", "*", None, *NO_TEXTS]
RUN_TOOLS = ("council_wait", "council_result", "council_cancel", "council_resume")
MAX_LINE = 1_000


@pytest.fixture(autouse=True)
def _worker_gone() -> Iterator[None]:
    Path("council.toml").write_text(SCRIPTED, encoding="utf-8")
    yield
    wait_for_exit(Path(os.environ["COUNCIL_DATA"]))


@pytest.mark.behaviour("50-mcp-hostile")
def test_odd_arguments_are_one_short_line_and_start_nothing() -> None:
    calls: list[tuple[str, Any]] = [(tool, {"run": odd}) for tool in RUN_TOOLS for odd in ODD]
    calls += [("council_list", {odd: 1}) for odd in ODD if isinstance(odd, str)]
    calls += [("council_start", {"question": odd}) for odd in ("", " \n", "\0", "\u202e", *NO_TEXTS)]
    calls += [
        ("council_panel", {"question": QUESTION, "options": odd}) for odd in (*NO_TEXTS[:2], "{", "[" * 9_999, [1])
    ]
    calls += [("council_start", {"question": QUESTION, "folder": odd}) for odd in ("\0", HUGE, "..", *NO_TEXTS)]
    files = ({"spec": HUGE}, {"attach": [HUGE]}, {"roster": HUGE}, {"search": f"files:{HUGE}"}, {"base": HUGE})
    calls += [("council_estimate", {"question": "research x", "options": odd}) for odd in files]
    calls += [("council_wait", {"run": "r99999", "seconds": odd}) for odd in (-1, "nan", HUGE, [], {})]
    calls += [(odd, {}) for odd in ODD if isinstance(odd, str)]
    with LineClient() as lines:
        lines.initialize()
        for number, (tool, arguments) in enumerate(calls, 2):
            answer = json.loads(lines.request("tools/call", {"name": tool, "arguments": arguments}, number))
            assert answer["id"] == number
            if "error" in answer:
                line = answer["error"]["message"]
            else:
                assert answer["result"]["isError"], (tool, str(arguments)[:80], answer)
                [content] = answer["result"]["content"]
                line = content["text"]
            assert line and "\n" not in line and "Traceback" not in line and "internal error" not in line, line
            assert len(line) <= MAX_LINE, (tool, str(arguments)[:80])
        listed = json.loads(lines.request("tools/call", {"name": "council_list", "arguments": {}}, 1_000_000))
        code, _, errors = lines.close_pipe()
    assert listed["result"]["structuredContent"] == {"runs": []}
    assert (code, errors) == (0, "")


@pytest.mark.behaviour("50-mcp-hostile")
async def test_a_cancelled_wait_leaves_the_run_and_other_calls_alone(tmp_path: Path) -> None:
    write_script(tmp_path, *STALL)
    async with connect() as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
        waits: list[Json] = []

        async def wait_longer() -> None:
            waits.append(await call_tool(client, "council_wait", run=run, seconds=1))

        async with anyio.create_task_group() as group:
            group.start_soon(wait_longer)
            for tool in ("council_wait", "council_panel"):
                with anyio.move_on_after(0.2):
                    await client.call_tool(tool, {"question": QUESTION} if tool == "council_panel" else {"run": run})
        assert [(one["status"], one["done"]) for one in waits] == [("running", False)]
        runs = (await call_tool(client, "council_list"))["runs"]
        assert len(runs) == 2  # also the panel, whose call was given up
        for one in runs:
            await call_tool(client, "council_cancel", run=one["run"])


@pytest.mark.behaviour("50-mcp-hostile", "40-mcp-http")
async def test_two_clients_of_one_server_share_no_progress_and_no_folders(tmp_path: Path) -> None:
    """Both use the token of the owner; their roots keep them apart, also for resources and tasks."""
    first, second = tmp_path / "first", tmp_path / "second"
    for place in (first, second):
        place.mkdir()
        (place / "council.toml").write_text(SCRIPTED, encoding="utf-8")
    served = serve()
    try:
        with anyio.fail_after(60):
            async with http_client(served, first) as one, http_client(served, second) as two:
                mine = (await call_tool(one, "council_start", question=QUESTION))["run"]
                theirs = (await call_tool(two, "council_start", question=f"{QUESTION} Or not?"))["run"]
                await wait_until_done(one, mine)
                await wait_until_done(two, theirs)
                for client, own, other in ((one, mine, theirs), (two, theirs, mine)):
                    assert [row["run"] for row in (await call_tool(client, "council_list"))["runs"]] == [own]
                    assert [f"council://runs/{own}"] == [row.uri for row in (await client.list_resources()).resources]
                    assert (await client.read_resource(f"council://runs/{own}")).contents
                    with pytest.raises(MCPError, match="in the folders of this client"):
                        await client.read_resource(f"council://runs/{other}.json")
                    for tool in ("council_result", "council_wait", "council_cancel", "council_resume"):
                        assert "in the folders of this client" in await call_refused(client, tool, run=other)
        for method in ("resources/list", "resources/read", "tasks/get", "tools/call"):
            body = GREETING.replace("initialize", method)
            assert served.post(body, Authorization="Bearer wrong")[0] == 401
    finally:
        served.process.terminate()
        served.process.communicate(timeout=60)


def http_client(served: Served, root: Path) -> Client:
    web = httpx2.AsyncClient(headers={"Authorization": f"Bearer {served.token}"}, timeout=60)
    transport = streamable_http_client(served.url, http_client=web)
    return Client(transport, mode="legacy", list_roots_callback=roots_callback([root]))
