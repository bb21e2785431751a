"""Wait for a run: follow it, report progress, start the worker if needed, and put its questions to a person."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from council.convene import Convener, summoning
from council.doors.mcp.asking import InputRequired
from council.doors.mcp.people import Person, format_answer, make_question
from council.doors.mcp.standing import status_line
from council.errors import UsageError
from council.minutes import Minutes
from council.types import Json

UNFINISHED = ("queued", "running")
PROGRESS_INTERVAL_S = 1.0  # seconds between progress reports
MAX_FORM_ATTEMPTS = 3  # attempts at an answer that must match a schema
ASK_POLL_S = 0.3  # seconds between polls for open questions


@dataclass(frozen=True, slots=True)
class ClientContext:
    """Client of one call: its roots, its progress callback, and its person if it can show forms."""

    roots: tuple[Path, ...]
    report_progress: Callable[[str], Awaitable[None]]
    person: Person | None = None


@dataclass(slots=True)
class RunWait:
    convener: Convener
    run: str
    minutes: Minutes
    guest: ClientContext
    input_required: InputRequired | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _skipped_asks: set[str] = field(default_factory=set)  # questions the person dismissed

    async def wait(self, seconds: float) -> None:
        """Wait until the run ends or the time is up; an open form extends the wait."""
        self.scope.deadline = anyio.current_time() + seconds
        with self.scope:
            async with anyio.create_task_group() as group:
                group.start_soon(self._report_progress)
                if self.guest.person:
                    group.start_soon(self._ask_open_questions, self.guest.person)
                await self._follow_to_end()
                group.cancel_scope.cancel()
        if self.input_required:
            raise self.input_required

    async def _follow_to_end(self) -> None:
        while True:
            await self._ensure_worker()
            async for entry in self.convener.follow(self.run, self.minutes.seq):
                self.minutes.on_event(entry)
            state = await self.convener.run_state(self.run)
            if state["status"] not in UNFINISHED or not state["detached"]:
                return

    async def _ensure_worker(self) -> None:
        """Start the worker if a detached run has no owner."""
        state = await self.convener.run_state(self.run)
        if state["detached"] and state["status"] in UNFINISHED and not state["owned"]:
            await summoning.request_worker(self.run, self.convener.env)

    async def _report_progress(self) -> None:
        while True:
            await self.guest.report_progress(status_line(self.minutes, "running"))
            await anyio.sleep(PROGRESS_INTERVAL_S)

    # Questions to a person

    async def _ask_open_questions(self, person: Person) -> None:
        while True:
            for row in await self.convener.open_asks(self.run):
                if row["key"] not in self._skipped_asks:
                    await self._ask_person(person, row)
            await anyio.sleep(ASK_POLL_S)

    async def _ask_person(self, person: Person, row: Json) -> None:
        """Ask one question until it is answered here or elsewhere, or dismissed."""
        deadline, self.scope.deadline = self.scope.deadline, math.inf  # a person needs more time than one wait
        trouble = ""
        try:
            for _ in range(MAX_FORM_ATTEMPTS):
                given = await self._ask_once(person, row, trouble)
                trouble = "" if given is None else await self._submit_answer(row, format_answer(row, given))
                if not trouble:
                    break
            if trouble or given is None:
                self._skipped_asks.add(row["key"])
        finally:
            self.scope.deadline = deadline

    async def _ask_once(self, person: Person, row: Json, problem: str) -> Mapping[str, Any] | None:
        """Return the filled form, or None if it was dismissed or answered elsewhere."""
        given = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._cancel_when_closed, row["key"], group.cancel_scope)
            try:
                given = await person.ask(make_question(row, problem))
            except InputRequired as needed:
                self.input_required = needed
                self.scope.cancel()
            group.cancel_scope.cancel()
        return given

    async def _submit_answer(self, row: Json, answer: str) -> str:
        """Submit the answer and return why it was rejected; "" if accepted or no longer open."""
        try:
            await self.convener.answer(self.run, row["key"], answer)
        except UsageError as error:
            return str(error) if await self._is_open(row["key"]) else ""
        return ""

    async def _cancel_when_closed(self, key: str, scope: anyio.CancelScope) -> None:
        while True:
            if not await self._is_open(key):
                return scope.cancel()
            await anyio.sleep(ASK_POLL_S)

    async def _is_open(self, key: str) -> bool:
        return key in [row["key"] for row in await self.convener.open_asks(self.run)]
