"""Execution of the rows of a batch: one row as a run, the shared cost limit, and the conveners that rows share."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from council.engine.minutes import Minutes
from council.planning.plan import Plan
from council.runs.batch_rows import Row
from council.runs.outcome import StopEvent
from council.runs.queues import ANY_WORKER, explain_folder_need
from council.runs.service import Convener
from council.settings import SettingFlags
from council.store.interface import OPEN_STATUSES, RunStatus, format_run_id
from council.store.run_store import RunStore

MAX_IDLE_CONVENERS = 8  # kept open between rows with the same options
SIGNIFICANT_DIGITS = 2  # of the cost limit of a row, so that rows share their settings

# One row


@dataclass(frozen=True, slots=True)
class RowRun:
    """The run of one row: a plan to start, or the id of a stored run to continue."""

    run: str
    plan: Plan | None = None
    resend: bool = True
    row: Row | None = None  # of a plan, which may have to fit a lower limit


RunRow = Callable[[Convener, RowRun, StopEvent], Awaitable[Minutes]]


async def run_here(convener: Convener, row: RowRun, stop: StopEvent) -> Minutes:
    """Execute a row in this process and return its minutes. `stop` interrupts it and leaves it resumable."""
    if row.plan is None:
        return await convener.resume(row.run, lambda entry: None, stop=stop, resend=row.resend)
    return await convener.run(row.plan, lambda entry: None, stop=stop)


async def run_by_workers(convener: Convener, row: RowRun, stop: StopEvent) -> Minutes:
    """Queue a row for the workers of the shared store, and follow it to its end. `stop` cancels it and leaves it
    resumable.

    A row that needs a folder or a program of this machine is executed here.
    """
    if row.plan is not None:
        if explain_folder_need(row.plan.setup()):
            return await run_here(convener, row, stop)
        await convener.enqueue(row.plan)
    elif (await convener.run_state(row.run)).status not in (*OPEN_STATUSES, RunStatus.COMPLETE):
        await convener.requeue(row.run)
    minutes = Minutes()
    following = asyncio.ensure_future(_follow(convener, row.run, minutes))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({following, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not following.done():
            await convener.cancel(row.run)
        await following
    finally:
        for task in (following, stopping):
            task.cancel()
    if stop.is_set() and minutes.stopped == "cancelled":
        minutes.stopped = "interrupted"
    return minutes


async def _follow(convener: Convener, run: str, minutes: Minutes) -> None:
    """Apply the events of a run until it ends. If its worker dies, another one continues it."""
    while True:
        async for entry in convener.follow(run, minutes.seq):
            minutes.on_event(entry)
        if not (await convener.run_state(run)).is_open:
            return


async def count_workers(store: RunStore) -> int:
    """Return how many workers could execute rows: 0 unless the store is shared."""
    return sum(ANY_WORKER in worker.queues for worker in await store.list_workers())


def make_run_id(batch: str, row: Row, generation: int) -> str:
    """Return the id of a row's run. A changed row has another one."""
    text = "\n".join([batch, row.hash, str(generation), row.id])
    return format_run_id(int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()))


# Money


class CostPool:
    """The cost limit of a batch, in billionths of a dollar. Each running row holds a part of it as its own limit."""

    def __init__(self, cap: int, spent: int) -> None:
        self.cap, self.committed = cap, spent
        self.is_used_up = False
        self._running = 0
        self._changed = asyncio.Condition()

    async def take(self, wanted: int, spent: int) -> int | None:
        """Return the limit of a row, which has already cost `spent`; None if the limit of the batch is used up.

        A row that does not fit waits until running ones have ended and returned their rest. If none is running, it gets
        the rest of the batch's limit.
        """
        async with self._changed:
            while not self.is_used_up:
                rest = self.cap - self.committed
                if wanted <= rest or (not self._running and rest > 0):
                    limit = spent + min(wanted, rest)
                    self.committed += limit - spent
                    self._running += 1
                    return limit
                if not self._running:
                    self.is_used_up = True
                    self._changed.notify_all()
                else:
                    await self._changed.wait()
            return None

    async def give_back(self, limit: int, spent: int) -> None:
        """Replace the limit of a row by its cost."""
        async with self._changed:
            self.committed += spent - limit
            self._running -= 1
            self._changed.notify_all()

    async def close(self) -> None:
        """Let no further row start."""
        async with self._changed:
            self.is_used_up = True
            self._changed.notify_all()


def round_up(nanos: int) -> int:
    """Return an amount of few digits that is not below this one."""
    step: int = 10 ** max(0, len(str(nanos)) - SIGNIFICANT_DIGITS)
    return -(-nanos // step) * step


# Conveners


class ConvenerPool:
    """Conveners by their flags. Rows with the same options share one, with its settings and members."""

    def __init__(self, make: Callable[[SettingFlags], Convener]) -> None:
        self._make = make
        self._open: dict[str, tuple[Convener, list[None]]] = {}  # with one item for each user

    @asynccontextmanager
    async def use(self, flags: SettingFlags) -> AsyncIterator[Convener]:
        key = json.dumps(flags, sort_keys=True)
        self._open[key] = self._open.pop(key) if key in self._open else (self._make(flags), [])
        convener, users = self._open[key]
        users.append(None)
        try:
            yield convener
        finally:
            users.pop()
            idle = [name for name, (_, others) in self._open.items() if not others]
            for name in idle[: max(0, len(idle) - MAX_IDLE_CONVENERS)]:
                await self._open.pop(name)[0].close()

    async def close(self) -> None:
        while self._open:
            await self._open.popitem()[1][0].close()
