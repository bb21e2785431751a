"""Budget of a run: output limits of a request, reservations before it is sent, and bills afterwards."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import Protocol, TypedDict, cast

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
from council.store.interface import HOLD_KEY, Attempt, BudgetRefusal, Charge, Hold, LedgerStore, Record, SpendingRow
from council.types import Answer, Ask, Usage, estimate_tokens

TOKENS_PER_WORD = 1.4
DEFAULT_ANSWER_WORDS = 400  # for an answer without a requested length
ESTIMATED_THINKING_TOKENS = 1500  # thinking tokens of a reasoning member per answer
MIN_ANSWER_TOKENS = 2048  # tokens; a lower cap truncates answers and saves little
CANCELLED_FAULTS = ("hedge", "dropped", "cancelled")  # Council closed the connection, and output has stopped
# Added to what a cancelled request has streamed, because a vendor may have written more than had arrived.
CANCEL_MARGIN, CANCEL_MARGIN_TOKENS = 0.2, 200
THINKING_TOKENS_PER_S = 100
AttemptId = tuple[str, int]  # step key, attempt number


# Output limits


def max_answer_tokens(ask: Ask) -> int:
    """Return the output cap of an answer: that of the ask, or three times its words within fixed limits."""
    if ask.max_tokens is not None or ask.words is None:
        return ask.max_tokens or DEFAULT_MAX_TOKENS
    return min(DEFAULT_MAX_TOKENS, max(MIN_ANSWER_TOKENS, math.ceil(3 * TOKENS_PER_WORD * ask.words)))


def min_answer_tokens(ask: Ask) -> int:
    """Return the lowest output cap for an answer: twice its requested words, so that only a much longer one is cut."""
    most = max_answer_tokens(ask)
    if ask.max_tokens is not None or ask.words is None:
        return most
    return min(most, math.ceil(2 * TOKENS_PER_WORD * ask.words))


def max_billed_tokens(member: Member, ask: Ask) -> int:
    """Return the maximum billed output tokens: the answer cap plus the member's allowance for thinking."""
    output_limit = getattr(member, "max_output_tokens", None)
    return int(output_limit(ask, max_answer_tokens(ask)) if output_limit else max_answer_tokens(ask))


def estimate_thinking(member: str, ask: Ask) -> int:
    """Return the expected tokens of thinking of an answer."""
    return ESTIMATED_THINKING_TOKENS if is_reasoning(member) or ask.effort else 0


def estimate_use(ask: Ask, body: bytes, member: Member) -> Usage:
    """Return the tokens that a request is expected to use: its bytes as input, and the words that it asks for."""
    read = _count_attached(ask, body, member.vendor) if ask.attachments else _input_tokens(body)
    words = ask.words or DEFAULT_ANSWER_WORDS
    answer = min(math.ceil(words * TOKENS_PER_WORD), max_answer_tokens(ask))
    return Usage(read, answer + estimate_thinking(member.name, ask))


class OutputLimitsObject(TypedDict):
    """Stored output limits."""

    share: float
    words: float
    max_thinking: int | None
    low_effort: bool


class SpendingPlanObject(TypedDict):
    """A stored spending plan."""

    limits: OutputLimitsObject
    phases: list[list[str | int]]  # name and billionths of a dollar of each
    largest: int


@dataclass(frozen=True, slots=True)
class OutputLimits:
    """Output limits of the requests of a run, fitted to its cap: from the usual ones down to the lowest."""

    share: float = 1.0  # of the difference between the lowest and the usual output cap of an answer
    words: float = 1.0  # share of the words that a prompt asks for
    max_thinking: int | None = None  # tokens of thinking per answer; None: the allowance of the effort
    low_effort: bool = False  # members that think are asked for low effort, unless the user chose one

    def apply(self, ask: Ask, member: Member) -> Ask:
        """Return the ask with its output limits."""
        least, most = min_answer_tokens(ask), max_answer_tokens(ask)
        effort = ask.effort
        if self.low_effort and effort is None and getattr(member, "thinks", False):
            effort = "low"
        max_tokens = least + math.floor(self.share * (most - least))
        return replace(ask, max_tokens=max_tokens, effort=effort, max_thinking=self.max_thinking)

    @property
    def is_reduced(self) -> bool:
        """Return whether an answer may be cut or asked to be shorter than without a cap."""
        return self.words < 1 or self.low_effort

    def as_json(self) -> OutputLimitsObject:
        return cast("OutputLimitsObject", asdict(self))


