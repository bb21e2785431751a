"""Limits of a vendor in requests and tokens per minute, which all processes of a store share.

Each limit of the settings is a token bucket. It fills evenly with 95 % of the limit per minute and holds 3 % of it, so
that a minute has at most 98 % of the limit and one request more, however the vendor counts its minutes. A request may
start when no bucket is in debt. It takes one request, its estimated input and its expected output, and gives back what
it did not use. Limits that are not set are learned from answers, by `learned_limits.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from council.calling.learned_limits import LearnedLimits
from council.calling.shared_limit import (
    CLOCK_MARGIN_S,
    MAX_AHEAD_S,
    MAX_PAUSE_S,
    WINDOW_S,
    Amounts,
    Grant,
    LimitStore,
    SharedLimit,
    list_amounts,
    load_state,
)
from council.errors import Fault
from council.store.interface import Attempt
from council.types import Answer, StatedLimit, Usage, estimate_tokens

SHARE, BURST = 0.95, 0.03  # of a limit: what a bucket gets in a minute, and what it holds
TOKEN_KINDS = ("input", "output", "tokens")

# Buckets


@dataclass(slots=True)
class Bucket:
    """What is left of a limit at a time, which may be the start of a reserved request. Below 0, it is in debt."""

    per_minute: float
    level: float
    at: float

    @property
    def capacity(self) -> float:
        return BURST * self.per_minute

    @property
    def free_from(self) -> float:
        """Return when the next request may start."""
        return self.at + max(0.0, -self.level) / (SHARE * self.per_minute / WINDOW_S)

    def add(self, amount: float) -> None:
        self.level = min(self.capacity, self.level + amount)

    def take(self, amount: float, start: float) -> None:
        """Take an amount at a time that is not before the last one."""
        self.add((start - self.at) * SHARE * self.per_minute / WINDOW_S)
        self.level, self.at = self.level - amount, start


def load_buckets(limits: Amounts, state: str, now: float) -> dict[str, Bucket]:
    """Return the bucket of each limit; a new one is full. A time that is too far ahead is that of a clock set back."""
    stored, buckets = load_state(state), dict[str, Bucket]()
    for kind, per_minute in limits.items():
        level, at = stored.get(kind, (BURST * per_minute, now))
        is_ahead = at > now + MAX_AHEAD_S + CLOCK_MARGIN_S
        buckets[kind] = Bucket(per_minute, min(level, BURST * per_minute), now if is_ahead else at)
    return buckets


def take_from_buckets(
    limits: Amounts, returned: Amounts, wanted: Sequence[Amounts], state: str, now: float
) -> tuple[str, Grant]:
    """Give back what requests did not use, and reserve the next starts. Return the new state and the starts."""
    buckets = load_buckets(limits, state, now)
    for kind, bucket in buckets.items():
        bucket.add(returned.get(kind, 0))
    starts, pause = list[float](), 0.0
    for amounts in wanted:
        start = max([now, *(bucket.free_from for bucket in buckets.values())])
        if start > now + MAX_AHEAD_S:
            pause = min(start - now - MAX_AHEAD_S / 2, MAX_PAUSE_S)
            break
        for kind, bucket in buckets.items():
            bucket.take(amounts[kind], start)
        starts.append(start - now)
    stored = {kind: [bucket.level, bucket.at] for kind, bucket in buckets.items()}
    return json.dumps(stored), Grant(starts, pause)


# Requests


@dataclass(slots=True)
class Reservation:
    """Start and amounts of one request."""

    limit: SharedLimit | None  # that of the settings
    amounts: Amounts
    start: float  # on the clock of the event loop
    is_sent: bool = False

    def settle(self, attempt: Attempt, answer: Answer | Fault) -> None:
        """Correct the amounts to what the request has used."""
        if self.limit is None:
            return
        used = _list_used(self.amounts, attempt, answer)
        self.limit.give_back({kind: amount - used[kind] for kind, amount in self.amounts.items()})

    def withdraw(self) -> None:
        """Give everything back, unless the request was sent."""
        if self.limit and not self.is_sent:
            self.limit.give_back(self.amounts)


def _list_used(expected: Amounts, attempt: Attempt, answer: Answer | Fault) -> Amounts:
    """Return what a request has used. Where that is not known, what was expected."""
    if isinstance(answer, Answer):
        usage = answer.usage
        if not usage.known:
            written = max(usage.output, estimate_tokens(answer.text))
            usage = replace(usage, input=max(usage.input, int(expected["input"])), output=written)
        return list_amounts(usage)
    if attempt.delivery.is_connecting:
        return dict.fromkeys(expected, 0)
    if answer.has_status:  # vendors count refused requests, without an answer
        return {**expected, "output": 0, "tokens": expected["input"]}
    return expected


class VendorLimits:
    """The limits of one provider: those of the settings, and those that answers state of each model."""

    def __init__(self, name: str, per_minute: Amounts, store: LimitStore) -> None:
        """`per_minute` has the limits of the settings."""
        self.store, self._name = store, name
        take = partial(take_from_buckets, per_minute)
        self._shared = SharedLimit(name, per_minute, store, take) if per_minute else None
        self._learned: dict[str, LearnedLimits] = {}
        has_tokens = any(kind in per_minute for kind in TOKEN_KINDS)
        self._ignored = {*per_minute, *(TOKEN_KINDS if has_tokens else ())}
        self.has_limits = bool(per_minute)  # if not, a request need not reserve anything

    async def reserve(self, member: str, usage: Usage) -> Reservation:
        """Reserve a start and the expected usage of a request."""
        amounts, start = list_amounts(usage), asyncio.get_running_loop().time()
        if self._shared:
            start = await self._shared.reserve(amounts)
        reservation = Reservation(self._shared, amounts, start)
        if learned := self._learned.get(member):
            try:
                reservation.start = max(start, await learned.reserve(amounts))
            except BaseException:
                reservation.withdraw()
                raise
        return reservation

    def learn(self, member: str, sent_at: float, stated: Sequence[StatedLimit]) -> None:
        """Take over the limits that an answer states, whose request was sent at a time of the event loop.

        Those of the settings win.
        """
        known = [one for one in stated if one.kind not in self._ignored]
        if not known:
            return
        if member not in self._learned:
            self._learned[member] = LearnedLimits(f"{self._name} {member}", self.store)
            self.has_limits = True
        self._learned[member].learn(known, sent_at)
