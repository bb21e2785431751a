"""The chat-completions wire: what OpenAI speaks, and with it most endpoints there are.

`prepare` dresses an ask as bytes. `send` posts them, reads the stream line by line and either returns a whole answer or
raises the Fault that says why there is none.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from council.errors import Fault
from council.members.base import Hear, Progress
from council.members.wires.faults import REFUSING_CODES, complaint_in
from council.members.wires.http import Endpoint, drain, framed, lines_of, no_model
from council.members.wires.thinking import Thinking
from council.types import Answer, Ask, Json, Message, Usage

if TYPE_CHECKING:
    from aiohttp import ClientResponse

FINISHES = {"length": "length", "max_tokens": "length", "model_length": "length",
            "content_filter": "refused", "refusal": "refused", "safety": "refused"}  # fmt: skip


class OpenAIMember:
    """One model behind an endpoint that speaks chat completions."""

    def __init__(
        self,
        name: str,
        *,
        base_url: str,
        model: str,
        api_key: str | None,
        vendor: str,
        structured: str = "json_schema",
        token_field: str = "max_tokens",
        takes_temperature: bool = True,
        small: bool = False,
        free: bool = False,
        connect: float = 10.0,
        first_byte: float = 120.0,
        idle: float = 90.0,
        max_connections: int = 16,
        backoff: float = 0.5,
    ) -> None:
        key = (api_key or "").strip()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.endpoint = Endpoint(base_url, headers=headers, secret=key, connect=connect, limit=max_connections)
        self.name, self.model, self.vendor, self.small, self.free = name, model, vendor, small, free
        self.structured, self.token_field, self.takes_temperature = structured, token_field, takes_temperature
        self.first_byte, self.idle, self.backoff = first_byte, idle, backoff

    def prepare(self, ask: Ask) -> bytes:
        body: Json = {"model": self.model, "messages": list(ask.messages), "stream": True}
        if not ask.bare:
            body["stream_options"] = {"include_usage": True}
        if ask.temperature is not None and self.takes_temperature:
            body["temperature"] = ask.temperature
        if ask.max_tokens is not None:
            body[self.token_field] = ask.max_tokens
        if ask.schema is not None:
            body |= self._typed(ask.messages, ask.schema, ask.schema_name or "reply")
        # A lone surrogate cannot be sent as UTF-8; a question mark can.
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")

    def _typed(self, messages: tuple[Message, ...], schema: Json, name: str) -> Json:
        if self.structured == "json_schema":
            wanted = {"name": name, "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": wanted}}
        told: Json = {"messages": with_schema(messages, schema)}
        if self.structured == "json_object":
            told["response_format"] = {"type": "json_object"}
        return told

    async def ready(self, progress: Progress) -> None:
        """An endpoint needs nothing fetched."""

    async def send(self, body: bytes, hear: Hear) -> Answer:
        heard = Hearing(hear)
        async with self.endpoint.post("/chat/completions", body, self.first_byte, heard.text) as (response, clock):
            if response.status >= 300:
                return await self._turned_down(response)
            await heard.read(response, clock, self.idle)
        return heard.answer(self.endpoint.detail)

    async def _turned_down(self, response: ClientResponse) -> Answer:
        """A filter that answers with a status is a refusal like any other; all else is a fault."""
        said = await self.endpoint.complaint(response)
        if said.codes & REFUSING_CODES:
            return Answer(self.endpoint.detail(said.message), "refused")
        raise self.endpoint.fault(response, said)

    async def probe(self) -> str:
        body = await self.endpoint.get("/models", self.endpoint.connect + min(self.first_byte, 20.0))
        try:
            listed = json.loads(body)
        except ValueError:
            raise Fault("endpoint", "the endpoint answered, but not with a list of models: check base_url") from None
        models = listed.get("data", listed.get("models")) if isinstance(listed, dict) else listed
        return f"answered, {len(models)} models" if isinstance(models, list) else "answered"

    async def close(self) -> None:
        await self.endpoint.close()


class Hearing:
    """One answer as it comes in. Plain dictionaries all the way: a streamed event costs microseconds."""

    def __init__(self, hear: Hear) -> None:
        self.hear = hear
        self.thinking = Thinking()
        self.pieces: list[str] = []
        self.refusal: list[str] = []
        self.usage = Usage(known=False)
        self.finish = ""
        self.model = ""
        self.error: Any = None
        self.begun = False  # an event came
        self.done = False  # the terminator came
        self.moved = False  # content came since the clock was last set
        self.thought = False  # this event holds a sign of life that is no word of the answer

    def text(self) -> str:
        return "".join(self.pieces)

    async def read(self, response: ClientResponse, clock: asyncio.Timeout, idle: float) -> None:
        now = asyncio.get_running_loop().time
        if response.content_type == "application/json":
            clock.reschedule(now() + idle)
            body = await response.read()
            if strange := no_model(response, body):
                raise Fault("endpoint", strange)
            self.take(body, "message")
            self.done = True
            return
        async for lines in lines_of(response):
            self.take_lines(lines)
            if self.done or self.error:
                clock.reschedule(None)
                await drain(response)
                return
            if self.moved:  # only content moves the clock: comments and empty events do not
                self.moved = False
                clock.reschedule(now() + idle)
        if not self.begun and (strange := no_model(response)):
            raise Fault("endpoint", strange)
        self.done = bool(self.finish) and framed(response)

    def take_lines(self, lines: list[bytes]) -> None:
        for line in lines:
            if line.startswith(b"data:"):
                self.begun = True
                data = line[5:].strip()
                if data == b"[DONE]":
                    self.done = True
                    return
                if data:
                    self.take(data, "delta")

    def take(self, data: bytes, part: str) -> None:
        try:
            piece = self.read_event(json.loads(data.decode()), part)
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise ValueError(f"unreadable event {data[:80]!r}") from None
        if piece or self.thought:
            self.moved, self.thought = True, False
            self.say(self.thinking.let(piece))

    def say(self, piece: str) -> None:
        """What is no part of the answer is heard as a sign of life only."""
        if piece:
            self.pieces.append(piece)
        self.hear(piece)

    def read_event(self, event: Json, part: str) -> str:
        piece = ""
        for choice in event.get("choices") or ():
            piece += self.read_part(choice.get(part) or {})
            if finish := choice.get("finish_reason"):
                self.finish = str(finish)
        if usage := event.get("usage"):
            self.usage = larger(self.usage, usage)
        if not self.model:
            self.model = str(event.get("model") or "")
        if error := event.get("error"):
            self.error = error
        return piece

    def read_part(self, said: Json) -> str:
        content = said.get("content")
        if content:
            return content if isinstance(content, str) else joined(content)
        if refusal := said.get("refusal"):
            self.refusal.append(str(refusal))
            self.thought = True
        elif said.get("reasoning_content") or said.get("reasoning"):
            self.thought = True  # thinking aloud is work, not a keep-alive
        return ""

    def answer(self, detail: Callable[[str], str]) -> Answer:
        if rest := self.thinking.rest():
            self.say(rest)
        text, finish = self.text(), FINISHES.get(self.finish.lower(), "stop")
        if self.error or self.finish == "error":
            message = complaint_in(self.error, "no reason given").message
            raise Fault("cut", detail(f"an error broke off the stream: {message}"), said=text)
        if not self.done:
            raise Fault("cut", "the stream ended without its terminator", said=text)
        if self.refusal:
            return Answer("".join(self.refusal), "refused", self.usage, self.model)
        return Answer(text, finish, self.usage, self.model)


def joined(parts: list[Json]) -> str:
    """Some endpoints send content as parts; only the text ones are said aloud."""
    return "".join(str(part.get("text") or "") for part in parts if part.get("type") == "text")


def larger(known: Usage, told: Json) -> Usage:
    """Streams report usage as it grows, so the largest report is the whole; a sum would count it many times."""
    details = told.get("prompt_tokens_details") or {}
    return Usage(
        max(known.input, count(told.get("prompt_tokens"))),
        max(known.output, count(told.get("completion_tokens"))),
        max(known.cached, count(details.get("cached_tokens"))),
        known.known or isinstance(told.get("completion_tokens"), int),
    )


def count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def with_schema(messages: tuple[Message, ...], schema: Json) -> list[Message]:
    """The conversation with the schema spoken at the end of the last user message."""
    spoken = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    wish = f"Reply with nothing but one JSON object that fits this JSON Schema: {spoken}"
    told = [dict(message) for message in messages]
    for message in reversed(told):
        if message["role"] == "user":
            message["content"] += f"\n\n{wish}"
            return told
    return [*told, {"role": "user", "content": wish}]
