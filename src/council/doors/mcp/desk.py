"""Implementation of the MCP tools. The local worker owns every run, so a client may disconnect and come back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from council.convene import Convener, summoning
from council.doors import bounds
from council.doors.bounds import BudgetCaps, Owner
from council.doors.listing import run_summary
from council.doors.mcp.standing import run_status, status_line
from council.doors.mcp.tools import (
    MAX_WAIT_S,
    CommonOptions,
    EstimateArguments,
    ListArguments,
    ResultArguments,
    StartArguments,
    WaitArguments,
    split_common_options,
)
from council.doors.mcp.waiting import UNFINISHED, ClientContext, RunWait
from council.errors import UnknownRun, UsageError
from council.minutes import Minutes
from council.planning import Material, Plan
from council.render.clean import single_line
from council.render.report import build_report
from council.types import Json


class CouncilTools:
    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self._caps = BudgetCaps.from_settings(owner.settings(owner.folder))
        self._shared_convener = Convener(
            owner.folder, owner.env, config=owner.config
        )  # shares its store with the others
        self._handlers: dict[str, Callable[[Any, ClientContext], Awaitable[Json]]] = {
            "council_start": self.start, "council_wait": self.wait, "council_result": self.result,
            "council_estimate": self.estimate, "council_list": self.list_runs,
        }  # fmt: skip

    async def call(self, tool: str, arguments: Any, client: ClientContext) -> Json:
        return await self._handlers[tool](arguments, client)

    async def close(self) -> None:
        await self._shared_convener.close()

    # Starting

    async def start(self, arguments: StartArguments, client: ClientContext) -> Json:
        async with self._plan(arguments, client) as (convener, plan):
            with anyio.CancelScope(shield=True):  # a cancelled call must not leave a queued run without a worker
                run = await convener.enqueue(plan)
                await summoning.request_worker(run, convener.env)
        return {"run": run}

    async def estimate(self, arguments: EstimateArguments, client: ClientContext) -> Json:
        async with self._plan(arguments, client) as (_, plan):
            return plan.as_json()

    @asynccontextmanager
    async def _plan(
        self, arguments: StartArguments | EstimateArguments, client: ClientContext
    ) -> AsyncIterator[tuple[Convener, Plan]]:
        """Yield the plan within the owner's limits, and the convener that can run it."""
        folder = bounds.resolve_folder(arguments.folder, client.roots)
        bounds.refuse_owner_options(arguments.options)
        common, options = split_common_options(arguments.options)
        bounds.check_files(options, folder, client.roots)
        settings = self.owner.settings(folder)
        bounds.check_members([*common.seats.values(), *_as_list(options.get("explorer_model"))], settings)
        cap = self._caps.effective_cap(BudgetCaps.from_settings(settings), common.max_cost)
        convener = self._make_convener(folder, common, options.get("profile"), cap)
        material = Material(
            common.spec, common.decisions, common.base, redact=common.redact, skip_secrets=common.skip_secrets
        )
        try:
            plan = await convener.plan([arguments.question], options, protocol=arguments.protocol, material=material)
            bounds.check_members(plan.roster.member_names, settings)
            bounds.check_search(plan.options.get("search"), options.get("search"), folder, client.roots, settings)
            yield convener, plan
        finally:
            await convener.close()

    def _make_convener(self, folder: Path, common: CommonOptions, profile: Any, cap: float | None) -> Convener:
        flags: Json = {"timeout": common.timeout, "effort": common.effort, "seats": dict(common.seats) or None}
        flags |= {"max_cost": cap, "allow_unpriced": self.owner.allow_unpriced or None}
        flags |= {"profile": profile if isinstance(profile, str) else None}  # the options check refuses other types
        flags = {name: value for name, value in flags.items() if value is not None}
        return Convener(
            folder, self.owner.env, flags=flags, config=self.owner.config, store=self._shared_convener.store
        )

    # Waiting

    async def wait(self, arguments: WaitArguments, client: ClientContext) -> Json:
        run = await self._resolve_run(arguments.run, client.roots)
        minutes, status = await self._load_minutes(run)
        if status in UNFINISHED:
            await RunWait(self._shared_convener, run, minutes, client).wait(min(arguments.seconds, MAX_WAIT_S))
        awaited = [row["seat"] for row in await self._shared_convener.open_asks(run)]
        return run_status(*await self._load_minutes(run), awaited)

    async def _load_minutes(self, run: str) -> tuple[Minutes, str]:
        """Return the minutes so far and the status; a running run without an owner or a worker counts as stopped."""
        state = await self._shared_convener.run_state(run)
        dead = state["status"] == "running" and not state["owned"] and not state["detached"]
        entries, _, _ = await self._shared_convener.store.load_since(run, 0)
        return Minutes.fold(entries), "stopped" if dead else str(state["status"])

    # Past runs

    async def result(self, arguments: ResultArguments, client: ClientContext) -> Json:
        run = await self._resolve_run(arguments.run, client.roots)
        minutes, status = await self._load_minutes(run)
        if status in UNFINISHED:
            raise UsageError(
                f'run {run} has not finished ({status_line(minutes, status)}): call council_wait {{"run": "{run}"}} first'
            )
        return build_report(minutes)

    async def list_runs(self, arguments: ListArguments, client: ClientContext) -> Json:
        runs = [
            run for run in await self._shared_convener.runs() if bounds.is_within(Path(run["folder"]), client.roots)
        ]
        rows = [run_summary(run) for run in runs if not arguments.unfinished or run["status"] != "complete"]
        return {"runs": [row | {"question": single_line(row["question"])} for row in rows[: arguments.limit]]}

    async def _resolve_run(self, name: str, roots: Sequence[Path]) -> str:
        """Return the id of the named run, or raise UnknownRun if its folder is outside the client's roots."""
        try:
            run = await self._shared_convener.resolve_run(name)
            minutes, _ = await self._load_minutes(run)
        except UnknownRun:
            minutes = Minutes()
        if not minutes.run or not bounds.is_within(Path(minutes.folder), roots):
            raise UnknownRun(f'no run "{name}" in the folders of this client: council_list shows its runs')
        return minutes.run


def _as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else []
