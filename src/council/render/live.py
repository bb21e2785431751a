"""Live view for terminals: a table of the seats, what they write, and the text of the chair, drawn again in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TextIO

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from council import events as ev
from council.engine.degraded import join_names
from council.engine.layout import final_state, format_count, format_phase, format_ruling, label_state
from council.engine.minutes import Minutes, SeatMinutes, StatementMinutes
from council.events import TRANSIENT_EVENTS, Attempted, Entry
from council.money import format_usd
from council.render.markdown import TextPart
from council.render.screen import Line, LineEnd, ScreenBlock, SeatStream, Symbols
from council.render.terminal import Trouble, format_clock, format_megabytes, group_troubles
from council.render.text_layout import cut_words, last_blocks, share_rows, terminal_size, to_ascii, wrap
from council.text_cleanup import clean, single_line

BUSY_STATES = ("asked", "writing")
TINY_WIDTH = 56  # below this width the words column shows only a number
NARROW_WIDTH = 72  # below this width the member column is hidden
WIDE_WIDTH = 110  # from this width remarks and last lines are shown in the row of their seat, else on separate lines
MAX_WIDTH = 160  # of the view: wider rows are hard to follow
MAX_NAME_WIDTH = 24
INDENT = 5  # of lines below a seat
PHASE_GAP = "   "
MAX_NOTES = 3
MAX_REDRAWS = 3  # of one view, while the terminal is being resized
MAX_HEADER_ROWS, MAX_REMARK_ROWS = 2, 3
MIN_TEXT_ROWS = 2  # of the text of the chair: a blank line and its last line
SILENCE_SHOWN_S = 10.0  # from this many seconds on, a request without output shows its time limit


class LiveView:
    """Live table, redrawn on every stored event and on `tick`, whose `now` uses the clock of the entries."""

    def __init__(self, stream: TextIO, *, ascii: bool = False, color: bool = True, stays: bool = False) -> None:
        """The table is removed when it is closed; with `stays` its last state remains, without the failures."""
        self._stream = stream
        self.console = Console(file=stream, no_color=not color, highlight=False)
        self.minutes = Minutes()
        self.symbols = Symbols(ascii)
        self.now = 0.0
        self._streams: dict[str, SeatStream] = {}  # of the busy seats
        self._next_tries: dict[str, float] = {}  # when a seat is asked again
        self._drawn_text: tuple[tuple[str, int], list[Line]] = ("", 0), []  # the text of the chair at a width
        self._catch_up_note = ""
        self._stopping = False
        self._closed = False
        self._stays = stays
        self._hides_troubles = False
        self._suspended = 0  # prompts that use the terminal now
        self._block = ScreenBlock(self.console, stream)

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Stop drawing during a prompt to the user, then draw a new table below it."""
        self._block.release()
        self._suspended += 1
        try:
            yield
        finally:
            self._suspended -= 1

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

    def show_stopping(self) -> None:
        """Show that the run is being stopped."""
        self._stopping = True
        self._draw()

    def close(self) -> None:
        """Remove the table, or draw its last state, and release the terminal."""
        if self._closed:
            return
        self._streams.clear()
        self._stopping = False
        self._hides_troubles = self.minutes.status != "running"  # they are printed above the answer
        if self._stays:
            self._draw()
            self._block.release()
        else:
            self._block.erase(terminal_size(self._stream))
        self._closed = True

    def _apply(self, entry: Entry) -> None:
        self.minutes.on_event(entry)
        self.now = max(self.now, entry.at)
        event = entry.event
        if isinstance(event, ev.Asked):
            self._streams[event.seat] = SeatStream(bool(event.schema_name))
        elif isinstance(event, ev.Delta):
            self._streams.setdefault(event.seat, SeatStream()).add(event.text)
        elif isinstance(event, ev.Attempted | ev.Faulted):
            self._streams.setdefault(event.seat, SeatStream()).text = ""
            self._next_tries[event.seat] = entry.at + ((event.wait or 0.0) if isinstance(event, ev.Faulted) else 0.0)
        elif isinstance(event, ev.Stated | ev.WasAbsent):
            self._streams.pop(event.seat, None)

    def _draw(self) -> None:
        has_content = self.minutes.run or self.minutes.fetching
        if self._closed or self._suspended or not has_content or not self.console.is_terminal:
            return
        read_size = partial(terminal_size, self._stream)
        for _ in range(MAX_REDRAWS):
            columns, lines = size = read_size()
            self.console.size = (columns - 1, lines)  # a full line would move the cursor on some terminals
            if self._block.draw(self.build_lines(), size, read_size):
                return

    # Content

    @property
    def width(self) -> int:
        return min(self.console.width, MAX_WIDTH)

    def build_lines(self) -> list[Line]:
        """Build the lines of the view, at most as many as the terminal has."""
        if not self.minutes.run:
            return self._render_all(self._build_fetch())
        seats, troubles = self._listed_seats(), self._build_troubles()
        top = [*self._build_header(), *self._build_phases()]
        below = [*troubles, *self._build_fetch()]
        notes, text = self._build_notes(), self._build_stream()
        last_lines = {} if text else self._build_last_lines()
        rows = self._render(self._build_table(seats))
        helpers = [n for seat in seats for n in ([0, 1] if self.minutes.helpers(seat.name) else [0])]
        room = self.console.height - 1
        share = share_rows(room, len(top), len(rows), len(below), len(last_lines), len(notes), len(text))
        names = iter(seats)
        shown: list[Line] = []
        for row, is_helper in list(zip(rows, helpers, strict=True))[: share[1]]:
            shown.append(row)
            if not is_helper and (line := last_lines.get(next(names).name)) and share[3]:
                shown.append(self._render(line)[0])
                share[3] -= 1
        if share[1] < len(rows):
            hidden = format_count(len(rows) - share[1] + 1, "more row")
            shown[-1:] = self._render(self.symbols.format_text(f"  {hidden}: the terminal is too short", "dim"))
        return [
            *self._render_all(top[: share[0]]),
            *shown,
            *self._render_all([*below[: share[2]], *notes[: share[4]]]),
            *(text[:1] + text[1:][-(share[5] - 1) :] if share[5] >= MIN_TEXT_ROWS else ()),
        ]

    def _render(self, part: Table | Text | LineEnd) -> list[Line]:
        return self.console.render_lines(part, self.console.options.update_width(self.width), pad=False)

    def _render_all(self, parts: Iterable[Text]) -> list[Line]:
        return [line for part in parts for line in self._render(part)]

    def _build_header(self) -> list[Text]:
        """Return protocol, maximum price, cost so far, run and reason, on one or two lines."""
        plan = self.minutes.plan
        cost = plan.get("cost")
        worst = cost.get("worst") if cost else None
        parts = [
            plan.get("protocol", ""),
            f"at most {format_usd(worst)}" if worst else "",
            self._format_spent(),
            f"run {self.minutes.run}",
            self._catch_up_note,
            "stopping; Ctrl-C again ends at once" if self._stopping else "",
            plan.get("why") or "",
        ]
        lines = self._wrap(self.symbols.dot.join(part for part in parts if part), MAX_HEADER_ROWS, "dim")
        lines[0].stylize("bold not dim", 0, len(parts[0]))
        return lines

    def _wrap(self, text: str, rows: int, style: str, indent: int = 0) -> list[Text]:
        """Wrap a text at its words, on at most this many lines."""
        line = self.symbols.format_text(text).plain
        lines = wrap(" " * indent + line, self.width, indent)
        if len(lines) > rows:
            end = f"{lines[rows - 1]} {lines[rows].strip()}"
            lines[rows - 1 :] = [cut_words(end, self.width, self.symbols.ellipsis)]
        return [Text(one, style, no_wrap=True) for one in lines]

    def _format_spent(self) -> str:
        """Format the cost so far and the cap; empty if there is neither."""
        usd, cap = self.minutes.usd, self.minutes.cap
        of = "" if cap is None else f" of {format_usd(cap)}"
        return f"{format_usd(usd)}{of} spent" if usd or cap is not None else ""

    def _build_phases(self) -> list[Text]:
        """Lay out the phases from left to right, without splitting one across lines."""
        planned: dict[str, int] = {p["name"]: p.get("calls") or 0 for p in self.minutes.plan.get("phases", [])}
        lines: list[Text] = []
        for name in dict.fromkeys([*planned, *self.minutes.phases]):
            if self.minutes.is_private_phase(name):
                continue
            phase = self._format_phase(name, planned.get(name, 0))
            if lines and lines[-1].cell_len + len(PHASE_GAP) + phase.cell_len <= self.width:
                lines[-1] = lines[-1] + Text(PHASE_GAP) + phase
            else:
                lines.append(phase)
        return lines

    def _format_phase(self, name: str, calls: int) -> Text:
        signs, phase = self.symbols, self.minutes.phases.get(name)
        label = format_phase(name)
        if not phase:
            return signs.format_text(f"{signs.pending} {label}", "dim")
        said, absent = len(phase.said), len(phase.absent)
        total = max(len(phase.asked), said + absent, 0 if phase.ended else calls)
        spent = format_clock(self.minutes.phase_seconds(phase, self.now))
        missing = f" {signs.failed}{absent}" if absent else ""
        if phase.ended is not None or self.minutes.status != "running":
            sign, style = self._ended_phase_style(said, absent if phase.ended is not None else total - said)
            return signs.format_text(f"{sign} {label} {said}/{total} {spent}", style)
        bar = signs.format_bar(said, total)
        return signs.format_text(f"{signs.current} {label} {bar} {said}/{total}{missing} {spent}", "bold")

    def _ended_phase_style(self, answered: int, absent: int) -> tuple[str, str]:
        """Return symbol and style of an ended phase: done if all answered, failed if none did."""
        if not absent:
            return self.symbols.done, "green"
        return ("!", "yellow") if answered else (self.symbols.failed, "red")

    def _build_table(self, seats: list[SeatMinutes]) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(no_wrap=True)
        longest = max((len(seat.name) for seat in seats), default=0)
        table.add_column(no_wrap=True, min_width=min(MAX_NAME_WIDTH, longest))
        for justify in self._column_alignments():
            table.add_column(no_wrap=True, justify=justify)
        table.add_column(no_wrap=True, ratio=1)
        for seat in seats:
            table.add_row(*self._build_row(seat))
            if helpers := self.minutes.helpers(seat.name):
                table.add_row(*self._build_helper_row(helpers))
        return table

    def _listed_seats(self) -> list[SeatMinutes]:
        """Return the seats and the chair; helpers share one line below their seat."""
        return [seat for seat in self.minutes.all_seats if not self.minutes.host(seat.name)]

    def _build_helper_row(self, helpers: list[SeatMinutes]) -> list[Text]:
        done = sum(seat.ok for seat in helpers)
        absent = sum(not seat.ok and seat.state not in ("waiting", *BUSY_STATES) for seat in helpers)
        state = "working" if any(seat.state in BUSY_STATES for seat in helpers) else "done"
        lost = f", {absent} absent" if absent else ""
        return [
            Text(),
            self.symbols.format_text("explorers", "dim"),
            *([Text()] if self.width >= NARROW_WIDTH else []),
            self.symbols.format_text(state, "dim"),
            self.symbols.format_text(f"{done} of {len(helpers)}{lost}", "dim"),
        ]

    def _column_alignments(self) -> list[JustifyMethod]:
        """Return the alignment of the columns: member, state, words, rate, time, cost; some depend on the width."""
        left: list[JustifyMethod] = ["left"] * (2 if self.width >= NARROW_WIDTH else 1)
        right: list[JustifyMethod] = ["right"] * ((3 if self.width >= TINY_WIDTH else 2) + self._has_cost_column)
        return left + right

    def _build_row(self, seat: SeatMinutes) -> list[Text | LineEnd]:
        style = _seat_style(seat)
        return [
            Text("  ").append_text(self.symbols.format_text(self._seat_symbol(seat), style)),
            self._format_name(seat),
            *([self._format_member(seat)] if self.width >= NARROW_WIDTH else []),
            self.symbols.format_text(self._format_state(seat), style),
            self.symbols.format_text(self._format_words(seat)),
            *([self.symbols.format_text(self._format_rate(seat), "dim")] if self.width >= TINY_WIDTH else []),
            self.symbols.format_text(self._format_time(seat), "dim"),
            *([self.symbols.format_text(self._format_cost(seat), "dim")] if self._has_cost_column else []),
            self._format_remark(seat) if self.width >= WIDE_WIDTH else Text(),
        ]

    def _build_troubles(self) -> list[Text]:
        """Return one line per cause of trouble; on a wide terminal the row of a single seat shows it."""
        lines = []
        for names, text, style in group_troubles(filter(None, map(self._find_trouble, self._listed_seats()))):
            if len(names) > 1 or self.width < WIDE_WIDTH:
                lines += self._wrap(f"{join_names(names)} {text}", MAX_REMARK_ROWS, style, INDENT)
        return lines

    def _shares_trouble(self, seat: SeatMinutes) -> bool:
        """Return whether the trouble of a seat is shown below the table, for several seats."""
        groups = group_troubles(filter(None, map(self._find_trouble, self._listed_seats())))
        return any(seat.name in names and len(names) > 1 for names, _, _ in groups)

    def _find_trouble(self, seat: SeatMinutes) -> Trouble | None:
        """Return why a seat is absent, is asked again, or was replaced."""
        if self._hides_troubles:
            return None
        if seat.reason:
            phase = format_phase(seat.phase.rpartition("/")[2])
            return Trouble(seat.name, f"absent in {phase}: ", single_line(seat.reason), "red")
        if seat.state in BUSY_STATES and seat.trouble:
            event = next((event for event in reversed(self.minutes.troubles) if event.seat == seat.name), None)
            if isinstance(event, Attempted):
                return Trouble(seat.name, f"attempt {event.n} on {event.member}: ", event.why, "yellow")
            if event:
                wait = None if event.wait is None else max(0.0, self._next_tries.get(seat.name, self.now) - self.now)
                return Trouble(seat.name, "failed: ", f"{event.kind}: {single_line(event.detail)}", "yellow", wait)
        if seat.state not in BUSY_STATES and self._is_replaced(seat):
            return Trouble(seat.name, "", f"{seat.served_by} in place of {seat.model}", "yellow")
        return None

    def _build_last_lines(self) -> dict[str, LineEnd]:
        """Return the last line of each seat that is writing free text, cut to the width."""
        if self.width >= WIDE_WIDTH:
            return {}
        lines = {seat.name: self._format_last_line(seat) for seat in self._listed_seats()}
        return {name: LineEnd(line, self.symbols.ellipsis, INDENT) for name, line in lines.items() if line}

    def _format_last_line(self, seat: SeatMinutes) -> str:
        stream = self._streams.get(seat.name)
        line = single_line(stream.last_line, len(stream.text)) if stream and seat.state == "writing" else ""
        return to_ascii(line) if self.symbols.ascii else line

    def _build_stream(self) -> list[Line]:
        """Return the end of the text of the chair, or of the only seat of a phase, rendered, after a blank line."""
        speaker = self._find_speaker()
        if not speaker:
            return []
        from council.render.terminal_markdown import draw_part

        text = last_blocks(clean(self._streams[speaker.name].text), self.width * self.console.height)
        key = (text, self.width)
        if key != self._drawn_text[0]:
            self._drawn_text = key, draw_part(TextPart(text), self.console, self.width, self.symbols.ascii)
        return [[], *self._drawn_text[1]]

    def _find_speaker(self) -> SeatMinutes | None:
        """Return the chair, or the only seat of a phase, while it writes free text."""
        calls = {phase["name"]: phase.get("calls") for phase in self.minutes.plan.get("phases", [])}
        for seat in self._listed_seats():
            stream = self._streams.get(seat.name)
            if (seat is self.minutes.chair or calls.get(seat.phase) == 1) and stream and seat.state == "writing":
                return seat if stream.text.strip() and not stream.is_typed else None
        return None

    def _seat_symbol(self, seat: SeatMinutes) -> str:
        if seat.state == "waiting":
            return self.symbols.pending
        if seat.state in BUSY_STATES:
            return self.symbols.spinner_frame(self.now) if self.minutes.status == "running" else self.symbols.failed
        if self._is_exploring(seat):
            return self.symbols.current
        return self.symbols.done if seat.ok else self.symbols.failed

    def _format_state(self, seat: SeatMinutes) -> str:
        if self._is_exploring(seat):
            return "exploring"
        has_ended = self.minutes.status != "running" and seat.state in BUSY_STATES
        return label_state(final_state(seat.state, self.minutes.stopped) if has_ended else seat.state)

    def _is_exploring(self, seat: SeatMinutes) -> bool:
        """Return whether its last statement went to its own helpers, not to the council."""
        return seat.ok and self.minutes.is_private_phase(seat.phase)

    def _format_name(self, seat: SeatMinutes) -> Text:
        """Truncate the seat name to leave room for the row."""
        name = self.symbols.format_text(seat.name, "bold")
        name.truncate(max(MAX_NAME_WIDTH, self.width // 4), overflow=name.overflow)
        return name

    def _format_member(self, seat: SeatMinutes) -> Text:
        member = self.symbols.format_text(seat.served_by or seat.model, "yellow" if self._is_replaced(seat) else "dim")
        member.truncate(max(16, self.width // 4), overflow=member.overflow)
        return member

    def _format_words(self, seat: SeatMinutes) -> str:
        """Return the verdict of a judge that is done, else the number of words."""
        said = self._last_statement(seat) if seat.ok else None
        if found := format_ruling(said.reply if said else None):
            return found if self.width >= TINY_WIDTH else found.split()[0]
        if not seat.words:
            return ""
        return format_count(seat.words, "word") if self.width >= TINY_WIDTH else f"{seat.words:,}"

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
        return self.minutes.usd > 0 and self.width >= NARROW_WIDTH

    def _format_cost(self, seat: SeatMinutes) -> str:
        known = seat.usd or (seat.served_by or seat.model) in self.minutes.priced
        return format_usd(seat.usd) if known else "n/a"

    def _format_remark(self, seat: SeatMinutes) -> Text | LineEnd:
        """Return the trouble of a seat, what it writes, or the source of its statement."""
        trouble = self._find_trouble(seat)
        if trouble and not self._shares_trouble(seat):
            ((_, text, style),) = group_troubles([trouble])
            return self.symbols.format_text(text, style)
        if trouble and seat.state not in BUSY_STATES:
            return Text()
        if seat.state in BUSY_STATES:
            if self._is_silent(seat):
                return self.symbols.format_text("no output yet", "dim")
            is_shown_below = seat is self._find_speaker()
            return LineEnd("" if is_shown_below else self._format_last_line(seat), self.symbols.ellipsis)
        if self.minutes.is_from_fork(self._last_statement(seat)):
            return self.symbols.format_text(f"taken from {self.minutes.plan['fork']['run']}", "dim")
        place = f"in {format_phase(seat.phase.rpartition('/')[2])}" if seat.phase else ""
        return self.symbols.format_text(place, "dim")

    def _is_silent(self, seat: SeatMinutes) -> bool:
        """Return whether its request is open without output for a while. It may be thinking."""
        return seat.state in BUSY_STATES and not seat.words and self.now - seat.attempted >= SILENCE_SHOWN_S

    def _last_statement(self, seat: SeatMinutes) -> StatementMinutes | None:
        """Return its statement in the phase in which it was last asked."""
        phase = self.minutes.phases.get(seat.phase)
        return phase.said.get(seat.name) if phase else None

    def _is_replaced(self, seat: SeatMinutes) -> bool:
        return seat.served_by not in ("", seat.model) and not self.minutes.is_from_fork(self._last_statement(seat))

    def _build_fetch(self) -> list[Text]:
        fetch = self.minutes.fetching
        if not fetch:
            return []
        bar = self.symbols.format_bar(fetch.done, fetch.total, 24)
        size = format_megabytes(fetch.done, fetch.total)
        return [self.symbols.format_text(f"fetching {fetch.what} {bar} {size}", "cyan")]

    def _build_notes(self) -> list[Text]:
        notes = [f"{note.what}: {note.why}" if note.why else note.what for note in self.minutes.notes[-MAX_NOTES:]]
        return [self.symbols.format_text(f"{self.symbols.pending} {note}", "cyan") for note in notes]


def _seat_style(seat: SeatMinutes) -> str:
    if seat.state in ("waiting", *BUSY_STATES):
        return "dim" if seat.state == "waiting" else "cyan"
    return "green" if seat.ok else "red"
