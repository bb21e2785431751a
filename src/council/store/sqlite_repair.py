"""Repair of a damaged database: rebuild its indexes, or copy the rows that can be read to a new one."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

from council.errors import StoreError, UsageError
from council.settings.private_files import copy_private_file
from council.store import sqlite
from council.store.locks import is_busy, is_locked

PAGE_BYTES = 4096
SIDE_FILES = ("-wal", "-shm")
BY_ROW_ID = "ORDER BY (SELECT rowid FROM runs WHERE runs.id = run_summaries.id)"  # the order of creation
INDEX_TABLES = ("search_index", "search_index_data", "search_index_idx", "search_index_config")
# Not copied: made again from the others, or of the last minute only.
DERIVED_TABLES = ("summaries", "search_words", *INDEX_TABLES, "limits")


def repair_store(folder: Path) -> list[str]:
    """Recover a damaged database. Refuse while a run is executed, because its process has the database open."""
    database = folder / "council.db"
    if not database.is_file():
        return []
    busy = [path.stem for path in (folder / "locks").glob("*.lock") if is_locked(path)]
    if not busy:
        return repair_file(database)
    if sqlite.quick_check(database):
        raise UsageError(
            f"the run store is damaged and cannot be repaired while run {busy[0]} is running: "
            f"wait for it, or stop it with `council cancel {busy[0]}`"
        )
    return []


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
        raise StoreError(sqlite.explain_error(error, path)) from error
    rest = f"; unreadable rows remain in {', '.join(lost)}" if lost else ""
    return [f'the readable rows were copied to a new database ({problem}){rest}; the old one is kept as "{kept.name}"']


def _find_problem(path: Path) -> str:
    """Return the problem of the database, or "". Raise StoreError for one of a newer version or another program."""
    if sqlite.has_lost_file(path):
        return "the file is empty, but its log is not"
    if problem := _full_check(path):
        return problem
    try:
        sqlite.open_database(path).close()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # its version does not fit its tables
        return "" if sqlite.is_read_only_error(error) or is_busy(error) else str(error)
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


def _open_quietly(path: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(path, isolation_level=None, timeout=sqlite.WRITE_TIMEOUT_S))


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
    sqlite.open_database(target).close()
    copy = _copy_to_read(source, target)
    with _open_quietly(copy) as old, _open_quietly(target) as new:
        old.execute("PRAGMA query_only = 1")
        tables = [name for (name,) in new.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        new.execute("BEGIN")
        lost = [table for table in tables if table not in DERIVED_TABLES and not _copy_table(old, new, table)]
        new.execute("DELETE FROM summaries")  # rows may have been copied in reverse order
        columns = ", ".join(_read_columns(new, "run_summaries")[0])
        new.execute(f"INSERT INTO summaries ({columns}) SELECT {columns} FROM run_summaries {BY_ROW_ID}")
        new.execute("COMMIT")
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return lost


def _copy_to_read(source: Path, empty: Path) -> Path:
    """Copy a damaged database with its log, so that reading it changes nothing.

    If its tables cannot be found, the copy gets the first page of an empty database, which has the same tables in the
    same places. A list of tables alone fits on one page.
    """
    copy = empty.with_name("old.db")
    copy_private_file(source, copy)
    with suppress(FileNotFoundError):
        copy_private_file(sqlite.log_of(source), sqlite.log_of(copy))
    if sqlite.has_lost_file(copy):
        copy_private_file(empty, copy)
    elif not _has_tables(copy):
        content, pages = _make_first_page(empty), copy.stat().st_size // PAGE_BYTES
        first = content[:28] + pages.to_bytes(4, "big") + bytes(8) + content[40:PAGE_BYTES]  # no free pages
        with copy.open("r+b") as file:
            file.write(first)
    return copy


def _make_first_page(empty: Path) -> bytes:
    """Return the first page of an empty database that lists only the tables that are copied."""
    copy = empty.with_name("tables.db")
    copy_private_file(empty, copy)
    with _open_quietly(copy) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA writable_schema = 1")
        kept = db.execute(
            """SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE (type = 'table' OR type = 'index' AND sql IS NULL)
               AND tbl_name NOT IN (SELECT value FROM json_each(?)) ORDER BY rowid""",
            (json.dumps(DERIVED_TABLES),),
        ).fetchall()
        db.execute("DELETE FROM sqlite_master")  # rows that are added again are on the first page
        db.executemany("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", kept)
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
    names = dict.fromkeys(name for name in (*key, *columns) if name in there or name == "rowid")  # the order of runs
    orders = (", ".join(f"{name}{order}" for name in key) for order in ("", " DESC"))
    return any(_copy_rows(old, new, table, list(names), order) for order in orders)


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
