"""The one retry loop. It replays what the journal knows, resends what is in doubt, and sends the rest."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from council import events as ev
from council.calling.table import TABLE
from council.errors import Fault
from council.members.base import Member
from council.record import Attempt
from council.types import Answer, Ask, Json, Outcome, Step, Usage, sound

LONGEST_WAIT = 30.0
DOUBLED_FROM = 2048  # what "twice the output" means where no cap was set


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

    @property
    def key(self) -> str:
        return self.step.ask.key

    @property
    def limit(self) -> float:
        return self.step.timeout or self.caller.timeout(self.step.chain[0])

    async def carry_out(self) -> Outcome:
        journal = self.caller.journal
        self.past = _unfinished(journal.attempts(self.key))
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            async with asyncio.timeout(self.limit):
                outcome = await self._down_the_chain()
        except TimeoutError:
            outcome = self._out_of_time()
        return replace(
            outcome, attempts=len(journal.attempts(self.key)), usage=self.spent, seconds=round(clock() - started, 3)
        )

    async def _down_the_chain(self) -> Outcome:
        """The requested member, then its fallbacks. The seat keeps the state that the requested one earned."""
        failed: list[Outcome] = []
        for name in self.step.chain:
            why = f"fallback: {self.step.chain[0]} {failed[0].state}" if failed else ""
            outcome = await self._with(self.caller.member(name), why, last=name == self.step.chain[-1])
            if outcome.ok or self._stays(outcome.state):
                return outcome
            failed.append(outcome)
        reasons = [
            outcome.reason if name == self.step.chain[0] else f"{name}: {outcome.reason}"
            for name, outcome in zip(self.step.chain, failed, strict=True)
        ]
        return replace(failed[0], reason="; then ".join(dict.fromkeys(reasons)))

    async def _with(self, member: Member, why: str, *, last: bool) -> Outcome:
        """One member until it answers well or its retries are used up."""
        faults: Counter[str] = Counter()
        ask = self.step.ask
        while True:
            attempt, answer = await self._attempt(member, ask, why)
            try:
                said = _judged(answer, self.step)
            except Fault as fault:
                faults[fault.kind] += 1
                row, known = TABLE[fault.kind], attempt.result is not None
                given_up = faults[fault.kind] > (0 if self._stays(row.state) else row.retries)
                wait = None if given_up else (_wait(member, fault, faults[fault.kind]) if row.waits else 0.0)
                self._record(attempt, answer, fault, wait, given_up=given_up and (last or self._stays(row.state)))
                if given_up:
                    return Outcome(row.state, reason=fault.detail)
                ask, why = self._next(ask, fault)
                if wait and not known:
                    await asyncio.sleep(wait)
            else:
                self._record(attempt, answer, None, None)
                return Outcome("ok_repaired" if faults["schema"] else "ok", said.text, served_by=member.name)

    def _stays(self, state: str) -> bool:
        """What may have been paid for is left in doubt where nothing may be sent twice."""
        return state == "in_doubt" and not self.caller.resend

    async def _attempt(self, member: Member, ask: Ask, why: str) -> tuple[Attempt, Answer | Fault]:
        body = member.prepare(ask)
        if self.past:
            attempt = self.past.pop(0)
            if attempt.result is not None:
                return attempt, _from_result(attempt.result)
            self.caller.journal.calls["in_doubt"] += 1
            if not self.caller.resend:
                return attempt, Fault(
                    "doubt", "the process stopped before an answer was kept, and --no-resend was given"
                )
            body, why = attempt.body, "sent again: the process had stopped before an answer was kept"
        attempt = await self.caller.journal.intend(self.key, self.step.seat, member.name, body, why)
        try:
            answer = await member.send(
                body, lambda piece: self.caller.journal.murmur(self.key, self.step.seat, sound(piece))
            )
        except Fault as fault:
            return attempt, Fault(
                fault.kind, sound(fault.detail), said=sound(fault.said), retry_after=fault.retry_after
            )
        return attempt, replace(answer, text=sound(answer.text))

    def _record(
        self,
        attempt: Attempt,
        answer: Answer | Fault,
        fault: Fault | None,
        wait: float | None,
        *,
        given_up: bool = False,
    ) -> None:
        """Write down what came of the attempt, unless it is known from before."""
        if isinstance(answer, Answer):
            self.spent += answer.usage
        if attempt.result is not None:
            return
        journal = self.caller.journal
        journal.settle(self.key, attempt, _as_result(answer, given_up))
        if fault:
            journal.hush(self.key)
            journal.tell(
                ev.Faulted(self.key, self.step.seat, attempt.n, attempt.member, fault.kind, fault.detail, wait)
            )

    def _next(self, ask: Ask, fault: Fault) -> tuple[Ask, str]:
        """What is asked next time, and why there is a next time."""
        if fault.kind == "schema":
            return self.step.mend(fault.said, fault.detail), "repair: the reply did not fit its form"
        if fault.kind == "length":
            return replace(
                ask, max_tokens=2 * (ask.max_tokens or DOUBLED_FROM)
            ), "retry: the answer was cut at its length limit"
        if fault.kind == "empty":
            return replace(ask, temperature=0.7), "retry: the answer was empty"
        return ask, f"retry: {fault.kind}"

    def _out_of_time(self) -> Outcome:
        reason = f"no answer within {self.limit:g} s"
        for attempt in self.caller.journal.attempts(self.key):
            if attempt.result is None:
                self._record(attempt, Fault("stall", reason), Fault("stall", reason), None, given_up=True)
        return Outcome("timed_out", reason=reason)


def _unfinished(attempts: list[Attempt]) -> list[Attempt]:
    """The attempts of a series that was broken off; one that was given up is asked anew from its beginning."""
    ends = [n for n, attempt in enumerate(attempts, 1) if attempt.result and attempt.result.get("given_up")]
    series = attempts[ends[-1] if ends else 0 :]
    # A resent request stands behind the one in doubt it repeats: only the last word on each counts.
    return [attempt for n, attempt in enumerate(series, 1) if attempt.result is not None or n == len(series)]


def _judged(answer: Answer | Fault, step: Step) -> Answer:
    if isinstance(answer, Fault):
        raise answer
    if answer.finish == "refused":
        raise Fault("refused", "the member declined to answer", said=answer.text)
    if answer.finish == "length" and not _whole(answer, step):
        raise Fault("length", "the answer was cut at its length limit", said=answer.text)
    if not answer.text.strip():
        raise Fault("empty", "the answer was empty")
    step.read(answer.text)
    return replace(answer, text=_sentences(answer.text)) if answer.finish == "length" else answer


def _whole(answer: Answer, step: Step) -> bool:
    """A small member's free text is cut on purpose; a typed reply counts only if it can be read."""
    return step.ask.schema is None and step.ask.max_tokens is not None and bool(answer.text.strip())


