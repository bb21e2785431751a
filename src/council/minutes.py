"""The minutes: the one read model, folded from a run's events. Every view and every report reads these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from council import events as ev
from council.events import Entry
from council.types import OK_STATES, Json, Usage


@dataclass(slots=True)
class Said:
    """One complete statement as it stands in the minutes."""

    key: str
    phase: str
    seat: str
    state: str
    said: str
    reply: Json | None
    served_by: str
    usage: Usage
    attempts: int
    seconds: float
    cut: list[str] = field(default_factory=list)  # what its seat was not shown, because it did not fit
    dropped: list[str] = field(default_factory=list)  # parameters its member refused and was asked without


@dataclass(slots=True)
class Missed:
    """One absence as it stands in the minutes."""

    key: str
    phase: str
    seat: str
    state: str
    reason: str
    attempts: int


@dataclass(slots=True)
class PhaseMinutes:
    name: str
    started: float
    ended: float | None = None
    asked: list[str] = field(default_factory=list)
    said: dict[str, Said] = field(default_factory=dict)
    absent: dict[str, Missed] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)  # what a reader saw under labels: label → seat


@dataclass(slots=True)
class SeatMinutes:
    """A seat as it is now (state, words so far) and in all (usage, attempts, seconds)."""

    name: str
    role: str = ""
    perspective: str = ""
    model: str = ""
    vendor: str = ""
    state: str = "waiting"  # waiting | asked | writing | a seat state of the spec
    phase: str = ""
    since: float = 0.0  # when it was last asked
    words: int = 0  # words streamed since then
    mid_word: bool = False  # the last piece that streamed in ended inside a word
    served_by: str = ""
    trouble: str = ""  # the last retry, fallback or repair, in words
    reason: str = ""  # why it is absent
    usage: Usage = field(default_factory=Usage)
    usd: float = 0.0  # what was billed, as far as its members have prices
    estimated: bool = False  # a part of that nobody has told
    attempts: int = 0
    seconds: float = 0.0
    statements: int = 0  # what it said to the council; what it said apart, to its own helpers, is none

    @property
    def ok(self) -> bool:
        """Also of an answer that was cut off but counts: only an absence has a reason."""
        return self.state in OK_STATES or (self.state == "truncated" and not self.reason)


@dataclass(slots=True)
class Minutes:
    run: str = ""
    name: str = ""
    folder: str = ""
    plan: Json = field(default_factory=dict)
    started: float = 0.0
    status: str = "running"  # running | complete | incomplete | failed
    stopped: str = ""
    reason: str = ""
    seats: dict[str, SeatMinutes] = field(default_factory=dict)
    chair: SeatMinutes | None = None
    phases: dict[str, PhaseMinutes] = field(default_factory=dict)
    notes: list[ev.Noted] = field(default_factory=list)
    prompts: dict[str, ev.Asked] = field(default_factory=dict)
    troubles: list[ev.Faulted | ev.Attempted] = field(default_factory=list)
    cap: float | None = None  # what the run may cost
    priced: set[str] = field(default_factory=set)  # members whose price is known
    open: dict[tuple[str, int], ev.Attempted] = field(default_factory=dict)  # requests nobody has heard of again
    verdict: Json = field(default_factory=dict)
    calls: Json = field(default_factory=lambda: {"made": 0, "replayed": 0, "in_doubt": 0})
    report_path: str = ""
    files: dict[str, str] = field(
        default_factory=dict
    )  # each judge's analysis by seat and phase: "r2/judge-1" → its path
    seconds: float = 0.0  # time a process was at work on it, pauses left out
    fetching: ev.Fetching | None = None
    seq: int = 0
    _last: float = 0.0

    @classmethod
    def fold(cls, entries: Iterable[Entry]) -> Minutes:
        minutes = cls()
        for entry in entries:
            minutes.hear(entry)
        return minutes

    def hear(self, entry: Entry) -> None:
        """Take one event down."""
        if isinstance(entry.event, ev.Resumed):
            self._last = entry.at
        elif not isinstance(entry.event, ev.PASSING):
            self.seconds += max(0.0, entry.at - self._last) if self._last else 0.0
            self._last = entry.at
        self.seq = max(self.seq, entry.seq)
        TAKE_DOWN[type(entry.event)](self, entry.event, entry.at)

    def seat(self, name: str) -> SeatMinutes:
        """The seat of that name; helpers that are not in the plan (explorers) get a line of their own."""
        if self.chair and name == self.chair.name:
            return self.chair
        return self.seats.setdefault(name, SeatMinutes(name))

    @property
    def planned(self) -> list[SeatMinutes]:
        """The seats of the plan in seating order; explorers and other helpers are none of them."""
        return [self.seats[seat["name"]] for seat in self.plan.get("seats", [])]

    @property
    def everyone(self) -> list[SeatMinutes]:
        return [*self.seats.values(), *([self.chair] if self.chair else [])]

    def helpers(self, name: str) -> list[SeatMinutes]:
        """Whom the seat of that name sent out: their names begin with its own."""
        names = {seat.name for seat in self.planned}
        return [seat for seat in self.seats.values() if seat.name not in names and seat.name.startswith(f"{name}-")]

    def host(self, helper: str) -> str:
        """The seat that sent this helper out; nobody did for a seat of the plan."""
        names = [seat.name for seat in self.planned]
        return "" if helper in names else next((name for name in names if helper.startswith(f"{name}-")), "")

    def is_apart(self, phase: str) -> bool:
        """Whether a phase is a seat's own, between it and its helpers: `judge/judge-1/questions`."""
        return not self.seats.keys().isdisjoint(phase.split("/")[1:])

    @property
    def rounds(self) -> list[PhaseMinutes]:
        """The phases in which the council sat together."""
        return [phase for phase in self.phases.values() if not self.is_apart(phase.name)]

    @property
    def labels(self) -> dict[str, dict[str, str]]:
        """Whose words each reader was shown under which label."""
        return {reader: labels for phase in self.phases.values() for reader, labels in phase.labels.items()}

    @property
    def statements(self) -> list[Said]:
        return [said for phase in self.phases.values() for said in phase.said.values()]

    def is_taken_over(self, said: Said | None) -> bool:
        """Whether a statement was not made here, but in the run that this one is a fork of."""
        return said is not None and said.attempts == 0 and bool(self.plan.get("fork"))

    @property
    def absences(self) -> list[Missed]:
        """By phase, then in seating order: who gave up first is chance, and two reports of one run must not differ by it."""
        place = {seat.name: n for n, seat in enumerate(self.everyone)}
        return [
            missed
            for phase in self.phases.values()
            for missed in sorted(phase.absent.values(), key=lambda missed: place[missed.seat])
        ]

    @property
    def heard(self) -> int:
        """How many of the seats (the chair is none) have made a statement that counts."""
        return sum(1 for seat in self.planned if seat.statements)

    @property
    def usage(self) -> Usage:
        return sum((seat.usage for seat in self.everyone), Usage())

    @property
    def usd(self) -> float:
        """What was billed so far, as far as prices are known; what is under way is not in it."""
        return round(sum(seat.usd for seat in self.everyone), 9)

    def in_doubt(self, *seats: str) -> float:
        """What requests that nobody has heard of again can cost, of these seats or of all."""
        held = [sent.most or 0.0 for sent in self.open.values() if not seats or sent.seat in seats]
        return round(sum(held), 9)

    def phase(self, name: str, at: float) -> PhaseMinutes:
        return self.phases.setdefault(name, PhaseMinutes(name, at))


