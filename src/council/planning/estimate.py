"""Cost estimate of a plan, before any call. See docs/money.md.

The rehearsal renders every prompt, so the input is counted: one token per three bytes of each prompt, plus the estimated
length of each statement quoted in it. The output is estimated:

    low         the council agrees; every answer has half of its requested words
    expected    it disagrees; every answer has its requested words, and reasoning members think
    worst       it disagrees and takes every optional step, such as a second check; every answer uses its maximum output and is retried once at twice that, as the fault table
                allows, by the most expensive member of its seat

With `--look`, each request after a look-up also has the results: usually LOOKED_TOKENS, at worst as many as a seat may get.

All at list price, without savings from a vendor's cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from council.calling.budget import TOKENS_PER_WORD, max_answer_tokens, max_billed_tokens
from council.calling.concurrency import shared_prefix
from council.errors import ConfigError
from council.members.base import Member, list_unseen
from council.money import FREE, Price, count_attachment_tokens, exact_cost, max_cost
from council.settings.catalogue import is_reasoning
from council.types import Ask, Json, Step, Usage, estimate_tokens

DEFAULT_ANSWER_WORDS = 400  # for an answer without a requested length
ESTIMATED_THINKING_TOKENS = 1500  # thinking tokens of a reasoning member per answer
LOOKED_TOKENS = 5_000  # usual results of a seat's look-ups
MAX_LOOKED_TOKENS = 20_000
LOOKED = "look"  # stands for the results among the quoted statements of a call
LOOKED_FENCE = "<<<Files "
RETRY_FACTOR = 2  # a truncated answer is retried with this multiple of its output cap
FENCE = re.compile(r"^<<<.* ([0-9a-f]{12})$", re.MULTILINE)

PriceLookup = Callable[[str], Price | None]


@dataclass(frozen=True, slots=True)
class RehearsedCall:
    """One request of a rehearsal: its members, input tokens, quoted statements and output cap."""

    key: str  # of the resulting statement
    chain: tuple[str, ...]
    tokens: int  # of the prompt, without the question and the quotes
    quotes: frozenset[str]  # keys of the statements in the prompt
    words: int
    ask: Ask  # without its messages
    timeout: float | None = None  # seconds of each member, if the phase has its own
    shared_tokens: int = 0  # of the text that the prompts of all seats begin with


def build_call(step: Step, quoted_keys: Mapping[str, str], question: str) -> RehearsedCall:
    """Return the call of a step. `quoted_keys` has the key of the statement under each fence mark."""
    ask = step.ask
    prompt = "\n".join(message["content"] for message in ask.messages)
    schema = estimate_tokens(json.dumps(ask.schema)) if ask.schema else 0
    return RehearsedCall(
        ask.key, step.chain, estimate_tokens(prompt) + schema - estimate_tokens(question),
        frozenset([*(quoted_keys[mark] for mark in FENCE.findall(prompt) if mark in quoted_keys), *([LOOKED] if LOOKED_FENCE in prompt else [])]),
        ask.words or DEFAULT_ANSWER_WORDS, replace(ask, messages=(), schema=None), step.timeout, estimate_tokens(shared_prefix(ask)) if ask.shared else 0,
    )  # fmt: skip


def with_effort(call: RehearsedCall, effort: str | None) -> RehearsedCall:
    """Return the call with another effort. The rehearsal does not depend on it."""
    return call if call.ask.effort == effort else replace(call, ask=replace(call.ask, effort=effort))


def with_attachments(call: RehearsedCall, member: Callable[[str], Member]) -> RehearsedCall:
    """Return the call with the tokens of its attachments: the most that a member of its seat is sent."""
    found, members = call.ask.attachments, [member(name) for name in call.chain]
    unseen = [list_unseen(found, asked) for asked in members]
    tokens = [
        sum(count_attachment_tokens(one, asked.vendor) for one in found if one not in hidden)
        for asked, hidden in zip(members, unseen, strict=True)
    ]
    return replace(call, tokens=call.tokens + max(tokens))


def estimate_cost(
    agreeing_calls: Sequence[RehearsedCall],
    disagreeing_calls: Sequence[RehearsedCall],
    longest_calls: Sequence[RehearsedCall],
    question: str,
    price: PriceLookup,
    member: Callable[[str], Member],
    *,
    hedge: bool = False,
) -> Json | None:
    """Return {"low", "expected", "worst", "seats"} in dollars, or None if a price is unknown. `seats` has the expected cost of each.

    With `hedge`, two members of a seat may be asked, so the worst cost is twice that of the most expensive one.
    """
    names = {name for call in (*agreeing_calls, *disagreeing_calls, *longest_calls) for name in call.chain}
    prices = {name: price(name) for name in names}
    known = {name: found for name, found in prices.items() if found is not None}
    if len(known) < len(prices):
        return None
    if all(found == FREE for found in known.values()):
        return {"low": 0.0, "expected": 0.0, "worst": 0.0}
    question_tokens = estimate_tokens(question)
    expected = _usual_costs(disagreeing_calls, question_tokens, known, 1.0)
    seats: dict[str, Decimal] = {}
    for call, cost in zip(disagreeing_calls, expected, strict=True):
        seat = call.key[call.key.rfind("/") + 1 :]
        seats[seat] = seats[seat] + cost if seat in seats else cost
    return {
        "low": _round_usd(sum(_usual_costs(agreeing_calls, question_tokens, known, 0.5), Decimal(0))),
        "expected": _round_usd(sum(expected, Decimal(0))),
        "worst": _round_usd(_worst_cost(longest_calls, question_tokens, known, member) * (2 if hedge else 1)),
        "seats": {seat: _round_usd(cost) for seat, cost in seats.items()},
    }


def _usual_costs(
    calls: Sequence[RehearsedCall], question_tokens: int, prices: Mapping[str, Price], share: float
) -> list[Decimal]:
    """Return the cost of each call if the requested member answers at once, with this share of the requested length."""
    answer_tokens = {call.key: _answer_tokens(call, share) for call in calls} | {LOOKED: LOOKED_TOKENS}
    return [
        exact_cost(_estimate_usage(call, answer_tokens, question_tokens, share), prices[call.chain[0]])
        for call in calls
    ]


def _estimate_usage(call: RehearsedCall, answer_tokens: Mapping[str, int], question_tokens: int, share: float) -> Usage:
    thoughts = int(ESTIMATED_THINKING_TOKENS * share) if is_reasoning(call.chain[0]) or call.ask.effort else 0
    return Usage(_input_tokens(call, answer_tokens, question_tokens), _answer_tokens(call, share) + thoughts)


def estimate_path_tokens(calls: Sequence[RehearsedCall], question: str, share: float = 1.0) -> Usage:
    """Return the input and output tokens of a path if the requested members answer at once, as the expected cost counts them."""
    question_tokens = estimate_tokens(question)
    answer_tokens = {call.key: _answer_tokens(call, share) for call in calls} | {LOOKED: LOOKED_TOKENS}
    used = [_estimate_usage(call, answer_tokens, question_tokens, share) for call in calls]
    return Usage(sum(one.input for one in used), sum(one.output for one in used))


def _worst_cost(
    calls: Sequence[RehearsedCall], question_tokens: int, prices: Mapping[str, Price], member: Callable[[str], Member]
) -> Decimal:
    answer_tokens = {call.key: max_answer_tokens(call.ask) for call in calls} | {LOOKED: MAX_LOOKED_TOKENS}
    costs = (
        max(
            _cost_with_retry(
                _input_tokens(call, answer_tokens, question_tokens),
                _max_output_tokens(member, name, call.ask),
                prices[name],
            )
            for name in call.chain
        )
        for call in calls
    )
    return sum(costs, Decimal(0))


def _cost_with_retry(tokens: int, max_output: int, price: Price) -> Decimal:
    return max_cost(tokens, max_output, price) + max_cost(tokens, RETRY_FACTOR * max_output, price)


def _input_tokens(call: RehearsedCall, answer_tokens: Mapping[str, int], question_tokens: int) -> int:
    return call.tokens + question_tokens + sum(answer_tokens.get(key, 0) for key in call.quotes)


def _answer_tokens(call: RehearsedCall, share: float) -> int:
    """Return the estimated answer tokens, within the output cap."""
    return min(int(call.words * TOKENS_PER_WORD * share), max_answer_tokens(call.ask))


def _max_output_tokens(member: Callable[[str], Member], name: str, ask: Ask) -> int:
    try:
        return max_billed_tokens(member(name), ask)
    except ConfigError:  # an invalid member is reported when the seats are assigned
        return max_answer_tokens(ask)


def _round_usd(amount: Decimal) -> float:
    return round(float(amount), 6)
