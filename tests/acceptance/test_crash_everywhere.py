"""Crash at every event: a process kills itself at each event, and again while it is resumed."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from multiprocessing.context import ForkServerContext
from typing import Any

import pytest

from council.engine.minutes import Minutes
from council.errors import UnknownRun
from council.render.report import build_report
from council.runs.service import Convener
from tests.acceptance.helpers import PHASES, Json, Workspace, comparable, kill_at_event
from tests.fake_provider import Reply, Seen

PROTOCOLS = [f"council.protocols.{protocol}" for protocol in PHASES]


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Return a fork server with everything imported, so that processes start fast."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PROTOCOLS, "council.runs.service", "council.members.wires.openai", "aiohttp.web"])
    return context


def run_and_kill(
    processes: ForkServerContext, workspace: Workspace, protocol: str, seq: int, *, resume: bool, **flags: Any
) -> bool:
    """Return whether the process reached the event it was killed at."""
    process = processes.Process(
        target=kill_at_event,
        args=(workspace.folder, dict(os.environ), protocol, seq),
        kwargs={"resume": resume, **flags},
    )
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def resume(workspace: Workspace) -> tuple[Json, int]:
    """Resume to the end and return the report and the number of events. Audit the record before and after."""

    async def work() -> tuple[Json, int]:
        convener = Convener(workspace.folder)
        try:
            (run,) = workspace.runs()
            assert await convener.audit(run) == []
            minutes: Minutes = await convener.resume(run, lambda entry: None)
            assert await convener.audit(run) == []
            assert await convener.store.check_integrity() == convener.store.list_temp_files() == []
            return build_report(minutes), len(await convener.entries(run))
        finally:
            await convener.close()

    return asyncio.run(work())


def clear_store(workspace: Workspace) -> None:
    """Delete the store, the log and the reports."""
    workspace.provider.forget()
    for path in [*workspace.data.glob("council.db*"), *workspace.reports()]:
        path.unlink()


def answered_requests(workspace: Workspace) -> set[bytes]:
    """Return the requests whose answers are in the ledger."""
    query = """SELECT i.body FROM intents i JOIN settled s USING (run, key, n) WHERE s.body LIKE '%"finish"%'"""
    return {body for (body,) in workspace.rows(query)}


def requests_in_doubt(workspace: Workspace) -> set[bytes]:
    """Return the recorded requests without a result."""
    last = "SELECT key, MAX(n), body FROM intents GROUP BY key"
    known = dict(workspace.rows("SELECT key, MAX(n) FROM settled GROUP BY key"))
    return {body for key, n, body in workspace.rows(last) if known.get(key, 0) < n}


BOUNDARIES = "SELECT seq FROM events WHERE type IN ('phase', 'phase_ended', 'lookup', 'closed') AND seq > 1"
GRAINS = [pytest.param(False, id="boundaries"), pytest.param(True, id="events", marks=pytest.mark.sweep)]


def survives(
    processes: ForkServerContext, workspace: Workspace, protocol: str, *, every: bool = True, **flags: Any
) -> None:
    """Kill a run at every event (or at phase boundaries), every other time again while resuming, and compare with a run without a crash."""
    assert not run_and_kill(processes, workspace, protocol, 10_000, resume=False, **flags)
    everything = set(workspace.asked())
    calm, events = resume(workspace)
    for seq in range(2, events + 1) if every else [seq for (seq,) in workspace.rows(BOUNDARIES)]:
        clear_store(workspace)
        assert run_and_kill(processes, workspace, protocol, seq, resume=False, **flags)
        if seq % 2:
            run_and_kill(processes, workspace, protocol, seq + 1 + seq % 7, resume=True)
        safe, open_, sent = answered_requests(workspace), requests_in_doubt(workspace), len(workspace.provider.log)
        told, _ = resume(workspace)
        raws = [seen.raw for seen in workspace.provider.log[sent:]]
        assert not safe & set(raws), f"killed at {seq}: paid again"
        assert open_ <= set(raws), f"killed at {seq}: not sent again, or not byte for byte"
        ((made, answered),) = workspace.rows("SELECT (SELECT count(*) FROM intents), (SELECT count(*) FROM settled)")
        assert (told["calls"]["made"], told["calls"]["in_doubt"]) == (made, made - answered), f"killed at {seq}"
        assert len(workspace.provider.log) <= made  # a process may die between the row and the request
        assert set(workspace.asked()) == everything
        assert comparable(told) == comparable(calm), f"killed at {seq}"
        assert [path.name for path in workspace.reports()] == [calm["report_path"].rsplit("/", 1)[1]]


@pytest.mark.behaviour("40-kill-resume-every-boundary", "40-kill-during-resume", "40-resume-byte-identical", "40-fsck")
@pytest.mark.parametrize("every", GRAINS)
@pytest.mark.parametrize("protocol", PHASES)
def test_killed_and_again_while_resumed(
    processes: ForkServerContext, workspace: Workspace, protocol: str, every: bool
) -> None:
    survives(processes, workspace, protocol, every=every or protocol == "triad")


@pytest.mark.behaviour("40-kill-resume-every-boundary", "40-committed-never-bought-again")
@pytest.mark.parametrize("every", GRAINS)
def test_killed_while_seats_fail_fall_back_and_repair(
    processes: ForkServerContext, workspace: Workspace, every: bool
) -> None:
    workspace.configure(beta=["sim:spare"])
    workspace.answers.seat_of["spare"] = "beta"
    workspace.answers.instead |= {
        "beta": Reply(status=500),
        "gamma": Reply(status=500),
        "chair/triage": _wrong_at_first,
    }
    survives(processes, workspace, "adversarial", every=every)


def _wrong_at_first(seen: Seen) -> Reply | None:
    return Reply(text='{"leader": "alpha"}') if len(seen.body["messages"]) == 2 else None


@pytest.mark.behaviour("40-kill-resume-every-boundary")
def test_killed_before_the_run_was_stored_there_is_no_run(processes: ForkServerContext, workspace: Workspace) -> None:
    assert run_and_kill(processes, workspace, "triad", 1, resume=False)
    assert workspace.runs() == []
    assert workspace.provider.log == []
    with pytest.raises(UnknownRun):
        asyncio.run(Convener(workspace.folder).resume(None, lambda entry: None))
