"""When a request may start: an adaptive concurrency limit per provider, the limit of runs at once, and the warm start.

AIMD: start at 4 slots and add one per answered call while all are in use. After the first 429, multiply by 0.8 per
episode and add 1/slots per answered call. Calls that started before a decrease do not decrease it again. A call without
output for 2 s lends its slot to the next one, because it may be thinking or hung. The number of calls in flight never
exceeds the provider's maximum. Time spent waiting for a slot does not count against a seat's timeout.

Limits of a vendor: a provider with limits per minute has a start reserved for each request, by `vendor_limits.py`.

Rate limit: a provider with a rate gets its requests at evenly spaced turns. The processes of a shared store reserve
them together. A request that misses its turn waits for another one, so that no second has more requests than the rate
allows.

Warm start: of several requests that begin with the same long text, the first is sent alone if its vendor caches that
text when it reads it. The others follow at its first output, and then cost a fraction.
"""

from __future__ import annotations

import asyncio
import os
import resource
import threading
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol
from weakref import WeakKeyDictionary

from council.calling.fault_table import FAULT_TABLE
from council.calling.vendor_limits import Reservation, VendorLimits
from council.counters import count
from council.members.base import Member, cache_rules
from council.types import Ask, Usage, estimate_tokens

START_SLOTS = 4
DECREASE_FACTOR = 0.8
SILENT_AFTER_S = 2.0  # seconds without output after which a call lends its slot
MIN_WARM_TOKENS = 2_000  # a vendor caches only long prefixes, and a short one is not worth the wait
MAX_WARM_WAIT_S = 5.0  # a first request that takes longer does not delay the others


# Rate

TURN_SPACING = 1.04  # turns are spaced so much wider than the rate asks for, because requests leave a little late
MAX_LATE_S = 0.02  # a request that is later than this waits for another turn
PREPARATION_S = 0.04  # before its turn, a request is recorded
MAX_LEASED_S = 0.25  # of turns that one process reserves at once


class TurnStore(Protocol):
    async def lease_turns(self, provider: str, interval: float, count: int) -> float:
        """Reserve turns over all processes. Return the seconds until the first; the others follow at the interval."""


