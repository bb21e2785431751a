"""Writing and reading of a run store, shared by the stores of all databases.

One thread writes: it commits whatever is queued as soon as it is free, the rows of all runs of this process in one
transaction. Another thread reads on its own connection, so that a slow write delays no reader.
"""

from __future__ import annotations

import asyncio
import queue
import secrets
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar
from weakref import WeakSet

from council.errors import StoreError
from council.store import queries
from council.store.interface import (
    OPEN_STATUSES,
    BudgetRefusal,
    Connection,
    Hold,
    LimitChange,
    Row,
    RunOwner,
    RunState,
    RunStatus,
    StoredRun,
    WaitingRun,
    WorkerRow,
    format_run_id,
)
from council.store.texts import TextWriter, index_run, unindex_run
from council.store.users import UserQueries

R = TypeVar("R")
Work = Callable[[Connection], Any]
OnResult = Callable[[Any, BaseException | None], None]
LEDGER_TABLES = frozenset({"event", "step", "result", "intent", "settled", "phase", "reserve", "charge"})
OWN_WRITES_TIMEOUT_S = 1.0  # seconds that a read waits for this process's own queued rows
MAX_DELAY_S = 0.05  # longest time that rows wait for the next rows of their run
# Answers that arrive together are one transaction, and the last one is stored with the end of the run.
SHORT_DELAY_S = 0.001

# Threads


@dataclass(frozen=True, slots=True)
class Job:
    """Work of a thread, and the function that gets its result."""

    run: str
    work: Work | None  # None: report when all earlier jobs are done
    on_result: OnResult
    has_ledger_rows: bool = False  # without them, later rows of the run would leave a gap
    rows: Sequence[Row] = ()  # what the work stores, if that is all it does
    token: int = 0  # of the lease that the rows need


