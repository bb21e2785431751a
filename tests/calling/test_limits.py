"""Adaptive concurrency limit per provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from council.calling.limits import SILENT, START, Gate, Pass, gate_of, open_gate
from council.calling.table import TABLE
from council.ledger import Ledger
from tests.calling.helpers import Hanging, answering, call, fault, step
from tests.clock import CLOCKED, settle, skip

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> Any:
    return CLOCKED


Enter = Callable[[Gate, int], Awaitable[list[Pass]]]


@pytest.fixture
async def inside() -> AsyncIterator[Enter]:
    """Hold `count` slots until the test ends."""
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
async def test_four_slots_at_the_start_and_the_fifth_call_waits() -> None:
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
    assert (gate.busy, [waiter for waiter in gate.waiting if not waiter.done()]) == (0, [])


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_a_429_multiplies_the_slots_by_0_8_once_per_episode(inside: Enter) -> None:
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
async def test_no_other_fault_changes_the_limit(inside: Enter, kind: str) -> None:
    gate = Gate(16)
    (one, *_) = await inside(gate, 4)
    one.learn(kind)
    assert gate.places == 4.0


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_there_is_always_one_slot(inside: Enter) -> None:
    gate = Gate(16, 1)
    (one,) = await inside(gate, 1)
    one.learn("rate")
    assert gate.places == 1.0


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_each_answered_call_adds_one_slot(inside: Enter) -> None:
    gate = Gate(6)
    one, two, three, _ = await inside(gate, 4)
    one.hear()
    one.learn()
    assert gate.places == 5.0
    await inside(gate, 1)
    two.learn()  # an unstreamed answer
    await inside(gate, 1)
    three.hear()
    assert gate.places == 6.0  # the provider's maximum


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_after_a_429_the_limit_grows_slowly(inside: Enter) -> None:
    gate = Gate(16, 5)
    calls = await inside(gate, 5)
    calls[0].learn("rate")
    assert gate.places == 4.0
    for one in calls[1:]:
        one.learn()
    assert 4.9 < gate.places < 5.0


async def test_the_limit_does_not_grow_while_slots_are_free(inside: Enter) -> None:
    gate = Gate(16)
    (one,) = await inside(gate, 1)
    one.learn()
    assert gate.places == 4.0


async def test_the_limit_starts_at_most_at_the_provider_maximum() -> None:
    assert Gate(2).places == 2
    assert Gate(1).places == 1


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_all_runs_of_a_process_share_one_limit() -> None:
    assert gate_of("http://here/v1", 16) is gate_of("http://here/v1", 16)
    assert gate_of("http://here/v1", 16) is not gate_of("http://there/v1", 16)


async def test_a_member_without_a_provider_never_waits(inside: Enter) -> None:
    assert len(await inside(open_gate("scripted:"), 200)) == 200


async def test_only_a_call_without_output_lends_its_slot(inside: Enter) -> None:
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


async def test_calls_in_flight_never_exceed_the_provider_maximum(inside: Enter) -> None:
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


async def test_without_lending_a_silent_call_keeps_its_slot(inside: Enter) -> None:
    gate = Gate(1, lends=False)
    await inside(gate, 1)
    (task,) = queueing(gate, 1)
    await settle()
    skip(600.0)
    await settle()
    assert (gate.busy, len(gate.waiting)) == (1, 1)
    task.cancel()


# In the retry loop


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_the_retry_loop_reports_each_result_to_the_limit(ledger: Ledger) -> None:
    gate = Gate(16, 5)
    member = answering("one", fault("rate", retry_after=0.0), fault("overload"), "Tabs.")
    assert (await call(ledger, step(), member, limit_for=lambda name: gate)).ok
    assert (gate.places, gate.episodes, gate.busy) == (4.0, 1, 0)


async def test_waiting_for_a_slot_does_not_count_against_the_timeout(ledger: Ledger) -> None:
    gate, stack = Gate(1), AsyncExitStack()
    await stack.enter_async_context(gate.turn())
    asked = asyncio.ensure_future(call(ledger, step(), answering("one", "Tabs."), limit_for=lambda name: gate))
    await settle()
    skip(600.0)  # more than its timeout of ten seconds
    await settle()
    assert not asked.done()
    await stack.aclose()
    assert (await asked).ok


async def test_no_attempt_is_recorded_before_a_slot_is_free(ledger: Ledger) -> None:
    gate = Gate(1)
    (blocking,) = queueing(gate, 1)
    await settle()
    asked = asyncio.ensure_future(call(ledger, step(), answering("one", "Tabs."), limit_for=lambda name: gate))
    await settle()
    assert ledger.calls["made"] == 0
    blocking.cancel()
    assert (await asked).ok
    assert ledger.calls["made"] == 1


async def test_a_hung_call_does_not_block_others(ledger: Ledger) -> None:
    gate = Gate(2, 1)
    hung = Hanging("one")
    first = asyncio.ensure_future(call(ledger, step(), hung, limit_for=lambda name: gate, timeout=lambda name: 60.0))
    await hung.reached.wait()
    second = asyncio.ensure_future(gate.turn().__aenter__())
    await settle()
    skip(SILENT + 1)
    assert isinstance(await second, Pass)
    first.cancel()