class RateLimit:
    """Evenly spaced turns for the requests to one provider; those of waiting requests are reserved together."""

    def __init__(self, provider: str, per_second: float, store: TurnStore | None = None) -> None:
        """With a store, all processes that use it share the turns."""
        self._provider, self._interval = provider, TURN_SPACING / per_second
        self.store = store
        self._lease = store.lease_turns if store else self._lease_here
        self._free_from = 0.0
        self._waiting: deque[asyncio.Future[float]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def take_turn(self) -> float:
        """Return the time of a turn on the clock of the event loop."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[float] = loop.create_future()
        self._waiting.append(waiter)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._lease_turns())
        asked = loop.time()
        turn = await waiter
        count("rate_wait_seconds", self._provider.partition(" ")[0], max(0.0, turn - asked))
        return turn

    async def _lease_turns(self) -> None:
        loop, most = asyncio.get_running_loop(), max(1, int(MAX_LEASED_S / self._interval))
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
            try:
                delay = await self._lease(self._provider, self._interval, len(batch))
            except Exception as error:
                for waiter in batch:
                    if not waiter.done():
                        waiter.set_exception(error)
                continue
            first = loop.time() + delay
            for n, waiter in enumerate(batch):
                if not waiter.done():
                    waiter.set_result(first + n * self._interval)

    async def _lease_here(self, provider: str, interval: float, count: int) -> float:
        now = asyncio.get_running_loop().time()
        first = max(now, self._free_from)
        self._free_from = first + interval * count
        return first - now


@dataclass(slots=True)
class ConcurrencyLimit:
    """Concurrency limit of one provider, shared by all runs of the process."""

    max_slots: int
    slots: float = START_SLOTS
    lends_silent_slots: bool = True  # whether a call without output lends its slot to another
    busy: int = 0
    in_flight: int = 0  # all calls in flight, including those that lent their slot
    slowdowns: int = 0  # number of decreases
    waiters: deque[asyncio.Future[None]] = field(default_factory=deque)
    rate: RateLimit | None = None
    vendor: VendorLimits | None = None  # limits per minute

    def __post_init__(self) -> None:
        self.slots = min(self.slots, self.max_slots)

    @property
    def is_full(self) -> bool:
        return self.busy >= int(self.slots) or self.in_flight >= self.max_slots

    async def wait_for_slot(self) -> None:
        if not self.is_full and not self.waiters:
            self._take_slot()
            return
        waiter = asyncio.get_running_loop().create_future()
        self.waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # got a slot while being cancelled
                self.release_slot()
                self.finish_call()
            raise

    def _take_slot(self) -> None:
        self.busy += 1
        self.in_flight += 1

    def release_slot(self) -> None:
        self.busy -= 1
        self._wake_waiters()

    def finish_call(self) -> None:
        self.in_flight -= 1
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        while self.waiters and not self.is_full:
            waiter = self.waiters.popleft()
            if not waiter.done():
                self._take_slot()
                waiter.set_result(None)

    def decrease(self) -> None:
        self.slots = max(1.0, self.slots * DECREASE_FACTOR)
        self.slowdowns += 1

    def increase(self) -> None:
        if self.is_full:
            self.slots = min(float(self.max_slots), self.slots + (1 / self.slots if self.slowdowns else 1.0))
            self._wake_waiters()


def shared_prefix(ask: Ask) -> str:
    """Return the text with which the requests of all seats begin, up to the end of the packet, if there is one."""
    if not ask.shared or ask.bare:
        return ""
    system = "".join(message["content"] for message in ask.messages if message["role"] == "system")
    return system + next(message["content"] for message in ask.messages if message["role"] == "user")[: ask.shared]


@dataclass(slots=True)
class WarmStart:
    """The long prefixes that the requests of one run have in common, each with an event that its first request sets."""

    max_wait: float = MAX_WARM_WAIT_S
    first_outputs: dict[tuple[object, ...], asyncio.Event] = field(default_factory=dict)

    async def wait(self, member: Member, ask: Ask) -> asyncio.Event | None:
        """Wait for the first output of an earlier request with this prefix. Return an event if this is the first one.

        The caller sets the event at the first output, and in any case when the request ends.
        """
        rules = cache_rules(member) if ask.cache_points else None
        prefix = shared_prefix(ask) if rules and rules.has_points else ""
        if estimate_tokens(prefix) <= MIN_WARM_TOKENS:
            return None
        key = (member.name, ask.schema_name, ask.effort, hash(prefix))  # a vendor caches them apart
        if key not in self.first_outputs:
            self.first_outputs[key] = asyncio.Event()
            return self.first_outputs[key]
        with suppress(TimeoutError):
            await asyncio.wait_for(self.first_outputs[key].wait(), self.max_wait)
        return None


@dataclass(slots=True)
class Slot:
    """Slot of one call: wait for it and hold it with `async with`."""

    limit: ConcurrencyLimit
    slowdowns_at_start: int = 0  # number of decreases when the call started
    has_output: bool = False
    is_held: bool = False
    timer: asyncio.TimerHandle | None = None
    first_output: asyncio.Event | None = None  # set for the requests that wait for this one
    turn: float = 0.0  # when to send, if the provider has a rate
    member: str = ""
    usage: Usage | None = None  # that is expected, if the provider has limits per minute
    reservation: Reservation | None = None

    async def __aenter__(self) -> Slot:
        await self.limit.wait_for_slot()
        self.slowdowns_at_start, self.is_held = self.limit.slowdowns, True
        if self.limit.rate or self.usage:
            try:
                await self._wait_for_limits()
            except BaseException:
                await self.__aexit__()
                raise
        self.timer = asyncio.get_running_loop().call_later(SILENT_AFTER_S, self.release_if_silent)
        return self

    async def __aexit__(self, *error: object) -> None:
        if self.timer:
            self.timer.cancel()
        self.release()
        self.limit.finish_call()
        if self.reservation:
            self.reservation.withdraw()

    async def _wait_for_limits(self) -> None:
        """Reserve a start under the limits per minute, then a turn of the rate. Wait until shortly before each."""
        now = asyncio.get_running_loop().time
        if self.limit.vendor and self.usage:
            self.reservation = await self.limit.vendor.reserve(self.member, self.usage)
            await asyncio.sleep(self.reservation.start - now() - PREPARATION_S)
        if self.limit.rate:
            self.turn = await self.limit.rate.take_turn()
            await asyncio.sleep(self.turn - now() - PREPARATION_S)

    async def wait_for_turn(self) -> float:
        """Wait for the turn of a recorded request, or for a later one if it was missed. Return the seconds."""
        now = asyncio.get_running_loop().time
        started = now()
        if self.reservation:
            await asyncio.sleep(self.reservation.start - now())
        while self.limit.rate:
            await asyncio.sleep(self.turn - now())
            if now() - self.turn <= MAX_LATE_S:
                break
            self.turn = await self.limit.rate.take_turn()
        if self.reservation:
            self.reservation.is_sent = True
        return now() - started

    def on_output(self) -> None:
        """Record the first output of the call, which shows that the provider accepts this load."""
        self.has_output = True
        if self.first_output:
            self.first_output.set()
        self.limit.increase()

    def release_if_silent(self) -> None:
        if self.limit.lends_silent_slots and not self.has_output:
            self.release()

    def release(self) -> None:
        if self.is_held:
            self.is_held = False
            self.limit.release_slot()

    def report_result(self, fault: str = "") -> None:
        """Adjust the limit to the result: a fault kind, or an empty string for an answer."""
        if not fault and not self.has_output:
            self.on_output()
        elif fault and FAULT_TABLE[fault].reduces_concurrency and self.slowdowns_at_start == self.limit.slowdowns:
            self.limit.decrease()


_limits: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, ConcurrencyLimit]] = WeakKeyDictionary()


def get_limit(provider: str, max_slots: int, *, lends_silent_slots: bool = True) -> ConcurrencyLimit:
    """Return the provider's limit, shared by all runs of the process."""
    limits = _limits.setdefault(asyncio.get_running_loop(), {})
    if provider not in limits:
        limits[provider] = ConcurrencyLimit(max_slots, lends_silent_slots=lends_silent_slots)
    return limits[provider]


def no_limit(member: str) -> ConcurrencyLimit:
    """Return a limit that never blocks, for members without a provider."""
    return ConcurrencyLimit(2**31, 2**31)


# Runs at once

FILES_PER_RUN = 24  # store, lock, reports and connections; those of an ended run are closed a little later
RESERVED_FILES = 32  # for imports, look-ups and command-line agents
MIN_PARALLEL_RUNS = 16  # as many start at once
START_INTERVAL_S = 0.01  # between the starts of further ones: a run needs about as much CPU time
MAX_TURN_S = 0.01  # a turn of the event loop that takes longer shows that the process has enough to do
MAX_START_WAIT_S = 0.1  # at least one waiting run starts in this time


class RunLimit:
    """Limit of runs at once in this process, so that they do not need more open files than the system allows.

    Of many runs that are started together, each begins when the event loop has time for it: they would end no earlier,
    and each would need its memory meanwhile. Waiting runs begin in order. A run inside another run does not wait,
    because the other one may wait for it.
    """

    def __init__(self) -> None:
        self._is_inside: ContextVar[bool] = ContextVar("is_inside_run", default=False)
        self.reset()

    def reset(self) -> None:
        """Count from zero: after a fork, the runs of the parent process do not end in this one."""
        self._lock = threading.Lock()  # event loops of several threads share the limit
        self._max_runs, self._running = 0, 0
        self._waiters: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[None]:
        """Wait until another run may start, and count this one."""
        if self._is_inside.get():
            yield
            return
        await self._wait()
        try:
            if self._running > MIN_PARALLEL_RUNS:
                await self._wait_for_time()
            token = self._is_inside.set(True)
            try:
                yield
            finally:
                with suppress(ValueError):  # closed in another context
                    self._is_inside.reset(token)
        finally:
            self._release()

    async def _wait_for_time(self) -> None:
        """Return when the event loop is not busy, or after a short time; one run after the other."""
        loop = asyncio.get_running_loop()
        async with self._turns.setdefault(loop, asyncio.Lock()):
            started = loop.time()
            while True:
                planned = loop.time() + START_INTERVAL_S
                await asyncio.sleep(START_INTERVAL_S)
                if loop.time() - planned < MAX_TURN_S or loop.time() - started > MAX_START_WAIT_S:
                    return

    async def _wait(self) -> None:
        with self._lock:
            if not self._running:
                self._max_runs = count_possible_runs()
            if self._running < self._max_runs:
                self._running += 1
                return
            loop = asyncio.get_running_loop()
            waiter = loop.create_future()
            self._waiters.append((loop, waiter))
        try:
            await waiter
        except asyncio.CancelledError:
            with self._lock:
                is_waiting = (loop, waiter) in self._waiters
                if is_waiting:
                    self._waiters.remove((loop, waiter))
            if not is_waiting:  # its turn came while it was cancelled
                self._release()
            raise

    def _release(self) -> None:
        """Give the place to the next waiting run, or free it."""
        while True:
            with self._lock:
                if not self._waiters:
                    self._running -= 1
                    return
                loop, waiter = self._waiters.popleft()
            with suppress(RuntimeError):  # its loop is closed: take the next one
                loop.call_soon_threadsafe(_start_waiter, waiter)
                return


def _start_waiter(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def count_possible_runs() -> int:
    """Return how many runs the limit of open files allows, at least one."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return 2**31
    try:
        used = len(os.listdir("/dev/fd"))  # noqa: PTH208  # `Path.iterdir` takes several calls for each
    except OSError:
        used = RESERVED_FILES
    return max(1, (limit - used - RESERVED_FILES) // FILES_PER_RUN)


RUN_LIMIT = RunLimit()
os.register_at_fork(after_in_child=RUN_LIMIT.reset)
