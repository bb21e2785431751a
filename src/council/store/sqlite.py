"""Run store in one SQLite file.

One thread writes: it commits whatever is queued as soon as it is free, in short transactions. Another thread reads on its own
connection without a lock, so that a process that is suspended while it writes delays no reader.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from council import events as ev
from council.errors import RunOwned, StoreError
from council.store import sqlite_file, sqlite_queries
from council.store.interface import (
    OPEN_STATUSES,
    BudgetRefusal,
    Hold,
    Record,
    Row,
    RunState,
    RunStatus,
    make_run_id,
)
from council.store.locks import LockOwner, describe_wait, hold_lock, is_locked, read_owner
from council.store.sqlite_file import READ_TIMEOUT_S, WRITE_TIMEOUT_S, explain_error, wait_for_lock
from council.types import Json

R = TypeVar("R")
Work = Callable[[sqlite3.Connection], Any]
OnResult = Callable[[Any, BaseException | None], None]
OWN_WRITES_TIMEOUT_S = 1.0  # seconds that a read waits for this process's own queued rows

# Threads


@dataclass(frozen=True, slots=True)
class Job:
    """Work of a thread, and the function that gets its result."""

    run: str
    work: Work | None  # None: report when all earlier jobs are done
    on_result: OnResult
    has_posted_rows: bool = False  # contains rows that no caller waits for


class JobThread:
    """Thread that executes jobs in order, several at a time. It starts with the first one."""

    def __init__(self, name: str, execute: Callable[[list[Job]], list[tuple[Any, BaseException | None]]]) -> None:
        self._name, self._execute = name, execute
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock, self._open_jobs = threading.Lock(), 0
        self._thread: threading.Thread | None = None

    @property
    def is_idle(self) -> bool:
        return self._open_jobs == 0

    def put(self, job: Job) -> None:
        with self._lock:
            self._open_jobs += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        self._jobs.put(job)

    async def run(self, run: str, work: Work | None, *, has_posted_rows: bool = False) -> Any:
        """Execute work and return its result."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def on_result(result: Any, error: BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop may be closed; the row is committed anyway
                loop.call_soon_threadsafe(_resolve_future, future, result, error)

        self.put(Job(run, work, on_result, has_posted_rows))
        return await future

    def _run(self) -> None:
        is_open = True
        while is_open:
            taken = [self._jobs.get()]
            while not self._jobs.empty():
                taken.append(self._jobs.get())
            is_open = None not in taken
            jobs = [job for job in taken if job is not None]
            outcomes = self._execute(jobs)
            with self._lock:
                self._open_jobs -= len(jobs)
            for job, (result, error) in zip(jobs, outcomes, strict=True):
                job.on_result(result, error)

    def close(self) -> None:
        """Finish the queued jobs and end the thread."""
        if self._thread:
            self._jobs.put(None)
            self._thread.join()


