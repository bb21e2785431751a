"""The database file: open, lock and check it, explain its errors, read one that cannot be written, recover a damaged one."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import ClassVar, TypeVar
from urllib.parse import quote

from council.errors import RunOwned, StoreError, wording
from council.store.locks import (
    OnWait,
    describe_wait,
    explain_owner,
    find_holders,
    is_busy,
    read_owner,
    retry_lock,
    wait_for_lock,
)
from council.store.migrations import FILL_SUMMARIES_IN_ORDER, MIGRATIONS

R = TypeVar("R")
BUSY_SLICE_S = 0.25  # seconds of one attempt to get a lock
WRITE_TIMEOUT_S = 30.0  # seconds that a write waits for other processes; the owner of a run waits longer
MIN_FREE_BYTES = 1 << 20  # with less, an input/output error is taken for a full disk
PAGE_BYTES = 4096
INCREMENTAL = 2  # value of auto_vacuum
COUNT_TABLES = "SELECT count(*), coalesce(sum(name = 'settled'), 0) FROM sqlite_master"
DAMAGE_WORDS = (
    "not a database",
    "malformed",
    "unsupported file format",
    "already exists",
    "duplicate column",
    "no such table",
)
SIDE_FILES = ("-wal", "-shm")
# Tables that are made again from the others.
DERIVED_TABLES = (
    "summaries",
    "search_words",
    "search_index",
    "search_index_data",
    "search_index_idx",
    "search_index_config",
)

# Open


def open_database(path: Path) -> sqlite3.Connection:
    """Open the database to write, create it if it is missing, and bring it to the present schema. Another one stays as it is."""
    if path.exists() and not path.stat().st_size and has_lost_file(path):
        raise StoreError(explain_damage("the file is empty, but its log is not", path))
    db = _connect(path)
    try:
        version, (tables, ours) = _schema_version(db), db.execute(COUNT_TABLES).fetchone()
        if (version or tables) and not (ours and version <= len(MIGRATIONS)):
            raise StoreError(explain_other(version, bool(ours), path))
        path.chmod(0o600)
        if not tables:  # so that a new file can shrink; for an old one, this would write
            db.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        _migrate(db)
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


def _migrate(db: sqlite3.Connection) -> None:
    if _schema_version(db) == len(MIGRATIONS):
        return
    db.execute("BEGIN IMMEDIATE")
    for statement in chain.from_iterable(MIGRATIONS[_schema_version(db) :]):
        try:
            db.execute(statement)
        except sqlite3.OperationalError as error:
            if "no such module" not in str(error):  # built without full-text search
                raise
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    db.execute("COMMIT")


def _schema_version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def quick_check(path: Path) -> str:
    """Return the first problem in the structure of the database, or ""."""
    db = open_to_read(path)
    try:
        (first,) = db.execute("PRAGMA quick_check(1)").fetchone()
        return "" if first == "ok" else str(first).splitlines()[-1]
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return "" if is_busy(error) else str(error)
    finally:
        db.close()


# Locks


def wait_if_busy(
    path: Path, attempt: Callable[[], R], timeout: Callable[[], float | None], on_wait: OnWait = lambda owners: None
) -> R:
    """Make an attempt, and repeat it while another process holds the database."""
    try:
        return attempt()
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
    return wait_for_lock(path, attempt, timeout, on_wait)


class RunLock:
    """Lock of a run, held inside `with`. A forked process does not inherit it: it ends with the process that took it.

    The holder removes the file at the end. A process that has opened it before that opens it again.
    """

    _held: ClassVar[set[RunLock]] = set()

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open()

    def _open(self) -> None:
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not retry_lock(self._handle):
                self.close()
                raise RunOwned(explain_owner(self._path.stem, read_owner(self._path))) from None

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
    if is_busy(error):
        return f'the run store "{path}" is busy: {describe_wait(find_holders(path))}'
    if number in (errno.EMFILE, errno.ENFILE) or ("unable to open" in text and not _can_open_files()):
        return f'the run store "{path}" cannot be opened, because too many files are open: run fewer councils at once, or raise `ulimit -n`'
    if is_read_only_error(error):
        return f'cannot write to the run store "{path}" ({error}): make the folder writable, or set COUNCIL_DATA to another one'
    if isinstance(error, UnicodeDecodeError) or any(word in text for word in DAMAGE_WORDS):
        return explain_damage(text, path)
    if "full" in text or number in (errno.ENOSPC, errno.EDQUOT) or ("I/O" in text and _is_disk_full(path)):
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


def explain_other(version: int, is_ours: bool, path: Path) -> str:
    """Explain a database that this version does not use: one of a newer version, or of another program."""
    if is_ours:
        return explain_newer(version, path)
    return f'"{path}" is a database of another program, and was not changed: move it away, or set COUNCIL_DATA to another folder'


def is_read_only_error(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    return "readonly" in str(error) or "unable to open" in str(error)


def _is_disk_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < MIN_FREE_BYTES
    except OSError:
        return False


def _can_open_files() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True


def is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


# Read only


class ReadOnlyCopy:
    """A database that cannot be written: opened as it is, or as a temporary copy if it has to be recovered or migrated."""

    def __init__(self, path: Path) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.db = self._open_in_place(path) or self._open_copy(path)

    def _open_in_place(self, path: Path) -> sqlite3.Connection | None:
        log = _log_of(path)
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
        shutil.copyfile(path, copy)
        with suppress(FileNotFoundError):
            shutil.copyfile(_log_of(path), _log_of(copy))
        return open_database(copy)

    def close(self) -> None:
        self.db.close()
        if self._folder:
            self._folder.cleanup()


# Repair


def repair_file(path: Path) -> list[str]:
    """Recover a damaged database into a new one; the damaged one is kept beside it. Return a line for each change."""
    path = path.resolve()  # a link stays a link
    if not path.is_file() or not (problem := _find_problem(path)):
        return []
    if "index" in problem and _rebuild_indexes(path):
        return [f"the indexes were rebuilt ({problem})"]
    try:
        with tempfile.TemporaryDirectory(prefix="repair-", dir=path.parent) as folder:
            target = Path(folder) / "new.db"
            lost = _copy_readable_rows(path, target)
            kept = _replace_database(path, target)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(explain_error(error, path)) from error
    missing = f"; unreadable rows remain in {', '.join(lost)}" if lost else ""
    return [
        f'the readable rows were copied to a new database ({problem}){missing}; the old one is kept as "{kept.name}"'
    ]


def has_lost_file(path: Path) -> bool:
    """Return whether the file is empty although its log is not. SQLite would delete the log."""
    log = _log_of(path)
    return path.exists() and path.stat().st_size == 0 and log.exists() and log.stat().st_size > 0


def _log_of(path: Path) -> Path:
    """Return the log of a database, which is beside the file itself, not beside a link to it."""
    file = path.resolve()
    return file.with_name(f"{file.name}-wal")


def _find_problem(path: Path) -> str:
    """Return what is wrong with the database, or "". Raise StoreError for one of a newer version or another program."""
    if has_lost_file(path):
        return "the file is empty, but its log is not"
    if problem := _full_check(path):
        return problem
    try:
        open_database(path).close()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # its version does not fit its tables
        return "" if is_read_only_error(error) or is_busy(error) else str(error)
    return ""


def _full_check(path: Path) -> str:
    with _open_quietly(path) as db:
        try:
            rows = [row[0] for row in db.execute("PRAGMA integrity_check(10)")]
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            return str(error)
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


def _replace_database(path: Path, target: Path) -> Path:
    """Put the new database in place of the old one, whose files get another name. Return the name of its main file."""
    stem, n = f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}", 1
    while (kept := path.with_name(stem if n == 1 else f"{stem}-{n}")).exists():
        n += 1
    for suffix in SIDE_FILES:  # first, because the old log does not belong to the new database
        with suppress(FileNotFoundError):
            path.with_name(f"{path.name}{suffix}").rename(kept.with_name(f"{kept.name}{suffix}"))
    try:
        os.link(path, kept)
    except OSError:  # a file system without links
        path.rename(kept)
    target.replace(path)
    return kept


def _copy_readable_rows(source: Path, target: Path) -> list[str]:
    """Copy every table from both ends up to the damage. Return the tables that could not be read completely."""
    open_database(target).close()
    copy = _copy_to_read(source, target)
    with _open_quietly(copy) as old, _open_quietly(target) as new:
        old.execute("PRAGMA query_only = 1")
        tables = [name for (name,) in new.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        new.execute("BEGIN")
        lost = [table for table in tables if table not in DERIVED_TABLES and not _copy_table(old, new, table)]
        new.execute("DELETE FROM summaries")  # rows may have been copied in reverse order
        new.execute(FILL_SUMMARIES_IN_ORDER)
        new.execute("COMMIT")
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return lost


def _copy_to_read(source: Path, empty: Path) -> Path:
    """Copy a damaged database with its log, so that reading it changes nothing.

    If its tables cannot be found, the copy gets the first page of an empty database, which has the same tables in the same
    places. A list of tables alone fits on one page.
    """
    copy = empty.with_name("old.db")
    shutil.copyfile(source, copy)
    with suppress(FileNotFoundError):
        shutil.copyfile(_log_of(source), _log_of(copy))
    if has_lost_file(copy):
        shutil.copyfile(empty, copy)
    elif not _has_tables(copy):
        content, pages = _make_first_page(empty), copy.stat().st_size // PAGE_BYTES
        first = content[:28] + pages.to_bytes(4, "big") + bytes(8) + content[40:PAGE_BYTES]  # no free pages
        with copy.open("r+b") as file:
            file.write(first)
    return copy


def _make_first_page(empty: Path) -> bytes:
    """Return the first page of an empty database that lists only the tables that are copied."""
    copy = empty.with_name("tables.db")
    shutil.copyfile(empty, copy)
    with _open_quietly(copy) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA writable_schema = 1")
        db.execute(
            "DELETE FROM sqlite_master WHERE type NOT IN ('table', 'index') OR tbl_name IN (SELECT value FROM json_each(?))",
            (json.dumps(DERIVED_TABLES),),
        )
        db.execute("DELETE FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    return copy.read_bytes()[:PAGE_BYTES]


def _has_tables(path: Path) -> bool:
    with _open_quietly(path) as db, suppress(sqlite3.DatabaseError, UnicodeDecodeError):
        return bool(db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'settled'").fetchone()[0])
    return False


def _copy_table(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> bool:
    """Copy the readable rows of a table. Return whether these are all."""
    try:
        there = {row[1] for row in old.execute(f"PRAGMA table_info({table})")}
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return False
    if not there:  # of an older version
        return True
    columns, key = _read_columns(new, table)
    columns = [name for name in (*key, *columns) if name in there or name == "rowid"]  # row ids are the order of runs
    columns = list(dict.fromkeys(columns))
    return any(
        _copy_rows(old, new, table, columns, ", ".join(f"{name}{order}" for name in key)) for order in ("", " DESC")
    )


def _read_columns(db: sqlite3.Connection, table: str) -> tuple[list[str], list[str]]:
    """Return the columns of a table and those of its key; a table with row ids is read by them."""
    rows = db.execute(f"PRAGMA table_info({table})").fetchall()
    key = [row[1] for row in sorted(rows, key=lambda row: row[5]) if row[5]]
    return [row[1] for row in rows], ["rowid"] if table in ("runs", "texts") else key


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
