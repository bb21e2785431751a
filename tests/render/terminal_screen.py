"""A terminal for tests: a real pseudo-terminal, and the screen that its output draws.

The screen knows the sequences that Council writes, breaks lines at the width, and breaks them again after a resize, as
most terminals do.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
import threading
from typing import TextIO

SEQUENCE = re.compile(r"\x1b\[(?P<values>[?0-9;]*)(?P<final>[A-Za-z])|(?P<char>.)", re.DOTALL)


class Screen:
    """Rows of a terminal with its scrollback."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.lines = columns, lines
        self.rows: list[str] = [""]
        self.continues: list[bool] = [False]  # whether a row continues the one before it
        self.row = self.column = self.top = 0
        self.is_cursor_shown = True

    def feed(self, text: str) -> None:
        for found in SEQUENCE.finditer(text):
            if char := found["char"]:
                self._put(char)
            else:
                self._control(found["values"], found["final"])

    def _put(self, char: str) -> None:
        if char == "\n":
            self._next_row(False)
        elif char == "\r":
            self.column = 0
        elif char >= " ":
            if self.column == self.columns:
                self._next_row(True)
                self.column = 0
            row = self.rows[self.row].ljust(self.column)
            self.rows[self.row] = row[: self.column] + char + row[self.column + 1 :]
            self.column += 1

    def _next_row(self, continues: bool) -> None:
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append("")
            self.continues.append(continues)
        self.top = max(self.top, self.row - self.lines + 1)

    def _control(self, values: str, final: str) -> None:
        if final == "A":
            self.row = max(self.top, self.row - int(values or 1))
        elif final == "K":
            self.rows[self.row] = "" if values == "2" else self.rows[self.row][: self.column]
            self.continues[self.row] = False
        elif final == "J":
            self.rows[self.row] = self.rows[self.row][: self.column]
            del self.rows[self.row + 1 :], self.continues[self.row + 1 :]
        elif values == "?25":
            self.is_cursor_shown = final == "h"
        else:
            assert final == "m", f"unknown sequence: {values}{final}"

    def resize(self, columns: int, lines: int) -> None:
        """Break all lines again at the new width. The cursor stays at its text."""
        joined: list[str] = []
        for n, (row, continues) in enumerate(zip(self.rows, self.continues, strict=True)):
            if continues:
                joined[-1] += row
            else:
                joined.append(row)
            if n == self.row:
                place = len(joined) - 1
        self.rows, self.continues = [], []
        for n, line in enumerate(joined):
            if n == place:
                self.row = len(self.rows)
            parts = [line[start : start + columns] for start in range(0, len(line), columns)] or [""]
            self.rows += parts
            self.continues += [False, *[True] * (len(parts) - 1)]
        self.columns, self.lines = columns, lines
        self.top = max(0, self.row - lines + 1)

    @property
    def text(self) -> list[str]:
        """The rows with text, and those between them."""
        rows = [row.rstrip() for row in self.rows]
        while rows and not rows[-1]:
            rows.pop()
        return rows


class TestTerminal:
    """A pseudo-terminal; `stream` writes to it, `screen` shows the result."""

    __test__ = False

    def __init__(self, columns: int, lines: int) -> None:
        self.master, self.slave = pty.openpty()
        self.screen = Screen(columns, lines)
        self._set_size(columns, lines)
        self.stream: TextIO = os.fdopen(self.slave, "w", encoding="utf-8", closefd=False)
        self.raw = ""  # everything that was written
        self._written = b""
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self.master, 65536)
            except OSError:
                return
            with self._changed:
                self._written += piece
                self._changed.notify()

    def update(self) -> Screen:
        """Apply everything that was written."""
        termios.tcdrain(self.slave)
        marker = b"\x1b[0m\x1b[0m\x1b[0m"
        os.write(self.slave, marker)
        with self._changed:
            assert self._changed.wait_for(lambda: self._written.endswith(marker), 60)
            text, self._written = self._written.decode(), b""
        self.raw += text
        self.screen.feed(text)
        return self.screen

    def resize(self, columns: int, lines: int) -> None:
        self.update().resize(columns, lines)
        self._set_size(columns, lines)

    def close(self) -> None:
        self.stream.close()
        os.close(self.slave)
        self._reader.join(60)  # before another terminal gets the same file number
        os.close(self.master)
