"""Faults of the system in child processes: the nth disk operation fails, a file system is full, the clock is set."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.fork_server import Process

SOURCE = Path(__file__).with_suffix(".c")
PAGE = 4096
PREFIX = "DISK_FAULT_"


@cache
def _build_library() -> str:
    """Compile the library. Return its path, or "no: " and the reason."""
    if not sys.platform.startswith("linux"):
        return "no: LD_PRELOAD and /proc are needed, which only Linux has"
    if (compiler := shutil.which("cc") or shutil.which("gcc")) is None:
        return "no: a C compiler is needed: install gcc"
    folder = Path(tempfile.mkdtemp(prefix="system-faults-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = folder / "system_faults.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True)
    return str(library) if done.returncode == 0 else f"no: the C compiler fails: {done.stderr.splitlines()[:1]}"


def fault_library() -> str:
    """Return the path of the library, or skip the test where it cannot be built."""
    library = _build_library()
    if library.startswith("no: "):
        pytest.skip(library.removeprefix("no: "))
    return library


@dataclass(frozen=True)
class DiskFault:
    """Which disk operations of a process fail: those on files under `root`, by number."""

    root: Path
    first: int = 0  # number of the first one that fails; 0: none
    count: int = 1  # 0: all later ones
    error: int = 0  # 0: a write stores half of its bytes and says so
    operations: Sequence[str] = ()
    log: Path | None = None
    signal: int = 0  # ends the process instead of the error

    @property
    def env(self) -> dict[str, str]:
        values = {
            "ROOT": str(self.root),
            "FIRST": str(self.first),
            "COUNT": str(self.count),
            "ERROR": str(self.error),
            "OPS": ",".join(self.operations),
            "SIGNAL": str(self.signal),
        }
        values |= {"LOG": str(self.log)} if self.log else {}
        return {f"{PREFIX}{name}": value for name, value in values.items()}


def start_with_fault(fault: DiskFault, arguments: Sequence[str], folder: Path, **env: str) -> Process:
    """Start `council …` with a failing disk."""
    with_fault: Any = {**fault.env, **env}
    return Process(arguments, folder, preload=fault_library(), **with_fault)


# Clocks


class ShiftedClock:
    """Time of day of processes, which a test sets while they run."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock-shift"
        self.set(0)

    def set(self, seconds: int) -> None:
        """Move the time of day by these seconds from the real one."""
        draft = self._file.with_suffix(".new")
        draft.write_text(str(seconds))
        draft.replace(self._file)

    def start(self, arguments: Sequence[str], folder: Path, **env: str) -> Process:
        """Start `council …` with this clock."""
        with_clock: Any = {"CLOCK_SHIFT_FILE": str(self._file), **env}
        return Process(arguments, folder, preload=fault_library(), **with_clock)


# Full disks


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """Mount a file system of `size` bytes on a folder, or skip the test where mounting is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={size},mode=700,uid={os.getuid()}"
    mount = shutil.which("mount")
    if mount is None or not sys.platform.startswith("linux"):
        pytest.skip("a small file system needs the command mount of Linux")
    done = subprocess.run([mount, "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_disk(folder: Path, free: int) -> Path:
    """Fill a file system with one file, so that `free` bytes are left. Return the file."""
    filler = folder / "filler"
    with filler.open("ab") as out:
        while (more := shutil.disk_usage(folder).free - free) > 0:
            out.write(bytes(min(more, 1 << 20)))
            out.flush()
    return filler
