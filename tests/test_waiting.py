"""Who is waited for when the others are done."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from council.types import Absence, Seat, Statement, Watch
from council.waiting import Grace, together
from tests.clock import CLOCKED, settle, skip

pytestmark = [pytest.mark.anyio, pytest.mark.behaviour("40-grace")]


@pytest.fixture
def anyio_backend() -> Any:
    return CLOCKED


@dataclass
class Speaker:
    """Answers when the test says so, and notes when it is left behind."""

    name: str
    watch: Watch = field(default_factory=Watch)
    answer: asyncio.Event = field(default_factory=asyncio.Event)
    fails: bool = False
    left: str = ""

    async def speak(self) -> Statement[None] | Absence:
        self.watch.leave = self.leave
        await self.answer.wait()
        seat = Seat(self.name)
        return Absence(seat, "timed_out", self.left) if self.left or self.fails else Statement(seat, "", "", None)

    def leave(self, why: str) -> None:
        self.left = why
        self.answer.set()


async def asked(*speakers: Speaker, enough: int = 1) -> asyncio.Future[list[Any]]:
    grace = Grace(5.0, [one.watch for one in speakers], enough)
    waiting = asyncio.ensure_future(together([one.speak() for one in speakers], grace))
    await settle()
    return waiting


async def test_the_silent_are_left_behind_a_grace_after_the_last_of_the_others() -> None:
    one, two, silent = Speaker("one"), Speaker("two"), Speaker("silent")
    waiting = await asked(one, two, silent)
    one.answer.set()
    two.watch.spoke = True
    await settle()
    skip(60.0)  # two is not done yet
    await settle()
    assert not silent.left and not two.left
    two.answer.set()
    await settle()
    skip(4.9)
    await settle()
    assert not silent.left
    skip(0.2)
    said = await waiting
    assert silent.left == "left behind after 5 s grace"
    assert [isinstance(one, Statement) for one in said] == [True, True, False]


async def test_two_who_are_silent_do_not_wait_for_each_other() -> None:
    one, two, three = Speaker("one"), Speaker("two"), Speaker("three")
    waiting = await asked(one, two, three)
    one.answer.set()
    await settle()
    skip(5.1)
    await waiting
    assert two.left and three.left


async def test_who_begins_to_speak_within_the_grace_is_heard_to_the_end() -> None:
    one, late = Speaker("one"), Speaker("late")
    waiting = await asked(one, late)
    one.answer.set()
    await settle()
    late.watch.spoke = True
    skip(600.0)
    await settle()
    assert not late.left
    late.answer.set()
    assert all(isinstance(said, Statement) for said in await waiting)


@pytest.mark.parametrize(("enough", "fails"), [(1, True), (2, False)])
async def test_nobody_is_left_behind_before_enough_have_answered(enough: int, fails: bool) -> None:
    one, two = Speaker("one", fails=fails), Speaker("two")
    waiting = await asked(one, two, enough=enough)
    one.answer.set()
    await settle()
    skip(600.0)
    await settle()
    assert not two.left
    two.answer.set()
    await waiting


async def test_the_first_error_stops_the_rest() -> None:
    async def breaks() -> None:
        raise ValueError("broken")

    silent = Speaker("silent")
    with pytest.raises(ValueError, match="broken"):
        await together([breaks(), silent.speak()], Grace(5.0, [Watch(), silent.watch], 1))
    assert not silent.left
