"""`council` in a pseudo-terminal, with a pipe or the terminal for standard output."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
import threading
import time
from pathlib import Path
from typing import Any

from tests.acceptance.helpers import Result
from tests.fork_server import Process
from tests.render.terminal_screen import Screen


class PseudoTerminal:
    """A `council` process in a terminal: wait for text on the screen, then type."""

    def __init__(
        self, folder: Path, *arguments: str, columns: int = 150, lines: int = 40, stdout: bool = False,
        trusts: bool = True, umask: int | None = None, **env: Any,
    ) -> None:  # fmt: skip
        """Standard output is a pipe, or with `stdout` the terminal too."""
        self.master, slave = pty.openpty()
        self.columns, self.lines = columns, lines
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        streams = {0: slave, 2: slave} | ({1: slave} if stdout else {})
        self.process = Process(arguments, folder, terminal=streams, trusts=trusts, umask=umask, TERM="xterm", **env)
        os.close(slave)
        self.screen = ""
        self._seen = 0
        self._changed = threading.Condition()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self.master, 65536)
            except OSError:  # the process closed the terminal
                piece = b""
            with self._changed:
                self.screen += piece.decode(errors="replace")
                self._changed.notify_all()
            if not piece:
                return

    def wait_for(self, text: str, within: float = 60.0) -> str:
        """Wait until the text appears after the previous match. Return the text before it."""
        end = time.monotonic() + within
        with self._changed:
            while (at := self.screen.find(text, self._seen)) < 0:
                if time.monotonic() > end or (not self._changed.wait(1.0) and not self._reading.is_alive()):
                    raise TimeoutError(f"not shown: {text!r}\n{self.screen[self._seen :]}")
            shown, self._seen = self.screen[self._seen : at], at + len(text)
            return shown

    def type_lines(self, *lines: str) -> None:
        for line in lines:
            os.write(self.master, line.encode() + b"\n")

    def press(self, key: str) -> None:
        os.write(self.master, key.encode())

    @property
    def is_echoing(self) -> bool:
        """Whether typed keys are shown."""
        return bool(termios.tcgetattr(self.master)[3] & termios.ECHO)

    def draw(self) -> list[str]:
        """Return the rows that the output has drawn so far."""
        screen = Screen(self.columns, self.lines)
        screen.feed(self.screen)
        return screen.text

    def wait_for_exit(self) -> Result:
        out, _ = self.process.communicate(timeout=120)
        self._reading.join(10)
        os.close(self.master)
        return Result(self.process.exit_code, out, self.screen)
