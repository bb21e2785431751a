"""Limits that answers state: what is left is spread over the time until the reset."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import pytest

from council.calling.learned_limits import LITTLE, LearnedLimit, take_from_learned
from council.calling.shared_limit import MAX_AHEAD_S, WINDOW_S, Amounts
from council.calling.vendor_limits import VendorLimits
from council.store.interface import LimitChange, R
from council.types import StatedLimit, Usage
from tests.fake_clock import skip

pytestmark = pytest.mark.anyio
ONE: Amounts = {"requests": 1, "input": 10, "output": 20, "tokens": 30}


def known(left: float, reset: float, kind: str = "requests", most: float = 100) -> dict[str, LearnedLimit]:
    return {kind: LearnedLimit(most, left, reset, 0.0, 0.0)}


class MemoryStore:
    """State of limits in memory, by the clock of the event loop."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}

    async def change_limit(self, name: str, change: LimitChange[R]) -> R:
        self.states[name], result = change(self.states.get(name, ""), asyncio.get_running_loop().time())
        return result


@pytest.mark.behaviour("33-learned-limits")
def test_requests_start_at_once_while_enough_is_left() -> None:
    _, grant = take_from_learned(known(60, 30.0), [ONE] * 35, "", 50.0)
    assert grant.starts == [0.0] * 35


@pytest.mark.behaviour("33-learned-limits")
def test_what_is_left_is_spread_until_the_reset() -> None:
    _, grant = take_from_learned(known(20, 10.0), [ONE] * 30, "", 50.0)
    assert grant.starts[0] == 0.0
    assert [later - earlier for earlier, later in pairwise(grant.starts)] == pytest.approx(
        [0.5] * (len(grant.starts) - 1)
    )
    assert max(grant.starts) <= MAX_AHEAD_S
    assert grant.pause > 0


@pytest.mark.behaviour("33-learned-limits")
def test_a_request_for_which_too_little_is_left_waits_for_the_reset() -> None:
    state, grant = take_from_learned(known(25, 1.5, "tokens"), [ONE] * 4, "", 50.0)
    assert grant.starts == [1.5] * 3  # after the reset all is there again
    assert grant.pause > 0
    most, left, reset, _, _ = json.loads(state)["tokens"]
    assert (most, left, reset) == (100, 10, 51.5 + WINDOW_S)


@pytest.mark.behaviour("33-learned-limits")
def test_the_newer_statement_counts() -> None:
    stored = json.dumps({"requests": [100, 50.0, 60.0, 50.0, 49.0]})
    newer, _ = take_from_learned({"requests": LearnedLimit(100, 70, 20.0, 0.0, -0.5)}, [], stored, 50.0)
    assert json.loads(newer)["requests"] == [100, 70, 70.0, 50.0, 49.5]
    older, _ = take_from_learned({"requests": LearnedLimit(100, 70, 20.0, 0.0, -2.0)}, [], stored, 50.0)
    assert json.loads(older) == json.loads(stored)


@pytest.mark.behaviour("33-learned-limits")
def test_in_one_window_requests_of_other_processes_stay_counted() -> None:
    stored = json.dumps({"requests": [100, 12.0, 70.0, 51.0, 49.0]})
    state, _ = take_from_learned({"requests": LearnedLimit(100, 20, 20.1, 0.0, 0.0)}, [], stored, 50.0)
    assert json.loads(state)["requests"] == [100, 12.0, 70.1, 51.0, 50.0]


@pytest.mark.behaviour("33-learned-limits")
@pytest.mark.parametrize("state", ["{", '{"requests": [1, 2]}', '{"requests": [100, 0, 9000, 9000, 8000]}'])
def test_a_state_that_cannot_be_read_or_is_of_another_clock_counts_as_none(state: str) -> None:
    assert take_from_learned({}, [ONE], state, 50.0) == ("{}", ([0.0], 0.0))


@pytest.mark.behaviour("33-learned-limits")
async def test_nothing_is_stored_before_a_limit_is_near_and_then_all_processes_share_it() -> None:
    store, now = MemoryStore(), asyncio.get_running_loop().time
    one, two = VendorLimits("sim", {}, store), VendorLimits("sim", {}, store)
    assert not one.has_limits
    for limits in (one, two):
        limits.learn("m", now(), [StatedLimit("requests", 100, 80, 20.0)])
        assert limits.has_limits
    for _ in range(55):
        assert (await one.reserve("m", Usage(10, 10))).start <= now()
    assert store.states == {}
    two.learn("m", now(), [StatedLimit("requests", 100, 20, 20.0)])
    starts = [(await limits.reserve("m", Usage())).start for limits in (two, one, two)]
    assert list(store.states) == ["sim m"]
    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert min(gaps) > 0.7
    assert (await one.reserve("other", Usage())).start <= now()


@pytest.mark.behaviour("33-learned-limits")
async def test_a_statement_is_corrected_by_the_requests_that_started_since() -> None:
    store, now = MemoryStore(), asyncio.get_running_loop().time
    limits = VendorLimits("sim", {}, store)
    limits.learn("m", now(), [StatedLimit("requests", 100, 100, 60.0)])
    sent = (await limits.reserve("m", Usage())).start
    skip(0.1)
    for _ in range(60):
        await limits.reserve("m", Usage())
    limits.learn("m", sent, [StatedLimit("requests", 100, 99, 60.0)])  # without the 60 others
    for _ in range(int(39 - LITTLE * 100)):
        await limits.reserve("m", Usage())
    assert store.states == {}
    await limits.reserve("m", Usage())
    assert store.states != {}


@pytest.mark.behaviour("33-learned-limits")
async def test_limits_of_the_settings_win() -> None:
    store, now = MemoryStore(), asyncio.get_running_loop().time
    limits = VendorLimits("sim", {"requests": 6000, "output": 60_000}, store)
    limits.learn("m", now(), [StatedLimit("requests", 100, 0, 60.0), StatedLimit("tokens", 100, 0, 60.0)])
    assert (await limits.reserve("m", Usage())).start <= now()
    assert list(store.states) == ["sim"]
