"""The same promise at a finer grain: a process that kills itself as any event is told, and again while it is resumed."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from multiprocessing.context import ForkServerContext
from typing import Any

import pytest

from council.convene import Convener
from council.errors import UnknownRun
from council.minutes import Minutes
from council.render.report import report
from tests.acceptance.helpers import PHASES, Json, Table, die_at, settled
from tests.fake_provider import Reply, Seen

PROTOCOLS = [f"council.protocols.{protocol}" for protocol in PHASES]


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Real processes that start fast: forked off a server that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PROTOCOLS, "council.convene", "council.members.wires.openai", "aiohttp.web"])
    return context


def killed(processes: ForkServerContext, table: Table, protocol: str, seq: int, *, resume: bool, **flags: Any) -> bool:
    """Whether the process came to the event it was to die at."""
    process = processes.Process(
        target=die_at, args=(table.folder, dict(os.environ), protocol, seq), kwargs={"resume": resume, **flags}
    )
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def resume(table: Table) -> tuple[Json, int]:
    """Resume to the end; the report and the number of events. The record must be in order before and after."""

    async def work() -> tuple[Json, int]:
        convener = Convener(table.folder)
        try:
            (run,) = table.runs()
            assert await convener.audit(run) == []
            minutes: Minutes = await convener.resume(run, lambda entry: None)
            assert await convener.audit(run) == []
            assert await convener.store.check() == convener.store.litter() == []
            return report(minutes), len(await convener.entries(run))
        finally:
            await convener.close()

    return asyncio.run(work())


def forget(table: Table) -> None:
    """An empty store, an empty log, no report."""
    table.provider.forget()
    for path in [*table.data.glob("council.db*"), *table.reports()]:
        path.unlink()


def answered(table: Table) -> set[bytes]:
    """The requests whose answers are safe in the ledger."""
    query = """SELECT i.body FROM intents i JOIN settled s USING (run, key, n) WHERE s.body LIKE '%"finish"%'"""
    return {body for (body,) in table.rows(query)}


def in_doubt(table: Table) -> set[bytes]:
    """The requests that had left, or were about to, and of which nothing is known."""
    last = "SELECT key, MAX(n), body FROM intents GROUP BY key"
    known = dict(table.rows("SELECT key, MAX(n) FROM settled GROUP BY key"))
    return {body for key, n, body in table.rows(last) if known.get(key, 0) < n}


BOUNDARIES = "SELECT seq FROM events WHERE type IN ('phase', 'phase_ended', 'lookup', 'closed') AND seq > 1"
GRAINS = [pytest.param(False, id="boundaries"), pytest.param(True, id="events", marks=pytest.mark.sweep)]


def survives(processes: ForkServerContext, table: Table, protocol: str, *, every: bool = True, **flags: Any) -> None:
    """Kill it at every event (or where phases meet), every other time again while it is resumed, and compare with a run nobody killed."""
    assert not killed(processes, table, protocol, 10_000, resume=False, **flags)
    everything = set(table.asked())
    calm, events = resume(table)
    for seq in range(2, events + 1) if every else [seq for (seq,) in table.rows(BOUNDARIES)]:
        forget(table)
        assert killed(processes, table, protocol, seq, resume=False, **flags)
        if seq % 2:
            killed(processes, table, protocol, seq + 1 + seq % 7, resume=True)
        safe, open_, sent = answered(table), in_doubt(table), len(table.provider.log)
        told, _ = resume(table)
        raws = [seen.raw for seen in table.provider.log[sent:]]
        assert not safe & set(raws), f"killed at {seq}: bought again"
        assert open_ <= set(raws), f"killed at {seq}: not sent again, or not byte for byte"
        assert told["calls"]["in_doubt"] == len(open_) or not told["calls"]["made"]
        assert set(table.asked()) == everything
        assert settled(told) == settled(calm), f"killed at {seq}"
        assert [path.name for path in table.reports()] == [calm["report_path"].rsplit("/", 1)[1]]


@pytest.mark.behaviour("40-kill-resume-every-boundary", "40-kill-during-resume", "40-resume-byte-identical", "40-fsck")
@pytest.mark.parametrize("every", GRAINS)
@pytest.mark.parametrize("protocol", PHASES)
def test_killed_and_again_while_resumed(processes: ForkServerContext, table: Table, protocol: str, every: bool) -> None:
    survives(processes, table, protocol, every=every or protocol == "triad")


@pytest.mark.behaviour("40-kill-resume-every-boundary", "40-committed-never-bought-again")
@pytest.mark.parametrize("every", GRAINS)
def test_killed_while_seats_fail_are_replaced_and_repair_themselves(
    processes: ForkServerContext, table: Table, every: bool
) -> None:
    table.configure(beta=["sim:spare"])
    table.cast.seat_of["spare"] = "beta"
    table.cast.instead |= {"beta": Reply(status=500), "gamma": Reply(status=500), "chair/triage": _wrong_at_first}
    survives(processes, table, "adversarial", every=every)


def _wrong_at_first(seen: Seen) -> Reply | None:
    return Reply(text='{"leader": "alpha"}') if len(seen.body["messages"]) == 2 else None


@pytest.mark.behaviour("40-kill-resume-every-boundary")
def test_killed_before_the_run_was_written_down_there_is_no_run(processes: ForkServerContext, table: Table) -> None:
    assert killed(processes, table, "triad", 1, resume=False)
    assert table.runs() == []
    assert table.provider.log == []
    with pytest.raises(UnknownRun):
        asyncio.run(Convener(table.folder).resume(None, lambda entry: None))
