"""The ledger: results by step key, written once and never paid for twice.

A step has a key, a fingerprint of its prompt, numbered attempts with their results, and one accepted result. The end of
a phase is a separate row. Each write includes its events in the same transaction.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from council import events as ev
from council.errors import DuplicateKey, LedgerMismatch
from council.events import Entry, Event
from council.money import usd_to_nanos
from council.store.interface import HOLD_KEY, Attempt, AttemptResult, Charge, LedgerStore, Record, Row
from council.types import AbsenceRow, Ask, Outcome, Usage

Listener = Callable[[Entry], None]
STREAM_WRITE_INTERVAL_S = 0.1  # least seconds between writes of one statement's stream
STREAM_FAST_CHARS = 16 * 1024  # a longer stream is written less often
MAX_STREAM_SLOWDOWN = 5.0  # but at least twice a second
MAX_STREAM_CHARS = 1 << 20  # of one statement; the rest of a longer one is stored when it is complete


class NullStore:
    """Store that discards everything, for rehearsals."""

    def post(self, run: str, rows: Sequence[Row], *, may_wait: bool = False) -> None:
        pass

    async def write(self, run: str, rows: Sequence[Row]) -> None:
        pass


def compute_fingerprint(ask: Ask, member: str) -> str:
    """Return a hash of the prompt, the member and the settings; if it changes, the stored result no longer applies."""
    asked: list[object] = [
        ask.messages,
        ask.schema,
        member,
        ask.temperature,
        ask.max_tokens,
        *([ask.effort] if ask.effort else []),
    ]
    if ask.attachments:
        asked.append([one.sha256 for one in ask.attachments])
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ForkSource:
    """Results of the parent that a fork reuses: all earlier phases, and steps with an unchanged fingerprint."""

    record: Record
    earlier_phases: frozenset[str]

    def find_result(self, key: str, fingerprint: str) -> Outcome | None:
        """Return the parent's result at no cost, or None if it does not apply."""
        found = self.record.results.get(key)
        if found is None or not (self._is_earlier(key) or self.record.steps.get(key) == fingerprint):
            return None
        return replace(found, usage=Usage(), attempts=0, seconds=0.0)

    def find_absence(self, phase: str, key: str) -> AbsenceRow | None:
        return self.record.phases.get(phase, {}).get(key) if self._is_earlier(key) else None

    def _is_earlier(self, key: str) -> bool:
        return key.partition("/")[0] in self.earlier_phases


@dataclass(slots=True)
class PastAbsence:
    """Absence with which an earlier process ended a step."""

    event: ev.WasAbsent
    attempts: int = 0  # whose tokens it and earlier absences of the step have reported
    closed_attempts: int = 0  # attempts before the run ended without enough answers: it is resumed for new ones


def collect_absences(entries: Sequence[Entry]) -> dict[str, PastAbsence]:
    """Return the last absence of each step that has no statement."""
    found: dict[str, PastAbsence] = {}
    for event in (entry.event for entry in entries):
        if isinstance(event, ev.WasAbsent):
            earlier = found.get(event.key, PastAbsence(event))
            attempts = max(event.attempts, earlier.attempts)  # a step that was skipped on resume has none of its own
            found[event.key] = PastAbsence(event, attempts, earlier.closed_attempts)
        elif isinstance(event, ev.Stated):
            found.pop(event.key, None)
        elif isinstance(event, ev.Closed) and event.lacks_answers:
            for past in found.values():
                past.closed_attempts = past.attempts
    return found


@dataclass(slots=True)
class LiveText:
    """Streamed text of one statement: the part that is not written yet."""

    pieces: list[str] = field(default_factory=list)
    chars: int = 0
    writes: int = 0
    next_write: float = 0.0
    is_scheduled: bool = False  # the part that is not written yet will be, also if no other piece arrives
    started: float = 0.0  # time of the first piece

    def add(self, piece: str, now: float) -> str:
        """Add a piece. Return the text to write now, or ""."""
        piece = piece[: MAX_STREAM_CHARS - self.chars]
        self.pieces.append(piece)
        self.chars += len(piece)
        return "" if now < self.next_write else self.take(now)

    def take(self, now: float) -> str:
        """Return the text that is not written yet."""
        text, self.pieces = "".join(self.pieces), []
        slower = min(max(1.0, self.chars / STREAM_FAST_CHARS), MAX_STREAM_SLOWDOWN)
        self.writes, self.next_write = self.writes + 1, now + STREAM_WRITE_INTERVAL_S * slower
        return text


