"""Progress without a terminal: one plain line per event, and a heartbeat every 30 seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from council import events as ev
from council.events import Entry
from council.minutes import Minutes, SeatMinutes
from council.render.clean import one_line
from council.render.terminal import count, megabytes, ruling

QUIET = 30.0  # write a heartbeat after this many seconds without output


class PlainView:
    """Write one line per event. `now` in `tick` uses the clock of the entries."""

    def __init__(self, stream: TextIO) -> None:
        self.minutes = Minutes()
        self._stream = stream
        self._quiet_since: float | None = None
        self._fetched = -1  # tenths of the download already reported
        self._told: set[str] = set()  # messages that are written only once
        self._held: list[str] | None = None  # lines held back during a prompt to the user

    def catch_up(self, entries: Iterable[Entry]) -> None:
        """Apply earlier entries of a resumed run and write a one-line summary."""
        for entry in entries:
            self.minutes.hear(entry)
        absent = len(self.minutes.absences)
        missing = f" and {count(absent, 'absence')}" if absent else ""
        self._line(f"resuming: {count(len(self.minutes.statements), 'statement')}{missing} in the ledger")

    def hear(self, entry: Entry) -> None:
        self.minutes.hear(entry)
        if line := SAY.get(type(entry.event), _nothing)(self, entry.event):
            self._line(line)

    def tick(self, now: float) -> None:
        self.heartbeat(now)

    def heartbeat(self, now: float) -> None:
        """Write a line if none was written for 30 seconds."""
        if self._quiet_since is None:
            self._quiet_since = now
        elif now - self._quiet_since >= QUIET:
            self._line(_still(self.minutes, now))
            self._quiet_since = now

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Hold back the lines during a prompt to the user, then write them."""
        self._held = []
        try:
            yield
        finally:
            lines, self._held = self._held, None
            self._write("".join(lines))

    def close(self) -> None:
        self._stream.flush()

    def tenth(self, done: int, total: int) -> bool:
        """Return whether a download has reached another tenth."""
        tenths = done * 10 // total if total else 0
        changed, self._fetched = tenths != self._fetched, tenths
        return changed

    def news(self, what: str) -> bool:
        """Return whether this message was not written before."""
        seen, self._told = what in self._told, {*self._told, what}
        return not seen

    def place(self, key: str, seat: str) -> str:
        """Format phase and seat of an event that has only a key: `draft alpha`."""
        asked = self.minutes.prompts.get(key)
        return self.spot(asked.phase, seat) if asked else seat

    def spot(self, phase: str, seat: str) -> str:
        """Format phase and seat: `draft alpha`, or `judge judge-1 > explorer-2 look-1` for a private phase."""
        if not self.minutes.is_apart(phase):
            return f"{phase} {seat}"
        host = self.minutes.host(seat) or seat
        helper = seat.removeprefix(f"{host}-") + " " if seat != host else ""
        return f"{phase.partition('/')[0]} {host} > {helper}{phase.rpartition('/')[2]}"

    def _line(self, text: str) -> None:
        self._quiet_since = None
        name = f"council {self.minutes.run}" if self.minutes.run else "council"
        self._write(f"{name} {one_line(text, 400)}\n")

    def _write(self, text: str) -> None:
        if self._held is not None:
            self._held.append(text)
        else:
            self._stream.write(text)
            self._stream.flush()


def _still(minutes: Minutes, now: float) -> str:
    busy = [_busy(seat, now) for seat in minutes.everyone if seat.state in ("asked", "writing")]
    return f"still working: {', '.join(busy)}" if busy else "still working"


def _busy(seat: SeatMinutes, now: float) -> str:
    written = f", {count(seat.words, 'word')}" if seat.words else ""
    return f"{seat.name} in {seat.phase} for {max(0.0, now - seat.since):.0f}s{written}"


def _nothing(view: PlainView, event: Any) -> str:
    return ""


def _convened(view: PlainView, event: ev.Convened) -> str:
    return f"convened: {event.plan.get('protocol')}, {count(len(event.plan.get('seats', [])), 'seat')}"


def _resumed(view: PlainView, event: ev.Resumed) -> str:
    return "resumed"


