"""Runs that another process works on: queued here, followed here, stopped from here."""

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

TEND = 1.0  # seconds between two looks whether anybody works on a run that is watched
STOPPING = 10.0  # seconds a run has to stop before it is only said that it was told to


def detach(drive: Drive, wish: Wish) -> int:
    """Plan it, write it down, and leave it to the worker."""
    _refuse_early(drive)

    async def job(convener: Convener) -> int:
        plan = await planned(convener, wish)
        plan.ready()
        lines = terminal.before(plan.as_json())
        if not agreed(plan.as_json(), convener.settings.budget, ask=drive.ask):
            click.echo("council: not convened, nothing was spent", err=True)
            return INTERRUPTED
        run = await convener.enqueue(plan)
        await _handed_over(drive, convener, run, lines)
        if names := peopled(plan.as_json()):
            drive.say([f"a person sits as {', '.join(names)}: `council watch {run}` asks them at a terminal"])
        return 0

    return drive.with_convener(job)


def _refuse_early(drive: Drive) -> None:
    """What asks for the end of a run has nothing to ask here, and to drop it in silence would be a gate that never shuts."""
    if drive.output:
        raise UsageError(
            "-o takes an answer that is not there yet, nothing was started: `council watch RUN -o FILE` writes it"
        )
    if drive.fail_on:
        raise UsageError(
            "--fail-on asks for a verdict that is not there yet, nothing was started: "
            f"`council gate RUN --fail-on {drive.fail_on}` asks for it when the run has ended"
        )
    if drive.form not in ("", "json"):
        raise UsageError(
            f"--format {drive.form} takes a report that is not there yet, nothing was started: "
            f"`council report RUN --format {drive.form}` prints it when the run has ended"
        )


def requeue(drive: Drive, run: str | None) -> int:
    """Leave an unfinished run to the worker."""

    async def job(convener: Convener) -> int:
        name = await convener.named(run or await convener.newest_unfinished())
        _refuse_without(await convener.lacking(name), name)
        await convener.requeue(name)
        if (await convener.standing(name))["status"] == "complete":
            raise UsageError(f"run {name} is complete, so there is nothing to resume: `council report {name}` shows it")
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
    """The same view as where it runs, and the same end."""

    async def job(convener: Convener) -> int:
        name = await convener.named(run or await convener.newest())
        drive.verbose |= await convener.is_verbose(name)

        async def work(view: View, stop: Stop) -> Minutes | None:
            return await _until_left(_followed(convener, name, view, at_once=drive.is_live), convener, name, stop)

        code = await drive.watched(convener, work)
        if code == INTERRUPTED and (await convener.standing(name))["status"] in OPEN:
            drive.say(
                [f"left alone: run {name} goes on; `council watch {name}` comes back, `council cancel {name}` stops it"]
            )
        return code

    return drive.with_convener(job)


async def _until_left(following: AsyncIterator[Entry], convener: Convener, run: str, stop: Stop) -> Minutes | None:
    """What the run came to, or None if whoever watched went away."""

    async def heard() -> Minutes:
        async for _ in following:
            pass
        return await convener.minutes(run)

    async with _tended(convener, run) as tending:
        hearing, leaving = asyncio.ensure_future(heard()), asyncio.ensure_future(stop.wait())
        tasks: set[asyncio.Future[Any]] = {hearing, leaving, tending}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tending.done() and not hearing.done():
                tending.result()
            return hearing.result() if hearing.done() else None
        finally:
            for task in (hearing, leaving):
                task.cancel()
            await asyncio.gather(hearing, leaving, return_exceptions=True)


async def _followed(convener: Convener, run: str, view: View, *, at_once: bool) -> AsyncIterator[Entry]:
    """What happened so far, then what happens, whoever works on it, until the run has ended."""
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
            raise CouncilError(f"nobody works on run {run} any more: `council resume {run}` goes on")


@asynccontextmanager
async def _tended(convener: Convener, run: str) -> AsyncIterator[asyncio.Future[None]]:
    """A detached run that nobody works on finds a worker, now and whenever it loses one."""
    tending = asyncio.ensure_future(_tend(convener, run))
    try:
        yield tending
    finally:
        tending.cancel()
        await asyncio.gather(tending, return_exceptions=True)


def _refuse_without(keys: list[str], run: str) -> None:
    """The worker would only wait for somebody who has them."""
    if keys:
        raise UsageError(f"run {run} needs {', '.join(keys)}, which is not set here: set it, and try again")


async def _lacking(convener: Convener, run: str) -> list[str]:
    try:
        return await convener.lacking(run)
    except UsageError:  # its folder or its settings are gone: the worker closes it with that reason
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
    """How it stands when it has stopped, or when it is not waited for any longer."""
    end = time.monotonic() + STOPPING
    while True:
        standing = await convener.standing(run)
        if standing["status"] not in OPEN or time.monotonic() > end:
            return standing
        await asyncio.sleep(0.1)


def _told(standing: Json, stopped: bool) -> str:
    run, status = standing["run"], standing["status"]
    if not stopped:
        return f"run {run} has ended already ({status}): nothing was stopped"
    if status in OPEN:
        return f"run {run} was told to stop, and has not yet: `council watch {run}` shows whether it does"
    if status == "complete":
        return f"run {run} was complete before it could be stopped: `council report {run}` shows it"
    return f"run {run} is cancelled, what was answered is kept: `council resume {run}` goes on"
