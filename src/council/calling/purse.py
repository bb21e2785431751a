"""What the retry loop asks about money: hold enough before a request leaves, settle when it is known what came of it."""

from __future__ import annotations

import math
from typing import Protocol

from council import events as ev
from council.errors import Fault
from council.members.base import UNCAPPED, Member
from council.record import Attempt
from council.types import Answer, Ask

TOKENS_PER_WORD = 1.4
LEAST = 2048  # tokens: below that a cap would cut more than it saves


class Purse(Protocol):
    """Money for one run's requests."""

    def bounded(self, ask: Ask) -> Ask:
        """The ask as it may be sent: under a cap it says how long its answer may be."""

    async def reserve(self, key: str, n: int, member: Member, ask: Ask, body: bytes) -> float | None:
        """Hold what the request can cost and return it; None if nobody knows. Raises BudgetSpent."""

    def settle(self, key: str, attempt: Attempt, answer: Answer | Fault) -> ev.Billed | None:
        """The bill of a request whose money is held."""


class NoPurse:
    """Nobody counts."""

    def bounded(self, ask: Ask) -> Ask:
        return ask

    async def reserve(self, key: str, n: int, member: Member, ask: Ask, body: bytes) -> float | None:
        return None

    def settle(self, key: str, attempt: Attempt, answer: Answer | Fault) -> ev.Billed | None:
        return None


def bound(ask: Ask) -> int:
    """The most tokens an answer needs: the ask's own cap, or three times the words it is asked for, within reason."""
    if ask.max_tokens is not None or ask.words is None:
        return ask.max_tokens or UNCAPPED
    return min(UNCAPPED, max(LEAST, math.ceil(3 * TOKENS_PER_WORD * ask.words)))


def room(member: Member, ask: Ask) -> int:
    """The most tokens that are paid for as an answer: what it needs, and what the member adds for its thoughts."""
    most = getattr(member, "most", None)
    return int(most(ask, bound(ask)) if most else bound(ask))
