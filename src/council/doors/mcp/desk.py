"""Implementation of the MCP tools. The local worker owns every run, so a client may disconnect and come back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from council.convene import Convener, summoning
from council.doors import bounds
from council.doors.bounds import Caps, Owner
from council.doors.listing import row
from council.doors.mcp.standing import line, standing
from council.doors.mcp.tools import LONGEST_WAIT, Asked, Common, Estimated, Listed, Named, Waited, common_of
from council.doors.mcp.waiting import UNFINISHED, Guest, Wait
from council.errors import UnknownRun, UsageError
from council.minutes import Minutes
from council.planning import Material, Plan
from council.render.clean import one_line
from council.render.report import report
from council.types import Json


class Desk:
    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self._caps = Caps.of(owner.settings(owner.folder))
        self._keeper = Convener(owner.folder, owner.env, config=owner.config)  # shares its store with the others
        self._tools: dict[str, Callable[[Any, Guest], Awaitable[Json]]] = {
            "council_start": self.start, "council_wait": self.wait, "council_result": self.result,
            "council_estimate": self.estimate, "council_list": self.list,
        }  # fmt: skip

    async def serve(self, tool: str, given: Any, guest: Guest) -> Json:
        return await self._tools[tool](given, guest)

    async def close(self) -> None:
        await self._keeper.close()

    # Starting

    async def start(self, given: Asked, guest: Guest) -> Json:
        async with self._planned(given, guest) as (convener, plan):
            with anyio.CancelScope(shield=True):  # a cancelled call must not leave a queued run without a worker
                run = await convener.enqueue(plan)
                await summoning.call(run, convener.env)
        return {"run": run}

    async def estimate(self, given: Estimated, guest: Guest) -> Json:
        async with self._planned(given, guest) as (_, plan):
            return plan.as_json()

    @asynccontextmanager
    async def _planned(self, given: Asked | Estimated, guest: Guest) -> AsyncIterator[tuple[Convener, Plan]]:
        """Yield the plan within the owner's limits, and the convener that can run it."""
        folder = bounds.folder_within(given.folder, guest.roots)
        bounds.refuse_owners(given.options)
        common, options = common_of(given.options)
        bounds.check_files(options, folder, guest.roots)
        settings = self.owner.settings(folder)
        bounds.check_members([*common.seats.values(), *_texts(options.get("explorer_model"))], settings)
        cap = self._caps.cap(Caps.of(settings), common.max_cost)
        convener = self._convener(folder, common, options.get("profile"), cap)
        material = Material(
            common.spec, common.decisions, common.base, redact=common.redact, skip_secrets=common.skip_secrets
        )
        try:
            plan = await convener.plan([given.question], options, protocol=given.protocol, material=material)
            bounds.check_members(plan.roster.everybody, settings)
            bounds.check_search(plan.options.get("search"), options.get("search"), folder, guest.roots, settings)
            yield convener, plan
        finally:
            await convener.close()

    def _convener(self, folder: Path, common: Common, profile: Any, cap: float | None) -> Convener:
        flags: Json = {"timeout": common.timeout, "effort": common.effort, "seats": dict(common.seats) or None}
        flags |= {"max_cost": cap, "allow_unpriced": self.owner.allow_unpriced or None}
        flags |= {"profile": profile if isinstance(profile, str) else None}  # the options check refuses other types
        flags = {name: value for name, value in flags.items() if value is not None}
        return Convener(folder, self.owner.env, flags=flags, config=self.owner.config, store=self._keeper.store)

    # Waiting

    async def wait(self, given: Waited, guest: Guest) -> Json:
        run = await self._known(given.run, guest.roots)
        minutes, status = await self._minutes(run)
        if status in UNFINISHED:
            await Wait(self._keeper, run, minutes, guest).up_to(min(given.seconds, LONGEST_WAIT))
        awaited = [row["seat"] for row in await self._keeper.open_asks(run)]
        return standing(*await self._minutes(run), awaited)

    async def _minutes(self, run: str) -> tuple[Minutes, str]:
        """Return the minutes so far and the status; a running run without an owner or a worker counts as stopped."""
        state = await self._keeper.standing(run)
        dead = state["status"] == "running" and not state["owned"] and not state["detached"]
        entries, _, _ = await self._keeper.store.since(run, 0)
        return Minutes.fold(entries), "stopped" if dead else str(state["status"])

    # Past runs

    async def result(self, given: Named, guest: Guest) -> Json:
        run = await self._known(given.run, guest.roots)
        minutes, status = await self._minutes(run)
        if status in UNFINISHED:
            raise UsageError(
                f'run {run} has not finished ({line(minutes, status)}): call council_wait {{"run": "{run}"}} first'
            )
        return report(minutes)

    async def list(self, given: Listed, guest: Guest) -> Json:
        runs = [run for run in await self._keeper.runs() if bounds.within(Path(run["folder"]), guest.roots)]
        rows = [row(run) for run in runs if not given.unfinished or run["status"] != "complete"]
        return {"runs": [row | {"question": one_line(row["question"])} for row in rows[: given.limit]]}

    async def _known(self, said: str, roots: Sequence[Path]) -> str:
        """Return the id of the named run, or raise UnknownRun if its folder is outside the client's roots."""
        try:
            run = await self._keeper.named(said)
            minutes, _ = await self._minutes(run)
        except UnknownRun:
            minutes = Minutes()
        if not minutes.run or not bounds.within(Path(minutes.folder), roots):
            raise UnknownRun(f'no run "{said}" in the folders of this client: council_list shows its runs')
        return minutes.run


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else []
