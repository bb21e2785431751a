"""Retry loop: replay recorded attempts, resend those in doubt, send the rest."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from council import events as ev
from council.calling.changes import Failed, Next, following
from council.calling.families import Families
from council.calling.judging import is_whole, judged, looping
from council.calling.keeping import Journal, as_result, from_result, unfinished
from council.calling.limits import Gate, Pass, open_gate
from council.calling.purse import NoPurse, Purse
from council.calling.repeating import Repetition
from council.calling.table import TABLE, retries
from council.calling.turns import Turn
from council.errors import BudgetSpent, Fault
from council.members.base import Member
from council.record import Attempt
from council.types import Answer, Ask, Json, Outcome, Step, Usage, Watch, sound

LONGEST_WAIT = 30.0


@dataclass(slots=True)
class Caller:
    """Executes the steps of one run."""

    member: Callable[[str], Member]
    journal: Journal
    timeout: Callable[[str], float] = lambda member: 120.0  # seconds per seat, by requested member
    resend: bool = True
    gate: Callable[[str], Gate] = open_gate  # concurrency limit of a member's provider
    families: Families = field(default_factory=Families)
    purse: Purse = field(default_factory=NoPurse)

    async def __call__(self, step: Step) -> Outcome:
        return await Series(self, step).carry_out()


@dataclass(slots=True)
class Series:
    """Retry loop for one step."""

    caller: Caller
    step: Step
    past: list[Attempt] = field(default_factory=list)
    spent: Usage = field(default_factory=Usage)
    deadline: float = 0.0
    clock: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    left_behind: str = ""
    spare: Outcome | None = None  # complete typed reply that hit the length limit: used if retries fail

    @property
    def key(self) -> str:
        return self.step.ask.key

    @property
    def seat(self) -> str:
        return self.step.seat

    @property
    def limit(self) -> float:
        return self.step.timeout or self.caller.timeout(self.step.chain[0])

    async def carry_out(self) -> Outcome:
        journal = self.caller.journal
        self.past = unfinished(journal.attempts(self.key))
        started = _now()
        self.deadline = started + self.limit
        try:
            async with asyncio.timeout(self.limit) as self.clock:
                if self.step.watch:
                    self.step.watch.leave = self._leave_behind
                outcome = await self._down_the_chain()
        except TimeoutError:
            outcome = self._out_of_time()
        except BudgetSpent as spent:
            self.caller.families.leaves(self.seat)
            outcome = self.spare or Outcome("skipped(budget)", reason=str(spent))
        journal.calls["in_doubt"] += outcome.state == "in_doubt"
        return replace(
            outcome, attempts=len(journal.attempts(self.key)), usage=self.spent, seconds=round(_now() - started, 3)
        )

    def _leave_behind(self, why: str) -> None:
        self.left_behind = why
        if not self.clock.expired():
            self.clock.reschedule(0.0)

    # Choosing the member

    async def _down_the_chain(self) -> Outcome:
        """Try the requested member, then its fallbacks. If all fail, return the state of the requested one."""
        requested, first = self.step.chain[0], True
        failed = {name: excluded for name in self.step.chain if (excluded := self._gone(name))}
        remaining = [name for name in self.step.chain if name not in failed]
        while remaining:
            member = self._whose_turn(remaining)
            remaining.remove(member.name)
            self.caller.families.sits(self.seat, member)
            why = f"fallback: {requested} {failed[requested].state}" if requested in failed else ""
            outcome = await self._with(Turn(member, self.deadline, len(remaining), first), why)
            if outcome.ok or self._stays(outcome.state):
                return outcome
            failed[member.name], first = outcome, False
        self.caller.families.leaves(self.seat)
        reasons = [
            outcome.reason if name == requested else f"{name}: {outcome.reason}" for name, outcome in failed.items()
        ]
        return replace(failed[requested], reason="; then ".join(dict.fromkeys(reasons)))

    def _gone(self, name: str) -> Outcome | None:
        """Return the outcome of a member that is excluded for this run, unless this step has already asked it."""
        state = self.caller.families.gone(self.seat, name)
        if not state or any(attempt.member == name for attempt in self.past):
            return None
        return Outcome(state, reason=f"excluded from this run after {state}")

    def _whose_turn(self, left: Sequence[str]) -> Member:
        """Return the member a resumed run had asked, else the requested one, else the best fallback."""
        if self.past and self.past[0].member in left:
            return self.caller.member(self.past[0].member)
        if left[0] == self.step.chain[0]:
            return self.caller.member(left[0])
        return self.caller.families.choose(self.seat, [self.caller.member(name) for name in left])

    async def _with(self, turn: Turn, why: str) -> Outcome:
        """Ask one member until it answers or its retries or time are used up."""
        faults: Counter[str] = Counter()
        trial = Next(self.step.ask, why)
        while True:
            attempt, answer = await self._attempt(turn, trial)
            try:
                accepted = judged(answer, self.step)
            except Fault as fault:
                faults[fault.kind] += 1
                if fault.kind == "length" and is_whole(fault.said, self.step):
                    self.spare = self._taken(turn, trial, "truncated", fault.said)
                known, after = attempt.result, following(self._failed(turn, trial, fault, answer))
                wait = self._patience(turn, fault, faults[fault.kind], known) if after else None
                self._record(attempt, answer, fault, wait, turn)
                if wait is None or after is None:
                    return self._given_up(turn, fault)
                trial = replace(after, cut=after.cut or trial.cut, dropped=after.dropped or trial.dropped)
                if wait and known is None:
                    await asyncio.sleep(wait)
            else:
                self._record(attempt, answer, None, None, turn)
                return self._taken(turn, trial, "ok_repaired" if faults["schema"] else "ok", accepted.text)

    def _failed(self, turn: Turn, trial: Next, fault: Fault, answer: Answer | Fault) -> Failed:
        written = answer.usage.output if isinstance(answer, Answer) else 0
        return Failed(self.step, turn.member, trial.ask, fault, written)

    def _taken(self, turn: Turn, trial: Next, state: str, text: str) -> Outcome:
        self.caller.families.answered(self.seat, turn.member)
        return Outcome(state, text, served_by=turn.member.name, cut=trial.cut, dropped=trial.dropped)

    def _given_up(self, turn: Turn, fault: Fault) -> Outcome:
        if self.spare:
            return self.spare
        self.caller.families.gave_up(self.seat, turn.member, fault)
        return Outcome(TABLE[fault.kind].state, reason=fault.detail)

    def _patience(self, turn: Turn, fault: Fault, time: int, known: Json | None) -> float | None:
        """Return the seconds to wait before the next attempt, or None to give up. A recorded decision is replayed."""
        row = TABLE[fault.kind]
        used_up = time > (0 if self._stays(row.state) else retries(fault.kind, chair=self.step.chair))
        if used_up or turn.over or (known and known.get("passed_on")):
            return None
        wait = _wait(turn.member, fault, time) if row.waits else 0.0
        return None if known is None and wait > turn.left() else min(wait, LONGEST_WAIT)

    def _stays(self, state: str) -> bool:
        """Return whether the step ends in doubt, because resending is disabled and the request may have been billed."""
        return state == "in_doubt" and not self.caller.resend

    # One attempt

    async def _attempt(self, turn: Turn, trial: Next) -> tuple[Attempt, Answer | Fault]:
        ask = self.caller.purse.bounded(trial.ask)
        body, why = turn.member.prepare(ask), trial.why
        if self.past:
            attempt = self.past.pop(0)
            if attempt.result is not None:
                return attempt, from_result(attempt.result)
            if not self.caller.resend:
                return attempt, Fault(
                    "doubt", "the process stopped before the answer was stored, and --no-resend is set"
                )
            self.caller.journal.calls["in_doubt"] += 1
            self.caller.journal.charge(
                self.caller.purse.settle(self.key, attempt, Fault("doubt", "no answer was stored"))
            )
            body, why = attempt.body, "resent: the process stopped before the answer was stored"
        async with self._place(turn, ask, body) as (place, most):
            attempt = await self.caller.journal.intend(self.key, self.seat, turn.member.name, body, why, most)
            answer = await self._send(turn, body, place)
            place.learn(answer.kind if isinstance(answer, Fault) else "")
            return attempt, answer

    @asynccontextmanager
    async def _place(self, turn: Turn, ask: Ask, body: bytes) -> AsyncIterator[tuple[Pass, float | None]]:
        """Wait for a concurrency slot and a budget reservation, with the seat's timeout paused."""
        started = _now()
        self.clock.reschedule(None)
        async with self.caller.gate(turn.member.name).turn() as place:
            n = len(self.caller.journal.attempts(self.key)) + 1
            most = await self.caller.purse.reserve(self.key, n, turn.member, ask, body)
            waited = _now() - started
            self.deadline += waited
            turn.waited(waited)
            self.clock.reschedule(self.deadline)
            yield place, most

    async def _send(self, turn: Turn, body: bytes, place: Pass) -> Answer | Fault:
        share, detector, watch = turn.left(), Repetition(), self.step.watch or Watch()
        watch.spoke = False

        def hear(piece: str) -> None:
            turn.alive(clock)
            watch.spoke = True
            if not place.spoke:
                place.hear()
            if piece:
                self.caller.journal.murmur(self.key, self.seat, sound(piece))
                if repeated := detector.hear(piece):
                    turn.went_round(repeated, clock)

        try:
            async with turn.clock() as clock:
                answer = await turn.member.send(body, hear)
        except Fault as fault:
            return Fault(fault.kind, sound(fault.detail), said=sound(fault.said), retry_after=fault.retry_after)
        except TimeoutError:
            if not clock.expired():
                raise
            return self._broken_off(turn, share)
        turn.spoke = True
        return replace(answer, text=sound(answer.text))

    def _broken_off(self, turn: Turn, share: float) -> Fault:
        if turn.loop:
            piece, turn.loop = turn.loop, ""
            return Fault("loop", sound(looping(piece)))
        turn.over = True
        return Fault("stall", f"no output within {round(share, 1):g} s")

    def _record(
        self, attempt: Attempt, answer: Answer | Fault, fault: Fault | None, wait: float | None, turn: Turn
    ) -> None:
        """Record the result of an attempt, unless it is already recorded."""
        if isinstance(answer, Answer):
            self.spent += answer.usage
        if attempt.result is not None:
            return
        over = fault is not None and wait is None
        has_fallback = fault is not None and turn.others > 0 and not self._stays(TABLE[fault.kind].state)
        passed_on = over and (has_fallback or self.spare is not None)
        journal, bill = self.caller.journal, self.caller.purse.settle(self.key, attempt, answer)
        journal.settle(self.key, attempt, as_result(answer, given_up=over and not passed_on, passed_on=passed_on), bill)
        if fault:
            self._tell(attempt, fault, wait)

    def _out_of_time(self) -> Outcome:
        fault = Fault("stall", self.left_behind or f"no answer within {self.limit:g} s")
        journal = self.caller.journal
        for attempt in journal.attempts(self.key):
            if attempt.result is None:
                bill = self.caller.purse.settle(self.key, attempt, fault)
                result = as_result(fault, given_up=not self.spare, passed_on=bool(self.spare))
                journal.settle(self.key, attempt, result, bill)
                self._tell(attempt, fault, None)
        if self.spare:
            return self.spare
        self.caller.families.leaves(self.seat)
        return Outcome("timed_out", reason=fault.detail)

    def _tell(self, attempt: Attempt, fault: Fault, wait: float | None) -> None:
        """Discard the streamed text and emit the fault."""
        journal = self.caller.journal
        journal.hush(self.key)
        journal.tell(ev.Faulted(self.key, self.seat, attempt.n, attempt.member, fault.kind, fault.detail, wait))


def _now() -> float:
    return asyncio.get_running_loop().time()


def _wait(member: Member, fault: Fault, time: int) -> float:
    """Return the Retry-After seconds, or an exponential backoff with jitter."""
    if fault.retry_after is not None:
        return fault.retry_after
    return min(member.backoff * 2.0 ** (time - 1), LONGEST_WAIT) * random.uniform(0.5, 1.0)
