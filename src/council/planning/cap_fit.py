"""Fit of a plan to a cap: output limits with which the requests of all phases fit, or what the run would need.

The limits go down in this order, and the first that fit are used:

    1. the output cap of each answer, from three times the requested words down to twice, and the allowance for
       thinking, down to that of low effort
    2. low effort, with half of that allowance
    3. fewer requested words, down to a quarter
    4. for members that the user chose, a fifth of the words and half of the allowance again; in place of other members,
       the fast models of the vendors are planned

Only the cap of the run itself goes beyond the first step: the runs of a day and the rows of a batch are not shortened
because others were started before them. One retry is part of the fit where that is possible. Others are paid from what
the requests leave.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import NoReturn

from council.calling.budget import (
    FULL_OUTPUT,
    OutputLimits,
    SpendingPlan,
    max_answer_tokens,
    max_billed_tokens,
    top_phase,
)
from council.errors import CapTooLow, option
from council.members.base import Member
from council.money import Price, format_usd, max_cost, nanos_to_usd, usd_to_nanos
from council.planning.estimate import LOOKED, MAX_LOOKED_TOKENS, PriceLookup, RehearsedCall, find_member
from council.planning.rehearsal import Rehearsal
from council.types import Roster

LOW_THINKING_TOKENS = 4096  # the allowance of low effort
MAX_THINKING_TOKENS = 16384  # the allowance of high effort
# Share of the requested words and tokens of thinking, both with low effort
REDUCED_LEVELS = ((1.0, 2048), (0.75, 2048), (0.5, 2048), (0.35, 2048), (0.25, 2048))
LOWEST_LEVEL = (0.2, 1024)
SHARE_STEPS = 20  # in which the share of the usual output cap is chosen
# The body of a request has more bytes than its prompt: escaped line breaks, parameters, and the names of fields.
BODY_FACTOR = Decimal("1.1")
BODY_TOKENS = 150
CENT = Decimal("0.01")

RehearsePaths = Callable[[float], Awaitable[Rehearsal]]  # with a share of the requested words


@dataclass(frozen=True, slots=True)
class Cap:
    """The lowest cap of a run, and where it comes from."""

    usd: float
    scope: str = "run"  # run | day | user
    spent: float = 0.0  # of a day's cap
    may_shorten: bool = True  # whether answers may be asked to be shorter, and other members may take seats

    @property
    def left(self) -> float:
        return max(0.0, self.usd - self.spent)


@dataclass(frozen=True, slots=True)
class Alternative:
    """A council that fits a cap."""

    protocol: str | None  # None: the same one
    cheap: bool  # with the fast models
    usd: float  # its expected cost

    def describe(self) -> str:
        named = [option("protocol", self.protocol)] if self.protocol else []
        cheap = [option("cheap", True)] if self.cheap else []
        return f"{' '.join([*named, *cheap])} (about {format_usd(self.usd)})"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a plan does not fit its cap: the lowest cap with which it can finish."""

    cap: Cap
    needed: float
    alternatives: tuple[Alternative, ...] = ()

    @property
    def message(self) -> str:
        """The problem and the fix in one line, with the wordings of all interfaces."""
        cap = self.cap
        left = format_usd(cap.left)
        limits = {
            "run": f"the cap of {format_usd(cap.usd)} does not cover this council",
            "day": f"the {left} left of today's {format_usd(cap.usd)} does not cover this council",
            "user": f"the {left} left of this user's {format_usd(cap.usd)} today does not cover this council",
        }
        fixes = {
            "run": f"raise it with {option('max_cost', self.needed)}",
            "day": "raise [budget] max_cost_per_day, or run it tomorrow",
            "user": "run it tomorrow, or ask the owner of the server for a higher limit",
        }
        others = ", ".join(one.describe() for one in self.alternatives)
        fitting = f"; what fits: {others}" if others else ""
        needed = f"which needs at least {format_usd(self.needed)}, so no call was made"
        return f"{limits[cap.scope]}, {needed}: {fixes[cap.scope]}{fitting}"

    def raise_error(self) -> NoReturn:
        raise CapTooLow(
            self.message,
            scope=self.cap.scope,
            cap=self.cap.usd,
            needed=self.needed,
            alternatives=[asdict(one) for one in self.alternatives],
        )


@dataclass(frozen=True, slots=True)
class CostModel:
    """What the requests of a plan may cost at most."""

    roster: Roster
    question_tokens: int
    price: PriceLookup
    member: Callable[[str], Member]

    def plan_spending(self, calls: Sequence[RehearsedCall], limits: OutputLimits) -> SpendingPlan:
        """Return what each top-level phase may cost with these limits. A member without a price is not counted."""
        bounded = [self._limit(call, limits) for call in calls]
        answer_tokens = {call.key: max_answer_tokens(call.ask) for call in bounded} | {LOOKED: MAX_LOOKED_TOKENS}
        phases: dict[str, int] = {}
        largest = 0
        for call, members in zip(bounded, self._list_possible_members(bounded), strict=True):
            tokens = call.tokens + self.question_tokens + sum(answer_tokens.get(key, 0) for key in call.quotes)
            cost = max((self._max_cost(call, name, tokens) for name in members), default=0)
            phase = top_phase(call.key)
            phases[phase] = phases.get(phase, 0) + cost
            largest = max(largest, cost)
        return SpendingPlan(limits, tuple(phases.items()), largest)

    def _limit(self, call: RehearsedCall, limits: OutputLimits) -> RehearsedCall:
        member = find_member(call.member, self.member)
        return replace(call, ask=limits.apply(call.ask, member)) if member else call

    def _list_possible_members(self, calls: Sequence[RehearsedCall]) -> list[list[str]]:
        """Return the members that may be asked for each call: those of all seats if a phase asks only some."""
        seats = {seat.name: seat.member for seat in self.roster.seats}
        asked: dict[str, set[str]] = {}
        for call in calls:
            asked.setdefault(top_phase(call.key), set()).add(call.seat)
        return [
            [call.member]
            if call.seat not in seats or asked[top_phase(call.key)] >= seats.keys()
            else list(dict.fromkeys(seats.values()))
            for call in calls
        ]

    def _max_cost(self, call: RehearsedCall, name: str, tokens: int) -> int:
        member, price = find_member(name, self.member), self.price(name)
        if member is None or price is None:
            return 0
        return _count_nanos(tokens, max_billed_tokens(member, call.ask), price)


