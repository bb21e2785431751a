"""Stores of earlier schema versions with rows in every table, and their contents as the present version has to keep
them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import psycopg

from council.store import postgres_connection, sqlite
from council.store.migrations import read_statements
from council.store.postgres_connection import QUEUE_SCHEMA, connect
from council.store.sqlite import open_database

Content = dict[str, list[tuple[Any, ...]]]  # rows by table, in order
RUNS = ("rdone234", "ropen234")
SETUP = json.dumps(
    {"protocol": "triad", "owner": "ann@laptop", "question": {"task": "ask", "text": "Which cellar holds the archive?"}}
)
COST = {"usd": 0.25, "estimated": True}
REPORT = json.dumps({"verdict": "PASS", "trust": {"level": "MEDIUM"}, "seconds": 2.5, "cost": COST, "stops": []})
# Table: the versions of SQLite and PostgreSQL that have it, its columns, the values after the run.
ROWS: dict[str, tuple[int, int, str, list[tuple[object, ...]]]] = {
    "events": (1, 1, "seq at type body", [(seq, 1.0, "note", '{"what":"a","why":"b"}') for seq in (1, 2, 3)]),
    "steps": (1, 1, "key fingerprint", [("draft/alpha", "f1"), ("draft/beta", "f2")]),
    "results": (1, 1, "key body", [("draft/alpha", '{"text":"The first draft."}')]),
    "intents": (1, 1, "key n member body at", [("draft/alpha", 1, "m", b'{"a":1}', 1.0), ("draft/beta", 1, "m", b"{}", 1.0)]),
    "settled": (1, 1, "key n body at", [("draft/alpha", 1, '{"finish":"stop","usage":{"in":1}}', 2.0)]),
    "phases": (1, 1, "phase absences", [("draft", "{}")]),
    "spending": (2, 1, "key n member at day price reserved charged", [("draft/alpha", 1, "m", 1.0, "2026-11-15", "{}", 9, 7)]),
    "asks": (3, 1, "key seat prompt schema at answer", [("draft/gamma", "gamma", "Why?", "{}", 1.0, None)]),
    "texts": (5, 1, "n body", [(0, b"\0A long text.")]),
    "user_runs": (9, 3, "name", [("ann",)]),
    "idempotency": (9, 3, "owner key digest at", [("ann", "k", "d", 1.0)]),
    "outcomes": (11, 5, "at label value note seats", [(1.0, "right", "yes", "", "[]")]),
}  # fmt: skip
MIGRATIONS = {"sqlite": sqlite.MIGRATIONS, "postgres": postgres_connection.MIGRATIONS}
SCHEMA_VERSIONS = {kind: len(files) for kind, files in MIGRATIONS.items()}


def digest_migrations(kind: str) -> dict[str, tuple[str, str]]:
    """Return the name of each file with the digests of its bytes and of its statements."""
    return {
        file.name: (_digest(file.read_bytes()), _digest("\0".join(read_statements(file)).encode()))
        for file in MIGRATIONS[kind]
    }


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:16]


def list_statements(kind: str, version: int) -> Iterator[str]:
    """Return the statements of the versions up to this one."""
    return chain.from_iterable(map(read_statements, MIGRATIONS[kind][:version]))


def list_inserts(kind: str, version: int, run: str) -> Iterator[tuple[str, str, list[tuple[object, ...]]]]:
    """Yield each table of a version with its columns and the rows of a run, as a process of that version writes
    them.
    """
    for table, (sqlite_since, postgres_since, columns, rows) in ROWS.items():
        if version >= (sqlite_since if kind == "sqlite" else postgres_since):
            values: list[tuple[object, ...]] = [(run, *row) for row in rows]
            if table == "idempotency":
                values = [(run, "ann", f"k {run}", "d", 1.0)]
            yield table, f"run {columns}", values


def list_runs(kind: str) -> Iterator[tuple[object, ...]]:
    for run in RUNS:
        is_done = run == RUNS[0]
        yield run, "a run", "here", 1.0, "seed", SETUP, "complete" if is_done else "running", REPORT if is_done else ""


RUN_COLUMNS = "id name folder created seed setup status report"

# SQLite


def make_sqlite(path: Path, version: int, *, has_rows: bool = True) -> None:
    """Create the file of a version, with a complete and an unfinished run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        for statement in list_statements("sqlite", version):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {version}")
        if not has_rows:
            return
        _insert_sqlite(db, "runs", RUN_COLUMNS, list(list_runs("sqlite")))
        for run in RUNS:
            insert_sqlite_rows(db, version, run)


