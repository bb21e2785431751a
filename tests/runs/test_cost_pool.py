"""The cost limit of a batch: what a row gets, who waits, and when it is used up."""

from __future__ import annotations

import asyncio

import pytest

from council.runs.batch_execution import CostPool, round_up

pytestmark = pytest.mark.anyio


async def test_a_row_gets_what_it_needs_beside_what_it_has_cost() -> None:
    pool = CostPool(100, 20)
    assert await pool.take(30, 5) == 35
    assert pool.committed == 50
    await pool.give_back(35, 15)
    assert pool.committed == 30


async def test_a_row_that_does_not_fit_waits_for_the_rest_of_a_running_one() -> None:
    pool = CostPool(100, 0)
    assert await pool.take(80, 0) == 80
    waiting = asyncio.ensure_future(pool.take(60, 0))
    await asyncio.sleep(0)
    assert not waiting.done()
    await pool.give_back(80, 40)
    assert await waiting == 60


async def test_a_row_alone_gets_the_rest_even_if_it_needs_more() -> None:
    pool = CostPool(100, 70)
    assert await pool.take(60, 10) == 40
    waiting = asyncio.ensure_future(pool.take(1, 0))
    await pool.give_back(40, 40)
    assert await waiting is None
    assert pool.is_used_up


async def test_a_row_that_needs_exactly_the_rest_fits() -> None:
    pool = CostPool(100, 40)
    await pool.take(30, 0)
    assert await pool.take(30, 0) == 30


async def test_no_row_starts_after_the_end() -> None:
    pool = CostPool(100, 0)
    await pool.take(100, 0)
    waiting = asyncio.ensure_future(pool.take(10, 0))
    await asyncio.sleep(0)
    await pool.close()
    assert (await waiting, await pool.take(1, 0)) == (None, None)


@pytest.mark.parametrize(
    ("nanos", "rounded"),
    [(0, 0), (7, 7), (99, 99), (100, 100), (101, 110), (1_234_567, 1_300_000), (990_001, 1_000_000)],
)
def test_a_limit_is_rounded_up_to_two_digits(nanos: int, rounded: int) -> None:
    assert round_up(nanos) == rounded
