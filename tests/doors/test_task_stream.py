"""Streams of the results of a task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from council.doors.limits import is_filled
from council.doors.task_stream import TaskStream, iterate_results

pytestmark = pytest.mark.anyio


async def test_results_come_in_order_and_an_error_after_them() -> None:
    async def work(add: Callable[[int], None]) -> None:
        add(1)
        await asyncio.sleep(0)
        add(2)
        raise ValueError("the end")

    found = []
    with pytest.raises(ValueError, match="the end"):
        async for one in iterate_results(work):
            found.append(one)
    assert found == [1, 2]


async def test_closing_a_stream_cancels_its_task_and_waits_for_it() -> None:
    ended = []

    async def work(add: Callable[[int], None]) -> None:
        add(1)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    async with TaskStream(iterate_results(work)) as stream:
        assert await anext(stream) == 1
        assert not ended
    assert ended


async def test_a_task_that_can_be_stopped_is_not_cancelled() -> None:
    stop, ended = asyncio.Event(), []

    async def work(add: Callable[[int], None]) -> None:
        add(1)
        await stop.wait()
        ended.append(True)

    async with aclosing(iterate_results(work, stop.set)) as results:
        assert await anext(results) == 1
    assert ended


async def test_a_stream_that_is_not_read_starts_nothing() -> None:
    async def work(add: Callable[[int], None]) -> None:
        raise AssertionError

    await TaskStream(iterate_results(work)).aclose()


@pytest.mark.parametrize(
    ("value", "has_value"),
    [(0, True), (0.0, True), (True, True), ("a", True), (False, False), (None, False), ("", False), ([], False)],
)
async def test_zero_is_a_value_of_a_form_and_false_is_none(value: object, has_value: bool) -> None:
    assert is_filled(value) is has_value
