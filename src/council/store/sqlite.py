"""Run store in one SQLite file, and the file locks of running runs.

The kernel releases a lock when its process dies, also after kill -9.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from council import events as ev
from council.errors import RunOwned, StoreError, UnknownRun, wording
from council.store import sqlite_queries
from council.store.interface import OPEN_STATUSES, Attempt, BudgetRefusal, Hold, Record, Row, RunState, RunStatus
from council.store.migrations import MIGRATIONS
from council.types import Json, Outcome

# File locks

LOCK_ATTEMPTS = 5  # `is_locked` in another process holds the lock for a moment
LOCK_RETRY_S = 0.01  # seconds between attempts


@contextmanager
def hold_lock(path: Path) -> Iterator[bool]:
    """Hold the lock inside the block; yield whether it was acquired."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield _try_lock(handle, LOCK_ATTEMPTS)
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(handle)
    finally:
        os.close(handle)


def _try_lock(handle: int, tries: int = 1) -> bool:
    for tries_left in range(tries - 1, -1, -1):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if tries_left:
                time.sleep(LOCK_RETRY_S)
    return False


# Store

R = TypeVar("R")
Work = Callable[[sqlite3.Connection], Any]
Job = tuple[Work, Callable[[Any, BaseException | None], None]]

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
    "close": "UPDATE runs SET status = ?2, report = ?3, cancel = 0 WHERE id = ?1",
    "reopen": "UPDATE runs SET status = 'running', report = '' WHERE id = ?1",  # keeps `cancel`, which may have been set since
    "detach": "UPDATE runs SET status = 'queued', detached = 1, cancel = 0, setup = ?2 WHERE id = ?1",
    "cancel": "UPDATE runs SET cancel = 1 WHERE id = ?1 AND status IN ('queued', 'running')",
    **sqlite_queries.SPENDING_STATEMENTS,
    **sqlite_queries.ASK_STATEMENTS,
}


