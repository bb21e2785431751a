"""The database file: open it to write or to read only, migrate it, wait for it, check it, recover a damaged one."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from council.errors import StoreError, wording
from council.store.locks import LockOwner, Waiting, describe_wait, find_holders
from council.store.migrations import MIGRATIONS

R = TypeVar("R")
Report = Callable[[list[LockOwner]], None]
INCREMENTAL = 2  # value of auto_vacuum
BUSY_SLICE_S = 0.25  # seconds of one attempt to get a lock
WRITE_TIMEOUT_S = 30.0  # seconds that a write waits for other processes; the owner of a run waits longer
READ_TIMEOUT_S = 10.0
SMALL_STORE_BYTES = 16 << 20
CHECK_INTERVAL_S = 600.0  # seconds between the checks of a small store by one process
LARGE_CHECK_INTERVAL_S = 86400.0  # seconds between the checks of a large store by all processes
SIDE_FILES = ("-wal", "-shm")


def locks_folder(database: Path) -> Path:
    return database.parent / "locks"


# Wait


def is_busy(error: BaseException) -> bool:
    """Return whether another process holds the database."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def wait_for_lock(
    path: Path, attempt: Callable[[], R], timeout: Callable[[], float | None], on_wait: Report = lambda owners: None
) -> R:
    """Repeat an attempt while another process holds the database. `timeout` is None to wait without a limit."""
    waiting = Waiting(lambda: find_holders(path, locks_folder(path)), on_wait)
    try:
        while True:
            try:
                return attempt()
            except sqlite3.OperationalError as error:
                limit = timeout()
                if not is_busy(error) or (limit is not None and waiting.seconds >= limit):
                    raise
                waiting.note_busy()
    finally:
        waiting.end()


def explain_error(error: BaseException, path: Path) -> str:
    """Return one line: the problem and its fix."""
    text, number = str(error), getattr(error, "errno", None)
    if is_busy(error):
        return f'the run store "{path}" is busy: {describe_wait(find_holders(path, locks_folder(path)))}'
    if number in (errno.EMFILE, errno.ENFILE) or ("unable to open" in text and not _can_open_files()):
        return f'the run store "{path}" cannot be opened, because too many files are open: run fewer councils at once, or raise `ulimit -n`'
    if is_read_only_error(error):
        return f'cannot write to the run store "{path}" ({error}): make the folder writable, or set COUNCIL_DATA to another one'
    if "not a database" in text or "malformed" in text:
        return _explain_damage(text, path)
    if "full" in text or number in (errno.ENOSPC, errno.EDQUOT):
        return f'the run store "{path}" cannot be used ({error}): free some space or set COUNCIL_DATA to another folder'
    return f'the run store "{path}" cannot be used ({error}): check the disk, or set COUNCIL_DATA to another folder'


