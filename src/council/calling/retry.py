"""Retry loop: ask the members of a seat in turn, each within its own time, and journal every attempt."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from council import events as ev
from council.answer_filter import AnswerFilter
from council.calling.answer_check import (
    CHECK_INTERVAL_CHARS,
    AnswerSize,
    LoopDetector,
    check_answer,
    describe_loop,
    is_complete_reply,
)
from council.calling.budget import Budget, estimate_use
from council.calling.concurrency import ConcurrencyLimit, Slot, WarmStart, no_limit
from council.calling.fallback import FallbackPolicy
from council.calling.fault_table import FAULT_TABLE, FailedAttempt, NextAttempt, check_fault, max_retries, next_attempt
from council.calling.prompt_cache import NO_PROMPT_CACHE, PromptCache
from council.errors import BudgetSpent, Fault
from council.members.base import Member, fit_attachments
from council.members.guard import check_delta, prepare_request, send_request
from council.notes_filter import NotesFilter
from council.settings import extend_timeout
from council.store.interface import Attempt, AttemptResult
from council.types import NO_USAGE, Answer, Ask, FinalState, Outcome, Step, Usage, current_delivery, repair_surrogates

MAX_BACKOFF_S = 30.0

# Journal


class Journal(Protocol):
    """Ledger interface that the retry loop uses."""

    def attempts(self, key: str) -> list[Attempt]: ...
    def past_attempts(self, key: str) -> tuple[int, int]: ...
    async def record_attempt(self, event: ev.Attempted, body: bytes, hedge: ev.Hedged | None = None) -> Attempt: ...
    def record_result(self, key: str, attempt: Attempt, result: AttemptResult, bill: ev.Billed | None) -> None: ...
    def record_charge(self, bill: ev.Billed | None) -> None: ...
    def stream_delta(self, key: str, seat: str, piece: str) -> None: ...
    def discard_stream(self, key: str) -> None: ...
    def emit(self, event: ev.Event) -> None: ...


def result_to_json(answer: Answer | Fault, *, given_up: bool, passed_on: bool) -> AttemptResult:
    """Return the stored form of a result. `given_up` ends the step; `passed_on` ends one member's part of it."""
    stored: AttemptResult
    if isinstance(answer, Fault):
        stored = {"fault": answer.kind, "detail": answer.detail, "said": answer.said, "retry_after": answer.retry_after}
    else:
        stored = {"text": answer.text, "finish": answer.finish, "usage": answer.usage.as_json(), "model": answer.model}
        if answer.id:
            stored["id"] = answer.id
    if given_up:
        stored["given_up"] = True
    if passed_on:
        stored["passed_on"] = True
    return stored


def result_from_json(result: AttemptResult) -> Answer | Fault:
    if "fault" in result:
        return Fault(result["fault"], result["detail"], said=result["said"], retry_after=result["retry_after"])
    usage = Usage.from_json(result["usage"])
    return Answer(result["text"], result["finish"], usage, result["model"], result.get("id", ""))


def select_recorded(attempts: Sequence[Attempt], *, resend: bool = True) -> list[Attempt]:
    """Return the attempts of an interrupted step whose results are used again.

    A step that was given up starts again with its answers: only what failed without one is sent again. Without
    `resend`, a step that was given up in doubt stays so.
    """
    recorded: list[Attempt] = []
    series: list[Attempt] = []
    for attempt in attempts:
        if attempt.has_lost_race:  # it decides nothing
            continue
        series.append(attempt)
        if attempt.is_given_up:
            fault = str(attempt.result.get("fault")) if attempt.result else ""
            stays_in_doubt = not resend and fault in FAULT_TABLE and FAULT_TABLE[fault].state == "in_doubt"
            recorded += series if stays_in_doubt else _keep_answers(series)
            series = []
    recorded += series
    # A resent request follows the one in doubt that it repeats, so skip the earlier one.
    return [attempt for n, attempt in enumerate(recorded, 1) if attempt.result is not None or n == len(recorded)]


