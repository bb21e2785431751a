"""Hedging: when a member takes longer than it usually does, another one is asked too, and the first complete answer
counts.

Off by default. A member is slow after the time in which 95 % of its past answers were complete, or, with fewer than 20
of them, after half of its time for a phase.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from council import events as ev
from council.calling.concurrency import Slot
from council.calling.fault_table import NextAttempt
from council.calling.retry import MemberDeadline, RetryLoop, result_to_json
from council.errors import BudgetSpent, Fault
from council.members.base import Member
from council.store.interface import Attempt
from council.types import Answer, Ask, Outcome

MIN_SAMPLES = 20
QUANTILE = 0.95
DEFAULT_SHARE = 0.5  # of the member's time for a phase, without enough samples
PastSeconds = Callable[[str], Awaitable[Sequence[float]]]  # member → how long its past answers took


def usual_seconds(past: Sequence[float]) -> float | None:
    """Return the time in which 95 % of the answers were complete, or None if there are too few."""
    if len(past) < MIN_SAMPLES:
        return None
    return sorted(past)[math.ceil(QUANTILE * len(past)) - 1]


@dataclass(slots=True)
class HedgePolicy:
    """Decides when a member is slow."""

    past_seconds: PastSeconds
    _usual: dict[str, float | None] = field(default_factory=dict)  # by member, read once for a run

    async def delay(self, member: str, seconds: float) -> float:
        """Return after how many seconds another member is asked too; `seconds` is the member's time for the phase."""
        if member not in self._usual:
            self._usual[member] = usual_seconds(await self.past_seconds(member))
        usual = self._usual[member]
        return DEFAULT_SHARE * seconds if usual is None else usual


@dataclass(slots=True)
class Race:
    """The members that work on one step at the same time."""

    tasks: dict[str, asyncio.Task[Outcome | None]] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)  # members that have neither answered nor given up
    in_flight: dict[str, Attempt] = field(default_factory=dict)  # open request of each member
    sent: asyncio.Event = field(default_factory=asyncio.Event)  # the first member's request was sent
    rival: str = ""  # the member that is asked because the first is slow
    delay: float = 0.0  # seconds after which it was asked
    winner: str = ""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # one request at a time is numbered, reserved and recorded

    def start(self, member: str, work: Coroutine[Any, Any, Outcome | None]) -> asyncio.Task[Outcome | None]:
        self.running.add(member)
        self.tasks[member] = asyncio.create_task(work)
        return self.tasks[member]

    async def outlasts(self, member: str, delay: float) -> bool:
        """Return whether the member still works when `delay` seconds have passed since its request was sent."""
        task, sending, self.delay = self.tasks[member], asyncio.ensure_future(self.sent.wait()), delay
        try:
            await asyncio.wait((task, sending), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
        await asyncio.wait((task,), timeout=delay)
        return not task.done()

    async def wait_for_answer(self) -> None:
        """Return when a member has answered, or when all have given up."""
        pending = set(self.tasks.values())
        while pending and not self.winner:
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)

    async def stop(self) -> None:
        """Cancel the requests that are still open, and wait for their ends."""
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