def _explain_damage(problem: str, path: Path) -> str:
    repair = wording(python="`council runs fsck --repair`", cli="`council runs fsck --repair`")
    return (
        f'the run store "{path}" is damaged ({problem}): recover its runs with {repair}, '
        "move it away to start a new one, or set COUNCIL_DATA to another folder"
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


def is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


# Open


def open_to_write(path: Path) -> sqlite3.Connection:
    """Open the database, create it if it is missing, and bring it to the present schema."""
    return wait_for_lock(path, lambda: _open_once(path), lambda: WRITE_TIMEOUT_S)


def _open_once(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_SLICE_S)
    try:
        path.chmod(0o600)
        db.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")  # of a new file, so that it can shrink
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        _migrate(db, path)
    except BaseException:
        db.close()  # release its file lock
        raise
    return db


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    if _schema_version(db) == len(MIGRATIONS):
        return
    db.execute("BEGIN IMMEDIATE")
    version = _schema_version(db)
    _refuse_newer(version, path)
    for statement in chain.from_iterable(MIGRATIONS[version:]):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    db.execute("COMMIT")


def _schema_version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _refuse_newer(version: int, path: Path) -> None:
    if version > len(MIGRATIONS):
        raise StoreError(
            f'the run store "{path}" was written by a newer council (schema version {version}, this one supports {len(MIGRATIONS)}): '
            "upgrade council, or set COUNCIL_DATA to another folder"
        )


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a second connection to a database that this process has opened to write. Its reads take no lock."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_SLICE_S)
    db.execute("PRAGMA query_only = 1")
    return db


class ReadOnlyCopy:
    """A database that cannot be written: opened as it is, or as a temporary copy if it has to be recovered or migrated."""

    def __init__(self, path: Path) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.db = self._open_in_place(path) or self._open_copy(path)

    def _open_in_place(self, path: Path) -> sqlite3.Connection | None:
        log = path.with_name(f"{path.name}-wal")
        modes = ["mode=ro"] + ([] if log.exists() and log.stat().st_size else ["mode=ro&immutable=1"])
        for mode in modes:
            address = f"file:{quote(str(path.absolute()))}?{mode}"
            db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            try:
                version = _schema_version(db)
                db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.OperationalError:  # the files beside it are missing and cannot be created
                db.close()
                continue
            _refuse_newer(version, path)
            if version == len(MIGRATIONS):
                return db
            db.close()
            return None
        return None

    def _open_copy(self, path: Path) -> sqlite3.Connection:
        self._folder = tempfile.TemporaryDirectory(prefix="council-")
        copy = Path(self._folder.name) / path.name
        shutil.copyfile(path, copy)
        with suppress(FileNotFoundError):
            shutil.copyfile(path.with_name(f"{path.name}-wal"), copy.with_name(f"{path.name}-wal"))
        return _open_once(copy)

    def close(self) -> None:
        self.db.close()
        if self._folder:
            self._folder.cleanup()


# Check

_last_checks: dict[tuple[int, int], float] = {}  # by file: when this process checked it


def is_check_due(path: Path) -> bool:
    """Return whether to check the structure of the database.

    Every process checks a small store when it starts a run; a large one is checked once a day.
    """
    stat = path.stat()
    last = _last_checks.get((stat.st_dev, stat.st_ino), 0.0)
    if stat.st_size <= SMALL_STORE_BYTES:
        return time.time() - last >= CHECK_INTERVAL_S
    with suppress(FileNotFoundError):
        last = max(last, _check_mark(path).stat().st_mtime)
    return time.time() - last >= LARGE_CHECK_INTERVAL_S


def refuse_damage(path: Path) -> None:
    """Check the structure of the database, and raise StoreError if it is damaged."""
    if problem := quick_check(path):
        raise StoreError(_explain_damage(problem, path))
    stat = path.stat()
    _last_checks[stat.st_dev, stat.st_ino] = time.time()
    if stat.st_size > SMALL_STORE_BYTES:
        with suppress(OSError):
            _check_mark(path).touch(mode=0o600)


def _check_mark(path: Path) -> Path:
    """Return the file whose time says when a large database was checked."""
    return path.with_name(f"{path.name}-checked")


def quick_check(path: Path) -> str:
    """Return the first problem of the database, or ""."""
    db = open_to_read(path)
    try:
        (first,) = wait_for_lock(path, lambda: db.execute("PRAGMA quick_check(1)").fetchone(), lambda: READ_TIMEOUT_S)
        return "" if first == "ok" else str(first).splitlines()[-1]
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            return ""
        return str(error)
    finally:
        db.close()


# Repair


def repair_file(path: Path) -> list[str]:
    """Recover a damaged database into a new one; the damaged one is kept beside it. Return a line for each change."""
    if not path.is_file() or not (problem := _full_check(path)):
        return []
    if "index" in problem and _rebuild_indexes(path):
        return [f"the indexes were rebuilt ({problem})"]
    target = path.with_name(f"{path.name}.repaired")
    _remove_database(target)
    lost = _copy_readable_rows(path, target)
    kept = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    for suffix in ("", *SIDE_FILES):
        with suppress(FileNotFoundError):
            path.with_name(f"{path.name}{suffix}").rename(kept.with_name(f"{kept.name}{suffix}"))
    target.rename(path)
    missing = f"; unreadable rows remain in {', '.join(lost)}" if lost else ""
    return [
        f'the readable rows were copied to a new database ({problem}){missing}; the old one is kept as "{kept.name}"'
    ]


def _full_check(path: Path) -> str:
    db = sqlite3.connect(path, isolation_level=None, timeout=WRITE_TIMEOUT_S)
    try:
        rows = [row[0] for row in db.execute("PRAGMA integrity_check(10)")]
    except sqlite3.DatabaseError as error:
        return str(error)
    finally:
        db.close()
    return "" if rows == ["ok"] else "; ".join(str(row).splitlines()[-1] for row in rows[:3])


def _rebuild_indexes(path: Path) -> bool:
    with _open_quietly(path) as db, suppress(sqlite3.DatabaseError):
        db.execute("REINDEX")
    return not _full_check(path)


@contextmanager
def _open_quietly(path: Path) -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(path, isolation_level=None, timeout=WRITE_TIMEOUT_S)
    try:
        yield db
    finally:
        db.close()


def _remove_database(path: Path) -> None:
    for suffix in ("", *SIDE_FILES):
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


def _copy_readable_rows(source: Path, target: Path) -> list[str]:
    """Copy every table from both ends up to the damage. Return the tables that could not be read completely."""
    new, lost = _open_once(target), []
    tables = [name for (name,) in new.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    try:
        with _open_quietly(source) as old:
            old.execute("PRAGMA query_only = 1")
            new.execute("BEGIN")
            for table in tables:
                columns, key = _read_columns(new, table)
                is_whole = False
                for order in ("", " DESC"):
                    if not is_whole:
                        is_whole = _copy_rows(old, new, table, columns, ", ".join(f"{name}{order}" for name in key))
                lost += [] if is_whole else [table]
            new.execute("COMMIT")
            new.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        new.close()
    return lost


def _read_columns(db: sqlite3.Connection, table: str) -> tuple[list[str], list[str]]:
    """Return the columns of a table and those of its key; a table with row ids is read by them."""
    rows = db.execute(f"PRAGMA table_info({table})").fetchall()
    key = [row[1] for row in sorted(rows, key=lambda row: row[5]) if row[5]]
    return [row[1] for row in rows], ["rowid"] if table == "runs" else key


def _copy_rows(old: sqlite3.Connection, new: sqlite3.Connection, table: str, columns: list[str], order: str) -> bool:
    """Copy the rows of a table in this order. Return whether the end was reached."""
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    try:
        for row in old.execute(f"SELECT {names} FROM {table} ORDER BY {order}"):
            with suppress(sqlite3.IntegrityError):  # a value that damage has changed
                new.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", row)
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return False
    return True
