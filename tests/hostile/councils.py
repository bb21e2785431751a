"""Whole councils in forked child processes, with their memory and the addresses they connect to."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fork_server import CLI

QUESTION = "Should the archive move to cold storage?"
CONTEXT = multiprocessing.get_context("forkserver")  # its imports are shared by all children
Work = Callable[[Any], int]  # in the child process; returns its exit code
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "PYTHONPATH", "COUNCIL_CACHE")


@dataclass(frozen=True)
class Done:
    """One ended council."""

    code: int | None  # None: the process died
    out: str
    err: str
    fsck: str  # output of `council runs fsck`, empty if it found no problem
    peak_mb: float
    seconds: float
    addresses: frozenset[str]  # that the process connected to or looked up

    @property
    def report(self) -> Any:
        return json.loads(self.out)


def run_council(folder: Path, config: str, *arguments: str, env: dict[str, str] | None = None) -> Done:
    """Run `council …` and then `council runs fsck` in a child process with its own folders."""
    return run_child(folder, config, _run_command, arguments, env=env)


def run_many(folder: Path, config: str, count: int, max_files: int | None = None) -> Done:
    """Run this many councils at once in a child process that may open `max_files` files.

    The output lists their ends.
    """
    return run_child(folder, config, _convene_many, (count, max_files))


def run_child(folder: Path, config: str, work: Work, arguments: Any, env: dict[str, str] | None = None) -> Done:
    for name in ("work", "data"):
        (folder / name).mkdir(parents=True)
    (folder / "config.toml").write_text(config, encoding="utf-8")
    given = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    given |= {"COUNCIL_CONFIG": str(folder / "config.toml"), "COUNCIL_DATA": str(folder / "data")}
    given |= {"XDG_CONFIG_HOME": str(folder / "none"), "XDG_DATA_HOME": str(folder / "none"), **(env or {})}
    CONTEXT.set_forkserver_preload([*CLI, __name__])
    child = CONTEXT.Process(target=_start, args=(folder, given, work, arguments))
    started = time.monotonic()
    child.start()
    child.join()
    took = time.monotonic() - started
    try:
        told = json.loads((folder / "told.json").read_text(encoding="utf-8"))
    except OSError:
        told = {"code": None, "fsck": "", "peak_mb": 0.0, "addresses": []}
    out, err = ((folder / name).read_text(encoding="utf-8", errors="replace") for name in ("out", "err"))
    return Done(told["code"], out, err, told["fsck"], told["peak_mb"], took, frozenset(told["addresses"]))


# In the child process


def _run_command(arguments: tuple[str, ...]) -> int:
    from council.doors.cli import run

    return run(list(arguments))


def _convene_many(arguments: tuple[int, int | None]) -> int:
    import council

    count, max_files = arguments
    if max_files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))

    async def convene() -> list[str]:
        runs = (council.convene(f"{QUESTION} ({n})", protocol="triad") for n in range(count))
        ends = await asyncio.gather(*runs, return_exceptions=True)
        return [repr(end) if isinstance(end, BaseException) else str(end.status) for end in ends]

    print(json.dumps(asyncio.run(convene())))
    return 0


def _start(folder: Path, env: dict[str, str], work: Work, arguments: Any) -> None:
    addresses: set[str] = set()

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event == "socket.connect" and not isinstance(args[1], str | bytes):  # a path is a local socket
            addresses.add(f"{args[1][0]}:{args[1][1]}")
        elif event == "socket.getaddrinfo" and args[0]:
            addresses.add(f"{args[0]}:{args[1]}")

    sys.addaudithook(watch)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder / "work")
    os.close(0)
    os.open(os.devnull, os.O_RDONLY)
    _reset_peak()
    told: dict[str, Any] = {}
    with _written_to(folder / "out", folder / "err"):
        told["code"] = work(arguments)
    told["peak_mb"] = _peak_mb()
    with _written_to(folder / "fsck", folder / "fsck"):
        code = _run_command(("runs", "fsck"))
    told["fsck"] = (folder / "fsck").read_text(encoding="utf-8") if code else ""
    told["addresses"] = sorted(addresses)
    (folder / "told.json").write_text(json.dumps(told), encoding="utf-8")


@contextlib.contextmanager
def _written_to(out: Path, err: Path) -> Any:
    with out.open("a", encoding="utf-8") as one, err.open("a", encoding="utf-8") as two:
        for number, file in ((1, one), (2, two)):
            os.dup2(file.fileno(), number)
        sys.stdout, sys.stderr = one, two
        yield


def _reset_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_mb() -> float:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
