"""Run store in one SQLite file: open, lock and check it, explain its errors, and read one that is read-only."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

from council.errors import RunOwned, StoreError, wording
from council.settings.disk_space import explain_full_temp_folder, find_full_temp_folder, is_disk_full
from council.settings.private_files import (
    copy_private_file,
    make_private_file,
    make_private_folder,
    open_private_handle,
)
from council.store import locks
from council.store.interface import Connection, LimitChange
from council.store.migrations import list_migrations, read_statements
from council.store.run_store import Job, RunStore, Work, read_snapshot

R = TypeVar("R")
MIGRATIONS = list_migrations("sqlite")
BUSY_SLICE_S = 0.25  # seconds of one attempt to get a lock
WRITE_TIMEOUT_S = 30.0  # seconds that a write waits for other processes; the owner of a run waits longer
READ_TIMEOUT_S = 10.0
FOLLOW_POLL_S = 0.1  # seconds between polls of a run that another process executes
SMALL_STORE_BYTES = 16 << 20
CHECK_INTERVAL_S = 600.0  # seconds between the checks of a small store by one process
LARGE_CHECK_INTERVAL_S = 86400.0  # seconds between the checks of a large store by all processes
PAGES_PER_STEP = 1000
SHRINK_TIMEOUT_S = 1.0
INCREMENTAL = 2  # value of auto_vacuum
COUNT_TABLES = "SELECT count(*), coalesce(sum(name = 'settled'), 0) FROM sqlite_master"
MISFITS = ("already exists", "duplicate column", "no such table")  # of a version that does not fit its tables
DAMAGE_WORDS = ("not a database", "malformed", "unsupported file format", *MISFITS)

# Open


def open_database(path: Path) -> sqlite3.Connection:
    """Open the database of a store to write, create it if it is missing, and bring it to the present schema."""
    if has_lost_file(path):
        raise StoreError(explain_damage("the file is empty, but its log is not", path))
    if not path.exists():  # SQLite would create it by the umask
        with suppress(FileExistsError):  # another one did: to open and close it here would release its locks
            os.close(open_private_handle(path, os.O_RDWR | os.O_EXCL))
    db = _connect(path)
    try:
        version, (tables, ours) = _schema_version(db), db.execute(COUNT_TABLES).fetchone()
        if (version or tables) and not (ours and version <= len(MIGRATIONS)):
            other = f'"{path}" is a database of another program, and was not changed: move it away, or set COUNCIL_DATA to another folder'
            raise StoreError(explain_newer(version, path) if ours else other)
        make_private_file(path)  # SQLite gives its other files the same permissions
        if not tables:  # so that a new file can shrink; for an old one, this would write
            db.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        _migrate(db, path)
        db.execute("PRAGMA temp_store = MEMORY")  # a full folder of temporary files stops no run
    except BaseException:
        db.close()  # release its file lock
        raise
    return db


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a second connection to a database that this process has opened to write. Its reads take no lock."""
    db = _connect(path)
    db.execute("PRAGMA query_only = 1")
    return db


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_SLICE_S)


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    if _schema_version(db) == len(MIGRATIONS):
        return
    db.execute("BEGIN IMMEDIATE")
    version = _schema_version(db)
    if version > len(MIGRATIONS):  # a newer process has migrated it in the meantime
        raise StoreError(explain_newer(version, path))
    if version:
        version = max(version, _find_applied_version(db))
    _execute_migrations(db, MIGRATIONS[version:])
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    db.execute("COMMIT")


def _execute_migrations(db: sqlite3.Connection, migrations: Sequence[Path]) -> None:
    for statement in chain.from_iterable(map(read_statements, migrations)):
        try:
            db.execute(statement)
        except sqlite3.OperationalError as error:
            if "no such module" not in str(error):  # built without full-text search
                raise


def _find_applied_version(db: sqlite3.Connection) -> int:
    """Return the newest version whose schema the database has.

    Council 0.2.0 stores its own version in a database that a newer process has just migrated. Such a migration is not
    repeated.
    """
    present, expected, applied = _list_schema(db), set[tuple[str, str, str]](), 0
    model = sqlite3.connect(":memory:", isolation_level=None)
    try:
        for version, migration in enumerate(MIGRATIONS, 1):
            _execute_migrations(model, [migration])
            before, expected = expected, _list_schema(model)
            if expected != before and expected <= present:  # a migration without new objects is no evidence
                applied = version
    finally:
        model.close()
    return applied


