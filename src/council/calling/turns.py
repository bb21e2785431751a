"""Whose turn it is, and for how long: while others could be asked instead, silence has an end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from council.members.base import Member


@dataclass(slots=True)
class Turn:
    """One member's part of the seat's time. All times are the loop's."""

    member: Member
    deadline: float  # of the seat
    others: int  # how many can be asked after it
    first: bool
    ends: float = 0.0  # when its silence does
    spoke: bool = False  # it has shown life since `ends` was set
    over: bool = False  # it was silent for too long
    loop: str = ""  # what it repeats without end

    def __post_init__(self) -> None:
        self.ends = _now() + self.share()

    def share(self) -> float:
        """The requested member has half of the time at least; whoever comes last has all that is left."""
        left = max(0.0, self.deadline - _now())
        return left / 2 if self.first and self.others else left / (self.others + 1)

    def left(self) -> float:
        """Seconds until another is asked. A member that spoke and failed all the same has a share again."""
        if self.spoke:
            self.ends, self.spoke = _now() + self.share(), False
        return self.ends - _now()

    def waited(self, seconds: float) -> None:
        """It stood before a full gate: nobody had asked it yet."""
        self.deadline += seconds
        self.ends += seconds

    def clock(self) -> asyncio.Timeout:
        return asyncio.timeout(self.left() if self.others else None)

    def alive(self, clock: asyncio.Timeout) -> None:
        """It thinks or speaks: from now on it has the seat's time."""
        self.spoke = True
        if not clock.expired() and not self.loop:
            clock.reschedule(None)

    def went_round(self, piece: str, clock: asyncio.Timeout) -> None:
        """It says the same again and again: there is nothing to wait for."""
        self.loop = piece
        if not clock.expired():
            clock.reschedule(0.0)


def _now() -> float:
    return asyncio.get_running_loop().time()
