"""Behaviour of the MCP tools: plan, start, wait for, cancel, list and report runs."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from council.doors import limits
from council.doors.limits import BudgetCaps, Owner
from council.doors.mcp.elicitation import ClientCall, InputRequired, format_answer, make_question
from council.doors.mcp.results import (
    CancelledRun,
    PanelResult,
    RunList,
    RunStatusObject,
    StartedRun,
    ToolResult,
    add_panel_fields,
)
from council.doors.mcp.tools import (
    MAX_WAIT_S,
    CancelArguments,
    EstimateArguments,
    ListArguments,
    PanelArguments,
    ResultArguments,
    ResumeArguments,
    StartArguments,
    WaitArguments,
    name_tools,
    split_common_options,
)
from council.engine.minutes import Minutes
from council.engine.plan_object import PlanObject
from council.engine.records import ReportObject
from council.engine.trust import compute_trust
from council.errors import UnknownRun, UsageError
from council.planning.plan import Material, Plan
from council.render.report import read_report
from council.render.tail import add_tail
from council.runs import worker_client
from council.runs.history import filter_evaluations
from council.runs.people import OpenQuestion
from council.runs.service import Convener
from council.settings import SettingFlags
from council.settings.schema import quote_value
from council.store.interface import OPEN_STATUSES, RunRow, RunStatus
from council.text_cleanup import clean, single_line


def run_status(minutes: Minutes, status: RunStatus, awaited_seats: Sequence[str] = ()) -> RunStatusObject:
    return {
        "run": minutes.run,
        "status": status,
        "phase": minutes.rounds[-1].name if minutes.rounds else None,
        "heard": minutes.answered_count,
        "done": status not in OPEN_STATUSES,
        "line": status_line(minutes, status, awaited_seats),
    }


def status_line(minutes: Minutes, status: RunStatus, awaited_seats: Sequence[str] = ()) -> str:
    protocol = minutes.plan.get("protocol", "council")
    if awaited_seats and status is RunStatus.RUNNING:
        return f"waiting for a person: {', '.join(awaited_seats)} has not answered; answer with `council watch {minutes.run}`"
    if status is RunStatus.QUEUED or (status is RunStatus.RUNNING and not minutes.phases):
        return f"{protocol} is queued"
    if not minutes.phases:
        return f"{status} before the first phase ({_format_reason(minutes)}): {_word_resume(minutes)}"
    if status is RunStatus.RUNNING:
        return f"{protocol} in {_format_progress(minutes)}, {max(0, time.time() - minutes.started):.0f} s so far"
    if status is RunStatus.COMPLETE:
        return f'complete: {_format_outcome(minutes)}; call council_result {{"run": "{minutes.run}"}} for the report'
    if status is RunStatus.STOPPED:
        return f"stopped in {_format_progress(minutes)}: {_word_resume(minutes)}"
    return f"{status} ({_format_reason(minutes)}): council_result has the partial report; {_word_resume(minutes)}"


def _word_resume(minutes: Minutes) -> str:
    return f'continue it with council_resume {{"run": "{minutes.run}"}}'


def word_report(report: ReportObject) -> ReportObject:
    """Return a report whose lines by Council name tools in place of commands."""
    return {
        **report,
        "answer": name_tools(report["answer"]),
        "tail": list(map(name_tools, report["tail"])),
        "sections": [{**section, "text": name_tools(section["text"])} for section in report.get("sections", [])],
        "degraded": [{**row, "reason": name_tools(row["reason"])} for row in report["degraded"]],
    }


def _format_progress(minutes: Minutes) -> str:
    if not minutes.rounds:
        return "the first phase"
    phase = minutes.rounds[-1]
    return f"{phase.name}: {len(phase.said)} of {len(phase.asked)} answered"


def _format_outcome(minutes: Minutes) -> str:
    word = minutes.verdict.get("verdict") or minutes.verdict.get("outcome") or "an answer"
    outcome = minutes.outcomes.own
    turned_out = f", turned out {outcome['label']}" if outcome else ""
    return f"{word}, trust {compute_trust(minutes).level}{turned_out}"


def _format_reason(minutes: Minutes) -> str:
    return name_tools(single_line(minutes.reason or minutes.stopped or "no reason given", 300))


PANEL = "panel"
PROGRESS_INTERVAL_S = 1.0  # seconds between progress reports
MAX_FORM_ATTEMPTS = 3  # attempts at an answer that must match a schema
CANCEL_WAIT_S = 10.0  # seconds until a cancelled run has stopped
ASK_POLL_S = 0.3  # seconds between polls for open questions


@dataclass(frozen=True, slots=True)
class ClientContext:
    """Client of one call: its roots, its progress callback, and its person if it can show forms."""

    roots: tuple[Path, ...]
    report_progress: Callable[[str], Awaitable[None]]
    person: ClientCall | None = None


@dataclass(slots=True)
class RunWait:
    convener: Convener
    run: str
    minutes: Minutes
    guest: ClientContext
    input_required: InputRequired | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _skipped_asks: set[str] = field(default_factory=set)  # questions the person dismissed

    async def wait(self, seconds: float) -> None:
        """Wait until the run ends or the time is up; an open form extends the wait."""
        self.scope.deadline = anyio.current_time() + seconds
        with self.scope:
            async with anyio.create_task_group() as group:
                group.start_soon(self._report_progress)
                if self.guest.person:
                    group.start_soon(self._ask_open_questions, self.guest.person)
                await self._follow_to_end()
                group.cancel_scope.cancel()
        if self.input_required:
            raise self.input_required

    async def _follow_to_end(self) -> None:
        while True:
            if (await self.convener.run_state(self.run)).needs_worker:
                await worker_client.ensure_worker(self.convener.store, self.run, self.convener.env)
            async for entry in self.convener.follow(self.run, self.minutes.seq):
                self.minutes.on_event(entry)
            state = await self.convener.run_state(self.run)
            if not (state.is_active and state.is_detached):
                return

    async def _report_progress(self) -> None:
        while True:
            await self.guest.report_progress(status_line(self.minutes, RunStatus.RUNNING))
            await anyio.sleep(PROGRESS_INTERVAL_S)

    # Questions to a person

    async def _ask_open_questions(self, person: ClientCall) -> None:
        while True:
            for row in await self.convener.open_asks(self.run):
                if row["key"] not in self._skipped_asks:
                    await self._ask_person(person, row)
            await anyio.sleep(ASK_POLL_S)

    async def _ask_person(self, person: ClientCall, row: OpenQuestion) -> None:
        """Ask one question until it is answered here or elsewhere, or dismissed."""
        deadline, self.scope.deadline = self.scope.deadline, math.inf  # a person needs more time than one wait
        trouble = ""
        try:
            for _ in range(MAX_FORM_ATTEMPTS):
                given = await self._ask_once(person, row, trouble)
                trouble = "" if given is None else await self._submit_answer(row, format_answer(row, given))
                if not trouble:
                    break
            if trouble or given is None:
                self._skipped_asks.add(row["key"])
        finally:
            self.scope.deadline = deadline

    async def _ask_once(self, person: ClientCall, row: OpenQuestion, problem: str) -> Mapping[str, Any] | None:
        """Return the filled form, or None if it was dismissed or answered elsewhere."""
        given = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._cancel_when_closed, row["key"], group.cancel_scope)
            try:
                given = await person.ask(row["key"], make_question(row, problem))
            except InputRequired as needed:
                self.input_required = needed
                self.scope.cancel()
            group.cancel_scope.cancel()
        return given

    async def _submit_answer(self, row: OpenQuestion, answer: str) -> str:
        """Submit the answer and return why it was rejected; "" if accepted or no longer open."""
        try:
            await self.convener.answer(self.run, row["key"], answer)
        except UsageError as error:
            return str(error) if await self._is_open(row["key"]) else ""
        return ""

    async def _cancel_when_closed(self, key: str, scope: anyio.CancelScope) -> None:
        while True:
            if not await self._is_open(key):
                return scope.cancel()
            await anyio.sleep(ASK_POLL_S)

    async def _is_open(self, key: str) -> bool:
        return key in [row["key"] for row in await self.convener.open_asks(self.run)]


class CouncilTools:
    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self._caps = BudgetCaps.from_settings(owner.settings(owner.folder))
        self.shared_convener = Convener(owner.folder, owner.env, config=owner.config)  # the others use its store
        self._handlers: dict[str, Callable[[Any, ClientContext], Awaitable[ToolResult]]] = {
            "council_start": self.start,
            "council_wait": self.wait,
            "council_result": self.result,
            "council_cancel": self.cancel,
            "council_resume": self.resume,
            "council_estimate": self.estimate,
            "council_list": self.list_runs,
            "council_panel": self.hold_panel,
        }

    async def call(self, tool: str, arguments: Any, client: ClientContext) -> ToolResult:
        return await self._handlers[tool](arguments, client)

    async def close(self) -> None:
        await self.shared_convener.close()

    # Starting

    async def start(self, arguments: StartArguments, client: ClientContext) -> StartedRun:
        async with self._plan(arguments, client) as (convener, plan):
            with anyio.CancelScope(shield=True):  # a cancelled call must not leave a queued run without a worker
                run = await convener.enqueue(plan)
                await worker_client.ensure_worker(convener.store, run, convener.env)
        return {"run": run}

    async def hold_panel(self, arguments: PanelArguments, client: ClientContext) -> PanelResult | RunStatusObject:
        """Start a panel and wait for it. Return its answers and their comparison, or its status if it takes longer."""
        run = (await self.start_panel(arguments, client))["run"]
        status = await self.wait(WaitArguments(run=run, seconds=arguments.seconds), client)
        return await self.read_panel(run) if status["done"] else status

    async def start_panel(self, arguments: PanelArguments, client: ClientContext) -> StartedRun:
        excluded = {"exclude_family": list(arguments.exclude_family)} if arguments.exclude_family else {}
        request = StartArguments(
            question=arguments.question,
            protocol=PANEL,
            options={**arguments.options, **excluded},
            folder=arguments.folder,
        )
        return await self.start(request, client)

    async def estimate(self, arguments: EstimateArguments, client: ClientContext) -> PlanObject:
        async with self._plan(arguments, client) as (_, plan):
            return plan.as_json()

    @asynccontextmanager
    async def _plan(
        self, arguments: StartArguments | EstimateArguments, client: ClientContext
    ) -> AsyncIterator[tuple[Convener, Plan]]:
        """Yield the plan within the owner's limits, and the convener that can run it."""
        folder = limits.resolve_folder(arguments.folder, client.roots)
        limits.refuse_owner_options(arguments.options)
        common, options = split_common_options(arguments.options)
        limits.check_files(options, folder, client.roots)
        settings, flags = limits.check_request(self.owner, self._caps, folder, common, options)
        if self.owner.allow_unpriced:
            flags["allow_unpriced"] = True
        attached = tuple(limits.read_attached(common.attach, folder, client.roots))
        material = Material(
            common.spec,
            common.decisions,
            common.base,
            redact=common.redact,
            skip_secrets=common.skip_secrets,
            look=common.look,
            attachments=attached,
        )
        async with self.owner.open_convener(self.shared_convener, folder, flags) as convener:
            question = arguments.question if clean(arguments.question).strip() else ""
            plan = await convener.plan([question], options, protocol=arguments.protocol, material=material)
            limits.check_members(plan.roster.member_names, settings)
            limits.check_search(plan.options.get("search"), options.get("search"), folder, client.roots, settings)
            yield convener, plan

    # Waiting

    async def wait(self, arguments: WaitArguments, client: ClientContext) -> RunStatusObject:
        run = await self.resolve_run(arguments.run, client.roots)
        minutes, status = await self.load_minutes(run)
        if status in OPEN_STATUSES:
            await RunWait(self.shared_convener, run, minutes, client).wait(min(arguments.seconds, MAX_WAIT_S))
        awaited = [row["seat"] for row in await self.shared_convener.open_asks(run)]
        return run_status(*await self.load_minutes(run), awaited)

    async def cancel(self, arguments: CancelArguments, client: ClientContext) -> CancelledRun:
        """Stop a run and return its status. `cancelled` is false if it had already ended."""
        run = await self.resolve_run(arguments.run, client.roots)
        async with self.owner.open_convener(self.shared_convener) as convener:
            is_cancelled = await convener.cancel(run)
        if is_cancelled:
            with anyio.move_on_after(CANCEL_WAIT_S):
                async for _ in self.shared_convener.follow(run, 0):
                    pass
        return {**run_status(*await self.load_minutes(run)), "cancelled": is_cancelled}

    async def resume(self, arguments: ResumeArguments, client: ClientContext) -> RunStatusObject:
        """Queue a run that stopped early, and return its status. Any other run is left as it is."""
        run = await self.resolve_run(arguments.run, client.roots)
        state = await self.shared_convener.run_state(run)
        if state.stored is RunStatus.COMPLETE:
            return run_status(*await self.load_minutes(run))
        with anyio.CancelScope(shield=True):  # a cancelled call must not leave a queued run without a worker
            if not state.is_active:
                await self._requeue(run, arguments.max_cost)
            await worker_client.ensure_worker(self.shared_convener.store, run, self.owner.env)
        return run_status(*await self.load_minutes(run))

    async def _requeue(self, run: str, max_cost: float | None) -> None:
        record = await self.shared_convener.store.load(run)
        flags: SettingFlags = {"max_cost": limits.find_run_cap(self.owner, self._caps, record, max_cost)}
        async with self.owner.open_convener(self.shared_convener, flags=flags) as convener:
            await convener.find_missing_keys(run)  # raises if the settings of its folder need trust
            await convener.requeue_after_close(run)

    async def load_minutes(self, run: str) -> tuple[Minutes, RunStatus]:
        """Return the minutes so far and the status."""
        state = await self.shared_convener.run_state(run)
        entries, _, _ = await self.shared_convener.store.load_since(run, 0)
        return await self.shared_convener.fold(entries, state), state.status

    # Past runs

    async def result(self, arguments: ResultArguments, client: ClientContext) -> ReportObject:
        run = await self.resolve_run(arguments.run, client.roots)
        return await self.read_result(run, with_tail=arguments.tail)

    async def read_result(self, run: str, *, with_tail: bool = True) -> ReportObject:
        """Return the report of a run that has ended."""
        minutes, status = await self.load_minutes(run)
        if status in OPEN_STATUSES:
            raise UsageError(
                f'run {run} has not finished ({status_line(minutes, status)}): call council_wait {{"run": "{run}"}} first'
            )
        report = read_report(minutes)
        return word_report(
            {**report, "answer": add_tail(report["answer"], report["tail"]) if with_tail else report["answer"]}
        )

    async def read_panel(self, run: str) -> PanelResult:
        """Return the status of a panel that has ended, its answers and their comparison."""
        status = run_status(*await self.load_minutes(run))
        return add_panel_fields(status, await self.read_result(run, with_tail=False))

    async def list_runs(self, arguments: ListArguments, client: ClientContext) -> RunList:
        rows: list[RunRow] = []
        filters = filter_evaluations(arguments.all)
        async for run in self.shared_convener.iter_runs(owner=arguments.owner, project=arguments.project, **filters):
            is_wanted = not arguments.unfinished or run["status"] is not RunStatus.COMPLETE
            if is_wanted and limits.is_within(Path(run["folder"]), client.roots):
                rows.append({**run, "question": single_line(run["question"])})
            if len(rows) == arguments.limit:
                break
        return {"runs": rows}

    async def resolve_run(self, name: str, roots: Sequence[Path]) -> str:
        """Return the id of the named run, or raise UnknownRun if its folder is outside the client's roots."""
        try:
            run = await self.shared_convener.resolve_run(name)
            minutes, _ = await self.load_minutes(run)
        except UnknownRun:
            minutes = Minutes()
        if not minutes.run or not limits.is_within(Path(minutes.folder), roots):
            raise UnknownRun(f"no run {quote_value(name)} in the folders of this client: council_list shows its runs")
        return minutes.run
