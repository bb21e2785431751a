"""Workers of a shared database: those alive now, the runs of dead ones, and the rate limits that all of them share."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psycopg

from council.errors import StoreError
from council.store.interface import WorkerRow
from council.store.postgres_connection import connect, describe_url
from council.store.postgres_statements import RUN_TASK
from council.store.run_store import RunStore

RETRY_S = 0.5  # seconds between attempts to reach the database
TIMEOUT_S = 30.0

LIST_WORKERS = "SELECT id, host, pid, queues FROM workers WHERE expires > clock_timestamp() ORDER BY id"
ADD_WORKER = """INSERT INTO workers (id, host, pid, queues, expires)
                VALUES ($1, $2, $3, $4, clock_timestamp() + make_interval(secs => $5))
                ON CONFLICT (id) DO UPDATE SET queues = excluded.queues, expires = excluded.expires"""
REMOVE_WORKER = "DELETE FROM workers WHERE id = $1 OR expires < clock_timestamp() - interval '1 day'"
# Turns are spaced evenly, over all processes. Returns the seconds until the first of the new ones.
LEASE_TURNS = """INSERT INTO rates AS r (provider, free_from)
                 VALUES ($1, clock_timestamp() + make_interval(secs => $2::float8 * $3))
                 ON CONFLICT (provider) DO UPDATE
                 SET free_from = greatest(r.free_from, clock_timestamp()) + make_interval(secs => $2::float8 * $3)
                 RETURNING extract(epoch FROM r.free_from - clock_timestamp())::float8 - $2::float8 * $3"""
# Runs that no process executes: they run and their lease has expired, or they are queued and have no job, or its worker
# is dead. They get one job each, of any worker. A job that is deleted here is still seen by the second query.
TAKE_OVER = f"""
    WITH lost AS (
      DELETE FROM procrastinate_jobs WHERE status = 'doing' AND task_name = '{RUN_TASK}' AND (worker_id IS NULL OR worker_id IN
        (SELECT id FROM procrastinate_workers WHERE last_heartbeat < now() - make_interval(secs => $1)))
      RETURNING args ->> 'run' AS run),
    jobs AS (
      SELECT args ->> 'run' AS run, status FROM procrastinate_jobs WHERE task_name = '{RUN_TASK}' AND status IN ('todo', 'doing')),
    waiting AS (
      SELECT r.id, r.setup FROM runs r LEFT JOIN leases l ON l.run = r.id WHERE r.detached = 1 AND r.unfinished = 1
        AND (l.run IS NULL OR l.expires <= clock_timestamp())
        AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.run = r.id AND jobs.status = 'todo')
        AND (r.status = 'running' OR (r.status = 'queued' AND (r.id IN (SELECT run FROM lost)
          OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.run = r.id AND jobs.status = 'doing'))))
      LIMIT 200)
    INSERT INTO procrastinate_jobs (queue_name, task_name, priority, queueing_lock, args)
    SELECT coalesce(setup::json ->> 'queue', 'default'), '{RUN_TASK}', coalesce((setup::json ->> 'priority')::integer, 0) + 1, id,
           jsonb_build_object('run', id)
    FROM waiting ON CONFLICT DO NOTHING RETURNING args ->> 'run'"""
# The job of a run that this worker cannot execute, for others: not at once, and later each time.
HAND_ON = f"""INSERT INTO procrastinate_jobs (queue_name, task_name, queueing_lock, args, scheduled_at)
              VALUES ($1, '{RUN_TASK}', $2, jsonb_build_object('run', $2::text, 'tries', $3::integer),
                      now() + make_interval(secs => $4)) ON CONFLICT DO NOTHING"""


class WorkerTables(RunStore):
    """What a shared store has for workers, on its own connection and thread: commits do not wait for the disk."""

    is_shared = True
    url: str

    def start(self) -> None:
        """Start without a connection, also in a forked process."""
        super().start()
        self._side_thread: ThreadPoolExecutor | None = None
        self._side_lock = threading.Lock()
        self._side: psycopg.Connection[Any] | None = None

    def close(self) -> None:
        if self._side_thread:
            self._side_thread.shutdown()
        if self._side:
            with suppress(psycopg.Error):
                self._side.close()
        super().close()

    async def list_workers(self) -> list[WorkerRow]:
        rows = await self._select(LIST_WORKERS)
        return [WorkerRow(name, host, pid, tuple(queues.split(","))) for name, host, pid, queues in rows]

    async def add_worker(self, name: str, host: str, pid: int, queues: Sequence[str], seconds: float) -> None:
        """Register a worker, or renew it, for some seconds."""
        await self._execute_aside(ADD_WORKER, name, host, pid, ",".join(queues), seconds)

    async def remove_worker(self, name: str) -> None:
        await self._execute_aside(REMOVE_WORKER, name)

    async def take_over_runs(self, seconds: float) -> list[str]:
        """Queue the runs that no process executes, or whose worker gave no sign of life for so many seconds."""
        return [row[0] for row in await self._execute_aside(TAKE_OVER, seconds)]

    async def hand_on_run(self, run: str, queue: str, tries: int, seconds: float) -> None:
        """Wake another worker for a run, after some seconds."""
        await self._execute_aside(HAND_ON, queue, run, tries, seconds)

    async def lease_turns(self, provider: str, interval: float, count: int) -> float:
        """Reserve turns for requests to a provider, one in each interval. Return the seconds until the first."""
        ((delay,),) = await self._execute_aside(LEASE_TURNS, provider, interval, count)
        return float(delay)

    async def _execute_aside(self, statement: str, *values: object) -> list[Any]:
        with self._side_lock:
            if self._side_thread is None:
                self._side_thread = ThreadPoolExecutor(1, "council-workers")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._side_thread, self._execute_once, statement, values)

    def _execute_once(self, statement: str, values: Sequence[object]) -> list[Any]:
        """Execute a statement. Connect again for a while if the connection is lost."""
        end = time.monotonic() + TIMEOUT_S
        while True:
            try:
                if self._side is None or self._side.closed:
                    self._side = connect(self.url)
                    self._side.execute("SET synchronous_commit = off")
                found = self._side.execute(statement, values)
                return found.fetchall() if found.description else []
            except psycopg.OperationalError as error:
                if time.monotonic() > end:
                    raise StoreError(
                        f'the database "{describe_url(self.url)}" cannot be reached: start it, or check COUNCIL_DATABASE and [store] url'
                    ) from error
                if self._side is not None and (self._side.broken or self._side.closed):
                    self._side = None
                time.sleep(RETRY_S)
            except psycopg.Error as error:
                raise StoreError(f"the tables of workers cannot be used ({error}): check the database") from error
