"""`council` in a pseudo-terminal, with a pipe for standard output."""

from __future__ import annotations

import fcntl
import os
import pty
import termios
import threading
import time
from pathlib import Path

from tests.acceptance.helpers import Result
from tests.fork_server import Process


class PseudoTerminal:
    """A `council` process in a terminal: wait for text on the screen, then type."""

    def __init__(self, folder: Path, *arguments: str, stdout: bool = False) -> None:
        """Standard output is a pipe, or with `stdout` the terminal too."""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, b"\x28\x00\x64\x00\x00\x00\x00\x00")  # 40 lines of 100 columns
        self.process = Process(
            arguments, folder, terminal={0: slave, 2: slave} | ({1: slave} if stdout else {}), TERM="xterm"
        )
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

    def wait_for_exit(self) -> Result:
        out, _ = self.process.communicate(timeout=120)
        self._reading.join(10)
        os.close(self.master)
        return Result(self.process.exit_code, out, self.screen)
