"""A silent seat or chair uses up its timeout only once, in every protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from council import events as ev
from council.engine.minutes import Minutes
from council.runs.service import Convener
from tests.acceptance.helpers import QUESTION, SEATS, Workspace
from tests.fake_clock import settle, skip

pytestmark = pytest.mark.anyio
CLOCK = 100.0  # seat timeout in seconds, on a clock that the test advances


class RunningCouncil:
    """A running council. `wait_until` waits for a condition on its events."""

    def __init__(self, protocol: str, **flags: Any) -> None:
        self.convener = Convener(flags={"timeout": CLOCK, **flags})
        self.entries: list[ev.Entry] = []
        self.news = asyncio.Event()
        self.task = asyncio.ensure_future(self._run(protocol))

    async def _run(self, protocol: str) -> Minutes:
        try:
            plan = await self.convener.plan([QUESTION], protocol=protocol)
            return await self.convener.run(plan, self._hear)
        finally:
            await self.convener.close()

    def _hear(self, entry: ev.Entry) -> None:
        self.entries.append(entry)
        self.news.set()

    def of_type(self, kind: type[Any]) -> list[Any]:
        return [entry.event for entry in self.entries if isinstance(entry.event, kind)]

    async def wait_until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(60):  # real time
            while not true():
                self.news.clear()
                await self.news.wait()

    async def silence(self, *seats: str, said: int) -> None:
        """Wait until these seats are asked and the others have made `said` statements."""
        await self.wait_until(lambda: len(self.of_type(ev.Stated)) >= said)
        await self.wait_until(lambda: set(seats) <= {event.seat for event in self.of_type(ev.Attempted)})
        await self.convener.store.write(self.of_type(ev.Convened)[0].run, [])  # all events are written
        await settle()


@pytest.mark.behaviour("40-hung-seat-costs-its-clock-once", "issue-5-hung-seat")
@pytest.mark.parametrize(("protocol", "statements"), [("triad", 2), ("collaborative", 2), ("adversarial", 2)])
async def test_a_silent_seat_uses_up_its_timeout_once(workspace: Workspace, protocol: str, statements: int) -> None:
    gate = workspace.provider.hold(model="gamma")
    council = RunningCouncil(protocol)
    await council.silence("gamma", said=statements)
    await asyncio.to_thread(gate.wait)
    skip(0.95 * CLOCK)
    await settle()
    assert not council.of_type(ev.WasAbsent)  # its timeout has not passed
    skip(0.05 * CLOCK)
    minutes = await asyncio.wait_for(council.task, CLOCK)  # the clock is not advanced any more
    assert minutes.status == "complete"
    assert len(workspace.provider.requests("gamma")) == 1
    assert {missed.state for missed in minutes.absences if missed.seat == "gamma"} == {"timed_out"}
    assert sum(len(workspace.provider.requests(seat)) for seat in SEATS if seat != "gamma") >= 2


@pytest.mark.behaviour("40-hung-seat-costs-its-clock-once", "issue-5-hung-seat")
@pytest.mark.parametrize(("protocol", "before"), [("triad", 3), ("collaborative", 6), ("adversarial", 3)])
async def test_a_silent_chair_uses_up_its_timeout_once(workspace: Workspace, protocol: str, before: int) -> None:
    gate = workspace.provider.hold(model="chair")
    council = RunningCouncil(protocol)
    await council.silence("chair", said=before)
    await asyncio.to_thread(gate.wait)
    skip(CLOCK)
    minutes = await asyncio.wait_for(council.task, CLOCK)
    assert (minutes.status, minutes.stopped) == ("incomplete", "chair")
    assert len(workspace.provider.requests("chair")) == 1
    assert minutes.chair and (minutes.chair.state, minutes.chair.reason) == (
        "timed_out",
        f"no answer within {CLOCK:g} s",
    )


@pytest.mark.behaviour("40-hung-seat-costs-its-clock-once")
async def test_a_hung_member_is_not_asked_again_while_its_fallback_answers(workspace: Workspace) -> None:
    workspace.configure(gamma=["sim:delta"])
    workspace.answers.seat_of["delta"] = "gamma"
    gate = workspace.provider.hold(model="gamma")
    council = RunningCouncil("collaborative")
    await council.silence("gamma", said=2)
    await asyncio.to_thread(gate.wait)
    skip(CLOCK)  # its deadline; the fallback has its own time
    minutes = await asyncio.wait_for(council.task, CLOCK)
    assert minutes.status == "complete" and not minutes.absences
    assert (len(workspace.provider.requests("gamma")), len(workspace.provider.requests("delta"))) == (1, 2)
    assert minutes.seats["gamma"].served_by == "sim:delta"


# --grace


@pytest.mark.behaviour("40-grace")
async def test_grace_drops_a_seat_without_output_when_the_others_are_done(workspace: Workspace) -> None:
    gate = workspace.provider.hold(model="gamma")
    council = RunningCouncil("collaborative", grace=5.0)
    await council.silence("gamma", said=2)
    await asyncio.to_thread(gate.wait)
    skip(5.0)
    minutes = await asyncio.wait_for(council.task, CLOCK)
    assert minutes.status == "complete"
    (first, *_) = (missed for missed in minutes.absences if missed.seat == "gamma")
    assert (first.phase, first.state, first.reason) == ("draft", "timed_out", "left behind after 5 s grace")
    assert len(workspace.provider.requests("gamma")) == 1  # excluded for the run


@pytest.mark.behaviour("40-grace")
async def test_without_grace_no_seat_is_dropped(workspace: Workspace) -> None:
    gate = workspace.provider.hold(model="gamma")
    council = RunningCouncil("triad")
    await council.silence("gamma", said=2)
    await asyncio.to_thread(gate.wait)
    skip(0.9 * CLOCK)
    await settle()
    assert not council.of_type(ev.WasAbsent)
    gate.release()
    minutes = await asyncio.wait_for(council.task, CLOCK)
    assert minutes.status == "complete" and not minutes.absences
