"""Worker of a shared database: one of several processes, on several machines, that execute its queued runs until
stopped.

A job of Procrastinate has the name of a run and wakes a worker. The lease of the run decides who executes it: a worker
that was stopped and continues later stores nothing. Settings, prices and keys are those of the worker.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from council.engine.ledger import Ledger
from council.engine.minutes import Minutes
from council.errors import CouncilError, LeaseLost, StoreError, UsageError
from council.members.wires.http import close_connections, keep_connections
from council.planning.setup import RunSetup
from council.runs.outcome import Ending
from council.runs.queues import ANY_WORKER, explain_folder_need, host_queue
from council.runs.service import Convener
from council.runs.worker import WorkerLoop, explain_failure
from council.settings.catalogue import split_member
from council.settings.schema import SPECIAL_MEMBERS
from council.store.interface import Record, StoreAddress
from council.store.postgres_statements import RUN_TASK, SCHEMA
from council.store.run_store import RunStore
from council.store.shared import open_store
from council.text_cleanup import single_line

if TYPE_CHECKING:
    import procrastinate

    from council.store.postgres_workers import WorkerTables

DEFAULT_CONCURRENCY = 32  # runs at once
DRAIN_S = 30.0  # seconds that runs have to end after TERM
MAX_TICK_S = 5.0  # seconds between two looks for runs of dead workers
FIRST_RETRY_S, MAX_RETRY_S = 1.0, 60.0  # until another worker is woken for a run that this one cannot execute
MAX_SHARED_RETRY_S = 4.0  # if others are alive: this one may be woken again by chance
POOL_SIZE = 3  # connections of the queue: one listens


class OtherWorkerNeeded(CouncilError):
    """This worker lacks something that the run needs."""


class WorkerConvener(Convener):
    """Convener of runs that were queued elsewhere. Only a run of this host's own queue uses its folder.

    Settings come from the worker's own files and environment, never from the queue. Without the folder, the report is
    stored in the database alone.
    """

    waits_for_release = False
    queues: Sequence[str] = ()
    _uses_folder = False

    def _restore_run_context(self, record: Record) -> None:
        stored = RunSetup.of(record)
        setup = replace(stored, config=None, flags={**stored.flags, "trusted": None})
        why = explain_folder_need(setup)
        self._uses_folder = bool(why) and setup.queue == host_queue() and host_queue() in self.queues
        if self._uses_folder:
            super()._restore_run_context(replace(record, setup=setup.as_json()))
        elif why:
            raise OtherWorkerNeeded(f'{why}, on the host of the queue "{setup.queue}"')
        else:
            self._restore_flags(replace(setup, flags={**setup.flags, "report_dir": None}))
            self._load_folder(self.folder)
        self._require_trust()
        if missing := self._find_missing(record):
            raise OtherWorkerNeeded(f"it needs {', '.join(missing)}")

    def _find_missing(self, record: Record) -> list[str]:
        roster = RunSetup.of(record).roster
        kinds = {split_member(seat.member)[0] for seat in roster.all_seats}
        known = (*self.settings.providers, *SPECIAL_MEMBERS)
        unknown = [f"the provider {kind}" for kind in kinds if kind not in known]
        return [*self.run_context.find_missing_keys(roster), *unknown]

    async def open_store(self, protocol: str, task: str) -> RunStore:
        if self._uses_folder:
            return await super().open_store(protocol, task)
        await self.store.require_sound()
        return self.store

    def _choose_report_path(self, ledger: Ledger, minutes: Minutes, ending: Ending) -> str:
        return super()._choose_report_path(ledger, minutes, ending) if self._uses_folder else ""


class DatabaseWorker(WorkerLoop):
    """Executor of the queued runs of a database, until stopped."""

    def __init__(
        self,
        address: StoreAddress,
        env: Mapping[str, str],
        *,
        folder: Path | None = None,
        config: Path | None = None,
        queues: Sequence[str] = (),
        concurrency: int = DEFAULT_CONCURRENCY,
        drain_seconds: float = DRAIN_S,
        log: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__(env, open_store(address))
        self.tables = cast("WorkerTables", self.store)
        self.url, self.lease_seconds = address.url, address.lease_seconds
        self.folder, self.config = (folder or Path.cwd()).resolve(), config
        named = dict.fromkeys(host_queue() if one == "host" else one for one in queues)
        self.queues = tuple(named) or (ANY_WORKER, host_queue())
        self.concurrency, self.drain_seconds = concurrency, drain_seconds
        self.poll_interval = min(MAX_TICK_S, self.lease_seconds / 3)
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self.log = log or self._print
        self.is_ready = asyncio.Event()  # registered: it may execute jobs
        self._hurry = asyncio.Event()
        self._tries: dict[str, int] = {}  # by run that this worker cannot execute
        logging.getLogger("procrastinate").addHandler(logging.NullHandler())

    def _print(self, line: str) -> None:
        print(f"council worker {self.name}: {single_line(line, 400)}", file=sys.stderr, flush=True)

    def stop(self) -> None:
        """Take no more runs. Those that do not end in time return to the queue; after a second call, all of them."""
        if self._is_stopping:
            self._hurry.set()
        super().stop()

    async def serve(self) -> None:
        """Execute runs until stopped."""
        keep_connections()
        app = self._make_app()
        try:
            async with app.open_async():
                fetching = asyncio.create_task(self._fetch_jobs(app))
                try:
                    await self._run_until_idle()
                finally:
                    with suppress(CouncilError):
                        await self.tables.remove_worker(self.name)
                    fetching.cancel()
                    await asyncio.gather(fetching, return_exceptions=True)
                    await self._drain()
        finally:
            await self._shut_down()
            close_connections()
            await asyncio.sleep(0.01)  # the event loop closes them
            self.store.close()

    async def _drain(self) -> None:
        """Wait for the runs, for some seconds."""
        self._forget_ended_tasks()
        if self._tasks:
            self.log(f"stopping: {len(self._tasks)} runs have {self.drain_seconds:g} s to end")
            hurry = asyncio.ensure_future(self._hurry.wait())
            ended = asyncio.ensure_future(asyncio.wait(self._tasks.values()))
            await asyncio.wait([hurry, ended], timeout=self.drain_seconds, return_when=asyncio.FIRST_COMPLETED)
            for task in (hurry, ended):
                task.cancel()
        if left := [run for run, task in self._tasks.items() if not task.done()]:
            self.log(f"handed back to the queue: {', '.join(left)}")

    # Queue

    def _make_app(self) -> procrastinate.App:
        try:
            import procrastinate
        except ImportError as error:
            raise UsageError(
                f"a worker of a shared store needs the package procrastinate ({error}): pip install 'model-council[postgres]'"
            ) from None
        options = f"-c search_path={SCHEMA},pg_catalog -c synchronous_commit=off"
        connector = procrastinate.PsycopgConnector(
            conninfo=self.url,
            kwargs={"options": options, "application_name": "council-queue"},
            min_size=1,
            max_size=POOL_SIZE,
        )
        app = procrastinate.App(connector=connector)
        app.task(name=RUN_TASK)(self._on_job)
        return app

    async def _fetch_jobs(self, app: procrastinate.App) -> None:
        """Execute the jobs of the queue. After a failure, such as a restart of the database, start again."""
        await self.is_ready.wait()
        while not self._is_stopping:
            try:
                await app.run_worker_async(
                    queues=list(self.queues),
                    concurrency=self.concurrency,
                    name=self.name,
                    install_signal_handlers=False,
                    delete_jobs="always",
                    fetch_job_polling_interval=self.poll_interval,
                    shutdown_graceful_timeout=0.01,
                    update_heartbeat_interval=self.lease_seconds / 3,
                    stalled_worker_timeout=2 * self.lease_seconds,
                )
            except Exception as error:
                self.log(f"the queue cannot be read ({type(error).__name__}: {error}): trying again")
            await asyncio.sleep(random.uniform(0.5, 1.0))

    async def _on_job(self, run: str, tries: int = 0) -> None:
        """Execute the run of a job. It continues if only the job is cancelled: the lease decides, not the job."""
        while (task := self._tasks.get(run)) and not task.done():
            await asyncio.wait([task])  # it was cancelled and queued again before it ended
        self._tries[run] = tries
        task = self._start_run(run)
        await asyncio.wait([task])
        self._tasks.pop(run, None)
        self._tries.pop(run, None)

    async def _start_due_runs(self) -> bool:
        """Renew the row of this worker, and queue the runs of dead workers."""
        await self.tables.add_worker(
            self.name, socket.gethostname(), os.getpid(), self.queues, max(self.lease_seconds, 3 * self.poll_interval)
        )
        if not self.is_ready.is_set():
            self.is_ready.set()
            self.log(f"ready; queues {', '.join(self.queues)}; at most {self.concurrency} runs at once")
        for run in await self.tables.take_over_runs(2 * self.lease_seconds):
            self.log(f"run {run}: its job or its worker is gone, so it was queued again")
        self._forget_ended_tasks()
        return True

    # Runs

    async def _execute(self, run: str) -> None:
        convener = self._conveners[run] = WorkerConvener(self.folder, self.env, config=self.config, store=self.store)
        convener.queues = self.queues
        try:
            await convener.resume(run, lambda entry: None, only_open=True)
        except asyncio.CancelledError:
            raise  # `_shut_down` needs the convener
        except BaseException:
            await self._close_convener(run)
            raise
        await self._close_convener(run)

    async def _on_failure(self, run: str, error: Exception) -> None:
        if isinstance(error, OtherWorkerNeeded):
            if not self._tries.get(run, 0):
                self.log(f"run {run} is left to other workers: {error}")
            await self._hand_on(run, MAX_SHARED_RETRY_S)
        elif isinstance(error, LeaseLost):
            self.log(str(error))
        elif isinstance(error, StoreError):  # another worker, or this one, takes it over
            self.log(f"run {run}: {error}")
            await self._hand_on(run, MAX_RETRY_S)
        else:
            self.log(f"run {run} failed: {explain_failure(error)}")
            await super()._on_failure(run, error)

    async def _hand_on(self, run: str, longest: float) -> None:
        """Wake a worker for a run that this one cannot execute, each time later, up to a limit if others are alive."""
        tries = self._tries.get(run, 0)
        with suppress(CouncilError):
            queue = RunSetup.of(await self.store.load(run)).queue or ANY_WORKER
            workers = await self.tables.list_workers()
            has_others = any(queue in one.queues and one.name != self.name for one in workers)
            delay = min(longest if has_others else MAX_RETRY_S, FIRST_RETRY_S * 2**tries)
            await self.tables.hand_on_run(run, queue, tries + 1, delay)


# Entry points


def run_database_worker(address: StoreAddress, **options: Any) -> int:
    asyncio.run(DatabaseWorker(address, os.environ, **options).serve_until_signal())
    return 0


@asynccontextmanager
async def embed_worker(
    address: StoreAddress, env: Mapping[str, str], folder: Path, config: Path | None
) -> AsyncIterator[None]:
    """Execute runs of a shared store beside a server, inside the block. A local store has its own worker process."""
    if not address.url:
        yield
        return
    worker = DatabaseWorker(address, env, folder=folder, config=config)
    serving, ready = asyncio.create_task(worker.serve()), asyncio.create_task(worker.is_ready.wait())
    try:
        await asyncio.wait([serving, ready], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if serving.done():
            serving.result()
        yield
    finally:
        worker.stop()
        worker.stop()  # without waiting for its runs
        await asyncio.gather(serving, return_exceptions=True)
