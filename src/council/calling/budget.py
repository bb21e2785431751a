"""The money of one run: what may be spent, what is held for requests under way, what was charged.

Held is the dearest a request can be: its bytes as input, all the room its answer has, at list price. Charged is what the
provider counted. Where it did not say, an answer is charged by its length, and a request that may have been paid for and
came to nothing keeps all that was held for it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Protocol

from council import events as ev
from council.calling.purse import bound, room
from council.errors import BudgetSpent, Fault
from council.members.base import Member
from council.money import FREE, UNPAID, Price, at_most, dollars, exact, nanos, shown
from council.record import Attempt, Hold, Record, Refused, Row, Spent
from council.settings import is_reasoning
from council.types import Answer, Ask, Usage, tokens_of

Place = tuple[str, int]  # a step's key and the number of the attempt


@dataclass(frozen=True, slots=True)
class Caps:
    """What a run, and all runs of a day together, may cost, in dollars; None: as much as it takes."""

    run: float | None = None
    day: float | None = None

    def __bool__(self) -> bool:
        return self.run is not None or self.day is not None


class Till(Protocol):
    """What a budget needs of the store."""

    def post(self, run: str, rows: Sequence[Row]) -> None: ...
    async def reserve(self, run: str, hold: Hold) -> Refused | None: ...


@dataclass(slots=True)
class Budget:
    """A purse over the store's money rows, which all processes share."""

    till: Till
    record: Record
    price: Callable[[Member], Price | None]
    caps: Caps = Caps()
    _open: set[Place] = field(default_factory=set)  # this process's requests under way
    _freed: asyncio.Event = field(default_factory=asyncio.Event)  # set, and put anew, as one of them comes back

    def bounded(self, ask: Ask) -> Ask:
        return replace(ask, max_tokens=bound(ask)) if self.caps else ask

    async def reserve(self, key: str, n: int, member: Member, ask: Ask, body: bytes) -> float | None:
        price = self.price(member)
        if price == FREE:
            return 0.0
        if price is None:
            self._note(key, n, member.name, None)
            return None
        wanted = nanos(at_most(_tokens(body), room(member, ask), price), up=True)
        await self._take(self._hold(key, n, member.name, price, wanted))
        self.record.spending[key, n] = Spent(member.name, price.as_json(), wanted)
        self._open.add((key, n))
        return dollars(wanted)

    def settle(self, key: str, attempt: Attempt, answer: Answer | Fault) -> ev.Billed | None:
        held = self.record.spending.get((key, attempt.n))
        if held is None or held.price is None or held.charged is not None:
            return None
        usd, estimated = _bill(held, attempt, answer)
        self._open.discard((key, attempt.n))
        freed, self._freed = self._freed, asyncio.Event()
        freed.set()
        return ev.Billed(key, key.rpartition("/")[2], attempt.n, attempt.member, usd, estimated)

    def _hold(self, key: str, n: int, member: str, price: Price, wanted: int) -> Hold:
        now = time.time()
        run, day = (None if cap is None else nanos(Decimal(str(cap))) for cap in (self.caps.run, self.caps.day))
        return Hold(key, n, member, now, today(now), json.dumps(price.as_json()), wanted, run, day)

    def _note(self, key: str, n: int, member: str, reserved: int | None) -> None:
        """A request whose price nobody knows is counted, not held."""
        now = time.time()
        self.record.spending[key, n] = Spent(member, None, reserved)
        self.till.post(self.record.run, [("reserve", (key, n, member, now, today(now), "", reserved))])

    async def _take(self, hold: Hold) -> None:
        """Hold the money. While requests of this run are under way that may leave some of theirs, it is worth waiting."""
        if not self.caps:
            self.till.post(self.record.run, [("reserve", hold.row())])
            return
        freed = self._freed
        while refused := await self._try(hold):
            if not self._open and not freed.is_set():
                raise BudgetSpent(_explained(refused, self.record.run))
            await freed.wait()
            freed = self._freed

    async def _try(self, hold: Hold) -> Refused | None:
        try:
            return await self.till.reserve(self.record.run, hold)
        except asyncio.CancelledError:  # nothing was sent for it
            self.till.post(self.record.run, [("release", (hold.key, hold.n))])
            raise


def today(now: float) -> str:
    """The day money is counted by: the one on the wall."""
    return time.strftime("%Y-%m-%d", time.localtime(now))


def _tokens(body: bytes) -> int:
    """What a request comes to as input; its schema is read too."""
    return -(-len(body) // 3)


def _bill(held: Spent, attempt: Attempt, answer: Answer | Fault) -> tuple[float, bool]:
    """Dollars, and whether they are an estimate."""
    price, most = Price.from_json(held.price or {}), dollars(held.reserved or 0)
    if isinstance(answer, Fault):
        return (0.0, False) if answer.kind in UNPAID else (most, True)
    if answer.usage.known:
        return _rounded(exact(answer.usage, price)), False
    if is_reasoning(attempt.member):  # nobody knows how long it thought
        return most, True
    told = answer.usage
    guess = Usage(max(told.input, _tokens(attempt.body)), max(told.output, tokens_of(answer.text)), told.cached)
    return _rounded(exact(guess, price)), True


def _rounded(bill: Decimal) -> float:
    return dollars(nanos(bill))


def _explained(refused: Refused, run: str) -> str:
    whose, more = "this run", f"`council resume {run} --max-cost …` goes on"
    if refused.whose == "day":
        whose, more = "this day", f"raise [budget] max_cost_per_day, or `council resume {run}` goes on later"
    spent, cap, wanted = (shown(dollars(amount)) for amount in (refused.spent, refused.cap, refused.wanted))
    return (
        f"the money for {whose} is not enough: {spent} of {cap} are spent or held for requests under way, "
        f"and the next one could cost {wanted}: {more}"
    )
