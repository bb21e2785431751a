"""A batch compared with convene() calls, 16 at once, against an endpoint without delay; then the check of a large file.

The rows of the batch and the questions are the same triads. The check is `council batch --dry-run` in a process. With
`--large 10000`, only a batch of 1,000 rows and one of so many are measured: the command in a process, with SQLite, and
with PostgreSQL and two workers. The memory is that of the command alone; the CPU time includes the workers. Compare the
CPU times on a machine that does other work too.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import psycopg
from endpoint import Endpoint, endpoint
from measure import Spread, isolated_environment, parse_arguments, print_result, write_config
from scale import database, server, start_worker

import council

MODEL = "sim-0ms"
AT_ONCE = 16
WORKERS = 2
SMALL = 1000  # rows, with which a large batch is compared
COMMAND = f"""import sys
from council.doors.cli import run
assert run(["batch", "rows.jsonl", "-o", "out.jsonl", *sys.argv[1:]]) == 0
sys.path.insert(0, {str(Path(__file__).parent)!r})
from measure import peak_mb
print(peak_mb())"""
Work = Callable[[int, dict[str, str], Path], Awaitable[None]]


def question(n: int) -> str:
    return f"Which way should we go, for the {n}. time?"


async def convene(count: int, env: dict[str, str], folder: Path) -> None:
    limit = asyncio.Semaphore(AT_ONCE)

    async def ask(n: int) -> None:
        async with limit:
            report = await council.convene(question(n), protocol="triad", env=env, folder=folder)
            assert report.status == "complete"

    await asyncio.gather(*map(ask, range(count)))


async def run_batch(count: int, env: dict[str, str], folder: Path) -> None:
    rows = ({"id": n, "question": question(n)} for n in range(count))
    stream = council.batch(rows, folder / "out.jsonl", protocol="triad", env=env, folder=folder, concurrency=AT_ONCE)
    assert [row.status async for row in stream] == ["complete"] * count


def measure(work: Work, base_url: str, count: int) -> tuple[float, float]:
    """Return wall-clock and CPU seconds."""
    with isolated_environment() as (folder, env):
        write_config(folder, base_url, MODEL)
        clock, processor = time.perf_counter(), time.process_time()
        asyncio.run(work(count, env, folder))
        taken = time.perf_counter() - clock, time.process_time() - processor
        council.close()
        return taken


def write_rows(count: int) -> None:
    rows = ({"id": n, "question": question(n), "options": {"protocol": "triad"}} for n in range(count))
    with Path("rows.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)


def processor_seconds() -> float:
    """Return the CPU time of the ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def execute(env: dict[str, str], *arguments: str) -> tuple[float, float]:
    """Return the seconds and the peak memory in MB of the command."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], env=env, stdout=subprocess.PIPE, text=True, check=True
    )
    return time.perf_counter() - start, float(done.stdout.splitlines()[-1])


def measure_check(base_url: str, count: int) -> tuple[float, float]:
    """Return the seconds and the peak memory in MB of a dry run."""
    with isolated_environment() as (folder, env), chdir(folder):
        write_config(folder, base_url, MODEL)
        write_rows(count)
        return execute(env, "--dry-run")


# Large batches


def measure_large(base_url: str, count: int) -> tuple[float, float]:
    """Return the seconds and the peak memory in MB of a batch in one process, with SQLite."""
    with isolated_environment() as (folder, env), chdir(folder):
        write_config(folder, base_url, MODEL)
        write_rows(count)
        return execute(env, "--yes")


def measure_shared(base_url: str, count: int, address: str) -> tuple[float, float]:
    """Return the same of a batch whose rows two workers execute, with PostgreSQL."""
    with (
        isolated_environment() as (folder, env),
        database(address, f"batch_{time.monotonic_ns()}") as url,
        chdir(folder),
    ):
        env["COUNCIL_DATABASE"] = url
        write_config(folder, base_url, MODEL)
        write_rows(count)
        workers = [start_worker(folder, env) for _ in range(WORKERS)]
        try:
            wait_for_workers(url)
            return execute(env, "--yes", "--concurrency", str(WORKERS * AT_ONCE))
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait()


def wait_for_workers(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        while not has_workers(db):
            time.sleep(0.1)


def has_workers(db: psycopg.Connection[Any]) -> bool:
    """Return whether all workers have announced themselves. The first one creates the table."""
    try:
        return db.execute("SELECT count(*) FROM council.workers").fetchone() == (WORKERS,)
    except psycopg.errors.UndefinedTable:
        return False


def compare_large(options: Namespace, running: Endpoint) -> None:
    """Print the figures of a batch of 1,000 rows and of a large one."""
    table, result = [], dict[str, Any]()
    with server() as address:
        works: dict[str, Callable[[int], tuple[float, float]]] = {
            "SQLite, one process": lambda count: measure_large(running.base_url, count),
            f"PostgreSQL, {WORKERS} workers": lambda count: measure_shared(running.base_url, count, address),
        }
        for name, work in works.items():
            for count in (SMALL, options.large):
                before = processor_seconds()
                seconds, megabytes = work(count)
                cpu = (processor_seconds() - before) / count * 1000
                running.reset()
                table.append((f"{count} rows, {name}", f"{count / seconds:.1f}", f"{cpu:.1f}", f"{megabytes:.0f} MB"))
                result[f"{count} rows, {name}"] = {
                    "per_second": round(count / seconds, 1),
                    "cpu_ms": round(cpu, 1),
                    "peak_mb": round(megabytes),
                }
                print(" · ".join(table[-1]), file=sys.stderr, flush=True)
    print_result(options, result, ("", "rows/s", "CPU ms per row", "memory"), table)


def main() -> None:
    options = parse_arguments(__doc__ or "", runs=3, rows=1000, checked=100_000, large=0)
    if options.large:
        with endpoint() as running:
            compare_large(options, running)
        return
    table, result = [], {}
    works: dict[str, Work] = {"convene() calls": convene, "rows of a batch": run_batch}
    with endpoint() as running:
        measure(convene, running.base_url, 5)  # imports
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
        for _ in range(options.runs):
            for name, work in works.items():
                taken[name].append(measure(work, running.base_url, options.rows))
        for name, pairs in taken.items():
            rate = Spread.of([options.rows / seconds for seconds, _ in pairs])
            cpu = Spread.of([spent / options.rows * 1000 for _, spent in pairs])
            table.append((f"{options.rows} {name}", rate.show(1), cpu.show(2), ""))
            result[name] = {"per_second": rate.as_json(), "cpu_ms": cpu.as_json()}
        for count in (1000, options.checked):
            seconds, megabytes = measure_check(running.base_url, count)
            table.append((f"check of {count} rows", f"{count / seconds:.0f}", "", f"{megabytes:.0f} MB"))
            result[f"check of {count}"] = {"per_second": round(count / seconds), "peak_mb": round(megabytes)}
    print_result(options, result, ("", "rows/s", "CPU ms per row", "memory"), table)


if __name__ == "__main__":
    main()
