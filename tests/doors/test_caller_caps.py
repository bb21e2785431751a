"""Caps over HTTP, MCP and chat completions: no caller raises a cap of the owner, by any field of any route or tool."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute
from mcp import Client

from council.doors.limits import Owner
from council.doors.mcp.server import make_server
from council.doors.mcp.tools import TOOLS
from council.doors.mcp.tools_impl import CouncilTools
from council.doors.web.app import ROUTERS
from tests.acceptance.helpers import Workspace
from tests.doors.web.conftest import write_project
from tests.doors.web.server import QUESTION, Response, WebServer, environment
from tests.fake_provider import FakeProvider, Reply
from tests.trusted_project import trust_project

Json = dict[str, Any]
RUN_CAP, DAY_CAP = 1.0, 6.0
PRICES = '[prices."sim:*"]\ninput = 5.0\noutput = 25.0\n'
BUDGET = f"[budget]\nmax_cost = {RUN_CAP}\nmax_cost_per_day = {DAY_CAP}\n"
HIGH = 1e6

# What each operation with a body can spend: nothing, or what the table of requests below tries. A new one has to be
# added.
FREE = {
    "open_session": "checks a token", "create_code": "makes a code", "estimate_run": "makes a plan", "cancel_run": "ends a run",
    "change_run": "changes a title", "answer_ask": "answers as a person", "delete_run": "removes a run",
    "record_outcome": "labels a run", "cancel_response": "ends a run", "delete_response": "removes a run",
    "upload_attachment": "keeps a file", "delete_attachment": "removes a file", "set_up_key": "stores a key", "set_up_search": "stores a setting",
}  # fmt: skip
SPENDING = {"start_run", "resume_run", "fork_run", "create_chat_completion", "create_response"}
FREE_TOOLS = {"council_wait", "council_result", "council_cancel", "council_list"}
SPENDING_TOOLS = {"council_start", "council_panel", "council_estimate"}
RESUMING_TOOLS = {"council_resume"}

# Fields with which a caller might try to raise a cap.
FIELDS: list[Json] = [
    {"max_cost": HIGH}, {"max_cost": str(HIGH)}, {"max_cost": -1}, {"max_cost": "Infinity"}, {"max_cost_per_day": HIGH},
    {"budget": {"max_cost": HIGH}}, {"allow_unpriced": True}, {"config": "/tmp/rich.toml"}, {"user_cap": HIGH}, {"user": ""},
    {"prices": {"sim:*": {"input": 0, "output": 0}}}, {"settings": {"budget": {"max_cost": HIGH}}}, {"flags": {"max_cost": HIGH}},
    {"cap": HIGH}, {"is_row": True}, {"batch": {"max_cost": HIGH}}, {"trust": True}, {"env": {"COUNCIL_MAX_COST": str(HIGH)}},
    {"metadata": {"max_cost": HIGH}}, {"max_tokens": 10**9}, {"max_completion_tokens": 10**9}, {"profile": "thorough"}, {"setup": {"max_cost": HIGH}},
]  # fmt: skip


@pytest.fixture
def site(provider: FakeProvider, tmp_path: Any) -> Iterator[WebServer]:
    table = Workspace(write_project(tmp_path), provider)
    table.configure(more=BUDGET)
    own = tmp_path / "config" / "council" / "config.toml"
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(PRICES)
    served = WebServer(table.folder, environment(tmp_path))
    yield served
    served.close()


def stored_caps(site: WebServer) -> dict[str, float | None]:
    """Return the cap with which each run would be executed, by run."""
    with site.database() as db:
        return dict(db.execute("SELECT id, json_extract(setup, '$.max_cost') FROM runs").fetchall())


def check_spending(site: WebServer, cap: float = DAY_CAP) -> None:
    """Check that no run and no day exceeds its cap, with what is in doubt."""
    with site.database() as db:
        rows = db.execute("SELECT run, sum(coalesce(charged, reserved)) FROM spending GROUP BY run").fetchall()
    assert all(spent <= RUN_CAP * 1e9 for _, spent in rows)
    assert sum(spent for _, spent in rows) <= cap * 1e9
    today = site.get("/api/spend?since=today")["today"]
    assert today["usd"] <= today["cap"] == cap


def test_each_operation_and_each_tool_is_known_to_spend_or_not() -> None:
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    names = {route.name for route in routes if route.methods & {"POST", "PUT", "PATCH", "DELETE"}}
    assert names == SPENDING | FREE.keys()
    assert TOOLS.keys() == SPENDING_TOOLS | RESUMING_TOOLS | FREE_TOOLS


@pytest.mark.behaviour("40-caller-caps")
def test_no_field_of_a_request_raises_the_cap_of_a_run(site: WebServer, provider: FakeProvider) -> None:
    """Requests are refused in one line, or their runs have the cap of the owner."""
    provider.answer = lambda seen: Reply(status=401)
    run = site.post("/api/runs", {"question": QUESTION, "protocol": "triad"}, 201)["run"]
    site.wait_for_end(run)
    messages = [{"role": "user", "content": QUESTION}]
    bodies: list[tuple[str, Callable[[Json], Json]]] = [
        ("/api/runs", lambda more: {"question": QUESTION, "protocol": "triad", **more}),
        ("/api/runs", lambda more: {"question": QUESTION, "protocol": "triad", "options": more}),
        ("/api/runs", lambda more: {"question": QUESTION, "protocol": "triad", "continues": run, **more}),
        (f"/api/runs/{run}/fork", lambda more: more), (f"/api/runs/{run}/resume", lambda more: more),
        ("/v1/chat/completions", lambda more: {"model": "council/triad", "messages": messages, **more}),
        ("/v1/responses", lambda more: {"model": "council/triad", "input": QUESTION, "background": True, **more}),
    ]  # fmt: skip
    for path, make in bodies:
        for more in FIELDS:
            response = site.ask("POST", path, make(more))
            if response.status >= 400:
                assert_one_line(response, path)
    query = f"?max_cost={HIGH}&allow_unpriced=true&cap={HIGH}"
    headers = {"X-Max-Cost": str(HIGH), "Council-Max-Cost": str(HIGH), "Cookie": f"max_cost={HIGH}"}
    site.ask("POST", f"/api/runs{query}", {"question": QUESTION, "protocol": "triad"}, headers=headers)
    caps = stored_caps(site)
    assert len(caps) > 5 and set(caps.values()) == {RUN_CAP}
    check_spending(site)


def assert_one_line(response: Response, path: str) -> None:
    error = response.json["error"]
    message = error["message"] if isinstance(error, dict) else error
    assert message and "\n" not in message and "Traceback" not in message, (path, message)


@pytest.mark.behaviour("40-caller-caps")
def test_a_run_with_a_higher_cap_is_resumed_and_forked_with_the_cap_of_the_server(site: WebServer) -> None:
    """The owner started it from the command line, with another cap."""
    run = site.run_council(protocol="triad", settings={"max_cost": 3.0})
    assert stored_caps(site) == {run: 3.0}
    fork = site.post(f"/api/runs/{run}/fork", {}, 202)["run"]
    mark_incomplete(site, run)
    site.post(f"/api/runs/{run}/resume", {}, 202)
    assert stored_caps(site) == {run: RUN_CAP, fork: RUN_CAP}


@pytest.mark.behaviour("40-caller-caps")
def test_a_run_of_a_folder_with_a_higher_cap_of_a_day_is_not_resumed_or_forked(site: WebServer) -> None:
    rich = site.folder.parent / "rich"
    rich.mkdir()
    (rich / "council.toml").write_text((site.folder / "council.toml").read_text().replace(BUDGET, ""))
    trust_project(rich)
    home, site.folder = site.folder, rich
    run = site.run_council(protocol="triad")
    site.folder = home
    assert stored_caps(site) == {run: None}
    with site.database() as db:
        db.execute("UPDATE runs SET status = 'incomplete' WHERE id = ?", (run,))
    for action in ("resume", "fork"):
        assert "max_cost_per_day of this folder exceeds" in site.refused(f"/api/runs/{run}/{action}", {})
    assert stored_caps(site) == {run: None}


@pytest.mark.anyio
@pytest.mark.behaviour("40-caller-caps", "40-mcp-cap")
async def test_no_argument_of_a_tool_raises_the_cap_of_a_run(site: WebServer) -> None:
    owner = Owner(site.folder.resolve(), site.env)
    tools = CouncilTools(owner)
    try:
        async with Client(make_server(tools)) as client:
            for name in sorted(SPENDING_TOOLS):
                for more in FIELDS:
                    for arguments in ({"question": QUESTION, **more}, {"question": QUESTION, "options": more}, {"question": QUESTION, "options": json.dumps(more)}):  # fmt: skip
                        given = arguments | ({"seconds": 0} if name == "council_panel" else {})
                        result = await client.call_tool(name, given)
                        text = result.content[0].text  # type: ignore[union-attr]
                        assert "\n" not in text and "Traceback" not in text
                        if not result.is_error and name == "council_estimate":
                            assert json.loads(text)["cap"] <= RUN_CAP
    finally:
        await tools.close()
    caps = await asyncio.to_thread(stored_caps, site)
    assert set(caps.values()) <= {RUN_CAP}


@pytest.mark.anyio
@pytest.mark.behaviour("40-caller-caps", "40-mcp-cap")
async def test_no_argument_raises_the_cap_of_a_run_that_a_tool_resumes(site: WebServer) -> None:
    """The owner started it from the command line, with another cap."""
    run = await asyncio.to_thread(site.run_council, protocol="triad", settings={"max_cost": 3.0})
    tools = CouncilTools(Owner(site.folder.resolve(), site.env))
    try:
        async with Client(make_server(tools)) as client:
            for more in ({}, *FIELDS):
                await asyncio.to_thread(mark_incomplete, site, run)
                result = await client.call_tool("council_resume", {"run": run, **more})
                assert result.is_error == bool(more), more
                await client.call_tool("council_wait", {"run": run})
                assert set((await asyncio.to_thread(stored_caps, site)).values()) == {RUN_CAP}
            assert "exceeds the limit" in str(await client.call_tool("council_resume", {"run": run, "max_cost": HIGH}))
    finally:
        await tools.close()


def mark_incomplete(site: WebServer, run: str) -> None:
    with site.database() as db:
        db.execute("UPDATE runs SET status = 'incomplete' WHERE id = ?", (run,))


@pytest.mark.behaviour("40-caller-caps", "40-budget-race")
def test_parallel_requests_over_all_doors_stay_within_the_cap_of_the_day(
    site: WebServer, provider: FakeProvider
) -> None:
    """The endpoint bills the whole output that a request allows."""
    table = Workspace(site.folder, provider)
    table.configure(more="[budget]\nmax_cost = 1.0\nmax_cost_per_day = 2.5\n")
    site.stop()
    site.start()
    table.answers.instead |= {
        seat: lambda seen: Reply(text="word " * 30, usage={"prompt_tokens": 900, "completion_tokens": 10**6})
        for seat in ("alpha", "beta")
    }  # fmt: skip
    started: list[str] = []
    refusals: list[str] = []

    def start(n: int) -> None:
        if n % 2:
            body = {"model": "council/triad", "messages": [{"role": "user", "content": f"{QUESTION} {n}"}]}
            response = site.ask("POST", "/v1/chat/completions", body)
            run = response.headers.get("x-council-run")
        else:
            response = site.ask("POST", "/api/runs", {"question": f"{QUESTION} {n}", "protocol": "triad"})
            run = response.json.get("run")
        if run:
            started.append(run)
        if response.status >= 400:
            assert_one_line(response, str(n))
            refusals.append(str(response.json["error"]))

    threads = [threading.Thread(target=start, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    ends = [site.wait_for_end(run) for run in started]
    check_spending(site, 2.5)
    assert any(end["status"] == "complete" for end in ends)
    assert refusals or any(end["status"] != "complete" for end in ends)  # the cap did not cover all of them
