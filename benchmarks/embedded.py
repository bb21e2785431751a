"""The README's council on the embedded model, compared with llama.cpp and the same requests, with the same settings.

A run has two sides, each with a new server: the whole council by `convene()` without the time to load the model, and
the requests of that council sent straight to llama.cpp in the same three waves. The raw requests end after as many
tokens as the council's answers had, so that both sides read and write the same amount.

`evaluated` are the prompt tokens that the model had to process, `reused` those it still had from an earlier prompt.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import platformdirs
from measure import Spread, isolated_environment, parse_arguments, print_result

from council import convene
from council.members.base import OnDelta, Progress
from council.members.local import LocalMember, LocalServer
from council.types import Answer

QUESTION = "What should a new team lead do in the first month?"
CACHE = Path(os.environ.get("COUNCIL_CACHE") or platformdirs.user_cache_path("council"))
BUDGET = 1.15
GOAL = 0.8


@dataclass(slots=True)
class Side:
    """One side of a run."""

    seconds: float
    evaluated: int
    reused: int
    written: int


@dataclass(slots=True)
class Call:
    """A request of the council: when it was sent and ended, and what it used."""

    body: bytes
    sent: float
    ended: float = 0.0
    answer: Answer = field(default_factory=lambda: Answer(""))


class RecordingMember(LocalMember):
    """The embedded model with a record of its requests."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.calls: list[Call] = []
        self.loading = 0.0
        self.prefix_tokens = 0

    async def ready(self, progress: Progress) -> None:
        start = time.monotonic()
        await super().ready(progress)
        self.loading += time.monotonic() - start

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        call = Call(body, time.monotonic())
        self.calls.append(call)
        call.answer = await super().send(body, on_delta)
        call.ended = time.monotonic()
        return call.answer

    async def close(self) -> None:
        self.prefix_tokens = self._prefix.evaluated if self._prefix else self.prefix_tokens
        await super().close()


async def run_council(threads: str) -> tuple[Side, list[Call], str]:
    with isolated_environment() as (folder, env):
        member = RecordingMember("local:smollm2", cache=CACHE, env={"COUNCIL_LOCAL_THREADS": threads})
        start = time.monotonic()
        report = await convene(QUESTION, folder=folder, env=env, members=[member], models=["local:smollm2"])
        seconds = time.monotonic() - start - member.loading
        await member.close()
    usage = [call.answer.usage for call in member.calls]
    reused = sum(one.cached for one in usage)
    evaluated = sum(one.input for one in usage) - reused + member.prefix_tokens
    return Side(seconds, evaluated, reused, sum(one.output for one in usage)), member.calls, report.answer


def split_waves(calls: list[Call]) -> list[list[Call]]:
    """Return the requests by wave: one that was sent after all earlier ones ended starts a new wave."""
    waves: list[list[Call]] = []
    end = -1.0
    for call in calls:
        if call.sent > end:
            waves.append([])
        waves[-1].append(call)
        end = max(end, call.ended)
    return waves


async def run_raw(threads: str, calls: list[Call]) -> Side:
    """Send the council's requests straight to llama.cpp."""
    member = LocalMember("local:smollm2", cache=CACHE, env={"COUNCIL_LOCAL_THREADS": threads})
    server = await asyncio.to_thread(member._start_server, lambda *step: None, threading.Event())
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
            start, usages = time.monotonic(), []
            for wave in split_waves(calls):
                usages += await asyncio.gather(*(send_raw(session, server, call) for call in wave))
            seconds = time.monotonic() - start
    finally:
        await member.close()
    reused = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
    read = sum(usage["prompt_tokens"] for usage in usages)
    return Side(seconds, read - reused, reused, sum(usage["completion_tokens"] for usage in usages))


async def send_raw(session: aiohttp.ClientSession, server: LocalServer, call: Call) -> dict[str, Any]:
    body = json.loads(call.body) | {"max_tokens": call.answer.usage.output, "ignore_eos": True}
    usage: dict[str, Any] = {}
    async with session.post(
        f"{server.address}/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {server.key}"}
    ) as response:
        async for line in response.content:
            if line.startswith(b"data: {"):
                usage = json.loads(line[6:]).get("usage") or usage
    return usage


def describe(name: str, sides: list[Side]) -> tuple[str, ...]:
    columns = [[getattr(side, part) for side in sides] for part in ("seconds", "evaluated", "reused", "written")]
    return (name, *(Spread.of(values).show(1 if n == 0 else 0) for n, values in enumerate(columns)))


def main() -> None:
    options = parse_arguments(__doc__ or "", runs=3, threads=0)
    threads = str(options.threads or "")
    ours: list[Side] = []
    raw: list[Side] = []
    for _ in range(options.runs):
        side, calls, answer = asyncio.run(run_council(threads))
        ours.append(side)
        raw.append(asyncio.run(run_raw(threads, calls)))
        if not options.json:
            print(f"{side.seconds / raw[-1].seconds:.2f}  {answer}", flush=True)
    ratio = Spread.of([one.seconds / other.seconds for one, other in zip(ours, raw, strict=True)])
    verdict = "goal reached" if ratio.median <= GOAL else "ok" if ratio.median <= BUDGET else "over"
    rows = [
        describe("llama.cpp, the same requests", raw),
        describe("council", ours),
        ("ratio", ratio.show(), f"at most {BUDGET}, goal {GOAL}: {verdict}", "", ""),
    ]
    result = {"ratio": ratio.as_json()} | {
        name: {part: Spread.of([getattr(side, part) for side in sides]).as_json() for part in Side.__slots__}
        for name, sides in (("raw", raw), ("council", ours))
    }
    print_result(options, result, ("", "seconds", "evaluated", "reused", "written"), rows)


if __name__ == "__main__":
    main()
