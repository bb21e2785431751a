"""The tasks extension of MCP (`io.modelcontextprotocol/tasks`): a run is a task, for clients that declare it.

`council_start` and `council_panel` then return a task in place of their result. `tasks/get` has the report when the
run has ended, or the questions to a person; `tasks/update` answers those, and `tasks/cancel` stops the run.
A task outlives the client and the server: its id is made from the stored run.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from council.doors.mcp.elicitation import ClientCall, Context, format_answer, make_question
from council.doors.mcp.results import ToolResult
from council.doors.mcp.tools_impl import CouncilTools, status_line
from council.engine.minutes import Minutes
from council.errors import UnknownRun, UsageError, message_for
from council.runs import worker_client
from council.runs.people import OpenQuestion
from council.store.interface import OPEN_STATUSES, Record, RunStatus
from council.types import Json

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_INTERVAL_MS = 2_000
TaskTool = Literal["council_start", "council_panel"]
TASK_TOOLS: tuple[TaskTool, ...] = ("council_start", "council_panel")
ResultMaker = Callable[[ToolResult], types.CallToolResult]


class TaskParams(types.RequestParams):
    task_id: str


class TaskUpdateParams(TaskParams):
    input_responses: types.InputResponses


class RunTasks:
    """The runs that were started as tasks."""

    def __init__(self, council_tools: CouncilTools, make_result: ResultMaker) -> None:
        self.tools, self.make_result = council_tools, make_result
        # Keys of the questions that the client got, by run: how often an answer was refused, and why. None: dismissed.
        self._refusals: dict[str, dict[str, tuple[int, str] | None]] = {}

    async def create(self, tool: TaskTool, run: str) -> Json:
        """Return the task of a run that this tool has queued."""
        record = await self.tools.shared_convener.store.load(run)
        task = _describe_task(tool, record, "working", status_line(Minutes.fold(record.entries), RunStatus.QUEUED))
        return task | {"resultType": "task"}

    async def get(self, context: Context, params: TaskParams) -> Json:
        tool, record = await self._find_task(context, params.task_id)
        convener, run = self.tools.shared_convener, record.run
        state = await convener.run_state(run)
        if state.needs_worker:
            await worker_client.ensure_worker(convener.store, run, convener.env)
        minutes = Minutes.fold(record.entries)
        if state.status not in OPEN_STATUSES:
            return await self._describe_end(tool, record, minutes, state.status)
        asks = {self._name_ask(row): row for row in await self._list_asks(ClientCall(context, {}), run)}
        awaited = [row["seat"] for row in await convener.open_asks(run)]
        line = status_line(minutes, state.status, awaited)
        if not asks:
            return _describe_task(tool, record, "working", line)
        requests = {
            key: types.ElicitRequest(params=make_question(row, self._find_problem(row))).model_dump(
                by_alias=True, mode="json", exclude_none=True
            )
            for key, row in asks.items()
        }
        return _describe_task(tool, record, "input_required", line) | {"inputRequests": requests}

    async def update(self, context: Context, params: TaskUpdateParams) -> Json:
        """Pass the answers of a person on. Answers to other questions are ignored, as the extension wants it."""
        _, record = await self._find_task(context, params.task_id)
        asks = {self._name_ask(row): row for row in await self._list_asks(ClientCall(context, {}), record.run)}
        for key, response in params.input_responses.items():
            if key in asks and isinstance(response, types.ElicitResult):
                await self._answer(asks[key], response)
        return {}

    async def cancel(self, context: Context, params: TaskParams) -> Json:
        _, record = await self._find_task(context, params.task_id)
        async with self.tools.owner.open_convener(self.tools.shared_convener) as convener:
            await convener.cancel(record.run)
        return {}

    # Parts

    async def _find_task(self, context: Context, task_id: str) -> tuple[TaskTool, Record]:
        """Return the tool and the run of a task. The id proves that its holder has started the run."""
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(code=types.METHOD_NOT_FOUND, message="Method not found", data=context.method)
        if not has_tasks(context):
            missing = types.MissingRequiredClientCapabilityErrorData(
                required_capabilities=types.ClientCapabilities(extensions={EXTENSION: {}})
            )
            raise MCPError(
                code=types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                message="Missing required client capability",
                data=missing.model_dump(by_alias=True, mode="json", exclude_none=True),
            )
        given = task_id.encode("utf-8", "replace")
        try:
            record = await self.tools.shared_convener.store.load(task_id.partition("-")[0])
            tools = [tool for tool in TASK_TOOLS if secrets.compare_digest(make_task_id(tool, record).encode(), given)]
            return tools[0], record
        except (UnknownRun, IndexError):
            raise MCPError(
                code=types.INVALID_PARAMS, message="no such task: it was deleted, or its id is wrong"
            ) from None

    async def _describe_end(self, tool: TaskTool, record: Record, minutes: Minutes, status: RunStatus) -> Json:
        line = status_line(minutes, status)
        if minutes.stopped == "cancelled":
            return _describe_task(tool, record, "cancelled", line)
        read = self.tools.read_panel if tool == "council_panel" else self.tools.read_result
        result = self.make_result(await read(record.run))
        content = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return _describe_task(tool, record, "completed", line) | {"result": content}

    async def _list_asks(self, caller: ClientCall, run: str) -> list[OpenQuestion]:
        """Return the open questions that this client can show and has not dismissed."""
        if not caller.has_forms:
            return []
        rows = await self.tools.shared_convener.open_asks(run)
        return [row for row in rows if self._refusals.get(run, {}).get(row["key"], (0, "")) is not None]

    def _name_ask(self, row: OpenQuestion) -> str:
        """Return the key of a question in this task: a new one after each refused answer."""
        count = (self._refusals.get(row["run"], {}).get(row["key"]) or (0, ""))[0]
        return f"{row['key']}#{count + 1}" if count else row["key"]

    def _find_problem(self, row: OpenQuestion) -> str:
        return (self._refusals.get(row["run"], {}).get(row["key"]) or (0, ""))[1]

    async def _answer(self, row: OpenQuestion, response: types.ElicitResult) -> None:
        refusals = self._refusals.setdefault(row["run"], {})
        form: Mapping[str, Any] | None = {"accept": response.content, "decline": {}}.get(response.action)
        if form is None:
            refusals[row["key"]] = None
            return
        try:
            await self.tools.shared_convener.answer(row["run"], row["key"], format_answer(row, form))
        except UsageError as error:
            count = (refusals.get(row["key"]) or (0, ""))[0]
            refusals[row["key"]] = (count + 1, message_for(error, "http"))


def has_tasks(context: Context) -> bool:
    """Return whether the client of this request takes tasks."""
    capabilities = context.session.client_capabilities
    is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return bool(is_modern and capabilities and EXTENSION in (capabilities.extensions or {}))


def make_task_id(tool: TaskTool, record: Record) -> str:
    """Return the id of a task. It cannot be guessed: the seed of a run is random and never shown."""
    return f"{record.run}-{hashlib.sha256(f'task {tool} {record.run} {record.seed}'.encode()).hexdigest()[:32]}"


def _describe_task(tool: TaskTool, record: Record, status: str, line: str) -> Json:
    updated = record.entries[-1].at if record.entries else record.created
    return {
        "taskId": make_task_id(tool, record),
        "status": status,
        "statusMessage": line,
        "createdAt": _format_time(record.created),
        "lastUpdatedAt": _format_time(updated),
        "ttlMs": None,
        "pollIntervalMs": POLL_INTERVAL_MS,
    }


def _format_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
