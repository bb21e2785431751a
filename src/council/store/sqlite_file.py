"""The database file: explain its errors, read one that cannot be written, recover a damaged one."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from council.errors import StoreError, wording
from council.store.locks import describe_wait, find_holders, is_busy
from council.store.migrations import MIGRATIONS

OpenDatabase = Callable[[Path], sqlite3.Connection]
WRITE_TIMEOUT_S = 30.0  # seconds that a write waits for other processes; the owner of a run waits longer
SIDE_FILES = ("-wal", "-shm")

# Errors


def explain_error(error: BaseException, path: Path) -> str:
    """Return one line: the problem and its fix."""
    text, number = str(error), getattr(error, "errno", None)
    if is_busy(error):
        return f'the run store "{path}" is busy: {describe_wait(find_holders(path))}'
    if number in (errno.EMFILE, errno.ENFILE) or ("unable to open" in text and not _can_open_files()):
        return f'the run store "{path}" cannot be opened, because too many files are open: run fewer councils at once, or raise `ulimit -n`'
    if is_read_only_error(error):
        return f'cannot write to the run store "{path}" ({error}): make the folder writable, or set COUNCIL_DATA to another one'
    if "not a database" in text or "malformed" in text:
        return explain_damage(text, path)
    if "full" in text or number in (errno.ENOSPC, errno.EDQUOT):
        return f'the run store "{path}" cannot be used ({error}): free some space or set COUNCIL_DATA to another folder'
    return f'the run store "{path}" cannot be used ({error}): check the disk, or set COUNCIL_DATA to another folder'


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


def is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


# Read only


class ReadOnlyCopy:
    """A database that cannot be written: opened as it is, or as a temporary copy if it has to be recovered or migrated."""

    def __init__(self, path: Path, open_database: OpenDatabase) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.db = self._open_in_place(path) or self._open_copy(path, open_database)

    def _open_in_place(self, path: Path) -> sqlite3.Connection | None:
        log = path.with_name(f"{path.name}-wal")
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

    def _open_copy(self, path: Path, open_database: OpenDatabase) -> sqlite3.Connection:
        self._folder = tempfile.TemporaryDirectory(prefix="council-")
        copy = Path(self._folder.name) / path.name
        shutil.copyfile(path, copy)
        with suppress(FileNotFoundError):
            shutil.copyfile(path.with_name(f"{path.name}-wal"), copy.with_name(f"{path.name}-wal"))
        return open_database(copy)

    def close(self) -> None:
        self.db.close()
        if self._folder:
            self._folder.cleanup()


# Repair


def repair_file(path: Path, open_database: OpenDatabase) -> list[str]:
    """Recover a damaged database into a new one; the damaged one is kept beside it. Return a line for each change."""
    if not path.is_file() or not (problem := _full_check(path)):
        return []
    if "index" in problem and _rebuild_indexes(path):
        return [f"the indexes were rebuilt ({problem})"]
    target = path.with_name(f"{path.name}.repaired")
    _remove_database(target)
    lost = _copy_readable_rows(path, target, open_database)
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


def _copy_readable_rows(source: Path, target: Path, open_database: OpenDatabase) -> list[str]:
    """Copy every table from both ends up to the damage. Return the tables that could not be read completely."""
    new, lost = open_database(target), []
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