def _phase(view: PlainView, event: ev.PhaseStarted) -> str:
    return "" if view.minutes.is_apart(event.phase) else f"{event.phase} begins"


def _phase_ended(view: PlainView, event: ev.PhaseEnded) -> str:
    phase = view.minutes.phases[event.phase]
    if view.minutes.is_apart(event.phase):
        return ""
    return f"{event.phase} done: {len(phase.said)} of {len(phase.asked)} answered"


def _asked(view: PlainView, event: ev.Asked) -> str:
    return f"{view.spot(event.phase, event.seat)} asked {event.member}"


def _attempted(view: PlainView, event: ev.Attempted) -> str:
    if not event.why:  # first attempt: the line before reported it
        return ""
    return f"{view.place(event.key, event.seat)} attempt {event.n} on {event.member}: {event.why}"


def _faulted(view: PlainView, event: ev.Faulted) -> str:
    if event.kind == "auth" and not view.news(f"auth {event.member.partition(':')[0]}"):
        return ""  # several seats may share the key
    line = f"{view.place(event.key, event.seat)} fault on {event.member}: {event.kind}: {event.detail}"
    return line if event.wait is None else f"{line}; next try in {event.wait:.1f}s"


def _stated(view: PlainView, event: ev.Stated) -> str:
    requested = view.minutes.seat(event.seat).model
    served = f" served by {event.served_by}" if requested and event.served_by not in ("", requested) else ""
    if view.minutes.is_taken_over(view.minutes.phases[event.phase].said[event.seat]):
        served = f" taken from {view.minutes.plan['fork']['run']}"
    measure = ruling(event.reply) or count(len(event.said.split()), "word")
    return f"{view.spot(event.phase, event.seat)} {event.state} {measure} {event.seconds:.1f}s{served}"


def _absent(view: PlainView, event: ev.WasAbsent) -> str:
    tries = f" after {count(event.attempts, 'attempt')}" if event.attempts else ""
    return f"{view.spot(event.phase, event.seat)} absent{tries}: {event.state}: {event.reason}"


def _looked_up(view: PlainView, event: ev.LookedUp) -> str:
    seat = event.key.split("/")[-2] if event.key.endswith("/look") else ""
    return (
        f"{view.spot(event.phase, seat) if seat else event.phase} looked up {_wanted(event.what)}: {event.found} found"
    )


def _wanted(what: str) -> str:
    """Format the look-up of an explorer; return any other text unchanged."""
    try:
        wanted = json.loads(what)
        files = [f"{one['path']}:{one['from']}-{one['to']}" if one["to"] else one["path"] for one in wanted["files"]]
        parts = [*files, *wanted["names"], *(f'"{pattern}"' for pattern in wanted["patterns"])]
    except (ValueError, TypeError, LookupError):
        return one_line(what, 160)
    return one_line(", ".join(map(str, parts)), 160)


def _noted(view: PlainView, event: ev.Noted) -> str:
    return f"note: {event.what}" + (f": {event.why}" if event.why else "")


def _fetching(view: PlainView, event: ev.Fetching) -> str:
    if not view.tenth(event.done, event.total):
        return ""
    percent = event.done * 100 // event.total if event.total else 0
    return f"fetching {event.what} {percent} % ({megabytes(event.done, event.total)})"


def _closed(view: PlainView, event: ev.Closed) -> str:
    stopped = f" ({event.stopped})" if event.stopped else ""
    return f"{event.status}{stopped} {count(event.calls.get('made', 0), 'call')} {view.minutes.seconds:.1f}s"


SAY: dict[type, Callable[[PlainView, Any], str]] = {
    ev.Convened: _convened, ev.Resumed: _resumed, ev.PhaseStarted: _phase, ev.PhaseEnded: _phase_ended,
    ev.Asked: _asked, ev.Attempted: _attempted, ev.Faulted: _faulted, ev.Stated: _stated,
    ev.WasAbsent: _absent, ev.LookedUp: _looked_up, ev.Noted: _noted, ev.Fetching: _fetching, ev.Closed: _closed,
}  # fmt: skip
