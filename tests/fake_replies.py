"""What the fake provider says: the script's values, and bytes made of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]


@dataclass(slots=True)
class Reply:
    """How one request is answered. The plain `Reply()` is a whole, valid answer."""

    text: str | None = None  # None: derived from model and prompt, or an instance of the schema
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    error: Any = None  # the body of a status other than 200: JSON, or text as it is
    delay: float | None = None  # seconds before the first byte; None: the provider's own
    hang: bool = False  # never answers
    comments: bool = False  # 200, then keep-alive comments for ever
    cut: int | None = None  # drops the connection after so many bytes of the body
    drip: float = 0.0  # seconds between the pieces
    piece: int = 12  # characters of a piece
    finish: str | None = "stop"  # "length", "content_filter", None …
    refuse: bool = False  # refusal text in the place of content
    empty: bool = False  # a whole answer that says nothing
    error_after: str = ""  # an error event in the middle of the stream
    wrong_schema: bool = False  # JSON that is not what was asked for
    stream: bool | None = None  # None: as the request wants it; False: one JSON body
    done: bool = True  # ends with [DONE]
    usage: list[Json] | None = None  # usage reports, one event each; None: one true report
    billed: bool | None = None  # None: an answer of 200 is billed


@dataclass(slots=True)
class Seen:
    """One request as it stands in the log."""

    n: int  # the how-manieth request in all, from 1
    nth: int  # the how-manieth of its model, from 1
    model: str
    arrived: float
    raw: bytes
    body: Json
    headers: dict[str, str]
    ended: float | None = None
    status: int | None = None
    tokens: Json = field(default_factory=lambda: {"in": 0, "out": 0})

    @property
    def prompt(self) -> str:
        return "\n".join(str(message.get("content")) for message in self.body.get("messages", []))

    @property
    def schema(self) -> Json | None:
        wanted = self.body.get("response_format") or {}
        return wanted.get("json_schema", {}).get("schema")

    @property
    def marker(self) -> str:
        """A token of this request alone; the same request gets the same one, so that runs can be compared."""
        said = json.dumps([self.model, self.body.get("messages")], sort_keys=True)
        return "mk" + hashlib.sha256(said.encode()).hexdigest()[:10]

    def as_json(self) -> Json:
        shown = {
            name: getattr(self, name) for name in ("n", "nth", "model", "arrived", "ended", "status", "body", "headers")
        }
        return {**shown, "tokens": dict(self.tokens), "raw": self.raw.decode(errors="replace"), "marker": self.marker}


Typed = Callable[[str, Json, Seen], Any]  # (property, its schema, the request) → the value a test wants, or None


def said_by(typed: Typed, seen: Seen, reply: Reply) -> str:
    """The text of the answer: scripted, made from the schema, or derived from model and prompt."""
    if reply.empty:
        return ""
    if reply.text is not None:
        return reply.text
    if reply.wrong_schema:
        return json.dumps({"unexpected": seen.marker})
    if seen.schema is not None:
        return json.dumps(instance(seen.schema, "", seen, typed))
    return f"{seen.model} says {seen.marker}. This is a plain answer of a few sentences. It ends here, {seen.marker}."


def instance(schema: Json, name: str, seen: Seen, typed: Typed, root: Json | None = None) -> Any:
    """A valid instance: the first of an enum, one item of an array, the marker in every string."""
    root = root or schema
    schema = resolved(schema, root)
    wanted = typed(name, schema, seen)
    if wanted is not None:
        return wanted
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "properties" in schema:
        return {key: instance(part, key, seen, typed, root) for key, part in schema["properties"].items()}
    if schema.get("type") == "array":
        item = instance(schema.get("items", {}), name, seen, typed, root)
        return [item] * max(1, schema.get("minItems", 1))
    return plain(schema, name, seen)


def resolved(schema: Json, root: Json) -> Json:
    """The schema behind references, and the first choice that is not null."""
    while True:
        if "$ref" in schema:
            schema = root["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
        elif choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            schema = next((choice for choice in choices if choice.get("type") != "null"), choices[0])
        else:
            return schema


def plain(schema: Json, name: str, seen: Seen) -> Any:
    kind = schema.get("type", "string")
    kind = next((one for one in kind if one != "null"), "null") if isinstance(kind, list) else kind
    if kind in ("integer", "number"):
        return schema.get("minimum", schema.get("maximum", 1))
    if kind == "object":
        return {}
    if kind == "null":
        return None
    return f"{name or 'text'} {seen.marker}"[: schema.get("maxLength")]


def usage_of(seen: Seen) -> Json:
    tokens = seen.tokens
    return {"prompt_tokens": tokens["in"], "completion_tokens": tokens["out"], "total_tokens": sum(tokens.values())}


def pieces_of(seen: Seen, reply: Reply, said: str, streamed: bool) -> AsyncIterator[bytes]:
    return dripping(reply, stream(seen, reply, said) if streamed else iter([whole(seen, reply, said)]))


async def dripping(reply: Reply, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        if reply.drip:
            await asyncio.sleep(reply.drip)


def whole(seen: Seen, reply: Reply, said: str) -> bytes:
    message = {
        "role": "assistant",
        "content": None if reply.refuse else said,
        "refusal": said if reply.refuse else None,
    }
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    return json.dumps({"id": f"fake-{seen.n}", "object": "chat.completion", "model": seen.model, "choices": [choice],
                       "usage": usage_of(seen)}).encode()  # fmt: skip


def stream(seen: Seen, reply: Reply, said: str) -> Iterator[bytes]:
    field = "refusal" if reply.refuse else "content"
    yield event(seen, delta={"role": "assistant", "content": ""})
    for start in range(0, len(said), reply.piece):
        yield event(seen, delta={field: said[start : start + reply.piece]})
        if reply.error_after:
            yield b"data: " + json.dumps({"error": {"message": reply.error_after}}).encode() + b"\n\n"
            return
    yield event(seen, delta={}, finish=reply.finish)
    for usage in [usage_of(seen)] if reply.usage is None else reply.usage:
        yield event(seen, usage=usage)
    if reply.done:
        yield b"data: [DONE]\n\n"


def event(seen: Seen, *, delta: Json | None = None, finish: str | None = None, usage: Json | None = None) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    chunk: Json = {"id": f"fake-{seen.n}", "object": "chat.completion.chunk", "model": seen.model, "choices": choices}
    if usage is not None:
        chunk["usage"] = usage
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


async def keep_alive(response: web.StreamResponse) -> None:
    while True:
        await response.write(b": still here\n\n")
        await asyncio.sleep(0.01)


async def send(
    request: web.Request, response: web.StreamResponse, seen: Seen, reply: Reply, pieces: AsyncIterator[bytes]
) -> web.StreamResponse:
    room = reply.cut
    async for piece in pieces:
        if room is not None and len(piece) > room:
            await response.write(piece[:room]) if room else None
            if request.transport:
                request.transport.close()  # sends what is written, then ends without the last chunk
            return response
        room = room if room is None else room - len(piece)
        await response.write(piece)
    seen.ended = time.monotonic()  # before the last byte: whoever asks next asks later
    await response.write_eof()
    return response


def refusal(reply: Reply) -> web.Response:
    error = reply.error if reply.error is not None else {"error": {"message": f"scripted {reply.status}", "code": None}}
    if isinstance(error, str):
        return web.Response(text=error, status=reply.status, headers=reply.headers)
    return web.json_response(error, status=reply.status, headers=reply.headers)
