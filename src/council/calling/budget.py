"""Budget of one run: reserve the maximum cost before a request, charge the real cost after it.

The reservation is the request's bytes as input plus the maximum output, at list price. The charge uses the provider's token
counts. Without counts, an answer is charged by its length. A failed request that may have been billed is charged its full
reservation.
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

Place = tuple[str, int]  # step key, attempt number


@dataclass(frozen=True, slots=True)
class Caps:
    """Spending caps in dollars, for this run and for all runs of a day. None means no cap."""

    run: float | None = None
    day: float | None = None

    def __bool__(self) -> bool:
        return self.run is not None or self.day is not None


class Till(Protocol):
    """Store interface that the budget uses."""

    def post(self, run: str, rows: Sequence[Row]) -> None: ...
    async def reserve(self, run: str, hold: Hold) -> Refused | None: ...


@dataclass(slots=True)
class Budget:
    """Budget over the spending rows of the store, which all processes share."""

    till: Till
    record: Record
    price: Callable[[Member], Price | None]
    caps: Caps = Caps()
    _open: set[Place] = field(default_factory=set)  # this process's requests in flight
    _freed: asyncio.Event = field(default_factory=asyncio.Event)  # set, then replaced, when one of them finishes

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
        """Record a request without a known price. Nothing is reserved for it."""
        now = time.time()
        self.record.spending[key, n] = Spent(member, None, reserved)
        self.till.post(self.record.run, [("reserve", (key, n, member, now, today(now), "", reserved))])

    async def _take(self, hold: Hold) -> None:
        """Reserve the cost. Wait while other requests of this run are in flight, because they may release part of theirs."""
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
        except asyncio.CancelledError:  # the request was not sent
            self.till.post(self.record.run, [("release", (hold.key, hold.n))])
            raise


def today(now: float) -> str:
    """Return the local date that spending is counted under."""
    return time.strftime("%Y-%m-%d", time.localtime(now))


def _tokens(body: bytes) -> int:
    """Estimate input tokens from the whole body, because the schema is billed too: 3 bytes per token."""
    return -(-len(body) // 3)


def _bill(held: Spent, attempt: Attempt, answer: Answer | Fault) -> tuple[float, bool]:
    """Return the cost in dollars and whether it is an estimate."""
    price, most = Price.from_json(held.price or {}), dollars(held.reserved or 0)
    if isinstance(answer, Fault):
        return (0.0, False) if answer.kind in UNPAID else (most, True)
    if answer.usage.known:
        return _rounded(exact(answer.usage, price)), False
    if is_reasoning(attempt.member):  # the thinking tokens are unknown
        return most, True
    usage = answer.usage
    guess = Usage(max(usage.input, _tokens(attempt.body)), max(usage.output, tokens_of(answer.text)), usage.cached)
    return _rounded(exact(guess, price)), True


def _rounded(bill: Decimal) -> float:
    return dollars(nanos(bill))


def _explained(refused: Refused, run: str) -> str:
    scope, fix = "this run", f"raise it with `council resume {run} --max-cost USD`"
    if refused.whose == "day":
        scope, fix = "today", f"raise [budget] max_cost_per_day, or run `council resume {run}` tomorrow"
    spent, cap, wanted = (shown(dollars(amount)) for amount in (refused.spent, refused.cap, refused.wanted))
    return (
        f"the budget for {scope} is used up: {spent} of {cap} is spent or reserved, "
        f"and the next request could cost {wanted}: {fix}"
    )
