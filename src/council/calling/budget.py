"""Budget of a run: output limits of a request, reservations before it is sent, and bills afterwards."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Protocol

from council import events as ev
from council.errors import BudgetSpent, Fault
from council.members.base import DEFAULT_MAX_TOKENS, Member
from council.money import (
    FREE,
    UNBILLED_FAULTS,
    Price,
    cache_saving,
    count_attachment_tokens,
    exact_cost,
    format_usd,
    max_cost,
    nanos_to_usd,
    usd_to_nanos,
)
from council.settings.catalogue import is_reasoning
from council.store.interface import Attempt, BudgetRefusal, Hold, Record, Row, SpendingRow
from council.types import Answer, Ask, Usage, estimate_tokens

TOKENS_PER_WORD = 1.4
MIN_ANSWER_TOKENS = 2048  # tokens; a lower cap truncates answers and saves little
AttemptId = tuple[str, int]  # step key, attempt number


class CallBudget(Protocol):
    """Budget for the requests of one run."""

    def cap_output(self, ask: Ask) -> Ask:
        """Return the ask with max_tokens set if spending is capped."""

    async def reserve(
        self, key: str, n: int, member: Member, ask: Ask, body: bytes, *, may_wait: bool = True
    ) -> float | None:
        """Reserve the maximum cost of a request and return it, or None if the price is unknown. Raise BudgetSpent."""

    def bill_attempt(self, key: str, attempt: Attempt, answer: Answer | Fault) -> ev.Billed | None:
        """Return the bill of a request that has a reservation."""

    def withdraw(self, key: str, n: int) -> None:
        """Forget a request that was cancelled before it was sent."""


class NoBudget:
    """Budget without caps or records."""

    def cap_output(self, ask: Ask) -> Ask:
        return ask

    async def reserve(
        self, key: str, n: int, member: Member, ask: Ask, body: bytes, *, may_wait: bool = True
    ) -> float | None:
        return None

    def bill_attempt(self, key: str, attempt: Attempt, answer: Answer | Fault) -> ev.Billed | None:
        return None

    def withdraw(self, key: str, n: int) -> None:
        pass


# Output limits


def max_answer_tokens(ask: Ask) -> int:
    """Return the output cap for an answer: the ask's own, or three times its requested words, at least 2,048 and at most 8,192."""
    if ask.max_tokens is not None or ask.words is None:
        return ask.max_tokens or DEFAULT_MAX_TOKENS
    return min(DEFAULT_MAX_TOKENS, max(MIN_ANSWER_TOKENS, math.ceil(3 * TOKENS_PER_WORD * ask.words)))


def max_billed_tokens(member: Member, ask: Ask) -> int:
    """Return the maximum billed output tokens: the answer cap plus the member's allowance for thinking."""
    output_limit = getattr(member, "max_output_tokens", None)
    return int(output_limit(ask, max_answer_tokens(ask)) if output_limit else max_answer_tokens(ask))


# Spending


@dataclass(frozen=True, slots=True)
class Caps:
    """Spending caps in dollars, for this run, for all runs of a day, and for those of one user. None means no cap."""

    run: float | None = None
    day: float | None = None
    user_day: float | None = None
    user: str = ""

    def __bool__(self) -> bool:
        return self.run is not None or self.day is not None or self.user_day is not None


class BudgetStore(Protocol):
    """Store interface that the budget uses."""

    def post(self, run: str, rows: Sequence[Row]) -> None: ...
    async def reserve(self, run: str, hold: Hold) -> BudgetRefusal | None: ...


