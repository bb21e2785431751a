"""The same promise at a finer grain: a process that kills itself as any event is told, and again while it is resumed."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from multiprocessing.context import ForkServerContext

import pytest

from council.convene import Convener
from council.errors import UnknownRun
from council.minutes import Minutes
from council.render.report import report
from tests.acceptance.helpers import PHASES, Json, Table, die_at, settled

PROTOCOLS = [f"council.protocols.{protocol}" for protocol in PHASES]


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Real processes that start fast: forked off a server that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PROTOCOLS, "council.convene", "council.members.wires.openai", "aiohttp.web"])
    return context


def killed(processes: ForkServerContext, table: Table, protocol: str, seq: int, *, resume: bool) -> bool:
    """Whether the process came to the event it was to die at."""
    process = processes.Process(
        target=die_at, args=(table.folder, dict(os.environ), protocol, seq), kwargs={"resume": resume}
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


def kept(table: Table) -> list[str]:
    """The keys whose answers are safe: an accepted result, or an attempt whose answer was written down."""
    query = """SELECT key FROM results UNION SELECT key FROM settled WHERE body LIKE '%"finish"%'"""
    return [key for (key,) in table.rows(query)]


def in_doubt(table: Table) -> dict[str, bytes]:
    """The requests that had left, or were about to, and of which nothing is known."""
    last = "SELECT key, MAX(n), body FROM intents GROUP BY key"
    known = dict(table.rows("SELECT key, MAX(n) FROM settled GROUP BY key"))
    return {key: body for key, n, body in table.rows(last) if known.get(key, 0) < n}


@pytest.mark.behaviour("40-kill-resume-every-boundary", "40-kill-during-resume", "40-resume-byte-identical", "40-fsck")
@pytest.mark.parametrize("protocol", PHASES)
def test_killed_at_any_event_and_again_while_resumed(processes: ForkServerContext, table: Table, protocol: str) -> None:
    assert not killed(processes, table, protocol, 10_000, resume=False)
    calm, events = resume(table)
    every = sorted(f"{phase}/{seat}" for phase, seats in PHASES[protocol].items() for seat in seats)
    for seq in range(2, events + 1):
        forget(table)
        assert killed(processes, table, protocol, seq, resume=False)
        if seq % 2:
            killed(processes, table, protocol, seq + 1 + seq % 7, resume=True)
        safe, open_, sent = kept(table), in_doubt(table), len(table.provider.log)
        told, _ = resume(table)
        asked = table.asked(sent)
        assert not set(asked) & set(safe), f"killed at {seq}: bought again"
        assert set(open_) <= set(asked)
        assert [seen.raw for key, seen in zip(asked, table.provider.log[sent:], strict=True) if key in open_] == [
            open_[key] for key in asked if key in open_
        ]
        assert sorted({*table.asked()}) == every
        if told["calls"]["made"]:
            assert told["calls"]["in_doubt"] == len(open_), f"killed at {seq}"
        assert settled(told) == settled(calm), f"killed at {seq}"
        assert [path.name for path in table.reports()] == [calm["report_path"].rsplit("/", 1)[1]]


def test_killed_before_the_run_was_written_down_there_is_no_run(processes: ForkServerContext, table: Table) -> None:
    assert killed(processes, table, "triad", 1, resume=False)
    assert table.runs() == []
    assert table.provider.log == []
    with pytest.raises(UnknownRun):
        asyncio.run(Convener(table.folder).resume(None, lambda entry: None))
