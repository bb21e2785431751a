"""Tables of the workers in PostgreSQL: who is alive, whose runs are taken over, and turns of a rate limit."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from council.store.interface import StoreAddress
from council.store.postgres import PostgresStore

pytestmark = pytest.mark.anyio
PATH = "-c search_path=council"
QUEUED = ("name", "/folder", 1.0, "seed", '{"queue": "host:one", "priority": 3}')


@pytest.fixture
def stores(database: str, tmp_path: Path) -> Iterator[list[PostgresStore]]:
    """Two processes of one database."""
    opened = [PostgresStore(StoreAddress(tmp_path / name, database)) for name in ("one", "two")]
    yield opened
    for store in opened:
        store.close()


def read_jobs(database: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database, options=PATH) as db:
        return db.execute(
            "SELECT queue_name, priority, args, status::text FROM council.procrastinate_jobs ORDER BY id"
        ).fetchall()


@pytest.mark.behaviour("16-worker")
async def test_a_queued_run_and_its_job_are_stored_together(stores: list[PostgresStore], database: str) -> None:
    await stores[0].write("r2", [("queue", QUEUED)])
    assert read_jobs(database) == [("host:one", 3, {"run": "r2"}, "todo")]
    await stores[0].write("r3", [("queue", (*QUEUED[:4], "{}"))])
    assert read_jobs(database)[1:] == [("default", 0, {"run": "r3"}, "todo")]


@pytest.mark.behaviour("16-worker-takeover")
async def test_only_runs_without_a_valid_lease_are_queued_again(stores: list[PostgresStore], database: str) -> None:
    for run in ("rown", "rlost", "rjob"):
        await stores[0].write(run, [("queue", QUEUED)])
    with psycopg.connect(database, autocommit=True, options=PATH) as db:
        db.execute("UPDATE council.procrastinate_jobs SET status = 'doing' WHERE args ->> 'run' = 'rjob'")
        db.execute("DELETE FROM council.procrastinate_jobs WHERE status = 'todo'")
        async with stores[0].lock_run("rown"):
            await stores[0].write("rown", [("reopen", ())])
            async with stores[0].lock_run("rlost"):
                await stores[0].write("rlost", [("reopen", ())])
                db.execute("UPDATE council.leases SET expires = clock_timestamp() WHERE run = 'rlost'")
                taken = await asyncio.gather(*(store.take_over_runs(60) for store in stores))
    assert sorted(run for runs in taken for run in runs) == ["rjob", "rlost"]
    assert {str(args["run"]): (queue, status) for queue, _, args, status in read_jobs(database)} == {  # type: ignore[index]
        "rjob": ("host:one", "todo"),
        "rlost": ("host:one", "todo"),
    }


@pytest.mark.behaviour("16-worker-none")
async def test_a_worker_is_alive_until_its_row_expires(stores: list[PostgresStore]) -> None:
    await stores[0].add_worker("a", "one", 1, ["default", "host:one"], 60)
    await stores[0].add_worker("b", "two", 2, ["default"], 0)
    assert [(row.name, row.queues) for row in await stores[1].list_workers()] == [("a", ("default", "host:one"))]
    await stores[0].remove_worker("a")
    assert await stores[1].list_workers() == []


async def test_a_closed_store_leaves_no_thread(database: str, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    store = PostgresStore(StoreAddress(tmp_path, database))
    await store.add_worker("a", "one", 1, ["default"], 60)
    assert [row.name for row in await store.list_workers()] == ["a"]
    store.close()
    assert set(threading.enumerate()) <= before


@pytest.mark.behaviour("16-rate-limit")
async def test_processes_share_the_turns_of_a_provider(stores: list[PostgresStore]) -> None:
    async def lease(n: int) -> float:
        return time.monotonic() + await stores[n % 2].lease_turns("sim", 10.0, 3)

    first = await lease(0)
    others = sorted(await asyncio.gather(*(lease(n) for n in range(1, 6))))
    assert [round((start - first) / 30) for start in others] == [1, 2, 3, 4, 5]
    assert await stores[0].lease_turns("other", 10.0, 1) <= 0
