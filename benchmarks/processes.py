"""Councils of many processes on one store, against an endpoint with 50 ms per call.

All processes start their councils at the same moment. The time ends with the last council.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from multiprocessing.context import ForkServerContext
from pathlib import Path
from threading import Barrier
from typing import Any

from endpoint import endpoint
from measure import Spread, isolated_environment, parse_arguments, print_result, write_config

MODEL = "sim-50ms-300w-varied-whole"


def convene_several(folder: Path, env: dict[str, str], count: int, barrier: Barrier, ended: Any) -> None:
    """Convene councils at once in this process, and report their statuses with the start and the end."""
    import council

    os.environ.clear()
    os.environ.update(env)
    barrier.wait()

    async def work() -> list[str]:
        runs = (
            council.convene(f"Case {os.getpid()}-{n}: which way should we go?", folder=folder, protocol="collaborative")
            for n in range(count)
        )
        reports = await asyncio.gather(*runs, return_exceptions=True)
        return [repr(one) if isinstance(one, BaseException) else one.status for one in reports]

    start = time.monotonic()
    statuses = asyncio.run(work())
    ended.put((start, time.monotonic(), statuses))


def run_processes(base_url: str, processes: int, councils: int) -> float:
    """Return the councils per second of all processes together."""
    context: ForkServerContext = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["council.doors.library", "council.runs.service"])
    with isolated_environment() as (folder, env), context.Manager() as manager:
        write_config(folder, base_url, MODEL)
        barrier, ended = manager.Barrier(processes), manager.Queue()
        workers = [
            context.Process(target=convene_several, args=(folder, env, councils, barrier, ended))
            for _ in range(processes)
        ]
        for worker in workers:
            worker.start()
        results = [ended.get(timeout=600) for _ in workers]
        for worker in workers:
            worker.join()
    wrong = [status for _, _, statuses in results for status in statuses if status != "complete"]
    if wrong:
        raise SystemExit(f"{len(wrong)} councils did not complete: {wrong[0]}")
    seconds: float = max(end for _, end, _ in results) - min(start for start, _, _ in results)
    return processes * councils / seconds


def main() -> None:
    options = parse_arguments(__doc__ or "", runs=3, processes=50, councils=4)
    with endpoint() as running:
        rates = [run_processes(running.base_url, options.processes, options.councils) for _ in range(options.runs)]
    spread = Spread.of(rates)
    name = f"{options.processes} processes × {options.councils} councils"
    result = {"per_second": spread.as_json(), "processes": options.processes, "councils": options.councils}
    print_result(options, result, ("", "councils/s"), [(name, spread.show(1))])


if __name__ == "__main__":
    main()