FULL_OUTPUT = OutputLimits()


@dataclass(frozen=True, slots=True)
class SpendingPlan:
    """What the requests of a run may cost at most, by top-level phase in their order, and their output limits."""

    limits: OutputLimits = FULL_OUTPUT
    phases: tuple[tuple[str, int], ...] = ()  # name and billionths of a dollar
    largest: int = 0  # billionths of a dollar of the most expensive request

    @property
    def total(self) -> int:
        return sum(amount for _, amount in self.phases)

    def rest_after(self, phase: str, started: Mapping[str, int]) -> int:
        """Return what the requests of this and of later phases that have not been sent may cost.

        `started` has the reservations of the first requests of each phase. An unknown phase follows those that have
        started.
        """
        names = [name for name, _ in self.phases]
        if phase in names:
            place = names.index(phase)
        else:
            place = max((names.index(name) for name in started if name in names), default=-1)
        later = sum(amount for _, amount in self.phases[place + 1 :])
        within = dict(self.phases).get(phase, 0) - started.get(phase, 0)
        return later + max(0, within)

    def as_json(self) -> SpendingPlanObject:
        return {
            "limits": self.limits.as_json(),
            "phases": [[name, amount] for name, amount in self.phases],
            "largest": self.largest,
        }

    @classmethod
    def from_json(cls, value: SpendingPlanObject) -> SpendingPlan:
        phases = tuple((str(name), int(amount)) for name, amount in value["phases"])
        return cls(OutputLimits(**value["limits"]), phases, value["largest"])


NO_SPENDING_PLAN = SpendingPlan()


def top_phase(key: str) -> str:
    """Return the top-level phase of a step."""
    return key.partition("/")[0]


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


class BudgetStore(LedgerStore, Protocol):
    """Store interface that the budget uses."""

    async def reserve(self, run: str, hold: Hold) -> BudgetRefusal | None: ...


