"""Live progress table for terminals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from council.events import PASSING, Attempted, Entry, Faulted
from council.minutes import Minutes, Said, SeatMinutes
from council.money import shown
from council.render.clean import one_line
from council.render.terminal import clock, count, megabytes, ruling

BUSY = ("asked", "writing")
TINY = 56  # below this width the words column shows only a number
NARROW = 72  # below this width the member column is hidden
WIDE = 110  # from this width remarks are shown in the row of their seat, else on separate lines
BAR = 12
LONGEST_NAME = 24
GAP = "   "
NOTES = 3


class Signs:
    """Symbols of the table, with ASCII replacements."""

    def __init__(self, ascii: bool) -> None:
        self.full, self.empty = ("#", "-") if ascii else ("█", "░")
        self.done, self.now, self.next, self.gone = ("+", ">", ".", "x") if ascii else ("✓", "▸", "·", "✗")
        self.spin = "|/-\\" if ascii else "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
        self.dot = " - " if ascii else " · "
        self.ascii = ascii

    def bar(self, done: int, total: int, width: int = BAR) -> str:
        filled = min(width, width * done // total) if total else 0
        return self.full * filled + self.empty * (width - filled)

    def spinner(self, now: float) -> str:
        return self.spin[int(now * 8) % len(self.spin)]

    def text(self, value: str, style: str = "") -> Text:
        """Return cleaned text on one line, in ASCII if required."""
        line = one_line(value)
        if self.ascii:
            line = line.encode("ascii", "replace").decode()
        return Text(line, style, no_wrap=True, overflow="crop" if self.ascii else "ellipsis")


class LiveView:
    """Live table, redrawn on every stored event and on `tick`, but not on deltas.

    `now` in `tick` uses the clock of the entries, so that a replay shows the seconds of the run.
    """

    def __init__(self, where: Console | TextIO, *, ascii: bool = False, color: bool = True) -> None:
        self.console = where if isinstance(where, Console) else Console(file=where, no_color=not color)
        self.minutes = Minutes()
        self.signs = Signs(ascii)
        self.now = 0.0
        self._earlier = ""
        self._closed = False
        self._aside = False
        self._live = self._begun()

    def _begun(self) -> Live:
        """Create the rich view. Standard output is not redirected, because it carries the answer."""
        return Live(console=self.console, get_renderable=self.picture, auto_refresh=False, redirect_stdout=False)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Stop drawing during a prompt to the user, then draw a new table below it."""
        if self._live.is_started:
            self._live.stop()
        self._aside = True
        try:
            yield
        finally:
            self._aside, self._live = False, self._begun()

    def catch_up(self, entries: Iterable[Entry]) -> None:
        """Apply earlier entries and show their number in the header."""
        for entry in entries:
            self._take(entry)
        self._earlier = f"{count(len(self.minutes.statements), 'statement')} from the ledger"
        self._draw()

    def hear(self, entry: Entry) -> None:
        self._take(entry)
        if not isinstance(entry.event, PASSING):
            self._draw()

    def tick(self, now: float) -> None:
        self.now = max(self.now, now)
        self._draw()

    def close(self) -> None:
        """Draw the final table and release the terminal."""
        if self._closed:
            return
        self._draw()
        self._live.stop()
        self._closed = True

    def _take(self, entry: Entry) -> None:
        self.minutes.hear(entry)
        self.now = max(self.now, entry.at)

    def _draw(self) -> None:
        if self._closed or self._aside or not (self.minutes.run or self.minutes.fetching):
            return  # nothing to show yet
        if not self._live.is_started:
            self._live.start()
        self._live.refresh()

    def picture(self) -> RenderableType:
        """Build the current table."""
        parts: list[RenderableType] = []
        if self.minutes.run:
            parts += [self._head(), *self._phases(), self._table(), *self._remarks()]
        return Group(*parts, *self._fetch(), *self._notes())

    def _head(self) -> Text:
        plan = self.minutes.plan
        families = len({seat["vendor"] for seat in plan.get("seats", [])})
        seats = f"{count(len(plan.get('seats', [])), 'seat')}, {families} {'family' if families == 1 else 'families'}"
        parts = [
            plan.get("protocol", ""),
            seats,
            f"run {self.minutes.run}",
            self._spent(),
            self._earlier,
            plan.get("why") or "",
        ]
        head = self.signs.text(self.signs.dot.join(part for part in parts if part), "dim")
        head.stylize("bold not dim", 0, len(parts[0]))
        return head

    def _spent(self) -> str:
        """Format the cost so far and the cap; empty if there is neither."""
        usd, cap = self.minutes.usd, self.minutes.cap
        of = "" if cap is None else f" of {shown(cap)}"
        return f"{shown(usd)}{of}" if usd or cap is not None else ""

    def _phases(self) -> list[Text]:
        """Lay out the phases from left to right, without splitting one across lines."""
        planned: dict[str, int] = {p["name"]: p.get("calls") or 0 for p in self.minutes.plan.get("phases", [])}
        lines: list[Text] = []
        for name in dict.fromkeys([*planned, *self.minutes.phases]):
            if self.minutes.is_apart(name):
                continue
            phase = self._phase(name, planned.get(name, 0))
            if lines and lines[-1].cell_len + len(GAP) + phase.cell_len <= self.console.width:
                lines[-1] = lines[-1] + Text(GAP) + phase
            else:
                lines.append(phase)
        return lines

    def _phase(self, name: str, calls: int) -> Text:
        signs, phase = self.signs, self.minutes.phases.get(name)
        if not phase:
            return signs.text(f"{signs.next} {name}", "dim")
        said, absent = len(phase.said), len(phase.absent)
        total = max(len(phase.asked), said + absent, 0 if phase.ended else calls)
        spent = clock((phase.ended or self.now) - phase.started)
        missing = f" {signs.gone}{absent}" if absent else ""
        if phase.ended is not None:
            sign, style = self._ended(said, absent)
            return signs.text(f"{sign} {name} {said}/{total} {spent}", style)
        return signs.text(f"{signs.now} {name} {signs.bar(said, total)} {said}/{total}{missing} {spent}", "bold")

    def _ended(self, said: int, gone: int) -> tuple[str, str]:
        """Return symbol and style of an ended phase: done if all answered, failed if none did."""
        if not gone:
            return self.signs.done, "green"
        return ("!", "yellow") if said else (self.signs.gone, "red")

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(no_wrap=True)
        table.add_column(
            no_wrap=True, min_width=min(LONGEST_NAME, max((len(seat.name) for seat in self._seated()), default=0))
        )
        for justify in self._columns():
            table.add_column(no_wrap=True, justify=justify)
        table.add_column(no_wrap=True, ratio=1)
        for seat in self._seated():
            table.add_row(*self._row(seat))
            if helpers := self.minutes.helpers(seat.name):
                table.add_row(*self._helped(helpers))
        return table

    def _seated(self) -> list[SeatMinutes]:
        """Return the seats and the chair; helpers share one line below their seat."""
        return [seat for seat in self.minutes.everyone if not self.minutes.host(seat.name)]

    def _helped(self, helpers: list[SeatMinutes]) -> list[Text]:
        done, absent = sum(seat.ok for seat in helpers), sum(_is_gone(seat) for seat in helpers)
        state = "working" if any(seat.state in BUSY for seat in helpers) else "done"
        lost = f", {absent} absent" if absent else ""
        return [
            Text(),
            self.signs.text("explorers", "dim"),
            *([Text()] if self.console.width >= NARROW else []),
            self.signs.text(state, "dim"),
            self.signs.text(f"{done} of {len(helpers)}{lost}", "dim"),
        ]

    def _columns(self) -> list[JustifyMethod]:
        """Return the alignment of the columns: member, state, words, rate, time, cost; some depend on the width."""
        left: list[JustifyMethod] = ["left"] * (2 if self.console.width >= NARROW else 1)
        right: list[JustifyMethod] = ["right"] * ((3 if self.console.width >= TINY else 2) + self._billing)
        return left + right

    def _row(self, seat: SeatMinutes) -> list[Text]:
        style = _style(seat)
        return [
            Text("  ").append_text(self.signs.text(self._sign(seat), style)),
            self._name(seat),
            *([self._member(seat)] if self.console.width >= NARROW else []),
            self.signs.text("exploring" if self._explores(seat) else seat.state, style),
            self.signs.text(self._words(seat)),
            *([self.signs.text(self._rate(seat), "dim")] if self.console.width >= TINY else []),
            self.signs.text(self._time(seat), "dim"),
            *([self.signs.text(self._cost(seat), "dim")] if self._billing else []),
            self._remark(seat) if self.console.width >= WIDE else Text(),
        ]

    def _remarks(self) -> list[Padding]:
        """Return the remarks of seats with trouble, if the rows are too narrow for them."""
        if self.console.width >= WIDE:
            return []
        troubled = [seat for seat in self._seated() if _troubled(seat) or self._replaced(seat)]
        return [Padding(Text(f"{seat.name} ") + self._remark(seat), (0, 0, 0, 5)) for seat in troubled]

    def _sign(self, seat: SeatMinutes) -> str:
        if seat.state == "waiting":
            return self.signs.next
        if seat.state in BUSY:
            return self.signs.spinner(self.now)
        if self._explores(seat):
            return self.signs.now
        return self.signs.done if seat.ok else self.signs.gone

    def _explores(self, seat: SeatMinutes) -> bool:
        """Return whether its last statement went to its own helpers, not to the council."""
        return seat.ok and self.minutes.is_apart(seat.phase)

    def _name(self, seat: SeatMinutes) -> Text:
        """Truncate the seat name to leave room for the row."""
        name = self.signs.text(seat.name, "bold")
        name.truncate(max(LONGEST_NAME, self.console.width // 4), overflow=name.overflow)
        return name

    def _member(self, seat: SeatMinutes) -> Text:
        member = self.signs.text(seat.served_by or seat.model, "yellow" if self._replaced(seat) else "dim")
        member.truncate(max(16, self.console.width // 4), overflow=member.overflow)
        return member

    def _words(self, seat: SeatMinutes) -> str:
        """Return the verdict of a judge that is done, else the number of words."""
        said = self._said(seat) if seat.ok else None
        if found := ruling(said.reply if said else None):
            return found if self.console.width >= TINY else found.split()[0]
        if not seat.words:
            return ""
        return count(seat.words, "word") if self.console.width >= TINY else f"{seat.words:,}"

    def _rate(self, seat: SeatMinutes) -> str:
        spent = self.now - seat.since
        return f"{seat.words / spent:.0f}/s" if seat.state == "writing" and spent >= 1 else ""

    def _time(self, seat: SeatMinutes) -> str:
        if seat.state in BUSY:
            return clock(self.now - seat.since)
        said = self._said(seat)
        return clock(said.seconds) if said else ""

    @property
    def _billing(self) -> bool:
        """Whether there is a cost, and room to show it."""
        return self.minutes.usd > 0 and self.console.width >= NARROW

    def _cost(self, seat: SeatMinutes) -> str:
        known = seat.usd or (seat.served_by or seat.model) in self.minutes.priced
        return shown(seat.usd) if known else "n/a"

    def _remark(self, seat: SeatMinutes) -> Text:
        """Return the trouble of a seat, or the source of its statement."""
        if seat.reason:
            return self.signs.text(f"absent in {seat.phase.rpartition('/')[2]}: {seat.reason}", "red")
        if seat.state in BUSY:
            return self.signs.text(self._trouble(seat), "yellow")
        if self._replaced(seat):
            return self.signs.text(f"{seat.served_by} in place of {seat.model}", "yellow")
        if self.minutes.is_taken_over(self._said(seat)):
            return self.signs.text(f"taken from {self.minutes.plan['fork']['run']}", "dim")
        return self.signs.text(f"in {seat.phase.rpartition('/')[2]}" if seat.phase else "", "dim")

    def _said(self, seat: SeatMinutes) -> Said | None:
        """Return its statement in the phase in which it was last asked."""
        phase = self.minutes.phases.get(seat.phase)
        return phase.said.get(seat.name) if phase else None

    def _replaced(self, seat: SeatMinutes) -> bool:
        return seat.served_by not in ("", seat.model) and not self.minutes.is_taken_over(self._said(seat))

    def _trouble(self, seat: SeatMinutes) -> str:
        last = next((event for event in reversed(self.minutes.troubles) if event.seat == seat.name), None)
        return _told(last) if last and seat.trouble else ""

    def _fetch(self) -> list[Text]:
        fetch = self.minutes.fetching
        if not fetch:
            return []
        bar = self.signs.bar(fetch.done, fetch.total, 24)
        return [self.signs.text(f"fetching {fetch.what} {bar} {megabytes(fetch.done, fetch.total)}", "cyan")]

    def _notes(self) -> list[Text]:
        notes = [f"{note.what}: {note.why}" if note.why else note.what for note in self.minutes.notes[-NOTES:]]
        return [self.signs.text(f"{self.signs.next} {note}", "cyan") for note in notes]


def _told(event: Faulted | Attempted) -> str:
    if isinstance(event, Attempted):
        return f"attempt {event.n} on {event.member}: {event.why}"
    wait = f"next try in {event.wait:.0f} s after " if event.wait is not None else "failed: "
    return f"{wait}{event.kind}: {event.detail}"


def _is_gone(seat: SeatMinutes) -> bool:
    return not seat.ok and seat.state not in ("waiting", *BUSY)


def _style(seat: SeatMinutes) -> str:
    if seat.state in ("waiting", *BUSY):
        return "dim" if seat.state == "waiting" else "cyan"
    return "green" if seat.ok else "red"


def _troubled(seat: SeatMinutes) -> bool:
    return bool(seat.reason or (seat.trouble and seat.state in BUSY))
