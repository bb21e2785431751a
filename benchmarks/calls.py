"""Function calls per collaborative council and per streamed event, counted by cProfile, which sees Python and built-in
functions.

The endpoint is a separate process. The councils run one after another in this thread after a warm-up; the threads of
the store do not count. A council without a stream gets each answer as one JSON body, a streamed one as 300 events, each
in a packet or eight together; the difference is the cost of the events. With `--top N` a second run attributes each
call to the nearest function of `council` on the stack, so that calls of libraries and built-in functions appear where
they are caused (`--streamed 1` for a streamed council).

Counts of a council are the same on every machine. Those of single packets are not: packets that arrive while the stream
is not read are read together.
"""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from endpoint import Endpoint, endpoint
from measure import check_budget, isolated_environment, parse_arguments, print_result, write_config

import council
from council import Convener, Minutes

WORDS = 300
EVENTS = 7 * (WORDS + 3)  # with the finish, the usage and the end mark of each answer
WARM_UP = 3
MAX_CALLS, MAX_EVENT_CALLS = 15_000, 83.0  # the budgets of the milestone; tests/test_calls.py guards today's counts
QUESTION = (
    "A small team must decide whether to replace its nightly batch pipeline by a streaming one within a quarter. Which option "
    "should it take, what would change your mind, and how would you measure after three months that the decision was right?"
)
PACKAGE = str(Path(council.__file__).parent)

Work = Callable[[str], Awaitable[str]]  # a question → the status of its run


async def count_calls(work: Work, councils: int) -> float:
    """Return the function calls of one council."""
    profile = cProfile.Profile()
    with _profiled(profile.enable, profile.disable) as run:
        await run(work, councils)
    return pstats.Stats(profile).total_calls / councils  # type: ignore[attr-defined,no-any-return]


async def attribute_calls(work: Work, councils: int) -> Counter[str]:
    """Return the calls of each function of `council`, with the calls of libraries that it causes."""
    counts: Counter[str] = Counter()

    def on_call(frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            counts[_nearest_function(frame)] += 1

    with _profiled(lambda: sys.setprofile(on_call), lambda: sys.setprofile(None)) as run:
        await run(work, councils)
    return Counter({name: round(count / councils) for name, count in counts.items()})


@contextmanager
def _profiled(start: Callable[[], None], stop: Callable[[], None]) -> Iterator[Callable[[Work, int], Awaitable[None]]]:
    async def run(work: Work, councils: int) -> None:
        for n in range(WARM_UP + councils):
            if n == WARM_UP:
                start()
            status = await work(f"Case {n}: {QUESTION}")
            if status != "complete":
                raise SystemExit(f"a council ended with the status {status}")

    try:
        yield run
    finally:
        stop()


def _nearest_function(frame: FrameType | None) -> str:
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(PACKAGE):
            return f"{code.co_filename[len(PACKAGE) + 1 : -3]}:{code.co_qualname if sys.version_info >= (3, 11) else code.co_name}"
        frame = frame.f_back
    return "asyncio and aiohttp"


@contextmanager
def shared_service(running: Endpoint, model: str) -> Iterator[tuple[Work, Callable[[], Awaitable[None]]]]:
    """Yield a council by one `Convener`, as a service uses it, and its end."""
    with isolated_environment() as (folder, env):
        write_config(folder, running.base_url, model)
        convener = Convener(folder, env)

        async def work(question: str) -> str:
            minutes = Minutes()
            await convener.run(await convener.plan([question], protocol="collaborative"), minutes.on_event)
            return minutes.status

        yield work, convener.close


@contextmanager
def library(running: Endpoint, model: str) -> Iterator[tuple[Work, Callable[[], Awaitable[None]]]]:
    """Yield a council by `convene()`, and nothing to end."""
    with isolated_environment() as (folder, env):
        write_config(folder, running.base_url, model)

        async def work(question: str) -> str:
            return (await council.convene(question, folder=folder, env=env, protocol="collaborative")).status

        async def close() -> None:
            pass

        yield work, close


def run_councils(
    measure: Callable[[Work, int], Awaitable[Any]], start: Any, running: Endpoint, kind: str, n: int
) -> Any:
    """Run a warm-up and n councils on the model of this kind, and return what was counted."""

    async def run() -> Any:
        with start(running, f"sim-0ms-{WORDS}w-{kind}") as (work, close):
            counted = await measure(work, n)
            await close()
            return counted

    return asyncio.run(run())


def count_all(runs: int) -> dict[str, float]:
    """Return the calls per council with a shared service and with `convene()`, and the calls per streamed event."""
    with endpoint() as running:
        council_calls = run_councils(count_calls, shared_service, running, "whole", runs)
        library_calls = run_councils(count_calls, library, running, "whole", runs)
        together = run_councils(count_calls, shared_service, running, "agree", 1)
        single = run_councils(count_calls, shared_service, running, "1pp", 1)
    return {
        "council": round(council_calls),
        "convene": round(library_calls),
        "event": round((single - council_calls) / EVENTS, 1),
        "event_of_eight": round((together - council_calls) / EVENTS, 1),
    }


def main() -> None:
    options = parse_arguments((__doc__ or "").partition("\n")[0], runs=5, top=0, streamed=0)
    result = count_all(options.runs)
    rows = [
        ("collaborative council, shared service", f"{result['council']:,.0f}", _check(result["council"], MAX_CALLS)),
        ("collaborative council, convene()", f"{result['convene']:,.0f}", _check(result["convene"], MAX_CALLS)),
        ("streamed event, one per packet", f"{result['event']:.1f}", _check(result["event"], MAX_EVENT_CALLS)),
        ("streamed event, eight per packet", f"{result['event_of_eight']:.1f}", ""),
    ]
    if options.top:
        kind = "1pp" if options.streamed else "whole"
        with endpoint() as running:
            counts = run_councils(
                attribute_calls, shared_service, running, kind, 1 if options.streamed else options.runs
            )
        packages: Counter[str] = Counter()
        for name, count in counts.items():
            packages[name.partition(":")[0].partition("/")[0]] += count
        rows += [(f"package {name}", f"{count:,}", "") for name, count in packages.most_common()]
        rows += [(name, f"{count:,}", "") for name, count in counts.most_common(options.top)]
    print_result(options, result, ("function calls", "count", "limit"), rows)


def _check(value: float, budget: float) -> str:
    return f"{budget:,.0f}: {check_budget(value, budget)}"


if __name__ == "__main__":
    main()