@dataclass(slots=True)
class Budget:
    """Budget over the spending rows of the store, which all processes share."""

    store: BudgetStore
    record: Record
    price: Callable[[Member], Price | None]
    caps: Caps = Caps()
    plan: SpendingPlan = NO_SPENDING_PLAN  # without it, nothing is held for later requests
    bills_errors: Callable[[str], bool] = lambda member: True  # whether its endpoint may bill an error status
    _started: Counter[str] = field(default_factory=Counter)  # reservations of the first requests, by top-level phase
    _in_flight: set[AttemptId] = field(default_factory=set)  # this process's requests in flight
    _attached: dict[AttemptId, int] = field(default_factory=dict)  # input tokens of requests with attachments
    _released: asyncio.Event = field(default_factory=asyncio.Event)  # set, then replaced, when one of them finishes

    def __post_init__(self) -> None:
        for (key, n), row in self.record.spending.items():
            self._count_started(key, n, row.reserved or 0)

    def cap_output(self, ask: Ask, member: Member) -> Ask:
        """Return the ask with its output limits if spending is capped."""
        return self.plan.limits.apply(ask, member) if self.caps else ask

    async def hold_run(self) -> BudgetRefusal | None:
        """Hold the money for all requests of the plan that have not been sent, or return the cap that refuses it."""
        if not self.caps:
            return None
        phase = next((name for name, _ in reversed(self.plan.phases) if self._started[name]), "")
        rest = self.plan.rest_after(phase, self._started)
        return await self.store.reserve(self.record.run, self._make_hold(HOLD_KEY, 0, "", FREE, rest))

    async def reserve(
        self, key: str, n: int, member: Member, ask: Ask, body: bytes, *, may_wait: bool = True
    ) -> float | None:
        """Reserve the maximum cost of a request and return it, or None if the price is unknown. Raise BudgetSpent."""
        price = self.price(member)
        if price == FREE:
            return 0.0
        if price is None:
            now = time.time()
            self.record.spending[key, n] = SpendingRow(member.name, None, None)
            row = (key, n, member.name, now, local_date(now), "", None)
            self.store.post(self.record.run, [("reserve", row)])
            return None
        tokens = _input_tokens(body)
        if ask.attachments:
            self._attached[key, n] = tokens = _count_attached(ask, body, member.vendor)
        nanos = usd_to_nanos(max_cost(tokens, max_billed_tokens(member, ask), price), up=True)
        self._count_started(key, n, nanos)
        try:
            await self._reserve_or_wait(self._make_hold(key, n, member.name, price, nanos), may_wait)
        except BaseException:
            self._count_started(key, n, -nanos)
            raise
        self.record.spending[key, n] = SpendingRow(member.name, price.as_json(), nanos)
        self._in_flight.add((key, n))
        return nanos_to_usd(nanos)

    def bill_attempt(self, key: str, attempt: Attempt, answer: Answer | Fault) -> ev.Billed | None:
        """Return the bill of a request that has a reservation."""
        row = self.record.spending.get((key, attempt.n))
        if row is None or row.price is None or row.charged is not None:
            return None
        usd, certainty = self._compute_bill(row, attempt, answer, self._attached.pop((key, attempt.n), 0))
        if self.caps and usd > nanos_to_usd(row.reserved or 0):
            # The request stated its output limit, so usage above the reservation is not plausible.
            usd, certainty = nanos_to_usd(row.reserved or 0), Charge.ESTIMATED
        self.withdraw(key, attempt.n)
        is_estimated, is_doubtful = certainty is not Charge.EXACT, certainty is Charge.IN_DOUBT
        saved = None if is_estimated else _compute_saving(row, answer)
        seat = key.rpartition("/")[2]
        return ev.Billed(key, seat, attempt.n, attempt.member, usd, is_estimated, is_doubtful, saved)

    def _compute_bill(
        self, row: SpendingRow, attempt: Attempt, answer: Answer | Fault, attached: int
    ) -> tuple[float, Charge]:
        """Return the cost in dollars and how far it is known. `attached`: input tokens if there are attachments."""
        if isinstance(answer, Answer):
            return _bill_answer(row, attempt, answer, attached)
        delivery = attempt.delivery
        if delivery.is_connecting or (answer.has_status and not self.bills_errors(attempt.member)):
            return 0.0, Charge.EXACT
        if answer.kind == "net" and delivery.is_sent:  # closed at once: the endpoint may have read the request
            return _bill_cancelled(row, attempt, attached), Charge.IN_DOUBT
        if answer.kind in UNBILLED_FAULTS and not delivery.has_output:
            return 0.0, Charge.EXACT
        if answer.kind in CANCELLED_FAULTS:
            return _bill_cancelled(row, attempt, attached), Charge.ESTIMATED
        return nanos_to_usd(row.reserved or 0), Charge.IN_DOUBT

    def withdraw(self, key: str, n: int) -> None:
        """Forget a request that has ended, or that was cancelled before it was sent."""
        self._in_flight.discard((key, n))
        released, self._released = self._released, asyncio.Event()
        released.set()

    def _count_started(self, key: str, n: int, nanos: int) -> None:
        """Count a first request as started. A retry is not part of the plan: it is paid from what the others leave."""
        if n == 1:
            self._started[top_phase(key)] += nanos

    def _make_hold(self, key: str, n: int, member: str, price: Price, nanos: int) -> Hold:
        now = time.time()
        caps = (self.caps.run, self.caps.day, self.caps.user_day)
        run, day, user = (None if cap is None else usd_to_nanos(Decimal(str(cap))) for cap in caps)
        price_json = json.dumps(price.as_json())
        return Hold(key, n, member, now, local_date(now), price_json, nanos, run, day, user, self.caps.user)

    async def _reserve_or_wait(self, hold: Hold, may_wait: bool) -> None:
        """Reserve the cost. If it may, wait for requests in flight, which may release a part of theirs."""
        if not self.caps:
            self.store.post(self.record.run, [("reserve", hold.as_row())])
            return
        released = self._released
        while refused := await self._try_reserve(hold):
            if not may_wait or (not self._in_flight and not released.is_set()):
                raise BudgetSpent(explain_refusal(refused, self.record.run))
            await released.wait()
            released = self._released

    async def _try_reserve(self, hold: Hold) -> BudgetRefusal | None:
        rest = self.plan.rest_after(top_phase(hold.key), self._started)
        try:
            return await self.store.reserve(self.record.run, replace(hold, rest=rest))
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


