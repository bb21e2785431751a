"""File locks of runs, the processes that hold them, and processes that are suspended while they hold the database.

The kernel releases a lock when its process dies, also after kill -9. A suspended process keeps its locks.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from council.errors import wording

LOCK_ATTEMPTS = 6
LOCK_RETRY_S = 0.01  # seconds between attempts
CONTINUE_AFTER_S = 0.2  # seconds until a suspended holder of the database is continued
NOTICE_AFTER_S = 2.0
LOCK_TABLE = Path("/proc/locks")  # the file locks of all processes, on Linux
STOPPED_STATE = "T"
ENDED_STATES = ("Z", "X")  # until its parent has read its exit code
R = TypeVar("R")
OnWait = Callable[[list["LockOwner"]], object]


# Processes


@dataclass(frozen=True, slots=True)
class LockOwner:
    """Process that holds a lock. Its start time tells it from a later process with the same id."""

    pid: int
    started: str
    run: str = ""

    @property
    def is_alive(self) -> bool:
        found = _read_process(self.pid)
        return found is not None and found[1] == self.started and found[0] not in ENDED_STATES

    @property
    def is_suspended(self) -> bool:
        """Return whether the process is stopped by a signal, such as Ctrl-Z."""
        return _read_process(self.pid) == (STOPPED_STATE, self.started)

    def send(self, number: signal.Signals) -> bool:
        """Send a signal. Return False if the process has ended, or belongs to another user."""
        if not self.is_alive:
            return False
        try:
            os.kill(self.pid, number)
        except OSError:
            return False
        return True

    def __str__(self) -> str:
        return f"process {self.pid}{f' (run {self.run})' if self.run else ''}"


def _read_process(pid: int) -> tuple[str, str] | None:
    """Return the state and the start time of a process, or None if there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return None if Path("/proc/self/stat").exists() else _ask_ps(pid)


def _ask_ps(pid: int) -> tuple[str, str] | None:
    command = ["ps", "-o", "state=,lstart=", "-p", str(pid)]
    try:
        state, _, started = subprocess.run(command, capture_output=True, text=True).stdout.strip().partition(" ")
    except OSError:
        return None
    return (state[:1], started.strip()) if state else None


def make_owner(pid: int, run: str = "") -> LockOwner | None:
    """Return a running process, or None if it has ended."""
    found = _read_process(pid)
    return LockOwner(pid, found[1], run) if found else None


# Locks of runs


def lock_handle(handle: int) -> bool:
    """Lock a run, in several attempts: `is_locked` in another process holds the lock for a moment."""
    return _try_lock(handle, fcntl.LOCK_EX, LOCK_ATTEMPTS)


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def read_owner(path: Path) -> LockOwner | None:
    """Return the process that holds a run's lock, or None if none does or its name is unknown."""
    if not is_locked(path):
        return None
    try:
        return make_owner(int(path.read_text(encoding="utf-8")), path.stem)
    except (OSError, ValueError):
        return None


def _try_lock(handle: int, kind: int, tries: int = 1) -> bool:
    for tries_left in range(tries - 1, -1, -1):
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if tries_left:
                time.sleep(LOCK_RETRY_S)
    return False


# Holders of the database


def find_holders(database: Path) -> list[LockOwner]:
    """Return the other processes that hold a write lock of the database, with a run of each.

    Where the system has no table of locks, return the suspended owners of runs, since one of them may be the holder.
    """
    locks = database.parent / "locks"
    try:
        lines = LOCK_TABLE.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        owners = [read_owner(path) for path in locks.glob("*.lock")]
        return [owner for owner in owners if owner and owner.is_suspended and owner.pid != os.getpid()]
    files = _file_ids(database, database.with_name(f"{database.name}-shm"))
    rows = [row for line in lines if len(row := line.split()) == 8]
    pids = {int(row[4]) for row in rows if row[1] == "POSIX" and row[3] == "WRITE" and row[5] in files}
    pids -= {os.getpid(), 0, -1}
    runs = _find_runs(rows, locks) if pids else {}
    return [owner for pid in sorted(pids) if (owner := make_owner(pid, runs.get(pid, "")))]


def _file_ids(*paths: Path) -> set[str]:
    """Return the files as the table of locks names them."""
    found = set()
    for path in paths:
        with suppress(OSError):
            stat = path.stat()
            found.add(f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}:{stat.st_ino}")
    return found


def _find_runs(rows: Sequence[Sequence[str]], locks: Path) -> dict[int, str]:
    """Return a run that each process holds, by process id."""
    pids = {row[5].rpartition(":")[2]: int(row[4]) for row in rows if row[1] == "FLOCK"}
    try:
        with os.scandir(locks) as files:
            return {pids[inode]: Path(file.name).stem for file in files if (inode := str(file.inode())) in pids}
    except OSError:
        return {}


def is_busy(error: BaseException) -> bool:
    """Return whether another process holds the database."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def wait_for_lock(
    path: Path, attempt: Callable[[], R], timeout: Callable[[], float | None], on_wait: OnWait = lambda owners: None
) -> R:
    """Make an attempt, and repeat it while another process holds the database: up to a limit, if `timeout` has one.

    A holder that is suspended in a transaction would block every other process. It is continued until the caller has
    the lock, then suspended again: it is outside of a transaction then, because only one process can be in one.
    """
    since, is_reported = time.monotonic(), False
    continued: dict[int, LockOwner] = {}
    try:
        while True:
            try:
                return attempt()
            except sqlite3.OperationalError as error:
                limit, waited = timeout(), time.monotonic() - since
                if not is_busy(error) or (limit is not None and waited >= limit):
                    raise
            if waited < CONTINUE_AFTER_S:
                continue
            owners = find_holders(path)
            continued |= {one.pid: one for one in owners if one.is_suspended and one.send(signal.SIGCONT)}
            if waited >= NOTICE_AFTER_S and not is_reported:
                is_reported = True
                on_wait(owners)
    finally:
        for owner in continued.values():
            owner.send(signal.SIGSTOP)


def describe_wait(owners: Sequence[LockOwner]) -> str:
    """Name the processes that hold the database, with what to do about them."""
    if not owners:
        return "another process is writing to it: try again when it is done"
    names = " and ".join(map(str, owners))
    if suspended := [owner for owner in owners if owner.is_suspended]:
        pid = suspended[0].pid
        return f"{names} is suspended while writing to it: continue it with `kill -CONT {pid}`, or end it with `kill -9 {pid}`"
    return f"{names} is writing to it: wait for it, or end it with `kill {owners[0].pid}`"


def explain_owner(run: str, owner: LockOwner | None) -> str:
    if owner and owner.is_suspended:
        stop = f"stop it with `council cancel {run}`"
        return (
            f"run {run} is running in another process, which is suspended (process {owner.pid}): "
            f"continue it with `kill -CONT {owner.pid}`, or {wording(python=stop, cli=stop, http='cancel it')}"
        )
    process = f" (process {owner.pid})" if owner else ""
    return f"run {run} is running in another process{process}: {word_wait(run)}"


def word_wait(run: str) -> str:
    words = f"`council watch {run}` waits for it, `council cancel {run}` stops it"
    return wording(python=words, cli=words, http="wait for it, or cancel it")
