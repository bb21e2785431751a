"""The tasks extension: a client that declares it gets a task for a started run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import anyio
import jsonschema
import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from pydantic import ConfigDict

from council.doors.mcp.tasks import EXTENSION
from tests.doors.mcp.clients import QUESTION, SCRIPTED, call_tool, connect, wait_for_exit, wait_until_done
from tests.doors.mcp.test_outputs import STALL, write_script

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
FINISHED = ("completed", "cancelled", "failed")


@pytest.fixture(autouse=True)
def _worker_gone() -> Iterator[None]:
    Path("council.toml").write_text(SCRIPTED, encoding="utf-8")
    yield
    wait_for_exit(Path(os.environ["COUNCIL_DATA"]))


class CreatedTask(types.Result):
    """What a call returns that has become a task."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class TaskState(types.Result):
    model_config = ConfigDict(extra="allow")


class TaskRequest(types.Request[Json, str]):
    name_param = "taskId"


class Tasks(ClientExtension):
    """The client's side of the extension: it polls a task, and returns its result as that of the call."""

    identifier = EXTENSION

    def __init__(self) -> None:
        self.created: list[CreatedTask] = []

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self.resolve)]

    async def resolve(self, task: CreatedTask, context: ClaimContext) -> types.CallToolResult:
        self.created.append(task)
        state = await wait_for(context.session, task.task_id, *FINISHED)
        return types.CallToolResult.model_validate(state["result"])


async def ask_task(session: Any, method: str, task: str, **params: Any) -> Json:
    request = TaskRequest(method=method, params={"taskId": task, **params})
    return dict((await session.send_request(request, TaskState)).model_dump(by_alias=True))


async def start_task(client: Client, question: str = QUESTION) -> CreatedTask:
    found = await client.session.call_tool("council_start", {"question": question}, allow_claimed=True)
    assert isinstance(found, CreatedTask)
    return found


async def wait_for(session: Any, task: str, *wanted: str) -> Json:
    """Poll a task, a little slower each time, until it has one of these states."""
    for n in range(200):
        if (state := await ask_task(session, "tasks/get", task))["status"] in wanted:
            return state
        await anyio.sleep(min(0.01 * n, 0.5))
    raise AssertionError(state["status"], state["statusMessage"])


@pytest.mark.behaviour("50-mcp-tasks")
async def test_a_client_with_tasks_gets_the_report_from_the_call_that_starts_a_run() -> None:
    tasks = Tasks()
    async with connect(extensions=[tasks]) as client:
        assert EXTENSION in (client.server_capabilities.extensions or {})
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        report = await call_tool(client, "council_start", question=QUESTION)
        panel = await call_tool(client, "council_panel", question=QUESTION)
        assert await call_tool(client, "council_result", run=report["run"]) == report
        assert (await call_tool(client, "council_wait", run=report["run"]))["status"] == "complete"
    assert (report["schema"], report["status"]) == ("council.report/1", "complete")
    assert panel["done"] and [seat["name"] for seat in panel["seats"]] == ["alpha", "beta", "gamma"]
    for tool, value in (("council_start", report), ("council_panel", panel)):
        jsonschema.validate(value, schemas[tool])
    assert [task.status for task in tasks.created] == ["working", "working"]


@pytest.mark.behaviour("50-mcp-tasks", "50-mcp-gives-up")
async def test_a_task_outlives_its_client_and_its_server() -> None:
    async with connect(extensions=[Tasks()]) as client:
        task = await start_task(client)
    async with connect(extensions=[Tasks()]) as another:
        state = await wait_for(another.session, task.task_id, "completed")
        run = task.task_id.partition("-")[0]
        assert state["result"]["structuredContent"] == await call_tool(another, "council_result", run=run)
    assert (state["resultType"], state["ttlMs"]) == ("complete", None)
    assert state["createdAt"] <= state["lastUpdatedAt"]


@pytest.mark.behaviour("50-mcp-tasks")
async def test_a_cancelled_task_is_a_stopped_run(tmp_path: Path) -> None:
    write_script(tmp_path, *STALL)
    async with connect(extensions=[Tasks()]) as client:
        task = await start_task(client)
        assert (await wait_for(client.session, task.task_id, "working"))["pollIntervalMs"] > 0
        assert set(await ask_task(client.session, "tasks/cancel", task.task_id)) <= {"_meta", "resultType"}
        assert "council_resume" in (await wait_for(client.session, task.task_id, "cancelled"))["statusMessage"]
        await ask_task(client.session, "tasks/cancel", task.task_id)


@pytest.fixture
def typed() -> None:
    """Configure a person who judges a file."""
    Path("notes.md").write_text("Cold storage is cheap.\n", encoding="utf-8")
    Path("council.toml").write_text(SCRIPTED + '[seats.judge-1]\nmodel = "human"\n', encoding="utf-8")


@pytest.mark.behaviour("50-mcp-tasks", "006-mcp-elicitation")
async def test_a_task_asks_a_person_and_takes_the_answer(typed: None) -> None:
    async def not_asked(context: Any, params: Any) -> types.ElicitResult:
        raise AssertionError("a task is answered by tasks/update")

    async with connect(extensions=[Tasks()], elicitation_callback=not_asked) as client:
        task = await start_task(client, question="validate notes.md")
        state = await wait_for(client.session, task.task_id, "input_required")
        [(key, request)] = state["inputRequests"].items()
        assert request["method"] == "elicitation/create" and "Decline to abstain" in request["params"]["message"]
        bad = {"action": "accept", "content": {"key_insight": "The check is gone."}}
        await ask_task(client.session, "tasks/update", task.task_id, inputResponses={key: bad, "draft/nobody": bad})
        again = await wait_for(client.session, task.task_id, "input_required")
        [(renamed, request)] = again["inputRequests"].items()
        assert renamed != key and "not accepted" in request["params"]["message"]
        await ask_task(
            client.session, "tasks/update", task.task_id, inputResponses={key: {"action": "decline"}}
        )  # answered
        assert list((await ask_task(client.session, "tasks/get", task.task_id))["inputRequests"]) == [renamed]
        await ask_task(client.session, "tasks/update", task.task_id, inputResponses={renamed: {"action": "decline"}})
        state = await wait_for(client.session, task.task_id, "completed")
        assert state["result"]["structuredContent"]["seats"][0]["state"] == "refused"


@pytest.mark.behaviour("50-mcp-tasks")
async def test_nobody_reaches_a_task_without_its_id() -> None:
    async with connect(extensions=[Tasks()]) as client:
        task = await start_task(client)
        run = task.task_id.partition("-")[0]
        await wait_until_done(client, run)
        for wrong in (run, f"{run}-", f"{run}-{'0' * 32}", task.task_id.upper(), "r99999-0", "", "\0", "é" * 9_999):
            for method in ("tasks/get", "tasks/cancel"):
                with pytest.raises(MCPError, match="no such task") as refused:
                    await ask_task(client.session, method, wrong)
                assert refused.value.error.code == types.INVALID_PARAMS
    async with connect() as plain:
        with pytest.raises(MCPError) as refused:
            await ask_task(plain.session, "tasks/get", task.task_id)
        assert refused.value.error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
        assert refused.value.error.data == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        assert set(await call_tool(plain, "council_start", question=QUESTION)) == {"run"}
    async with connect(mode="legacy", extensions=[Tasks()]) as older:
        with pytest.raises(MCPError, match="Method not found"):
            await ask_task(older.session, "tasks/get", task.task_id)
        assert set(await call_tool(older, "council_start", question=QUESTION)) == {"run"}