def _sentences(text: str) -> str:
    """Up to the last sentence that is whole; all of it, if none is."""
    ends = [
        found.end()
        for found in re.finditer(r"[.!?][\"')\]]*(?=\s|$)", text)
        if not text[: found.start()].rstrip()[-1:].isdigit()
    ]
    return text[: ends[-1]] if ends else text


def _wait(member: Member, fault: Fault, time: int) -> float:
    if fault.retry_after is not None:
        return min(fault.retry_after, LONGEST_WAIT)
    return min(member.backoff * 2.0 ** (time - 1), LONGEST_WAIT) * random.uniform(0.5, 1.0)


def _as_result(answer: Answer | Fault, given_up: bool) -> Json:
    if isinstance(answer, Fault):
        known: Json = {
            "fault": answer.kind,
            "detail": answer.detail,
            "said": answer.said,
            "retry_after": answer.retry_after,
        }
    else:
        known = {"text": answer.text, "finish": answer.finish, "usage": answer.usage.as_json(), "model": answer.model}
    return known | ({"given_up": True} if given_up else {})


def _from_result(result: Json) -> Answer | Fault:
    if "fault" in result:
        return Fault(result["fault"], result["detail"], said=result["said"], retry_after=result["retry_after"])
    return Answer(result["text"], result["finish"], Usage.from_json(result["usage"]), result["model"])