def _convened(m: Minutes, event: ev.Convened, at: float) -> None:
    m.run, m.name, m.plan, m.folder, m.started = event.run, event.name, event.plan, event.folder, at
    m.cap = event.plan.get("cap")
    for seat in event.plan.get("seats", []):
        m.seats[seat["name"]] = _planned(seat)
    if chair := event.plan.get("chair"):
        m.chair = _planned(chair)


def _planned(seat: Json) -> SeatMinutes:
    return SeatMinutes(seat["name"], seat["role"] or "", seat["perspective"] or "", seat["model"], seat["vendor"])


def _resumed(m: Minutes, event: ev.Resumed, at: float) -> None:
    m.status, m.stopped, m.reason, m.cap = "running", "", "", event.cap
    m.calls = {"made": 0, "replayed": 0, "in_doubt": 0}


def _phase(m: Minutes, event: ev.PhaseStarted, at: float) -> None:
    m.phase(event.phase, at)


def _phase_ended(m: Minutes, event: ev.PhaseEnded, at: float) -> None:
    m.phase(event.phase, at).ended = at


def _asked(m: Minutes, event: ev.Asked, at: float) -> None:
    phase = m.phase(event.phase, at)
    phase.absent.pop(event.seat, None)
    if event.seat not in phase.asked:
        phase.asked.append(event.seat)
    m.prompts[event.key] = event
    seat = m.seat(event.seat)
    seat.state, seat.phase, seat.since, seat.words, seat.trouble = "asked", event.phase, at, 0, ""
    seat.mid_word, seat.reason = False, ""


