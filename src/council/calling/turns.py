"""Deadline of one member: while fallbacks remain, a silent member gets only a share of the seat's time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from council.members.base import Member


@dataclass(slots=True)
class MemberDeadline:
    """One member's share of the seat's time, in event loop time."""

    member: Member
    seat_deadline: float  # deadline of the seat
    remaining_members: int  # fallbacks left after this member
    is_first: bool
    silence_deadline: float = 0.0  # when a silent member is given up
    has_output: bool = False  # it has sent output since `ends` was set
    is_over: bool = False  # it was silent until `ends`
    repeated_text: str = ""  # the text it repeats

    def __post_init__(self) -> None:
        self.silence_deadline = _loop_time() + self.time_share()

    def time_share(self) -> float:
        """Return the seconds for this member: half for the requested one, all that remain for the last one."""
        left = max(0.0, self.seat_deadline - _loop_time())
        return left / 2 if self.is_first and self.remaining_members else left / (self.remaining_members + 1)

    def seconds_left(self) -> float:
        """Return the seconds until a fallback is asked. A member that sent output and then failed gets a new share."""
        if self.has_output:
            self.silence_deadline, self.has_output = _loop_time() + self.time_share(), False
        return self.silence_deadline - _loop_time()

    def extend(self, seconds: float) -> None:
        """Extend the deadlines by the time spent waiting for a slot."""
        self.seat_deadline += seconds
        self.silence_deadline += seconds

    def timeout(self) -> asyncio.Timeout:
        return asyncio.timeout(self.seconds_left() if self.remaining_members else None)

    def on_output(self, timeout: asyncio.Timeout) -> None:
        """Record output or thinking: from now on the member has the seat's time."""
        self.has_output = True
        if not timeout.expired() and not self.repeated_text:
            timeout.reschedule(None)

    def stop_on_loop(self, piece: str, timeout: asyncio.Timeout) -> None:
        """Stop the call because the answer repeats itself."""
        self.repeated_text = piece
        if not timeout.expired():
            timeout.reschedule(0.0)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
