"""The local worker as the system sees it: its processes, and how they are waited for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.acceptance.helpers import until


def workers(data: Path) -> list[int]:
    """The processes that work on the runs of a data folder."""
    return [pid for pid in _processes() if _works_on(pid, data)]


def _processes() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _works_on(pid: int, data: Path) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        env = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return command[1:4] == [b"-m", b"council", b"worker"] and f"COUNCIL_DATA={data}".encode() in env


def killed(data: Path) -> None:
    """kill -9 of the one worker there is, and wait until it is gone."""
    (pid,) = workers(data)
    os.kill(pid, signal.SIGKILL)
    gone(data)


def gone(data: Path) -> None:
    until(lambda: not workers(data), "the worker went away")


def swept(data: Path) -> list[int]:
    """End whatever a test left behind; which that was."""
    left = workers(data)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left
