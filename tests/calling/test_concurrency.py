"""Adaptive concurrency limit per provider."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from council.calling import concurrency
from council.calling.concurrency import (
    FILES_PER_RUN,
    MAX_LATE_S,
    MIN_PARALLEL_RUNS,
    RESERVED_FILES,
    SILENT_AFTER_S,
    START_SLOTS,
    TURN_SPACING,
    ConcurrencyLimit,
    RateLimit,
    RunLimit,
    Slot,
    count_possible_runs,
    get_limit,
    no_limit,
)
from council.calling.fault_table import FAULT_TABLE
from council.engine.ledger import Ledger
from tests.calling.helpers import Hanging, answering, call, fault, step
from tests.fake_clock import settle, skip

pytestmark = pytest.mark.anyio


Enter = Callable[[ConcurrencyLimit, int], Awaitable[list[Slot]]]


@pytest.fixture
async def inside() -> AsyncIterator[Enter]:
    """Hold `count` slots until the test ends."""
    async with AsyncExitStack() as stack:

        async def enter(gate: ConcurrencyLimit, count: int) -> list[Slot]:
            return [await stack.enter_async_context(Slot(gate)) for _ in range(count)]

        yield enter


def queueing(gate: ConcurrencyLimit, count: int) -> list[asyncio.Task[None]]:
    async def stay() -> None:
        async with Slot(gate):
            await asyncio.Event().wait()

    return [asyncio.ensure_future(stay()) for _ in range(count)]


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_four_slots_at_the_start_and_the_fifth_call_waits() -> None:
    gate = ConcurrencyLimit(16)
    tasks = queueing(gate, 6)
    await settle()
    assert (START_SLOTS, gate.busy, len(gate.waiters)) == (4, 4, 2)
    tasks[0].cancel()
    await settle()
    assert (gate.busy, len(gate.waiters)) == (4, 1)
    for task in tasks:
        task.cancel()
    await settle()
    assert (gate.busy, [waiter for waiter in gate.waiters if not waiter.done()]) == (0, [])


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_a_429_multiplies_the_slots_by_0_8_once_per_episode(inside: Enter) -> None:
    gate = ConcurrencyLimit(16, 10)
    calls = await inside(gate, 5)
    for one in calls:
        one.report_result("rate")
    assert gate.slots == 8.0
    (later,) = await inside(gate, 1)
    later.report_result("rate")
    assert gate.slots == 6.4


@pytest.mark.behaviour("40-adaptive-concurrency")
@pytest.mark.parametrize("kind", [kind for kind in FAULT_TABLE if kind != "rate"])
async def test_no_other_fault_changes_the_limit(inside: Enter, kind: str) -> None:
    gate = ConcurrencyLimit(16)
    (one, *_) = await inside(gate, 4)
    one.report_result(kind)
    assert gate.slots == 4.0


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_there_is_always_one_slot(inside: Enter) -> None:
    gate = ConcurrencyLimit(16, 1)
    (one,) = await inside(gate, 1)
    one.report_result("rate")
    assert gate.slots == 1.0


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_each_answered_call_adds_one_slot(inside: Enter) -> None:
    gate = ConcurrencyLimit(6)
    one, two, three, _ = await inside(gate, 4)
    one.on_output()
    one.report_result()
    assert gate.slots == 5.0
    await inside(gate, 1)
    two.report_result()  # an unstreamed answer
    await inside(gate, 1)
    three.on_output()
    assert gate.slots == 6.0  # the provider's maximum


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_after_a_429_the_limit_grows_slowly(inside: Enter) -> None:
    gate = ConcurrencyLimit(16, 5)
    calls = await inside(gate, 5)
    calls[0].report_result("rate")
    assert gate.slots == 4.0
    for one in calls[1:]:
        one.report_result()
    assert 4.9 < gate.slots < 5.0


async def test_the_limit_does_not_grow_while_slots_are_free(inside: Enter) -> None:
    gate = ConcurrencyLimit(16)
    (one,) = await inside(gate, 1)
    one.report_result()
    assert gate.slots == 4.0


async def test_the_limit_starts_at_most_at_the_provider_maximum() -> None:
    assert ConcurrencyLimit(2).slots == 2
    assert ConcurrencyLimit(1).slots == 1


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_all_runs_of_a_process_share_one_limit() -> None:
    assert get_limit("http://here/v1", 16) is get_limit("http://here/v1", 16)
    assert get_limit("http://here/v1", 16) is not get_limit("http://there/v1", 16)


async def test_a_member_without_a_provider_never_waits(inside: Enter) -> None:
    assert len(await inside(no_limit("scripted:"), 200)) == 200


async def test_only_a_call_without_output_lends_its_slot(inside: Enter) -> None:
    gate = ConcurrencyLimit(16, 2)
    speaking, _ = await inside(gate, 2)
    speaking.has_output = True
    tasks = queueing(gate, 2)
    await settle()
    assert len(gate.waiters) == 2
    skip(SILENT_AFTER_S + 1)
    await settle()
    assert (gate.busy, len(gate.waiters)) == (2, 1)
    for task in tasks:
        task.cancel()


async def test_calls_in_flight_never_exceed_the_provider_maximum(inside: Enter) -> None:
    gate = ConcurrencyLimit(2)
    await inside(gate, 1)
    tasks = queueing(gate, 2)
    await settle()
    skip(SILENT_AFTER_S + 1)
    await settle()
    assert (gate.in_flight, len(gate.waiters)) == (2, 1)
    tasks[0].cancel()
    await settle()
    assert (gate.in_flight, len(gate.waiters)) == (2, 0)
    tasks[1].cancel()


async def test_without_lending_a_silent_call_keeps_its_slot(inside: Enter) -> None:
    gate = ConcurrencyLimit(1, lends_silent_slots=False)
    await inside(gate, 1)
    (task,) = queueing(gate, 1)
    await settle()
    skip(600.0)
    await settle()
    assert (gate.busy, len(gate.waiters)) == (1, 1)
    task.cancel()


# In the retry loop


@pytest.mark.behaviour("40-adaptive-concurrency")
async def test_the_retry_loop_reports_each_result_to_the_limit(ledger: Ledger) -> None:
    gate = ConcurrencyLimit(16, 5)
    member = answering("one", fault("rate", retry_after=0.0), fault("overload"), "Tabs.")
    assert (await call(ledger, step(), member, limit_for=lambda name: gate)).ok
    assert (gate.slots, gate.slowdowns, gate.busy) == (4.0, 1, 0)


async def test_waiting_for_a_slot_does_not_count_against_the_timeout(ledger: Ledger) -> None:
    gate, stack = ConcurrencyLimit(1), AsyncExitStack()
    await stack.enter_async_context(Slot(gate))
    asked = asyncio.ensure_future(call(ledger, step(), answering("one", "Tabs."), limit_for=lambda name: gate))
    await settle()
    skip(600.0)  # more than its timeout of ten seconds
    await settle()
    assert not asked.done()
    await stack.aclose()
    assert (await asked).ok


async def test_no_attempt_is_recorded_before_a_slot_is_free(ledger: Ledger) -> None:
    gate = ConcurrencyLimit(1)
    (blocking,) = queueing(gate, 1)
    await settle()
    asked = asyncio.ensure_future(call(ledger, step(), answering("one", "Tabs."), limit_for=lambda name: gate))
    await settle()
    assert ledger.calls["made"] == 0
    blocking.cancel()
    assert (await asked).ok
    assert ledger.calls["made"] == 1


async def test_a_hung_call_does_not_block_others(ledger: Ledger) -> None:
    gate = ConcurrencyLimit(2, 1)
    hung = Hanging("one")
    first = asyncio.ensure_future(call(ledger, step(), hung, limit_for=lambda name: gate, timeout=lambda name: 60.0))
    await hung.reached.wait()
    second = asyncio.ensure_future(Slot(gate).__aenter__())
    await settle()
    skip(SILENT_AFTER_S + 1)
    assert isinstance(await second, Slot)
    first.cancel()


# Runs at once


@pytest.fixture
def run_limit(monkeypatch: pytest.MonkeyPatch) -> RunLimit:
    """A limit of two runs."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (2 * FILES_PER_RUN + RESERVED_FILES + count_files(), 0))
    return RunLimit()


