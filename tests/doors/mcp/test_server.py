"""`council mcp` with the SDK client on the real command."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from council.doors.limits import Owner
from council.doors.mcp import handshake
from council.doors.mcp.handshake import VERSIONS
from council.doors.mcp.server import make_server
from council.doors.mcp.tools import COMMON_OPTIONS_HELP, MAX_WAIT_S, TOOLS, CommonOptions
from council.doors.mcp.tools_impl import CouncilTools
from council.runs.service import Convener
from council.store.interface import RunRow, list_fields
from tests.acceptance.workers import held_worker
from tests.doors.mcp.clients import (
    ENVELOPE,
    HELLO,
    QUESTION,
    SCRIPTED,
    LineClient,
    call_refused,
    call_tool,
    connect,
    processes,
    wait_for_exit,
    wait_until_done,
)
from tests.trusted_project import trust_project

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture(autouse=True)
def scripted() -> None:
    Path("council.toml").write_text(SCRIPTED, encoding="utf-8")


@pytest.fixture
def no_config() -> None:
    pytest.importorskip("xllamacpp", reason="the embedded model needs model-council[local]")
    Path("council.toml").unlink()


@pytest.fixture
def data() -> Path:
    return Path(os.environ["COUNCIL_DATA"])


@pytest.fixture(autouse=True)
def _worker_gone(data: Path) -> Iterator[None]:
    """Wait until the worker of the test has exited."""
    yield
    wait_for_exit(data)


def stall(path: Path) -> None:
    """Configure an alpha that never answers."""
    script = path / "stall.toml"
    script.write_text('["draft/alpha"]\nstall = true\n', encoding="utf-8")
    text = SCRIPTED.replace('[seats.alpha]\nmodel = "scripted:"', f'[seats.alpha]\nmodel = "scripted:{script}"')
    Path("council.toml").write_text(text, encoding="utf-8")
    trust_project()


# A whole council


@ERAS
@pytest.mark.behaviour("50-mcp-tools", "50-mcp-wait")
async def test_a_client_lists_starts_waits_and_reads_the_result(mode: str, data: Path) -> None:
    reports: list[tuple[float, str | None]] = []

    async def progress(now: float, total: float | None, line: str | None) -> None:
        reports.append((now, line))

    async with connect(mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
        with held_worker(data):  # otherwise the run may end before the client waits for it
            started = await call_tool(client, "council_start", question=QUESTION)
        assert set(started) == {"run"}
        waited = await client.call_tool("council_wait", {"run": started["run"]}, progress_callback=progress)
        report = await call_tool(client, "council_result", run=started["run"])
    assert waited.structured_content == {
        "run": started["run"], "status": "complete", "phase": "synthesise", "heard": 3, "done": True,
        "line": f'complete: an answer, trust MEDIUM; call council_result {{"run": "{started["run"]}"}} for the report',
    }  # fmt: skip
    assert reports
    assert [now for now, _ in reports] == sorted({now for now, _ in reports})
    assert all(line and line.startswith("collaborative ") for _, line in reports)
    assert (report["schema"], report["run"], report["question"]) == ("council.report/1", started["run"], QUESTION)
    assert "synthesise/chair" in report["answer"]


@pytest.mark.behaviour("evidence-outcome-shown")
async def test_the_outcome_of_a_run_is_in_its_status_its_report_and_the_list(data: Path) -> None:
    async with connect() as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
        await wait_until_done(client, run)
        convener = Convener()
        await convener.record_outcome(run, "wrong", "the disk was full")
        await convener.close()
        waited = await call_tool(client, "council_wait", run=run)
        report = await call_tool(client, "council_result", run=run)
        (row,) = (await call_tool(client, "council_list"))["runs"]
    assert waited["line"].startswith("complete: an answer, trust MEDIUM, turned out wrong; ")
    assert report["decision_outcome"]["note"] == "the disk was full"
    assert "Trust: MEDIUM — the answer turned out wrong" in report["answer"]
    assert row["decision_outcome"] == "wrong"


@pytest.mark.behaviour("50-mcp-tools")
async def test_a_council_on_the_embedded_model(no_config: None) -> None:
    async with connect() as client:
        assert len((await client.list_tools()).tools) == 8
        question = "research whether a cache is worth its trouble"
        run = (await call_tool(client, "council_start", question=question, protocol="quick"))["run"]
        assert (await wait_until_done(client, run))["status"] == "complete"
        report = await call_tool(client, "council_result", run=run)
    assert report["seats"][0]["served_by"] == "local:smollm2"
    assert report["calls"]["made"] >= 1


@pytest.mark.behaviour("50-mcp-gives-up", "13-one-run-row")
async def test_a_run_finishes_after_its_client_disconnects() -> None:
    async with connect() as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
    async with connect(mode="legacy") as another:
        assert (await wait_until_done(another, run))["status"] == "complete"
        assert (await call_tool(another, "council_result", run=run))["question"] == QUESTION
        [row] = (await call_tool(another, "council_list"))["runs"]
        for name in ("owner", "project"):
            assert (await call_tool(another, "council_list", **{name: row[name]}))["runs"] == [row]
            assert (await call_tool(another, "council_list", **{name: "other"}))["runs"] == []
    assert (row["run"], row["status"], row["question"]) == (run, "complete", QUESTION)
    assert list(row) == [field.name for field in list_fields(RunRow)]


@pytest.mark.behaviour("evidence-eval-apart")
async def test_runs_of_evaluations_are_listed_only_if_asked_for(data: Path) -> None:
    async with connect() as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
        await wait_until_done(client, run)
        with closing(sqlite3.connect(data / "council.db", isolation_level=None)) as db:
            db.execute("""UPDATE runs SET setup = json_set(setup, '$.batch', json('{"evaluation": true}'))""")
        assert (await call_tool(client, "council_list"))["runs"] == []
        [row] = (await call_tool(client, "council_list", all=True))["runs"]
        assert (row["run"], row["evaluation"]) == (run, True)
        assert (await call_tool(client, "council_result", run=run))["run"] == run


@pytest.mark.behaviour("006-mcp-twenty")
async def test_twenty_starts_are_twenty_runs_in_one_worker(data: Path) -> None:
    runs: list[str] = []
    async with connect() as client:

        async def start(n: int) -> None:
            runs.append((await call_tool(client, "council_start", question=f"{QUESTION} Take {n}."))["run"])

        async with anyio.create_task_group() as group:
            for n in range(20):
                group.start_soon(start, n)
        assert len(set(runs)) == 20
        assert len([command for command in processes(data) if command.endswith("council serve worker")]) == 1
        statuses = [await wait_until_done(client, run) for run in runs]
        listed = (await call_tool(client, "council_list", limit=100))["runs"]
    assert {status["status"] for status in statuses} == {"complete"}
    assert {row["run"] for row in listed} == set(runs)


@pytest.mark.behaviour("50-mcp-eof", "006-mcp-stdout")
async def test_closing_the_pipe_during_a_wait_keeps_the_worker_running(tmp_path: Path, data: Path) -> None:
    stall(tmp_path)
    with LineClient() as lines:
        lines.initialize()
        started = json.loads(
            lines.request("tools/call", {"name": "council_start", "arguments": {"question": QUESTION}}, 2)
        )
        run = started["result"]["structuredContent"]["run"]
        lines.send("tools/call", {"name": "council_wait", "arguments": {"run": run}}, 3)
        code, output, errors = lines.close_pipe()
    assert (code, errors) == (0, "")
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in output)
    [worker] = processes(data)
    assert worker.endswith("council serve worker")
    convener = Convener()
    try:
        assert await convener.cancel(run)
        wait_for_exit(data)
        assert (await convener.minutes(run)).stopped == "cancelled"
    finally:
        await convener.close()


@pytest.mark.behaviour("50-mcp-wait")
async def test_a_wait_ends_while_the_run_continues(tmp_path: Path) -> None:
    stall(tmp_path)
    async with connect() as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
        while (status := await call_tool(client, "council_wait", run=run, seconds=0.2))["heard"] < 2:
            pass
        early = await call_refused(client, "council_result", run=run)
        [row] = (await call_tool(client, "council_list", unfinished=True))["runs"]
    assert (status["status"], status["phase"], status["done"]) == ("running", "draft", False)
    assert status["line"].startswith("collaborative in draft: 2 of 3 answered")
    assert "council_wait" in early
    assert row["status"] == "running"
    convener = Convener()
    await convener.cancel(run)
    await convener.close()


@pytest.mark.behaviour("50-mcp-gives-up")
async def test_council_wait_starts_a_worker_for_an_orphaned_run(data: Path) -> None:
    """The run is queued without a worker, as after a kill -9 or a reboot."""
    convener = Convener()
    try:
        run = await convener.enqueue(await convener.plan([QUESTION]))
    finally:
        await convener.close()
    async with connect() as client:
        with held_worker(data):
            assert (await call_tool(client, "council_wait", run=run, seconds=0))["status"] == "queued"
        assert (await wait_until_done(client, run))["status"] == "complete"


@pytest.mark.behaviour("issue-18-mcp-cancel", "issue-18-mcp-json-options")
async def test_a_client_cancels_its_run(tmp_path: Path) -> None:
    stall(tmp_path)
    async with connect() as client:
        run = (await call_tool(client, "council_start", question=QUESTION, options='{"timeout": 600}'))["run"]
        ended = await call_tool(client, "council_cancel", run=run)
        assert (ended["run"], ended["done"], ended["cancelled"]) == (run, True, True)
        assert "cancelled before the last step was done" in ended["line"]
        again = await call_tool(client, "council_cancel", run=run)
        assert (again["status"], again["cancelled"]) == (ended["status"], False)
        assert (await call_tool(client, "council_result", run=run))["status"] == ended["status"]


# The first messages

OTHERS: Json = {"capabilities": {"roots": {}}, "clientInfo": {"name": "é", "version": "1"}}


@pytest.mark.behaviour("issue-18-mcp-handshake")
async def test_the_first_answers_are_those_of_the_sdk() -> None:
    """The SDK's own session answers the same messages; only the version of the client varies."""
    server = make_server(CouncilTools(Owner(Path.cwd(), dict(os.environ))))
    assert tuple(HANDSHAKE_PROTOCOL_VERSIONS) == VERSIONS
    for version in (*VERSIONS, "1999-01-01"):
        hello = OTHERS | {"protocolVersion": version}
        assert handshake._is_valid_hello(hello)
        async with create_client_server_memory_streams() as ((read, write), ends), anyio.create_task_group() as group:
            group.start_soon(server.run, *ends, server.create_initialization_options())
            request = types.JSONRPCRequest(jsonrpc="2.0", id=1, method="initialize", params=hello)
            await write.send(SessionMessage(request))
            answer = (await read.receive()).message.model_dump(by_alias=True, exclude_unset=True)
            group.cancel_scope.cancel()
        assert handshake._initialize_result({"params": hello}) == answer["result"]