def load_price(row: SpendingRow) -> Price:
    """Return the price at which a request was reserved; it has one."""
    assert row.price is not None
    return Price.from_json(row.price)


def _bill_answer(row: SpendingRow, attempt: Attempt, answer: Answer, attached: int) -> tuple[float, Charge]:
    price, max_usd = load_price(row), nanos_to_usd(row.reserved or 0)
    if answer.usage.known:
        usage = _bound_cached(answer.usage)
        certainty = Charge.EXACT if usage == answer.usage else Charge.ESTIMATED
        return _round_to_nanos(exact_cost(usage, price)), certainty
    if is_reasoning(attempt.member):  # the thinking tokens are unknown
        return max_usd, Charge.ESTIMATED
    usage = answer.usage
    guess = replace(
        usage,
        input=max(usage.input, attached or _input_tokens(attempt.body)),
        output=max(usage.output, estimate_tokens(answer.text)),
    )
    guess = _bound_cached(guess)
    return _round_to_nanos(exact_cost(guess, price)), Charge.ESTIMATED


def _bill_cancelled(row: SpendingRow, attempt: Attempt, attached: int) -> float:
    """Return the cost of a request that Council cancelled: its input, what was streamed, and a margin; at most the
    reservation.

    A member that thinks may have written as much unseen as a fast one writes in that time.
    """
    seconds = asyncio.get_running_loop().time() - attempt.sent_at if attempt.sent_at else 0.0
    thinking = math.ceil(seconds * THINKING_TOKENS_PER_S) if is_reasoning(attempt.member) else 0
    output = math.ceil(attempt.received / 3 * (1 + CANCEL_MARGIN)) + CANCEL_MARGIN_TOKENS + thinking
    usage = Usage(attached or _input_tokens(attempt.body), output)
    usd = _round_to_nanos(exact_cost(usage, load_price(row)))
    return min(usd, nanos_to_usd(row.reserved or 0))


def _compute_saving(row: SpendingRow, answer: Answer | Fault) -> float | None:
    """Return the dollars that the vendor's cache saved; None if the answer has no known use of one."""
    if isinstance(answer, Fault) or not answer.usage.known or not (answer.usage.cached or answer.usage.written):
        return None
    return _round_to_nanos(cache_saving(answer.usage, load_price(row)))


def _bound_cached(usage: Usage) -> Usage:
    """Return the usage with at most as many tokens read from and written to a cache as the input has."""
    cached = min(usage.cached, usage.input)
    return replace(usage, cached=cached, written=min(usage.written, usage.input - cached))


def _round_to_nanos(bill: Decimal) -> float:
    return nanos_to_usd(usd_to_nanos(bill))


def explain_refusal(refused: BudgetRefusal, run: str, *, is_new: bool = False) -> str:
    """Return why a reservation was refused and what to do. `is_new`: the run was not started."""
    resume = f"council resume {run}"
    scope, fix = "this run", f"raise it with `{resume} --max-cost USD`"
    if refused.scope == "day":
        later = "run it tomorrow" if is_new else f"run `{resume}` tomorrow"
        scope, fix = "today", f"raise [budget] max_cost_per_day, or {later}"
    elif refused.scope == "user":
        scope, fix = "this user today", "resume the run tomorrow, or ask the owner of the server for a higher limit"
    spent, cap, requested = (
        format_usd(nanos_to_usd(amount)) for amount in (refused.spent, refused.cap, refused.requested)
    )
    state, rest = ("does not cover the run", "it") if is_new else ("is used up", "the next requests")
    return f"the budget for {scope} {state}: {spent} of {cap} is spent or reserved, and {rest} could cost {requested}: {fix}"
