"""Detached runs: queue, watch and cancel runs that the worker processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import click

from council import events as ev
from council.convene import Convener
from council.convene.records import OPEN
from council.convene.summoning import call
from council.doors.cli.asking import agreed
from council.doors.cli.drive import Drive, planned
from council.doors.cli.given import Wish, print_json
from council.doors.cli.people import peopled
from council.doors.cli.views import View
from council.endings import Stop
from council.errors import CouncilError, UsageError
from council.events import Entry
from council.minutes import Minutes
from council.render import terminal
from council.rules.exits import INTERRUPTED
from council.types import Json

TEND = 1.0  # how often watching checks that a worker owns the run
STOPPING = 10.0  # how long `council cancel` waits for the run to stop


def detach(drive: Drive, wish: Wish) -> int:
    """Plan a run, queue it and start the worker."""
    _refuse_early(drive)

    async def job(convener: Convener) -> int:
        plan = await planned(convener, wish)
        plan.ready()
        lines = terminal.before(plan.as_json())
        if not agreed(plan.as_json(), convener.settings.budget, ask=drive.ask):
            click.echo("council: not started, nothing was spent", err=True)
            return INTERRUPTED
        run = await convener.enqueue(plan)
        await _handed_over(drive, convener, run, lines)
        if names := peopled(plan.as_json()):
            drive.say([f"{', '.join(names)} is a person: answer at a terminal with `council watch {run}`"])
        return 0

    return drive.with_convener(job)


def _refuse_early(drive: Drive) -> None:
    """Raise UsageError for flags that need a finished run. Ignoring --fail-on would make a gate that always passes."""
    if drive.output:
        raise UsageError("-o cannot be combined with --detach, nothing was started: use `council watch RUN -o FILE`")
    if drive.fail_on:
        raise UsageError(
            "--fail-on cannot be combined with --detach, nothing was started: "
            f"use `council gate RUN --fail-on {drive.fail_on}` after the run"
        )
    if drive.form not in ("", "json"):
        raise UsageError(
            f"--format {drive.form} cannot be combined with --detach, nothing was started: "
            f"use `council report RUN --format {drive.form}` after the run"
        )


def requeue(drive: Drive, run: str | None) -> int:
    """Queue an unfinished run and start the worker."""

    async def job(convener: Convener) -> int:
        name = await convener.named(run or await convener.newest_unfinished())
        _refuse_without(await convener.lacking(name), name)
        await convener.requeue(name)
        if (await convener.standing(name))["status"] == "complete":
            raise UsageError(f"run {name} is complete, nothing to resume: use `council report {name}`")
        await _handed_over(drive, convener, name, [])
        return 0

    return drive.with_convener(job)


async def _handed_over(drive: Drive, convener: Convener, run: str, lines: Sequence[str]) -> None:
    await call(run, convener.env)
    if drive.form == "json":
        print_json({"run": run})
    else:
        click.echo("\n".join([*lines, f"run {run}"]))
    drive.say([f"watch: council watch {run} · stop: council cancel {run}"])


def watch(drive: Drive, run: str | None) -> int:
    """Show a run of another process, with the same view, output and exit code."""

    async def job(convener: Convener) -> int:
        name = await convener.named(run or await convener.newest())
        drive.verbose |= await convener.is_verbose(name)

        async def work(view: View, stop: Stop) -> Minutes | None:
            return await _until_left(_followed(convener, name, view, at_once=drive.is_live), convener, name, stop)

        code = await drive.watched(convener, work)
        if code == INTERRUPTED and (await convener.standing(name))["status"] in OPEN:
            drive.say(
                [
                    f"run {name} continues in the background: `council watch {name}` shows it, `council cancel {name}` stops it"
                ]
            )
        return code

    return drive.with_convener(job)


async def _until_left(following: AsyncIterator[Entry], convener: Convener, run: str, stop: Stop) -> Minutes | None:
    """Return the minutes of the run, or None if watching was interrupted first."""

    async def heard() -> Minutes:
        async for _ in following:
            pass
        return await convener.minutes(run)

    async with _tended(convener, run) as tending:
        reading, stopping = asyncio.ensure_future(heard()), asyncio.ensure_future(stop.wait())
        tasks: set[asyncio.Future[Any]] = {reading, stopping, tending}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tending.done() and not reading.done():
                tending.result()
            return reading.result() if reading.done() else None
        finally:
            for task in (reading, stopping):
                task.cancel()
            await asyncio.gather(reading, stopping, return_exceptions=True)


async def _followed(convener: Convener, run: str, view: View, *, at_once: bool) -> AsyncIterator[Entry]:
    """Yield past and new events until the run has ended."""
    past, seq = await convener.entries(run), 0
    if at_once and any(isinstance(entry.event, ev.Stated) for entry in past):
        view.catch_up(past)
        seq = past[-1].seq
    while True:
        async for entry in convener.follow(run, seq):
            seq = max(seq, entry.seq)
            view.hear(entry)
            yield entry
        standing = await convener.standing(run)
        if standing["status"] not in OPEN:
            return
        if not (standing["detached"] or standing["owned"]):
            raise CouncilError(f"run {run} was interrupted: continue it with `council resume {run}`")


@asynccontextmanager
async def _tended(convener: Convener, run: str) -> AsyncIterator[asyncio.Future[None]]:
    """Keep a worker running for a detached run while it is watched."""
    tending = asyncio.ensure_future(_tend(convener, run))
    try:
        yield tending
    finally:
        tending.cancel()
        await asyncio.gather(tending, return_exceptions=True)


def _refuse_without(keys: list[str], run: str) -> None:
    """Raise UsageError if keys are missing. The worker would wait for them without an error."""
    if keys:
        raise UsageError(f"run {run} needs {', '.join(keys)}: set it and try again")


async def _lacking(convener: Convener, run: str) -> list[str]:
    try:
        return await convener.lacking(run)
    except UsageError:  # folder or settings are gone: the worker fails the run with that reason
        return []


async def _tend(convener: Convener, run: str) -> None:
    while True:
        standing = await convener.standing(run)
        if standing["detached"] and standing["status"] in OPEN and not standing["owned"]:
            _refuse_without(await _lacking(convener, run), run)
            await call(run, convener.env)
        await asyncio.sleep(TEND)


def cancel(drive: Drive, run: str) -> int:
    async def job(convener: Convener) -> int:
        stopped = await convener.cancel(run)
        standing = await _settled(convener, run)
        if drive.form == "json":
            print_json({"run": standing["run"], "status": standing["status"], "cancelled": stopped})
        else:
            click.echo(_told(standing, stopped))
        return 0

    return drive.with_convener(job)


async def _settled(convener: Convener, run: str) -> Json:
    """Return the status of the run once it has stopped or the timeout has passed."""
    end = time.monotonic() + STOPPING
    while True:
        standing = await convener.standing(run)
        if standing["status"] not in OPEN or time.monotonic() > end:
            return standing
        await asyncio.sleep(0.1)


def _told(standing: Json, stopped: bool) -> str:
    run, status = standing["run"], standing["status"]
    if not stopped:
        return f"run {run} has already ended ({status}): nothing to cancel"
    if status in OPEN:
        return f"run {run} is still stopping: check with `council watch {run}`"
    if status == "complete":
        return f"run {run} completed before it could be cancelled: use `council report {run}`"
    return f"run {run} is cancelled, its answers are kept: continue it with `council resume {run}`"