class SqliteStore:
    """Run store in one SQLite file; a single thread runs all queries."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "council.db"
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._write_error: BaseException | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / "locks").mkdir(exist_ok=True, mode=0o700)
            self._db = _open_database(self.path)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(_explain_error(error, self.path)) from error
        self._thread = threading.Thread(target=self._run_writer, name="council-store", daemon=True)
        self._thread.start()

    # Writing

    def post(self, run: str, rows: Sequence[Row]) -> None:
        """Queue rows. The next `write` raises a failure; there is always one before the next paid call."""
        self._jobs.put((_insert_rows(run, rows), self._note_failure))

    async def write(self, run: str, rows: Sequence[Row]) -> None:
        if self._write_error:
            raise StoreError(_explain_error(self._write_error, self.path)) from self._write_error
        await self._submit(_insert_rows(run, rows))

    async def reserve(self, run: str, hold: Hold) -> BudgetRefusal | None:
        """Reserve money for one request, or return the cap that refuses it."""
        return await self._submit(lambda db: sqlite_queries.reserve_spending(db, run, hold))

    def _note_failure(self, result: Any, error: BaseException | None) -> None:
        self._write_error = self._write_error or error

    async def _submit(self, work: Callable[[sqlite3.Connection], R]) -> R:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()

        def done(result: Any, error: BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop may be closed; the row is committed anyway
                loop.call_soon_threadsafe(_resolve_future, future, result, error)

        self._jobs.put((work, done))
        try:
            return await future
        except (OSError, sqlite3.Error) as error:
            raise StoreError(_explain_error(error, self.path)) from error

    def _run_writer(self) -> None:
        open_ = True
        while open_:
            jobs = [self._jobs.get()]
            while not self._jobs.empty():
                jobs.append(self._jobs.get())
            open_ = None not in jobs
            self._commit([job for job in jobs if job is not None])

    def _commit(self, jobs: list[Job]) -> None:
        """Run all queued jobs in one transaction; a failing job rolls back only itself."""
        outcomes: list[tuple[Any, BaseException | None]] = []
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for work, _ in jobs:
                outcomes.append(_run_job(self._db, work))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            outcomes = [(None, error)] * len(jobs)
        for (_, on_result), (result, problem) in zip(jobs, outcomes, strict=True):
            on_result(result, problem)

    # Reading

    async def load(self, run: str) -> Record:
        return await self._submit(lambda db: _load_record(db, run))

    async def list_runs(self) -> list[dict[str, Any]]:
        """Return all runs, newest first: id, name, folder, created, status, detached, setup (protocol and question)."""
        return await self._submit(_select_runs)

    async def match_runs(self, run: str) -> list[str]:
        """Return the ids that start with `run`, an exact match first; none for an empty string."""
        query = "SELECT id FROM runs WHERE ?1 != '' AND substr(id, 1, length(?1)) = ?1 ORDER BY id != ?1, rowid"
        return [row[0] for row in await self._submit(lambda db: db.execute(query, (run,)).fetchall())]

    async def run_state(self, run: str) -> RunState:
        query = "SELECT id, status, detached FROM runs WHERE id = ?"
        row = await self._submit(lambda db: db.execute(query, (run,)).fetchone())
        if row is None:
            raise _unknown_run(run)
        return self.state_of(dict(zip(("id", "status", "detached"), row, strict=True)))

    def state_of(self, row: Mapping[str, Any]) -> RunState:
        """Return the state of a listed run, from its `id`, `status` and `detached`."""
        stored = RunStatus(row["status"])
        is_owned = stored in OPEN_STATUSES and self.is_locked(row["id"])
        return RunState(row["id"], stored, bool(row["detached"]), is_owned)

    async def list_history(self, filters: Mapping[str, str], before: str | None, limit: int) -> list[Json]:
        """Return a page of run summaries, unfinished first; `before` is the last run of the previous page."""
        return await self._submit(lambda db: sqlite_queries.select_history_page(db, filters, before, limit))

    async def is_cancelled(self, run: str) -> bool:
        row = await self._submit(lambda db: db.execute("SELECT cancel FROM runs WHERE id = ?", (run,)).fetchone())
        return bool(row and row[0])

    async def list_detached(self) -> list[str]:
        """Return detached runs that are queued, or still running after their worker died, oldest first."""
        query = "SELECT id FROM runs WHERE detached = 1 AND status IN ('queued', 'running') ORDER BY rowid"
        rows = await self._submit(lambda db: db.execute(query).fetchall())
        return [row[0] for row in rows]

    async def load_since(self, run: str, seq: int) -> tuple[list[ev.Entry], dict[str, str], str]:
        """Return the events after `seq`, the text streaming now by key, and the run's status."""
        return await self._submit(lambda db: _load_since(db, run, seq))

    async def list_open_asks(self, run: str | None = None) -> list[Json]:
        """Return the unanswered questions of one run or of all, oldest first."""
        return await self._submit(lambda db: sqlite_queries.select_open_asks(db, run))

    async def save_answer(self, run: str, key: str, text: str) -> bool:
        """Save an answer and return whether the question was still open; the first answer counts."""
        return await self._submit(lambda db: sqlite_queries.save_answer(db, run, key, text))

    async def get_answer(self, run: str, key: str, prompt: str) -> str | None:
        return await self._submit(lambda db: sqlite_queries.select_answer(db, run, key, prompt))

    async def search_runs(self, words: Sequence[str]) -> list[str]:
        """Return the runs that contain all of these words."""
        return await self._submit(lambda db: sqlite_queries.search_runs(db, words))

    async def list_unfinished_forks(self) -> dict[str, str]:
        """Return the unfinished forks with their parent runs, whose answers they still reuse."""
        return await self._submit(sqlite_queries.select_unfinished_forks)

    async def list_report_paths(self, run: str) -> list[Path]:
        return await self._submit(lambda db: sqlite_queries.select_report_paths(db, run))

    async def shrink(self, *, may_rewrite: bool = True) -> None:
        """Return the space of deleted runs to the file system."""
        await asyncio.to_thread(sqlite_queries.shrink_database, self.path, may_rewrite=may_rewrite)

    def file_size(self) -> int:
        """Return the bytes of the database, including those not yet in its main file."""
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    async def delete_run(self, run: str) -> None:
        """Delete a run and its lock, which the caller must hold. Its spending rows stay."""
        await self._submit(lambda db: sqlite_queries.delete_run(db, run))
        self._lock_path(run).unlink(missing_ok=True)

    async def find_newest_unfinished(self, folder: str) -> str | None:
        unfinished = [
            run for run in await self.list_runs() if run["folder"] == folder and run["status"] != RunStatus.COMPLETE
        ]
        return unfinished[0]["id"] if unfinished else None

    async def list_spending(self, day: str) -> list[Json]:
        """Return every request since that day that may cost money, oldest first."""
        return await self._submit(lambda db: sqlite_queries.select_spending_since(db, day))

    async def check_integrity(self) -> list[str]:
        """Return the problems that SQLite's integrity check finds."""
        rows = await self._submit(lambda db: db.execute("PRAGMA integrity_check").fetchall())
        return [row[0] for row in rows if row[0] != "ok"]

    def list_temp_files(self) -> list[str]:
        return sorted(str(path.name) for path in self.folder.glob("*.tmp"))

    # Locking

    @contextmanager
    def lock_run(self, run: str) -> Iterator[None]:
        """Lock a run for this process, or raise RunOwned. The lock is released when the process dies."""
        with hold_lock(self._lock_path(run)) as mine:
            if not mine:
                raise RunOwned(
                    f"run {run} is running in another process: `council watch {run}` waits for it, `council cancel {run}` stops it"
                )
            yield

    def is_locked(self, run: str) -> bool:
        return is_locked(self._lock_path(run))

    def _lock_path(self, run: str) -> Path:
        return self.folder / "locks" / f"{run}.lock"

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join()
        self._db.close()


