"""Stream parser: lines, timeouts, the terminator and thinking blocks. Each wire subclasses it for its events."""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from council.errors import Fault
from council.members.base import OnDelta
from council.members.wires.error_responses import classify_stream_error, is_refusal, parse_error_json
from council.members.wires.http import (
    ByteLimits,
    describe_non_model_response,
    is_framed,
    iter_lines,
    network_errors,
    pause_reading,
    read_body,
)
from council.types import INVALID_COUNT, Answer, Json, Usage, parse_token_count

if TYPE_CHECKING:
    from aiohttp import ClientResponse


# Events that arrive one by one are read together: a read takes longer than an event.
MAX_PAUSE_S = 0.05  # seconds between two reads of a stream
PAUSE_SHARE = 0.05  # of the time since the first byte, so that a short stream ends without delay
DRAIN_TIMEOUT_S = 0.25  # seconds to wait for the end of a finished body, so that its connection can be reused
MAX_COUNTS = 100  # different names of token counts in one answer
MAX_JSON_PARTS = 100_000  # objects and lists in one event or body, as each takes 30 times its bytes in memory
SMALL_JSON_BYTES = 64 * 1024  # too small for so many parts to matter
MAX_NAME_CHARS = 200  # of a model name and an id
MAX_LEADING_SPACE = 4096  # whitespace before an answer in which a thinking tag is expected


class StreamParser:
    """Base class of the stream parsers. Uses plain dictionaries, so an event costs microseconds."""

    finish_reasons: ClassVar[Mapping[str, str]] = {}  # vendor's finish reason → length | refused | broken; else stop
    drain_timeout: ClassVar[float] = DRAIN_TIMEOUT_S
    has_trailing_events: ClassVar[bool] = False  # whether text may follow the finish reason

    def __init__(self, on_delta: OnDelta) -> None:
        self.on_delta = on_delta
        self.pieces: list[str] = []
        self.refusal: list[str] = []
        self.counts: dict[str, int] = {}  # token counts, by the vendor's names
        self.finish = ""
        self.model = ""
        self.id = ""
        self.error: Any = None
        self.has_events = False  # an event was received
        self.is_done = False  # the terminator was received
        self.has_new_content = False  # content was received since the timeout was last reset
        self.has_output = False  # text or thinking was received, so the vendor bills for it
        self.partial: list[bytes] = []  # lines of an event that is not complete
        self.has_thinking = False  # this event shows activity but has no answer text
        self.may_think = True  # the text may begin with thinking, so it goes through `filter_thinking`

    # Implemented by each wire

    def parse_event(self, event: Json) -> str:
        """Return the text of one stream event and store its other fields."""
        raise NotImplementedError

    def parse_body(self, body: Json) -> str:
        """Return the text of an answer that was sent as one body."""
        raise NotImplementedError

    def usage(self) -> Usage:
        raise NotImplementedError

    def is_complete(self, framed: bool) -> bool:
        """Return whether an ended stream is complete. `framed`: HTTP can distinguish the end from a lost connection."""
        return self.is_done or (framed and bool(self.finish))

    def filter_thinking(self, piece: str) -> str:
        """Return the part of the text that is certainly answer, not thinking."""
        return piece

    def flush(self) -> str:
        """Return the buffered text at the end of the stream."""
        return ""

    # Reading

    def text(self) -> str:
        return "".join(self.pieces)

    async def read(
        self, response: ClientResponse, clock: asyncio.Timeout, idle: float, limits: ByteLimits | None = None
    ) -> None:
        now, limits = asyncio.get_running_loop().time, limits or ByteLimits()
        if response.content_type == "application/json":
            body = await read_body(response, limits.body)
            if problem := describe_non_model_response(response, body):
                raise Fault("endpoint", problem)
            self.feed_json(body, self.parse_body)
            self.is_done = True
            return
        lines, started = iter_lines(response, limits), now()
        async for batch in lines:
            self.feed_lines(batch)
            if ended := self.is_done or bool(self.error):
                clock.reschedule(None)
                if await self._drain(lines, response):
                    return
            if self.has_new_content or ended:  # comments and empty events do not reset the timeout
                self.has_new_content = False
                clock.reschedule(now() + idle if self.pieces or ended else None)  # thinking may pause
            pause_reading(response, min(MAX_PAUSE_S, PAUSE_SHARE * (now() - started)))
        if not self.is_done:
            self.end_event()
        if not self.has_events and (problem := describe_non_model_response(response)):
            raise Fault("endpoint", problem)
        self.is_done = self.is_complete(is_framed(response))
        return

    async def _drain(self, lines: AsyncIterator[list[bytes]], response: ClientResponse) -> bool:
        """Read the rest of the body for a moment, for late text or counts. Return whether the answer is finished."""
        self.has_new_content = False
        errors: tuple[type[Exception], ...] = (*network_errors(), Fault)
        try:
            async with asyncio.timeout(self.drain_timeout):
                async for batch in lines:
                    if self.has_trailing_events:
                        self.feed_lines(batch)
                    if self.has_new_content:
                        return False
        except errors:
            response.close()
        return True

    def feed_lines(self, lines: list[bytes]) -> None:
        for line in lines:
            if line[:5] == b"data:":
                self.has_events = True
                data = line[5:].strip()
                if data == b"[DONE]":
                    self.end_event()
                    self.is_done = True
                    return
                if data:
                    self.feed_event(data)
            elif self.partial and not line:
                self.end_event()
            if self.is_done and not self.has_trailing_events:
                return

    def feed_event(self, data: bytes) -> None:
        """Parse a line of data. If it is only a part of an event, keep it until the event ends."""
        if self.partial:
            self.partial.append(data)
            return
        try:
            event = load_json(data)
        except (ValueError, RecursionError):
            self.partial.append(data)
            return
        self.feed_value(event, data, self.parse_event)

    def end_event(self) -> None:
        """Parse the lines of an event of several lines. It ends at a blank line, or with the stream."""
        if self.partial:
            whole = b"\n".join(self.partial)
            self.partial = []
            self.feed_json(whole, self.parse_event)

    def feed_json(self, data: bytes, parse: Callable[[Json], str]) -> None:
        try:
            value = load_json(data)
        except (ValueError, RecursionError):
            raise make_unreadable(data) from None
        self.feed_value(value, data, parse)

    def feed_value(self, value: Any, data: bytes, parse: Callable[[Json], str]) -> None:
        try:
            piece = parse(value)
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise make_unreadable(data) from None
        if piece or self.has_thinking:
            self.has_new_content, self.has_output, self.has_thinking = True, True, False
            self.emit_text(self.filter_thinking(piece) if self.may_think else piece)

    def emit_text(self, piece: str) -> None:
        """Store answer text and report it. An empty piece reports activity only."""
        if piece:
            self.pieces.append(piece)
        self.on_delta(piece)

    def update_counts(self, reported: Any) -> None:
        """Keep the largest value of each count: streams report cumulative usage. An invalid value stays invalid."""
        if not isinstance(reported, dict):
            return
        for name, value in reported.items():
            if value is None or (name not in self.counts and len(self.counts) >= MAX_COUNTS):
                continue
            self.counts[name] = max(parse_token_count(value), self.counts.get(name, 0))

    # Building the answer

    def build_answer(self, detail: Callable[[str], str]) -> Answer:
        if buffered := self.flush():
            self.emit_text(buffered)
        text, finish = self.text(), self.finish_reasons.get(self.finish.lower(), "stop")
        usage = self.usage().validated()
        if not usage.input or (text and not usage.output):
            usage = replace(usage, known=False)
        names = (detail(self.model[:MAX_NAME_CHARS]), detail(self.id[:MAX_NAME_CHARS]))  # an endpoint may repeat a key
        # An answer at its length limit is known to be cut.
        if (self.error and finish != "length") or finish == "broken":
            error = parse_error_json(self.error, self.finish or "no reason given")
            if is_refusal(error):
                return Answer(detail(error.message), "refused", usage, *names)
            kind = classify_stream_error(error, has_output=self.has_output)
            message = detail(f"the stream ended with an error: {error.message}")
            raise Fault(kind, message, said=text, retry_after=error.retry_after)
        if not self.is_done and not self.error:
            raise Fault("cut", "the stream ended without its terminator", said=text)
        if self.refusal:
            text, finish = "".join(self.refusal), "refused"
        return Answer(text, finish, usage, *names)


