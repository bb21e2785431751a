"""Library interface: `await council.convene(…)`, `council.convene_sync(…)`, `async for entry in council.stream(…)`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from council import protocols
from council.engine.minutes import Minutes
from council.errors import UsageError
from council.events import Entry
from council.render.report import build_report
from council.runs.service import Convener
from council.types import Json


async def stream(
    question: str, *, protocol: str | protocols.Protocol | None = None, folder: Path | None = None, verbose: bool = False,
    members: Iterable[Any] = (), seats: Mapping[str, str] | None = None, timeout: float | None = None,
    max_cost: float | None = None, allow_unpriced: bool = False, effort: str | None = None,
    grace: float | None = None, no_resend: bool = False, **options: Any,
) -> AsyncIterator[Entry]:  # fmt: skip
    """Start a run and yield its events as they happen. The run is a separate task; this reads its queue."""
    queue: asyncio.Queue[Entry | None] = asyncio.Queue()
    settings = {"timeout": timeout, "max_cost": max_cost, "allow_unpriced": allow_unpriced or None, "effort": effort}
    settings |= {"grace": grace, "no_resend": no_resend or None}
    flags = {"seats": dict(seats or {}), **{name: value for name, value in settings.items() if value is not None}}
    convener = Convener(folder, flags=flags, members=members)
    run = asyncio.ensure_future(_run_to_queue(convener, question, protocol, verbose, options, queue))
    try:
        while (entry := await queue.get()) is not None:
            yield entry
        await run
    finally:
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        await convener.close()


async def _run_to_queue(
    convener: Convener, question: str, protocol: str | protocols.Protocol | None, verbose: bool, options: Json,
    queue: asyncio.Queue[Entry | None],
) -> None:  # fmt: skip
    try:
        if isinstance(protocol, protocols.Protocol):
            protocols.register(protocol)
            protocol = protocol.name
        plan = await convener.plan([question], options, protocol=protocol, verbose=verbose)
        await convener.run(plan, queue.put_nowait)
    finally:
        queue.put_nowait(None)


async def convene(question: str, **how: Any) -> Json:
    """Run a council and return its report (`council.report/1`). Takes the same arguments as `stream`."""
    minutes = Minutes()
    async for entry in stream(question, **how):
        minutes.on_event(entry)
    if not minutes.run:
        raise UsageError("the run did not start")
    return build_report(minutes)


def convene_sync(question: str, **how: Any) -> Json:
    """Run `convene` in a program without an event loop."""
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise UsageError(
            "convene_sync cannot run inside an event loop (such as a notebook): use `await council.convene(…)`"
        )
    return asyncio.run(convene(question, **how))
