"""What a plan will cost, before anything is spent. docs/money.md tells the same in words.

The rehearsal renders every prompt, so what is read is counted: a token for three bytes of each prompt, and for each statement
quoted in it as many as that statement is thought to have. What is written is guessed:

    low         the council agrees; every answer has half of the words it is asked for
    expected    it does not agree; every answer has the words it is asked for, and reasoning members think
    worst       it does not agree; every answer has all the room there is, and is then paid for once more at twice that room,
                as the retry table allows, by the dearest member of its seat

All at list price. What a vendor's cache saves is left out.
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

USUAL_WORDS = 400  # of an answer that nobody gave a length
THOUGHTS = 1500  # tokens a reasoning member thinks before it answers
AGAIN = 2  # times the room that a cut answer is asked for again with
FENCE = re.compile(r"^<<<.* ([0-9a-f]{12})$", re.MULTILINE)

Prices = Callable[[str], Price | None]


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a rehearsal: who is asked, how much is read, whose statements are quoted, how much may be written."""

    mark: str  # of the statement it comes to
    chain: tuple[str, ...]
    tokens: int  # of the prompt without the question and without what is quoted
    quotes: frozenset[str]
    words: int
    ask: Ask  # without its messages


def call_of(step: Step, mark: Callable[[str], str], question: str) -> Call:
    ask = step.ask
    prompt = "\n".join(message["content"] for message in ask.messages)
    form = tokens_of(json.dumps(ask.schema)) if ask.schema else 0
    return Call(
        mark(ask.key), step.chain, tokens_of(prompt) + form - tokens_of(question), frozenset(FENCE.findall(prompt)),
        ask.words or USUAL_WORDS, replace(ask, messages=(), schema=None),
    )  # fmt: skip


def harder(call: Call, effort: str | None) -> Call:
    """The same request with more thought, or less: the rehearsal knows nothing of that."""
    return replace(call, ask=replace(call.ask, effort=effort))


def estimate(
    shorter: Sequence[Call], longer: Sequence[Call], question: str, price: Prices, member: Callable[[str], Member]
) -> Json | None:
    """{"low", "expected", "worst"} in dollars; None if a price is missing."""
    prices = {name: price(name) for call in (*shorter, *longer) for name in call.chain}
    known = {name: found for name, found in prices.items() if found is not None}
    if len(known) < len(prices):
        return None
    if all(found == FREE for found in known.values()):
        return {"low": 0.0, "expected": 0.0, "worst": 0.0}
    asked = tokens_of(question)
    return {
        "low": _dollars(_usual(shorter, asked, known, 0.5)),
        "expected": _dollars(_usual(longer, asked, known, 1.0)),
        "worst": _dollars(_worst(longer, asked, known, member)),
    }


def _usual(calls: Sequence[Call], question: int, prices: Mapping[str, Price], share: float) -> Decimal:
    """Whoever is requested answers at once, at a share of the length that is wished for."""
    said = {call.mark: _answer(call, share) for call in calls}
    return sum((exact(_usage(call, said, question, share), prices[call.chain[0]]) for call in calls), Decimal(0))


def _usage(call: Call, said: Mapping[str, int], question: int, share: float) -> Usage:
    thoughts = int(THOUGHTS * share) if is_reasoning(call.chain[0]) or call.ask.effort else 0
    return Usage(_read(call, said, question), _answer(call, share) + thoughts)


def _worst(
    calls: Sequence[Call], question: int, prices: Mapping[str, Price], member: Callable[[str], Member]
) -> Decimal:
    said = {call.mark: bound(call.ask) for call in calls}
    dearest = (
        max(
            _paid_twice(_read(call, said, question), _room(member, name, call.ask), prices[name]) for name in call.chain
        )
        for call in calls
    )
    return sum(dearest, Decimal(0))


def _paid_twice(tokens: int, most: int, price: Price) -> Decimal:
    return at_most(tokens, most, price) + at_most(tokens, AGAIN * most, price)


def _read(call: Call, said: Mapping[str, int], question: int) -> int:
    return call.tokens + question + sum(said.get(mark, 0) for mark in call.quotes)


def _answer(call: Call, share: float) -> int:
    """What is said, and no more than may be."""
    return min(int(call.words * TOKENS_PER_WORD * share), bound(call.ask))


def _room(member: Callable[[str], Member], name: str, ask: Ask) -> int:
    try:
        return room(member(name), ask)
    except ConfigError:  # nobody can sit under that name, as will be said where somebody should
        return bound(ask)


def _dollars(amount: Decimal) -> float:
    return round(float(amount), 6)