def make_unreadable(data: bytes) -> ValueError:
    return ValueError(f'unreadable event "{data[:80].decode(errors="replace")}"')


def read_text(value: Any) -> str:
    """Return the text of an event: a string, or null for none. Raise TypeError for any other value."""
    if value is not None and not isinstance(value, str):
        raise TypeError("a text that is no string")
    return value or ""


def load_json(data: bytes) -> Any:
    """Parse JSON. Python refuses integers with thousands of digits; they become INVALID_COUNT."""
    if len(data) > SMALL_JSON_BYTES and data.count(b"{") + data.count(b"[") > MAX_JSON_PARTS:
        raise Fault("flood", f"the response has more than {MAX_JSON_PARTS} objects and lists")
    text = data.removeprefix(codecs.BOM_UTF8).strip().decode()
    try:
        value, end = _decode_json(text)
        if end < len(text):
            raise json.JSONDecodeError("Extra data", text, end)
        return value
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise
        return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 20 else INVALID_COUNT)


_decode_json = json.JSONDecoder().raw_decode  # an event takes a fifth of the calls of `json.loads`


# Thinking

THINKING_TAGS = ("<think>", "<thinking>")
MAX_TAG_CHARS = 10  # of a tag


class ThinkingFilter:
    """Passes the answer through and drops a leading <think> block, also when a tag is split between pieces."""

    def __init__(self) -> None:
        self.buffer = ""  # text that may be part of a tag
        self.end_tag = ""  # closing tag of the current block
        self.has_thought = False  # the block has ended
        self.is_over = False  # the answer has begun, so that everything that follows is answer

    def feed(self, piece: str) -> str:
        """Add text and return the part that is certainly answer."""
        self.buffer += piece
        if not (self.end_tag or self.has_thought or self.is_over) and self._may_begin():
            return ""
        if self.end_tag:
            at = self.buffer.lower().find(self.end_tag)
            if at < 0:
                self.buffer = self.buffer[-len(self.end_tag) :]  # keep only what may be the start of the closing tag
                return ""
            self.buffer, self.end_tag, self.has_thought = self.buffer[at + len(self.end_tag) :], "", True
        if not self.is_over and self.has_thought:
            self.buffer = self.buffer.lstrip()
        self.is_over = self.is_over or bool(self.buffer) or not self.has_thought
        return self.flush()

    def flush(self) -> str:
        """Return the buffered text at the end of the stream. An unclosed block is dropped."""
        text, self.buffer = "" if self.end_tag else self.buffer, ""
        return text

    def _may_begin(self) -> bool:
        """Return whether the text so far may be the beginning of a tag. After a whole one, its block has begun."""
        start = self.buffer.lstrip()
        opening = start[:MAX_TAG_CHARS].lower()
        for tag in THINKING_TAGS:
            if opening.startswith(tag):
                self.buffer, self.end_tag = start[len(tag) :], f"</{tag[1:]}"
                return False
        return len(self.buffer) < MAX_LEADING_SPACE and any(tag.startswith(opening) for tag in THINKING_TAGS)