@pytest.mark.behaviour("issue-18-mcp-handshake")
@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
async def test_the_first_answers_without_a_handshake_are_those_of_the_sdk(method: str) -> None:
    server = make_server(CouncilTools(Owner(Path.cwd(), dict(os.environ))))
    request = types.JSONRPCRequest(jsonrpc="2.0", id=1, method=method, params={"_meta": ENVELOPE})
    message = request.model_dump(by_alias=True, exclude_unset=True)
    assert handshake._parse_request(json.dumps(message).encode()) == message
    async with create_client_server_memory_streams() as ((read, write), ends), anyio.create_task_group() as group:
        group.start_soon(server.run, *ends, server.create_initialization_options())
        await write.send(SessionMessage(request))
        answer = (await read.receive()).message.model_dump(by_alias=True, exclude_unset=True)
        group.cancel_scope.cancel()
    own = handshake._discover_result() if method == "server/discover" else handshake._list_result(message)
    assert own == answer["result"]
    assert MODERN_PROTOCOL_VERSIONS == (handshake.MODERN_VERSION,)


@pytest.mark.behaviour("issue-18-mcp-handshake")
def test_a_client_without_a_handshake_is_answered_before_the_sdk_is_loaded() -> None:
    """Also if it subscribes before it lists the tools, and asks what the server can do more than once."""
    envelope = {"_meta": ENVELOPE}
    with LineClient() as lines:
        listen = {**envelope, "notifications": {"toolsListChanged": True}}
        answers = [json.loads(lines.request("server/discover", envelope, number)) for number in (1, 2)]
        acknowledged = json.loads(lines.request("subscriptions/listen", listen, 3))
        lines.send("resources/list", envelope, 4)
        answers += [json.loads(lines.request("tools/list", envelope, 5)), json.loads(lines.line())]
        assert [answer["id"] for answer in answers] == [1, 2, 5, 4]
        by_the_sdk = json.loads(lines.request("subscriptions/listen", listen, 3))
        assert acknowledged == by_the_sdk
        call = {**envelope, "name": "council_list", "arguments": {}}
        assert json.loads(lines.request("tools/call", call, 6))["result"]["structuredContent"] == {"runs": []}
        code, _, errors = lines.close_pipe()
    assert (code, errors) == (0, "")


