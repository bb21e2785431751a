"""Rows of a batch that workers execute: what happens to a row when the batch is stopped."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from council.errors import UnknownRun
from council.members.scripted import Scripted
from council.planning.setup import BatchLabel
from council.runs.batch_execution import RowRun, run_by_workers, run_here
from council.runs.outcome import StopEvent
from council.runs.service import Convener
from council.store.interface import RunStatus

pytestmark = pytest.mark.anyio
SEATS = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")


async def wait_for_status(convener: Convener, run: str, status: RunStatus) -> None:
    async with asyncio.timeout(60):
        while True:
            with suppress(UnknownRun):
                if (await convener.run_state(run)).status == status:
                    return
            await asyncio.sleep(0.01)


@pytest.mark.behaviour("50-batch-interrupt")
async def test_a_queued_row_of_a_stopped_batch_is_cancelled_and_can_be_continued() -> None:
    convener = Convener(Path.cwd(), flags={"seats": SEATS}, members=[Scripted()], keeps_open=True)
    try:
        run = await convener.store.new_run_id()
        label: BatchLabel = {"batch": "b", "row": "1", "hash": "h", "run": run}
        plan = replace(await convener.plan(["Tabs?"], protocol="triad"), batch=label)
        for row in (RowRun(run, plan), RowRun(run)):  # without a worker, it stays in the queue
            stop = StopEvent()
            work = asyncio.ensure_future(run_by_workers(convener, row, stop))
            await wait_for_status(convener, run, RunStatus.QUEUED)
            stop.set()
            async with asyncio.timeout(20):
                minutes = await work
            assert (minutes.status, minutes.stopped) == (RunStatus.INCOMPLETE, "interrupted")
        work = asyncio.ensure_future(run_by_workers(convener, RowRun(run), StopEvent()))
        await wait_for_status(convener, run, RunStatus.QUEUED)
        await convener.cancel(run)  # by someone else
        assert (await work).stopped == "cancelled"
        assert (await run_here(convener, RowRun(run), StopEvent())).status == RunStatus.COMPLETE
    finally:
        await convener.close()
