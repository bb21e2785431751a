"""Helpers that find, kill and wait for worker processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from council.runs.worker_client import serve_socket, worker_lock
from tests.acceptance.helpers import wait_until


def workers(data: Path) -> list[int]:
    """Return the worker processes of a data folder."""
    return [pid for pid in _processes() if _works_on(pid, data)]


def _processes() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def _works_on(pid: int, data: Path) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        env = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return command[1:5] == [b"-m", b"council", b"serve", b"worker"] and f"COUNCIL_DATA={data}".encode() in env


def kill_worker(data: Path) -> None:
    """Kill the single worker with SIGKILL and wait until it has exited."""
    (pid,) = workers(data)
    os.kill(pid, signal.SIGKILL)
    wait_for_worker_exit(data)


def wait_for_worker_exit(data: Path) -> None:
    """Wait until no worker of a data folder is left.

    Only the found ones are polled: looking at all processes is expensive.
    """
    while found := workers(data):
        wait_until(partial(_are_gone, found, data), "the worker exited")


def _are_gone(pids: list[int], data: Path) -> bool:
    return not any(_works_on(pid, data) for pid in pids)


def kill_remaining_workers(data: Path) -> list[int]:
    """Kill remaining workers and return their process ids."""
    left = workers(data)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


@contextmanager
def held_worker(data: Path) -> Iterator[list[str]]:
    """Be the worker of a data folder: accept runs, but start none. Yield the accepted runs.

    Wait first until a real worker has exited. A run that was accepted stays queued.
    """
    accepted: list[str] = []
    ready, done = threading.Event(), threading.Event()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(json.loads(await reader.readline())["run"])
        writer.write(b"ok\n")
        await writer.drain()
        writer.close()

    async def serve() -> None:
        async with serve_socket(data, accept):
            ready.set()
            await asyncio.to_thread(done.wait)

    with ExitStack() as lock:
        wait_until(lambda: lock.enter_context(worker_lock(data)) is not None, "no worker has the lock")
        thread = threading.Thread(target=asyncio.run, args=(serve(),))
        thread.start()
        ready.wait(10)
        try:
            yield accepted
        finally:
            done.set()
            thread.join()