@pytest.mark.behaviour("issue-18-mcp-handshake")
@pytest.mark.parametrize(
    "hello", [{}, HELLO | {"protocolVersion": 3}, HELLO | {"clientInfo": []}, HELLO | {"capabilities": None}, None]
)
def test_an_unusual_first_message_is_left_to_the_sdk(hello: Any) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode()
    assert handshake._parse_request(line) is None


@pytest.mark.behaviour("issue-18-mcp-handshake")
@pytest.mark.parametrize(
    ("change", "is_plain"),
    [
        ({}, True),
        ({"params": None}, True),
        ({"params": {}}, True),
        ({"params": []}, False),
        ({"params": {"cursor": "2"}}, False),
        ({"params": {"_meta": ENVELOPE}}, True),
        ({"params": {"_meta": ENVELOPE, "cursor": "2"}}, False),
        ({"params": {"_meta": ENVELOPE | {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}}}, False),
        ({"params": {"_meta": ENVELOPE | {"io.modelcontextprotocol/clientInfo": "x"}}}, False),
        ({"params": {"_meta": {}}, "method": "server/discover"}, False),
        ({"params": {"_meta": ENVELOPE, "notifications": {}}, "method": "subscriptions/listen"}, True),
        ({"params": {"_meta": ENVELOPE, "notifications": {"taskIds": ["x"]}}, "method": "subscriptions/listen"}, False),
        ({"params": {"_meta": ENVELOPE}, "method": "subscriptions/listen"}, False),
        ({"method": "server/discover"}, False),
        ({"id": "one"}, True),
        ({"id": True}, False),
        ({"id": None}, False),
        ({"jsonrpc": "1.0"}, False),
        ({"method": "prompts/list"}, False),
    ],
)
def test_only_a_plain_request_for_the_tools_is_answered_before_the_sdk(change: Json, is_plain: bool) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"} | change
    assert handshake._parse_request(json.dumps(message).encode()) == (message if is_plain else None)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"\xff", b"[" * 20_000])