def _attempted(m: Minutes, event: ev.Attempted, at: float) -> None:
    seat = m.seat(event.seat)
    seat.words, seat.mid_word = 0, False
    if event.most is not None:
        m.priced.add(event.member)
    m.open[event.key, event.n] = event
    m.calls["made"] += 1  # until the process that sent them says how many they were: one that was killed never does
    if event.why:
        seat.trouble = event.why
        m.troubles.append(event)


def _faulted(m: Minutes, event: ev.Faulted, at: float) -> None:
    m.troubles.append(event)
    m.open.pop((event.key, event.n), None)
    m.seat(event.seat).trouble = f"{event.kind}: {event.detail}"


def _billed(m: Minutes, event: ev.Billed, at: float) -> None:
    m.open.pop((event.key, event.n), None)
    seat = m.seat(event.seat)
    seat.usd = round(seat.usd + event.usd, 9)
    seat.estimated |= event.estimated


def _delta(m: Minutes, event: ev.Delta, at: float) -> None:
    seat = m.seat(event.seat)
    seat.state = "writing"
    goes_on = seat.mid_word and not event.text[:1].isspace()
    seat.words += len(event.text.split()) - (1 if goes_on and event.text else 0)
    seat.mid_word = not event.text[-1:].isspace() if event.text else seat.mid_word


def _come_back(m: Minutes, key: str) -> None:
    """Nothing of a step is open once it has ended."""
    m.open = {place: sent for place, sent in m.open.items() if sent.key != key}


def _stated(m: Minutes, event: ev.Stated, at: float) -> None:
    usage = Usage.from_json(event.usage)
    m.phase(event.phase, at).said[event.seat] = Said(
        event.key, event.phase, event.seat, event.state, event.said, event.reply,
        event.served_by, usage, event.attempts, event.seconds, event.cut, event.dropped,
    )  # fmt: skip
    _come_back(m, event.key)
    seat = m.seat(event.seat)
    seat.state, seat.phase, seat.served_by, seat.reason = event.state, event.phase, event.served_by, ""
    seat.usage += usage
    seat.attempts += event.attempts
    seat.seconds += event.seconds
    seat.statements += event.seat not in event.phase.split("/")[1:]
    seat.words = len(event.said.split())


def _absent(m: Minutes, event: ev.WasAbsent, at: float) -> None:
    missed = Missed(event.key, event.phase, event.seat, event.state, event.reason, event.attempts)
    m.phase(event.phase, at).absent[event.seat] = missed
    _come_back(m, event.key)
    seat = m.seat(event.seat)
    seat.state, seat.phase, seat.reason = event.state, event.phase, event.reason
    seat.attempts += event.attempts
    seat.usage += Usage.from_json(event.usage)


def _noted(m: Minutes, event: ev.Noted, at: float) -> None:
    m.notes.append(event)


def _labelled(m: Minutes, event: ev.Labelled, at: float) -> None:
    m.phase(event.phase, at).labels[event.reader] = event.labels


def _voted(m: Minutes, event: ev.Voted, at: float) -> None:
    m.files[f"{event.phase}/{event.seat}"] = event.file


def _fetching(m: Minutes, event: ev.Fetching, at: float) -> None:
    m.fetching = event if event.done < event.total else None


def _closed(m: Minutes, event: ev.Closed, at: float) -> None:
    m.status, m.stopped, m.reason = event.status, event.stopped, event.reason
    m.verdict, m.calls, m.report_path = event.verdict, dict(event.calls), event.report_path


def _nothing(m: Minutes, event: Any, at: float) -> None:
    """Some events are for those who watch; the minutes do not change."""


TAKE_DOWN: dict[type, Callable[[Minutes, Any, float], None]] = {
    ev.Convened: _convened, ev.Resumed: _resumed, ev.PhaseStarted: _phase, ev.PhaseEnded: _phase_ended,
    ev.Asked: _asked, ev.Attempted: _attempted, ev.Faulted: _faulted, ev.Billed: _billed, ev.Delta: _delta, ev.Stated: _stated,
    ev.WasAbsent: _absent, ev.LookedUp: _nothing, ev.Noted: _noted, ev.Labelled: _labelled, ev.Voted: _voted,
    ev.Fetching: _fetching, ev.Closed: _closed,
}  # fmt: skip
