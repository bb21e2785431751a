"""What a streamed event costs the client: CPU of this process alone, against an endpoint in another.

Four readers of the same stream, interleaved: bare aiohttp that parses every event and no more (the floor), the openai
wire, the wire with the watch for answers that go round in circles, and a whole council with its ledger on disk, whose few
dozen other steps are spread over its events.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

import aiohttp
from endpoint import Endpoint, endpoint
from measure import Spread, arguments, provider, put, room

from council.calling.repeating import Repetition
from council.convene import Convener
from council.members.wires.openai import OpenAIMember
from council.types import Ask

ASK = Ask("draft/alpha", ({"role": "user", "content": "Which way should we go?"},))
CALLS = 7  # a collaborative council's, so that each reader reads as much


class Readers:
    """Each reads CALLS answers of so many events and returns when all is read."""

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

    async def watched(self) -> None:
        member = self._member()
        for _ in range(CALLS):
            heard = Repetition()
            await member.send(member.prepare(ASK), heard.hear)
        await member.close()

    async def council(self) -> None:
        with room() as (folder, env):
            provider(folder, self.running.base_url, self.model)
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
    given = arguments(__doc__ or "", runs=9, words=2000)
    names = ("bare aiohttp and json", "openai wire", "openai wire, watched for loops", "whole council, ledger")
    taken: dict[str, list[float]] = {name: [] for name in names}
    with endpoint() as running:
        readers = Readers(running, given.words)
        for n in range(given.runs + 1):
            for name, read in zip(taken, (readers.bare, readers.wire, readers.watched, readers.council), strict=True):
                spent = microseconds(read, CALLS * given.words)
                if n:  # the first round imports
                    taken[name].append(spent)
    spreads = {name: Spread.of(values) for name, values in taken.items()}
    floor = spreads["bare aiohttp and json"].median
    rows = [(name, spread.show(1), f"{spread.median / floor:.2f}") for name, spread in spreads.items()]
    result = {name: {**spread.as_json(), "ratio": round(spread.median / floor, 3)} for name, spread in spreads.items()}
    put(given, result, (f"{CALLS} answers of {given.words} events", "µs CPU an event", "over bare"), rows)


if __name__ == "__main__":
    main()