def test_a_line_that_is_no_request_is_left_to_the_sdk(line: bytes) -> None:
    assert handshake._parse_request(line) is None


# The tool list


@pytest.mark.behaviour("50-mcp-5000")
async def test_the_tool_list_is_short_on_the_wire() -> None:
    """Programs that call models do not pay for output schemas: only the host reads them."""
    with LineClient() as lines:
        lines.initialize()
        older = lines.request("tools/list", {}, 2)
    with LineClient() as lines:
        newer = lines.request("tools/list", {"_meta": ENVELOPE}, 2)
    assert json.loads(older)["result"]["tools"] == json.loads(newer)["result"]["tools"]
    for line in (older, newer):
        tools = json.loads(line)["result"]["tools"]
        assert {tool["name"] for tool in tools} == set(TOOLS)
        assert all(tool["description"] and tool["inputSchema"]["type"] == "object" for tool in tools)
        assert len(compact(tools)) <= 7_500
        for tool in tools:
            del tool["outputSchema"]
        assert len(compact(tools)) <= 5_000


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.behaviour("50-mcp-when-not")
def test_the_description_says_when_not_to_use_it_and_names_every_option() -> None:
    description = TOOLS["council_start"].description
    for word in ("NOT for", "lookups", "arithmetic", "one-line", "yes/no", "obvious"):
        assert word in description
    for word in ("trade-offs", "architecture", "security", "asks for a council"):
        assert word in description
    assert {word for part in COMMON_OPTIONS_HELP.split(", ") for word in part.split()[:1]} == set(
        CommonOptions.model_fields
    )


@pytest.mark.behaviour("006-mcp-examples")
async def test_every_schema_has_an_example_that_runs() -> None:
    async with connect() as client:
        listed = (await client.list_tools()).tools
        run = ""
        for tool in listed:
            [example] = tool.input_schema["examples"]
            arguments = example | ({"run": run} if "run" in example else {})
            value = await call_tool(client, tool.name, **arguments)
            if tool.name == "council_start":
                run = value["run"]
                assert (await wait_until_done(client, run))["status"] == "complete"


