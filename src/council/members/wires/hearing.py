"""One answer as it comes in: lines, clocks, the terminator. A wire only says what its vendor's events mean."""

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

LINGER = 0.25  # seconds to wait for the end of a body that has said all, so that its connection can be used again


class Hearing:
    """What the wires share. Plain dictionaries all the way: a streamed event costs microseconds."""

    finishes: ClassVar[Mapping[str, str]] = {}  # the vendor's word for an end → length | refused | broken; else stop
    linger: ClassVar[float] = LINGER
    goes_on: ClassVar[bool] = False  # whether words may follow what looks like the end

    def __init__(self, hear: Hear) -> None:
        self.hear = hear
        self.pieces: list[str] = []
        self.refusal: list[str] = []
        self.counts: dict[str, int] = {}  # of tokens, by the vendor's names
        self.finish = ""
        self.model = ""
        self.id = ""
        self.error: Any = None
        self.begun = False  # an event came
        self.done = False  # the terminator came
        self.moved = False  # content came since the clock was last set
        self.thought = False  # this event holds a sign of life that is no word of the answer

    # What a wire says

    def event(self, event: Json) -> str:
        """The words in one event of a stream; whatever else it holds is noted."""
        raise NotImplementedError

    def whole(self, body: Json) -> str:
        """The words of an answer that came as one body."""
        raise NotImplementedError

    def usage(self) -> Usage:
        raise NotImplementedError

    def closed(self, framed: bool) -> bool:
        """Whether a stream that has just ended had said all; `framed`: HTTP itself can tell an end from a cut."""
        return self.done or (framed and bool(self.finish))

    def let(self, piece: str) -> str:
        """As much of the answer as is certain by now."""
        return piece

    def rest(self) -> str:
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
        async for some in lines:
            self.take_lines(some)
            if ended := self.done or bool(self.error):
                clock.reschedule(None)
                if await self._over(lines, response):
                    return None
            if self.moved or ended:  # only content moves the clock: comments and empty events do not
                self.moved = False
                clock.reschedule(now() + idle)
        if not self.begun and (strange := no_model(response)):
            raise Fault("endpoint", strange)
        self.done = self.closed(framed(response))
        return None

    async def _over(self, lines: AsyncIterator[list[bytes]], response: ClientResponse) -> bool:
        """Whether that was all. What still comes is waited for a moment, for it may go on, or hold the last count."""
        import aiohttp

        self.moved = False
        try:
            async with asyncio.timeout(self.linger):
                async for some in lines:
                    if self.goes_on:
                        self.take_lines(some)
                    if self.moved:
                        return False
        except (TimeoutError, OSError, ValueError, aiohttp.ClientError):
            response.close()
        return True

    def take_body(self, response: ClientResponse, body: bytes) -> None:
        if strange := no_model(response, body):
            raise Fault("endpoint", strange)
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
        """What is no part of the answer is heard as a sign of life only."""
        if piece:
            self.pieces.append(piece)
        self.hear(piece)

    def count(self, told: Json) -> None:
        """Streams report usage as it grows, so the largest report is the whole; a sum would count it many times."""
        for name, value in told.items():
            if isinstance(value, int) and value > self.counts.get(name, -1):
                self.counts[name] = value

    # The end

    def answer(self, detail: Callable[[str], str]) -> Answer:
        if rest := self.rest():
            self.say(rest)
        text, finish = self.text(), self.finishes.get(self.finish.lower(), "stop")
        if self.error or finish == "broken":
            message = complaint_in(self.error, self.finish or "no reason given").message
            raise Fault("cut", detail(f"an error broke off the stream: {message}"), said=text)
        if not self.done:
            raise Fault("cut", "the stream ended without its terminator", said=text)
        usage = self._counted(self.usage(), text)
        if self.refusal:
            text, finish = "".join(self.refusal), "refused"
        return Answer(text, finish, usage, self.model, self.id)

    def _counted(self, usage: Usage, text: str) -> Usage:
        """A question was read, and what was said was written: who counts nothing for it has not counted."""
        return usage if usage.input and (usage.output or not text) else replace(usage, known=False)
