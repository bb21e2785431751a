"""How many calls of one provider may be under way at once: as many as it bears, found out as we go.

It begins with four places. While all are taken, each call that is heard makes one more, until the provider first says "too
many"; then four fifths are left, and as many good calls as there are places win one back. An episode counts once: whoever
went in before the places became fewer says nothing new. A call without a word keeps nobody out for long: it may think, or
be hung. But never are more under way than the provider may have at all: whoever waits for that waits here, on no clock.
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
SILENT = 2.0  # seconds without a word after which a call's place is lent to the next


@dataclass(slots=True)
class Gate:
    """The way in to one provider, for all runs of the process."""

    most: int
    places: float = START
    lends: bool = True  # whether a call without a word may give its place to another for a while
    busy: int = 0
    inside: int = 0  # all that are under way, also those whose place is lent
    episodes: int = 0  # how often it was told to slow down
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.places = min(self.places, self.most)

    @property
    def full(self) -> bool:
        return self.busy >= int(self.places) or self.inside >= self.most

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Pass]:
        """One place, when there is one."""
        await self._enter()
        given = Pass(self, self.episodes)
        silence = asyncio.get_running_loop().call_later(SILENT, given.lend)
        try:
            yield given
        finally:
            silence.cancel()
            given.give_back()
            self.out()

    async def _enter(self) -> None:
        if not self.full and not self.waiting:
            self._take()
            return
        place = asyncio.get_running_loop().create_future()
        self.waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # it was let in as it went away
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
            place = self.waiting.popleft()
            if not place.done():
                self._take()
                place.set_result(None)

    def slower(self) -> None:
        self.places = max(1.0, self.places * FEWER)
        self.episodes += 1

    def faster(self) -> None:
        if self.full:
            self.places = min(float(self.most), self.places + (1 / self.places if self.episodes else 1.0))
            self._let_in()


@dataclass(slots=True)
class Pass:
    """One call's place."""

    gate: Gate
    episode: int  # the gate's, when the call went in
    spoke: bool = False
    held: bool = True

    def hear(self) -> None:
        """It was let in, and speaks: the provider bears it."""
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
        """What came of the call: a kind of the table, or nothing if it was answered."""
        if not fault and not self.spoke:
            self.hear()
        elif fault and TABLE[fault].slows and self.episode == self.gate.episodes:
            self.gate.slower()


_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Gate]] = WeakKeyDictionary()


def gate_of(provider: str, most: int, *, lends: bool = True) -> Gate:
    """The provider's gate; all runs of the process go through the same one."""
    gates = _gates.setdefault(asyncio.get_running_loop(), {})
    if provider not in gates:
        gates[provider] = Gate(most, lends=lends)
    return gates[provider]


def open_gate(member: str) -> Gate:
    """For whoever has no provider: as many at once as like to come."""
    return Gate(2**31, 2**31)