def count_files() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


@pytest.mark.behaviour("40-open-files")
async def test_runs_that_need_too_many_files_wait_in_order(run_limit: RunLimit) -> None:
    started: list[int] = []
    may_end = [asyncio.Event() for _ in range(5)]

    async def run(n: int) -> None:
        async with run_limit.acquire():
            started.append(n)
            async with run_limit.acquire():  # a run inside this one
                await may_end[n].wait()

    tasks = [asyncio.ensure_future(run(n)) for n in range(5)]
    await settle()
    assert started == [0, 1]
    tasks[2].cancel()
    may_end[1].set()
    await settle()
    assert started == [0, 1, 3]
    for event in may_end:
        event.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert started == [0, 1, 3, 4]
    async with run_limit.acquire(), run_limit.acquire():
        pass


def test_a_low_limit_of_files_allows_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, runs in ((0, 1), (resource.RLIM_INFINITY, 2**31)):
        monkeypatch.setattr(resource, "getrlimit", lambda which, limit=limit: (limit, limit))
        assert count_possible_runs() == runs


@pytest.mark.behaviour("15-paced-starts")
async def test_of_many_runs_the_first_start_at_once_and_the_others_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    limit, started, may_end = RunLimit(), list[int](), asyncio.Event()
    total = MIN_PARALLEL_RUNS + 4

    async def run(n: int) -> None:
        async with limit.acquire():
            started.append(n)
            await may_end.wait()

    monkeypatch.setattr(concurrency, "START_INTERVAL_S", 3600.0)
    tasks = [asyncio.ensure_future(run(n)) for n in range(total)]
    await settle()
    assert started == list(range(MIN_PARALLEL_RUNS))
    for task in tasks[MIN_PARALLEL_RUNS:]:
        task.cancel()
    await asyncio.wait(tasks[MIN_PARALLEL_RUNS:])
    monkeypatch.setattr(concurrency, "START_INTERVAL_S", 0.0)
    tasks += [asyncio.ensure_future(run(n)) for n in range(MIN_PARALLEL_RUNS, total)]
    for _ in tasks:
        await settle()
    assert started == list(range(total))
    may_end.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert limit._running == 0


@pytest.mark.behaviour("15-paced-starts")
async def test_a_run_also_starts_if_the_event_loop_stays_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "MIN_PARALLEL_RUNS", 0)
    monkeypatch.setattr(concurrency, "MAX_TURN_S", -1.0)  # every turn takes too long
    async with RunLimit().acquire():
        pass


@pytest.mark.behaviour("16-rate-limit")
async def test_requests_to_a_provider_with_a_rate_get_evenly_spaced_turns() -> None:
    rate, now = RateLimit("sim", 50), asyncio.get_running_loop().time
    turns = await asyncio.gather(*(rate.take_turn() for _ in range(30)))
    gaps = [later - earlier for earlier, later in pairwise(sorted(turns))]
    assert min(gaps) > TURN_SPACING / 50 - 0.0001
    slot = Slot(ConcurrencyLimit(4, rate=rate), turn=now() - 2 * MAX_LATE_S)  # it was missed
    await slot.wait_for_turn()
    assert slot.turn > max(turns)
    assert now() >= slot.turn
