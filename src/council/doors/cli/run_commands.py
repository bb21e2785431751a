"""Detached runs: queue, watch and cancel runs that the worker processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click

from council import events as ev
from council.doors.cli.params import (
    NUMBER,
    RunRequest,
    common_options,
    make_flag,
    parse_seats,
    print_result,
    run_argument,
)
from council.doors.cli.runner import (
    TEXT_FLAGS,
    Runner,
    human_seats,
    make_command,
    make_plan,
    say_not_started,
    with_convener,
)
from council.doors.cli.terminal_input import confirm_start
from council.doors.cli.views import View
from council.engine.minutes import Minutes
from council.errors import CouncilError, UsageError
from council.events import Entry
from council.render import terminal
from council.runs.outcome import EXIT_INTERRUPTED, StopEvent
from council.runs.service import Convener
from council.runs.worker_client import ensure_worker
from council.store.interface import RunState, RunStatus

WORKER_CHECK_INTERVAL_S = 1.0  # how often watching checks that a worker owns the run
CANCEL_TIMEOUT_S = 10.0  # how long `council cancel` waits for the run to stop


def detach(runner: Runner, request: RunRequest) -> int:
    """Plan a run, queue it and start the worker."""
    _refuse_result_flags(runner)

    async def job(convener: Convener) -> int:
        plan = await make_plan(convener, request)
        plan.check_runnable()
        runner.require_words(plan)
        why = runner.start_reason(plan, convener.settings)
        if why and not await confirm_start(why):
            return say_not_started()
        run = await convener.enqueue(plan)
        shown = plan.as_json()
        lines = terminal.format_plan(shown) if runner.verbose else runner.format_start(shown)
        await _hand_to_worker(runner, convener, run, lines)
        if names := human_seats(shown):
            runner.print_status([f"{', '.join(names)} is a person: answer at a terminal with `council watch {run}`"])
        return 0

    return runner.with_convener(job)


def _refuse_result_flags(runner: Runner) -> None:
    """Raise UsageError for flags that need a finished run. Ignoring --fail-on would make a gate that always passes."""
    level, form = runner.fail_on, runner.format
    refused = (
        (runner.output, "-o", "watch RUN -o FILE`"),
        (level, "--fail-on", f"report RUN --fail-on {level}` after the run"),
        (runner.flags["notify"], "--notify", "watch RUN --notify`"),
        (form not in ("", "json"), f"--format {form}", f"report RUN --format {form}` after the run"),
    )
    for is_given, flag, command in refused:
        if is_given:
            raise UsageError(f"{flag} cannot be combined with --detach, nothing was started: use `council {command}")


def requeue(runner: Runner, run: str | None) -> int:
    """Queue an unfinished run and start the worker."""

    async def job(convener: Convener) -> int:
        name = await convener.resolve_run(run or await convener.newest_unfinished_run())
        if not convener.store.is_shared:  # its workers have their own keys
            _require_keys(await convener.find_missing_keys(name), name)
        await convener.requeue(name)
        if (await convener.run_state(name)).status is RunStatus.COMPLETE:
            raise UsageError(f"run {name} is complete, nothing to resume: use `council report {name}`")
        await _hand_to_worker(runner, convener, name, [])
        return 0

    return runner.with_convener(job)


async def _hand_to_worker(runner: Runner, convener: Convener, run: str, lines: list[str]) -> None:
    warning = await ensure_worker(convener.store, run, convener.env)
    runner.print_status(lines)
    runner.print_lines({"run": run}, [f"run {run}"])
    if warning:
        click.echo(f"council: warning: {warning}", err=True)
    runner.print_status([f"watch: council watch {run} · stop: council cancel {run}"])


def watch(runner: Runner, run: str | None) -> int:
    """Show a run of another process, with the same view, output and exit code."""

    async def job(convener: Convener) -> int:
        name = await convener.resolve_run(run or await convener.newest_run())
        runner.verbose |= await convener.is_verbose(name)

        async def work(view: View, stop: StopEvent) -> Minutes | None:
            return await _follow_until_done(
                _follow_events(convener, name, view, at_once=runner.is_live), convener, name, stop
            )

        code = await runner.run_with_view(convener, work)
        if code == EXIT_INTERRUPTED and (await convener.run_state(name)).is_open:
            how = f"`council watch {name}` shows it, `council cancel {name}` stops it"
            runner.print_status([f"run {name} continues in the background: {how}"])
        return code

    return runner.with_convener(job)


async def _follow_until_done(
    following: AsyncIterator[Entry], convener: Convener, run: str, stop: StopEvent
) -> Minutes | None:
    """Return the minutes of the run, or None if watching was interrupted first."""

    async def read_to_end() -> Minutes:
        async for _ in following:
            pass
        return await convener.minutes(run)

    async with _keep_worker_running(convener, run) as tending:
        reading, stopping = asyncio.ensure_future(read_to_end()), asyncio.ensure_future(stop.wait())
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


async def _follow_events(convener: Convener, run: str, view: View, *, at_once: bool) -> AsyncIterator[Entry]:
    """Yield past and new events until the run has ended."""
    past, seq = await convener.entries(run), 0
    if at_once and any(isinstance(entry.event, ev.Stated) for entry in past):
        view.catch_up(past)
        seq = past[-1].seq
    while True:
        async for entry in convener.follow(run, seq):
            seq = max(seq, entry.seq)
            view.on_event(entry)
            yield entry
        state = await convener.run_state(run)
        if not state.is_open:
            return
        if state.status is RunStatus.STOPPED:
            raise CouncilError(f"run {run} was interrupted: continue it with `council resume {run}`")


@asynccontextmanager
async def _keep_worker_running(convener: Convener, run: str) -> AsyncIterator[asyncio.Future[None]]:
    """Keep a worker running for a detached run while it is watched."""
    tending = asyncio.ensure_future(_restart_worker_loop(convener, run))
    try:
        yield tending
    finally:
        tending.cancel()
        await asyncio.gather(tending, return_exceptions=True)


def _require_keys(keys: list[str], run: str) -> None:
    """Raise UsageError if keys are missing. The worker would wait for them without an error."""
    if keys:
        raise UsageError(f"run {run} needs {', '.join(keys)}: set it and try again")


async def _missing_keys(convener: Convener, run: str) -> list[str]:
    try:
        return await convener.find_missing_keys(run)
    except UsageError:  # folder or settings are gone: the worker fails the run with that reason
        return []


async def _restart_worker_loop(convener: Convener, run: str) -> None:
    while True:
        if not convener.store.is_shared and (await convener.run_state(run)).needs_worker:
            _require_keys(await _missing_keys(convener, run), run)
            await ensure_worker(convener.store, run, convener.env)
        await asyncio.sleep(WORKER_CHECK_INTERVAL_S)


@with_convener
async def cancel(convener: Convener, run: str, json: bool, **params: Any) -> int:
    stopped = await convener.cancel(run)
    state = await _wait_until_stopped(convener, run)
    value = {"run": state.run, "status": state.status, "cancelled": stopped}
    return print_result(json, value, [_format_cancelled(state, stopped)])


async def _wait_until_stopped(convener: Convener, run: str) -> RunState:
    """Return the state of the run once it has stopped or the timeout has passed."""
    end = time.monotonic() + CANCEL_TIMEOUT_S
    while True:
        state = await convener.run_state(run)
        if not state.is_open or time.monotonic() > end:
            return state
        await asyncio.sleep(0.1)


def _format_cancelled(state: RunState, stopped: bool) -> str:
    run, status = state.run, state.status
    if not stopped:
        return f"run {run} has already ended ({status}): nothing to cancel"
    if state.is_open:
        return f"run {run} is still stopping: check with `council watch {run}`"
    if status is RunStatus.COMPLETE:
        return f"run {run} completed before it could be cancelled: use `council report {run}`"
    return f"run {run} is cancelled, its answers are kept: continue it with `council resume {run}`"


def _view_options() -> list[click.Option]:
    """Return the options for output and progress."""
    return [
        *common_options("jsonl"),
        make_flag("-v", "--verbose", help="Print every statement in full; on standard error every event."),
        *common_options("answer_only", "quiet", *TEXT_FLAGS, "output", "no_input", "notify"),
    ]


def _limit_options() -> list[click.Option]:
    """Return the options that limit time and cost."""
    return [
        click.Option(["--max-cost"], type=NUMBER, metavar="DOLLARS", help="New cost limit of the whole run."),
        make_flag("--allow-unpriced", help="Continue with members that have no known price."),
        click.Option(["--timeout"], type=NUMBER, metavar="SECONDS", help="Time limit of each member in every phase."),
        *common_options("trust"),
    ]


def resume_command() -> click.Command:
    flags = [
        make_flag("--no-resend", help="Do not repeat requests that were in flight when the run stopped."),
        make_flag("--detach", help="Continue in the background and return at once."),
        *_limit_options(),
    ]

    def resume(run: str | None, no_resend: bool, detach: bool, **params: Any) -> int:
        if not detach:
            return Runner.from_flags(params).resume(run, resend=not no_resend)
        return requeue(Runner.from_flags(params | {"no_resend": no_resend}), run)

    return make_command("resume", resume, run_argument(), *flags, *_view_options())


def watch_command() -> click.Command:
    def watch_(run: str | None, **params: Any) -> int:
        return watch(Runner.from_flags(params), run)

    return make_command("watch", watch_, run_argument(), *common_options("fail_on"), *_view_options())


def cancel_command() -> click.Command:
    return make_command("cancel", cancel, run_argument(required=True), uses_config=False)


def fork_command() -> click.Command:
    phase = "Reuse all statements before this phase. Default: the first phase."
    seat = "Use another member from that phase on; repeatable."
    flags = [
        click.Option(["--from", "phase"], metavar="PHASE", help=phase),
        click.Option(["--seat"], multiple=True, metavar="NAME=MEMBER", help=seat),
        make_flag("--yes", help="Start without a confirmation: the estimate may be above confirm_above."),
        *_limit_options(),
    ]

    def fork_(run: str, phase: str | None, seat: tuple[str, ...], **params: Any) -> int:
        return Runner.from_flags(params).fork(run, phase, parse_seats(seat))

    return make_command("fork", fork_, run_argument(required=True), *flags, *_view_options())
