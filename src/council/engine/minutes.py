"""Minutes: the read model of a run, folded from its events. Views and reports read only this."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from council import events as ev
from council.engine.records import ReportObject, VerdictObject
from council.events import Entry
from council.types import NO_OUTCOMES, NO_USAGE, OK_STATES, FinalState, Json, RunOutcomes, SeatState, Usage

if TYPE_CHECKING:  # the module needs pydantic
    from council.engine.plan_object import PlanObject, PlanSeat

T = TypeVar("T")
Place = tuple[int, tuple[tuple[int, str], ...]]  # index in the seating order, and the name with its numbers
PhasePlace = tuple[tuple[int, Place], ...]  # for each part of the name: (0, its start) or for a seat (1, its place)


StatementMinutes = ev.Stated
AbsenceMinutes = ev.WasAbsent


@dataclass(slots=True)
class StepMinutes:
    """The work of one process on a step. A step that a resumed run takes up again has another one."""

    number: int
    key: str
    phase: str
    seat: str
    begin: float  # in working seconds, like `Minutes.seconds`
    end: float | None = None
    state: FinalState | Literal["", "stopped"] = ""  # "stopped": the process ended before it
    faults: list[tuple[float, int]] = field(default_factory=list)  # working seconds and number of each event


@dataclass(slots=True)
class AttemptMinutes:
    """One request."""

    number: int
    seq: int  # number of its event
    event: ev.Attempted
    begin: float  # in working seconds
    end: float | None = None
    is_interrupted: bool = False  # it was open when a process ended
    fault: int | None = None  # number of the event of its failure
    statement: int | None = None  # number of the event of the statement that it gave
    usd: float | None = None  # billed; None if it is not known
    estimated: bool = False
    doubtful_usd: float = 0.0  # the most that it may have cost, if there was no answer


@dataclass(slots=True)
class PhaseMinutes:
    """A phase. Its seats are in seating order, because the order of arrival is random and a crash changes it."""

    name: str
    started: float
    ended: float | None = None
    begin: float = 0.0  # in working seconds
    end: float | None = None
    place: PhasePlace = ()
    keys: dict[str, str] = field(default_factory=dict)  # seat → key of its last step
    ends: dict[str, int] = field(default_factory=dict)  # key of a step → number of its statement or absence
    asked: list[str] = field(default_factory=list)
    said: dict[str, StatementMinutes] = field(default_factory=dict)
    absent: dict[str, AbsenceMinutes] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)  # per reader: label → seat


@dataclass(slots=True)
class SeatMinutes:
    """A seat: its current state and words, and its totals (usage, attempts, seconds)."""

    name: str
    role: str = ""
    perspective: str = ""
    model: str = ""
    vendor: str = ""
    state: SeatState = "waiting"
    phase: str = ""
    since: float = 0.0  # when it was last asked
    begin: float = 0.0  # the same in working seconds
    attempted: float = 0.0  # when its last request was sent
    limit: float | None = None  # seconds that its member has for that request
    words: int = 0  # words streamed since it was last asked
    mid_word: bool = False  # the last streamed piece ended inside a word
    served_by: str = ""
    trouble: str = ""  # description of the last retry, fallback or repair
    open_trouble: int | None = None  # number of the event of a trouble that no answer has resolved
    reason: str = ""  # why it is absent
    usage: Usage = NO_USAGE
    usd: float = 0.0  # billed so far, for members with a known price
    estimated: bool = False  # part of `usd` is an estimate
    doubtful_usd: float = 0.0  # the most that requests without an answer may have cost
    attempts: int = 0
    seconds: float = 0.0
    statements: int = 0  # statements to the council, without those to its own helpers

    @property
    def ok(self) -> bool:
        """Return whether its answer counts. A truncated answer counts unless it is an absence, with a reason."""
        return self.state in OK_STATES or (self.state == "truncated" and not self.reason)


@dataclass(slots=True)
class Minutes:
    """Read model of a run, folded from its events."""

    run: str = ""
    name: str = ""
    folder: str = ""
    plan: PlanObject = field(default_factory=lambda: read_plan({}))  # empty before the first event
    started: float = 0.0
    resumed: float = 0.0  # when the last process continued it; 0 if one process made it
    status: str = "running"  # running | complete | incomplete | failed
    stopped: str = ""
    reason: str = ""
    seats: dict[str, SeatMinutes] = field(default_factory=dict)
    chair: SeatMinutes | None = None
    phases: dict[str, PhaseMinutes] = field(default_factory=dict)
    notes: list[ev.Noted] = field(default_factory=list)
    prompts: dict[str, ev.Asked] = field(default_factory=dict)
    troubles: list[ev.Faulted | ev.Attempted] = field(default_factory=list)
    lookups: list[ev.LookedUp] = field(default_factory=list)  # look-ups of seats and explorers, and searches
    hedges: list[ev.Hedged] = field(default_factory=list)  # slow members, and the members that were asked too
    cap: float | None = None  # cost limit in dollars
    priced: set[str] = field(default_factory=set)  # members with a known price that were asked
    billed: dict[str, float] = field(default_factory=dict)  # dollars of the last request by step
    cached_saving: float | None = None  # dollars that the vendors' prompt caches saved; None without known use of them
    attempts: list[AttemptMinutes] = field(default_factory=list)
    open_attempts: dict[tuple[str, int], ev.Attempted] = field(default_factory=dict)  # requests without a result yet
    steps: list[StepMinutes] = field(default_factory=list)
    last_steps: dict[str, StepMinutes] = field(default_factory=dict)  # by key
    verdict: VerdictObject = field(default_factory=VerdictObject)
    calls: dict[str, int] = field(default_factory=lambda: {"made": 0, "replayed": 0, "in_doubt": 0})
    report_path: str = ""
    files: dict[str, str] = field(default_factory=dict)  # analysis files of judges: "r2/judge-1" → path
    seconds: float = 0.0  # working time, without the pauses between processes
    fetching: ev.Fetching | None = None
    report: ReportObject | None = None  # the report object of a run that this process has closed
    outcomes: RunOutcomes = NO_OUTCOMES  # recorded after the run: not part of its events
    active: Literal["", "queued", "running"] = ""  # while the run waits or works: not part of its events
    seq: int = 0
    convened: int | None = None  # number of the event with the plan
    closed: int | None = None  # number of the event with the verdict
    _last_at: float = 0.0
    _places: dict[str, Place] = field(default_factory=dict)
    _first_phases: dict[tuple[str, ...], int] = field(default_factory=dict)  # by the parts at the start of a name
    _attempts: dict[str, list[AttemptMinutes]] = field(default_factory=dict)  # by key

    @classmethod
    def fold(cls, entries: Iterable[Entry]) -> Minutes:
        """Build the minutes of a run from its entries."""
        minutes = cls()
        for entry in entries:
            minutes.on_event(entry)
        return minutes

    def on_event(self, entry: Entry) -> None:
        """Apply one event."""
        kind, at = type(entry.event), entry.at
        if kind not in ev.TRANSIENT_EVENTS:
            if self._last_at and at > self._last_at and kind is not ev.Resumed:
                self.seconds += at - self._last_at
            self._last_at = at
        if entry.seq > self.seq:
            self.seq = entry.seq
        HANDLERS[kind](self, entry.event, at)

    def seat(self, name: str) -> SeatMinutes:
        """Return the seat of that name; add one for a helper that is not in the plan (an explorer)."""
        if self.chair and name == self.chair.name:
            return self.chair
        if name not in self.seats:
            self.seats[name] = SeatMinutes(name)
        return self.seats[name]

    @property
    def planned_seats(self) -> list[SeatMinutes]:
        """The seats of the plan in seating order, without explorers and other helpers."""
        return [self.seats[seat["name"]] for seat in self.plan.get("seats", [])]

    @property
    def needed_seats(self) -> list[SeatMinutes]:
        """The seats of the plan, without those that a complete run did not ask because it skipped a phase."""
        seats = self.planned_seats
        has_skipped = self.status == "complete" and any(note.skipped for note in self.notes)
        return [seat for seat in seats if seat.state != "waiting"] if has_skipped else seats

    @property
    def council_seats(self) -> list[SeatMinutes]:
        """The seats of the plan, then the chair."""
        return [*self.planned_seats, *([self.chair] if self.chair else [])]

    @property
    def all_seats(self) -> list[SeatMinutes]:
        return [*self.seats.values(), *([self.chair] if self.chair else [])]

    def place_of(self, name: str) -> Place:
        """Return the place of a seat: in seating order, each followed by its helpers, the chair last."""
        place = self._places.get(name)
        if place is None:
            seats = [seat["name"] for seat in self.plan.get("seats", [])]
            hosts = [seat for seat in seats if name == seat or name.startswith(f"{seat}-")]
            is_chair = self.chair is not None and name == self.chair.name
            index = len(seats) + 1 if is_chair else seats.index(max(hosts, key=len)) if hosts else len(seats)
            place = self._places[name] = (index, split_numbers(name))
        return place

    def sort_by_place(self, by_seat: dict[str, T]) -> dict[str, T]:
        """Return a mapping in seating order, after its last item was added."""
        names = sorted(by_seat, key=self.place_of)
        return by_seat if list(by_seat) == names else {name: by_seat[name] for name in names}

    def helpers(self, name: str) -> list[SeatMinutes]:
        """Return the helpers of a seat. Their names start with the name of the seat."""
        names = {seat.name for seat in self.planned_seats}
        return [seat for seat in self.seats.values() if seat.name not in names and seat.name.startswith(f"{name}-")]

    def host(self, helper: str) -> str:
        """Return the seat a helper works for; empty for a seat of the plan."""
        names = [seat.name for seat in self.planned_seats]
        return "" if helper in names else next((name for name in names if helper.startswith(f"{name}-")), "")

    def is_private_phase(self, phase: str) -> bool:
        """Return whether a phase is private to a seat and its helpers: `judge/judge-1/questions`."""
        return not self.seats.keys().isdisjoint(phase.split("/")[1:])

    @property
    def is_empty_run(self) -> bool:
        """Whether the run is complete although no seat was asked, because there was nothing to judge."""
        return self.status == "complete" and not self.phases

    @property
    def rounds(self) -> list[PhaseMinutes]:
        """The phases of the whole council, without those private to a seat."""
        return [phase for phase in self.phases.values() if not self.is_private_phase(phase.name)]

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        """The labels each reader saw, with the seat behind each label."""
        return {reader: labels for phase in self.phases.values() for reader, labels in phase.labels.items()}

    @property
    def statements(self) -> list[StatementMinutes]:
        return [said for phase in self.phases.values() for said in phase.said.values()]

    def statements_of(self, seat: str) -> list[StatementMinutes]:
        """Return the seat's statements to the council, without requests for look-ups and words to its helpers."""
        return [
            phase.said[seat]
            for phase in self.phases.values()
            if seat in phase.said and ("/" not in phase.name or not self.is_private_phase(phase.name))
        ]

    def new_statements_of(self, seat: str) -> list[StatementMinutes]:
        """Return everything the seat said in this run, without what was copied from the run that it is a fork of."""
        said = [phase.said[seat] for phase in self.phases.values() if seat in phase.said]
        return [one for one in said if not self.is_from_fork(one)]

    def is_from_fork(self, said: StatementMinutes | None) -> bool:
        """Return whether a statement was copied from the run that this one is a fork of."""
        return said is not None and said.attempts == 0 and bool(self.plan.get("fork"))

    @property
    def absences(self) -> list[AbsenceMinutes]:
        """Absences by phase, then in seating order, so that two reports of one run do not differ by timing."""
        return [missed for phase in self.phases.values() for missed in phase.absent.values()]

    @property
    def answered_count(self) -> int:
        """The number of seats, without the chair, that made a statement."""
        return sum(1 for seat in self.planned_seats if seat.statements)

    @property
    def usage(self) -> Usage:
        return sum((seat.usage for seat in self.all_seats), NO_USAGE)

    @property
    def usd(self) -> float:
        """Dollars billed so far, for members with a known price, without open requests."""
        return round(sum(seat.usd for seat in self.all_seats), 9)

    def in_doubt_usd(self, *seats: str) -> float:
        """Return the most that requests without an answer, of these seats or of all, may have cost."""
        still_open = [sent.most or 0.0 for sent in self.open_attempts.values() if not seats or sent.seat in seats]
        ended = [seat.doubtful_usd for seat in self.all_seats if not seats or seat.name in seats]
        return round(sum(still_open) + sum(ended), 9)

    def phase_seconds(self, phase: PhaseMinutes, now: float) -> float:
        """Return how long a phase has taken in the process that ended it or works on it now."""
        return (phase.ended or now) - max(phase.started, self.resumed)

    def ensure_phase(self, name: str, at: float) -> PhaseMinutes:
        if name not in self.phases:
            place = self._place_of_phase(name)
            self.phases[name] = PhaseMinutes(name, at, begin=self.seconds, place=place)
            self.phases = dict(sorted(self.phases.items(), key=lambda item: item[1].place))
        return self.phases[name]

    def _place_of_phase(self, name: str) -> PhasePlace:
        """Return a key that sorts phases by their start, and those of seats and their helpers by seating order."""
        parts = tuple(name.split("/"))
        planned = {seat["name"] for seat in self.plan.get("seats", [])}
        place: list[tuple[int, Place]] = []
        for size, part in enumerate(parts, 1):
            start = self._first_phases.setdefault(parts[:size], len(self._first_phases))
            is_seat = size > 1 and (part in planned or self.host(part))
            place.append((1, self.place_of(part)) if is_seat else (0, (start, ())))
        return tuple(place)

    def open_step(self, key: str) -> StepMinutes | None:
        step = self.last_steps.get(key)
        return step if step and step.end is None else None

    def attempts_of(self, key: str) -> list[AttemptMinutes]:
        """Return the requests of a step."""
        return self._attempts.get(key, [])

    def is_open(self, attempt: AttemptMinutes) -> bool:
        """Return whether a request has no result yet."""
        return self.open_attempts.get((attempt.event.key, attempt.event.n)) is attempt.event


