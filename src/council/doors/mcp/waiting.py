"""Wait for a run: follow it, report progress, start the worker if needed, and put its questions to a person."""

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
TICK = 1.0  # seconds between progress reports
TRIES = 3  # attempts at an answer that must match a schema
LOOK = 0.3  # seconds between polls for open questions


@dataclass(frozen=True, slots=True)
class Guest:
    """Client of one call: its roots, its progress callback, and its person if it can show forms."""

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
    _left: set[str] = field(default_factory=set)  # questions the person dismissed

    async def up_to(self, seconds: float) -> None:
        """Wait until the run ends or the time is up; an open form extends the wait."""
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
            state = await self.keeper.standing(self.run)
            if state["status"] not in UNFINISHED or not state["detached"]:
                return

    async def _see_to_it(self) -> None:
        """Start the worker if a detached run has no owner."""
        state = await self.keeper.standing(self.run)
        if state["detached"] and state["status"] in UNFINISHED and not state["owned"]:
            await summoning.call(self.run, self.keeper.env)

    async def _keep_telling(self) -> None:
        while True:
            await self.guest.tell(line(self.minutes, "running"))
            await anyio.sleep(TICK)

    # Questions to a person

    async def _keep_asking(self, person: Person) -> None:
        while True:
            for row in await self.keeper.open_asks(self.run):
                if row["key"] not in self._left:
                    await self._put(person, row)
            await anyio.sleep(LOOK)

    async def _put(self, person: Person, row: Json) -> None:
        """Ask one question until it is answered here or elsewhere, or dismissed."""
        deadline, self.slice.deadline = self.slice.deadline, math.inf  # a person needs more time than one wait
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
            self.slice.deadline = deadline

    async def _asked(self, person: Person, row: Json, trouble: str) -> Mapping[str, Any] | None:
        """Return the filled form, or None if it was dismissed or answered elsewhere."""
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
        """Submit the answer and return why it was rejected; "" if accepted or no longer open."""
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
