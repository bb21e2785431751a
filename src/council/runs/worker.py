"""Workers: processes that execute detached runs. A queued run is a row in the store, so it survives crashes of any
process.

`WorkerLoop` is the loop of all workers. `Worker` is the local one, for the SQLite store of one user: it starts when a
run is queued and exits when idle. The client sends it the run's environment over a socket that only this user can open,
so keys are never written to disk.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from council.errors import CouncilError, RunOwned, StoreError, UnknownRun, message_for
from council.runs.report_files import close_failed_run, is_unwritten
from council.runs.service import Convener
from council.runs.worker_client import LOCK_VARIABLE, find_inherited_lock, serve_socket, worker_lock
from council.settings.config_files import data_folder
from council.store.interface import OPEN_STATUSES, StoreAddress
from council.store.run_store import RunStore
from council.store.shared import open_store

QUEUE_POLL_S = 0.2  # seconds between polls of the queue
IDLE_TIMEOUT_S = 10.0  # seconds without work before it exits; IDLE_VARIABLE overrides it
IDLE_VARIABLE = "COUNCIL_WORKER_IDLE"
ENV_TIMEOUT_S = 5.0  # seconds a queued run waits for its environment; then the worker's is used
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
MAX_CHECKED_REPORTS = 8  # ended runs whose reports a new worker checks
MAX_IDLE_CONVENERS = 16  # conveners kept open after their runs, so that a loaded model can be reused


class WorkerLoop:
    """Look for runs that wait, execute them, and put those back into the queue that are unfinished at the end."""

    poll_interval = QUEUE_POLL_S
    idle_timeout = math.inf

    store: RunStore

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = dict(env)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._conveners: dict[str, Convener] = {}  # by run, the oldest first
        self._skipped_runs: set[str] = set()  # runs that this process cannot execute
        self._wake = asyncio.Event()
        self._is_stopping = False

    def stop(self) -> None:
        """Stop now; unfinished runs return to the queue."""
        self._is_stopping = True
        self._wake.set()

    async def serve(self) -> None:
        """Execute runs until idle or stopped."""
        raise NotImplementedError

    async def serve_until_signal(self) -> None:
        """Execute runs until idle or signalled. On a signal, active runs go back into the queue."""
        for number in STOP_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self.stop)
        await self.serve()

    async def _run_until_idle(self) -> None:
        last = time.monotonic()
        while not self._is_stopping:
            if await self._has_work():
                last = time.monotonic()
            elif time.monotonic() - last >= self.idle_timeout:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self.poll_interval)
            self._wake.clear()

    async def _has_work(self) -> bool:
        try:
            return await self._start_due_runs()
        except StoreError:  # a busy store must not end the runs of this process
            return bool(self._tasks)

    async def _start_due_runs(self) -> bool:
        """Start the runs that are due. Return whether any run is running or waiting."""
        raise NotImplementedError

    def _start_run(self, run: str) -> asyncio.Task[None]:
        task = self._tasks[run] = asyncio.create_task(self._run_one(run))
        return task

    async def _run_one(self, run: str) -> None:
        try:
            await self._close_convener(run)
            await self._execute(run)
        except (RunOwned, UnknownRun):
            pass
        except Exception as error:
            await self._on_failure(run, error)

    async def _execute(self, run: str) -> None:
        """Execute a run with its convener, unless this process cannot do so."""
        raise NotImplementedError

    async def _on_failure(self, run: str, error: Exception) -> None:
        """Close the run on any error, or it would be retried forever."""
        self._skipped_runs.add(run)
        with suppress(CouncilError):
            async with self.store.lock_run(run):
                record = await self.store.load(run)
                if record.status in OPEN_STATUSES:
                    await close_failed_run(self.store, record, explain_failure(error))

    def _forget_ended_tasks(self) -> None:
        self._tasks = {run: task for run, task in self._tasks.items() if not task.done()}

    async def _close_idle_conveners(self) -> None:
        """Close the oldest conveners that have no running task."""
        idle = [run for run in self._conveners if run not in self._tasks]
        for run in idle[: max(0, len(idle) - MAX_IDLE_CONVENERS)]:
            await self._close_convener(run)

    async def _close_convener(self, run: str) -> None:
        if convener := self._conveners.pop(run, None):
            await convener.close()

    async def _shut_down(self) -> None:
        """Requeue the unfinished runs and close everything."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for run, task in self._tasks.items():
            if task.cancelled() and run in self._conveners:
                with suppress(CouncilError):
                    await self._conveners[run].requeue(run)
        for convener in self._conveners.values():
            await convener.close()


