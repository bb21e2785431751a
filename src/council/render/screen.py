"""Parts of the live view: symbols, the text of a seat, cut lines, and a block of lines drawn in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.segment import Segment, SegmentLines
from rich.text import Text

from council.render.text_layout import count_rows, cut_start, find_hidden, text_width, to_ascii
from council.text_cleanup import clean, single_line

BAR_WIDTH = 12
MAX_STREAM_CHARS = 60_000  # of an unfinished answer
MAX_LINE_CHARS = 2_000  # of its last line; more than any terminal shows

Line = list[Segment]


def strip_end(line: Line) -> Line:
    """Remove the spaces at the end of a line, so that it stays one row if the terminal becomes narrower."""
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        kept[-1] = Segment(kept[-1].text.rstrip(), kept[-1].style)
    return kept


class Symbols:
    """Symbols of the table, with ASCII replacements."""

    def __init__(self, ascii: bool) -> None:
        self.full, self.empty = ("#", "-") if ascii else ("█", "░")
        self.done, self.current, self.pending, self.failed = ("+", ">", ".", "x") if ascii else ("✓", "▸", "·", "✗")
        self.spinner_frames = "|/-\\" if ascii else "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
        self.dot = " - " if ascii else " · "
        self.ellipsis = "..." if ascii else "…"
        self.ascii = ascii

    def format_bar(self, done: int, total: int, width: int = BAR_WIDTH) -> str:
        filled = min(width, width * done // total) if total else 0
        return self.full * filled + self.empty * (width - filled)

    def spinner_frame(self, now: float) -> str:
        return self.spinner_frames[int(now * 8) % len(self.spinner_frames)]

    def format_text(self, value: str, style: str = "") -> Text:
        """Return cleaned text on one line, in ASCII if required."""
        line = to_ascii(single_line(value)) if self.ascii else single_line(value)
        return Text(line, style, no_wrap=True, overflow="crop" if self.ascii else "ellipsis")


class ScreenBlock:
    """The last lines on a terminal, drawn again in place. The cursor stays on the empty line below them.

    After a resize, the lines are found again by the number of rows that they take at the new width. Lines that a
    smaller terminal moves into its history return when it becomes larger, so they are removed then.
    """

    def __init__(self, console: Console, stream: IO[str]) -> None:
        self._console, self._stream = console, stream
        self._widths: list[int] = []  # of the lines on the screen
        self._hidden: list[int] = []  # of old lines above the screen
        self._shown = ""
        self._size = (0, 0)
        self._reflows = os.environ.get("TERM") != "linux" and "XTERM_VERSION" not in os.environ

    def draw(self, lines: Sequence[Line], size: tuple[int, int], read_size: Callable[[], tuple[int, int]]) -> bool:
        """Replace the lines on the screen. Draw nothing and return False if the terminal was resized meanwhile."""
        lines = [strip_end(line) for line in lines]
        with self._console.capture() as captured:
            self._console.print(SegmentLines(lines, new_lines=True), end="")
        text = captured.get()
        if (text, size) == (self._shown, self._size):
            return True
        if read_size() != size:
            return False
        columns, height = size
        above = [*self._hidden, *self._widths]
        if size != self._size:
            self._hidden = find_hidden(above, columns, height - 1, reflows=self._reflows)
        back = count_rows(above, columns, reflows=self._reflows)  # the cursor stops at the top of the screen
        up = f"\r\x1b[{back}A" if back else "\r"
        body = "".join(f"\x1b[2K{line}\n" for line in text.split("\n")[:-1])
        self._stream.write(f"\x1b[?25l{up}{body}\x1b[J")
        self._stream.flush()
        self._shown, self._size = text, size
        self._widths = [Segment.get_line_length(line) for line in lines]
        return True

    def erase(self, size: tuple[int, int]) -> None:
        """Remove the lines one by one and show the cursor: some terminals keep a cleared screen as history."""
        if self._widths:
            rows = count_rows(self._widths, size[0], reflows=self._reflows)
            self._stream.write("\r" + "\x1b[1A\x1b[2K" * rows)
            self._show_cursor()

    def release(self) -> None:
        """Leave the lines on the screen and show the cursor; the next lines are drawn below."""
        if self._widths:
            self._show_cursor()

    def _show_cursor(self) -> None:
        self._widths, self._hidden, self._shown = [], [], ""
        self._stream.write("\x1b[?25h")
        self._stream.flush()


@dataclass(slots=True)
class LineEnd:
    """A line that is cut at its start if it is too wide, because its end is new."""

    text: str
    mark: str
    indent: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        shown = cut_start(self.text, options.max_width - self.indent, self.mark)
        yield Text(" " * self.indent + shown, "dim italic", no_wrap=True)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width).clamp(1, text_width(self.text) + self.indent)


@dataclass(slots=True)
class SeatStream:
    """What a seat has written since it was last asked."""

    is_typed: bool = False  # the text is JSON: only its length is shown
    text: str = ""

    def add(self, piece: str) -> None:
        self.text = (self.text + piece)[-MAX_STREAM_CHARS:]

    @property
    def last_line(self) -> str:
        """The last line that has text; empty for a typed reply."""
        end = "" if self.is_typed else clean(self.text[-MAX_LINE_CHARS:])
        return next((line for line in reversed(end.split("\n")) if line.strip()), "")
