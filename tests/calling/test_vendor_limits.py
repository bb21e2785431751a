"""Limits of a vendor per minute: the arithmetic of the buckets, and the requests of several processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial

import pytest

from council.calling.concurrency import ConcurrencyLimit, Slot
from council.calling.shared_limit import MAX_AHEAD_S, MAX_PAUSE_S, WINDOW_S, Amounts, SharedLimit, list_amounts
from council.calling.vendor_limits import (
    BURST,
    SHARE,
    VendorLimits,
    take_from_buckets,
)
from council.counters import read_counts
from council.engine.ledger import Ledger
from council.store.interface import LimitChange, R
from council.types import Answer, Usage
from tests.calling.helpers import answering, call, fault, step
from tests.fake_clock import settle, skip

pytestmark = pytest.mark.anyio


def amounts(requests: float = 1, read: float = 0, written: float = 0) -> Amounts:
    return {"requests": requests, "input": read, "output": written, "tokens": read + written}


def take_starts(limits: Amounts, wanted: Sequence[Amounts], seconds: float) -> list[float]:
    """Return the starts of a queue that never ends, in the first seconds."""
    state, now, starts, n = "", 0.0, list[float](), 0
    while now < seconds:
        state, grant = take_from_buckets(limits, {}, [wanted[n % len(wanted)]], state, now)
        starts += [now + start for start in grant.starts]
        n += len(grant.starts)
        now += grant.pause
    return [start for start in starts if start <= seconds]


def count_most(starts: Sequence[float], window: float = WINDOW_S) -> int:
    """Return the largest number of starts in any window."""
    return max(sum(first <= start < first + window for start in starts) for first in starts)


@pytest.mark.behaviour("33-limits-per-minute")
@pytest.mark.parametrize("limit", [1, 2, 5, 10, 60, 500])
def test_no_window_of_a_minute_has_more_requests_than_the_limit(limit: int) -> None:
    starts = take_starts({"requests": limit}, [amounts()], 600)
    assert count_most(starts) <= limit
    assert len(starts) >= 0.9 * limit * 10
    assert starts == sorted(starts)


@pytest.mark.behaviour("33-limits-per-minute")
def test_no_window_of_a_minute_has_more_tokens_than_the_limit_and_the_last_request() -> None:
    limits = {"input": 20_000, "output": 8_000, "tokens": 25_000}
    sizes = [amounts(1, 200, 300), amounts(1, 900, 100), amounts(1, 50, 20)]
    starts = take_starts(limits, sizes, 600)
    for kind, limit in limits.items():
        used = [(start, sizes[n % 3][kind]) for n, start in enumerate(starts)]
        most = max(sum(size for at, size in used if first <= at < first + WINDOW_S) for first, _ in used)
        assert most <= (SHARE + BURST) * limit + max(size[kind] for size in sizes)
    assert sum(sizes[n % 3]["tokens"] for n in range(len(starts))) >= 0.9 * 25_000 * 10


@pytest.mark.behaviour("33-limits-per-minute")
def test_a_request_larger_than_a_limit_is_sent_and_the_next_ones_wait_for_its_debt() -> None:
    state, grant = take_from_buckets({"tokens": 1000}, {}, [amounts(1, 2000), amounts(1, 10)], "", 100.0)
    assert grant.starts == [0.0]
    debt = 2000 - BURST * 1000
    assert grant.pause == min(debt / (SHARE * 1000 / WINDOW_S) - MAX_AHEAD_S / 2, MAX_PAUSE_S)
    assert json.loads(state) == {"tokens": [-debt, 100.0]}
    later = 100.0 + debt / (SHARE * 1000 / WINDOW_S)
    assert take_from_buckets({"tokens": 1000}, {}, [amounts(1, 10)], state, later)[1].starts == [0.0]


@pytest.mark.behaviour("33-limits-per-minute")
def test_what_a_request_did_not_use_is_given_back_up_to_the_size_of_the_bucket() -> None:
    limits = {"tokens": 1000}
    state, _ = take_from_buckets(limits, {}, [amounts(1, 500)], "", 0.0)
    state, _ = take_from_buckets(limits, {"tokens": 400}, [], state, 0.0)
    assert json.loads(state) == {"tokens": [BURST * 1000 - 100, 0.0]}
    state, _ = take_from_buckets(limits, {"tokens": 400}, [], state, 0.0)
    assert json.loads(state) == {"tokens": [BURST * 1000, 0.0]}
    state, _ = take_from_buckets(limits, {"tokens": -300}, [], state, 0.0)  # it used more than expected
    assert json.loads(state) == {"tokens": [BURST * 1000 - 300, 0.0]}


@pytest.mark.behaviour("33-limits-per-minute")
def test_starts_are_reserved_for_the_next_two_seconds_only() -> None:
    _, grant = take_from_buckets({"requests": 60}, {}, [amounts()] * 100, "", 50.0)
    assert 0 < len(grant.starts) < 10
    assert max(grant.starts) <= MAX_AHEAD_S
    assert 0 < grant.pause <= MAX_AHEAD_S


@pytest.mark.behaviour("33-limits-per-minute")
@pytest.mark.parametrize(
    "state", ["", "{", "[]", '{"requests": 1}', '{"requests": ["x", 2]}', '{"requests": [NaN, 1]}']
)
def test_a_state_that_cannot_be_read_is_a_full_bucket(state: str) -> None:
    changed, grant = take_from_buckets({"requests": 100}, {}, [amounts()], state, 7.0)
    assert grant.starts == [0.0]
    assert json.loads(changed) == {"requests": [2.0, 7.0]}


@pytest.mark.behaviour("33-limits-per-minute")
def test_a_clock_that_was_set_back_delays_no_request() -> None:
    state = json.dumps({"requests": [1.0, 9000.0]})
    changed, grant = take_from_buckets({"requests": 100}, {}, [amounts()], state, 100.0)
    assert grant.starts == [0.0]
    assert json.loads(changed) == {"requests": [0.0, 100.0]}


class MemoryStore:
    """State of limits in memory, by the clock of the event loop."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}
        self.changes = 0

    async def change_limit(self, name: str, change: LimitChange[R]) -> R:
        self.changes += 1
        await asyncio.sleep(0)
        self.states[name], result = change(self.states.get(name, ""), asyncio.get_running_loop().time())
        return result

    def level(self, kind: str) -> float:
        return float(json.loads(self.states["sim"])[kind][0])


