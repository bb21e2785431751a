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

from council.engine.layout import format_count, format_ruling
from council.engine.minutes import Minutes, SeatMinutes, StatementMinutes
from council.events import TRANSIENT_EVENTS, Attempted, Entry, Faulted
from council.money import format_usd
from council.render.terminal import format_clock, format_megabytes
from council.text_cleanup import single_line

BUSY_STATES = ("asked", "writing")
TINY_WIDTH = 56  # below this width the words column shows only a number
NARROW_WIDTH = 72  # below this width the member column is hidden
WIDE_WIDTH = 110  # from this width remarks are shown in the row of their seat, else on separate lines
BAR_WIDTH = 12
MAX_NAME_WIDTH = 24
PHASE_GAP = "   "
MAX_NOTES = 3
SILENCE_SHOWN_S = 10.0  # from this many seconds on, a request without output shows its time limit


class Symbols:
    """Symbols of the table, with ASCII replacements."""

    def __init__(self, ascii: bool) -> None:
        self.full, self.empty = ("#", "-") if ascii else ("█", "░")
        self.done, self.current, self.pending, self.failed = ("+", ">", ".", "x") if ascii else ("✓", "▸", "·", "✗")
        self.spinner_frames = "|/-\\" if ascii else "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
        self.dot = " - " if ascii else " · "
        self.ascii = ascii

    def format_bar(self, done: int, total: int, width: int = BAR_WIDTH) -> str:
        filled = min(width, width * done // total) if total else 0
        return self.full * filled + self.empty * (width - filled)

    def spinner_frame(self, now: float) -> str:
        return self.spinner_frames[int(now * 8) % len(self.spinner_frames)]

    def format_text(self, value: str, style: str = "") -> Text:
        """Return cleaned text on one line, in ASCII if required."""
        line = single_line(value)
        if self.ascii:
            line = line.encode("ascii", "replace").decode()
        return Text(line, style, no_wrap=True, overflow="crop" if self.ascii else "ellipsis")


class LiveView:
    """Live table, redrawn on every stored event and on `tick`, but not on deltas.

    `now` in `tick` uses the clock of the entries, so that a replay shows the seconds of the run.
    """

    def __init__(self, output: Console | TextIO, *, ascii: bool = False, color: bool = True) -> None:
        self.console = output if isinstance(output, Console) else Console(file=output, no_color=not color)
        self.minutes = Minutes()
        self.symbols = Symbols(ascii)
        self.now = 0.0
        self._catch_up_note = ""
        self._closed = False
        self._suspended = False
        self._live = self._create_live()

    def _create_live(self) -> Live:
        """Create the rich view. Standard output is not redirected, because it carries the answer."""
        return Live(console=self.console, get_renderable=self.build_view, auto_refresh=False, redirect_stdout=False)

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Stop drawing during a prompt to the user, then draw a new table below it."""
        if self._live.is_started:
            self._live.stop()
        self._suspended = True
        try:
            yield
        finally:
            self._suspended, self._live = False, self._create_live()

    def catch_up(self, entries: Iterable[Entry]) -> None:
        """Apply earlier entries and show their number in the header."""
        for entry in entries:
            self._apply(entry)
        self._catch_up_note = f"{format_count(len(self.minutes.statements), 'statement')} from the ledger"
        self._draw()

    def on_event(self, entry: Entry) -> None:
        self._apply(entry)
        if not isinstance(entry.event, TRANSIENT_EVENTS):
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

    def _apply(self, entry: Entry) -> None:
        self.minutes.on_event(entry)
        self.now = max(self.now, entry.at)

    def _draw(self) -> None:
        if self._closed or self._suspended or not (self.minutes.run or self.minutes.fetching):
            return  # nothing to show yet
        if not self._live.is_started:
            self._live.start()
        self._live.refresh()

    def build_view(self) -> RenderableType:
        """Build the current table."""
        parts: list[RenderableType] = []
        if self.minutes.run:
            parts += [self._build_header(), *self._build_phases(), self._build_table(), *self._build_remarks()]
        return Group(*parts, *self._build_fetch(), *self._build_notes())

    def _build_header(self) -> Text:
        plan = self.minutes.plan
        families = len({seat["vendor"] for seat in plan.get("seats", [])})
        seats = f"{format_count(len(plan.get('seats', [])), 'seat')}, {families} {'family' if families == 1 else 'families'}"
        parts = [
            plan.get("protocol", ""),
            seats,
            f"run {self.minutes.run}",
            self._format_spent(),
            self._catch_up_note,
            plan.get("why") or "",
        ]
        head = self.symbols.format_text(self.symbols.dot.join(part for part in parts if part), "dim")
        head.stylize("bold not dim", 0, len(parts[0]))
        return head

    def _format_spent(self) -> str:
        """Format the cost so far and the cap; empty if there is neither."""
        usd, cap = self.minutes.usd, self.minutes.cap
        of = "" if cap is None else f" of {format_usd(cap)}"
        return f"{format_usd(usd)}{of}" if usd or cap is not None else ""

    def _build_phases(self) -> list[Text]:
        """Lay out the phases from left to right, without splitting one across lines."""
        planned: dict[str, int] = {p["name"]: p.get("calls") or 0 for p in self.minutes.plan.get("phases", [])}
        lines: list[Text] = []
        for name in dict.fromkeys([*planned, *self.minutes.phases]):
            if self.minutes.is_private_phase(name):
                continue
            phase = self._format_phase(name, planned.get(name, 0))
            if lines and lines[-1].cell_len + len(PHASE_GAP) + phase.cell_len <= self.console.width:
                lines[-1] = lines[-1] + Text(PHASE_GAP) + phase
            else:
                lines.append(phase)
        return lines

    def _format_phase(self, name: str, calls: int) -> Text:
        signs, phase = self.symbols, self.minutes.phases.get(name)
        if not phase:
            return signs.format_text(f"{signs.pending} {name}", "dim")
        said, absent = len(phase.said), len(phase.absent)
        total = max(len(phase.asked), said + absent, 0 if phase.ended else calls)
        spent = format_clock((phase.ended or self.now) - phase.started)
        missing = f" {signs.failed}{absent}" if absent else ""
        if phase.ended is not None:
            sign, style = self._ended_phase_style(said, absent)
            return signs.format_text(f"{sign} {name} {said}/{total} {spent}", style)
        return signs.format_text(
            f"{signs.current} {name} {signs.format_bar(said, total)} {said}/{total}{missing} {spent}", "bold"
        )

    def _ended_phase_style(self, answered: int, absent: int) -> tuple[str, str]:
        """Return symbol and style of an ended phase: done if all answered, failed if none did."""
        if not absent:
            return self.symbols.done, "green"
        return ("!", "yellow") if answered else (self.symbols.failed, "red")

    def _build_table(self) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(no_wrap=True)
        table.add_column(
            no_wrap=True,
            min_width=min(MAX_NAME_WIDTH, max((len(seat.name) for seat in self._listed_seats()), default=0)),
        )
        for justify in self._column_alignments():
            table.add_column(no_wrap=True, justify=justify)
        table.add_column(no_wrap=True, ratio=1)
        for seat in self._listed_seats():
            table.add_row(*self._build_row(seat))
            if helpers := self.minutes.helpers(seat.name):
                table.add_row(*self._build_helper_row(helpers))
        return table

    def _listed_seats(self) -> list[SeatMinutes]:
        """Return the seats and the chair; helpers share one line below their seat."""
        return [seat for seat in self.minutes.all_seats if not self.minutes.host(seat.name)]

    def _build_helper_row(self, helpers: list[SeatMinutes]) -> list[Text]:
        done, absent = sum(seat.ok for seat in helpers), sum(_is_absent(seat) for seat in helpers)
        state = "working" if any(seat.state in BUSY_STATES for seat in helpers) else "done"
        lost = f", {absent} absent" if absent else ""
        return [
            Text(),
            self.symbols.format_text("explorers", "dim"),
            *([Text()] if self.console.width >= NARROW_WIDTH else []),
            self.symbols.format_text(state, "dim"),
            self.symbols.format_text(f"{done} of {len(helpers)}{lost}", "dim"),
        ]

    def _column_alignments(self) -> list[JustifyMethod]:
        """Return the alignment of the columns: member, state, words, rate, time, cost; some depend on the width."""
        left: list[JustifyMethod] = ["left"] * (2 if self.console.width >= NARROW_WIDTH else 1)
        right: list[JustifyMethod] = ["right"] * (
            (3 if self.console.width >= TINY_WIDTH else 2) + self._has_cost_column
        )
        return left + right

    def _build_row(self, seat: SeatMinutes) -> list[Text]:
        style = _seat_style(seat)
        return [
            Text("  ").append_text(self.symbols.format_text(self._seat_symbol(seat), style)),
            self._format_name(seat),
            *([self._format_member(seat)] if self.console.width >= NARROW_WIDTH else []),
            self.symbols.format_text("exploring" if self._is_exploring(seat) else seat.state, style),
            self.symbols.format_text(self._format_words(seat)),
            *([self.symbols.format_text(self._format_rate(seat), "dim")] if self.console.width >= TINY_WIDTH else []),
            self.symbols.format_text(self._format_time(seat), "dim"),
            *([self.symbols.format_text(self._format_cost(seat), "dim")] if self._has_cost_column else []),
            self._format_remark(seat) if self.console.width >= WIDE_WIDTH else Text(),
        ]

    def _build_remarks(self) -> list[Padding]:
        """Return the remarks of seats with trouble, if the rows are too narrow for them."""
        if self.console.width >= WIDE_WIDTH:
            return []
        troubled = [seat for seat in self._listed_seats() if _has_trouble(seat) or self._is_replaced(seat)]
        return [Padding(Text(f"{seat.name} ") + self._format_remark(seat), (0, 0, 0, 5)) for seat in troubled]

    def _seat_symbol(self, seat: SeatMinutes) -> str:
        if seat.state == "waiting":
            return self.symbols.pending
        if seat.state in BUSY_STATES:
            return self.symbols.spinner_frame(self.now)
        if self._is_exploring(seat):
            return self.symbols.current
        return self.symbols.done if seat.ok else self.symbols.failed

    def _is_exploring(self, seat: SeatMinutes) -> bool:
        """Return whether its last statement went to its own helpers, not to the council."""
        return seat.ok and self.minutes.is_private_phase(seat.phase)

    def _format_name(self, seat: SeatMinutes) -> Text:
        """Truncate the seat name to leave room for the row."""
        name = self.symbols.format_text(seat.name, "bold")
        name.truncate(max(MAX_NAME_WIDTH, self.console.width // 4), overflow=name.overflow)
        return name

    def _format_member(self, seat: SeatMinutes) -> Text:
        member = self.symbols.format_text(seat.served_by or seat.model, "yellow" if self._is_replaced(seat) else "dim")
        member.truncate(max(16, self.console.width // 4), overflow=member.overflow)
        return member

    def _format_words(self, seat: SeatMinutes) -> str:
        """Return the verdict of a judge that is done, else the number of words."""
        said = self._last_statement(seat) if seat.ok else None
        if found := format_ruling(said.reply if said else None):
            return found if self.console.width >= TINY_WIDTH else found.split()[0]
        if not seat.words:
            return ""
        return format_count(seat.words, "word") if self.console.width >= TINY_WIDTH else f"{seat.words:,}"

    def _format_rate(self, seat: SeatMinutes) -> str:
        spent = self.now - seat.since
        return f"{seat.words / spent:.0f}/s" if seat.state == "writing" and spent >= 1 else ""

    def _format_time(self, seat: SeatMinutes) -> str:
        if self._is_silent(seat) and seat.limit is not None:
            return f"{format_clock(self.now - seat.attempted)} of {format_clock(seat.limit)}"
        if seat.state in BUSY_STATES:
            return format_clock(self.now - seat.since)
        said = self._last_statement(seat)
        return format_clock(said.seconds) if said else ""

    @property
    def _has_cost_column(self) -> bool:
        """Whether there is a cost, and room to show it."""
        return self.minutes.usd > 0 and self.console.width >= NARROW_WIDTH

    def _format_cost(self, seat: SeatMinutes) -> str:
        known = seat.usd or (seat.served_by or seat.model) in self.minutes.priced
        return format_usd(seat.usd) if known else "n/a"

    def _format_remark(self, seat: SeatMinutes) -> Text:
        """Return the trouble of a seat, or the source of its statement."""
        if seat.reason:
            return self.symbols.format_text(f"absent in {seat.phase.rpartition('/')[2]}: {seat.reason}", "red")
        if seat.state in BUSY_STATES:
            waiting = "no output yet" if self._is_silent(seat) else ""
            trouble = self._format_trouble(seat)
            return self.symbols.format_text(trouble or waiting, "yellow" if trouble else "dim")
        if self._is_replaced(seat):
            return self.symbols.format_text(f"{seat.served_by} in place of {seat.model}", "yellow")
        if self.minutes.is_from_fork(self._last_statement(seat)):
            return self.symbols.format_text(f"taken from {self.minutes.plan['fork']['run']}", "dim")
        return self.symbols.format_text(f"in {seat.phase.rpartition('/')[2]}" if seat.phase else "", "dim")

    def _is_silent(self, seat: SeatMinutes) -> bool:
        """Return whether its request is open without output for a while. It may be thinking."""
        return seat.state in BUSY_STATES and not seat.words and self.now - seat.attempted >= SILENCE_SHOWN_S

    def _last_statement(self, seat: SeatMinutes) -> StatementMinutes | None:
        """Return its statement in the phase in which it was last asked."""
        phase = self.minutes.phases.get(seat.phase)
        return phase.said.get(seat.name) if phase else None

    def _is_replaced(self, seat: SeatMinutes) -> bool:
        return seat.served_by not in ("", seat.model) and not self.minutes.is_from_fork(self._last_statement(seat))

    def _format_trouble(self, seat: SeatMinutes) -> str:
        last = next((event for event in reversed(self.minutes.troubles) if event.seat == seat.name), None)
        return _format_attempt_event(last) if last and seat.trouble else ""

    def _build_fetch(self) -> list[Text]:
        fetch = self.minutes.fetching
        if not fetch:
            return []
        bar = self.symbols.format_bar(fetch.done, fetch.total, 24)
        return [
            self.symbols.format_text(f"fetching {fetch.what} {bar} {format_megabytes(fetch.done, fetch.total)}", "cyan")
        ]

    def _build_notes(self) -> list[Text]:
        notes = [f"{note.what}: {note.why}" if note.why else note.what for note in self.minutes.notes[-MAX_NOTES:]]
        return [self.symbols.format_text(f"{self.symbols.pending} {note}", "cyan") for note in notes]


def _format_attempt_event(event: Faulted | Attempted) -> str:
    if isinstance(event, Attempted):
        return f"attempt {event.n} on {event.member}: {event.why}"
    wait = f"next try in {event.wait:.0f} s after " if event.wait is not None else "failed: "
    return f"{wait}{event.kind}: {event.detail}"


def _is_absent(seat: SeatMinutes) -> bool:
    return not seat.ok and seat.state not in ("waiting", *BUSY_STATES)


def _seat_style(seat: SeatMinutes) -> str:
    if seat.state in ("waiting", *BUSY_STATES):
        return "dim" if seat.state == "waiting" else "cyan"
    return "green" if seat.ok else "red"


def _has_trouble(seat: SeatMinutes) -> bool:
    return bool(seat.reason or (seat.trouble and seat.state in BUSY_STATES))