class JobThread:
    """Thread that executes jobs in order, several at a time. It starts with the first one."""

    def __init__(self, name: str, execute: Callable[[list[Job]], list[tuple[Any, BaseException | None]]]) -> None:
        self._name, self._execute = name, execute
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock, self.open_jobs = threading.Lock(), 0
        self.gate = threading.Lock()  # held while jobs are executed
        self._thread: threading.Thread | None = None

    def put(self, job: Job) -> None:
        with self._lock:
            self.open_jobs += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        self._jobs.put(job)

    def run(self, run: str, work: Work | None) -> asyncio.Future[Any]:
        """Execute work; the future gets its result."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def on_result(result: Any, error: BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop may be closed; the row is committed anyway
                loop.call_soon_threadsafe(_resolve_future, future, result, error)

        self.put(Job(run, work, on_result))
        return future

    def _run(self) -> None:
        is_open = True
        while is_open:
            taken = [self._jobs.get()]
            while not self._jobs.empty():
                taken.append(self._jobs.get())
            is_open = None not in taken
            jobs = [job for job in taken if job is not None]
            with self.gate:
                outcomes = self._execute(jobs)
            with self._lock:
                self.open_jobs -= len(jobs)
            for job, (result, error) in zip(jobs, outcomes, strict=True):
                job.on_result(result, error)

    def close(self, timeout: float | None = None) -> None:
        """Finish the queued jobs and end the thread. After the timeout, leave it alone."""
        if self._thread:
            self._jobs.put(None)
            self._thread.join(timeout)


@dataclass(slots=True)
class Batch:
    """Rows of one run that are not sent to the writer yet; they become one transaction."""

    rows: list[Row] = field(default_factory=list)
    waiting: list[asyncio.Future[None]] = field(default_factory=list)  # callers of `write`
    scheduled: set[str] = field(default_factory=set)
    timers: list[asyncio.TimerHandle] = field(default_factory=list)


def without_discarded(rows: Sequence[Row]) -> list[Row]:
    """Return rows without the streamed text that a later row of the same transaction deletes."""
    ended, kept = set[object](), list[Row]()
    for row in reversed(rows):
        if row[0] == "discard_stream":
            ended.add(row[1][0])
        elif row[0] == "live" and row[1][0] in ended:
            continue
        kept.append(row)
    return kept[::-1]


def _resolve_future(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error:
        future.set_exception(error)
    else:
        future.set_result(result)


# Store


class RunStore(UserQueries):
    """Stored runs, in any database. A subclass opens the connections and locks the runs."""

    opened: ClassVar[WeakSet[RunStore]] = WeakSet()
    database_errors: ClassVar[tuple[type[BaseException], ...]]  # raised as StoreError
    is_read_only = False
    close_timeout: float | None = None  # seconds that the closing store waits for each of its threads
    is_shared = False  # several machines use it, and workers execute the queued runs
    _db: Any  # of the thread that writes
    _read_db: Any = None

    def __init__(self) -> None:
        self.on_wait: Callable[[str], object] = lambda message: None  # while it waits; called by another thread
        self._is_open = False
        self.start()
        self.opened.add(self)

    def start(self) -> None:
        """Start without queued jobs, also in a forked process: the jobs and the threads stay with the parent."""
        self._writer = JobThread("council-store", self._commit)
        self._reader = JobThread("council-reads", lambda jobs: [self._execute_read(job) for job in jobs])
        self._batches: dict[str, Batch] = {}  # by run
        self._batch_lock = threading.Lock()  # the runs of several event loops may share the store
        self._failures: dict[str, BaseException] = {}  # by run: why rows of its ledger were not stored
        self._texts: dict[str, TextWriter] = {}  # by run, of the thread that writes
        self._owned_runs: dict[str, int] = {}  # with the tokens of their leases, if they have any

    def pause(self) -> None:
        """Stop at the end of the transactions, without open connections: no connection may cross a fork."""
        for thread in (self._writer, self._reader):
            thread.gate.acquire()
        if self._is_open and not self.is_read_only:
            self._close_connections()
            self._is_open = False

    def resume(self) -> None:
        """Continue after `pause`. The next job opens its connection again."""
        for thread in (self._writer, self._reader):
            thread.gate.release()

    # Database

    @abstractmethod
    def _open(self) -> Any:
        """Return the connection to write, with the present schema."""

    @abstractmethod
    def _open_to_read(self) -> Any: ...

    @abstractmethod
    def _read_again(self, work: Work | None, error: BaseException) -> Any:
        """Read after a first attempt failed, or raise."""

    @abstractmethod
    def _explain(self, error: BaseException) -> str:
        """Return one line: the problem and its fix."""

    @abstractmethod
    def _close_connections(self) -> None: ...

    def _require_writable(self) -> None:
        """Raise StoreError for a database that can only be read."""

    # Upkeep

    @abstractmethod
    async def require_sound(self) -> None:
        """Before a run sends anything: raise StoreError if the database cannot be used."""

    @abstractmethod
    async def check_integrity(self) -> list[str]:
        """Return the problems of the database itself."""

    @abstractmethod
    async def size(self) -> int:
        """Return the bytes of the database."""

    @abstractmethod
    async def shrink(self, *, may_rewrite: bool = True) -> None:
        """Return the space of deleted runs to the file system."""

    # Writing

    def post(self, run: str, rows: Sequence[Row], *, may_wait: bool = False) -> None:
        """Queue rows. The next `write` raises a failure; there is always one before the next paid call.

        Rows of one millisecond, also those of the next `write`, are one transaction. Rows that may wait are sent with
        the next rows of the run, or after 50 ms.
        """
        with self._batch_lock:
            batch = self._batches.setdefault(run, Batch())
            batch.rows.extend(rows)
            self._schedule(run, batch, "later" if may_wait else "soon")

    async def write(self, run: str, rows: Sequence[Row]) -> None:
        """Store rows, with those posted before them. Return when they are on disk."""
        self._require_writable()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._batch_lock:
            batch = self._batches.setdefault(run, Batch())
            batch.rows.extend(rows)
            batch.waiting.append(future)
            self._schedule(run, batch, "next")
        try:
            await future
        except StoreError:
            raise
        except self.database_errors as error:
            raise StoreError(self._explain(error)) from error

    def _schedule(self, run: str, batch: Batch, when: Literal["next", "soon", "later"]) -> None:
        if when in batch.scheduled:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no event loop
            self._put_batch(run)
            return
        batch.scheduled.add(when)
        if when == "next":
            loop.call_soon(self._send_batch, run, batch)
        else:
            delay = SHORT_DELAY_S if when == "soon" else MAX_DELAY_S
            batch.timers.append(loop.call_later(delay, self._send_batch, run, batch))

    def _send_batch(self, run: str, batch: Batch) -> None:
        with self._batch_lock:
            if self._batches.get(run) is batch:
                self._put_batch(run)

    def _put_batch(self, run: str) -> None:
        batch = self._batches.pop(run)
        for timer in batch.timers:
            timer.cancel()
        has_ledger_rows = not LEDGER_TABLES.isdisjoint([table for table, _ in batch.rows])

        def on_result(result: Any, error: BaseException | None) -> None:
            for future in batch.waiting:
                with suppress(RuntimeError):  # the loop may be closed; the rows are committed anyway
                    future.get_loop().call_soon_threadsafe(_resolve_future, future, None, error)

        work, token = self._insert_rows(run, batch.rows), self._owned_runs.get(run, 0)
        self._writer.put(Job(run, work, on_result, has_ledger_rows, batch.rows, token))

    def _insert_rows(self, run: str, rows: Sequence[Row]) -> Work:
        def work(db: Connection) -> None:
            if run not in self._texts:
                self._texts[run] = TextWriter(db, run)
            for table, values in self._texts[run].pack_rows(without_discarded(rows)):
                if table in ("reopen", "detach"):
                    unindex_run(db, run)
                db.execute(queries.WRITE_STATEMENTS[table], (run, *values))
                if table == "close":
                    index_run(db, run)
            self._forget_texts(run)

        return work

    def _forget_texts(self, run: str) -> None:
        """Forget the stored texts of a run that this process does not execute, such as one that it has queued."""
        if run not in self._owned_runs:
            self._texts.pop(run, None)

    def _send_all_batches(self) -> None:
        with self._batch_lock:
            for run in list(self._batches):
                self._put_batch(run)

    async def reserve(self, run: str, hold: Hold) -> BudgetRefusal | None:
        """Reserve money for one request, or return the cap that refuses it."""
        self._send_all_batches()  # charges that replace larger reservations come first
        return await self._write(run, lambda db: queries.reserve_spending(db, run, hold))

    async def _write(self, run: str, work: Callable[[Connection], R]) -> R:
        try:
            result: R = await self._writer.run(run, work)
            return result
        except self.database_errors as error:
            raise StoreError(self._explain(error)) from error

    @abstractmethod
    def _commit(self, jobs: list[Job]) -> list[tuple[Any, BaseException | None]]:
        """Execute jobs in one transaction; a failing job rolls back only itself. Raise nothing."""

    def _fail_all(self, jobs: list[Job], error: BaseException) -> list[tuple[Any, BaseException | None]]:
        for job in jobs:
            self._note_failure(job, error)
        return [(None, error if job.work else None) for job in jobs]

    def _execute_write(self, job: Job) -> tuple[Any, BaseException | None]:
        if job.work is None:
            return None, None
        if failure := self._failures.get(job.run):  # later rows would leave a gap in the run
            return None, failure
        self._db.execute("SAVEPOINT job")
        try:
            result = job.work(self._db)
        except Exception as error:
            if not self._db.in_transaction:  # a full disk has already rolled back everything
                raise
            self._texts.pop(job.run, None)  # its numbers were rolled back
            self._db.execute("ROLLBACK TO job")
            self._db.execute("RELEASE job")
            self._note_failure(job, error)
            return None, error
        self._db.execute("RELEASE job")
        return result, None

    def _note_failure(self, job: Job, error: BaseException) -> None:
        if job.has_ledger_rows:
            self._failures.setdefault(job.run, error)

    async def _read(self, work: Callable[[Connection], R], *, after_own_writes: bool = True) -> R:
        """Read on the connection for reads, with the rows that this process has queued if they can be written."""
        if after_own_writes:
            self._send_all_batches()
            if self._writer.open_jobs:  # `wait_for` would ignore a cancellation at the moment of the result
                await asyncio.wait({self._writer.run("", None)}, timeout=OWN_WRITES_TIMEOUT_S)
        try:
            result: R = await self._reader.run("", work)
            return result
        except self.database_errors as error:
            raise StoreError(self._explain(error)) from error

    def _execute_read(self, job: Job) -> tuple[Any, BaseException | None]:
        try:
            if self._read_db is None:
                self._read_db = self._open_to_read()
            try:
                return read_snapshot(self._read_db, job.work), None
            except self.database_errors as error:
                return self._read_again(job.work, error), None
        except Exception as error:
            return None, error

    # Limits of vendors

    @abstractmethod
    async def change_limit(self, name: str, change: LimitChange[R]) -> R:
        """Change the state of a limit that all processes share, and return the result of the change.

        `change` gets the state, "" at first, and the time in seconds, by one clock for all processes. It may be called
        several times.
        """

    # Runs

    async def list_workers(self) -> list[WorkerRow]:
        """Return the workers of a shared store that are alive, by the clock of the database."""
        return []

    async def new_run_id(self) -> str:
        """Return a random id that no stored run has."""
        while True:
            run = format_run_id(secrets.randbits(256))
            if not await self._select("SELECT 1 FROM runs WHERE id = ?", run):
                return run

    async def run_state(self, run: str) -> RunState:
        rows = await self._select("SELECT status, detached FROM runs WHERE id = ?", run)
        if not rows:
            raise queries.unknown_run(run)
        status, detached = rows[0]
        return RunState(run, RunStatus(status), bool(detached), status in OPEN_STATUSES and await self.is_locked(run))

    async def states_of(self, rows: Sequence[StoredRun]) -> list[RunState]:
        """Return the states of listed runs."""
        owned = await self._find_owned([row["run"] for row in rows if row["status"] in OPEN_STATUSES])
        return [RunState(row["run"], row["status"], row["detached"], row["run"] in owned) for row in rows]

    async def list_waiting(self, limit: int) -> list[WaitingRun]:
        """Return the runs that wait for a worker, those that wait longest first."""
        waiting = await self._read(lambda db: queries.select_waiting(db, limit))
        owned = await self._find_owned([one.run for one in waiting])
        return [one for one in waiting if one.run not in owned]

    async def count_running(self) -> int:
        """Return how many runs a process executes."""
        return len(await self._find_owned([row[0] for row in await self._select(queries.RUNNING)]))

    @abstractmethod
    def lock_run(self, run: str, *, is_new: bool = False) -> AbstractAsyncContextManager[None]:
        """Own a run inside the block, or raise RunOwned. `is_new`: no other process can know the run yet."""

    @abstractmethod
    async def find_owner(self, run: str) -> RunOwner | None:
        """Return the process that executes a run, if one does and its name is known."""

    @abstractmethod
    async def _find_owned(self, runs: Sequence[str]) -> set[str]:
        """Return those of the runs that a process executes now."""

    @abstractmethod
    async def wait_for_change(self, run: str) -> None:
        """Return when a run that another process executes may have new rows."""

    async def is_locked(self, run: str) -> bool:
        """Return whether a process executes the run."""
        return bool(await self._find_owned([run]))

    async def delete_run(self, run: str) -> None:
        """Delete a run, which the caller must have locked. Its spending rows stay."""
        await self._write(run, lambda db: queries.delete_run(db, run))

    async def remove_abandoned_text(self) -> None:
        """Remove the streamed text of runs that no process executes."""
        for (run,) in await self._select("SELECT DISTINCT run FROM live_parts"):
            if not await self.is_locked(run):
                await self.write(run, [("discard_streams", ())])

    def list_temp_files(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("*.tmp"))

    @contextmanager
    def _own(self, run: str, token: int = 0) -> Iterator[None]:
        """Mark a run as executed by this process, inside the block."""
        self._failures.pop(run, None)
        self._owned_runs[run] = token
        try:
            yield
        finally:
            self._owned_runs.pop(run, None)
            self._texts.pop(run, None)

    def connect_fully(self) -> None:
        """Open all connections of this process now, so that it does not wait for one while it has others."""

    def give_up(self) -> None:
        """Stop waiting for the database: what waits for it fails now."""

    def close(self) -> None:
        """Store the queued rows and close the connections."""
        self._send_all_batches()
        self._writer.close(self.close_timeout)
        self._reader.close(self.close_timeout)
        self._close_connections()


def read_snapshot(db: Any, work: Work | None) -> Any:
    """Read everything from one state of the database."""
    db.execute("BEGIN")
    try:
        return work(db) if work else None
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
