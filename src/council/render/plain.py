"""Progress without a terminal: one plain line per finished phase or, with -v, per event, and a heartbeat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, TextIO

from council import events as ev
from council.engine.layout import format_count, format_lookup, format_phase, format_ruling
from council.engine.minutes import Minutes
from council.events import Entry
from council.render.terminal import format_busy_seat, format_megabytes, format_seconds
from council.text_cleanup import single_line

HEARTBEAT_S = 60.0  # write a heartbeat after this many seconds without output


class PlainView:
    """Write one line per finished phase, or per event. `now` in `tick` uses the clock of the entries."""

    def __init__(self, stream: TextIO, *, every_event: bool = False) -> None:
        self.minutes = Minutes()
        self._stream = stream
        self._every_event = every_event
        self._formatters = EVENT_FORMATTERS if every_event else PHASE_FORMATTERS
        self._quiet_since: float | None = None
        self._fetch_tenths = -1  # tenths of the download already reported
        self._written_once: set[str] = set()  # messages that are written only once
        self._suspended_lines: list[str] | None = None  # lines held back during a prompt to the user

    def catch_up(self, entries: Iterable[Entry]) -> None:
        """Apply earlier entries of a resumed run and write a one-line summary."""
        for entry in entries:
            self.minutes.on_event(entry)
        absent = len(self.minutes.absences)
        missing = f" and {format_count(absent, 'absence')}" if absent else ""
        self._write_line(f"resuming: {format_count(len(self.minutes.statements), 'statement')}{missing} in the ledger")

    def on_event(self, entry: Entry) -> None:
        self.minutes.on_event(entry)
        formatter = self._formatters.get(type(entry.event))
        if formatter and (line := formatter(self, entry.event)):
            self._write_line(line)

    def tick(self, now: float) -> None:
        """Write a line if none was written for 60 seconds."""
        if self._quiet_since is None:
            self._quiet_since = now
        elif now - self._quiet_since >= HEARTBEAT_S:
            seats = [seat for seat in self.minutes.all_seats if seat.state in ("asked", "writing")]
            busy = ", ".join(format_busy_seat(seat, now) for seat in seats)
            self._write_line(f"still working: {busy}" if busy else "still working")
            self._quiet_since = now

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Hold back the lines during a prompt to the user, then write them."""
        self._suspended_lines = []
        try:
            yield
        finally:
            lines, self._suspended_lines = self._suspended_lines, None
            self._write("".join(lines))

    def show_stopping(self) -> None:
        self._write_line("stopping; Ctrl-C again ends at once")

    def close(self) -> None:
        self._stream.flush()

    def is_new_tenth(self, done: int, total: int) -> bool:
        """Return whether a download has reached another tenth."""
        tenths = done * 10 // total if total else 0
        changed, self._fetch_tenths = tenths != self._fetch_tenths, tenths
        return changed

    def is_first_time(self, message: str) -> bool:
        """Return whether this message was not written before."""
        seen, self._written_once = message in self._written_once, {*self._written_once, message}
        return not seen

    def format_step(self, key: str, seat: str) -> str:
        """Format phase and seat of an event that has only a key: `draft alpha`."""
        asked = self.minutes.prompts.get(key)
        return self.format_phase_seat(asked.phase, seat) if asked else seat

    def format_phase_seat(self, phase: str, seat: str) -> str:
        """Format phase and seat: `draft alpha`, or `judge judge-1 > explorer-2 look-1` for a private phase."""
        if not self.minutes.is_private_phase(phase):
            return f"{phase} {seat}"
        host = self.minutes.host(seat) or seat
        helper = seat.removeprefix(f"{host}-") + " " if seat != host else ""
        return f"{phase.partition('/')[0]} {host} > {helper}{phase.rpartition('/')[2]}"

    def _write_line(self, text: str) -> None:
        self._quiet_since = None
        name = f"council {self.minutes.run} " if self.minutes.run else "council "
        self._write(f"{name if self._every_event else ''}{single_line(text, 400)}\n")

    def _write(self, text: str) -> None:
        if self._suspended_lines is not None:
            self._suspended_lines.append(text)
        else:
            self._stream.write(text)
            self._stream.flush()


def _format_convened(view: PlainView, event: ev.Convened) -> str:
    return f"convened: {event.plan.get('protocol')}, {format_count(len(event.plan.get('seats', [])), 'seat')}"


def _format_resumed(view: PlainView, event: ev.Resumed) -> str:
    return "resumed"


def _format_phase_started(view: PlainView, event: ev.PhaseStarted) -> str:
    return "" if view.minutes.is_private_phase(event.phase) else f"{event.phase} begins"


def _format_phase_ended(view: PlainView, event: ev.PhaseEnded) -> str:
    phase = view.minutes.phases[event.phase]
    if view.minutes.is_private_phase(event.phase):
        return ""
    return f"{event.phase} done: {len(phase.said)} of {len(phase.asked)} answered"


