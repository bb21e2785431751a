"""How many calls a provider gets at once, and what it learns from what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from council.calling.limits import SILENT, START, Gate, Pass, gate_of, open_gate
from council.calling.table import TABLE
from council.ledger import Ledger
from tests.calling.helpers import Hanging, call, fault, step, telling
from tests.clock import CLOCKED, settle, skip

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> Any:
    return CLOCKED


Enter = Callable[[Gate, int], Awaitable[list[Pass]]]


@pytest.fixture
async def inside() -> AsyncIterator[Enter]:
    """So many calls that went in and do not come out before the test does."""
    async with AsyncExitStack() as stack:

        async def enter(gate: Gate, count: int) -> list[Pass]:
            return [await stack.enter_async_context(gate.turn()) for _ in range(count)]

        yield enter


def queueing(gate: Gate, count: int) -> list[asyncio.Task[None]]:
    async def stay() -> None:
        async with gate.turn():
            await asyncio.Event().wait()

    return [asyncio.ensure_future(stay()) for _ in range(count)]


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_it_begins_with_four_places_and_the_fifth_call_waits() -> None:
    gate = Gate(16)
    tasks = queueing(gate, 6)
    await settle()
    assert (START, gate.busy, len(gate.waiting)) == (4, 4, 2)
    tasks[0].cancel()
    await settle()
    assert (gate.busy, len(gate.waiting)) == (4, 1)
    for task in tasks:
        task.cancel()
    await settle()
    assert (gate.busy, [place for place in gate.waiting if not place.done()]) == (0, [])


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_too_many_requests_leave_four_fifths_of_the_places_once_an_episode(inside: Enter) -> None:
    gate = Gate(16, 10)
    calls = await inside(gate, 5)
    for one in calls:
        one.learn("rate")
    assert gate.places == 8.0
    (later,) = await inside(gate, 1)
    later.learn("rate")
    assert gate.places == 6.4


@pytest.mark.behaviour("40-adaptive-concurrency")
@pytest.mark.parametrize("kind", [kind for kind in TABLE if kind != "rate"])
async def test_no_other_fault_changes_how_many_go_in(inside: Enter, kind: str) -> None:
    gate = Gate(16)
    (one, *_) = await inside(gate, 4)
    one.learn(kind)
    assert gate.places == 4.0


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_there_is_always_one_place(inside: Enter) -> None:
    gate = Gate(16, 1)
    (one,) = await inside(gate, 1)
    one.learn("rate")
    assert gate.places == 1.0


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_a_call_that_is_heard_makes_room_for_another_once(inside: Enter) -> None:
    gate = Gate(6)
    one, two, three, _ = await inside(gate, 4)
    one.hear()
    one.learn()
    assert gate.places == 5.0
    await inside(gate, 1)
    two.learn()  # it came all at once
    await inside(gate, 1)
    three.hear()
    assert gate.places == 6.0  # and no more than the provider may have


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_after_a_complaint_room_is_won_back_slowly(inside: Enter) -> None:
    gate = Gate(16, 5)
    calls = await inside(gate, 5)
    calls[0].learn("rate")
    assert gate.places == 4.0
    for one in calls[1:]:
        one.learn()
    assert 4.9 < gate.places < 5.0


async def test_room_that_nobody_needs_is_not_made(inside: Enter) -> None:
    gate = Gate(16)
    (one,) = await inside(gate, 1)
    one.learn()
    assert gate.places == 4.0


async def test_no_more_go_in_than_the_provider_may_have() -> None:
    assert Gate(2).places == 2
    assert Gate(1).places == 1


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_all_runs_of_a_process_go_through_the_same_gate() -> None:
    assert gate_of("http://here/v1", 16) is gate_of("http://here/v1", 16)
    assert gate_of("http://here/v1", 16) is not gate_of("http://there/v1", 16)


async def test_who_has_no_provider_never_waits(inside: Enter) -> None:
    assert len(await inside(open_gate("scripted:"), 200)) == 200


async def test_a_call_without_a_word_lends_its_place_and_one_that_speaks_does_not(inside: Enter) -> None:
    gate = Gate(16, 2)
    speaking, _ = await inside(gate, 2)
    speaking.spoke = True
    tasks = queueing(gate, 2)
    await settle()
    assert len(gate.waiting) == 2
    skip(SILENT + 1)
    await settle()
    assert (gate.busy, len(gate.waiting)) == (2, 1)
    for task in tasks:
        task.cancel()


async def test_more_are_never_under_way_than_the_provider_may_have_however_silent_they_are(inside: Enter) -> None:
    gate = Gate(2)
    await inside(gate, 1)
    tasks = queueing(gate, 2)
    await settle()
    skip(SILENT + 1)
    await settle()
    assert (gate.inside, len(gate.waiting)) == (2, 1)
    tasks[0].cancel()
    await settle()
    assert (gate.inside, len(gate.waiting)) == (2, 0)
    tasks[1].cancel()


async def test_where_places_are_not_lent_silence_keeps_others_out(inside: Enter) -> None:
    gate = Gate(1, lends=False)
    await inside(gate, 1)
    (task,) = queueing(gate, 1)
    await settle()
    skip(600.0)
    await settle()
    assert (gate.busy, len(gate.waiting)) == (1, 1)
    task.cancel()


# In the loop


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_the_loop_tells_the_gate_what_came_of_each_call(ledger: Ledger) -> None:
    gate = Gate(16, 5)
    member = telling("one", fault("rate", retry_after=0.0), fault("overload"), "Tabs.")
    assert (await call(ledger, step(), member, gate=lambda name: gate)).ok
    assert (gate.places, gate.episodes, gate.busy) == (4.0, 1, 0)


async def test_a_seat_that_waits_for_a_place_has_its_time_when_it_gets_one(ledger: Ledger) -> None:
    gate, stack = Gate(1), AsyncExitStack()
    await stack.enter_async_context(gate.turn())
    asked = asyncio.ensure_future(call(ledger, step(), telling("one", "Tabs."), gate=lambda name: gate))
    await settle()
    skip(600.0)  # more than the ten seconds that it has
    await settle()
    assert not asked.done()
    await stack.aclose()
    assert (await asked).ok


async def test_nothing_is_intended_before_there_is_a_place(ledger: Ledger) -> None:
    gate = Gate(1)
    (blocking,) = queueing(gate, 1)
    await settle()
    asked = asyncio.ensure_future(call(ledger, step(), telling("one", "Tabs."), gate=lambda name: gate))
    await settle()
    assert ledger.calls["made"] == 0
    blocking.cancel()
    assert (await asked).ok
    assert ledger.calls["made"] == 1


async def test_a_hung_call_keeps_nobody_out_for_good(ledger: Ledger) -> None:
    gate = Gate(2, 1)
    hung = Hanging("one")
    first = asyncio.ensure_future(call(ledger, step(), hung, gate=lambda name: gate, timeout=lambda name: 60.0))
    await hung.reached.wait()
    second = asyncio.ensure_future(gate.turn().__aenter__())
    await settle()
    skip(SILENT + 1)
    assert isinstance(await second, Pass)
    first.cancel()
