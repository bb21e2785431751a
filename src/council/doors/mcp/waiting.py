"""Waiting for a run: hear it out, tell how far it has come, see to it that somebody works on it, and put its questions to a person."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from council.convene import Convener, summoning
from council.doors.mcp.asking import Needed
from council.doors.mcp.people import Person, question_from, words_from
from council.doors.mcp.standing import line
from council.errors import UsageError
from council.minutes import Minutes
from council.types import Json

UNFINISHED = ("queued", "running")
TICK = 1.0  # seconds between two words about how far a run has come
TRIES = 3  # at an answer that has to be of a certain form
LOOK = 0.3  # seconds between two looks whether a person is asked


@dataclass(frozen=True, slots=True)
class Guest:
    """Who is at the door: where they may look, how they are told how it goes, and the person who may be asked there."""

    roots: tuple[Path, ...]
    tell: Callable[[str], Awaitable[None]]
    person: Person | None = None


@dataclass(slots=True)
class Wait:
    keeper: Convener
    run: str
    minutes: Minutes
    guest: Guest
    needed: Needed | None = None
    slice: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _left: set[str] = field(default_factory=set)  # questions that the person here does not answer

    async def up_to(self, seconds: float) -> None:
        """Until the run is over, but no longer than that; only a form that a person fills in keeps it open."""
        self.slice.deadline = anyio.current_time() + seconds
        with self.slice:
            async with anyio.create_task_group() as group:
                group.start_soon(self._keep_telling)
                if self.guest.person:
                    group.start_soon(self._keep_asking, self.guest.person)
                await self._hear_out()
                group.cancel_scope.cancel()
        if self.needed:
            raise self.needed

    async def _hear_out(self) -> None:
        while True:
            await self._see_to_it()
            async for entry in self.keeper.follow(self.run, self.minutes.seq):
                self.minutes.hear(entry)
            now = await self.keeper.standing(self.run)
            if now["status"] not in UNFINISHED or not now["detached"]:
                return

    async def _see_to_it(self) -> None:
        """A run that is the worker's, and that nobody has taken up, is taken up."""
        now = await self.keeper.standing(self.run)
        if now["detached"] and now["status"] in UNFINISHED and not now["owned"]:
            await summoning.call(self.run, self.keeper.env)

    async def _keep_telling(self) -> None:
        while True:
            await self.guest.tell(line(self.minutes, "running"))
            await anyio.sleep(TICK)

    # A person's turn

    async def _keep_asking(self, person: Person) -> None:
        while True:
            for row in await self.keeper.open_asks(self.run):
                if row["key"] not in self._left:
                    await self._put(person, row)
            await anyio.sleep(LOOK)

    async def _put(self, person: Person, row: Json) -> None:
        """One question, until it is answered here or elsewhere, or the person leaves it."""
        kept, self.slice.deadline = self.slice.deadline, math.inf  # nobody writes an opinion in a slice
        trouble = ""
        try:
            for _ in range(TRIES):
                given = await self._asked(person, row, trouble)
                trouble = "" if given is None else await self._taken(row, words_from(row, given))
                if not trouble:
                    break
            if trouble or given is None:
                self._left.add(row["key"])
        finally:
            self.slice.deadline = kept

    async def _asked(self, person: Person, row: Json, trouble: str) -> Mapping[str, Any] | None:
        """What the person filled in; nothing if they leave it, or if it was answered elsewhere meanwhile."""
        given = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._until_gone, row["key"], group.cancel_scope)
            try:
                given = await person.ask(question_from(row, trouble))
            except Needed as needed:
                self.needed = needed
                self.slice.cancel()
            group.cancel_scope.cancel()
        return given

    async def _taken(self, row: Json, words: str) -> str:
        """Why the answer was not taken; nothing if it was, or if nobody asks any more."""
        try:
            await self.keeper.answer(self.run, row["key"], words)
        except UsageError as error:
            return str(error) if await self._is_open(row["key"]) else ""
        return ""

    async def _until_gone(self, key: str, scope: anyio.CancelScope) -> None:
        while True:
            if not await self._is_open(key):
                return scope.cancel()
            await anyio.sleep(LOOK)

    async def _is_open(self, key: str) -> bool:
        return key in [row["key"] for row in await self.keeper.open_asks(self.run)]
