"""Deadline of one member: while fallbacks remain, a silent member gets only a share of the seat's time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from council.members.base import Member


@dataclass(slots=True)
class Turn:
    """One member's share of the seat's time, in event loop time."""

    member: Member
    deadline: float  # deadline of the seat
    others: int  # fallbacks left after this member
    first: bool
    ends: float = 0.0  # when a silent member is given up
    spoke: bool = False  # it has sent output since `ends` was set
    over: bool = False  # it was silent until `ends`
    loop: str = ""  # the text it repeats

    def __post_init__(self) -> None:
        self.ends = _now() + self.share()

    def share(self) -> float:
        """Return the seconds for this member: half for the requested one, all that remain for the last one."""
        left = max(0.0, self.deadline - _now())
        return left / 2 if self.first and self.others else left / (self.others + 1)

    def left(self) -> float:
        """Return the seconds until a fallback is asked. A member that sent output and then failed gets a new share."""
        if self.spoke:
            self.ends, self.spoke = _now() + self.share(), False
        return self.ends - _now()

    def waited(self, seconds: float) -> None:
        """Extend the deadlines by the time spent waiting for a slot."""
        self.deadline += seconds
        self.ends += seconds

    def clock(self) -> asyncio.Timeout:
        return asyncio.timeout(self.left() if self.others else None)

    def alive(self, clock: asyncio.Timeout) -> None:
        """Record output or thinking: from now on the member has the seat's time."""
        self.spoke = True
        if not clock.expired() and not self.loop:
            clock.reschedule(None)

    def went_round(self, piece: str, clock: asyncio.Timeout) -> None:
        """Stop the call because the answer repeats itself."""
        self.loop = piece
        if not clock.expired():
            clock.reschedule(0.0)


def _now() -> float:
    return asyncio.get_running_loop().time()