def _resolve_future(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error:
        future.set_exception(error)
    else:
        future.set_result(result)


# Store

WRITE_STATEMENTS = {
    "run": "INSERT INTO runs (id, name, folder, created, seed, setup) VALUES (?, ?, ?, ?, ?, ?)",
    "queue": "INSERT INTO runs (id, name, folder, created, seed, setup, status, detached) VALUES (?, ?, ?, ?, ?, ?, 'queued', 1)",
    "event": "INSERT INTO events (run, seq, at, type, body) VALUES (?, ?, ?, ?, ?)",
    "step": "INSERT INTO steps (run, key, fingerprint) VALUES (?, ?, ?)",
    "result": "INSERT INTO results (run, key, body) VALUES (?, ?, ?)",
    "intent": "INSERT INTO intents (run, key, n, member, body, at) VALUES (?, ?, ?, ?, ?, ?)",
    "settled": "INSERT INTO settled (run, key, n, body, at) VALUES (?, ?, ?, ?, ?)",
    "phase": "INSERT INTO phases (run, phase, absences) VALUES (?, ?, ?)",
    "live": "INSERT OR REPLACE INTO live (run, key, text, at) VALUES (?, ?, ?, ?)",
    "hush": "DELETE FROM live WHERE run = ? AND key = ?",
    "hush_all": "DELETE FROM live WHERE run = ?",
    "close": "UPDATE runs SET status = ?2, report = ?3, cancel = 0 WHERE id = ?1",
    "reopen": "UPDATE runs SET status = 'running', report = '' WHERE id = ?1",  # keeps `cancel`, which may have been set since
    "detach": "UPDATE runs SET status = 'queued', detached = 1, cancel = 0, setup = ?2 WHERE id = ?1",
    "cancel": "UPDATE runs SET cancel = 1 WHERE id = ?1 AND status IN ('queued', 'running')",
    **sqlite_queries.SPENDING_STATEMENTS,
    **sqlite_queries.ASK_STATEMENTS,
}


class SqliteStore:
    """Run store in one SQLite file. A store that cannot be written can still be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "council.db"
        self.on_wait: Callable[[str], None] = lambda message: None  # called by another thread
        self._writer, self._reader = (
            JobThread("council-store", self._commit),
            JobThread("council-reads", self._read_all),
        )
        self._unsent: dict[str, list[Row]] = {}  # by run: rows of this turn of the event loop
        self._failures: dict[str, BaseException] = {}  # by run: why rows that no caller waited for were not stored
        self._owned_runs: set[str] = set()
        self._read_db: sqlite3.Connection | None = None
        self._copy: sqlite_file.ReadOnlyCopy | None = None
        try:
            self._db = self._open()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(explain_error(error, self.path)) from error

    def _open(self) -> sqlite3.Connection:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (self.folder / "locks").mkdir(exist_ok=True, mode=0o700)
            return sqlite_file.open_to_write(self.path)
        except (OSError, sqlite3.Error) as error:
            is_unwritable = self.path.is_file() and not sqlite_file.is_writable(self.path)
            if not is_unwritable or not sqlite_file.is_read_only_error(error):
                raise
            self._copy = sqlite_file.ReadOnlyCopy(self.path)
            return self._copy.db

    @property
    def is_read_only(self) -> bool:
        return self._copy is not None

    async def require_sound(self) -> None:
        """Raise StoreError if the database cannot be written or is damaged. Called before a run sends anything."""
        self._require_writable()
        if sqlite_file.is_check_due(self.path):
            await asyncio.to_thread(sqlite_file.refuse_damage, self.path)

    def _require_writable(self) -> None:
        if self.is_read_only:
            raise StoreError(explain_error(sqlite3.OperationalError("attempt to write a readonly database"), self.path))

    # Writing

    def post(self, run: str, rows: Sequence[Row]) -> None:
        """Queue rows. The next `write` raises a failure; there is always one before the next paid call.

        Rows posted in one turn of the event loop, and those of a `write` in the same turn, are one transaction.
        """
        unsent = self._unsent.setdefault(run, [])
        is_first = not unsent
        unsent.extend(rows)
        if is_first:
            try:
                asyncio.get_running_loop().call_soon(self._send_posted, run)
            except RuntimeError:  # no event loop
                self._send_posted(run)

    def _send_posted(self, run: str) -> None:
        if rows := self._unsent.pop(run, None):
            self._writer.put(Job(run, _insert_rows(run, rows), lambda result, error: None, has_posted_rows=True))

    def _send_all_posted(self) -> None:
        for run in list(self._unsent):
            self._send_posted(run)

    async def write(self, run: str, rows: Sequence[Row]) -> None:
        self._require_writable()
        posted = self._unsent.pop(run, [])
        await self._write(run, _insert_rows(run, [*posted, *rows]), has_posted_rows=bool(posted))

    async def reserve(self, run: str, hold: Hold) -> BudgetRefusal | None:
        """Reserve money for one request, or return the cap that refuses it."""
        self._send_all_posted()  # charges that replace larger reservations come first
        return await self._write(run, lambda db: sqlite_queries.reserve_spending(db, run, hold))

    async def _write(self, run: str, work: Callable[[sqlite3.Connection], R], *, has_posted_rows: bool = False) -> R:
        try:
            result: R = await self._writer.run(run, work, has_posted_rows=has_posted_rows)
            return result
        except StoreError:
            raise
        except (OSError, sqlite3.Error, OverflowError) as error:
            raise StoreError(explain_error(error, self.path)) from error

    def _commit(self, jobs: list[Job]) -> list[tuple[Any, BaseException | None]]:
        """Execute jobs in one transaction; a failing job rolls back only itself."""
        if not any(job.work for job in jobs):
            return [(None, None)] * len(jobs)
        outcomes: list[tuple[Any, BaseException | None]] = []
        try:
            wait_for_lock(
                self.path,
                lambda: self._db.execute("BEGIN IMMEDIATE"),
                lambda: self._write_timeout(jobs),
                self._report_wait,
            )
            for job in jobs:
                outcomes.append(self._execute_write(job))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            outcomes = [(None, error if job.work else None) for job in jobs]
            for job in jobs:
                self._note_failure(job, error)
        return outcomes

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
            self._db.execute("ROLLBACK TO job")
            self._db.execute("RELEASE job")
            self._note_failure(job, error)
            return None, error
        self._db.execute("RELEASE job")
        return result, None

    def _note_failure(self, job: Job, error: BaseException) -> None:
        if job.has_posted_rows:
            self._failures.setdefault(job.run, error)

    def _write_timeout(self, jobs: Sequence[Job]) -> float | None:
        """Return how long to wait for other processes. A run of this process may have paid for its rows: it waits on."""
        return None if any(job.run in self._owned_runs for job in jobs) else WRITE_TIMEOUT_S

    def _report_wait(self, owners: list[LockOwner]) -> None:
        self.on_wait(f"the run store is busy: {describe_wait(owners)}")

    async def _read(self, work: Callable[[sqlite3.Connection], R], *, after_own_writes: bool = True) -> R:
        """Read on the connection for reads. The rows that this process has queued are included if they can be written."""
        if after_own_writes:
            self._send_all_posted()
            if not self._writer.is_idle:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._writer.run("", None), OWN_WRITES_TIMEOUT_S)
        try:
            result: R = await self._reader.run("", work)
            return result
        except (OSError, sqlite3.Error) as error:
            raise StoreError(explain_error(error, self.path)) from error

    def _read_all(self, jobs: list[Job]) -> list[tuple[Any, BaseException | None]]:
        return [self._execute_read(job) for job in jobs]

    def _execute_read(self, job: Job) -> tuple[Any, BaseException | None]:
        try:
            if self._read_db is None:
                self._read_db = self._copy.db if self._copy else sqlite_file.open_to_read(self.path)
            db = self._read_db
            return wait_for_lock(self.path, lambda: _read_snapshot(db, job.work), lambda: READ_TIMEOUT_S), None
        except Exception as error:
            return None, error

    # Reading

    async def load(self, run: str) -> Record:
        return await self._read(lambda db: sqlite_queries.load_record(db, run))

    async def list_runs(self) -> list[dict[str, Any]]:
        """Return all runs, newest first: id, name, folder, created, status, detached, setup (protocol and question)."""
        return await self._read(sqlite_queries.select_runs)

    async def match_runs(self, run: str) -> list[str]:
        """Return the ids that start with `run`, an exact match first; none for an empty string."""
        query = "SELECT id FROM runs WHERE ?1 != '' AND id >= ?1 AND id < ?2 ORDER BY id != ?1, rowid"
        after = f"{run}{chr(sys.maxunicode)}"
        return [row[0] for row in await self._read(lambda db: db.execute(query, (run, after)).fetchall())]

    async def new_run_id(self) -> str:
        """Return an id that no stored run has."""
        while True:
            run = make_run_id()
            if run not in await self.match_runs(run):
                return run

    async def run_state(self, run: str) -> RunState:
        query = "SELECT id, status, detached FROM runs WHERE id = ?"
        row = await self._read(lambda db: db.execute(query, (run,)).fetchone())
        if row is None:
            raise sqlite_queries.unknown_run(run)
        return self.state_of(dict(zip(("id", "status", "detached"), row, strict=True)))

    def state_of(self, row: Mapping[str, Any]) -> RunState:
        """Return the state of a listed run, from its `id`, `status` and `detached`."""
        stored = RunStatus(row["status"])
        is_owned = stored in OPEN_STATUSES and self.is_locked(row["id"])
        return RunState(row["id"], stored, bool(row["detached"]), is_owned)

    async def list_history(self, filters: Mapping[str, str], before: str | None, limit: int) -> list[Json]:
        """Return a page of run summaries, unfinished first; `before` is the last run of the previous page."""
        return await self._read(lambda db: sqlite_queries.select_history_page(db, filters, before, limit))

    async def is_cancelled(self, run: str) -> bool:
        row = await self._read(
            lambda db: db.execute("SELECT cancel FROM runs WHERE id = ?", (run,)).fetchone(), after_own_writes=False
        )
        return bool(row and row[0])

    async def list_detached(self) -> list[str]:
        """Return detached runs that are queued, or still running after their worker died, oldest first."""
        query = "SELECT id FROM runs WHERE detached = 1 AND status IN ('queued', 'running') ORDER BY rowid"
        rows = await self._read(lambda db: db.execute(query).fetchall())
        return [row[0] for row in rows]

    async def list_ended_detached(self, limit: int) -> list[str]:
        """Return the newest complete detached runs."""
        query = "SELECT id FROM runs WHERE detached = 1 AND status = 'complete' ORDER BY rowid DESC LIMIT ?"
        rows = await self._read(lambda db: db.execute(query, (limit,)).fetchall())
        return [row[0] for row in rows]

    async def load_since(self, run: str, seq: int) -> tuple[list[ev.Entry], dict[str, str], str]:
        """Return the events after `seq`, the text streaming now by key, and the run's status."""
        return await self._read(lambda db: sqlite_queries.load_since(db, run, seq))

    async def list_open_asks(self, run: str | None = None) -> list[Json]:
        """Return the unanswered questions of one run or of all, oldest first."""
        return await self._read(lambda db: sqlite_queries.select_open_asks(db, run))

    async def save_answer(self, run: str, key: str, text: str) -> bool:
        """Save an answer and return whether the question was still open; the first answer counts."""
        return await self._write(run, lambda db: sqlite_queries.save_answer(db, run, key, text))

    async def get_answer(self, run: str, key: str, prompt: str) -> str | None:
        return await self._read(lambda db: sqlite_queries.select_answer(db, run, key, prompt), after_own_writes=False)

    async def search_runs(self, words: Sequence[str]) -> list[str]:
        """Return the runs that contain all of these words."""
        return await self._read(lambda db: sqlite_queries.search_runs(db, words))

    async def list_unfinished_forks(self) -> dict[str, str]:
        """Return the unfinished forks with their parent runs, whose answers they still reuse."""
        return await self._read(sqlite_queries.select_unfinished_forks)

    async def list_report_paths(self, run: str) -> list[Path]:
        return await self._read(lambda db: sqlite_queries.select_report_paths(db, run))

    async def shrink(self, *, may_rewrite: bool = True) -> None:
        """Return the space of deleted runs to the file system."""
        await asyncio.to_thread(sqlite_queries.shrink_database, self.path, may_rewrite=may_rewrite)

    def file_size(self) -> int:
        """Return the bytes of the database, including those not yet in its main file."""
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    async def delete_run(self, run: str) -> None:
        """Delete a run and its lock, which the caller must hold. Its spending rows stay."""
        await self._write(run, lambda db: sqlite_queries.delete_run(db, run))
        self._lock_path(run).unlink(missing_ok=True)

    async def find_newest_unfinished(self, folder: str) -> str | None:
        unfinished = [
            run for run in await self.list_runs() if run["folder"] == folder and run["status"] != RunStatus.COMPLETE
        ]
        return unfinished[0]["id"] if unfinished else None

    async def list_spending(self, day: str) -> list[Json]:
        """Return every request since that day that may cost money, oldest first."""
        return await self._read(lambda db: sqlite_queries.select_spending_since(db, day))

    async def check_integrity(self) -> list[str]:
        """Return the problems that SQLite's integrity check finds."""
        rows = await self._read(lambda db: db.execute("PRAGMA integrity_check").fetchall())
        return [row[0] for row in rows if row[0] != "ok"]

    def list_temp_files(self) -> list[str]:
        return sorted(str(path.name) for path in self.folder.glob("*.tmp"))

    # Locking

    @contextmanager
    def lock_run(self, run: str) -> Iterator[None]:
        """Lock a run for this process, or raise RunOwned. The lock is released when the process dies."""
        self._require_writable()
        with hold_lock(self._lock_path(run)) as is_mine:
            if not is_mine:
                raise RunOwned(_explain_owner(run, self.find_owner(run)))
            self._failures.pop(run, None)
            self._owned_runs.add(run)
            try:
                yield
            finally:
                self._owned_runs.discard(run)

    def is_locked(self, run: str) -> bool:
        return is_locked(self._lock_path(run))

    def find_owner(self, run: str) -> LockOwner | None:
        """Return the process that executes a run, if one does and its name is known."""
        return read_owner(self._lock_path(run))

    def _lock_path(self, run: str) -> Path:
        return self.folder / "locks" / f"{run}.lock"

    def close(self) -> None:
        self._send_all_posted()
        self._writer.close()
        self._reader.close()
        if self._read_db is not None and self._copy is None:
            self._read_db.close()
        (self._copy or self._db).close()


def _explain_owner(run: str, owner: LockOwner | None) -> str:
    if owner and owner.is_suspended:
        return (
            f"run {run} is running in another process, which is suspended (process {owner.pid}): "
            f"continue it with `kill -CONT {owner.pid}`, or stop it with `council cancel {run}`"
        )
    process = f" (process {owner.pid})" if owner else ""
    return f"run {run} is running in another process{process}: `council watch {run}` waits for it, `council cancel {run}` stops it"


def _insert_rows(run: str, rows: Sequence[Row]) -> Work:
    def work(db: sqlite3.Connection) -> None:
        for table, values in rows:
            db.execute(WRITE_STATEMENTS[table], (run, *values))

    return work


def _read_snapshot(db: sqlite3.Connection, work: Work | None) -> Any:
    """Read everything from one state of the database."""
    db.execute("BEGIN")
    try:
        return work(db) if work else None
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")
