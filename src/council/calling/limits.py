"""Adaptive concurrency limit per provider.

AIMD: start at 4 slots and add one per answered call while all are in use. After the first 429, multiply by 0.8 per
episode and add 1/slots per answered call. Calls that started before a decrease do not decrease it again. A call without
output for 2 s lends its slot to the next one, because it may be thinking or hung. The number of calls in flight never
exceeds the provider's maximum. Time spent waiting for a slot does not count against a seat's timeout.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from council.calling.table import TABLE

START = 4
FEWER = 0.8
SILENT = 2.0  # seconds without output after which a call lends its slot


@dataclass(slots=True)
class Gate:
    """Concurrency limit of one provider, shared by all runs of the process."""

    most: int
    places: float = START
    lends: bool = True  # whether a call without output lends its slot to another
    busy: int = 0
    inside: int = 0  # all calls in flight, including those that lent their slot
    episodes: int = 0  # number of decreases
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.places = min(self.places, self.most)

    @property
    def full(self) -> bool:
        return self.busy >= int(self.places) or self.inside >= self.most

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Pass]:
        """Wait for a slot and hold it."""
        await self._enter()
        slot = Pass(self, self.episodes)
        timer = asyncio.get_running_loop().call_later(SILENT, slot.lend)
        try:
            yield slot
        finally:
            timer.cancel()
            slot.give_back()
            self.out()

    async def _enter(self) -> None:
        if not self.full and not self.waiting:
            self._take()
            return
        waiter = asyncio.get_running_loop().create_future()
        self.waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # got a slot while being cancelled
                self.leave()
                self.out()
            raise

    def _take(self) -> None:
        self.busy += 1
        self.inside += 1

    def leave(self) -> None:
        self.busy -= 1
        self._let_in()

    def out(self) -> None:
        self.inside -= 1
        self._let_in()

    def _let_in(self) -> None:
        while self.waiting and not self.full:
            waiter = self.waiting.popleft()
            if not waiter.done():
                self._take()
                waiter.set_result(None)

    def slower(self) -> None:
        self.places = max(1.0, self.places * FEWER)
        self.episodes += 1

    def faster(self) -> None:
        if self.full:
            self.places = min(float(self.most), self.places + (1 / self.places if self.episodes else 1.0))
            self._let_in()


@dataclass(slots=True)
class Pass:
    """Slot of one call."""

    gate: Gate
    episode: int  # number of decreases when the call started
    spoke: bool = False
    held: bool = True

    def hear(self) -> None:
        """Record the first output of the call, which shows that the provider accepts this load."""
        self.spoke = True
        self.gate.faster()

    def lend(self) -> None:
        if self.gate.lends and not self.spoke:
            self.give_back()

    def give_back(self) -> None:
        if self.held:
            self.held = False
            self.gate.leave()

    def learn(self, fault: str = "") -> None:
        """Adjust the limit to the result: a fault kind, or an empty string for an answer."""
        if not fault and not self.spoke:
            self.hear()
        elif fault and TABLE[fault].slows and self.episode == self.gate.episodes:
            self.gate.slower()


_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Gate]] = WeakKeyDictionary()


def gate_of(provider: str, most: int, *, lends: bool = True) -> Gate:
    """Return the provider's limit, shared by all runs of the process."""
    gates = _gates.setdefault(asyncio.get_running_loop(), {})
    if provider not in gates:
        gates[provider] = Gate(most, lends=lends)
    return gates[provider]


def open_gate(member: str) -> Gate:
    """Return a limit that never blocks, for members without a provider."""
    return Gate(2**31, 2**31)
