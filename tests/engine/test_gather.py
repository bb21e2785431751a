"""Grace period for seats without output."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from council.engine.gather import Grace, gather_or_cancel
from council.types import Absence, Seat, SeatWatch, Statement
from tests.fake_clock import settle, skip

pytestmark = [pytest.mark.anyio, pytest.mark.behaviour("40-grace")]


@dataclass
class Speaker:
    """Answers when the test allows it, and records why it was dropped."""

    name: str
    watch: SeatWatch = field(default_factory=SeatWatch)
    answer: asyncio.Event = field(default_factory=asyncio.Event)
    fails: bool = False
    dropped: str = ""

    async def speak(self) -> Statement[None] | Absence:
        self.watch.drop = self.drop
        await self.answer.wait()
        seat = Seat(self.name)
        return Absence(seat, "timed_out", self.dropped) if self.dropped or self.fails else Statement(seat, "", "", None)

    def drop(self, why: str) -> None:
        self.dropped = why
        self.answer.set()


async def ask_all(*speakers: Speaker, enough: int = 1) -> asyncio.Future[list[Any]]:
    grace = Grace(5.0, [one.watch for one in speakers], enough)
    waiting = asyncio.ensure_future(gather_or_cancel([one.speak() for one in speakers], grace))
    await settle()
    return waiting


async def test_a_seat_without_output_is_dropped_after_the_grace_period() -> None:
    one, two, silent = Speaker("one"), Speaker("two"), Speaker("silent")
    waiting = await ask_all(one, two, silent)
    one.answer.set()
    two.watch.has_output = True
    await settle()
    skip(60.0)  # two is not done yet
    await settle()
    assert not silent.dropped and not two.dropped
    two.answer.set()
    await settle()
    skip(4.9)
    await settle()
    assert not silent.dropped
    skip(0.2)
    said = await waiting
    assert str(silent.dropped) == "left behind after 5 s grace"
    assert [isinstance(one, Statement) for one in said] == [True, True, False]


async def test_two_silent_seats_are_dropped_together() -> None:
    one, two, three = Speaker("one"), Speaker("two"), Speaker("three")
    waiting = await ask_all(one, two, three)
    one.answer.set()
    await settle()
    skip(5.1)
    await waiting
    assert two.dropped and three.dropped


async def test_a_seat_with_output_within_the_grace_period_is_not_dropped() -> None:
    one, late = Speaker("one"), Speaker("late")
    waiting = await ask_all(one, late)
    one.answer.set()
    await settle()
    late.watch.has_output = True
    skip(600.0)
    await settle()
    assert not late.dropped
    late.answer.set()
    assert all(isinstance(said, Statement) for said in await waiting)


@pytest.mark.parametrize(("enough", "fails"), [(1, True), (2, False)])
async def test_no_seat_is_dropped_before_enough_have_answered(enough: int, fails: bool) -> None:
    one, two = Speaker("one", fails=fails), Speaker("two")
    waiting = await ask_all(one, two, enough=enough)
    one.answer.set()
    await settle()
    skip(600.0)
    await settle()
    assert not two.dropped
    two.answer.set()
    await waiting


async def test_the_first_error_cancels_the_rest() -> None:
    async def breaks() -> None:
        raise ValueError("broken")

    silent = Speaker("silent")
    with pytest.raises(ValueError, match="broken"):
        await gather_or_cancel([breaks(), silent.speak()], Grace(5.0, [SeatWatch(), silent.watch], 1))
    assert not silent.dropped


async def test_all_tasks_have_ended_when_the_first_error_is_raised() -> None:
    ended: list[str] = []

    async def clean_up() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await settle()
            ended.append("cleaned up")

    async def fail() -> None:
        await settle()
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await gather_or_cancel([clean_up(), fail()])
    assert ended == ["cleaned up"]


async def test_an_error_during_the_grace_period_is_raised_at_once() -> None:
    one, silent = Speaker("one"), Speaker("silent")

    async def fail() -> Statement[None] | Absence:
        await one.answer.wait()
        raise RuntimeError("broken")

    grace = Grace(5.0, [SeatWatch(), silent.watch], 1)
    waiting = asyncio.ensure_future(gather_or_cancel([fail(), silent.speak()], grace))
    await settle()
    one.answer.set()
    with pytest.raises(RuntimeError, match="broken"):
        await waiting
    assert not silent.dropped
