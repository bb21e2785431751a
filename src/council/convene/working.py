"""The local worker: one process that works on detached runs. It is called when one is queued, and goes when nothing is left.

A start is a row in the store, so nothing is lost whoever dies. Whoever queues a run tells the worker its environment over a
socket that only this user can open: keys pass from process to process and never touch the disk.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from council.convene import Convener
from council.errors import CouncilError, RunOwned
from council.settings import data_folder
from council.store.sqlite import SqliteStore

LOOK = 0.2  # seconds between two looks at the queue
IDLE = 10.0  # seconds without work after which it goes; IDLE_VARIABLE overrides
IDLE_VARIABLE = "COUNCIL_WORKER_IDLE"
KEPT = 16  # conveners kept open after their runs, so that a loaded model stays loaded for the next
LONGEST = 1 << 20  # bytes of one message
COMMAND = (sys.executable, "-m", "council", "worker")


class Worker:
    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = dict(env)
        self.folder = data_folder(env)
        self.store = SqliteStore(self.folder)
        self.idle = float(env.get(IDLE_VARIABLE) or IDLE)
        self._envs: dict[str, dict[str, str]] = {}  # by run, as whoever queued it sent them
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._done: deque[Convener] = deque()
        self._called = asyncio.Event()

    async def serve(self) -> None:
        """Work until nothing has been left to do for a while. Returns at once if another worker is there."""
        try:
            while True:
                with locked(self.folder) as mine:
                    if not mine:
                        return
                    await self._work()
                if not await self.store.waiting():  # what was queued while the lock was given back
                    return
        finally:
            for convener in self._done:
                await convener.close()
            self.store.close()

    async def _work(self) -> None:
        with reachable(self.folder) as address:
            server = await asyncio.start_unix_server(self._hear, address, limit=LONGEST)
            async with server:
                await self._until_idle()

    async def _until_idle(self) -> None:
        last = time.monotonic()
        while time.monotonic() - last < self.idle:
            await self._take_up()
            if self._tasks:
                last = time.monotonic()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._called.wait(), LOOK)
            self._called.clear()

    async def _take_up(self) -> None:
        """Every run that waits and that nobody works on; those that are done are let go."""
        self._tasks = {run: task for run, task in self._tasks.items() if not task.done()}
        for run in await self.store.waiting():
            if run not in self._tasks and not self.store.owned(run):
                self._tasks[run] = asyncio.create_task(self._take(run))

    async def _take(self, run: str) -> None:
        try:
            record = await self.store.load(run)
            env = self._envs.pop(run, self.env)
            convener = Convener(Path(record.folder), env, store=self.store)
            await self._let_go(convener)
            await convener.resume(run, lambda entry: None)
        except RunOwned:
            pass
        except Exception as error:  # whatever it is, it must not be tried again for ever
            reason = str(error) if isinstance(error, CouncilError) else f"{type(error).__name__}: {error}"
            await give_up(self.store, run, reason)

    async def _let_go(self, convener: Convener) -> None:
        self._done.append(convener)
        if len(self._done) > KEPT + len(self._tasks):
            await self._done.popleft().close()

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One message: which run was queued, and the environment it was queued in."""
        try:
            told = json.loads(await reader.readline())
            self._envs[str(told["run"])] = {str(name): str(value) for name, value in told["env"].items()}
            writer.write(b"heard\n")
            await writer.drain()
        except (ValueError, KeyError, AttributeError, OSError):
            pass
        finally:
            writer.close()
            self._called.set()


async def give_up(store: SqliteStore, run: str, reason: str) -> None:
    """Close a run that cannot be worked on, with the reason."""
    from council import events as ev
    from council.ledger import Ledger

    with store.own(run):
        record = await store.load(run)
        if record.status in ("queued", "running"):
            ledger = Ledger(store, record)
            await ledger.close(ev.Closed("failed", {}, dict(ledger.calls), "", "", reason), lambda entries: "")


# Calling it


async def call(run: str, env: Mapping[str, str]) -> None:
    """See to it that a worker knows of a queued run: tell the one that is there, or start one."""
    for _ in range(50):
        if await _told(run, env):
            return
        with locked(data_folder(env)) as free:
            pass
        if free:
            start(env)
        await asyncio.sleep(0.1)


async def _told(run: str, env: Mapping[str, str]) -> bool:
    with reachable(data_folder(env), unlink=False) as address:
        try:
            reader, writer = await asyncio.open_unix_connection(address)
        except OSError:
            return False
        try:
            writer.write(json.dumps({"run": run, "env": dict(env)}).encode() + b"\n")
            await writer.drain()
            return await asyncio.wait_for(reader.readline(), 5) == b"heard\n"
        except (OSError, TimeoutError):
            return False
        finally:
            writer.close()


def start(env: Mapping[str, str]) -> None:
    """A process of its own that outlives this one."""
    folder = data_folder(env)
    log = os.open(folder / "worker.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        subprocess.Popen(
            COMMAND, env=dict(env), cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    finally:
        os.close(log)


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Whether this process may be the worker. kill -9 gives the lock back at once."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(folder / "worker.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


@contextmanager
def reachable(folder: Path, *, unlink: bool = True) -> Iterator[str]:
    """The socket's address. Seen through the open folder, because such addresses may only be short."""
    path = folder / "worker.sock"
    if unlink:
        path.unlink(missing_ok=True)
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{here}/{path.name}" if Path("/proc/self/fd").is_dir() else str(path)
    finally:
        os.close(here)
        if unlink:
            path.unlink(missing_ok=True)