def _format_finished_phase(view: PlainView, event: ev.PhaseEnded) -> str:
    """Format `draft 3/3 9 s` or `round 2: 3/3 9 s`."""
    phase = view.minutes.phases[event.phase]
    if view.minutes.is_private_phase(event.phase):
        return ""
    spent = format_seconds(view.minutes.phase_seconds(phase, phase.started))
    name = format_phase(event.phase)
    colon = ":" if name[-1:].isdigit() else ""
    return f"{name}{colon} {len(phase.said)}/{len({*phase.asked, *phase.absent})} {spent}"


def _format_asked(view: PlainView, event: ev.Asked) -> str:
    return f"{view.format_phase_seat(event.phase, event.seat)} asked {event.member}"


def _format_attempted(view: PlainView, event: ev.Attempted) -> str:
    if not event.why:  # first attempt: the line before reported it
        return ""
    return f"{view.format_step(event.key, event.seat)} attempt {event.n} on {event.member}: {event.why}"


def _format_faulted(view: PlainView, event: ev.Faulted) -> str:
    if event.kind == "auth" and not view.is_first_time(f"auth {event.member.partition(':')[0]}"):
        return ""  # several seats may share the key
    line = f"{view.format_step(event.key, event.seat)} fault on {event.member}: {event.kind}: {event.detail}"
    return line if event.wait is None else f"{line}; next try in {event.wait:.1f}s"


def _format_stated(view: PlainView, event: ev.Stated) -> str:
    requested = view.minutes.seat(event.seat).model
    served = f" served by {event.served_by}" if requested and event.served_by not in ("", requested) else ""
    if view.minutes.is_from_fork(view.minutes.phases[event.phase].said[event.seat]):
        served = f" taken from {view.minutes.plan['fork']['run']}"
    measure = format_ruling(event.reply) or format_count(len(event.said.split()), "word")
    return f"{view.format_phase_seat(event.phase, event.seat)} {event.state} {measure} {event.seconds:.1f}s{served}"


def _format_absent(view: PlainView, event: ev.WasAbsent) -> str:
    tries = f" after {format_count(event.attempts, 'attempt')}" if event.attempts else ""
    return f"{view.format_phase_seat(event.phase, event.seat)} absent{tries}: {event.state}: {event.reason}"


def _format_looked_up(view: PlainView, event: ev.LookedUp) -> str:
    seat = event.seat or (event.key.split("/")[-2] if event.key.endswith("/look") else "")
    asker = view.format_phase_seat(event.phase, seat) if seat else event.phase
    result = f"{event.found} found" if event.found or not event.why else f"not shown: {single_line(event.why, 160)}"
    return f"{asker} looked up {format_lookup(event.what)}: {result}"


def _format_noted(view: PlainView, event: ev.Noted) -> str:
    return f"note: {event.what}" + (f": {event.why}" if event.why else "")


def _format_fetching(view: PlainView, event: ev.Fetching) -> str:
    if not view.is_new_tenth(event.done, event.total):
        return ""
    percent = event.done * 100 // event.total if event.total else 0
    return f"fetching {event.what} {percent} % ({format_megabytes(event.done, event.total)})"


def _format_closed(view: PlainView, event: ev.Closed) -> str:
    stopped = f" ({event.stopped})" if event.stopped else ""
    return f"{event.status}{stopped} {format_count(event.calls.get('made', 0), 'call')} {view.minutes.seconds:.1f}s"


EVENT_FORMATTERS: dict[type, Callable[[PlainView, Any], str]] = {
    ev.Convened: _format_convened,
    ev.Resumed: _format_resumed,
    ev.PhaseStarted: _format_phase_started,
    ev.PhaseEnded: _format_phase_ended,
    ev.Asked: _format_asked,
    ev.Attempted: _format_attempted,
    ev.Faulted: _format_faulted,
    ev.Stated: _format_stated,
    ev.WasAbsent: _format_absent,
    ev.LookedUp: _format_looked_up,
    ev.Noted: _format_noted,
    ev.Fetching: _format_fetching,
    ev.Closed: _format_closed,
}
PHASE_FORMATTERS: dict[type, Callable[[PlainView, Any], str]] = {
    ev.PhaseEnded: _format_finished_phase,
    ev.Fetching: _format_fetching,
}


MAX_PIECES = 40  # per statement


def build_replay(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries in time order, with rebuilt deltas before each statement."""
    stated = ((entry, entry.event) for entry in entries if isinstance(entry.event, ev.Stated))
    pieces = [piece for entry, event in stated for piece in _build_deltas(entry, event)]
    return sorted([*entries, *pieces], key=attrgetter("at"))


def _build_deltas(entry: Entry, stated: ev.Stated) -> Iterator[Entry]:
    words = stated.said.split(" ")
    size = max(1, len(words) // MAX_PIECES)
    starts = range(0, len(words), size)
    began = entry.at - stated.seconds
    for n, start in enumerate(starts, 1):
        at = began + stated.seconds * n / (len(starts) + 1)
        yield Entry(0, at, ev.Delta(stated.key, stated.seat, " ".join(words[start : start + size]) + " "))