def insert_sqlite_rows(db: sqlite3.Connection, version: int, run: str) -> None:
    for table, columns, rows in list_inserts("sqlite", version, run):
        _insert_sqlite(db, table, columns, rows)


def _insert_sqlite(db: sqlite3.Connection, table: str, columns: str, rows: list[tuple[object, ...]]) -> None:
    names = columns.split()
    db.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", rows)


def read_sqlite(path: Path) -> Content:
    """Return the rows of the tables in the columns of their first version."""
    with closing(sqlite3.connect(path)) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return {
            table: db.execute(f"SELECT {columns.replace(' ', ', ')} FROM {table} ORDER BY 1, 2").fetchall()
            for table, columns in _list_columns()
            if table in tables
        }


def describe_sqlite(path: Path) -> tuple[int, set[tuple[str, str, str]]]:
    """Return the version of a file, and its tables, indexes, views and triggers."""
    with closing(sqlite3.connect(path)) as db:
        objects = db.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
        return db.execute("PRAGMA user_version").fetchone()[0], set(objects)


def describe_new_sqlite(folder: Path) -> tuple[int, set[tuple[str, str, str]]]:
    """Return what `describe_sqlite` returns for a file that this version has made."""
    folder.mkdir()
    open_database(folder / "new.db").close()
    return describe_sqlite(folder / "new.db")


# PostgreSQL


def make_postgres(url: str, version: int) -> None:
    """Create the schema of a version in an empty database, with a complete and an unfinished run."""
    with closing(connect(url).raw) as db, db.transaction():
        db.execute("CREATE SCHEMA council")
        db.execute("CREATE TABLE council.schema_version (version INTEGER NOT NULL)")
        db.execute("INSERT INTO council.schema_version VALUES ($1)", (version,))
        for statement in list_statements("postgres", version):
            if statement != QUEUE_SCHEMA:
                db.execute(statement)
        _insert_postgres(db, "runs", RUN_COLUMNS, list(list_runs("postgres")))
        for run in RUNS:
            insert_postgres_rows(db, version, run)


def insert_postgres_rows(db: psycopg.Connection[Any], version: int, run: str) -> None:
    for table, columns, rows in list_inserts("postgres", version, run):
        _insert_postgres(db, table, columns, rows)


def _insert_postgres(db: psycopg.Connection[Any], table: str, columns: str, rows: list[tuple[object, ...]]) -> None:
    names = columns.split()
    marks = ", ".join(f"${n}" for n in range(1, len(names) + 1))
    for row in rows:
        db.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", row)


def read_postgres(url: str) -> Content:
    with closing(connect(url).raw) as db:
        found = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'council'").fetchall()
        tables = {name for (name,) in found}
        return {
            table: db.execute(f"SELECT {columns.replace(' ', ', ')} FROM {table} ORDER BY 1, 2").fetchall()
            for table, columns in _list_columns()
            if table in tables
        }


def describe_postgres(url: str) -> tuple[int, set[tuple[str, str, str]]]:
    """Return the version of a database, and its columns, indexes, functions and triggers."""
    queries = (
        "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'council'",
        "SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'council'",
        "SELECT 'trigger', tgname, tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal",
        """SELECT 'function', p.proname || '(' || pg_get_function_arguments(p.oid) || ')', p.prosrc FROM pg_proc p
           JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'council'""",
    )
    with closing(connect(url).raw) as db:
        ((*_, version),) = db.execute("SELECT * FROM council.schema_version").fetchall()
        rows = [row for query in queries for row in db.execute(query).fetchall()]
        return version, {(str(first), str(second), str(third)) for first, second, third in rows}


def _list_columns() -> list[tuple[str, str]]:
    return [("runs", RUN_COLUMNS), *((table, f"run {columns}") for table, (_, _, columns, _) in ROWS.items())]


@contextmanager
def open_transaction(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection with a transaction that is committed at the end."""
    with closing(connect(url).raw) as db, db.transaction():
        yield db
