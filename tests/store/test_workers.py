"""Tables of the workers in PostgreSQL: who is alive, the queue of runs, and turns of a rate limit."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from council.runs.database_worker import DatabaseWorker
from council.store.interface import ClaimedRun, ClaimRequest, StoreAddress, WorkerRow
from council.store.postgres import PostgresStore

pytestmark = pytest.mark.anyio
PATH = "-c search_path=council"
REQUEST = ClaimRequest(["default"], 10, 60.0)
QUEUED = ("name", "/folder", 1.0, "seed", '{"queue": "host:one", "priority": 3}')


@pytest.fixture
def stores(database: str, tmp_path: Path) -> Iterator[list[PostgresStore]]:
    """Two processes of one database."""
    opened = [PostgresStore(StoreAddress(tmp_path / name, database)) for name in ("one", "two")]
    yield opened
    for store in opened:
        store.close()


def read_rows(database: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database, options=PATH) as db:
        return db.execute(query).fetchall()  # type: ignore[arg-type]


async def queue(store: PostgresStore, run: str, **setup: object) -> None:
    await store.write(run, [("queue", (*QUEUED[:4], json.dumps(setup)))])


async def claim(store: PostgresStore, count: int = 10, worker: str = "w", **options: Any) -> list[str]:
    wanted = ClaimRequest(**{"queues": ["default"], "count": count, "seconds": 60.0, **options})
    return [run for run, _ in await store.claim_runs(worker, wanted)]


@pytest.mark.behaviour("16-worker")
async def test_a_queued_run_is_stored_with_its_queue_its_priority_and_its_providers(
    stores: list[PostgresStore], database: str
) -> None:
    roster = {"seats": [{"member": "a:1"}, {"member": "b:1"}], "chair": {"member": "c:x:y"}, "helpers": []}
    await queue(stores[0], "r2", queue="host:one", priority=3, roster=roster)
    await queue(stores[0], "r3")
    await queue(stores[0], "r4", priority="high", roster="none")
    assert read_rows(database, "SELECT id, queue, priority, providers FROM runs ORDER BY n") == [
        ("r2", "host:one", 3, ["a", "b", "c"]),
        ("r3", "default", 0, []),
        ("r4", "default", 0, []),
    ]


# No run is forgotten

STATES = {
    # state: statement that makes it, and whether a worker executes the run afterwards
    "queued": ("SELECT 1", True),
    "claimed by a live worker": ("INSERT INTO claims VALUES ('r', 'o', clock_timestamp() + interval '1 min')", False),
    "claimed by a worker that is gone": ("INSERT INTO claims VALUES ('r', 'o', clock_timestamp())", True),
    "queued, leased": (
        "INSERT INTO leases VALUES ('r', 1, '', '', 1, '', clock_timestamp() + interval '1 min')",
        False,
    ),
    "queued, lease expired": ("INSERT INTO leases VALUES ('r', 1, '', '', 1, '', clock_timestamp())", True),
    "running": ("UPDATE runs SET status = 'running'", True),
    "running, lease expired": (
        "WITH x AS (UPDATE runs SET status = 'running') INSERT INTO leases VALUES ('r', 1, '', '', 1, '', clock_timestamp())",
        True,
    ),
    "running, claim and lease expired": (
        """WITH x AS (UPDATE runs SET status = 'running'), y AS (INSERT INTO claims VALUES ('r', 'o', clock_timestamp()))
           INSERT INTO leases VALUES ('r', 1, '', '', 1, '', clock_timestamp())""",
        True,
    ),
    "running, leased, claim expired": (
        """WITH x AS (UPDATE runs SET status = 'running'), y AS (INSERT INTO claims VALUES ('r', 'o', clock_timestamp()))
           INSERT INTO leases VALUES ('r', 1, '', '', 1, '', clock_timestamp() + interval '1 min')""",
        False,
    ),
    "cancelled in the queue": ("UPDATE runs SET cancel = 1", True),  # the worker ends it
    "incomplete": ("UPDATE runs SET status = 'incomplete'", False),
    "complete": ("UPDATE runs SET status = 'complete'", False),
    "failed, lease expired": (
        "WITH x AS (UPDATE runs SET status = 'failed') INSERT INTO leases VALUES ('r', 1, '', '', 1, '', clock_timestamp())",
        False,
    ),
    "in the foreground": ("UPDATE runs SET status = 'running', detached = 0", False),
}


@pytest.mark.behaviour("32-no-run-forgotten")
@pytest.mark.parametrize("state", STATES)
async def test_a_run_is_claimed_in_every_state_that_a_crash_can_leave(
    stores: list[PostgresStore], database: str, state: str
) -> None:
    statement, is_claimed = STATES[state]
    await queue(stores[0], "r")
    with psycopg.connect(database, autocommit=True, options=PATH) as db:
        db.execute(statement)  # type: ignore[arg-type]
    found = await asyncio.gather(*(store.claim_runs(f"w{n}", REQUEST) for n, store in enumerate(stores)))
    expired = any(word in state for word in ("expired", "gone"))
    assert [one for runs in found for one in runs] == ([ClaimedRun("r", expired)] if is_claimed else [])


@pytest.mark.behaviour("32-no-run-forgotten")
async def test_every_run_is_claimed_once_by_many_workers(stores: list[PostgresStore]) -> None:
    for n in range(40):
        await queue(stores[0], f"r{n}")
    found = await asyncio.gather(*(claim(stores[n % 2], 7, f"w{n}") for n in range(8)))
    assert sorted(run for runs in found for run in runs) == sorted(f"r{n}" for n in range(40))


@pytest.mark.behaviour("32-no-run-forgotten")
async def test_a_run_that_a_worker_leaves_or_has_ended_is_claimed_again(stores: list[PostgresStore]) -> None:
    for run in ("r1", "r2"):
        await queue(stores[0], run)
    assert await claim(stores[0]) == ["r1", "r2"]
    await stores[0].release_claims("other")
    assert await claim(stores[1]) == []
    await stores[0].release_claims("w", ["r1"])
    assert await claim(stores[1], worker="v", excluded=["r1"]) == []
    assert await claim(stores[1], worker="v") == ["r1"]
    assert await claim(stores[0], ended=["r2"]) == []  # seen from the next claim on
    assert await claim(stores[0]) == ["r2"]
    await stores[1].release_claims("v")
    assert await claim(stores[0]) == ["r1"]


# Order


@pytest.mark.behaviour("32-fair-queue", "16-worker-priority")
async def test_owners_take_turns_and_then_priority_and_age_decide(stores: list[PostgresStore]) -> None:
    for n in range(4):
        await queue(stores[0], f"many{n}", owner="many", priority=int(n == 2))
    await queue(stores[0], "few0", owner="few")
    await queue(stores[0], "nobody0")
    assert await claim(stores[0], 2) == ["many2", "few0"]
    await queue(stores[0], "few1", owner="few")
    await queue(stores[0], "late0", owner="late", priority=-1)
    assert await claim(stores[1], 2, "v") == ["nobody0", "late0"]
    assert await claim(stores[1], 9, "v") == ["many0", "few1", "many1", "many3"]


@pytest.mark.behaviour("32-fair-queue")
async def test_one_owner_has_no_more_councils_than_the_limit(stores: list[PostgresStore]) -> None:
    for n in range(3):
        await queue(stores[0], f"a{n}", owner="a")
    await queue(stores[0], "b0", owner="b")
    assert await claim(stores[0], of_owner=2) == ["a0", "b0", "a1"]
    assert await claim(stores[0], of_owner=2) == []
    await stores[0].release_claims("w", ["a0"])
    assert await claim(stores[0], of_owner=2) == ["a0"]


@pytest.mark.behaviour("32-fair-queue")
async def test_a_provider_has_no_more_councils_than_its_limit(stores: list[PostgresStore]) -> None:
    for n, members in enumerate((["a:1", "b:1"], ["a:2"], ["b:2"], ["c:1"], ["b:3"])):
        await queue(stores[0], f"r{n}", roster={"seats": [{"member": member} for member in members]})
    limits = {"a": 1, "b": 2}
    assert [await claim(stores[0], 1, of_providers=limits) for _ in range(4)] == [["r0"], ["r2"], ["r3"], []]
    await stores[0].release_claims("w", ["r2"])
    assert await claim(stores[0], 1, of_providers=limits, excluded=["r2"]) == ["r4"]


@pytest.mark.behaviour("16-worker-none")
async def test_a_worker_is_alive_until_its_row_expires(stores: list[PostgresStore]) -> None:
    row = WorkerRow("a", "one", 1, ("default", "host:one"), "1.2.3", 5.5, 0)
    await stores[0].add_worker(row, 60)
    await stores[0].add_worker(replace(row, running=3), 60)
    await stores[0].add_worker(WorkerRow("b", "two", 2, ("default",)), 0)
    assert await stores[1].list_workers() == [replace(row, running=3)]
    await stores[0].remove_worker("a")
    assert await stores[1].list_workers() == []


async def test_a_worker_renews_its_row_only_when_it_is_due(
    stores: list[PostgresStore], database: str, tmp_path: Path
) -> None:
    log: list[str] = []
    address, env = StoreAddress(tmp_path / "one", database), {"HOME": str(tmp_path)}
    worker = DatabaseWorker(address, env, store=stores[0], folder=tmp_path, log=log.append)
    found = []
    for _ in range(3):
        await worker._start_due_runs()
        found.append(read_rows(database, "SELECT * FROM workers"))
        assert worker._is_healthy()
    assert found == [found[0]] * 3 and len(found[0]) == 1
    worker._next_renewal = time.monotonic()
    await worker._start_due_runs()
    assert read_rows(database, "SELECT * FROM workers") != found[0]
    assert len(log) == 1 and log[0].startswith("ready; queues ")


async def test_a_closed_store_leaves_no_thread(database: str, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    store = PostgresStore(StoreAddress(tmp_path, database))
    await store.add_worker(WorkerRow("a", "one", 1, ("default",)), 60)
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