def _keep_answers(series: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts of each member up to its last answer."""
    last = {attempt.member: attempt.n for attempt in series if attempt.has_answer}
    return [attempt for attempt in series if attempt.n <= last.get(attempt.member, 0)]


# Deadlines


def _loop_time() -> Callable[[], float]:
    """Return the clock of the event loop."""
    return asyncio.get_running_loop().time


@dataclass(slots=True)
class MemberDeadline:
    """Deadline of one member for all its attempts, in event loop time. Each fallback has its own.

    An open request may still answer, so silence before the deadline is not a failure.
    """

    member: Member
    seconds: float  # time of the member
    has_fallback: bool  # another member can be asked after this one
    at: float = 0.0
    has_thought: bool = False  # it has streamed thinking
    is_over: bool = False  # it did not answer in time
    repeated_text: str = ""  # the text it repeats

    now: Callable[[], float] = field(default_factory=_loop_time)

    def __post_init__(self) -> None:
        self.at = self.now() + self.seconds

    def seconds_left(self) -> float:
        return self.at - self.now()

    def postpone(self, seconds: float) -> None:
        """Add the time spent waiting for a slot."""
        self.at += seconds

    def extend_to(self, seconds: float, timeout: asyncio.Timeout) -> None:
        """Give the member at least these seconds in all."""
        more = seconds - self.seconds
        if more > 0 and not timeout.expired() and not self.repeated_text:
            self.seconds, self.at = seconds, self.at + more
            timeout.reschedule(self.at)

    def stop_on_loop(self, piece: str, timeout: asyncio.Timeout) -> None:
        """Stop the call because the answer repeats itself."""
        self.repeated_text = piece
        if not timeout.expired():
            timeout.reschedule(0.0)


# Retry loop


@dataclass(slots=True)
class Caller:
    """Executes the steps of one run."""

    member: Callable[[str], Member]
    journal: Journal
    budget: Budget
    timeout: Callable[[str], float] = lambda member: 120.0  # seconds of each member in a phase
    resend: bool = True
    limit_for: Callable[[str], ConcurrencyLimit] = no_limit  # concurrency limit of a member's provider
    fallbacks: FallbackPolicy = field(default_factory=FallbackPolicy)
    no_phase_timeout: Collection[str] = ()  # members to which the timeouts of phases do not apply
    is_thinking: Callable[[str], bool] = lambda member: False  # members known to think before they answer
    seen_thinking: set[str] = field(default_factory=set)  # members that thought in this run
    warm_start: WarmStart | None = None  # None: requests with a common prefix start at the same time
    prompt_cache: PromptCache = NO_PROMPT_CACHE
    make_loop: Callable[[Caller, Step], RetryLoop] = lambda caller, step: RetryLoop(caller, step)

    async def __call__(self, step: Step) -> Outcome:
        ask = self.prompt_cache.mark(step.ask)
        return await self.make_loop(self, step if ask is step.ask else replace(step, ask=ask)).run()

    def member_timeout(self, step: Step, member: str) -> float:
        """Return the seconds of a member for all its attempts at this step."""
        by_phase = None if member in self.no_phase_timeout else step.timeout
        thinks = member in self.seen_thinking or self.is_thinking(member)
        return extend_timeout(by_phase or self.timeout(member), thinks=thinks)


@dataclass(slots=True)
class RetryLoop:
    """Retry loop for one step."""

    caller: Caller
    step: Step
    recorded_attempts: list[Attempt] = field(default_factory=list)
    reported_attempts: int = 0  # the first attempts, whose tokens an earlier absence has reported
    usage: Usage = NO_USAGE
    timeout: asyncio.Timeout | None = None  # drops the seat after the grace period
    drop_reason: str = ""
    usable_reply: Outcome | None = None  # typed reply, cut off, contradictory or partial: used if retries fail
    usable_fields: int = 0  # of a partial one
    now: Callable[[], float] = field(default_factory=_loop_time)
    key: str = field(init=False)
    seat: str = field(init=False)

    def __post_init__(self) -> None:
        self.key, self.seat = self.step.ask.key, self.step.seat

    async def run(self) -> Outcome:
        journal = self.caller.journal
        self.reported_attempts, closed_attempts = journal.past_attempts(self.key)
        open_attempts = journal.attempts(self.key)[closed_attempts:]
        self.recorded_attempts = select_recorded(open_attempts, resend=self.caller.resend)
        for attempt in journal.attempts(self.key):
            if attempt.result is None and attempt not in self.recorded_attempts:
                self._charge_in_doubt(attempt)
        started = self.now()
        try:
            async with asyncio.timeout(None) as self.timeout:
                self.step.watch.drop = self._drop_seat
                outcome = await self._try_chain()
        except TimeoutError:
            outcome = self._end_dropped_seat()
        except BudgetSpent as spent:
            self.caller.fallbacks.release(self.seat)
            outcome = self.usable_reply or Outcome("skipped(budget)", reason=str(spent))
        return replace(
            outcome, usage=self.usage, attempts=len(journal.attempts(self.key)), seconds=round(self.now() - started, 3)
        )

    def _drop_seat(self, why: str) -> None:
        self.drop_reason = why
        if self.timeout and not self.timeout.expired():
            self.timeout.reschedule(0.0)

    # Choosing the member

    async def _try_chain(self) -> Outcome:
        """Try the requested member, then its fallbacks. If all fail, return the state of the requested one."""
        requested = self.step.chain[0]
        failed = {name: excluded for name in self.step.chain if (excluded := self._exclusion_outcome(name))}
        remaining = [name for name in self.step.chain if name not in failed]
        while remaining:
            member = self._choose_member(remaining)
            remaining.remove(member.name)
            self.caller.fallbacks.assign(self.seat, member)
            trial = NextAttempt(self.step.ask, "")
            if requested in failed:
                state = failed[requested].state
                trial = NextAttempt(self.step.ask, f"fallback: {requested} {state}", requested, state)
            deadline = MemberDeadline(member, self.caller.member_timeout(self.step, member.name), bool(remaining))
            try:
                outcome = await self._try_next(deadline, trial, remaining, failed)
            except BudgetSpent as spent:
                if not failed or (self.step.is_chair and not remaining):
                    raise
                failed[member.name] = Outcome("skipped(budget)", reason=str(spent))
                continue
            if outcome.ok or self._stays_in_doubt(outcome.state):
                return outcome
            failed[member.name] = outcome
        self.caller.fallbacks.release(self.seat)
        reasons = [
            outcome.reason if name == requested else f"{name}: {outcome.reason}" for name, outcome in failed.items()
        ]
        return replace(failed[requested], reason="; then ".join(dict.fromkeys(reasons)))

    def _exclusion_outcome(self, name: str) -> Outcome | None:
        """Return the outcome of a member that is excluded for this run, unless this step has already asked it."""
        state = self.caller.fallbacks.exclusion_state(self.seat, name)
        if not state or any(attempt.member == name for attempt in self.recorded_attempts):
            return None
        return Outcome(state, reason=f"excluded from this run after {state}")

    def _choose_member(self, remaining: Sequence[str]) -> Member:
        """Return the member a resumed run had asked, else the requested one, else the best fallback."""
        if self.recorded_attempts and self.recorded_attempts[0].member in remaining:
            return self.caller.member(self.recorded_attempts[0].member)
        if remaining[0] == self.step.chain[0]:
            return self.caller.member(remaining[0])
        return self.caller.fallbacks.choose(self.seat, [self.caller.member(name) for name in remaining])

    async def _try_next(
        self, deadline: MemberDeadline, trial: NextAttempt, remaining: list[str], failed: dict[str, Outcome]
    ) -> Outcome:
        """Try a member. `remaining` and `failed` are the other members of the chain."""
        return await self._try_member(deadline, trial)

    async def _try_member(self, deadline: MemberDeadline, trial: NextAttempt) -> Outcome:
        """Ask one member until it answers, or its retries, its time or the money for a retry are used up."""
        faults: Counter[str] = Counter()
        last: Fault | None = None
        while True:
            try:
                attempt, answer = await self._run_attempt(deadline, trial)
            except BudgetSpent as spent:
                if last is None or self.step.is_chair:
                    raise
                return self._give_up(deadline, Fault(last.kind, f"{last.detail}; not asked again: {spent}"))
            except Fault as fault:  # the member could not make its request
                return self._give_up(deadline, check_fault(fault))
            try:
                accepted = check_answer(answer, self.step, was_repaired=faults["schema"] > 0)
            except Fault as fault:
                last = fault
                faults[fault.kind] += 1
                self._keep_usable_reply(deadline, trial, fault)
                recorded = attempt.result
                sent = self.caller.budget.cap_output(trial.ask, deadline.member)
                written = answer.usage.output if isinstance(answer, Answer) else 0
                after = next_attempt(FailedAttempt(self.step, deadline.member, sent, fault, written))
                wait = self._retry_delay(deadline, fault, faults[fault.kind], recorded) if after else None
                self._record_result(attempt, answer, fault, wait, deadline)
                if wait is None or after is None:
                    return self._give_up(deadline, fault)
                trial = replace(after, cut=after.cut or trial.cut, dropped=after.dropped or trial.dropped)
                if wait and recorded is None:
                    await asyncio.sleep(wait)
            else:
                self._record_result(attempt, answer, None, None, deadline)
                return self._accept(deadline, trial, "ok_repaired" if faults["schema"] else "ok", accepted.text)

    def _keep_usable_reply(self, deadline: MemberDeadline, trial: NextAttempt, fault: Fault) -> None:
        """Keep a complete reply, or else the best part of one, for the case that the retries fail."""
        if fault.kind in ("length", "schema") and is_complete_reply(fault.said, self.step):
            state: FinalState = "truncated" if fault.kind == "length" else "ok"
            self.usable_reply, self.usable_fields = self._accept(deadline, trial, state, fault.said), sys.maxsize
        elif fault.kind == "schema" and (part := self.step.read_partial(fault.said)):
            kept_size = len(self.usable_reply.text) if self.usable_reply else -1
            if (part.fields, len(fault.said)) > (self.usable_fields, kept_size):
                self.usable_reply, self.usable_fields = self._accept(deadline, trial, "ok", fault.said), part.fields

    def _accept(self, deadline: MemberDeadline, request: NextAttempt, state: FinalState, text: str) -> Outcome:
        self.caller.fallbacks.record_answer(self.seat, deadline.member)
        return Outcome(
            state,
            text,
            served_by=deadline.member.name,
            cut=request.cut.descriptions,
            dropped=request.dropped,
            cut_material=request.cut.material,
        )

    def _give_up(self, deadline: MemberDeadline, fault: Fault) -> Outcome:
        if self.usable_reply:
            return self.usable_reply
        self.caller.fallbacks.record_failure(self.seat, deadline.member, fault)
        return Outcome(FAULT_TABLE[fault.kind].state, reason=fault.detail)

    def _retry_delay(
        self, deadline: MemberDeadline, fault: Fault, occurrence: int, recorded: AttemptResult | None
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or None to give up. A recorded decision is replayed."""
        row = FAULT_TABLE[fault.kind]
        if occurrence > self._max_retries(fault) or deadline.is_over or (recorded and recorded.get("passed_on")):
            return None
        wait = _backoff_delay(deadline.member, fault, occurrence) if row.backs_off else 0.0
        return None if recorded is None and wait > deadline.seconds_left() else min(wait, MAX_BACKOFF_S)

    def _max_retries(self, fault: Fault) -> int:
        if self._stays_in_doubt(FAULT_TABLE[fault.kind].state):
            return 0
        if fault.kind == "schema" and (self.step.is_json or self.step.read_partial(fault.said)):
            return 1  # a part of a reply or prose again after the repair turn: it is used
        return max_retries(fault.kind, chair=self.step.is_chair)

    def _stays_in_doubt(self, state: str) -> bool:
        """Return whether the step ends in doubt, because resending is disabled and the request may have been billed."""
        return state == "in_doubt" and not self.caller.resend

    # One attempt

    async def _run_attempt(self, deadline: MemberDeadline, request: NextAttempt) -> tuple[Attempt, Answer | Fault]:
        ask = self.caller.budget.cap_output(request.ask, deadline.member)
        ask = fit_attachments(ask, deadline.member) if ask.attachments else ask
        body, request = (
            prepare_request(deadline.member, ask),
            request if ask is request.ask else replace(request, ask=ask),
        )
        if attempt := self._pop_recorded(deadline.member.name):
            if attempt.result is not None:
                return attempt, result_from_json(attempt.result)
            if not self.caller.resend:
                return attempt, Fault(
                    "doubt", "the process stopped before the answer was stored, and --no-resend is set"
                )
            self._charge_in_doubt(attempt)
            body = attempt.body
            request = replace(request, why="resent: the process stopped before the answer was stored")
        started, warm = self.now(), self.caller.warm_start
        first_output = await warm.wait(deadline.member, ask) if warm and ask.shared else None
        try:
            limit = self.caller.limit_for(deadline.member.name)
            vendor = limit.vendor
            usage = estimate_use(ask, body, deadline.member) if vendor and vendor.has_limits else None
            async with Slot(limit, member=deadline.member.name, usage=usage) as slot:
                slot.first_output = first_output
                attempt = await self._open_attempt(deadline, request, body, started)
                if slot.turn or slot.reservation:
                    deadline.postpone(await slot.wait_for_turn())
                answer = await self._send_or_charge(deadline, ask, attempt, body, slot)
                slot.report_result(answer.kind if isinstance(answer, Fault) else "")
                if slot.reservation:
                    slot.reservation.settle(attempt, answer)
                return attempt, answer
        finally:
            if first_output:
                first_output.set()

    def _pop_recorded(self, member: str) -> Attempt | None:
        """Return the next recorded attempt of a member. Two members may have worked on the step at the same time."""
        for n, attempt in enumerate(self.recorded_attempts):
            if attempt.member == member:
                return self.recorded_attempts.pop(n)
        return None

    def _charge_in_doubt(self, attempt: Attempt) -> None:
        bill = self.caller.budget.bill_attempt(self.key, attempt, Fault("doubt", "no answer was stored"))
        self.caller.journal.record_charge(bill)

    async def _open_attempt(
        self, deadline: MemberDeadline, request: NextAttempt, body: bytes, started: float, *, may_wait: bool = True
    ) -> Attempt:
        """Reserve the cost of a request and record it. The time since `started`, spent on waiting, does not count."""
        journal, member = self.caller.journal, deadline.member
        n = len(journal.attempts(self.key)) + 1
        cost = await self.caller.budget.reserve(self.key, n, member, request.ask, body, may_wait=may_wait)
        deadline.postpone(self.now() - started)
        event = ev.Attempted(
            self.key,
            self.seat,
            n,
            member.name,
            request.why,
            cost,
            request.fallback_for,
            request.fallback_state,
            round(deadline.seconds_left(), 1),
        )
        return await journal.record_attempt(event, body, request.hedge)

    async def _send_or_charge(
        self, deadline: MemberDeadline, ask: Ask, attempt: Attempt, body: bytes, slot: Slot
    ) -> Answer | Fault:
        """Send the request. If the run is interrupted, charge what has been streamed; the request stays in doubt."""
        attempt.sent_at = self.now()
        if vendor := slot.limit.vendor:
            attempt.delivery.on_limits = partial(vendor.learn, deadline.member.name, attempt.sent_at)
        current_delivery.set(attempt.delivery)
        try:
            return await self._send(deadline, ask, attempt, body, slot)
        except asyncio.CancelledError:
            if attempt.result is None and not self.drop_reason:
                cancelled = Fault("cancelled", "interrupted")
                self.caller.journal.record_charge(self.caller.budget.bill_attempt(self.key, attempt, cancelled))
            raise

    async def _send(
        self, deadline: MemberDeadline, ask: Ask, attempt: Attempt, body: bytes, slot: Slot
    ) -> Answer | Fault:
        detector, size, watch = LoopDetector(), AnswerSize(ask.max_tokens), self.step.watch
        watch.has_output = False
        pieces: list[str] = []  # received since the event loop last ran; one packet brings several
        unchecked = ""  # streamed text that the loop detector has not seen yet
        shown = None if self.step.ask.schema else AnswerFilter() if self.step.is_final else NotesFilter()
        call_soon, now = asyncio.get_running_loop().call_soon, self.now

        def on_delta(piece: str) -> None:
            if piece.__class__ is not str:  # `isinstance` is slower, and this is called for each piece
                check_delta(piece)
            watch.has_output = True
            if not piece and not deadline.has_thought:
                self._note_thinking(deadline, clock)
            if not slot.has_output:
                slot.on_output()
            attempt.delivery.has_output = True
            if now() > deadline.at:  # the timeout needs the event loop, which a stream without pauses can keep busy
                raise self._make_stall_fault(deadline)
            if piece:
                size.received += len(piece) if piece.isascii() else len(piece.encode(errors="replace"))
                attempt.received = size.received
                if size.received > size.limit:
                    raise size.fault
                if not pieces:
                    call_soon(stream_pieces)
                pieces.append(piece)

        def stream_pieces() -> None:
            nonlocal unchecked
            if not pieces:
                return
            text = "".join(pieces)
            pieces.clear()
            self._stream(deadline, shown.feed(text) if shown else text)
            unchecked += text
            if len(unchecked) >= CHECK_INTERVAL_CHARS:
                repeated, unchecked = detector.feed(unchecked), ""
                if repeated:
                    deadline.stop_on_loop(repeated, clock)

        try:
            async with asyncio.timeout_at(deadline.at) as clock:
                answer = await send_request(deadline.member, body, on_delta)
                if 4 * len(answer.text) > size.limit:  # a character has at most four bytes
                    size.check(answer)
                stream_pieces()
                self._stream(deadline, shown.flush() if shown else "")
        except Fault as fault:
            return check_fault(fault)
        except TimeoutError as error:
            if not clock.expired():  # a timeout of the member itself
                return Fault("stall", "timed out waiting for data")
            missing = "connection" if attempt.delivery.is_connecting else "answer"
            return self._make_stall_fault(deadline, getattr(error.__cause__, "__notes__", ()), missing)
        finally:
            pieces.clear()
        return replace(
            answer,
            text=repair_surrogates(answer.text),
            finish=repair_surrogates(answer.finish),
            model=repair_surrogates(answer.model),
            id=repair_surrogates(answer.id),
            usage=answer.usage.validated(),
        )

    def _stream(self, deadline: MemberDeadline, text: str) -> None:
        if text:
            self.caller.journal.stream_delta(self.key, self.seat, text if text.isascii() else repair_surrogates(text))

    def _note_thinking(self, deadline: MemberDeadline, timeout: asyncio.Timeout) -> None:
        """Remember that the member thinks, and give it the time of such members from now on."""
        name, deadline.has_thought = deadline.member.name, True
        self.caller.seen_thinking.add(name)
        deadline.extend_to(self.caller.member_timeout(self.step, name), timeout)

    def _make_stall_fault(self, deadline: MemberDeadline, notes: Sequence[str] = (), missing: str = "answer") -> Fault:
        if deadline.repeated_text:
            piece, deadline.repeated_text = deadline.repeated_text, ""
            return Fault("loop", repair_surrogates(describe_loop(piece)))
        deadline.is_over = True
        detail = f"no {missing} within {deadline.seconds:g} s"
        return Fault("stall", "; ".join([detail, *filter(None, notes[:1])]), said="".join(notes[1:]))

    def _record_result(
        self,
        attempt: Attempt,
        answer: Answer | Fault,
        fault: Fault | None,
        wait: float | None,
        deadline: MemberDeadline,
    ) -> None:
        """Record the result of an attempt, unless it is already recorded."""
        if isinstance(answer, Answer) and attempt.n > self.reported_attempts:
            self.usage += answer.usage
        if attempt.result is not None:
            return
        given_up = passed_on = False
        if fault and wait is None:
            passed_on = self._can_pass_on(deadline, fault)
            given_up = not passed_on
        result = result_to_json(answer, given_up=given_up, passed_on=passed_on)
        bill = self.caller.budget.bill_attempt(self.key, attempt, answer)
        self.caller.journal.record_result(self.key, attempt, result, bill)
        if fault:
            self._emit_fault(attempt, fault, wait)

    def _can_pass_on(self, deadline: MemberDeadline, fault: Fault) -> bool:
        """Return whether the step continues without this member: with a usable reply or a fallback."""
        if self.usable_reply:
            return True
        return deadline.has_fallback and not self._stays_in_doubt(FAULT_TABLE[fault.kind].state)

    def _end_dropped_seat(self) -> Outcome:
        """Return the outcome of a seat that the grace period ended."""
        fault = Fault("dropped", self.drop_reason)
        journal = self.caller.journal
        for attempt in journal.attempts(self.key):
            if attempt.result is None:
                bill = self.caller.budget.bill_attempt(self.key, attempt, fault)
                result = result_to_json(fault, given_up=not self.usable_reply, passed_on=bool(self.usable_reply))
                journal.record_result(self.key, attempt, result, bill)
                self._emit_fault(attempt, fault, None)
        if self.usable_reply:
            return self.usable_reply
        self.caller.fallbacks.release(self.seat)
        return Outcome("timed_out", reason=fault.detail)

    def _emit_fault(self, attempt: Attempt, fault: Fault, wait: float | None) -> None:
        """Discard the streamed text and emit the fault."""
        journal = self.caller.journal
        journal.discard_stream(self.key)
        journal.emit(ev.Faulted(self.key, self.seat, attempt.n, attempt.member, fault.kind, fault.detail, wait))


def _backoff_delay(member: Member, fault: Fault, occurrence: int) -> float:
    """Return the Retry-After seconds, or an exponential backoff with jitter."""
    if fault.retry_after is not None:
        return fault.retry_after
    return min(member.backoff * 2.0 ** (occurrence - 1), MAX_BACKOFF_S) * random.uniform(0.5, 1.0)
