"""Connections to PostgreSQL with the interface that the queries use, and the creation and migration of the schema."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple
from weakref import WeakSet

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import DeadlockDetected, LockNotAvailable
from psycopg.pq import TransactionStatus

from council.counters import count
from council.errors import StoreError, UsageError
from council.store.interface import Cursor
from council.store.migrations import list_migrations, read_statements
from council.store.postgres_statements import REPLACED, SCHEMA
from council.store.summaries import BY_TIME

CONNECT_TIMEOUT_S = 10
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


class PostgresConnection:
    """Connection with the interface that the queries use."""

    OperationalError = psycopg.OperationalError
    DatabaseError = psycopg.DatabaseError

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw

    @property
    def in_transaction(self) -> bool:
        return self.raw.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    @property
    def is_lost(self) -> bool:
        return self.raw.closed or self.raw.broken

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        return self.raw.execute(translate(statement), clean_values(values))

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> Cursor:
        cursor = self.raw.cursor()
        cursor.executemany(translate(statement), [clean_values(row) for row in values])
        return cursor

    def close(self) -> None:
        self.raw.close()


def clean_values(values: Sequence[Any]) -> list[Any]:
    """Replace the character 0, which PostgreSQL does not store. JSON has its escaped form, which stays."""
    return [value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in values]


def connect(url: str) -> psycopg.Connection[Any]:
    raw = psycopg.connect(
        url,
        autocommit=True,
        cursor_factory=psycopg.RawCursor,
        connect_timeout=CONNECT_TIMEOUT_S,
        application_name="council",
        keepalives_idle=30,
    )
    raw.execute(f"SET search_path = {SCHEMA}, pg_catalog")
    count("database_connects")
    _connections.add(raw)
    return raw


def count_connections() -> int:
    """Return how many connections this process has."""
    return sum(not raw.closed for raw in list(_connections))


def limit_transactions(raw: psycopg.Connection[Any], seconds: float) -> None:
    """Let the server end a transaction in which this process is stopped: it would block other owners of its runs."""
    raw.execute(f"SET idle_in_transaction_session_timeout = {round(seconds * 1000)}")
    if raw.info.server_version >= 170000:  # also inside of a group of statements
        raw.execute(f"SET transaction_timeout = {round(max(seconds, MIN_TRANSACTION_S) * 1000)}")


def migrate(raw: psycopg.Connection[Any], shown: str) -> None:
    """Create the schema, or bring it to the present version, under a lock over all processes.

    A migration only adds to what earlier versions use, so their processes may continue, and connect again, until the
    last of them has ended. `version` is the schema that a process must know at least; `applied` is the present one.
    """
    end = time.monotonic() + MIGRATION_TIMEOUT_S
    while not _is_applied(_read_schema(raw, shown)):
        try:
            _migrate_once(raw, shown)
        except (LockNotAvailable, DeadlockDetected):  # a process of an earlier version stores rows: it goes first
            if time.monotonic() > end:
                raise
            time.sleep(MIGRATION_PAUSE_S)


def _is_applied(found: SchemaState | None) -> bool:
    return found is not None and found.applied >= len(MIGRATIONS)


def _migrate_once(raw: psycopg.Connection[Any], shown: str) -> None:
    with raw.transaction():
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