@pytest.mark.behaviour("50-mcp-check")
@pytest.mark.parametrize(
    ("protocol", "options", "last"),
    [
        ("refine", {}, "fix"),
        ("solo", {}, "rewrite-again"),
        ("triad", {"check": True}, "fix"),
    ],
)
async def test_a_client_gets_the_reworked_answer_with_its_tail(protocol: str, options: Json, last: str) -> None:
    async with connect() as client:
        started = await call_tool(client, "council_start", question=QUESTION, protocol=protocol, options=options)
        done = await wait_until_done(client, started["run"])
        report = await call_tool(client, "council_result", run=started["run"])
    assert (done["status"], done["phase"]) == ("complete", last)
    assert report["answer"]
    assert report["tail"][-1].startswith("Trust: ")
    assert ("check" in report) == (protocol != "solo")


@pytest.mark.behaviour("50-mcp-check")
async def test_a_protocol_without_a_text_for_others_refuses_the_check() -> None:
    async with connect() as client:
        line = await call_refused(client, "council_start", question=QUESTION, protocol="solo", options={"check": True})
    assert "the protocol solo has no answer that other seats can check: drop check, or choose another protocol" in line


@pytest.mark.behaviour("50-mcp-tools")
async def test_an_estimate_is_the_plan_and_spends_nothing(data: Path) -> None:
    async with connect() as client:
        plan = await call_tool(
            client, "council_estimate", question=QUESTION, protocol="advisors", options={"flow": "debate", "rounds": 2}
        )
        assert (await call_tool(client, "council_list"))["runs"] == []
    assert (plan["schema"], plan["protocol"], plan["why"]) == ("council.plan/1", "advisors", "chosen by name")
    assert [phase["name"] for phase in plan["phases"]] == ["r1", "r2", "referee"]
    assert plan["calls"] == {"min": 7, "max": 7}
    assert plan["cost"] == {"low": 0.0, "expected": 0.0, "worst": 0.0}
    assert not processes(data)


@pytest.mark.behaviour("40-mcp-cap", "006-mcp-roots")
async def test_the_owners_flags_limit_callers(inner: Path) -> None:
    async with connect("--max-cost", "0.50", "--folder", str(inner)) as client:
        plan = await call_tool(client, "council_estimate", question="Is notes.md right?")
        over = await call_refused(client, "council_start", question=QUESTION, options={"max_cost": 0.75})
        out = await call_refused(client, "council_start", question=QUESTION, folder=str(inner.parent))
    assert (plan["cap"], plan["packet"]["files"]) == (0.5, ["notes.md"])
    assert "use 0.5 or less" in over
    assert "outside the allowed roots" in out


@pytest.fixture
def inner() -> Path:
    place = Path("inner").resolve()
    place.mkdir()
    (place / "notes.md").write_text("Cold storage is cheap.", encoding="utf-8")
    (place / "council.toml").write_text(SCRIPTED, encoding="utf-8")
    return place


# Errors


BAD: list[tuple[str, Json, str]] = [
    ("council_start", {}, 'needs "question"'),
    ("council_start", {"question": QUESTION, "mode": "x"}, 'has no argument "mode"'),
    ("council_start", {"question": ["a"]}, "should be a valid string"),
    ("council_start", {"question": QUESTION, "protocol": "colaborative"}, 'did you mean "collaborative"'),
    ("council_start", {"question": QUESTION, "options": {"flow": "paralel"}}, 'unknown flow "paralel": did you mean "parallel"'),
    ("council_start", {"question": QUESTION, "options": {"quick": True, "debate": True}}, "quick and debate are incompatible."),
    ("council_start", {"question": QUESTION, "options": {"rounds": 9}}, 'rounds "9" cannot be used'),
    ("council_start", {"question": QUESTION, "options": {"flow": "debate", "deep": True}}, "flow belongs to advisors"),
    ("council_start", {"question": QUESTION, "options": {"max_cost": "much"}}, 'max_cost "much" cannot be used'),
    ("council_start", {"question": QUESTION, "options": {"profile": ["fast"]}}, "unknown profile"),
    ("council_start", {"question": QUESTION, "options": {"timeout": -1}}, "a number of seconds above 0"),
    ("council_start", {"question": QUESTION, "options": {"seats": {"omega": "scripted:"}}}, "no protocol has such a seat"),
    ("council_start", {"question": QUESTION, "options": {"sprok": 1}}, "no protocol has the option sprok"),
    ("council_start", {"question": ""}, "no question was given"),
    ("council_start", {"question": QUESTION, "options": '{"rounds": 9}'}, 'rounds "9" cannot be used'),
    ("council_start", {"question": QUESTION, "options": "rounds=2"}, 'invalid options "rounds=2": it should be a JSON object'),
    ("council_start", {"question": QUESTION, "options": "[1]"}, "should be a JSON object"),
    ("council_cancel", {"run": "r99999"}, 'no run "r99999"'),
    ("council_wait", {"run": "r99999"}, 'no run "r99999"'),
    ("council_wait", {"run": "r99999", "seconds": "long"}, 'invalid seconds "long"'),
    ("council_result", {"run": "../../etc"}, "no run"),
    ("council_list", {"limit": 0}, "greater than or equal to 1"),
    ("council_begin", {}, 'unknown tool "council_begin"'),
]  # fmt: skip


