"""Limits that the answers of a vendor state, by model: slow down before a 429.

The statement of the latest answer counts, without the requests that this process has started since. As long as a
quarter of each limit is left, requests start at once and nothing is stored. From then on, all processes reserve their
starts in the store, which spreads what is left evenly over the time until the reset. After the last tight moment they
do so for two minutes more, so that they do not begin the next minute all at once.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from council.calling.shared_limit import (
    CLOCK_MARGIN_S,
    MAX_AHEAD_S,
    MAX_PAUSE_S,
    WINDOW_S,
    Amounts,
    Grant,
    LimitStore,
    SharedLimit,
    load_state,
)
from council.types import StatedLimit

LITTLE = 0.25  # of a limit: below it, requests are spread
SHARED_S = 120.0  # after the last tight moment
MAX_STARTS = 1000  # of one process, that may be later than a statement
SAME_RESET_S = 1.0  # resets that are nearer to each other are one


@dataclass(slots=True)
class LearnedLimit:
    """What is left of a limit of a vendor until it is reset."""

    most: float
    left: float
    reset: float
    next_start: float
    stated: float  # when the vendor has said so

    def roll(self, start: float) -> None:
        """Assume a new window after the reset, until an answer states it."""
        if start >= self.reset:
            self.left, self.reset, self.next_start = self.most, start + WINDOW_S, start

    def is_tight(self, amount: float) -> bool:
        return self.left - amount < LITTLE * self.most

    def find_start(self, amount: float, now: float) -> float:
        """Return when a request may start: at the reset, if too little is left."""
        if now < self.reset and self.left < amount:
            return max(self.reset, self.next_start)
        return max(now, self.next_start)

    def take(self, amount: float, start: float) -> None:
        self.roll(start)
        if self.is_tight(amount):
            self.next_start = start + (self.reset - start) * min(1.0, amount / max(self.left, 1.0))
        self.left = max(0.0, self.left - amount)


def load_learned(state: str, now: float) -> dict[str, LearnedLimit]:
    """Return the stored limits, without those of a clock that was set back."""
    rows = {kind: LearnedLimit(*row) for kind, row in load_state(state).items() if len(row) == 5}
    return {kind: one for kind, one in rows.items() if one.stated <= now + CLOCK_MARGIN_S}


def merge(stored: LearnedLimit | None, own: LearnedLimit, kind: str) -> LearnedLimit:
    """Return the newer statement. The places of reserved requests stay, and in one window requests only become less."""
    if stored is None:
        return own
    if stored.stated >= own.stated:
        return stored
    if own.is_tight(0):
        own.next_start = min(max(own.next_start, stored.next_start), own.reset)
    if kind == "requests" and abs(stored.reset - own.reset) < SAME_RESET_S:
        own.left = min(own.left, stored.left)
    return own


def take_from_learned(
    known: Mapping[str, LearnedLimit], wanted: Sequence[Amounts], state: str, now: float
) -> tuple[str, Grant]:
    """Reserve the next starts under stored and own knowledge, whose times are seconds from now."""
    limits = load_learned(state, now)
    for kind, one in known.items():
        own = LearnedLimit(one.most, one.left, now + one.reset, now + one.next_start, now + one.stated)
        limits[kind] = merge(limits.get(kind), own, kind)
    starts, pause = list[float](), 0.0
    for amounts in wanted:
        start = max([now, *(limit.find_start(amounts[kind], now) for kind, limit in limits.items())])
        if start > now + MAX_AHEAD_S:
            pause = min(start - now - MAX_AHEAD_S / 2, MAX_PAUSE_S)
            break
        for kind, limit in limits.items():
            limit.take(amounts[kind], start)
        starts.append(start - now)
    stored = {kind: [one.most, one.left, one.reset, one.next_start, one.stated] for kind, one in limits.items()}
    return json.dumps(stored), Grant(starts, pause)


class LearnedLimits:
    """The limits of one model of a provider, as this process knows them."""

    def __init__(self, name: str, store: LimitStore) -> None:
        self._known: dict[str, LearnedLimit] = {}  # by the clock of the event loop
        self._starts: deque[tuple[float, Amounts]] = deque(maxlen=MAX_STARTS)
        self._shared_until = 0.0
        self._time = asyncio.get_running_loop().time
        self._shared = SharedLimit(name, (), store, self._take)

    def learn(self, stated: Sequence[StatedLimit], sent_at: float) -> None:
        """Take over what an answer states, whose request was sent at a time of the event loop."""
        now = self._time()
        later = [amounts for start, amounts in self._starts if start > sent_at]
        for one in stated:
            left = max(0.0, one.left - sum(amounts[one.kind] for amounts in later))
            self._known[one.kind] = LearnedLimit(one.most, left, now + one.reset, now, now)

    async def reserve(self, amounts: Amounts) -> float:
        """Return the time of a start on the clock of the event loop."""
        now = self._time()
        for limit in self._known.values():
            limit.roll(now)
        if any(limit.is_tight(amounts[kind]) for kind, limit in self._known.items()):
            self._shared_until = now + SHARED_S
        start = await self._shared.reserve(amounts) if now < self._shared_until else now
        for kind, limit in self._known.items():
            limit.left = max(0.0, limit.left - amounts[kind])
        self._starts.append((start, amounts))
        return start

    def _take(self, returned: Amounts, wanted: Sequence[Amounts], state: str, now: float) -> tuple[str, Grant]:
        """Reserve starts. The thread of the store calls this."""
        here = self._time()
        known = {
            kind: LearnedLimit(one.most, one.left, one.reset - here, one.next_start - here, one.stated - here)
            for kind, one in list(self._known.items())
        }
        return take_from_learned(known, wanted, state, now)
