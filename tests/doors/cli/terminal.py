"""Run a command on a real pseudo-terminal, read its output and type input."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fork_server import Process


class TerminalProcess:
    """`council`, or another program, with a terminal as standard input, output and error."""

    def __init__(self, *arguments: str, program: Sequence[str] = ()) -> None:
        self._master, slave = pty.openpty()
        self.shown = ""
        self.process = self._start_program(program, slave) if program else self._start_council(arguments, slave)
        os.close(slave)

    def _start_council(self, arguments: Sequence[str], slave: int) -> Process:
        streams = dict.fromkeys(range(3), slave)
        return Process(arguments, Path.cwd(), terminal=streams, trusts=False, TERM="dumb")

    def _start_program(self, program: Sequence[str], slave: int) -> subprocess.Popen[bytes]:
        env = {**os.environ, "TERM": "dumb"}
        return subprocess.Popen(program, env=env, preexec_fn=lambda: os.login_tty(slave), pass_fds=(slave,))

    def until(self, words: str, within: float = 60.0) -> str:
        """Read until the words are shown. Fail if the program ends or times out first."""
        end = time.monotonic() + within
        while words not in self.shown:
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"{words!r} was not shown:\n{self.shown}")
        return self.shown

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def end(self) -> int:
        """Read to the end and return the exit code."""
        while self._read(60.0):
            pass
        os.close(self._master)
        return self.process.wait(60)

    def _read(self, within: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0.0, within))
        try:
            data = os.read(self._master, 65536) if ready else b""
        except OSError:  # the program closed its side
            data = b""
        self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)
