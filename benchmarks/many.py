"""Many councils at once in one process, against an endpoint with 50 ms per call, with every run in the ledger on disk.

The baseline is plain aiohttp with the same requests and waves, without prompts and ledger.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import aiohttp
from endpoint import Endpoint, endpoint
from measure import Spread, isolated_environment, parse_arguments, print_result, write_config

from council.runs.service import Convener

MODEL = "sim-50ms"
WAVES = (3, 3, 1)  # a collaborative council
PATH = len(WAVES) * 0.05


async def bare(running: Endpoint, councils: int) -> None:
    body = b'{"model": "%s", "stream": true, "messages": [{"role": "user", "content": "?"}]}' % MODEL.encode()

    async def call(session: aiohttp.ClientSession) -> None:
        async with session.post(f"{running.base_url}/chat/completions", data=body) as response:
            await response.read()

    async def run_waves(session: aiohttp.ClientSession) -> None:
        for width in WAVES:
            await asyncio.gather(*(call(session) for _ in range(width)))

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(run_waves(session) for _ in range(councils)))


async def councils(running: Endpoint, count: int) -> None:
    with isolated_environment() as (folder, env):
        write_config(folder, running.base_url, MODEL, connections=min(1000, 3 * count))
        convener = Convener(folder, env)

        async def run_council(n: int) -> None:
            plan = await convener.plan([f"Which way should we go, for the {n}. time?"], protocol="collaborative")
            minutes = await convener.run(plan, lambda entry: None)
            assert minutes.status == "complete", minutes.reason

        await asyncio.gather(*(run_council(n) for n in range(count)))
        await convener.close()


def measure(work: Callable[[Endpoint, int], Awaitable[None]], running: Endpoint, count: int) -> tuple[float, float]:
    """Return wall-clock and CPU seconds."""

    async def timed() -> tuple[float, float]:
        clock, processor = time.perf_counter(), time.process_time()
        await work(running, count)
        return time.perf_counter() - clock, time.process_time() - processor

    return asyncio.run(timed())


def main() -> None:
    options = parse_arguments(__doc__ or "", runs=5, councils=100)
    rows, result, floor = [], {}, 0.0
    with endpoint() as running:
        measure(councils, running, 1)  # imports
        taken: dict[str, list[tuple[float, float]]] = {"bare aiohttp": [], "one council": [], "councils": []}
        for _ in range(options.runs):
            taken["bare aiohttp"].append(measure(bare, running, options.councils))
            taken["one council"].append(measure(councils, running, 1))
            taken["councils"].append(measure(councils, running, options.councils))
    for name, pairs in taken.items():
        count = 1 if name == "one council" else options.councils
        clock = Spread.of([count / seconds for seconds, _ in pairs])
        cpu = Spread.of([spent / count * 1000 for _, spent in pairs])
        floor = floor or cpu.median
        rows.append((f"{count} × {name}", clock.show(1), cpu.show(2), f"{cpu.median / floor:.1f}"))
        result[name] = {"at_once": count, "per_second": clock.as_json(), "cpu_ms": cpu.as_json(), "ratio": round(cpu.median / floor, 2)}  # fmt: skip
    print_result(options, result, ("", "councils/s", "CPU ms per council", "ratio to bare"), rows)


if __name__ == "__main__":
    main()