def _list_schema(db: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """Return the columns of the tables, and the statements of the indexes, views and triggers."""
    columns = db.execute(
        """SELECT 'column', m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c
           WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%'"""
    )
    others = db.execute("SELECT type, name, sql FROM sqlite_master WHERE type <> 'table' AND sql IS NOT NULL")
    return {*columns.fetchall(), *others.fetchall()}


def _schema_version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def quick_check(path: Path) -> str:
    """Return the first problem in the structure of the database, or ""."""
    db = open_to_read(path)
    try:
        (first,) = db.execute("PRAGMA quick_check(1)").fetchone()
        return "" if first == "ok" else str(first).splitlines()[-1]
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return "" if locks.is_busy(error) else str(error)
    finally:
        db.close()


# Locks


class RunLock:
    """Lock of a run, held inside `with`. A forked process does not inherit it: it ends with the process that took it.

    The holder removes the file at the end. A process that has opened it before that opens it again.
    """

    _held: ClassVar[set[RunLock]] = set()

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open()

    def _open(self) -> None:
        self._handle = open_private_handle(self._path, os.O_RDWR)
        self._held.add(self)

    def __enter__(self) -> None:
        """Lock the file and write the id of this process into it, or raise RunOwned."""
        self._lock()
        while not self._is_in_place():
            self.close()
            self._open()
            self._lock()
        with suppress(OSError):  # a full disk: the lock holds without the id
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)

    def _lock(self) -> None:
        if not locks.lock_handle(self._handle):
            self.close()
            raise RunOwned(locks.explain_owner(self._path.stem, locks.read_owner(self._path)))

    def _is_in_place(self) -> bool:
        """Return whether the locked file is the one that other processes open."""
        try:
            return os.path.samestat(os.fstat(self._handle), os.stat(self._path))  # noqa: PTH116
        except FileNotFoundError:
            return False

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # the lock ends anyway
            if self in self._held and self._is_in_place():
                self._path.unlink()
        self.close()

    def close(self) -> None:
        if self in self._held:
            self._held.discard(self)
            os.close(self._handle)

    @classmethod
    def close_all(cls) -> None:
        for lock in list(cls._held):
            lock.close()


os.register_at_fork(after_in_child=RunLock.close_all)


# Errors


def explain_error(error: BaseException, path: Path) -> str:
    """Return one line: the problem and its fix."""
    text, number = str(error), getattr(error, "errno", None)
    if path.is_dir():
        return f'the run store "{path}" is a folder: move it away, or set COUNCIL_DATA to another folder'
    if locks.is_busy(error):
        return f'the run store "{path}" is busy: {locks.describe_wait(locks.find_holders(path))}'
    if number in (errno.EMFILE, errno.ENFILE) or ("unable to open" in text and not _can_open_files()):
        return f'the run store "{path}" cannot be opened, because too many files are open: run fewer councils at once, or raise `ulimit -n`'
    if is_read_only_error(error):
        return f'cannot write to the run store "{path}" ({error}): make the folder writable, or set COUNCIL_DATA to another one'
    if isinstance(error, UnicodeDecodeError) or any(word in text for word in DAMAGE_WORDS):
        return explain_damage(text, path)
    if "full" in text or number in (errno.ENOSPC, errno.EDQUOT) or ("I/O" in text and is_disk_full(path.parent)):
        if not is_disk_full(path.parent) and (folder := find_full_temp_folder()):
            return explain_full_temp_folder(folder)
        return f'the run store "{path}" cannot be used ({error}): free some space or set COUNCIL_DATA to another folder'
    return f'the run store "{path}" cannot be used ({error}): check the disk and your quota, or set COUNCIL_DATA to another folder'


def explain_damage(problem: str, path: Path) -> str:
    repair = wording(python="`council runs fsck --repair`", cli="`council runs fsck --repair`")
    return (
        f'the run store "{path}" is damaged ({problem}): recover its runs with {repair}, '
        "move it away to start a new one, or set COUNCIL_DATA to another folder"
    )


def explain_newer(version: int, path: Path) -> str:
    return (
        f'the run store "{path}" was written by a newer council (schema version {version}, this one supports {len(MIGRATIONS)}): '
        "upgrade council, or set COUNCIL_DATA to another folder"
    )