def _open_database(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
    try:
        path.chmod(0o600)
        db.execute(f"PRAGMA auto_vacuum = {sqlite_queries.INCREMENTAL}")  # of a new file, so that it can shrink
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        _migrate(db, path)
    except BaseException:
        db.close()  # release its file lock
        raise
    return db


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    if _version(db) == len(MIGRATIONS):
        return
    db.execute("BEGIN IMMEDIATE")
    version = _version(db)
    if version > len(MIGRATIONS):
        raise StoreError(
            f'the run store "{path}" was written by a newer council (schema version {version}, this one supports {len(MIGRATIONS)}): '
            "upgrade council, or set COUNCIL_DATA to another folder"
        )
    for statement in chain.from_iterable(MIGRATIONS[version:]):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    db.execute("COMMIT")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _explain_error(error: BaseException, path: Path) -> str:
    if isinstance(error, PermissionError) or "readonly" in str(error) or "unable to open" in str(error):
        return f'cannot write to the run store "{path}" ({error}): make the folder writable, or set COUNCIL_DATA to another one'
    if "not a database" in str(error) or "malformed" in str(error):
        return f'the run store "{path}" is damaged ({error}): move it away to start a new one, or set COUNCIL_DATA to another folder'
    return f'the run store "{path}" cannot be used ({error}): free some space or set COUNCIL_DATA to another folder'


def _insert_rows(run: str, rows: Sequence[Row]) -> Work:
    def work(db: sqlite3.Connection) -> None:
        for table, values in rows:
            db.execute(WRITE_STATEMENTS[table], (run, *values))

    return work


def _run_job(db: sqlite3.Connection, work: Work) -> tuple[Any, BaseException | None]:
    db.execute("SAVEPOINT job")
    try:
        result = work(db)
    except Exception as error:
        if not db.in_transaction:  # a full disk has already rolled back everything
            raise
        db.execute("ROLLBACK TO job")
        db.execute("RELEASE job")
        return None, error
    db.execute("RELEASE job")
    return result, None


def _resolve_future(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.cancelled():
        return
    if error:
        future.set_exception(error)
    else:
        future.set_result(result)


def _select_runs(db: sqlite3.Connection) -> list[dict[str, Any]]:
    columns = sqlite_queries.HISTORY_COLUMNS
    rows = db.execute(
        f"""SELECT id, name, folder, created, status, detached, {columns["protocol"]}, {columns["task"]}, {columns["question"]}
            FROM runs ORDER BY created DESC, rowid DESC"""
    )
    return [
        {
            "id": id_, "name": name, "folder": folder, "created": created, "status": status, "detached": bool(detached),
            "setup": {"protocol": protocol, "question": {"task": task, "text": text}},
        }
        for id_, name, folder, created, status, detached, protocol, task, text in rows.fetchall()
    ]  # fmt: skip


def _load_record(db: sqlite3.Connection, run: str) -> Record:
    row = db.execute(
        "SELECT id, name, folder, created, seed, setup, status, report FROM runs WHERE id = ?", (run,)
    ).fetchone()
    if row is None:
        raise _unknown_run(run)
    id_, name, folder, created, seed, setup, status, report = row
    record = Record(id_, name, folder, created, seed, json.loads(setup), status, report)
    for seq, at, tag, body in db.execute("SELECT seq, at, type, body FROM events WHERE run = ? ORDER BY seq", (run,)):
        record.entries.append(ev.Entry(seq, at, ev.parse_event(tag, json.loads(body))))
    record.steps = dict(db.execute("SELECT key, fingerprint FROM steps WHERE run = ?", (run,)).fetchall())
    for key, body in db.execute("SELECT key, body FROM results WHERE run = ?", (run,)):
        record.results[key] = Outcome.from_json(json.loads(body))
    record.attempts = _load_attempts(db, run)
    record.spending = sqlite_queries.load_spending(db, run)
    for phase, absences in db.execute("SELECT phase, absences FROM phases WHERE run = ?", (run,)):
        record.phases[phase] = json.loads(absences)
    return record


def _unknown_run(run: str) -> UnknownRun:
    listing = wording(python="`client.runs()`", cli="`council runs`", http="`council runs`")
    return UnknownRun(f'there is no run "{run}": {listing} lists them')


def _load_since(db: sqlite3.Connection, run: str, seq: int) -> tuple[list[ev.Entry], dict[str, str], str]:
    status = db.execute("SELECT status FROM runs WHERE id = ?", (run,)).fetchone()
    if status is None:
        raise _unknown_run(run)
    rows = db.execute("SELECT seq, at, type, body FROM events WHERE run = ? AND seq > ? ORDER BY seq", (run, seq))
    entries = [ev.Entry(n, at, ev.parse_event(tag, json.loads(body))) for n, at, tag, body in rows]
    return entries, dict(db.execute("SELECT key, text FROM live WHERE run = ?", (run,)).fetchall()), status[0]


def _load_attempts(db: sqlite3.Connection, run: str) -> dict[str, list[Attempt]]:
    attempts: dict[str, list[Attempt]] = {}
    rows = db.execute(
        """SELECT i.key, i.n, i.member, i.body, s.body FROM intents i
           LEFT JOIN settled s ON s.run = i.run AND s.key = i.key AND s.n = i.n
           WHERE i.run = ? ORDER BY i.key, i.n""",
        (run,),
    )
    for key, n, member, body, result in rows:
        attempts.setdefault(key, []).append(Attempt(n, member, body, json.loads(result) if result else None))
    return attempts
