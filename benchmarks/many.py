"""Many councils at once in one process, against an endpoint with 50 ms a call, every run in the ledger on disk.

The floor is bare aiohttp that sends as many requests in as many waves and reads the answers: no prompts, no ledger.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import aiohttp
from endpoint import Endpoint, endpoint
from measure import Spread, arguments, provider, put, room

from council.convene import Convener

MODEL = "sim-50ms"
WAVES = (3, 3, 1)  # a collaborative council
PATH = len(WAVES) * 0.05


async def bare(running: Endpoint, councils: int) -> None:
    body = b'{"model": "%s", "stream": true, "messages": [{"role": "user", "content": "?"}]}' % MODEL.encode()

    async def call(session: aiohttp.ClientSession) -> None:
        async with session.post(f"{running.base_url}/chat/completions", data=body) as response:
            await response.read()

    async def one(session: aiohttp.ClientSession) -> None:
        for width in WAVES:
            await asyncio.gather(*(call(session) for _ in range(width)))

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(one(session) for _ in range(councils)))


async def councils(running: Endpoint, count: int) -> None:
    with room() as (folder, env):
        provider(folder, running.base_url, MODEL, connections=min(1000, 3 * count))
        convener = Convener(folder, env)

        async def one(n: int) -> None:
            plan = await convener.plan([f"Which way should we go, for the {n}. time?"], protocol="collaborative")
            minutes = await convener.run(plan, lambda entry: None)
            assert minutes.status == "complete", minutes.reason

        await asyncio.gather(*(one(n) for n in range(count)))
        await convener.close()


def measured(work: Callable[[Endpoint, int], Awaitable[None]], running: Endpoint, count: int) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""

    async def timed() -> tuple[float, float]:
        clock, processor = time.perf_counter(), time.process_time()
        await work(running, count)
        return time.perf_counter() - clock, time.process_time() - processor

    return asyncio.run(timed())


def main() -> None:
    given = arguments(__doc__ or "", runs=5, councils=100)
    rows, result, floor = [], {}, 0.0
    with endpoint() as running:
        measured(councils, running, 1)  # imports
        taken: dict[str, list[tuple[float, float]]] = {"bare aiohttp": [], "one council": [], "councils": []}
        for _ in range(given.runs):
            taken["bare aiohttp"].append(measured(bare, running, given.councils))
            taken["one council"].append(measured(councils, running, 1))
            taken["councils"].append(measured(councils, running, given.councils))
    for name, pairs in taken.items():
        count = 1 if name == "one council" else given.councils
        clock = Spread.of([count / seconds for seconds, _ in pairs])
        cpu = Spread.of([spent / count * 1000 for _, spent in pairs])
        floor = floor or cpu.median
        rows.append((f"{count} × {name}", clock.show(1), cpu.show(2), f"{cpu.median / floor:.1f}"))
        result[name] = {"at_once": count, "per_second": clock.as_json(), "cpu_ms": cpu.as_json(), "ratio": round(cpu.median / floor, 2)}  # fmt: skip
    put(given, result, ("", "councils/s", "ms CPU a council", "over bare"), rows)


if __name__ == "__main__":
    main()