def _count_nanos(tokens: int, output: int, price: Price) -> int:
    body_tokens = math.ceil(tokens * BODY_FACTOR) + BODY_TOKENS
    return usd_to_nanos(max_cost(body_tokens, output, price), up=True)


async def fit_to_cap(
    model: CostModel, rehearse_paths: RehearsePaths, cap: Cap, *, may_be_lowest: bool
) -> SpendingPlan | Shortfall:
    """Return the most generous limits with which all requests fit the cap, or what the plan would need.

    Limits that leave money to repeat the most expensive request are preferred, but not to answers of full length and
    effort: most requests cost much less than they may.
    """
    budget = usd_to_nanos(Decimal(str(cap.left)))
    tight: SpendingPlan | None = None
    async for plan in _iter_plans(model, rehearse_paths, may_shorten=cap.may_shorten, may_be_lowest=may_be_lowest):
        if tight and plan.limits.is_reduced and not tight.limits.is_reduced:
            return tight
        if plan.total + plan.largest <= budget:
            return plan
        if tight is None and plan.total <= budget:
            tight = plan
    return tight or Shortfall(cap, round_up_cents(nanos_to_usd(plan.total)))


async def _iter_plans(
    model: CostModel, rehearse_paths: RehearsePaths, *, may_shorten: bool, may_be_lowest: bool
) -> AsyncIterator[SpendingPlan]:
    """Yield the spending plans of all levels, the most generous first."""
    calls = (await rehearse_paths(1.0)).longest
    yield model.plan_spending(calls, OutputLimits())
    for step in range(SHARE_STEPS - 1, -1, -1):
        yield model.plan_spending(calls, _share_limits(step / SHARE_STEPS))
    if not may_shorten:
        return
    for words, thinking in (*REDUCED_LEVELS, *([LOWEST_LEVEL] if may_be_lowest else [])):
        limits = OutputLimits(0.0, words, thinking, low_effort=True)
        yield model.plan_spending((await rehearse_paths(words)).longest, limits)


def fit_calls(model: CostModel, calls: Sequence[RehearsedCall], words: float, cap: Cap) -> SpendingPlan | Shortfall:
    """Return the most generous limits with which calls whose prompts are fixed fit a cap, or what they would need."""
    shares = [_share_limits(step / SHARE_STEPS) for step in range(SHARE_STEPS, -1, -1)]
    reduced = [OutputLimits(0.0, 1.0, thinking, low_effort=True) for _, thinking in (REDUCED_LEVELS[0], LOWEST_LEVEL)]
    budget = usd_to_nanos(Decimal(str(cap.left)))
    for limits in (FULL_OUTPUT, *shares, *reduced):
        plan = model.plan_spending(calls, replace(limits, words=words))
        if plan.total <= budget:
            return plan
    return Shortfall(cap, round_up_cents(nanos_to_usd(plan.total)))


def _share_limits(share: float) -> OutputLimits:
    thinking = LOW_THINKING_TOKENS + math.floor(share * (MAX_THINKING_TOKENS - LOW_THINKING_TOKENS))
    return OutputLimits(share, 1.0, thinking)


def round_up_cents(usd: float) -> float:
    """Return the next whole cent; below ten cents, the next tenth of a cent."""
    step = CENT if usd >= 0.1 else CENT / 10
    return float(math.ceil(Decimal(str(usd)) / step) * step)


def describe_fit(
    model: CostModel, plan: SpendingPlan, calls: Sequence[RehearsedCall], full_calls: Sequence[RehearsedCall], cap: Cap
) -> str:
    """Return what a cap changes, in one line, or "". `full_calls` are the same calls without a cap."""
    limits = plan.limits
    if not limits.is_reduced:
        return ""
    changes = []
    asked = {call.key: call.words for call in full_calls}
    shortened = [(call.words, asked[call.key]) for call in calls if call.words < asked.get(call.key, 0)]
    if shortened:
        words, usual = max(shortened)
        changes.append(f"answers have at most about {words} words instead of {usual:,}")
    changes.append("reasoning effort is low")
    full = nanos_to_usd(model.plan_spending(full_calls, _share_limits(0.0)).total)
    return (
        f"to fit the cap of {format_usd(cap.left)}, {' and '.join(changes)}; "
        f"{format_usd(round_up_cents(full))} would cover the full length and effort"
    )
