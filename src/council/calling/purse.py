"""Budget interface of the retry loop, and output limits used for reservations."""

from __future__ import annotations

import math
from typing import Protocol

from council import events as ev
from council.errors import Fault
from council.members.base import DEFAULT_MAX_TOKENS, Member
from council.record import Attempt
from council.types import Answer, Ask

TOKENS_PER_WORD = 1.4
MIN_ANSWER_TOKENS = 2048  # tokens; a lower cap truncates answers and saves little


class CallBudget(Protocol):
    """Budget for the requests of one run."""

    def cap_output(self, ask: Ask) -> Ask:
        """Return the ask with max_tokens set if spending is capped."""

    async def reserve(self, key: str, n: int, member: Member, ask: Ask, body: bytes) -> float | None:
        """Reserve the maximum cost of a request and return it, or None if the price is unknown. Raise BudgetSpent."""

    def bill_attempt(self, key: str, attempt: Attempt, answer: Answer | Fault) -> ev.Billed | None:
        """Return the bill of a request that has a reservation."""


class NoBudget:
    """Budget without caps or records."""

    def cap_output(self, ask: Ask) -> Ask:
        return ask

    async def reserve(self, key: str, n: int, member: Member, ask: Ask, body: bytes) -> float | None:
        return None

    def bill_attempt(self, key: str, attempt: Attempt, answer: Answer | Fault) -> ev.Billed | None:
        return None


def max_answer_tokens(ask: Ask) -> int:
    """Return the output cap for an answer: the ask's own, or three times its requested words, at least 2,048 and at most 8,192."""
    if ask.max_tokens is not None or ask.words is None:
        return ask.max_tokens or DEFAULT_MAX_TOKENS
    return min(DEFAULT_MAX_TOKENS, max(MIN_ANSWER_TOKENS, math.ceil(3 * TOKENS_PER_WORD * ask.words)))


def max_billed_tokens(member: Member, ask: Ask) -> int:
    """Return the maximum billed output tokens: the answer cap plus the member's allowance for thinking."""
    most = getattr(member, "max_output_tokens", None)
    return int(most(ask, max_answer_tokens(ask)) if most else max_answer_tokens(ask))