def split_numbers(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts names by their numbers: explorer-10 after explorer-2."""
    return tuple((int(digits or 0), text) for text, digits in re.findall(r"([^0-9]*)([0-9]*)", name))


def read_plan(stored: Json) -> PlanObject:
    """Return the plan of an event. Plans of earlier versions have fewer fields."""
    return cast("PlanObject", stored)


def read_verdict(stored: Json) -> VerdictObject:
    """Return the verdict of an event. Verdicts of earlier versions have fewer fields."""
    return cast("VerdictObject", stored)


def _apply_convened(m: Minutes, event: ev.Convened, at: float) -> None:
    plan = read_plan(event.plan)
    m.run, m.name, m.plan, m.folder, m.started = event.run, event.name, plan, event.folder, at
    m.cap, m.convened = plan.get("cap"), m.seq
    for seat in plan.get("seats", []):
        m.seats[seat["name"]] = _seat_from_plan(seat)
    if chair := plan.get("chair"):
        m.chair = _seat_from_plan(chair)


def _seat_from_plan(seat: PlanSeat) -> SeatMinutes:
    return SeatMinutes(seat["name"], seat["role"] or "", seat["perspective"] or "", seat["model"], seat["vendor"])


def _apply_resumed(m: Minutes, event: ev.Resumed, at: float) -> None:
    m.status, m.stopped, m.reason, m.cap, m.resumed = "running", "", "", event.cap, at
    for step in m.steps:
        if step.end is None:
            step.end, step.state = m.seconds, "stopped"
    for attempt in filter(m.is_open, m.attempts):
        attempt.is_interrupted = True
        _end_attempt(m, attempt)
    m.calls = {
        "made": m.calls["made"],
        "replayed": 0,
        "in_doubt": sum(attempt.is_interrupted for attempt in m.attempts),
    }


def _begin_step(m: Minutes, phase: PhaseMinutes, key: str, seat: str, begin: float) -> StepMinutes:
    step = StepMinutes(len(m.steps), key, phase.name, seat, begin)
    m.steps.append(step)
    m.last_steps[key] = step
    phase.keys[seat] = key
    phase.keys = m.sort_by_place(phase.keys)
    return step


def _end_step(m: Minutes, phase: PhaseMinutes, event: ev.Stated | ev.WasAbsent, seconds: float = 0.0) -> None:
    """End a step; one that was not asked for (copied from a fork, joined) has its own duration."""
    step = m.open_step(event.key)
    step = step or _begin_step(m, phase, event.key, event.seat, max(0.0, m.seconds - seconds))
    step.end, step.state = m.seconds, event.state


def _end_attempt(m: Minutes, attempt: AttemptMinutes) -> None:
    attempt.end = m.seconds if attempt.end is None else attempt.end


def _find_attempt(m: Minutes, key: str, n: int) -> AttemptMinutes | None:
    return next((attempt for attempt in reversed(m.attempts_of(key)) if attempt.event.n == n), None)


def _apply_phase_started(m: Minutes, event: ev.PhaseStarted, at: float) -> None:
    m.ensure_phase(event.phase, at)


def _apply_phase_ended(m: Minutes, event: ev.PhaseEnded, at: float) -> None:
    phase = m.ensure_phase(event.phase, at)
    phase.ended, phase.end = at, m.seconds


def _apply_asked(m: Minutes, event: ev.Asked, at: float) -> None:
    phase = m.ensure_phase(event.phase, at)
    phase.absent.pop(event.seat, None)
    if event.seat not in phase.asked:
        insort(phase.asked, event.seat, key=m.place_of)
    m.prompts[event.key] = event
    _begin_step(m, phase, event.key, event.seat, m.seconds)
    seat = m.seat(event.seat)
    seat.state, seat.phase, seat.since, seat.words, seat.trouble = "asked", event.phase, at, 0, ""
    seat.begin, seat.open_trouble = m.seconds, None
    seat.mid_word, seat.reason = False, ""


def _apply_attempted(m: Minutes, event: ev.Attempted, at: float) -> None:
    seat = m.seat(event.seat)
    seat.words, seat.mid_word = 0, False
    seat.attempted, seat.limit = at, event.seconds
    if event.most is not None:
        m.priced.add(event.member)
    attempt = AttemptMinutes(len(m.attempts), m.seq, event, m.seconds)
    m.attempts.append(attempt)
    m._attempts.setdefault(event.key, []).append(attempt)
    m.open_attempts[event.key, event.n] = event
    m.calls["made"] += 1  # `closed` replaces this count, but a killed process never writes it
    if event.why:
        seat.trouble, seat.open_trouble = event.why, m.seq
        m.troubles.append(event)


def _apply_hedged(m: Minutes, event: ev.Hedged, at: float) -> None:
    m.hedges.append(event)


def _apply_looked_up(m: Minutes, event: ev.LookedUp, at: float) -> None:
    m.lookups.append(event)


def _apply_faulted(m: Minutes, event: ev.Faulted, at: float) -> None:
    m.troubles.append(event)
    m.open_attempts.pop((event.key, event.n), None)
    if attempt := _find_attempt(m, event.key, event.n):
        attempt.fault = m.seq
        _end_attempt(m, attempt)
    if step := m.open_step(event.key):
        step.faults.append((m.seconds, m.seq))
    seat = m.seat(event.seat)
    seat.trouble, seat.open_trouble = f"{event.kind}: {event.detail}", m.seq


def _apply_billed(m: Minutes, event: ev.Billed, at: float) -> None:
    m.open_attempts.pop((event.key, event.n), None)
    seat = m.seat(event.seat)
    attempt = _find_attempt(m, event.key, event.n)
    if attempt:
        _end_attempt(m, attempt)
    if event.in_doubt:
        seat.doubtful_usd = round(seat.doubtful_usd + event.usd, 9)
        if attempt:
            attempt.doubtful_usd = event.usd
        return
    if attempt:
        attempt.usd, attempt.estimated = event.usd, event.estimated
    seat.usd = round(seat.usd + event.usd, 9)
    m.billed[event.key] = event.usd
    seat.estimated |= event.estimated
    if event.saved is not None:
        m.cached_saving = round((m.cached_saving or 0.0) + event.saved, 9)


def _apply_delta(m: Minutes, event: ev.Delta, at: float) -> None:
    seat = m.seat(event.seat)
    seat.state = "writing"
    continues_word = seat.mid_word and not event.text[:1].isspace()
    seat.words += len(event.text.split()) - continues_word
    seat.mid_word = not event.text[-1:].isspace()


def _close_attempts(m: Minutes, key: str) -> None:
    """End the open requests of a step that has ended."""
    for attempt in filter(m.is_open, m.attempts_of(key)):
        _end_attempt(m, attempt)
    m.open_attempts = {place: sent for place, sent in m.open_attempts.items() if sent.key != key}


def _apply_stated(m: Minutes, event: ev.Stated, at: float) -> None:
    phase = m.ensure_phase(event.phase, at)
    phase.said[event.seat], phase.ends[event.key] = event, m.seq
    phase.said = m.sort_by_place(phase.said)
    if event.seat not in phase.asked:  # joined of several statements, without a request of its own
        insort(phase.asked, event.seat, key=m.place_of)
    _close_attempts(m, event.key)
    if attempts := m.attempts_of(event.key):
        attempts[-1].statement = m.seq
    _end_step(m, phase, event, event.seconds)
    seat = m.seat(event.seat)
    seat.state, seat.phase, seat.served_by, seat.reason = event.state, event.phase, event.served_by, ""
    seat.open_trouble = None
    seat.usage += event.tokens
    seat.attempts += event.attempts
    seat.seconds += event.seconds
    seat.statements += event.seat not in event.phase.split("/")[1:]
    seat.words = event.words


def _apply_absent(m: Minutes, event: ev.WasAbsent, at: float) -> None:
    phase = m.ensure_phase(event.phase, at)
    phase.absent[event.seat], phase.ends[event.key] = event, m.seq
    phase.absent = m.sort_by_place(phase.absent)
    _close_attempts(m, event.key)
    _end_step(m, phase, event)
    seat = m.seat(event.seat)
    seat.state, seat.phase, seat.reason = event.state, event.phase, event.reason
    seat.attempts += event.attempts
    seat.usage += Usage.from_json(event.usage)


def _apply_noted(m: Minutes, event: ev.Noted, at: float) -> None:
    m.notes.append(event)


def _apply_labelled(m: Minutes, event: ev.Labelled, at: float) -> None:
    m.ensure_phase(event.phase, at).labels[event.reader] = event.labels


def _apply_voted(m: Minutes, event: ev.Voted, at: float) -> None:
    m.files[f"{event.phase}/{event.seat}"] = event.file


def _apply_fetching(m: Minutes, event: ev.Fetching, at: float) -> None:
    m.fetching = event if event.done < event.total else None


def _apply_closed(m: Minutes, event: ev.Closed, at: float) -> None:
    m.status, m.stopped, m.reason = event.status, event.stopped, event.reason
    m.verdict, m.calls, m.report_path = read_verdict(event.verdict), dict(event.calls), event.report_path
    m.closed = m.seq


HANDLERS: dict[type, Callable[[Minutes, Any, float], None]] = {
    ev.Convened: _apply_convened,
    ev.Resumed: _apply_resumed,
    ev.PhaseStarted: _apply_phase_started,
    ev.PhaseEnded: _apply_phase_ended,
    ev.Asked: _apply_asked,
    ev.Attempted: _apply_attempted,
    ev.Hedged: _apply_hedged,
    ev.Faulted: _apply_faulted,
    ev.Billed: _apply_billed,
    ev.Delta: _apply_delta,
    ev.Stated: _apply_stated,
    ev.WasAbsent: _apply_absent,
    ev.LookedUp: _apply_looked_up,
    ev.Noted: _apply_noted,
    ev.Labelled: _apply_labelled,
    ev.Voted: _apply_voted,
    ev.Fetching: _apply_fetching,
    ev.Closed: _apply_closed,
}