@pytest.mark.behaviour("33-limits-per-minute")
async def test_waiting_requests_reserve_their_starts_with_one_change_of_the_state() -> None:
    store = MemoryStore()
    limit = VendorLimits("sim", {"requests": 6000}, store)
    starts = [one.start for one in await asyncio.gather(*(limit.reserve("m", Usage(1, 1)) for _ in range(300)))]
    assert store.changes == 1
    assert starts == sorted(starts)
    assert starts[-1] - starts[0] == pytest.approx((300 - 1 - BURST * 6000) / (SHARE * 100), abs=0.02)


@pytest.mark.behaviour("33-limits-per-minute")
async def test_a_queue_takes_its_places_when_they_are_near_and_what_is_given_back_at_once() -> None:
    store = MemoryStore()
    limit = SharedLimit("sim", ["tokens"], store, partial(take_from_buckets, {"tokens": 60_000}))
    waited = read_counts("rate_wait_seconds").get("sim", 0.0)
    await limit.reserve(amounts(1, 30_000))
    asked = asyncio.get_running_loop().time()
    second = asyncio.ensure_future(limit.reserve(amounts(1, 10)))
    await settle()
    assert not second.done()
    limit.give_back({"tokens": 29_000})
    assert await second - asked < 1
    third = asyncio.ensure_future(limit.reserve(amounts(1, 40_000)))
    fourth = asyncio.ensure_future(limit.reserve(amounts(1, 10)))
    await third
    for _ in range(60):
        if fourth.done():
            break
        skip(1.0)
        await settle()
    assert await fourth - await third == pytest.approx(40_000 / 950, rel=0.05)
    assert read_counts("rate_wait_seconds")["sim"] - waited == pytest.approx(await fourth - asked, rel=0.1)


