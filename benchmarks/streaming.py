"""CPU time of the client per streamed event, with the endpoint in another process.

Four interleaved readers of the same stream: plain aiohttp that only parses the events (the baseline), the openai wire,
the wire with loop detection, and a whole council with its ledger on disk, whose other steps are averaged over its
events.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

import aiohttp
from endpoint import Endpoint, endpoint
from measure import Spread, isolated_environment, parse_arguments, print_result, write_config

from council.calling.answer_check import LoopDetector
from council.members.wires.openai import OpenAIMember
from council.runs.service import Convener
from council.types import Ask

ASK = Ask("draft/alpha", ({"role": "user", "content": "Which way should we go?"},))
CALLS = 7  # as in a collaborative council, so that all readers read the same amount


class Readers:
    """Each method reads CALLS answers completely."""

    def __init__(self, running: Endpoint, words: int) -> None:
        self.running, self.model = running, f"sim-0ms-{words}w"

    async def bare(self) -> None:
        body = self._member().prepare(ASK)
        async with aiohttp.ClientSession() as session:
            for _ in range(CALLS):
                async with session.post(f"{self.running.base_url}/chat/completions", data=body) as response:
                    async for line in response.content:
                        if line.startswith(b"data: {"):
                            json.loads(line[6:])

    async def wire(self) -> None:
        member = self._member()
        for _ in range(CALLS):
            await member.send(member.prepare(ASK), lambda piece: None)
        await member.close()

    async def wire_with_loop_detection(self) -> None:
        member = self._member()
        for _ in range(CALLS):
            repetition = LoopDetector()
            await member.send(member.prepare(ASK), repetition.feed)
        await member.close()

    async def council(self) -> None:
        with isolated_environment() as (folder, env):
            write_config(folder, self.running.base_url, self.model)
            convener = Convener(folder, env)
            plan = await convener.plan(["Which way should we go?"], protocol="collaborative")
            minutes = await convener.run(plan, lambda entry: None)
            assert minutes.status == "complete", minutes.reason
            await convener.close()

    def _member(self) -> OpenAIMember:
        return OpenAIMember("sim:m", base_url=self.running.base_url, model=self.model, api_key=None, vendor="sim")


def microseconds(read: Callable[[], Awaitable[None]], events: int) -> float:
    async def timed() -> float:
        start = time.process_time()
        await read()
        return time.process_time() - start

    return asyncio.run(timed()) / events * 1e6


def main() -> None:
    options = parse_arguments(__doc__ or "", runs=9, words=2000)
    names = ("bare aiohttp and json", "openai wire", "openai wire with loop detection", "whole council, ledger")
    taken: dict[str, list[float]] = {name: [] for name in names}
    with endpoint() as running:
        readers = Readers(running, options.words)
        for n in range(options.runs + 1):
            for name, read in zip(
                taken, (readers.bare, readers.wire, readers.wire_with_loop_detection, readers.council), strict=True
            ):
                spent = microseconds(read, CALLS * options.words)
                if n:  # the first round includes imports
                    taken[name].append(spent)
    spreads = {name: Spread.of(values) for name, values in taken.items()}
    floor = spreads["bare aiohttp and json"].median
    rows = [(name, spread.show(1), f"{spread.median / floor:.2f}") for name, spread in spreads.items()]
    result = {name: {**spread.as_json(), "ratio": round(spread.median / floor, 3)} for name, spread in spreads.items()}
    print_result(
        options, result, (f"{CALLS} answers of {options.words} events", "CPU µs per event", "ratio to bare"), rows
    )


if __name__ == "__main__":
    main()
