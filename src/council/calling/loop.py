"""The one retry loop. It replays what the journal knows, resends what is in doubt, and sends the rest."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from council import events as ev
from council.calling.judging import judged
from council.calling.keeping import as_result, from_result, unfinished
from council.calling.table import TABLE
from council.calling.turns import Turn
from council.errors import Fault
from council.members.base import UNCAPPED, Member
from council.record import Attempt
from council.types import Answer, Ask, Json, Outcome, Step, Usage, sound

LONGEST_WAIT = 30.0


class Journal(Protocol):
    """What the loop needs of the ledger."""

    calls: dict[str, int]

    def attempts(self, key: str) -> list[Attempt]: ...
    async def intend(self, key: str, seat: str, member: str, body: bytes, why: str) -> Attempt: ...
    def settle(self, key: str, attempt: Attempt, result: Json) -> None: ...
    def murmur(self, key: str, seat: str, piece: str) -> None: ...
    def hush(self, key: str) -> None: ...
    def tell(self, event: ev.Event) -> None: ...


@dataclass(slots=True)
class Caller:
    """Carries out steps for one run."""

    member: Callable[[str], Member]
    journal: Journal
    timeout: Callable[[str], float] = lambda member: 120.0  # seconds a seat has, by its requested member
    resend: bool = True

    async def __call__(self, step: Step) -> Outcome:
        return await Series(self, step).carry_out()


@dataclass(slots=True)
class Series:
    """One step's attempts, from the first to the last."""

    caller: Caller
    step: Step
    past: list[Attempt] = field(default_factory=list)
    spent: Usage = field(default_factory=Usage)
    deadline: float = 0.0

    @property
    def key(self) -> str:
        return self.step.ask.key

    @property
    def limit(self) -> float:
        return self.step.timeout or self.caller.timeout(self.step.chain[0])

    async def carry_out(self) -> Outcome:
        journal = self.caller.journal
        self.past = unfinished(journal.attempts(self.key))
        clock = asyncio.get_running_loop().time
        started = clock()
        self.deadline = started + self.limit
        try:
            async with asyncio.timeout(self.limit):
                outcome = await self._down_the_chain()
        except TimeoutError:
            outcome = self._out_of_time()
        journal.calls["in_doubt"] += outcome.state == "in_doubt"
        return replace(
            outcome, attempts=len(journal.attempts(self.key)), usage=self.spent, seconds=round(clock() - started, 3)
        )

    async def _down_the_chain(self) -> Outcome:
        """The requested member, then its fallbacks. The seat keeps the state that the requested one earned."""
        failed: list[Outcome] = []
        for others, name in zip(reversed(range(len(self.step.chain))), self.step.chain, strict=True):
            why = f"fallback: {self.step.chain[0]} {failed[0].state}" if failed else ""
            outcome = await self._with(Turn(self.caller.member(name), self.deadline, others, not failed), why)
            if outcome.ok or self._stays(outcome.state):
                return outcome
            failed.append(outcome)
        reasons = [
            outcome.reason if name == self.step.chain[0] else f"{name}: {outcome.reason}"
            for name, outcome in zip(self.step.chain, failed, strict=True)
        ]
        return replace(failed[0], reason="; then ".join(dict.fromkeys(reasons)))

    async def _with(self, turn: Turn, why: str) -> Outcome:
        """One member until it answers well, or its retries or its time are used up."""
        faults: Counter[str] = Counter()
        ask = self.step.ask
        while True:
            attempt, answer = await self._attempt(turn, ask, why)
            try:
                said = judged(answer, self.step)
            except Fault as fault:
                faults[fault.kind] += 1
                known = attempt.result
                wait = self._patience(turn, fault, faults[fault.kind], known)
                self._record(attempt, answer, fault, wait, turn)
                if wait is None:
                    return Outcome(TABLE[fault.kind].state, reason=fault.detail)
                ask, why = self._next(ask, fault)
                if wait and known is None:
                    await asyncio.sleep(wait)
            else:
                self._record(attempt, answer, None, None, turn)
                return Outcome("ok_repaired" if faults["schema"] else "ok", said.text, served_by=turn.member.name)

    def _patience(self, turn: Turn, fault: Fault, time: int, known: Json | None) -> float | None:
        """Seconds until the member is asked again; None: it is given up. What the clock decided before stays decided."""
        row = TABLE[fault.kind]
        used_up = time > (0 if self._stays(row.state) else row.retries)
        if used_up or turn.over or (known and known.get("passed_on")):
            return None
        wait = _wait(turn.member, fault, time) if row.waits else 0.0
        return None if known is None and wait > turn.left() else min(wait, LONGEST_WAIT)

    def _stays(self, state: str) -> bool:
        """What may have been paid for is left in doubt where nothing may be sent twice."""
        return state == "in_doubt" and not self.caller.resend

    async def _attempt(self, turn: Turn, ask: Ask, why: str) -> tuple[Attempt, Answer | Fault]:
        body = turn.member.prepare(ask)
        if self.past:
            attempt = self.past.pop(0)
            if attempt.result is not None:
                return attempt, from_result(attempt.result)
            if not self.caller.resend:
                return attempt, Fault(
                    "doubt", "the process stopped before an answer was kept, and --no-resend was given"
                )
            self.caller.journal.calls["in_doubt"] += 1
            body, why = attempt.body, "sent again: the process had stopped before an answer was kept"
        attempt = await self.caller.journal.intend(self.key, self.step.seat, turn.member.name, body, why)
        return attempt, await self._send(turn, body)

    async def _send(self, turn: Turn, body: bytes) -> Answer | Fault:
        share = turn.left()

        def hear(piece: str) -> None:
            turn.alive(clock)
            if piece:
                self.caller.journal.murmur(self.key, self.step.seat, sound(piece))

        try:
            async with turn.clock() as clock:
                answer = await turn.member.send(body, hear)
        except Fault as fault:
            return Fault(fault.kind, sound(fault.detail), said=sound(fault.said), retry_after=fault.retry_after)
        except TimeoutError:
            if not clock.expired():
                raise
            turn.over = True
            return Fault("stall", f"no sign of life within {round(share, 1):g} s")
        turn.spoke = True
        return replace(answer, text=sound(answer.text))

    def _record(
        self, attempt: Attempt, answer: Answer | Fault, fault: Fault | None, wait: float | None, turn: Turn
    ) -> None:
        """Write down what came of the attempt, unless it is known from before."""
        if isinstance(answer, Answer):
            self.spent += answer.usage
        if attempt.result is not None:
            return
        over = fault is not None and wait is None
        passed_on = fault is not None and over and turn.others > 0 and not self._stays(TABLE[fault.kind].state)
        journal = self.caller.journal
        journal.settle(self.key, attempt, as_result(answer, given_up=over and not passed_on, passed_on=passed_on))
        if fault:
            self._tell(attempt, fault, wait)

    def _next(self, ask: Ask, fault: Fault) -> tuple[Ask, str]:
        """What is asked next time, and why there is a next time."""
        if fault.kind == "schema":
            return self.step.mend(fault.said, fault.detail), "repair: the reply did not fit its form"
        if fault.kind == "length":
            return replace(
                ask, max_tokens=2 * (ask.max_tokens or UNCAPPED)
            ), "retry: the answer was cut at its length limit"
        if fault.kind == "empty":
            return replace(ask, temperature=0.7), "retry: the answer was empty"
        if fault.kind == "parameter":
            return replace(ask, temperature=None, max_tokens=None, bare=True), "retry: without optional parameters"
        return ask, f"retry: {fault.kind}"

    def _out_of_time(self) -> Outcome:
        fault = Fault("stall", f"no answer within {self.limit:g} s")
        journal = self.caller.journal
        for attempt in journal.attempts(self.key):
            if attempt.result is None:
                journal.settle(self.key, attempt, as_result(fault, given_up=True, passed_on=False))
                self._tell(attempt, fault, None)
        return Outcome("timed_out", reason=fault.detail)

    def _tell(self, attempt: Attempt, fault: Fault, wait: float | None) -> None:
        """What had streamed is void, and everybody hears why."""
        journal = self.caller.journal
        journal.hush(self.key)
        journal.tell(ev.Faulted(self.key, self.step.seat, attempt.n, attempt.member, fault.kind, fault.detail, wait))


def _wait(member: Member, fault: Fault, time: int) -> float:
    """What was asked for, or more each time."""
    if fault.retry_after is not None:
        return fault.retry_after
    return min(member.backoff * 2.0 ** (time - 1), LONGEST_WAIT) * random.uniform(0.5, 1.0)
