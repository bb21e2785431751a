"""Stream parser: lines, timeouts and the terminator. Each wire subclasses it to parse its vendor's events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from council.errors import Fault
from council.members.base import Hear
from council.members.wires.faults import complaint_in
from council.members.wires.http import framed, lines_of, no_model
from council.types import Answer, Json, Usage

if TYPE_CHECKING:
    from aiohttp import ClientResponse

LINGER = 0.25  # seconds to wait for the end of a finished body, so that its connection can be reused


class Hearing:
    """Base class of the stream parsers. Uses plain dictionaries, so an event costs microseconds."""

    finishes: ClassVar[Mapping[str, str]] = {}  # vendor's finish reason → length | refused | broken; else stop
    linger: ClassVar[float] = LINGER
    goes_on: ClassVar[bool] = False  # whether text may follow the finish reason

    def __init__(self, hear: Hear) -> None:
        self.hear = hear
        self.pieces: list[str] = []
        self.refusal: list[str] = []
        self.counts: dict[str, int] = {}  # token counts, by the vendor's names
        self.finish = ""
        self.model = ""
        self.id = ""
        self.error: Any = None
        self.begun = False  # an event was received
        self.done = False  # the terminator was received
        self.moved = False  # content was received since the timeout was last reset
        self.thought = False  # this event shows activity but has no answer text

    # Implemented by each wire

    def event(self, event: Json) -> str:
        """Return the text of one stream event and store its other fields."""
        raise NotImplementedError

    def whole(self, body: Json) -> str:
        """Return the text of an answer that was sent as one body."""
        raise NotImplementedError

    def usage(self) -> Usage:
        raise NotImplementedError

    def closed(self, framed: bool) -> bool:
        """Return whether an ended stream is complete. `framed`: HTTP can distinguish the end from a lost connection."""
        return self.done or (framed and bool(self.finish))

    def let(self, piece: str) -> str:
        """Return the part of the text that is certainly answer, not thinking."""
        return piece

    def rest(self) -> str:
        """Return the buffered text at the end of the stream."""
        return ""

    # Reading

    def text(self) -> str:
        return "".join(self.pieces)

    async def read(self, response: ClientResponse, clock: asyncio.Timeout, idle: float) -> None:
        now = asyncio.get_running_loop().time
        if response.content_type == "application/json":
            clock.reschedule(now() + idle)
            return self.take_body(response, await response.read())
        lines = lines_of(response)
        async for batch in lines:
            self.take_lines(batch)
            if ended := self.done or bool(self.error):
                clock.reschedule(None)
                if await self._over(lines, response):
                    return None
            if self.moved or ended:  # comments and empty events do not reset the timeout
                self.moved = False
                clock.reschedule(now() + idle)
        if not self.begun and (problem := no_model(response)):
            raise Fault("endpoint", problem)
        self.done = self.closed(framed(response))
        return None

    async def _over(self, lines: AsyncIterator[list[bytes]], response: ClientResponse) -> bool:
        """Read the rest of the body for a moment, for late text or token counts. Return whether the answer is finished."""
        import aiohttp

        self.moved = False
        try:
            async with asyncio.timeout(self.linger):
                async for batch in lines:
                    if self.goes_on:
                        self.take_lines(batch)
                    if self.moved:
                        return False
        except (TimeoutError, OSError, ValueError, aiohttp.ClientError):
            response.close()
        return True

    def take_body(self, response: ClientResponse, body: bytes) -> None:
        if problem := no_model(response, body):
            raise Fault("endpoint", problem)
        self.take(body, self.whole)
        self.done = True

    def take_lines(self, lines: list[bytes]) -> None:
        for line in lines:
            if line.startswith(b"data:"):
                self.begun = True
                data = line[5:].strip()
                if data == b"[DONE]":
                    self.done = True
                    return
                if data:
                    self.take(data, self.event)

    def take(self, data: bytes, read: Callable[[Json], str]) -> None:
        try:
            piece = read(json.loads(data.decode()))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise ValueError(f"unreadable event {data[:80]!r}") from None
        if piece or self.thought:
            self.moved, self.thought = True, False
            self.say(self.let(piece))

    def say(self, piece: str) -> None:
        """Store answer text and report it. An empty piece reports activity only."""
        if piece:
            self.pieces.append(piece)
        self.hear(piece)

    def count(self, told: Json) -> None:
        """Keep the largest value of each count, because streams report cumulative usage."""
        for name, value in told.items():
            if isinstance(value, int) and value > self.counts.get(name, -1):
                self.counts[name] = value

    # Building the answer

    def answer(self, detail: Callable[[str], str]) -> Answer:
        if rest := self.rest():
            self.say(rest)
        text, finish = self.text(), self.finishes.get(self.finish.lower(), "stop")
        if self.error or finish == "broken":
            message = complaint_in(self.error, self.finish or "no reason given").message
            raise Fault("cut", detail(f"the stream ended with an error: {message}"), said=text)
        if not self.done:
            raise Fault("cut", "the stream ended without its terminator", said=text)
        usage = self._counted(self.usage(), text)
        if self.refusal:
            text, finish = "".join(self.refusal), "refused"
        return Answer(text, finish, usage, self.model, self.id)

    def _counted(self, usage: Usage, text: str) -> Usage:
        """Mark usage as unknown if it reports no input, or no output for a non-empty answer."""
        return usage if usage.input and (usage.output or not text) else replace(usage, known=False)