@pytest.mark.behaviour("50-mcp-errors")
async def test_every_error_is_one_line(data: Path) -> None:
    async with connect() as client:
        for tool, arguments, error in BAD:
            assert error in await call_refused(client, tool, **arguments), (tool, arguments)
        assert (await call_tool(client, "council_list"))["runs"] == []
    assert not processes(data)


@pytest.mark.behaviour("50-mcp-wait")
def test_the_default_and_maximum_wait_is_45_seconds() -> None:
    assert TOOLS["council_wait"].parse_arguments("council_wait", {"run": "r2abcd"}).seconds == MAX_WAIT_S == 45
    assert TOOLS["council_wait"].schema["properties"]["seconds"]["maximum"] == 45


def test_without_the_sdk_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None; from council.doors.cli import main; main(['mcp'])"
    done = subprocess.run(
        [sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "pip install 'model-council[mcp]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_without_http_and_a_missing_folder_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    from council.doors.cli import run

    for flags, error in ((["--port", "8765"], "needs --http"), (["--folder", "nowhere"], "does not exist")):
        assert run(["mcp", *flags]) == 2
        assert error in capsys.readouterr().err


# Panel

PANEL_SCRIPT = """
["compare/clerk"]
reply = {{ agreed = [{{ point = "It depends.", answers = ["A", "B"] }}], disputed = [], unique = [], shared_conclusion = ["A", "B", "C"] }}
["answer/beta"]
{beta}
"""


def write_panel_script(path: Path, beta: str) -> None:
    """Configure a clerk that finds agreement, and a beta of this script."""
    script = path / "panel.toml"
    script.write_text(PANEL_SCRIPT.format(beta=beta), encoding="utf-8")
    Path("council.toml").write_text(SCRIPTED.replace('"scripted:"', f'"scripted:{script}"'), encoding="utf-8")
    trust_project()


@pytest.mark.behaviour("50-mcp-panel")
async def test_a_panel_returns_every_answer_and_the_comparison(tmp_path: Path) -> None:
    write_panel_script(tmp_path, 'text = "Yes.\\nConclusion: Move it.\\nConfidence: HIGH"')
    async with connect() as client:
        found = await call_tool(client, "council_panel", question=QUESTION, exclude_family="anthropic")
        [row] = (await call_tool(client, "council_list"))["runs"]
    assert (found["done"], found["status"], found["run"]) == (True, "complete", row["run"])
    seats = {seat["name"]: seat for seat in found["seats"]}
    assert list(seats) == ["alpha", "beta", "gamma"] and all(seat["text"] for seat in seats.values())
    assert (seats["beta"]["conclusion"], seats["beta"]["confidence"]) == ("Move it.", "HIGH")
    assert [len(one["seats"]) for one in found["consensus"]] == [2]
    assert found["comparison"]["state"] == "answered"
    assert found["trust"]["level"] == "MEDIUM"  # one vendor
    assert "answer" not in found


@pytest.mark.behaviour("50-mcp-panel")
async def test_a_panel_that_takes_longer_returns_its_status(tmp_path: Path) -> None:
    write_panel_script(tmp_path, "stall = true")
    async with connect() as client:
        status = await call_tool(client, "council_panel", question=QUESTION, seconds=1)
        assert (status["done"], "seats" in status) == (False, False)
        assert status["line"].startswith("panel ")
        await call_tool(client, "council_cancel", run=status["run"])


@pytest.mark.behaviour("50-mcp-panel")
async def test_a_vendor_that_does_not_exist_is_one_line() -> None:
    async with connect() as client:
        line = await call_refused(client, "council_panel", question=QUESTION, exclude_family=["antropic"])
    assert line.startswith('exclude_family: unknown vendor "antropic": did you mean "anthropic"? known are ')
