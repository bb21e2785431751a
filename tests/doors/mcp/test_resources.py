"""Runs as MCP resources: listed, read as Markdown and JSON, and announced when they end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp import MCPError

from tests.acceptance.workers import held_worker
from tests.doors.mcp.clients import (
    QUESTION,
    SCRIPTED,
    LineClient,
    call_tool,
    connect,
    wait_for_exit,
    wait_until_done,
)
from tests.doors.mcp.test_outputs import STALL, write_script

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture
def data() -> Path:
    return Path(os.environ["COUNCIL_DATA"])


@pytest.fixture(autouse=True)
def _worker_gone(data: Path) -> Iterator[None]:
    Path("council.toml").write_text(SCRIPTED, encoding="utf-8")
    yield
    wait_for_exit(data)


async def read_text(client: object, uri: str) -> tuple[str, str]:
    """Return the media type and the text of a resource."""
    [found] = (await client.read_resource(uri, cache_mode="bypass")).contents  # type: ignore[attr-defined]
    assert found.uri == uri
    return found.mime_type, found.text


@ERAS
@pytest.mark.behaviour("50-mcp-resources")
async def test_a_report_is_read_as_markdown_and_as_json(mode: str, data: Path) -> None:
    async with connect(mode=mode) as client:
        assert (await client.list_resources()).resources == []
        with held_worker(data):
            run = (await call_tool(client, "council_start", question=QUESTION))["run"]
            address = f"council://runs/{run}"
            assert await read_text(client, address) == ("text/markdown", "collaborative is queued\n")
            state = json.loads((await read_text(client, f"{address}.json"))[1])
            assert state == await call_tool(client, "council_wait", run=run, seconds=0)
        await wait_until_done(client, run)
        [listed] = (await client.list_resources(cache_mode="bypass")).resources
        assert (listed.uri, listed.title, listed.mime_type) == (address, QUESTION, "text/markdown")
        assert listed.description == "collaborative: complete, trust MEDIUM"
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["council://runs/{run}", "council://runs/{run}.json"]
        kind, markdown = await read_text(client, address)
        assert kind == "text/markdown" and QUESTION in markdown and "Trust: MEDIUM" in markdown
        kind, text = await read_text(client, f"{address}.json")
        assert kind == "application/json"
        assert json.loads(text) == await call_tool(client, "council_result", run=run)


@pytest.mark.behaviour("50-mcp-resources", "50-mcp-words")
async def test_the_report_of_a_stopped_run_names_the_tool_that_continues_it(tmp_path: Path) -> None:
    write_script(tmp_path, *STALL)
    async with connect() as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
        while (await call_tool(client, "council_wait", run=run, seconds=0.2))["heard"] < 2:
            pass
        await call_tool(client, "council_cancel", run=run)
        _, markdown = await read_text(client, f"council://runs/{run}")
    assert f'council_resume {{"run": "{run}"}}' in markdown
    assert "council resume" not in markdown


@ERAS
@pytest.mark.behaviour("50-mcp-resources", "006-mcp-roots")
async def test_resources_of_other_folders_are_unknown_to_a_client(mode: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with connect() as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
        await wait_until_done(client, run)
    async with connect(mode=mode, roots=[other]) as client:
        assert (await client.list_resources()).resources == []
        for name in (run, run[:3], f"{run}.json"):
            with pytest.raises(MCPError, match="in the folders of this client"):
                await client.read_resource(f"council://runs/{name}")
    async with connect(mode=mode, roots=[Path.cwd()]) as client:
        first = (await client.list_resources(cache_mode="bypass")).resources
        assert len(first) == (0 if mode == "auto" else 1)  # this request cannot ask a client of the newest protocol
        assert QUESTION in (await read_text(client, f"council://runs/{run}"))[1]
        assert len((await client.list_resources(cache_mode="bypass")).resources) == 1


@pytest.mark.behaviour("50-mcp-resources")
async def test_an_address_that_is_none_of_a_run_is_one_line() -> None:
    wrong = [
        "council://runs/",
        "council://runs/../../etc/passwd",
        "file:///etc/passwd",
        "council://runs/r2abcd.xml",
        "x",
    ]
    async with connect() as client:
        for uri in [*wrong, f"council://runs/{'r' * 100_000}", "council://runs/R2ABCD", "council://runs/r2abcd\n"]:
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            line = refused.value.error.message
            assert "no resource" in line and len(line) < 300 and "\n" not in line
        with pytest.raises(MCPError, match='no run "r99999" in the folders of this client'):
            await client.read_resource("council://runs/r99999")


@pytest.mark.behaviour("50-mcp-resources")
async def test_a_client_is_told_when_a_run_ends(tmp_path: Path, data: Path) -> None:
    write_script(tmp_path, *STALL)
    async with connect() as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
        address = f"council://runs/{run}"
        async with client.listen(resource_subscriptions=[address, "council://runs/r99999", "x"]) as events:
            assert events.honored.resource_subscriptions == [address]
            await call_tool(client, "council_cancel", run=run)
            with anyio.fail_after(30):
                event = await anext(aiter(events))
        assert event.uri == address
        assert "INCOMPLETE" in (await read_text(client, address))[1]


@pytest.mark.behaviour("50-mcp-resources")
async def test_a_subscription_of_a_client_that_leaves_ends_with_it(tmp_path: Path, data: Path) -> None:
    write_script(tmp_path, *STALL)
    with LineClient() as lines:
        lines.initialize()
        call = {"name": "council_start", "arguments": {"question": QUESTION}}
        run = json.loads(lines.request("tools/call", call, 2))["result"]["structuredContent"]["run"]
        assert "Method not found" in lines.request("resources/subscribe", {"uri": f"council://runs/{run}"}, 3)
        code, _, errors = lines.close_pipe()
    assert (code, errors) == (0, "")
    async with connect() as client:
        async with client.listen(resource_subscriptions=[f"council://runs/{run}"]):
            pass
        await call_tool(client, "council_cancel", run=run)
