"""Queue of the requests of a process to a vendor whose limits all processes share.

Requests start in the order in which they reserve, over all processes. A process reserves only starts of the next two
seconds, those of its waiting requests together; until then a request keeps its place in the queue of its process.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol

from council.counters import count
from council.errors import StoreError
from council.store.interface import LimitChange, R
from council.types import Usage

WINDOW_S = 60.0
MAX_AHEAD_S = 2.0  # a start is reserved at most so long before it
MAX_PAUSE_S = 5.0  # until a process looks again: other ones may have given back more than expected
CLOCK_MARGIN_S = 1.0
Amounts = Mapping[str, float]  # by kind: requests, input, output, tokens (input and output together)


class LimitStore(Protocol):
    async def change_limit(self, name: str, change: LimitChange[R]) -> R:
        """Change the state of a limit that all processes share."""


def list_amounts(usage: Usage) -> Amounts:
    """Return what a request with this usage takes from each limit."""
    tokens = usage.input + usage.output
    return {"requests": 1, "input": usage.input, "output": usage.output, "tokens": tokens}


class Grant(NamedTuple):
    """Seconds until the starts of the first requests of a queue, and when to ask again for the others."""

    starts: list[float]
    pause: float = 0.0


def load_state(state: str) -> dict[str, list[float]]:
    """Return the numbers of a stored state by kind. A state that cannot be read counts as none."""
    with suppress(ValueError, AttributeError, TypeError):
        rows = {str(kind): [float(number) for number in row] for kind, row in json.loads(state).items()}
        return {kind: row for kind, row in rows.items() if all(map(math.isfinite, row))}
    return {}


class Waiter(NamedTuple):
    amounts: Amounts
    start: asyncio.Future[float]


TakeTurns = Callable[[Amounts, Sequence[Amounts], str, float], tuple[str, Grant]]


class SharedLimit:
    """Queue of the requests of this process to a vendor. Those that wait reserve their starts together."""

    def __init__(self, name: str, kinds: Collection[str], store: LimitStore, take: TakeTurns) -> None:
        self.name, self._kinds, self._store, self._take = name, kinds, store, take
        self._waiting: deque[Waiter] = deque()
        self._returned: dict[str, float] = {}
        self._wakes = asyncio.Event()  # set when something is given back
        self._task: asyncio.Task[None] | None = None

    async def reserve(self, amounts: Amounts) -> float:
        """Return the time of a start on the clock of the event loop."""
        loop = asyncio.get_running_loop()
        waiter = Waiter(amounts, loop.create_future())
        self._waiting.append(waiter)
        self._run()
        asked = loop.time()
        try:
            start = await waiter.start
        except asyncio.CancelledError:
            if waiter.start.done() and not waiter.start.cancelled() and not waiter.start.exception():
                self.give_back(amounts)
            raise
        count("rate_wait_seconds", self.name.partition(" ")[0], max(0.0, start - asked))
        return start

    def give_back(self, amounts: Amounts) -> None:
        """Return amounts that were reserved and not used. Negative ones were used beyond the reservation."""
        changed = {kind: amount for kind, amount in amounts.items() if amount and kind in self._kinds}
        for kind, amount in changed.items():
            self._returned[kind] = self._returned.get(kind, 0) + amount
        if changed:
            self._wakes.set()
            self._run()

    def _run(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._reserve_turns())

    async def _reserve_turns(self) -> None:
        """Reserve and give back until nothing is left to do, all of a moment in one change of the state."""
        while self._waiting or self._returned:
            batch = [waiter for waiter in self._waiting if not waiter.start.done()]
            self._waiting.clear()
            returned, self._returned = self._returned, {}
            self._wakes.clear()
            try:
                grant = await self._change(returned, [waiter.amounts for waiter in batch])
            except Exception as error:
                for waiter in batch:
                    if not waiter.start.done():
                        waiter.start.set_exception(error)
                continue
            self._answer(batch, grant)
            if grant.pause and not self._returned:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wakes.wait(), grant.pause)

    async def _change(self, returned: Amounts, wanted: Sequence[Amounts]) -> Grant:
        try:
            return await self._store.change_limit(self.name, partial(self._take, returned, wanted))
        except StoreError:
            if wanted:
                raise
            return Grant([])  # buckets fill by themselves

    def _answer(self, batch: Sequence[Waiter], grant: Grant) -> None:
        now = asyncio.get_running_loop().time()
        for waiter, delay in zip(batch, grant.starts, strict=False):
            if waiter.start.done():  # cancelled meanwhile
                self.give_back(waiter.amounts)
            else:
                waiter.start.set_result(now + delay)
        self._waiting.extendleft(reversed(batch[len(grant.starts) :]))
