"""What the retry loop asks about money: hold enough before a request leaves, settle when it is known what came of it."""

from __future__ import annotations

from typing import Protocol

from council import events as ev
from council.errors import Fault
from council.members.base import UNCAPPED, Member
from council.record import Attempt
from council.types import Answer, Ask


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


def room(member: Member, ask: Ask) -> int:
    """The most tokens an answer can have: the ask's cap or the usual one, and what the member adds for its thoughts."""
    most = getattr(member, "most", None)
    return int(most(ask, UNCAPPED) if most else ask.max_tokens or UNCAPPED)
