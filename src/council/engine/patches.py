"""Patches of the minutes, one for each event: pages show a run by applying them, and fold no event themselves.

A patch is a JSON merge patch (RFC 7396). The minutes that it changes consist of small flat records, and refer to events
by number: a statement is in its event only. A record leaves out what is empty.
"""

from __future__ import annotations

from collections.abc import Iterator

from council import events as ev
from council.engine.minutes import AttemptMinutes, Minutes, PhaseMinutes, PhasePlace, Place, SeatMinutes, StepMinutes
from council.events import Entry, Event
from council.types import Json

RecordFields = dict[str, str | float | list[list[float]]]  # flat, apart from the times and events of faults
Record = tuple[tuple[str, ...], RecordFields]  # where a record is in the minutes, and its fields
SECONDS_DIGITS = 3


class PatchFold:
    """Fold the stored events of a run, in order. Events that are not stored change no minutes."""

    def __init__(self) -> None:
        self.minutes = Minutes()
        self._records: dict[tuple[str, ...], RecordFields] = {}

    def apply(self, entry: Entry) -> Json:
        """Apply an event and return the patch."""
        seats = len(self.minutes.seats)
        self.minutes.on_event(entry)
        changed = list(_list_changed_records(self.minutes, entry.event))
        if len(self.minutes.seats) > seats:  # phases with the name of the new seat are private
            changed += [_phase_record(self.minutes, phase) for phase in self.minutes.phases.values()]
        patch: Json = {}
        for place, record in changed:
            known = self._records.get(place, {})
            if record == known:
                continue
            inner = patch
            for name in place:
                inner = inner.setdefault(name, {})
            inner |= {name: value for name, value in record.items() if known.get(name) != value}
            inner |= dict.fromkeys(known.keys() - record.keys())
            self._records[place] = record
        return patch


def list_records(minutes: Minutes) -> Iterator[Record]:
    """Yield all records."""
    yield (), _run_record(minutes)
    for seat in minutes.all_seats:
        yield _seat_record(minutes, seat)
    for phase in minutes.phases.values():
        yield _phase_record(minutes, phase)
        for name in phase.keys:
            yield _phase_seat_record(phase, name)
        for reader in phase.labels:
            yield _labels_record(phase, reader)
    for step in minutes.steps:
        yield _step_record(step)
    for attempt in minutes.attempts:
        yield _attempt_record(minutes, attempt)


def _list_changed_records(minutes: Minutes, event: Event) -> Iterator[Record]:
    """Yield the records that an event may have changed: those that it names, and the record of the run."""
    if isinstance(event, (ev.Convened, ev.Resumed)):
        yield from list_records(minutes)
        return
    yield (), _run_record(minutes)
    seat, key = getattr(event, "seat", ""), getattr(event, "key", "")
    if seat:
        yield _seat_record(minutes, minutes.seat(seat))
    if phase := minutes.phases.get(getattr(event, "phase", "")):
        yield _phase_record(minutes, phase)
        if seat in phase.keys:
            yield _phase_seat_record(phase, seat)
        if isinstance(event, ev.Labelled):
            yield _labels_record(phase, event.reader)
    if step := minutes.last_steps.get(key):
        yield _step_record(step)
    for attempt in minutes.attempts_of(key):
        yield _attempt_record(minutes, attempt)


def _drop_empty(**fields: str | float | list[list[float]] | None) -> RecordFields:
    return {name: value for name, value in fields.items() if value is not None and value is not False and value != ""}


def _run_record(m: Minutes) -> RecordFields:
    return _drop_empty(
        convened=m.convened,
        closed=m.closed,
        status=m.status,
        stopped=m.stopped,
        reason=m.reason,
        cap=m.cap,
        chair=m.chair.name if m.chair else "",
        seconds=round(m.seconds, SECONDS_DIGITS),
        usd=m.usd,
        estimated=any(seat.estimated for seat in m.all_seats),
        answered=m.answered_count,
        needed=len(m.needed_seats),
    )


def _seat_record(m: Minutes, seat: SeatMinutes) -> Record:
    return ("seats", seat.name), _drop_empty(
        name=seat.name,
        host="" if seat is m.chair else m.host(seat.name),
        place=format_place(m.place_of(seat.name)),
        role=seat.role,
        perspective=seat.perspective,
        model=seat.model,
        vendor=seat.vendor,
        state=seat.state,
        phase=seat.phase,
        begin=round(seat.begin, SECONDS_DIGITS),
        served_by=seat.served_by,
        trouble=seat.open_trouble,
        reason=seat.reason,
        read=seat.usage.input,
        written=seat.usage.output,
        usd=seat.usd,
        estimated=seat.estimated,
        attempts=seat.attempts,
        seconds=round(seat.seconds, SECONDS_DIGITS),
        statements=seat.statements,
    )


def _phase_record(m: Minutes, phase: PhaseMinutes) -> Record:
    return ("phases", phase.name), _drop_empty(
        name=phase.name,
        place=format_phase_place(phase.place),
        private=m.is_private_phase(phase.name),
        begin=round(phase.begin, SECONDS_DIGITS),
        end=_round(phase.end),
    )


def _phase_seat_record(phase: PhaseMinutes, name: str) -> Record:
    said, absent = phase.said.get(name), phase.absent.get(name)
    return ("phases", phase.name, "seats", name), _drop_empty(
        key=phase.keys[name],
        asked=name in phase.asked,
        said=phase.ends[said.key] if said else None,
        absent=phase.ends[absent.key] if absent else None,
    )


def _labels_record(phase: PhaseMinutes, reader: str) -> Record:
    return ("phases", phase.name, "labels", reader), dict(phase.labels[reader])


def _step_record(step: StepMinutes) -> Record:
    return ("steps", str(step.number)), _drop_empty(
        key=step.key,
        phase=step.phase,
        seat=step.seat,
        begin=round(step.begin, SECONDS_DIGITS),
        end=_round(step.end),
        state=step.state,
        faults=[[round(at, SECONDS_DIGITS), seq] for at, seq in step.faults] or None,
    )


def _attempt_record(m: Minutes, attempt: AttemptMinutes) -> Record:
    return ("attempts", str(attempt.number)), _drop_empty(
        event=attempt.seq,
        begin=round(attempt.begin, SECONDS_DIGITS),
        end=_round(attempt.end),
        open=m.is_open(attempt),
        interrupted=attempt.is_interrupted,
        fault=attempt.fault,
        statement=attempt.statement,
        usd=attempt.usd,
        estimated=attempt.estimated,
        doubtful=attempt.doubtful_usd or None,
    )


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, SECONDS_DIGITS)


def format_place(place: Place) -> str:
    """Return a text that sorts like the place of a seat."""
    index, names = place
    return f"{index:05}" + "".join(f"!{number:06}{text}" for number, text in names if number or text)


def format_phase_place(place: PhasePlace) -> str:
    """Return a text that sorts like the place of a phase. A space sorts before each character of a name."""
    return " ".join(f"{kind}{format_place(part)}" for kind, part in place)