def explain_failure(error: Exception) -> str:
    return message_for(error, "cli") if isinstance(error, CouncilError) else f"{type(error).__name__}: {error}"


class Worker(WorkerLoop):
    """Executor of the queued runs of one data folder."""

    def __init__(self, env: Mapping[str, str], *, env_timeout: float = ENV_TIMEOUT_S) -> None:
        self.folder = data_folder(env)
        super().__init__(env)
        self.store = open_store(StoreAddress(self.folder))
        self.env_timeout = env_timeout
        self.idle_timeout = _parse_seconds(env.get(IDLE_VARIABLE), IDLE_TIMEOUT_S)
        self._envs: dict[str, dict[str, str]] = {}  # by run, as the client sent them
        self._first_seen: dict[str, float] = {}  # by run, when it was first seen in the queue

    async def serve(self) -> None:
        """Execute runs until idle. Return at once if another worker is running."""
        inherited_lock = find_inherited_lock(self.env, self.folder)
        self.env.pop(LOCK_VARIABLE, None)
        try:
            while True:
                with worker_lock(self.folder, inherited_lock) as lock:
                    if lock is None:
                        return
                    await self._write_missing_reports()
                    async with serve_socket(self.folder, self._receive_run):
                        await self._run_until_idle()
                inherited_lock = None
                # A run may be queued while the lock is released.
                if self._is_stopping or not await self._list_waiting():
                    return
        finally:
            await self._shut_down()
            self.store.close()

    async def _write_missing_reports(self) -> None:
        """Write the reports of ended runs whose worker was killed before it had written them."""
        with suppress(StoreError):
            for run in await self.store.list_ended_detached(MAX_CHECKED_REPORTS):
                paths = await self.store.list_report_paths(run)
                if any(path.exists() and is_unwritten(path, run) for path in paths):  # a deleted report stays deleted
                    await self._run_one(run)

    async def _list_waiting(self) -> list[str]:
        """Return the queued runs that no process owns and that this process can execute."""
        waiting = [run for run in await self.store.list_detached() if run not in self._skipped_runs]
        return [run for run in waiting if run not in self._tasks and not await self.store.is_locked(run)]

    async def _start_due_runs(self) -> bool:
        self._forget_ended_tasks()
        waiting = await self._list_waiting()
        for run in waiting:
            if self._is_due(run):
                self._start_run(run)
        await self._close_idle_conveners()
        return bool(self._tasks or waiting)

    def _is_due(self, run: str) -> bool:
        """Return whether a run has its environment, or has waited long enough for it."""
        first = self._first_seen.setdefault(run, time.monotonic())
        return run in self._envs or time.monotonic() - first >= self.env_timeout

    async def _execute(self, run: str) -> None:
        record = await self.store.load(run)
        env = self._envs.pop(run, self.env)
        convener = self._conveners[run] = Convener(Path(record.folder), env, store=self.store)
        if await convener.find_missing_keys(run):
            self._skipped_runs.add(run)  # keys are missing; `council watch` sends them
        else:
            await convener.resume(run, lambda entry: None, only_open=True)

    async def _close_convener(self, run: str) -> None:
        await super()._close_convener(run)
        self._first_seen.pop(run, None)

    async def _receive_run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one message: the id of a queued run and its environment."""
        try:
            message = json.loads(await reader.readline())
            run, env = str(message["run"]), {str(name): str(value) for name, value in message["env"].items()}
            if run not in self._tasks or self._tasks[run].done():
                self._envs[run] = env
                self._skipped_runs.discard(run)
            writer.write(b"ok\n")
            await writer.drain()
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            pass
        finally:
            writer.close()
            self._wake.set()


def _parse_seconds(value: str | None, default: float) -> float:
    try:
        return max(0.0, float(value or default))
    except ValueError:
        return default


# Entry point


def run_worker() -> int:
    asyncio.run(Worker(os.environ).serve_until_signal())
    return 0
