"""Connections to PostgreSQL with the interface that the queries use, and the creation and migration of the schema.

A connection may lead through a pooler, such as PgBouncer, that gives each transaction another session of the server.
Then nothing is set for the session: each transaction begins with its settings, and nothing is prepared.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple
from weakref import WeakSet

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import DeadlockDetected, LockNotAvailable, TooManyConnections
from psycopg.pq import PipelineStatus, TransactionStatus

from council.counters import count
from council.errors import StoreError, UsageError
from council.store.interface import Cursor
from council.store.migrations import list_migrations, read_statements
from council.store.postgres_statements import REPLACED, SCHEMA
from council.store.summaries import BY_TIME

CONNECT_TIMEOUT_S = 10
TRANSACTION_TIMEOUT_VERSION = 170000
MIN_TRANSACTION_S = 10.0  # a transaction on a busy server may take longer than a short lease
MIGRATIONS = list_migrations("postgres")
QUEUE_SCHEMA = "procrastinate"  # a statement of the second migration: tables of a package that is no longer used
MIGRATION_TIMEOUT_S, MIGRATION_PAUSE_S = 60.0, 0.2
MIGRATION_LOCK_TIMEOUT_MS = 900  # below the time after which the server looks for deadlocks and ends either side
OLDEST_BESIDE = 5  # schema version of the earliest processes that may continue beside this version: council 0.2.0
MIGRATION_LOCK = 0x636F756E63696C  # key of the advisory lock: "council"

# Connections

_connections: WeakSet[psycopg.Connection[Any]] = WeakSet()  # of this process
logging.getLogger("psycopg").addHandler(logging.NullHandler())  # it reports lost connections, which are handled here
PLACEHOLDER = re.compile(r"\?(\d*)")


@lru_cache(maxsize=500)
def translate(statement: str) -> str:
    """Return a statement of the queries in PostgreSQL's spelling."""
    numbers = iter(range(1, 1000))
    statement = REPLACED.get(statement, statement).replace("json_each(", "json_items(").replace(BY_TIME, "")
    return PLACEHOLDER.sub(lambda found: f"${found[1] or next(numbers)}", statement)


NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
BEGIN = "BEGIN"
BEGIN_TO_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresConnection:
    """Connection with the interface that the queries use. Its settings hold in every transaction."""

    OperationalError = psycopg.OperationalError
    DatabaseError = psycopg.DatabaseError

    def __init__(self, raw: psycopg.Connection[Any], begin: str = BEGIN, opening: str = "") -> None:
        """`opening`: statement after the begin of each transaction, on a connection to a pooler."""
        self.raw = raw
        self._begin, self._opening = begin, opening

    @property
    def is_pooled(self) -> bool:
        """Return whether each transaction may have another session of the server."""
        return bool(self._opening)

    @property
    def in_transaction(self) -> bool:
        return self.raw.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    @property
    def is_lost(self) -> bool:
        return self.raw.closed or self.raw.broken

    def begin(self) -> None:
        """Begin a transaction, in one message."""
        if not self._opening:
            self.raw.execute(self._begin)
        elif self.raw.pgconn.pipeline_status == PipelineStatus.OFF:
            self.raw.execute(f"{self._begin}; {self._opening}")
        else:
            self.raw.execute(self._begin)
            self.raw.execute(self._opening)

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        if statement == BEGIN:
            self.begin()
            return self.raw.cursor()
        if self.is_pooled and not self.in_transaction:
            return self.execute_raw(translate(statement), clean_values(values))
        return self.raw.execute(translate(statement), clean_values(values))

    def execute_raw(self, statement: str, values: Sequence[Any] = (), *, lock: int = 0) -> psycopg.Cursor[Any]:
        """Execute a statement of PostgreSQL outside of a transaction, in one message.

        With a lock, one process at a time: a process that is stopped does not keep the lock.
        """
        if not self.is_pooled and not lock:
            return self.raw.execute(statement, values)
        try:
            with self.raw.pipeline():
                self.begin()
                if lock:
                    self.raw.execute("SELECT pg_advisory_xact_lock($1)", (lock,))
                found = self.raw.execute(statement, values)
                self.raw.execute("COMMIT")
        except psycopg.Error:
            self.roll_back()
            raise
        return found

    def roll_back(self) -> None:
        """Leave the transaction, if there is one."""
        with suppress(psycopg.Error):
            if self.in_transaction:
                self.raw.execute("ROLLBACK")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        except BaseException:
            self.roll_back()
            raise
        self.raw.execute("COMMIT")

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> Cursor:
        cursor = self.raw.cursor()
        cursor.executemany(translate(statement), [clean_values(row) for row in values])
        return cursor

    def cut(self) -> None:
        """End the connection while another thread waits for the server on it: the thread gets an error."""
        with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(self.raw.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.raw.close()


def clean_values(values: Sequence[Any]) -> list[Any]:
    """Replace the character 0, which PostgreSQL does not store. JSON has its escaped form, which stays."""
    return [value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in values]


def connect(url: str, settings: Mapping[str, str] = NO_SETTINGS, *, begin: str = BEGIN) -> PostgresConnection:
    """Connect, and apply settings for all transactions. This takes one round trip.

    The process of the server has another number than at the login if there is a pooler between.
    """
    raw = psycopg.connect(
        url,
        autocommit=True,
        cursor_factory=psycopg.RawCursor,
        connect_timeout=CONNECT_TIMEOUT_S,
        application_name="council",
        keepalives_idle=30,
    )
    try:
        found = raw.execute(_make_session_query(raw, settings), prepare=False).fetchone()
    except BaseException:
        raw.close()
        raise
    count("database_connects")
    _connections.add(raw)
    if found and found[0]:
        return PostgresConnection(raw, begin)
    raw.prepare_threshold = None
    return PostgresConnection(raw, begin, f"SELECT {_make_calls(raw, settings, is_local=True)}")


def _make_session_query(raw: psycopg.Connection[Any], settings: Mapping[str, str]) -> str:
    """Return a query that sets the session and returns true, unless the session is shared with other clients."""
    is_ours = f"pg_backend_pid() = {raw.info.backend_pid}"
    calls = _make_calls(raw, settings, is_local=False)
    return f"SELECT {is_ours}, CASE WHEN {is_ours} THEN concat({calls}) END"


def _make_calls(raw: psycopg.Connection[Any], settings: Mapping[str, str], *, is_local: bool) -> str:
    """Return the calls that apply settings, to the transaction or to the session."""
    named = {"search_path": f"{SCHEMA}, pg_catalog", **settings}
    if raw.info.server_version < TRANSACTION_TIMEOUT_VERSION:
        named.pop("transaction_timeout", None)
    scope = "true" if is_local else "false"
    return ", ".join(f"set_config('{name}', '{value}', {scope})" for name, value in named.items())


def count_connections() -> int:
    """Return how many connections this process has."""
    return sum(not raw.closed for raw in list(_connections))


def limit_transactions(seconds: float) -> dict[str, str]:
    """Return settings that end a transaction in which this process is stopped: it would block other owners of its
    runs.
    """
    return {
        "idle_in_transaction_session_timeout": str(round(seconds * 1000)),
        "transaction_timeout": str(
            round(max(seconds, MIN_TRANSACTION_S) * 1000)
        ),  # also inside of a group of statements
    }


# Failures

# Texts, because the refusal of a connection has no code.
FULL = re.compile(
    r"too many (clients|connections)|remaining connection slots|no more connections allowed", re.IGNORECASE
)
STARTING = re.compile(
    r"starting up|shutting down|in recovery mode|not yet accepting connections|server_login_retry|server login has been failing"
    r"|server down|server conn crashed|query_wait_timeout|pgbouncer cannot connect|administrator command",
    re.IGNORECASE,
)
REFUSED = re.compile(r"FATAL|no password supplied")  # by the server, or by the library, which has nothing to send


def is_full(error: BaseException) -> bool:
    """Return whether the server, or the pooler before it, has no connection left."""
    return isinstance(error, TooManyConnections) or (
        isinstance(error, psycopg.OperationalError) and bool(FULL.search(str(error)))
    )


def is_temporary(error: BaseException | None) -> bool:
    """Return whether another attempt to connect may succeed: the server is not there, not ready or full.

    It is not if the server refuses the user, the password or the database.
    """
    if not isinstance(error, psycopg.OperationalError):
        return False
    text = str(error)
    return is_full(error) or bool(STARTING.search(text)) or not REFUSED.search(text)


def migrate(db: PostgresConnection, shown: str) -> None:
    """Create the schema, or bring it to the present version, under a lock over all processes.

    A migration only adds to what earlier versions use, so their processes may continue, and connect again, until the
    last of them has ended. `version` is the schema that a process must know at least; `applied` is the present one.
    """
    end = time.monotonic() + MIGRATION_TIMEOUT_S
    while not _is_applied(_read_schema(db.raw, shown)):
        try:
            _migrate_once(db, shown)
        except (LockNotAvailable, DeadlockDetected):  # a process of an earlier version stores rows: it goes first
            if time.monotonic() > end:
                raise
            time.sleep(MIGRATION_PAUSE_S)


def _is_applied(found: SchemaState | None) -> bool:
    return found is not None and found.applied >= len(MIGRATIONS)


def _migrate_once(db: PostgresConnection, shown: str) -> None:
    raw = db.raw
    with db.transaction():
        raw.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # with many runs it takes its time
        if raw.info.server_version >= TRANSACTION_TIMEOUT_VERSION:
            raw.execute("SET LOCAL transaction_timeout = 0")
        raw.execute("SELECT pg_advisory_xact_lock($1)", (MIGRATION_LOCK,))
        raw.execute(f"SET LOCAL lock_timeout = {MIGRATION_LOCK_TIMEOUT_MS}")
        found = _read_schema(raw, shown)
        if _is_applied(found):
            return
        if found is None:
            raw.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            raw.execute(f"CREATE TABLE {SCHEMA}.schema_version (version INTEGER NOT NULL)")
            raw.execute("INSERT INTO schema_version VALUES (0)")
        for statement in chain.from_iterable(map(read_statements, MIGRATIONS[found.applied if found else 0 :])):
            if statement != QUEUE_SCHEMA:
                raw.execute(statement)
        required = max(found.required, OLDEST_BESIDE) if found else len(MIGRATIONS)
        raw.execute("ALTER TABLE schema_version ADD COLUMN IF NOT EXISTS applied INTEGER NOT NULL DEFAULT 0")
        raw.execute("UPDATE schema_version SET version = $1, applied = $2", (required, len(MIGRATIONS)))


# A look into the catalogue: the name of the table may be cached as unknown, although another process has just created
# it.
FIND_VERSION = f"""SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                   WHERE n.nspname = '{SCHEMA}' AND c.relname = 'schema_version'"""


class SchemaState(NamedTuple):
    required: int  # schema version that a process must know
    applied: int


def _read_schema(raw: psycopg.Connection[Any], shown: str) -> SchemaState | None:
    """Return the version of the schema, or None if there is none. Refuse one that needs a newer version."""
    if not raw.execute(FIND_VERSION).fetchone():
        return None
    required, *applied = raw.execute(f"SELECT * FROM {SCHEMA}.schema_version").fetchone() or (0,)
    if required > len(MIGRATIONS):
        raise StoreError(
            f'the run store "{shown}" was written by a newer council (schema version {required}, '
            f"this one supports {len(MIGRATIONS)}): upgrade council, or use another database"
        )
    return SchemaState(required, applied[0] if applied else required)


# With another @, or a / before it, the end of a password would be read as a host or a database, and shown.
ADDRESS = re.compile(r"\w+://([^@/]*@)?[^@/?]*(/[^@?]*)?(\?.*)?", re.DOTALL)


def describe_url(url: str) -> str:
    """Return the address of a database without its password."""
    if not ADDRESS.fullmatch(url):
        raise UsageError("the address of the database is invalid: write @ in a password as %40, and / as %2F")
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        raise UsageError(
            "the address of the database is invalid: write COUNCIL_DATABASE or [store] url as postgresql://user@host:5432/database"
        ) from None
    host = str(parts.get("host") or "")
    user, port, name = (str(parts.get(key) or "") for key in ("user", "port", "dbname"))
    where = f"{user}@" * bool(user) + ("" if host.startswith("/") else host) + f":{port}" * bool(port)
    return f"postgresql://{where}/{name}" + (f"?host={host}" if host.startswith("/") else "")
