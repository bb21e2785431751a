"""Run store in PostgreSQL, for several processes and machines. A process owns a run by a lease.

The writing thread groups the rows of all runs of the process by table: one statement for each table and one round trip
for the transaction. If the rows of a job are refused, the same statements are repeated job by job, so that only this
job fails. A lost connection never loses rows or stores them twice: each transaction writes its number into the row of
its writer, where it is read back.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from itertools import groupby
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict

from council.errors import RunOwned, StoreError
from council.settings.private_files import make_private_folder
from council.store import leases
from council.store import postgres_statements as sql
from council.store.interface import BudgetRefusal, Hold, Row, RunOwner, StoreAddress
from council.store.postgres_connection import (
    BEGIN_TO_READ,
    PostgresConnection,
    clean_values,
    connect,
    describe_url,
    is_full,
    limit_transactions,
    migrate,
    translate,
)
from council.store.postgres_workers import WorkerTables
from council.store.queries import reserve_spending
from council.store.run_store import Job, Work, read_snapshot, without_discarded
from council.store.texts import TextWriter

WRITE_TIMEOUT_S = 30.0  # seconds that a write without an owned run waits for the database
READ_TIMEOUT_S = 10.0
RETRY_S = 0.25  # seconds between attempts to connect
CLOSE_TIMEOUT_S = 1.0  # for each thread of a store that has given up
NOTICE_AFTER_S = 2.0
CHECK_INTERVAL_S = 600.0
MAX_ROWS = 2000  # of one statement
LOST = (pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow, pg.TooManyConnections, pg.IdleSessionTimeout)
CONFLICTS = (pg.DeadlockDetected, pg.SerializationFailure)  # the transaction was rolled back and can be repeated

logger = logging.getLogger("council.store")

# Store


class CommitUnknown(Exception):
    """The connection was lost while a transaction was committed."""

    def __init__(self, outcomes: list[tuple[Any, BaseException | None]]) -> None:
        super().__init__("the connection was lost during a commit")
        self.outcomes = outcomes


def rows_by_run(jobs: Sequence[Job]) -> Mapping[str, Sequence[Row]]:
    """Return the rows of jobs by run, in their order."""
    rows: dict[str, list[Row]] = {}
    for job in jobs:
        rows.setdefault(job.run, []).extend(job.rows)
    return rows


class PostgresStore(WorkerTables):
    """Run store in a PostgreSQL database. Files of this machine, such as reports, stay in the folder."""

    database_errors = (OSError, psycopg.Error, OverflowError)

    def __init__(self, address: StoreAddress) -> None:
        self.folder, self.url = address.folder, address.url
        self.shown = describe_url(self.url)
        self.lease_seconds = address.lease_seconds
        super().__init__()
        try:
            with self._writer.gate:
                self._db, self._is_open = self._open(), True
            make_private_folder(self.folder)
        except (OSError, psycopg.Error) as error:
            raise StoreError(self._explain(error)) from error

    def start(self) -> None:
        super().start()
        self._id = secrets.token_hex(8)  # of this writer
        self._batch = 0  # number of the last transaction
        self.split_commits = 0  # transactions that were repeated job by job
        self._last_check = 0.0
        self._is_given_up = threading.Event()
        self._leases = leases.LeaseThread(self)

    def _open(self) -> PostgresConnection:
        db = connect(self.url, limit_transactions(self.lease_seconds))
        try:
            migrate(db, self.shown)
        except BaseException:
            db.close()
            raise
        return db

    def _open_to_read(self) -> PostgresConnection:
        return connect(self.url, begin=BEGIN_TO_READ)

    def _read_again(self, work: Work | None, error: BaseException) -> Any:
        """Connect again for a while if the connection is lost."""
        end = time.monotonic() + READ_TIMEOUT_S
        while True:
            is_late = time.monotonic() > end or self._is_given_up.is_set()
            if is_late or not self._is_lost(self._read_db, error):
                raise error
            try:
                self._read_db.close()
                self._read_db = self._open_to_read()
                return read_snapshot(self._read_db, work)
            except psycopg.OperationalError as again:
                error = again
                self._is_given_up.wait(RETRY_S)

    def _is_lost(self, db: PostgresConnection, error: BaseException) -> bool:
        return isinstance(error, (*LOST, *CONFLICTS)) or (isinstance(error, psycopg.Error) and db.is_lost)

    def connect_in_background(self) -> PostgresConnection:
        """Return a connection for what need not survive a crash of the server."""
        return connect(self.url, {"synchronous_commit": "off", **limit_transactions(self.lease_seconds)})

    def connect_fully(self) -> None:
        """Open all connections of this process now, so that it does not wait for one while it has others."""
        try:
            with self._reader.gate:
                self._read_db = self._read_db or self._open_to_read()
            self._leases.connect()
        except psycopg.Error as error:
            raise StoreError(self._explain(error)) from error

    def give_up(self) -> None:
        """Stop waiting for the database: what waits for it fails now."""
        self.close_timeout = CLOSE_TIMEOUT_S
        self._is_given_up.set()
        self._leases.give_up()
        for db in (self._db if self._is_open else None, self._read_db):
            if db is not None:
                db.cut()

    def close(self) -> None:
        super().close()
        self._leases.close()

    def _close_connections(self) -> None:
        if self._is_given_up.is_set():  # threads may still use them
            return
        if self._read_db is not None:
            self._read_db.close()
            self._read_db = None
        with suppress(psycopg.Error):
            self._db.execute(
                "DELETE FROM writers WHERE id = ? OR at < clock_timestamp() - interval '7 days'", (self._id,)
            )
        self._db.close()

    def _explain(self, error: BaseException) -> str:
        lines = str(error).strip().splitlines()
        text = self._hide_password(lines[0] if lines else type(error).__name__)
        if isinstance(error, pg.InsufficientPrivilege):
            return f'the database "{self.shown}" refuses the run store ({text}): GRANT CREATE ON DATABASE to this user'
        if isinstance(error, pg.DiskFull):
            return f'the database "{self.shown}" is full ({text}): free some space on its server'
        if is_full(error):
            return f'all connection slots of the database "{self.shown}" are in use: raise max_connections, use PgBouncer, or start fewer workers'
        if isinstance(error, psycopg.OperationalError):
            return f'the database "{self.shown}" cannot be reached ({text}): start it, or check COUNCIL_DATABASE and [store] url'
        return f'the run store in "{self.shown}" cannot be used ({text}): check the database'

    def _hide_password(self, text: str) -> str:
        password = conninfo_to_dict(self.url).get("password")
        return text.replace(str(password), "***") if password else text

    # Writing

    def _commit(self, jobs: list[Job]) -> list[tuple[Any, BaseException | None]]:
        """Store the rows of all jobs in one transaction. Wait for a lost database as long as paid rows are queued."""
        if not any(job.work for job in jobs):
            return [(None, None)] * len(jobs)
        self._batch += 1
        since, unknown, is_reported = time.monotonic(), list[tuple[Any, BaseException | None]](), False
        while True:
            try:
                if not self._is_open:
                    self._db, self._is_open = self._open(), True
                    self._texts.clear()
                if unknown and self._is_committed():
                    return self._after_commit(jobs, unknown)
                unknown = []
                return self._after_commit(jobs, self._commit_once(jobs))
            except CommitUnknown as lost:
                unknown, error = lost.outcomes, lost.__cause__ or lost
            except psycopg.Error as lost:
                error = lost
                if self._is_open and not self._is_lost(self._db, lost):
                    return self._fail_all(jobs, lost)
            except Exception as failure:  # the thread must continue
                return self._fail_all(jobs, failure)
            waited = time.monotonic() - since
            if isinstance(error, CONFLICTS):
                self._rollback()
            else:
                self._drop_connection()
                if waited > WRITE_TIMEOUT_S and not any(job.run in self._owned_runs for job in jobs):
                    return self._fail_all(jobs, error)
                if waited > NOTICE_AFTER_S and not is_reported:
                    is_reported = True
                    self.on_wait(f"waiting for the database: {self._explain(error)}")
                if self._is_given_up.wait(RETRY_S):
                    return self._fail_all(jobs, error)

    def _drop_connection(self) -> None:
        if self._is_open:
            with suppress(psycopg.Error):
                self._db.close()
            self._is_open = False

    def _is_committed(self) -> bool:
        """Return whether the last transaction was committed. Waits until the server has ended it.

        A transaction that the server, or a pooler, has not begun yet fails from now on.
        """
        barrier = self._batch + 1
        ((found,),) = self._db.execute_raw(sql.READ_BATCH, (self._id, self._batch, barrier)).fetchall()
        if found == self._batch:
            return True
        self._batch = barrier + 1  # of the next attempt
        return False

    def _fail_all(self, jobs: list[Job], error: BaseException) -> list[tuple[Any, BaseException | None]]:
        self._rollback()
        return super()._fail_all(jobs, error)

    def _rollback(self) -> None:
        self._texts.clear()
        if self._is_open:
            self._db.roll_back()

    def _commit_once(self, jobs: list[Job]) -> list[tuple[Any, BaseException | None]]:
        try:
            return self._commit_grouped(jobs)
        except (psycopg.IntegrityError, psycopg.DataError, psycopg.ProgrammingError, OverflowError) as error:
            self._note_split(error)
        except psycopg.Error as error:
            if error.sqlstate != sql.LEASE_LOST:
                raise
        self._rollback()
        return self._commit_separately(jobs)

    def _note_split(self, error: BaseException) -> None:
        """Count a transaction that is repeated job by job, because rows of a job were refused. Log the first one."""
        self.split_commits += 1
        if self.split_commits == 1:
            logger.warning("%s; the rows of each run were stored separately", self._explain(error))

    def _is_grouped(self, job: Job) -> bool:
        """Return whether the order of a job's rows over tables does not matter."""
        if job.work is None:
            return True
        return bool(job.rows) and job.run not in self._failures and sql.GROUPED.issuperset(kind for kind, _ in job.rows)

    def _commit_grouped(self, jobs: list[Job]) -> list[tuple[Any, BaseException | None]]:
        """Send the rows of all jobs with one statement for each kind. Without other work, one round trip is enough."""
        outcomes = list[tuple[Any, BaseException | None]]()
        parts = [(is_grouped, list(part)) for is_grouped, part in groupby(jobs, self._is_grouped)]
        statements = [self._group_rows(rows_by_run(part)) if is_grouped else ([], []) for is_grouped, part in parts]
        is_sent, raw = len(parts) == 1 and parts[0][0], self._db.raw
        try:
            with raw.pipeline() if is_sent else nullcontext():
                self._db.begin()
                for taken, _ in statements:
                    for values in taken:
                        raw.execute(translate(sql.ADD_LEASE), values)
                self._mark_batch(self._list_held(jobs))
                for (is_grouped, part), (_, inserts) in zip(parts, statements, strict=True):
                    if is_grouped:
                        with raw.pipeline():
                            for statement, values in inserts:
                                raw.execute(statement, values, prepare=False)
                        outcomes += [(None, None)] * len(part)
                    else:
                        outcomes += [self._execute_write(job) for job in part]
                is_sent = True
                raw.execute("COMMIT")
        except psycopg.Error as error:
            if is_sent and self._db.is_lost:
                raise CommitUnknown(outcomes) from error
            raise
        return outcomes

    def _mark_batch(self, held: str) -> None:
        self._db.raw.execute(sql.MARK_BATCH, (self._id, self._batch))
        if held:
            self._db.raw.execute("SELECT check_leases($1)", (held,))

    def _list_held(self, jobs: Sequence[Job]) -> str:
        """Return run and token of the jobs of owned runs, as `check_leases` reads them."""
        held = {f"{job.run}:{job.token}" for job in jobs if job.token and job.run not in self._failures}
        return ",".join(sorted(held))

    def _group_rows(self, of_run: Mapping[str, Sequence[Row]]) -> tuple[list[Any], list[tuple[str, list[Any]]]]:
        """Return the values of new leases, and one statement with its values for each kind of row."""
        rows: dict[str, list[Any]] = {kind: [] for kind in ("lease", "discard_stream", *sql.INSERTED, *sql.CHANGED)}
        for run, found in of_run.items():
            for kind, values in self._pack(run, without_discarded(found), rows["text"]):
                rows[kind].append((run, *values))
        taken, statements = rows.pop("lease"), []
        for kind, found_rows in rows.items():
            make = sql.make_inserts if kind in sql.INSERTED else sql.make_change
            for start in range(0, len(found_rows), MAX_ROWS):
                part = found_rows[start : start + MAX_ROWS]
                statements.append((make(kind, len(part)), clean_values([value for row in part for value in row])))
        return taken, statements

    def _pack(self, run: str, rows: Sequence[Row], texts: list[Any]) -> Sequence[Row]:
        """Return rows with references instead of long texts, which are added to `texts`."""
        if sql.PACKED.isdisjoint(kind for kind, _ in rows):
            return rows
        writer = self._texts.get(run)
        if writer is None:
            is_new = any(kind == "run" for kind, _ in rows)
            writer = self._texts[run] = TextWriter(self._db, run, is_new=is_new)
        writer.save = texts.append
        packed = writer.pack_rows(rows)
        self._forget_texts(run)
        return packed

    def _commit_separately(self, jobs: list[Job]) -> list[tuple[Any, BaseException | None]]:
        """Execute jobs in order; a failing job rolls back only itself."""
        is_sent, outcomes = False, list[tuple[Any, BaseException | None]]()
        try:
            self._db.execute("BEGIN")
            self._mark_batch("")
            outcomes = [self._execute_write(job) for job in jobs]
            is_sent = True
            self._db.execute("COMMIT")
        except psycopg.Error as error:
            if is_sent and self._db.is_lost:
                raise CommitUnknown(outcomes) from error
            raise
        return outcomes

    def _execute_write(self, job: Job) -> tuple[Any, BaseException | None]:
        result, error = super()._execute_write(job)
        if isinstance(error, psycopg.Error) and self._is_lost(self._db, error):
            raise error
        return result, error

    def _insert_rows(self, run: str, rows: Sequence[Row]) -> Work:
        token = self._owned_runs.get(run, 0)
        if sql.GROUPED.issuperset(kind for kind, _ in rows):
            return self._insert_group(run, rows, token)
        insert = super()._insert_rows(run, [row for row in rows if row[0] not in ("lease", "release_lease")])

        def work(db: Any) -> None:
            for kind, values in rows:
                if kind == "lease":
                    db.execute(sql.ADD_LEASE, (run, *values))
            if token:
                self._check_lease(db, run, token)
            if writer := self._texts.get(run):
                writer.save = None
            insert(db)
            for kind, values in rows:
                if kind == "release_lease":
                    db.execute(sql.RELEASE_LEASE, values)

        return work

    def _insert_group(self, run: str, rows: Sequence[Row], token: int) -> Work:
        """Return work with the statements of `_commit_grouped`, for the rows of one job."""

        def work(db: Any) -> None:
            taken, statements = self._group_rows({run: rows})
            for values in taken:
                db.execute(sql.ADD_LEASE, values)
            if token:
                self._check_lease(db, run, token)
            for statement, values in statements:
                db.raw.execute(statement, values, prepare=False)

        return work

    def _check_lease(self, db: PostgresConnection, run: str, token: int) -> None:
        """Raise LeaseLost if this process no longer owns the run. The lease stays locked until the transaction ends."""
        try:
            db.execute("SELECT check_leases(?)", (f"{run}:{token}",))
        except psycopg.Error as error:
            if error.sqlstate != sql.LEASE_LOST:
                raise
            raise leases.explain_loss(run, self.lease_seconds) from error

    def _after_commit(
        self, jobs: Sequence[Job], outcomes: list[tuple[Any, BaseException | None]]
    ) -> list[tuple[Any, BaseException | None]]:
        """Index the runs that have ended, in another transaction, and tell the followers of changed runs."""
        changed, ended = set(), []
        for job, (_, error) in zip(jobs, outcomes, strict=True):
            for kind, _ in job.rows if error is None else ():
                if kind in sql.PUBLIC_KINDS:
                    changed.add(job.run)
                if kind in ("queue", "detach"):
                    changed.add(leases.QUEUE_CHANGE)
                if kind == "close":
                    ended.append(job.run)
        if changed:
            self._leases.announce(changed, ended)
        return outcomes

    async def reserve(self, run: str, hold: Hold) -> BudgetRefusal | None:
        """Reserve money for one request. Reservations under one cap are made one after another, over all processes."""
        self._send_all_batches()  # charges that replace larger reservations come first
        token = self._owned_runs.get(run)

        def work(db: Any) -> BudgetRefusal | None:
            if token:
                self._check_lease(db, run, token)
            users_day = f"user {hold.user} {hold.day}"
            for cap, name in (
                (hold.run_cap, f"run {run}"),
                (hold.day_cap, f"day {hold.day}"),
                (hold.user_cap, users_day),
            ):
                if cap is not None:
                    db.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (name,))
            return reserve_spending(db, run, hold)

        return await self._write(run, work)

    # Owners

    @asynccontextmanager
    async def lock_run(self, run: str, *, is_new: bool = False) -> AsyncIterator[None]:
        """Own a run by a lease that this process renews, or raise RunOwned."""
        token = secrets.randbits(62) + 1
        row = (token, *leases.this_process(), self.lease_seconds)
        if is_new:
            self.post(run, [("lease", row)], may_wait=True)
        else:
            self._send_all_batches()  # this process may have released it just now
            try:
                await self._write("", lambda db: leases.take_lease(db, run, row))
            except StoreError as error:
                if isinstance(error.__cause__, pg.LockNotAvailable):
                    problem = f"run {run} is locked by a transaction of another process: try again later"
                    raise RunOwned(problem) from error
                raise
        try:
            with self._own(run, token):
                self._leases.start()
                try:
                    yield
                finally:
                    with self._batch_lock:
                        if run in self._batches:  # its rows are checked against this token
                            self._put_batch(run)
        finally:
            self.post("", [("release_lease", (run, token))])

    @property
    def owned_runs(self) -> list[str]:
        return list(self._owned_runs)

    def renew_leases(self) -> None:
        """Renew the leases of this process. A run whose lease was lost gets no more rows."""
        self._send_all_batches()  # leases of new runs come first
        held = dict(self._owned_runs)
        names = ",".join(f"{run}:{token}" for run, token in held.items())

        def on_result(renewed: Any, error: BaseException | None) -> None:
            for run in set(held) - set(renewed or held):
                if self._owned_runs.get(run) == held[run]:
                    self._failures.setdefault(run, leases.explain_loss(run, self.lease_seconds))

        def work(db: Any) -> list[str]:
            return [row[0] for row in db.execute(leases.RENEW_LEASES, (self.lease_seconds, names)).fetchall()]

        if held:
            self._writer.put(Job("", work, on_result))

    async def _read_leases(self, runs: Sequence[str]) -> list[leases.Lease]:
        return await self._read(lambda db: leases.read_leases(db, runs)) if runs else []

    async def _find_owned(self, runs: Sequence[str]) -> set[str]:
        return {lease.run for lease in await self._read_leases(runs) if lease.is_held}

    async def find_owner(self, run: str) -> RunOwner | None:
        held = [lease for lease in await self._read_leases([run]) if lease.is_held]
        return held[0].process if held else None

    async def is_cancelled(self, run: str) -> bool:
        """Return whether a run was cancelled. For an owned run, this is read with its lease."""
        return run in self._leases.cancelled if run in self._owned_runs else await super().is_cancelled(run)

    async def wait_for_change(self, run: str) -> None:
        await self._leases.wait_for_change(run)

    async def wait_for_queue(self) -> bool:
        """Return whether a queued run was announced, after a while at the latest."""
        return await self._leases.wait_for_change(leases.QUEUE_CHANGE)

    # Upkeep

    async def require_sound(self) -> None:
        """Connect again if needed, and remove the text that dead processes have left, every ten minutes."""
        if time.monotonic() - self._last_check < CHECK_INTERVAL_S and self._last_check:
            return
        await self._write("", lambda db: db.execute("SELECT 1"))
        self._last_check = time.monotonic()
        await self.remove_abandoned_text()

    async def check_integrity(self) -> list[str]:
        """Return the problems of the tables: invalid indexes, and rows of runs that do not exist."""
        return [row[0] for row in await self._select(f"{sql.INVALID_INDEXES} UNION ALL {sql.LOST_ROWS}")]

    async def size(self) -> int:
        query = """SELECT CAST(coalesce(sum(pg_total_relation_size(oid)), 0) AS BIGINT) FROM pg_class
                   WHERE relkind = 'r' AND relnamespace = 'council'::regnamespace"""
        ((size,),) = await self._select(query)
        return int(size)

    async def shrink(self, *, may_rewrite: bool = True) -> None:
        """The database uses the space of deleted rows again."""