class Ledger:
    def __init__(
        self,
        store: LedgerStore,
        record: Record,
        on_event: Listener = lambda entry: None,
        *,
        strict: bool = True,
        redact: Callable[[Event], Event] = lambda event: event,
        source: ForkSource | None = None,
        changed_seats: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.store = store
        self.record = record
        self.run = record.run
        self.on_event = on_event
        self.redact = redact  # masks secrets in an event before it is stored and shown
        self.source = source
        self.changed_seats = changed_seats or {}  # of a fork: seat → earlier phases in which another member had it
        self.strict = strict  # False: ignore fingerprints (a run made by another version, with other prompts)
        self.replayed = 0  # results that this process found in the ledger
        self._seq, last_at = (record.entries[-1].seq, record.entries[-1].at) if record.entries else (0, 0.0)
        self._clock_offset = max(time.time(), last_at) - time.monotonic()
        self._claimed: set[str] = set()
        self._emitted = {
            str(entry.event)
            for entry in record.entries
            if isinstance(entry.event, (ev.Noted, ev.PhaseStarted, ev.Labelled))
        }
        self._past_absences = collect_absences(record.entries)
        self.live_texts: dict[str, LiveText] = {}  # streamed texts of statements that are not finished

    def _now(self) -> float:
        """Return the time of an event. A change of the system's clock changes neither their order nor durations."""
        return time.monotonic() + self._clock_offset

    # Events: each gets a number and a time, and is passed to the listener.

    def emit(self, event: Event, *rows: Row, may_wait: bool = False) -> None:
        """Emit an event. What costs nothing to repeat may wait for the next rows."""
        self.store.post(self.run, [*rows, self._append_event(event)], may_wait=may_wait)

    async def emit_durably(self, event: Event, *rows: Row) -> None:
        await self.store.write(self.run, [*rows, self._append_event(event)])

    def emit_once(self, event: Event) -> None:
        """Emit an event unless it is already recorded: a resumed protocol repeats its earlier events."""
        text = str(event)
        if text not in self._emitted:
            self._emitted.add(text)
            self.emit(event, may_wait=True)

    def _append_event(self, event: Event) -> Row:
        self._seq += 1
        event = self.redact(event)
        entry = Entry(self._seq, self._now(), event)
        body = ev.dump_fields(event)
        self.record.entries.append(entry if isinstance(self.store, NullStore) else _without_prompt(entry))
        self.on_event(entry)
        return ("event", (entry.seq, entry.at, event.type, body))

    # Steps and their results.

    def claim_key(self, key: str) -> None:
        if key in self._claimed:
            raise DuplicateKey(
                f'two steps of one run have the key "{key}": open another phase, or give the seats different names'
            )
        self._claimed.add(key)

    def find_result(self, key: str, fingerprint: str) -> Outcome | None:
        """Return the accepted result of this step, if it has one."""
        known = self.record.steps.get(key)
        if self.strict and known is not None and known != fingerprint:
            raise LedgerMismatch(
                f'the step "{key}" of run {self.run} has changed since it was asked (prompts or seats), '
                f"so the run cannot be resumed: `council fork {self.run}` reuses the unchanged steps"
            )
        result = self.record.results.get(key)
        if result is not None:
            self.replayed += 1
        return result

    def find_inherited(self, key: str, fingerprint: str) -> Outcome | None:
        """Return the parent's result of this step, if the run is a fork and it applies."""
        found = self.source.find_result(key, fingerprint) if self.source else None
        self.replayed += found is not None
        return found

    def begin_step(self, key: str, fingerprint: str, event: Event | None = None) -> None:
        rows: list[Row] = [] if key in self.record.steps else [("step", (key, fingerprint))]
        self.record.steps[key] = fingerprint
        if event:
            self.emit(event, *rows, may_wait=True)
        else:
            self.store.post(self.run, rows, may_wait=True)

    def accept_result(self, key: str, outcome: Outcome, event: Event) -> None:
        """Store the result of a step. It is on disk before any request that depends on it is sent."""
        self.live_texts.pop(key, None)
        self.record.results[key] = outcome
        rows: list[Row] = [("result", (key, outcome.as_json())), ("discard_stream", (key,))]
        self.emit(event, *rows)

    # Phases: one that has ended is never asked again, nor are its absent seats.

    def has_other_member(self, key: str, seat: str) -> bool:
        """Return whether a fork gave this seat another member, so that the old member's absence does not apply."""
        return key.partition("/")[0] in self.changed_seats.get(seat, ())

    def find_absence(self, phase: str, key: str) -> AbsenceRow | None:
        return self.record.phases.get(phase, {}).get(key)

    def find_rejection(self, key: str) -> ev.WasAbsent | None:
        """Return the absence of a step whose answers were all rejected: it holds also in a phase that has not ended."""
        past = self._past_absences.get(key)
        if past is None:
            return None
        attempts = self.attempts(key)[past.closed_attempts :]
        return past.event if ends_with_rejections(attempts) else None

    def end_phase(self, phase: str, absences: dict[str, AbsenceRow]) -> None:
        if phase in self.record.phases:
            return
        self.record.phases[phase] = absences
        absent = sorted(absence["seat"] for absence in absences.values())
        self.emit(ev.PhaseEnded(phase, absent), ("phase", (phase, absences)), may_wait=True)

    async def close(self, event: ev.Closed, report: Callable[[Sequence[Entry]], str]) -> None:
        """Write the closing event, the status and the report in one transaction."""
        row = self._append_event(event)
        self.record.status, self.record.report = event.status, report(self.record.entries)
        await self.store.write(
            self.run,
            [row, ("discard_streams", ()), ("release", (HOLD_KEY, 0)), ("close", (event.status, self.record.report))],
        )

    @property
    def calls(self) -> dict[str, int]:
        """Counts of requests: made and in doubt by all processes of the run, replayed by this one."""
        made, in_doubt = count_calls(self.record)
        return {"made": made, "replayed": self.replayed, "in_doubt": in_doubt}

    # Attempts: the attempt is on disk before the request is sent, its result before it is used.

    def attempts(self, key: str) -> list[Attempt]:
        return self.record.attempts.setdefault(key, [])

    def past_attempts(self, key: str) -> tuple[int, int]:
        """Return the numbers of attempts whose tokens an absence has reported, and of those that are not used again:
        they were made before the run ended without enough answers.
        """
        past = self._past_absences.get(key)
        return (past.attempts, past.closed_attempts) if past else (0, 0)

    async def record_attempt(self, event: ev.Attempted, body: bytes, hedge: ev.Hedged | None = None) -> Attempt:
        """Store an attempt, and in the same transaction the hedge that it is a part of."""
        key, past = event.key, self.attempts(event.key)
        attempt = Attempt(event.n, event.member, body)
        past.append(attempt)
        try:
            intent = ("intent", (key, attempt.n, attempt.member, body, self._now()))
            rows: list[Row] = [intent, self._append_event(event)]
            rows += [self._append_event(hedge)] if hedge and not self._has_hedge(hedge) else []
            await self.store.write(self.run, rows)
        except asyncio.CancelledError:  # the request was not sent
            past.remove(attempt)
            self.record.spending.pop((key, attempt.n), None)
            self.store.post(self.run, [("withdraw_attempt", (key, attempt.n)), ("release", (key, attempt.n))])
            raise
        return attempt

    def _has_hedge(self, hedge: ev.Hedged) -> bool:
        """Return whether an earlier process has recorded that these members work on this step."""
        recorded = (entry.event for entry in self.record.entries if isinstance(entry.event, ev.Hedged))
        return any((one.key, one.member, one.by) == (hedge.key, hedge.member, hedge.by) for one in recorded)

    def record_result(self, key: str, attempt: Attempt, result: AttemptResult, bill: ev.Billed | None = None) -> None:
        """Queue the result and its bill. An accepted one is stored in the transaction of the step's result."""
        attempt.result, attempt.body = result, b""  # the store has it
        rows: list[Row] = [("settled", (key, attempt.n, result, self._now()))]
        self.store.post(self.run, [*rows, *self._charge_rows(bill)])

    def record_charge(self, bill: ev.Billed | None) -> None:
        """Record the bill of a request that got no answer."""
        if bill:
            self.store.post(self.run, self._charge_rows(bill, is_ended=False))

    def _charge_rows(self, bill: ev.Billed | None, *, is_ended: bool = True) -> list[Row]:
        """Return the spending row, with an event. The result of an ended request says enough about a charge of zero."""
        if bill is None:
            return []
        charged = usd_to_nanos(Decimal(str(bill.usd)))
        certainty = Charge.IN_DOUBT if bill.in_doubt else Charge.ESTIMATED if bill.estimated else Charge.EXACT
        held = self.record.spending[bill.key, bill.n]
        self.record.spending[bill.key, bill.n] = replace(held, charged=charged, certainty=certainty)
        row: Row = ("charge", (bill.key, bill.n, charged, int(certainty)))
        return [row, self._append_event(bill)] if charged or not is_ended else [row]

    def stream_delta(self, key: str, seat: str, piece: str) -> None:
        """Show a piece of an answer at once; write it at most ten times a second, outside the ledger."""
        live, now = self.live_texts.get(key), time.monotonic()
        if live is None:
            live = self.live_texts[key] = LiveText(started=self._now())
        if text := live.add(piece, now):
            self.store.post(self.run, [("live", (key, live.writes, text))], may_wait=True)
        elif not live.is_scheduled:
            live.is_scheduled = True
            asyncio.get_running_loop().call_later(live.next_write - now, self._write_rest, key, live)
        self.on_event(Entry(0, self._now(), ev.Delta(key, seat, piece)))  # a piece has no number

    def _write_rest(self, key: str, live: LiveText) -> None:
        live.is_scheduled = False
        if self.live_texts.get(key) is live and (text := live.take(time.monotonic())):
            self.store.post(self.run, [("live", (key, live.writes, text))], may_wait=True)

    def discard_stream(self, key: str) -> None:
        """Discard the streamed text of a failed attempt."""
        if self.live_texts.pop(key, None):
            self.store.post(self.run, [("discard_stream", (key,))])


def _without_prompt(entry: Entry) -> Entry:
    """Return the entry to keep in memory: the store has the prompts, and no later step reads them."""
    asked = entry.event
    if not isinstance(asked, ev.Asked):
        return entry
    return Entry(entry.seq, entry.at, ev.Asked(asked.key, asked.phase, asked.seat, asked.member, [], asked.schema_name))


# Rejected answers


def ends_with_rejections(attempts: Sequence[Attempt]) -> bool:
    """Return whether a step was given up after the last answer of each of its members was rejected."""
    decisive = [attempt for attempt in attempts if not attempt.has_lost_race]
    last = {attempt.member: attempt for attempt in decisive}
    return bool(decisive) and decisive[-1].is_given_up and all(attempt.has_answer for attempt in last.values())


# Counts

DOUBTFUL_FAULTS = ("cut", "doubt")  # faults after which a request may have been billed


def count_calls(record: Record) -> tuple[int, int]:
    """Return the number of requests of all processes, and how many of them are in doubt."""
    attempts = [attempt for tries in record.attempts.values() for attempt in tries]
    return len(attempts), sum(map(_is_in_doubt, attempts))


def _is_in_doubt(attempt: Attempt) -> bool:
    """Return whether a request may have been billed without an answer, and its step was not answered by a retry."""
    if attempt.result is None:
        return True
    return attempt.result.get("fault") in DOUBTFUL_FAULTS and bool(attempt.result.get("given_up"))
