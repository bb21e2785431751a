"""Worker of a shared database: one of several processes, on several machines, that execute its queued runs until
stopped.

A worker claims the next runs of the queue whenever it has room for them. The lease of a run decides who executes it:
a worker that was stopped and continues later stores nothing. Settings, prices and keys are those of the worker.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from council.engine.ledger import Ledger
from council.engine.minutes import Minutes
from council.errors import CouncilError, LeaseLost, StoreError
from council.members.wires.http import close_connections, keep_connections
from council.planning.setup import RunSetup
from council.runs.history import RunRecords
from council.runs.outcome import Ending
from council.runs.queues import ANY_WORKER, explain_folder_need, host_queue
from council.runs.service import Convener
from council.runs.worker import WorkerLoop, explain_failure
from council.settings import load_settings
from council.settings.catalogue import split_member
from council.settings.schema import SPECIAL_MEMBERS
from council.store.interface import ClaimRequest, Record, StoreAddress, WorkerRow
from council.store.run_store import RunStore
from council.store.shared import close_promptly, open_patiently
from council.text_cleanup import single_line
from council.version import __version__

if TYPE_CHECKING:
    from council.store.postgres import PostgresStore

DEFAULT_CONCURRENCY = 32  # runs at once
CLAIM_POLL_S = 0.5  # seconds between looks into the queue without an announcement
LAST_CLAIM_S = 2.0  # seconds after TERM for a claim that is being made
LEAVE_S, HANGING_LEAVE_S = 30.0, 3.0  # seconds to hand the runs back, and those with a database that hangs
DRAIN_S = 30.0  # seconds that runs have to end after TERM
MAX_RENEWAL_S = 5.0  # seconds between two renewals of the row of a worker
MAX_CLAIMS = 8  # runs that are claimed at once, so that a worker leaves some of a burst to others
OPEN_S = 5.0  # seconds that the start of a server waits for its store and its worker
FIRST_RETRY_S, MAX_RETRY_S = 1.0, 60.0  # until a worker tries a run again that it could not execute
FORGET_REFUSALS_S = 600.0  # after the last try


@dataclass(slots=True)
class Refusal:
    """A run that this worker could not execute, and when it tries again."""

    tries: int
    until: float


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

    poll_interval = CLAIM_POLL_S

    def __init__(
        self,
        address: StoreAddress,
        env: Mapping[str, str],
        *,
        store: RunStore | None = None,
        folder: Path | None = None,
        config: Path | None = None,
        queues: Sequence[str] = (),
        concurrency: int = DEFAULT_CONCURRENCY,
        drain_seconds: float = DRAIN_S,
        metrics: tuple[str, int] | None = None,
        log: Callable[[str], object] | None = None,
    ) -> None:
        """`store`: an open store of the server that contains this worker; its owner closes it."""
        super().__init__(env)
        self._is_own_store, self._has_store = store is None, False
        if store:
            self._use_store(store)
        self.address, self.lease_seconds = address, address.lease_seconds
        self.folder, self.config = (folder or Path.cwd()).resolve(), config
        named = dict.fromkeys(host_queue() if one == "host" else one for one in queues)
        self.queues = tuple(named) or (ANY_WORKER, host_queue())
        self.concurrency, self.drain_seconds = concurrency, drain_seconds
        self.metrics = metrics  # address of the server of health and metrics
        self.renewal_interval = min(MAX_RENEWAL_S, self.lease_seconds / 3)
        self.started = time.time()
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        self.log = log or self._print
        self.is_ready = asyncio.Event()  # registered: it may execute runs
        self._stopped, self._hurry = asyncio.Event(), asyncio.Event()
        self._is_waiting = False  # for the database, since a line said so
        self._next_renewal = 0.0
        self._ended: list[str] = []  # runs whose claims are to be removed
        self._refusals: dict[str, Refusal] = {}  # by run that this worker cannot execute

    def _use_store(self, store: RunStore) -> None:
        self.store, self._has_store = store, True
        self.tables = cast("PostgresStore", store)

    def _print(self, line: str) -> None:
        print(f"council worker {self.name}: {single_line(line, 400)}", file=sys.stderr, flush=True)

    def stop(self) -> None:
        """Take no more runs. Those that do not end in time return to the queue; after a second call, all of them."""
        if self._is_stopping:
            self._hurry.set()
        super().stop()
        self._stopped.set()

    async def serve(self) -> None:
        """Execute runs until stopped."""
        keep_connections()
        async with self._serve_metrics():
            working, stopped = asyncio.create_task(self._work()), asyncio.create_task(self._stopped.wait())
            try:
                await asyncio.wait([working, stopped], return_when=asyncio.FIRST_COMPLETED)
                if self._has_store:
                    await asyncio.wait([working], timeout=LAST_CLAIM_S)
                if working.done():
                    working.result()
            finally:
                for task in (working, stopped):
                    task.cancel()
                await asyncio.gather(working, stopped, return_exceptions=True)
                if self._has_store:
                    await self._end()

    async def _work(self) -> None:
        if not self._has_store:
            self._use_store(await open_patiently(self.address, self._note_wait))
        listening = asyncio.create_task(self._wake_for_queue())
        try:
            await self._run_until_idle()
        finally:
            listening.cancel()

    def _note_wait(self, error: StoreError) -> None:
        if not self._is_waiting:
            self.log(f"waiting for the database: {error}")
        self._is_waiting = True

    async def _end(self) -> None:
        """Leave the queue and the runs to others, also if the database hangs."""
        is_answered = await self._sign_off()
        await self._drain()
        if self._tasks:
            is_answered = await self._sign_off()
        leaving = asyncio.create_task(self._leave())
        await asyncio.wait([leaving], timeout=LEAVE_S if is_answered else HANGING_LEAVE_S)
        if not leaving.done():
            self.log("the database does not answer: runs of this worker continue when their leases have expired")
            self.store.give_up()
            await asyncio.wait([leaving], timeout=HANGING_LEAVE_S)
        if leaving.done():
            leaving.result()
        if self._is_own_store:
            await close_promptly(self.store)

    async def _sign_off(self) -> bool:
        """Leave the list of workers. Return whether the database has answered."""
        with suppress(CouncilError, TimeoutError):
            async with asyncio.timeout(LAST_CLAIM_S):
                await self.tables.remove_worker(self.name)
                return True
        return False

    async def _leave(self) -> None:
        await self._shut_down()
        with suppress(CouncilError):
            await self.tables.release_claims(self.name)
        close_connections()
        await asyncio.sleep(0.01)  # the event loop closes them

    @asynccontextmanager
    async def _serve_metrics(self) -> AsyncIterator[None]:
        if self.metrics is None:
            yield
            return
        from council.runs.metrics_server import serve_metrics

        def find_store() -> RunStore | None:
            return self.store if self._has_store else None

        async with serve_metrics(find_store, *self.metrics, self._is_healthy) as port:
            self.log(f"health and metrics: http://{self.metrics[0]}:{port}")
            yield

    def _is_healthy(self) -> bool:
        """Return whether the worker takes runs and reaches the database."""
        return (
            self.is_ready.is_set()
            and not self._is_stopping
            and time.monotonic() < self._next_renewal + self.lease_seconds
        )

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

    async def _wake_for_queue(self) -> None:
        """Look for runs at once when one was queued."""
        while True:
            if await self.tables.wait_for_queue():
                self._wake.set()

    async def _start_due_runs(self) -> bool:
        """Renew the row of this worker, and start the runs that it claims."""
        self._forget_ended_tasks()
        if time.monotonic() >= self._next_renewal:
            await self._renew()
        while (free := self.concurrency - len(self._tasks)) > 0 and not self._is_stopping:
            wanted = self._make_request(min(free, MAX_CLAIMS))
            claimed = await self.tables.claim_runs(self.name, wanted)
            self._ended = self._ended[len(wanted.ended) :]
            for run, was_started in claimed:
                if was_started:
                    self.log(f"run {run}: its worker is gone, so it is taken over")
                self._start_run(run).add_done_callback(partial(self._on_end, run))
            if len(claimed) < wanted.count:
                break
        return True

    async def _renew(self) -> None:
        row = WorkerRow(
            self.name, socket.gethostname(), os.getpid(), self.queues, __version__, self.started, len(self._tasks)
        )
        await self.tables.add_worker(row, max(self.lease_seconds, 3 * self.renewal_interval))
        self._next_renewal = time.monotonic() + self.renewal_interval
        if not self.is_ready.is_set():
            self.is_ready.set()
            self.log(f"ready; queues {', '.join(self.queues)}; at most {self.concurrency} runs at once")

    def _make_request(self, count: int) -> ClaimRequest:
        settings = load_settings(self.folder, self.env, config=self.config)
        of_owner = settings.store.get("councils_per_owner", 0)
        of_providers = {one.name: one.councils for one in settings.providers.values() if one.councils}
        now = time.monotonic()
        self._refusals = {run: one for run, one in self._refusals.items() if now < one.until + FORGET_REFUSALS_S}
        refused = [run for run, one in self._refusals.items() if now < one.until]
        return ClaimRequest(
            queues=self.queues,
            count=1 if of_owner or of_providers else count,  # each claim changes what the limits leave
            seconds=self.lease_seconds,
            excluded=[*self._tasks, *refused],
            ended=list(self._ended),
            of_owner=of_owner,
            of_providers=of_providers,
        )

    def _on_end(self, run: str, task: asyncio.Task[None]) -> None:
        self._ended.append(run)
        self._wake.set()

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
        self._refusals.pop(run, None)
        await self._close_convener(run)

    async def _on_failure(self, run: str, error: Exception) -> None:
        if isinstance(error, OtherWorkerNeeded):
            if run not in self._refusals:
                self.log(f"run {run} is left to other workers: {error}")
            await self._leave_run(run)
        elif isinstance(error, LeaseLost):
            self.log(str(error))
        elif isinstance(error, StoreError):  # another worker, or this one, takes it over
            self.log(f"run {run}: {error}")
            await self._leave_run(run)
        else:
            self.log(f"run {run} failed: {explain_failure(error)}")
            await super()._on_failure(run, error)

    async def _leave_run(self, run: str) -> None:
        """Leave a run to other workers. This one tries again, later each time."""
        tries = self._refusals[run].tries if run in self._refusals else 0
        self._refusals[run] = Refusal(tries + 1, time.monotonic() + min(FIRST_RETRY_S * 2**tries, MAX_RETRY_S))
        with suppress(CouncilError):
            await self.tables.release_claims(self.name, [run])


# Entry points


def run_database_worker(address: StoreAddress, **options: Any) -> int:
    asyncio.run(DatabaseWorker(address, os.environ, **options).serve_until_signal())
    return 0


@asynccontextmanager
async def open_ahead(records: RunRecords, log: Callable[[str], object]) -> AsyncIterator[asyncio.Task[RunStore]]:
    """Open the shared store of a server inside the block, which may begin before the database can be reached."""
    failed = asyncio.Event()

    def note(error: StoreError) -> None:
        if not failed.is_set():
            log(f"waiting for the database: {error}")
        failed.set()

    opening, waiting = asyncio.create_task(records.wait_for_store(note)), asyncio.create_task(failed.wait())
    try:
        await asyncio.wait([opening, waiting], timeout=OPEN_S, return_when=asyncio.FIRST_COMPLETED)
        if opening.done():
            opening.result()
        opening.add_done_callback(partial(_report_refusal, log))
        yield opening
    finally:
        for task in (opening, waiting):
            task.cancel()
        await asyncio.gather(opening, waiting, return_exceptions=True)


def _report_refusal(log: Callable[[str], object], opening: asyncio.Task[RunStore]) -> None:
    if not opening.cancelled() and (error := opening.exception()):
        log(str(error))


@asynccontextmanager
async def embed_worker(
    records: RunRecords, env: Mapping[str, str], folder: Path, config: Path | None, *, has_worker: bool = True
) -> AsyncIterator[None]:
    """Execute runs of a shared store beside a server and on its connections, inside the block.

    A local store has its own worker process.
    """
    address = records.find_store()
    if not address.url:
        yield
        return
    workers: list[DatabaseWorker] = []
    ready = asyncio.Event()

    async def serve(opening: asyncio.Task[RunStore]) -> None:
        worker = DatabaseWorker(address, env, store=await asyncio.shield(opening), folder=folder, config=config)
        worker.is_ready = ready
        workers.append(worker)
        await worker.serve()

    async with open_ahead(records, _print_line) as opening:
        if not has_worker:
            yield
            return
        serving, starting = asyncio.create_task(serve(opening)), asyncio.create_task(ready.wait())
        try:
            if opening.done():
                await asyncio.wait([serving, starting], timeout=OPEN_S, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            yield
        finally:
            starting.cancel()
            for worker in workers:
                worker.stop()
                worker.stop()  # without waiting for its runs
            if not workers:
                serving.cancel()
            await asyncio.gather(serving, starting, return_exceptions=True)


def _print_line(line: str) -> None:
    print(f"council: {single_line(line, 400)}", file=sys.stderr, flush=True)