@dataclass(slots=True)
class Budget:
    """Budget over the spending rows of the store, which all processes share."""

    store: BudgetStore
    record: Record
    price: Callable[[Member], Price | None]
    caps: Caps = Caps()
    _in_flight: set[AttemptId] = field(default_factory=set)  # this process's requests in flight
    _attached: dict[AttemptId, int] = field(default_factory=dict)  # input tokens of requests with attachments
    _released: asyncio.Event = field(default_factory=asyncio.Event)  # set, then replaced, when one of them finishes

    def cap_output(self, ask: Ask) -> Ask:
        return replace(ask, max_tokens=max_answer_tokens(ask)) if self.caps else ask

    async def reserve(
        self, key: str, n: int, member: Member, ask: Ask, body: bytes, *, may_wait: bool = True
    ) -> float | None:
        price = self.price(member)
        if price == FREE:
            return 0.0
        if price is None:
            self._record_unpriced(key, n, member.name, None)
            return None
        tokens = _input_tokens(body)
        if ask.attachments:
            self._attached[key, n] = tokens = _count_attached(ask, body, member.vendor)
        nanos = usd_to_nanos(max_cost(tokens, max_billed_tokens(member, ask), price), up=True)
        await self._reserve_or_wait(self._make_hold(key, n, member.name, price, nanos), may_wait)
        self.record.spending[key, n] = SpendingRow(member.name, price.as_json(), nanos)
        self._in_flight.add((key, n))
        return nanos_to_usd(nanos)

    def bill_attempt(self, key: str, attempt: Attempt, answer: Answer | Fault) -> ev.Billed | None:
        row = self.record.spending.get((key, attempt.n))
        if row is None or row.price is None or row.charged is not None:
            return None
        usd, estimated = _compute_bill(row, attempt, answer, self._attached.pop((key, attempt.n), 0))
        if self.caps and usd > nanos_to_usd(row.reserved or 0):
            # The request stated its output limit, so usage above the reservation is not plausible.
            usd, estimated = nanos_to_usd(row.reserved or 0), True
        self.withdraw(key, attempt.n)
        saved = None if estimated else _compute_saving(row, answer)
        return ev.Billed(key, key.rpartition("/")[2], attempt.n, attempt.member, usd, estimated, saved)

    def withdraw(self, key: str, n: int) -> None:
        self._in_flight.discard((key, n))
        released, self._released = self._released, asyncio.Event()
        released.set()

    def _make_hold(self, key: str, n: int, member: str, price: Price, nanos: int) -> Hold:
        now = time.time()
        caps = (self.caps.run, self.caps.day, self.caps.user_day)
        run, day, user = (None if cap is None else usd_to_nanos(Decimal(str(cap))) for cap in caps)
        price_json = json.dumps(price.as_json())
        return Hold(key, n, member, now, local_date(now), price_json, nanos, run, day, user, self.caps.user)

    def _record_unpriced(self, key: str, n: int, member: str, reserved: int | None) -> None:
        """Record a request without a known price. Nothing is reserved for it."""
        now = time.time()
        self.record.spending[key, n] = SpendingRow(member, None, reserved)
        self.store.post(self.record.run, [("reserve", (key, n, member, now, local_date(now), "", reserved))])

    async def _reserve_or_wait(self, hold: Hold, may_wait: bool) -> None:
        """Reserve the cost. If it may, wait while other requests of this run are in flight, because they may release part of theirs."""
        if not self.caps:
            self.store.post(self.record.run, [("reserve", hold.as_row())])
            return
        released = self._released
        while refused := await self._try_reserve(hold):
            if not may_wait or (not self._in_flight and not released.is_set()):
                raise BudgetSpent(_explain_refusal(refused, self.record.run))
            await released.wait()
            released = self._released

    async def _try_reserve(self, hold: Hold) -> BudgetRefusal | None:
        try:
            return await self.store.reserve(self.record.run, hold)
        except asyncio.CancelledError:  # the request was not sent
            self.store.post(self.record.run, [("release", (hold.key, hold.n))])
            raise


def local_date(now: float) -> str:
    """Return the local date that spending is counted under."""
    return time.strftime("%Y-%m-%d", time.localtime(now))


def _input_tokens(body: bytes) -> int:
    """Estimate input tokens from the whole body, because the schema is billed too: 3 bytes per token."""
    return -(-len(body) // 3)


def _count_attached(ask: Ask, body: bytes, vendor: str) -> int:
    """Estimate input tokens of a request with attachments: their contents are not text."""
    text = len(body) - sum(len(one.data) for one in ask.attachments)
    return -(-text // 3) + sum(count_attachment_tokens(one, vendor) for one in ask.attachments)


def _compute_bill(row: SpendingRow, attempt: Attempt, answer: Answer | Fault, attached: int = 0) -> tuple[float, bool]:
    """Return the cost in dollars and whether it is an estimate. `attached`: input tokens of a request with attachments."""
    price, max_usd = Price.from_json(row.price or {}), nanos_to_usd(row.reserved or 0)
    if isinstance(answer, Fault):
        return (0.0, False) if answer.kind in UNBILLED_FAULTS else (max_usd, True)
    if answer.usage.known:
        usage = _bound_cached(answer.usage)
        return _round_to_nanos(exact_cost(usage, price)), usage != answer.usage
    if is_reasoning(attempt.member):  # the thinking tokens are unknown
        return max_usd, True
    usage = answer.usage
    guess = Usage(
        max(usage.input, attached or _input_tokens(attempt.body)),
        max(usage.output, estimate_tokens(answer.text)),
        usage.cached,
    )
    return _round_to_nanos(exact_cost(guess, price)), True


def _compute_saving(row: SpendingRow, answer: Answer | Fault) -> float | None:
    """Return the dollars that the vendor's cache saved; None if the answer has no known use of one."""
    if isinstance(answer, Fault) or not answer.usage.known or not (answer.usage.cached or answer.usage.written):
        return None
    return _round_to_nanos(cache_saving(answer.usage, Price.from_json(row.price or {})))


def _bound_cached(usage: Usage) -> Usage:
    """Return the usage with at most as many tokens read from and written to a cache as the input has."""
    cached = min(usage.cached, usage.input)
    return replace(usage, cached=cached, written=min(usage.written, usage.input - cached))


def _round_to_nanos(bill: Decimal) -> float:
    return nanos_to_usd(usd_to_nanos(bill))


def _explain_refusal(refused: BudgetRefusal, run: str) -> str:
    scope, fix = "this run", f"raise it with `council resume {run} --max-cost USD`"
    if refused.scope == "day":
        scope, fix = "today", f"raise [budget] max_cost_per_day, or run `council resume {run}` tomorrow"
    elif refused.scope == "user":
        scope, fix = "this user today", "resume the run tomorrow, or ask the owner of the server for a higher limit"
    spent, cap, requested = (
        format_usd(nanos_to_usd(amount)) for amount in (refused.spent, refused.cap, refused.requested)
    )
    return (
        f"the budget for {scope} is used up: {spent} of {cap} is spent or reserved, "
        f"and the next request could cost {requested}: {fix}"
    )
