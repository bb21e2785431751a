"""Limits of a vendor in requests and tokens per minute, which all processes of a store share.

Each limit is a token bucket. It fills evenly with 95 % of the limit per minute and holds 3 % of it, so that a minute
has at most 98 % of the limit and one request more, however the vendor counts its minutes. A request may start when no
bucket is in debt. It takes one request, its estimated input and its expected output, and gives back what it did not
use.

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
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Protocol

from council.counters import count
from council.errors import Fault, StoreError
from council.store.interface import Attempt, LimitChange, R
from council.types import Answer, Usage, estimate_tokens

WINDOW_S = 60.0
SHARE, BURST = 0.95, 0.03  # of a limit: what a bucket gets in a minute, and what it holds
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


# Buckets


@dataclass(slots=True)
class Bucket:
    """What is left of a limit at a time, which may be the start of a reserved request. Below 0, it is in debt."""

    per_minute: float
    level: float
    at: float

    @property
    def capacity(self) -> float:
        return BURST * self.per_minute

    @property
    def free_from(self) -> float:
        """Return when the next request may start."""
        return self.at + max(0.0, -self.level) / (SHARE * self.per_minute / WINDOW_S)

    def add(self, amount: float) -> None:
        self.level = min(self.capacity, self.level + amount)

    def take(self, amount: float, start: float) -> None:
        """Take an amount at a time that is not before the last one."""
        self.add((start - self.at) * SHARE * self.per_minute / WINDOW_S)
        self.level, self.at = self.level - amount, start


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


def load_buckets(limits: Amounts, state: str, now: float) -> dict[str, Bucket]:
    """Return the bucket of each limit; a new one is full. A time that is too far ahead is that of a clock set back."""
    stored, buckets = load_state(state), dict[str, Bucket]()
    for kind, per_minute in limits.items():
        level, at = stored.get(kind, (BURST * per_minute, now))
        is_ahead = at > now + MAX_AHEAD_S + CLOCK_MARGIN_S
        buckets[kind] = Bucket(per_minute, min(level, BURST * per_minute), now if is_ahead else at)
    return buckets


def take_from_buckets(
    limits: Amounts, returned: Amounts, wanted: Sequence[Amounts], state: str, now: float
) -> tuple[str, Grant]:
    """Give back what requests did not use, and reserve the next starts. Return the new state and the starts."""
    buckets = load_buckets(limits, state, now)
    for kind, bucket in buckets.items():
        bucket.add(returned.get(kind, 0))
    starts, pause = list[float](), 0.0
    for amounts in wanted:
        start = max(now, *(bucket.free_from for bucket in buckets.values()))
        if start > now + MAX_AHEAD_S:
            pause = min(start - now - MAX_AHEAD_S / 2, MAX_PAUSE_S)
            break
        for kind, bucket in buckets.items():
            bucket.take(amounts[kind], start)
        starts.append(start - now)
    stored = {kind: [bucket.level, bucket.at] for kind, bucket in buckets.items()}
    return json.dumps(stored), Grant(starts, pause)


# Queue


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


# Requests


@dataclass(slots=True)
class Reservation:
    """Start and amounts of one request."""

    limit: SharedLimit
    amounts: Amounts
    start: float  # on the clock of the event loop
    is_sent: bool = False

    def settle(self, attempt: Attempt, answer: Answer | Fault) -> None:
        """Correct the amounts to what the request has used."""
        used = _list_used(self.amounts, attempt, answer)
        self.limit.give_back({kind: amount - used[kind] for kind, amount in self.amounts.items()})

    def withdraw(self) -> None:
        """Give everything back, unless the request was sent."""
        if not self.is_sent:
            self.limit.give_back(self.amounts)


def _list_used(expected: Amounts, attempt: Attempt, answer: Answer | Fault) -> Amounts:
    """Return what a request has used. Where that is not known, what was expected."""
    if isinstance(answer, Answer):
        usage = answer.usage
        if not usage.known:
            written = max(usage.output, estimate_tokens(answer.text))
            usage = replace(usage, input=max(usage.input, int(expected["input"])), output=written)
        return list_amounts(usage)
    if attempt.delivery.is_connecting:
        return dict.fromkeys(expected, 0)
    if answer.has_status:  # vendors count refused requests, without an answer
        return {**expected, "output": 0, "tokens": expected["input"]}
    return expected


class VendorLimits:
    """The limits of one provider."""

    def __init__(self, name: str, per_minute: Amounts, store: LimitStore) -> None:
        """`per_minute` has the limits of the settings."""
        self.store = store
        take = partial(take_from_buckets, per_minute)
        self._shared = SharedLimit(name, per_minute, store, take) if per_minute else None

    async def reserve(self, usage: Usage) -> Reservation | None:
        """Reserve a start and the expected usage of a request."""
        if self._shared is None:
            return None
        amounts = list_amounts(usage)
        return Reservation(self._shared, amounts, await self._shared.reserve(amounts))
