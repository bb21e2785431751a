"""Workers of a shared database: those alive now, the queue of runs, and the rate limits that all of them share.

The queue is no table of its own: a run waits if it is queued, or was running, and no process holds a claim or a lease
of it. So no run can be forgotten, whatever process ends at whatever moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import psycopg

from council.errors import StoreError
from council.store.interface import ClaimedRun, ClaimRequest, LimitChange, WorkerRow
from council.store.leases import CHANNEL, QUEUE_CHANGE, LeaseThread
from council.store.postgres_connection import PostgresConnection
from council.store.run_store import RunStore

R = TypeVar("R")

LIST_WORKERS = """SELECT id, host, pid, queues, version, started, running FROM workers
                  WHERE expires > clock_timestamp() ORDER BY started, id"""
ADD_WORKER = """INSERT INTO workers (id, host, pid, queues, version, started, running, expires)
                VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + make_interval(secs => $8))
                ON CONFLICT (id) DO UPDATE SET running = excluded.running, expires = excluded.expires"""
REMOVE_WORKER = "DELETE FROM workers WHERE id = $1 OR expires < clock_timestamp() - interval '1 day'"
# Turns are spaced evenly, over all processes. Returns the seconds until the first of the new ones.
LEASE_TURNS = """INSERT INTO rates AS r (provider, free_from)
                 VALUES ($1, clock_timestamp() + make_interval(secs => $2::float8 * $3))
                 ON CONFLICT (provider) DO UPDATE
                 SET free_from = greatest(r.free_from, clock_timestamp()) + make_interval(secs => $2::float8 * $3)
                 RETURNING extract(epoch FROM r.free_from - clock_timestamp())::float8 - $2::float8 * $3"""
READ_LIMIT = (
    """SELECT coalesce((SELECT state FROM limits WHERE name = $1), ''), extract(epoch FROM clock_timestamp())::float8"""
)
# Stores a state if no other process has changed the one that was read; "" stands for none.
CHANGE_LIMIT = """INSERT INTO limits AS l (name, state) VALUES ($1, $3)
                  ON CONFLICT (name) DO UPDATE SET state = excluded.state WHERE l.state = $2 RETURNING 1"""
IS_WAITING = """r.detached = 1 AND r.status IN ('queued', 'running')"""
IS_FREE = """NOT EXISTS (SELECT 1 FROM leases l WHERE l.run = r.id AND l.expires > clock_timestamp())
             AND NOT EXISTS (SELECT 1 FROM claims c WHERE c.run = r.id AND c.expires > clock_timestamp())"""
NEXT_OWNER = f"""SELECT coalesce(r.owner, '') AS owner FROM runs r WHERE {IS_WAITING}
                 AND coalesce(r.owner, '') > {{after}} ORDER BY coalesce(r.owner, '') LIMIT 1"""
# The next runs of the queues $1, at most $2, without those of the list $3. The owner with the fewest running councils
# is first; then priority and age decide. $4 is the limit of councils of one owner, or 0; $5 and $6 are the providers
# with a limit and their limits. `owners` is read with one search of the index for each owner.
NEXT_RUNS = f"""
    WITH RECURSIVE active AS MATERIALIZED (
      SELECT coalesce(r.owner, '') AS owner, r.providers FROM (
        SELECT run FROM leases WHERE expires > clock_timestamp()
        UNION SELECT run FROM claims WHERE expires > clock_timestamp()) busy
      JOIN runs r ON r.id = busy.run WHERE r.detached = 1),
    active_councils AS MATERIALIZED (SELECT owner, count(*) AS number FROM active GROUP BY owner),
    full_providers AS MATERIALIZED (
      SELECT coalesce(array_agg(limited.name), '{{}}') AS names FROM unnest($5::text[], $6::integer[]) AS limited (name, most)
      WHERE limited.most <= (SELECT count(*) FROM active WHERE limited.name = ANY(active.providers))),
    owners AS (
      (SELECT coalesce(min(coalesce(r.owner, '')), '') AS owner FROM runs r WHERE {IS_WAITING})
      UNION ALL SELECT next.owner FROM owners, LATERAL ({NEXT_OWNER.format(after="owners.owner")}) next),
    waiting AS (
      SELECT one.*, coalesce(active_councils.number, 0)
             + row_number() OVER (PARTITION BY owners.owner ORDER BY one.priority DESC, one.waits_since, one.n) AS turn
      FROM owners LEFT JOIN active_councils ON active_councils.owner = owners.owner
      CROSS JOIN LATERAL (
        SELECT r.id, r.n, r.priority, r.waits_since FROM runs r
        WHERE {IS_WAITING} AND coalesce(r.owner, '') = owners.owner AND r.queue = ANY($1) AND r.id <> ALL($3)
          AND NOT r.providers && (SELECT names FROM full_providers) AND {IS_FREE}
        ORDER BY r.priority DESC, r.waits_since, r.n LIMIT $2) one)
    SELECT id, turn, priority, waits_since, n FROM waiting WHERE $4 = 0 OR turn <= $4
    ORDER BY turn, priority DESC, waits_since, n LIMIT $2"""
# Returns each run, and whether a process has executed it that is gone.
CLAIM_RUNS = f"""
    WITH ended AS (DELETE FROM claims WHERE worker = $7 AND run = ANY($9)),
    next_runs AS ({NEXT_RUNS}),
    claimed AS (
      INSERT INTO claims AS c (run, worker, expires)
      SELECT id, $7, clock_timestamp() + make_interval(secs => $8) FROM next_runs
      ON CONFLICT (run) DO UPDATE SET worker = excluded.worker, expires = excluded.expires)
    SELECT next_runs.id, EXISTS (SELECT 1 FROM leases WHERE leases.run = next_runs.id)
                         OR EXISTS (SELECT 1 FROM claims WHERE claims.run = next_runs.id)
    FROM next_runs ORDER BY turn, priority DESC, waits_since, n"""
CLAIM_LOCK = 0x636C61696D  # key of the advisory lock: "claim"
RELEASE_CLAIMS = f"""
    WITH released AS (DELETE FROM claims WHERE worker = $1 AND ($2::text[] IS NULL OR run = ANY($2)) RETURNING run)
    SELECT pg_notify('{CHANNEL}', '{QUEUE_CHANGE}') FROM released LIMIT 1"""
FORGET_CLAIMS = "DELETE FROM claims WHERE expires < clock_timestamp() - interval '1 hour'"


class WorkerTables(RunStore):
    """What a shared store has for workers, on the thread of the leases: commits do not wait for the disk."""

    is_shared = True
    url: str
    lease_seconds: float
    _leases: LeaseThread

    async def list_workers(self) -> list[WorkerRow]:
        rows = await self._select(LIST_WORKERS)
        return [WorkerRow(name, host, pid, tuple(queues.split(",")), *rest) for name, host, pid, queues, *rest in rows]

    async def add_worker(self, worker: WorkerRow, seconds: float) -> None:
        """Register a worker, or renew it, for some seconds."""
        queues = ",".join(worker.queues)
        values = (worker.name, worker.host, worker.pid, queues, worker.version, worker.started, worker.running, seconds)
        await self._execute_aside(ADD_WORKER, *values)

    async def remove_worker(self, name: str) -> None:
        await self._execute_aside(REMOVE_WORKER, name)
        await self._execute_aside(FORGET_CLAIMS)

    async def claim_runs(self, worker: str, wanted: ClaimRequest) -> list[ClaimedRun]:
        """Claim the next runs of the queue for a worker. Claims are made one after another, over all processes."""
        providers = list(wanted.of_providers)
        limits = [wanted.of_providers[name] for name in providers]
        found = await self._execute_aside(
            CLAIM_RUNS,
            list(wanted.queues),
            wanted.count,
            list(wanted.excluded),
            wanted.of_owner,
            providers,
            limits,
            worker,
            wanted.seconds,
            list(wanted.ended),
            lock=CLAIM_LOCK,
        )
        return [ClaimedRun(run, was_started) for run, was_started in found]

    async def release_claims(self, worker: str, runs: Sequence[str] | None = None) -> None:
        """Leave runs, or all claimed ones, to other workers."""
        await self._execute_aside(RELEASE_CLAIMS, worker, None if runs is None else list(runs))

    async def lease_turns(self, provider: str, interval: float, count: int) -> float:
        """Reserve turns for requests to a provider, one in each interval. Return the seconds until the first."""
        ((delay,),) = await self._execute_aside(LEASE_TURNS, provider, interval, count)
        return float(delay)

    async def change_limit(self, name: str, change: LimitChange[R]) -> R:
        """Change the state of a limit. Without a lock: a process that is stopped meanwhile delays no other one."""
        while True:
            ((state, now),) = await self._execute_aside(READ_LIMIT, name)
            changed, result = change(state, now)
            if changed == state or await self._execute_aside(CHANGE_LIMIT, name, state, changed):
                return result

    async def _execute_aside(self, statement: str, *values: object, lock: int = 0) -> list[Any]:
        """Execute a statement; with a lock, one process at a time."""

        def work(db: PostgresConnection) -> list[Any]:
            found = db.execute_raw(statement, values, lock=lock)
            return found.fetchall() if found.description else []

        try:
            rows: list[Any] = await self._leases.execute(work)
            return rows
        except psycopg.OperationalError as error:
            raise StoreError(self._explain(error)) from error
        except psycopg.Error as error:
            raise StoreError(f"the tables of workers cannot be used ({error}): check the database") from error
