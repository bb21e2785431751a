"""Cost estimate of a plan, before any call. See docs/money.md.

The rehearsal renders every prompt, so the input is counted: one token per three bytes of each prompt, plus the estimated
length of each statement quoted in it. The output is estimated:

    low         the council agrees; every answer has half of its requested words
    expected    it disagrees; every answer has its requested words, and reasoning members think
    worst       it disagrees; every answer uses its maximum output and is retried once at twice that, as the fault table
                allows, by the most expensive member of its seat

All at list price, without savings from a vendor's cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from council.calling.purse import TOKENS_PER_WORD, bound, room
from council.errors import ConfigError
from council.members.base import Member
from council.money import FREE, Price, at_most, exact
from council.settings import is_reasoning
from council.types import Ask, Json, Step, Usage, tokens_of

USUAL_WORDS = 400  # for an answer without a requested length
THOUGHTS = 1500  # thinking tokens of a reasoning member per answer
AGAIN = 2  # a truncated answer is retried with this multiple of its output cap
FENCE = re.compile(r"^<<<.* ([0-9a-f]{12})$", re.MULTILINE)

Prices = Callable[[str], Price | None]


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a rehearsal: its members, input tokens, quoted statements and output cap."""

    mark: str  # fence mark of the resulting statement
    chain: tuple[str, ...]
    tokens: int  # of the prompt, without the question and the quotes
    quotes: frozenset[str]
    words: int
    ask: Ask  # without its messages


def call_of(step: Step, mark: Callable[[str], str], question: str) -> Call:
    ask = step.ask
    prompt = "\n".join(message["content"] for message in ask.messages)
    schema = tokens_of(json.dumps(ask.schema)) if ask.schema else 0
    return Call(
        mark(ask.key), step.chain, tokens_of(prompt) + schema - tokens_of(question), frozenset(FENCE.findall(prompt)),
        ask.words or USUAL_WORDS, replace(ask, messages=(), schema=None),
    )  # fmt: skip


def harder(call: Call, effort: str | None) -> Call:
    """Return the call with another effort. The rehearsal does not depend on it."""
    return replace(call, ask=replace(call.ask, effort=effort))


def estimate(
    shorter: Sequence[Call], longer: Sequence[Call], question: str, price: Prices, member: Callable[[str], Member]
) -> Json | None:
    """Return {"low", "expected", "worst"} in dollars, or None if a price is unknown."""
    prices = {name: price(name) for call in (*shorter, *longer) for name in call.chain}
    known = {name: found for name, found in prices.items() if found is not None}
    if len(known) < len(prices):
        return None
    if all(found == FREE for found in known.values()):
        return {"low": 0.0, "expected": 0.0, "worst": 0.0}
    question_tokens = tokens_of(question)
    return {
        "low": _dollars(_usual(shorter, question_tokens, known, 0.5)),
        "expected": _dollars(_usual(longer, question_tokens, known, 1.0)),
        "worst": _dollars(_worst(longer, question_tokens, known, member)),
    }


def _usual(calls: Sequence[Call], question: int, prices: Mapping[str, Price], share: float) -> Decimal:
    """Return the cost if each requested member answers at once, with this share of the requested length."""
    answer_tokens = {call.mark: _answer(call, share) for call in calls}
    return sum(
        (exact(_usage(call, answer_tokens, question, share), prices[call.chain[0]]) for call in calls), Decimal(0)
    )


def _usage(call: Call, said: Mapping[str, int], question: int, share: float) -> Usage:
    thoughts = int(THOUGHTS * share) if is_reasoning(call.chain[0]) or call.ask.effort else 0
    return Usage(_read(call, said, question), _answer(call, share) + thoughts)


def _worst(
    calls: Sequence[Call], question: int, prices: Mapping[str, Price], member: Callable[[str], Member]
) -> Decimal:
    answer_tokens = {call.mark: bound(call.ask) for call in calls}
    costs = (
        max(
            _paid_twice(_read(call, answer_tokens, question), _room(member, name, call.ask), prices[name])
            for name in call.chain
        )
        for call in calls
    )
    return sum(costs, Decimal(0))


def _paid_twice(tokens: int, most: int, price: Price) -> Decimal:
    return at_most(tokens, most, price) + at_most(tokens, AGAIN * most, price)


def _read(call: Call, said: Mapping[str, int], question: int) -> int:
    return call.tokens + question + sum(said.get(mark, 0) for mark in call.quotes)


def _answer(call: Call, share: float) -> int:
    """Return the estimated answer tokens, within the output cap."""
    return min(int(call.words * TOKENS_PER_WORD * share), bound(call.ask))


def _room(member: Callable[[str], Member], name: str, ask: Ask) -> int:
    try:
        return room(member(name), ask)
    except ConfigError:  # an invalid member is reported when the seats are assigned
        return bound(ask)


def _dollars(amount: Decimal) -> float:
    return round(float(amount), 6)
