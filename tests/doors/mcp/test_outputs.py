"""What the tools return: true to their output schemas in every state of a run, and in the words of a client."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client

from council.doors.mcp.tools import TOOLS, name_tools
from council.types import JsonSchema
from tests.acceptance.workers import held_worker
from tests.doors.mcp.clients import (
    QUESTION,
    SCRIPTED,
    call_refused,
    call_tool,
    connect,
    wait_for_exit,
    wait_until_done,
)
from tests.trusted_project import trust_project

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
SHELL = re.compile(r"council (resume|watch|report|cancel|runs)\b|\s--[a-z]|council \"")


@pytest.fixture
def data() -> Path:
    return Path(os.environ["COUNCIL_DATA"])


@pytest.fixture(autouse=True)
def _worker_gone(data: Path) -> Iterator[None]:
    yield
    wait_for_exit(data)


def write_script(path: Path, *lines: str) -> None:
    """Configure what the seats and the chair do; a seat that is not named answers."""
    script = path / "script.toml"
    script.write_text("\n".join(lines), encoding="utf-8")
    Path("council.toml").write_text(SCRIPTED.replace('"scripted:"', f'"scripted:{script}"'), encoding="utf-8")
    trust_project()


def write_secret(path: Path) -> None:
    path.write_text('token = "ghp_' + "a1B2" * 9 + '"\n', encoding="utf-8")


STALL = ('["draft/alpha"]', "stall = true", '["answer/alpha"]', "stall = true")
FAIL = tuple(
    line
    for phase in ("draft", "answer")
    for seat in ("alpha", "beta", "gamma")
    for line in (f'["{phase}/{seat}"]', 'fail = "auth"')
)


class CheckedClient:
    """Calls tools and checks each result against the listed schema."""

    def __init__(self, client: Client, schemas: dict[str, JsonSchema]) -> None:
        self.client, self.schemas = client, schemas
        self.seen: dict[str, set[str]] = {name: set() for name in schemas}

    async def call(self, tool: str, /, **arguments: Any) -> Json:
        value = await call_tool(self.client, tool, **arguments)
        jsonschema.Draft202012Validator(self.schemas[tool]).validate(value)
        self.seen[tool] |= value.keys()
        return value


@pytest.mark.behaviour("50-mcp-output-schema")
async def test_every_tool_keeps_to_its_output_schema_in_every_state_of_a_run(tmp_path: Path, data: Path) -> None:
    write_script(tmp_path, *STALL)
    async with connect() as client:
        tools = (await client.list_tools()).tools
        schemas = {tool.name: dict(tool.output_schema or {}) for tool in tools}
        for schema in schemas.values():
            jsonschema.Draft202012Validator.check_schema(schema)
        checked = CheckedClient(client, schemas)
        await checked.call("council_estimate", question=QUESTION)
        with held_worker(data):
            run = (await checked.call("council_start", question=QUESTION))["run"]
            assert (await checked.call("council_wait", run=run, seconds=0))["status"] == "queued"
            assert (await checked.call("council_resume", run=run))["status"] == "queued"
        while (await checked.call("council_wait", run=run, seconds=0.2))["status"] == "queued":
            pass
        panel = await checked.call("council_panel", question=QUESTION, seconds=0.5)
        assert not panel["done"]
        for one in (run, panel["run"]):
            assert (await checked.call("council_resume", run=one))["done"] is False
            assert (await checked.call("council_cancel", run=one))["cancelled"] is True
            assert (await checked.call("council_cancel", run=one))["status"] in ("incomplete", "failed")
            assert (await checked.call("council_result", run=one))["status"] in ("incomplete", "failed")

        write_script(tmp_path, *FAIL)
        failed = await checked.call("council_panel", question=QUESTION)
        assert (failed["status"], failed["done"], failed["trust"]["level"]) == ("failed", True, "LOW")
        assert [seat["state"] for seat in failed["seats"]] == ["failed(auth)"] * 3
        assert (await checked.call("council_result", run=failed["run"]))["status"] == "failed"

        write_script(tmp_path)
        assert (await checked.call("council_panel", question=QUESTION))["status"] == "complete"
        assert (await checked.call("council_resume", run=run))["done"] is False
        while not (ended := await checked.call("council_wait", run=run))["done"]:
            pass
        assert ended["status"] == "complete"
        assert (await checked.call("council_resume", run=run))["status"] == "complete"
        assert (await checked.call("council_cancel", run=run))["cancelled"] is False
        await checked.call("council_result", run=run)
        assert len((await checked.call("council_list"))["runs"]) == 4
    assert set(schemas) == set(TOOLS)
    for name, schema in schemas.items():
        assert schema["properties"].keys() <= checked.seen[name], "a field that is never returned"


@pytest.mark.behaviour("50-mcp-output-schema")
async def test_an_error_has_a_line_and_no_structured_content() -> None:
    """An output schema describes results only, and a client does not check errors."""
    async with connect() as client:
        for name in TOOLS:
            result = await client.call_tool(name, {"run": "r99999", "question": "", "limit": 0})
            assert result.is_error and result.structured_content is None


@pytest.mark.behaviour("50-mcp-resume")
async def test_a_client_continues_a_run_that_stopped_and_pays_no_answer_twice(tmp_path: Path) -> None:
    write_script(tmp_path, *STALL)
    async with connect() as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
        while (await call_tool(client, "council_wait", run=run, seconds=0.2))["heard"] < 2:
            pass
        stopped = await call_tool(client, "council_cancel", run=run)
        report = await call_tool(client, "council_result", run=run)
        told = f'council_resume {{"run": "{run}"}}'
        assert told in stopped["line"]
        for text in (stopped["line"], report["answer"], *report["tail"], str(report["degraded"])):
            assert not SHELL.search(text), text
        write_script(tmp_path)
        assert (await call_tool(client, "council_resume", run=run))["run"] == run
        assert (await wait_until_done(client, run))["status"] == "complete"
        counts = (await call_tool(client, "council_result", run=run))["calls"]
    assert counts["replayed"] >= 2


@pytest.mark.behaviour("50-mcp-resume", "40-mcp-cap")
async def test_a_resumed_run_keeps_to_the_owners_cap(tmp_path: Path) -> None:
    write_script(tmp_path, *STALL)
    async with connect("--max-cost", "0.50") as client:
        run = (await call_tool(client, "council_start", question=QUESTION, options={"max_cost": 0.1}))["run"]
        await call_tool(client, "council_cancel", run=run)
        assert "use 0.5 or less" in await call_refused(client, "council_resume", run=run, max_cost=0.75)
        write_script(tmp_path)
        await call_tool(client, "council_resume", run=run, max_cost=0.4)
        await wait_until_done(client, run)
        assert (await call_tool(client, "council_result", run=run))["cost"]["cap"] == 0.4
        assert "in the folders of this client" in await call_refused(client, "council_resume", run="r99999")


@pytest.mark.behaviour("50-mcp-words")
async def test_an_error_names_arguments_and_tools(tmp_path: Path) -> None:
    write_script(tmp_path)
    write_secret(Path("config.py"))
    calls: list[tuple[str, Json, str]] = [
        ("council_start", {"question": ""}, 'put it into "question"'),
        ("council_start", {"question": "validate"}, ""),
        ("council_panel", {"question": " "}, 'put it into "question"'),
        ("council_estimate", {"question": "validate config.py"}, "secrets found at config.py"),
        ("council_start", {"question": "research x", "options": {"spec_review": True, "no_search": True}}, ""),
        ("council_start", {"question": QUESTION, "options": {"models": ["nobody:x"]}}, ""),
        ("council_start", {"question": QUESTION, "options": {"quick": True, "models": ["scripted:"] * 2}}, ""),
        ("council_wait", {"run": "council resume"}, "council_list shows its runs"),
    ]
    async with connect() as client:
        for tool, arguments, part in calls:
            line = await call_refused(client, tool, **arguments)
            assert part in line and not SHELL.search(line.replace("council resume", "")), line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("continue it with `council resume r2abcd`.", 'continue it with council_resume {"run": "r2abcd"}.'),
        ("raise it with `council resume r2abcd --max-cost USD`", 'raise it with council_resume {"run": "r2abcd"}'),
        ("next step council report r2abcd (2 so far)", 'next step council_result {"run": "r2abcd"} (2 so far)'),
        ("ask the council report writers", "ask the council report writers"),
        ("`council trust` in that folder", "`council trust` in that folder"),
    ],
)
@pytest.mark.behaviour("50-mcp-words")
def test_commands_that_have_a_tool_are_named_as_tools(text: str, shown: str) -> None:
    assert name_tools(text) == shown