def is_read_only_error(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    return "readonly" in str(error) or "unable to open" in str(error)


def _can_open_files() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True


# Read only


class ReadOnlyCopy:
    """A read-only database: opened as it is, or as a temporary copy if it has to be recovered or migrated."""

    def __init__(self, path: Path) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.db = self._open_in_place(path) or self._open_copy(path)

    def _open_in_place(self, path: Path) -> sqlite3.Connection | None:
        log = log_of(path)
        modes = ["mode=ro"] + ([] if log.exists() and log.stat().st_size else ["mode=ro&immutable=1"])
        for mode in modes:
            address = f"file:{quote(str(path.absolute()))}?{mode}"
            db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            try:
                version = int(db.execute("PRAGMA user_version").fetchone()[0])
                db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.OperationalError:  # the files beside it are missing and cannot be created
                db.close()
                continue
            if version == len(MIGRATIONS):
                return db
            db.close()
            if version > len(MIGRATIONS):
                raise StoreError(explain_newer(version, path))
            return None
        return None

    def _open_copy(self, path: Path) -> sqlite3.Connection:
        self._folder = tempfile.TemporaryDirectory(prefix="council-")
        copy = Path(self._folder.name) / path.name
        copy_private_file(path, copy)
        with suppress(FileNotFoundError):
            copy_private_file(log_of(path), log_of(copy))
        return open_database(copy)

    def close(self) -> None:
        self.db.close()
        if self._folder:
            self._folder.cleanup()


def has_lost_file(path: Path) -> bool:
    """Return whether the file is empty although its log is not. SQLite would delete the log."""
    if not path.exists() or path.stat().st_size:
        return False
    log = log_of(path)
    return log.exists() and log.stat().st_size > 0


def log_of(path: Path) -> Path:
    """Return the log of a database, which is beside the file itself, not beside a link to it."""
    file = path.resolve()
    return file.with_name(f"{file.name}-wal")


# Store

_last_checks: dict[Path, float] = {}  # by database: when this process checked it


class SqliteStore(RunStore):
    """Run store in one SQLite file, which may be read-only. A run is locked by a file lock."""

    database_errors = (OSError, sqlite3.Error, OverflowError, UnicodeDecodeError)

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "council.db"
        self._copy: ReadOnlyCopy | None = None
        super().__init__()
        try:
            with self._writer.gate:
                self._db, self._is_open = self._open(), True
        except self.database_errors as error:
            raise StoreError(self._explain(error)) from error

    def _open(self) -> sqlite3.Connection:
        try:
            make_private_folder(self.folder / "locks")
            return locks.wait_for_lock(self.path, lambda: open_database(self.path), lambda: WRITE_TIMEOUT_S)
        except (OSError, sqlite3.Error) as error:
            can_write = os.access(self.path, os.W_OK) and os.access(self.folder, os.W_OK)
            if can_write or not self.path.is_file() or not is_read_only_error(error):
                raise
            self._copy, self.is_read_only = ReadOnlyCopy(self.path), True
            return self._copy.db

    def _open_to_read(self) -> sqlite3.Connection:
        return self._copy.db if self._copy else open_to_read(self.path)

    def _commit(self, jobs: list[Job]) -> list[tuple[Any, BaseException | None]]:
        if not any(job.work for job in jobs):
            return [(None, None)] * len(jobs)
        try:
            if not self._is_open:
                self._db, self._is_open = self._open(), True
                self._texts.clear()
            self._begin(jobs)
            outcomes = [self._execute_write(job) for job in jobs]
            self._db.execute("COMMIT")
        except Exception as error:  # the thread must continue
            with suppress(*self.database_errors):
                self._db.execute("ROLLBACK")
            self._texts.clear()
            return self._fail_all(jobs, error)
        return outcomes

    def _begin(self, jobs: Sequence[Job]) -> None:
        """Start the transaction. Without a time limit if a run of this process may have paid for its rows."""
        begin = partial(self._db.execute, "BEGIN IMMEDIATE")
        with suppress(*self.database_errors):
            begin()
            return
        locks.wait_for_lock(  # the second attempt raises other problems than a busy database
            self.path,
            begin,
            lambda: None if any(job.run in self._owned_runs for job in jobs) else WRITE_TIMEOUT_S,
            lambda owners: self.on_wait(f"the run store is busy: {locks.describe_wait(owners)}"),
        )

    def _read_again(self, work: Work | None, error: BaseException) -> Any:
        if not isinstance(error, sqlite3.OperationalError):
            raise error
        return locks.wait_for_lock(self.path, lambda: read_snapshot(self._read_db, work), lambda: READ_TIMEOUT_S)

    def _explain(self, error: BaseException) -> str:
        return explain_error(error, self.path)

    def _require_writable(self) -> None:
        if self.is_read_only:
            raise StoreError(self._explain(sqlite3.OperationalError("attempt to write a readonly database")))

    def _close_connections(self) -> None:
        if self._read_db is not None and self._copy is None:
            self._read_db.close()
            self._read_db = None
        (self._copy or self._db).close()

    # Checks

    async def require_sound(self) -> None:
        """Before a run sends anything: refuse a damaged database, and remove the text that dead processes have left.

        A process does this every ten minutes, and checks a large database once a day.
        """
        self._require_writable()
        now = time.time()
        if 0 <= now - _last_checks.get(self.path, 0.0) < CHECK_INTERVAL_S:
            return
        _last_checks[self.path] = now  # runs that start meanwhile do not check again
        try:
            await self._refuse_damage()
            await self.remove_abandoned_text()
        except StoreError:
            _last_checks.pop(self.path, None)
            raise

    async def _refuse_damage(self) -> None:
        is_large = self.path.stat().st_size > SMALL_STORE_BYTES
        mark = self.path.with_name(f"{self.path.name}-checked")  # its time says when a large database was checked
        if is_large and mark.exists() and 0 <= time.time() - mark.stat().st_mtime < LARGE_CHECK_INTERVAL_S:
            return
        if problem := await asyncio.to_thread(quick_check, self.path):
            raise StoreError(explain_damage(problem, self.path))
        if is_large:
            with suppress(OSError):
                os.close(open_private_handle(mark, os.O_WRONLY))
                os.utime(mark)

    async def check_integrity(self) -> list[str]:
        """Return the problems that SQLite's integrity check finds."""
        return [problem for (problem,) in await self._select("PRAGMA integrity_check") if problem != "ok"]

    async def shrink(self, *, may_rewrite: bool = True) -> None:
        """Return the space of deleted runs to the file system."""
        await asyncio.to_thread(shrink_database, self.path, may_rewrite=may_rewrite)

    async def size(self) -> int:
        """Return the bytes of the database, including those not yet in its main file."""
        return sum(file.stat().st_size for file in (self.path, log_of(self.path)) if file.exists())

    # Limits of vendors

    async def change_limit(self, name: str, change: LimitChange[R]) -> R:
        def work(db: Connection) -> R:
            found = db.execute("SELECT state FROM limits WHERE name = ?", (name,)).fetchone()
            state = str(found[0]) if found else ""
            changed, result = change(state, time.time())
            if changed != state:
                db.execute("INSERT OR REPLACE INTO limits VALUES (?, ?)", (name, changed))
            return result

        return await self._write("", work)

    # Owners

    @asynccontextmanager
    async def lock_run(self, run: str, *, is_new: bool = False) -> AsyncIterator[None]:
        """Lock a run for this process, or raise RunOwned. The lock is released when the process dies."""
        self._require_writable()
        try:
            lock = RunLock(self._lock_path(run))
        except OSError as error:
            raise StoreError(explain_error(error, self._lock_path(run))) from error
        with lock, self._own(run):
            yield

    async def _find_owned(self, runs: Sequence[str]) -> set[str]:
        return {run for run in runs if locks.is_locked(self._lock_path(run))}

    async def find_owner(self, run: str) -> locks.LockOwner | None:
        """Return the process that executes a run, if one does and its name is known."""
        return locks.read_owner(self._lock_path(run))

    async def delete_run(self, run: str) -> None:
        await super().delete_run(run)
        self._lock_path(run).unlink(missing_ok=True)

    def _lock_path(self, run: str) -> Path:
        return Path(f"{self.folder}/locks/{run}.lock")

    async def wait_for_change(self, run: str) -> None:
        """Return when a run that another process executes may have new rows."""
        await asyncio.sleep(FOLLOW_POLL_S)


def shrink_database(path: Path, *, may_rewrite: bool) -> None:
    """Return free pages to the file system in small transactions. A database of an older version is rewritten once.

    A reader keeps the pages it reads, and a writer waits for one small transaction. If the database is busy, the pages
    stay free and are used again.
    """
    db = sqlite3.connect(path, isolation_level=None, timeout=SHRINK_TIMEOUT_S)
    try:
        if db.execute("PRAGMA auto_vacuum").fetchone()[0] == INCREMENTAL:
            (free,) = db.execute("PRAGMA freelist_count").fetchone()
            for _ in range(0, free, PAGES_PER_STEP):
                db.executescript(f"PRAGMA incremental_vacuum({PAGES_PER_STEP})")  # `execute` would free one page
        elif may_rewrite:
            db.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
            db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError:
        pass  # busy
    finally:
        db.close()