@dataclass(kw_only=True)
class HedgedLoop(RetryLoop):
    """Retry loop that asks a second member while the requested one is slow."""

    policy: HedgePolicy
    race: Race | None = None  # while the requested member works

    async def _try_next(
        self, deadline: MemberDeadline, trial: NextAttempt, remaining: list[str], failed: dict[str, Outcome]
    ) -> Outcome:
        """Try a member. If it is slow, ask the best fallback too; the first complete answer counts."""
        name = deadline.member.name
        others = [other for other in remaining if other not in self.caller.no_phase_timeout]  # without people
        if not others or failed or name in self.caller.no_phase_timeout or not self.caller.resend:
            return await self._try_member(deadline, trial)
        race = self.race = Race()
        try:
            first = race.start(name, self._try_member(deadline, trial))
            if await race.outlasts(name, await self.policy.delay(name, deadline.seconds)):
                other = self._choose_member(others)
                race.rival = other.name
                race.start(other.name, self._try_rival(other, trial.ask, deadline, remaining))
                await race.wait_for_answer()
                if race.winner == other.name:
                    self.caller.fallbacks.assign(self.seat, other)
                outcome = await race.tasks[race.winner or other.name]
                if outcome and (race.winner or outcome.ok):
                    return outcome
                if outcome:
                    failed[other.name] = outcome
            return await first or Outcome("in_doubt")
        finally:
            await race.stop()
            self.race = None

    async def _try_rival(self, member: Member, ask: Ask, slow: MemberDeadline, remaining: list[str]) -> Outcome | None:
        """Ask a fallback while a slow member works. Return None if the budget has no room for it."""
        assert self.race
        remaining.remove(member.name)
        slow.has_fallback = bool(remaining)
        why = f"hedge: {slow.member.name} has not answered after {self.race.delay:.3g} s"
        hedge = ev.Hedged(self.key, self.seat, slow.member.name, member.name, round(self.race.delay, 3))
        deadline = MemberDeadline(member, self.caller.member_timeout(self.step, member.name), bool(remaining))
        try:
            return await self._try_member(deadline, NextAttempt(ask, why, slow.member.name, ev.HEDGED, hedge=hedge))
        except BudgetSpent:
            self.race.running.discard(member.name)
            remaining.insert(0, member.name)
            slow.has_fallback = True
            return None

    async def _run_attempt(self, deadline: MemberDeadline, request: NextAttempt) -> tuple[Attempt, Answer | Fault]:
        attempt, answer = await super()._run_attempt(deadline, request)
        if self.race and self.race.winner not in ("", deadline.member.name):
            raise asyncio.CancelledError  # the other member has answered in the meantime
        return attempt, answer

    async def _open_attempt(
        self, deadline: MemberDeadline, request: NextAttempt, body: bytes, started: float, *, may_wait: bool = True
    ) -> Attempt:
        race, name = self.race, deadline.member.name
        if race is None:
            return await super()._open_attempt(deadline, request, body, started)
        async with race.lock:
            n = len(self.caller.journal.attempts(self.key)) + 1
            may_wait = name != race.rival  # the rival does not wait for money that other requests may release
            try:
                attempt = await super()._open_attempt(deadline, request, body, started, may_wait=may_wait)
            except asyncio.CancelledError:
                self.caller.budget.withdraw(self.key, n)
                raise
        race.in_flight[name] = attempt
        return attempt

    async def _send(
        self, deadline: MemberDeadline, ask: Ask, attempt: Attempt, body: bytes, slot: Slot
    ) -> Answer | Fault:
        if self.race:
            self.race.sent.set()
        return await super()._send(deadline, ask, attempt, body, slot)

    def _stream(self, deadline: MemberDeadline, text: str) -> None:
        if not self.race or deadline.member.name != self.race.rival:  # the text of one member at a time is shown
            super()._stream(deadline, text)

    def _record_result(
        self,
        attempt: Attempt,
        answer: Answer | Fault,
        fault: Fault | None,
        wait: float | None,
        deadline: MemberDeadline,
    ) -> None:
        race, had_fallback = self.race, deadline.has_fallback
        if race and fault is None:
            self._win(race, deadline.member.name)
        elif race:
            deadline.has_fallback |= bool(race.running - {deadline.member.name})  # another member may still answer
        super()._record_result(attempt, answer, fault, wait, deadline)
        deadline.has_fallback = had_fallback

    def _win(self, race: Race, winner: str) -> None:
        """Record the open request of the slower member. It is cancelled, and may be billed."""
        race.winner = winner
        for attempt in race.in_flight.values():
            if attempt.member != winner and attempt.result is None:
                race.tasks[attempt.member].cancel()  # before its bill: a request that still connects must not be sent
                fault = Fault("hedge", f"{winner} answered first")
                bill = self.caller.budget.bill_attempt(self.key, attempt, fault)
                stored = result_to_json(fault, given_up=False, passed_on=True)
                stored["hedged"] = True
                self.caller.journal.record_result(self.key, attempt, stored, bill)
                self._emit_fault(attempt, fault, None)

    def _give_up(self, deadline: MemberDeadline, fault: Fault) -> Outcome:
        if self.race:
            self.race.running.discard(deadline.member.name)
        if not self.race or not self.race.running:
            return super()._give_up(deadline, fault)
        kept, self.usable_reply = self.usable_reply, None  # the other member may still give a complete answer
        outcome = super()._give_up(deadline, fault)
        self.usable_reply = kept
        return outcome