@pytest.mark.behaviour("33-limits-per-minute")
async def test_a_request_that_is_cancelled_gives_its_place_back() -> None:
    store = MemoryStore()
    gate = ConcurrencyLimit(8, vendor=VendorLimits("sim", {"requests": 1000, "tokens": 1000}, store))
    async with Slot(gate, usage=Usage(0, 0)) as slot:
        await slot.wait_for_turn()
    await settle()
    sent = store.level("requests")
    assert sent == pytest.approx(BURST * 1000 - 1, abs=0.1)  # it was sent
    entering = asyncio.ensure_future(Slot(gate, usage=Usage(20, 30)).__aenter__())
    await settle()
    waiting = asyncio.ensure_future(Slot(gate, usage=Usage(1, 1)).__aenter__())
    await settle()
    slot = await entering
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await slot.__aexit__()
    await settle()
    assert store.level("tokens") == pytest.approx(BURST * 1000, abs=1)
    assert store.level("requests") >= sent


@pytest.mark.behaviour("33-limits-per-minute")
async def test_a_reservation_is_corrected_when_the_usage_is_known(ledger: Ledger) -> None:
    store = MemoryStore()
    gate = ConcurrencyLimit(4, vendor=VendorLimits("sim", {"tokens": 1000, "output": 900}, store))
    member = answering("one", Answer("Tabs.", usage=Usage(12, 3)))
    assert (await call(ledger, step(), member, limit_for=lambda name: gate)).ok
    await settle()
    assert store.level("tokens") == pytest.approx(BURST * 1000 - 15, abs=0.5)
    assert store.level("output") == pytest.approx(BURST * 900 - 3, abs=0.5)


@pytest.mark.behaviour("33-limits-per-minute")
async def test_a_refused_request_keeps_its_input_and_its_request(ledger: Ledger) -> None:
    store = MemoryStore()
    gate = ConcurrencyLimit(4, vendor=VendorLimits("sim", {"requests": 600, "output": 10_000}, store))
    member = answering("one", fault("rate", retry_after=0.0, has_status=True), Answer("Tabs.", usage=Usage(12, 3)))
    assert (await call(ledger, step(), member, limit_for=lambda name: gate)).ok
    await settle()
    assert store.level("requests") == pytest.approx(BURST * 600 - 2, abs=0.5)
    assert store.level("output") == pytest.approx(BURST * 10_000 - 3, abs=5)


@pytest.mark.behaviour("33-limits-per-minute")
async def test_the_wait_for_a_start_does_not_count_against_the_timeout_of_a_seat(ledger: Ledger) -> None:
    store = MemoryStore()
    limit = VendorLimits("sim", {"tokens": 6000}, store)
    gate = ConcurrencyLimit(4, vendor=limit)
    await limit.reserve("m", Usage(6000, 0))
    member = answering("one", "Tabs.")
    asked = asyncio.ensure_future(call(ledger, step(), member, timeout=lambda name: 5.0, limit_for=lambda name: gate))
    for _ in range(200):
        if asked.done():
            break
        skip(0.5)
        await settle()
        await asyncio.sleep(0.005)
    outcome = await asked
    assert outcome.ok
    assert outcome.seconds > 30


def test_the_amounts_of_a_request_are_those_of_its_usage() -> None:
    assert list_amounts(Usage(10, 5)) == {"requests": 1, "input": 10, "output": 5, "tokens": 15}
