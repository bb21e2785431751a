"""Scripted replies of the fake provider, and the text of their answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


class RawUsage(dict[str, Any]):
    """Usage in the names of a wire, which its dialect sends as it is."""


@dataclass(slots=True)
class Reply:
    """Reply to one request. `Reply()` is a complete, valid answer."""

    text: str | None = None  # None: derived from model and prompt, or an instance of the schema
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    error: Any = None  # error body for a status other than 200: JSON or text; None: the vendor's default
    delay: float | None = None  # seconds before the first byte; None: the provider's own
    hang: bool = False  # never answers
    comments: bool = False  # 200, then keep-alives forever: comments, and pings where the wire has them
    cut: int | None = None  # close the connection after this many bytes of the body
    reset: int | None = None  # the same, with a TCP reset
    stall: int | None = None  # stop sending after this many bytes of the body, with the connection open
    slices: int = 0  # send this many bytes at a time
    drip: float = 0.0  # seconds between pieces
    piece: int = 12  # characters per piece
    pause: Any = None  # a Gate: wait for its release after `pause_after` events
    pause_after: int = 3
    finish: str | None = "stop"  # "length", "content_filter", None …, as in chat completions
    refuse: bool = False  # send a refusal instead of content
    empty: bool = False  # a complete answer without text
    thinks: str = ""  # reasoning before the answer
    blanks: bool = False  # empty chunks between the others
    twice: bool = False  # send start, usage and end events twice
    error_after: str = ""  # an error event in the middle of the stream
    wrong_schema: bool = False  # JSON that does not match the schema
    fenced: bool = False  # the answer in a code fence
    loop: int = 0  # repeat the same sentence this many times
    stream: bool | None = None  # None: as requested; False: one JSON body
    done: bool = True  # ends with the wire's terminator
    usage: list[Json] | None = (
        None  # reports in chat-completions names, or RawUsage, one event each; None: the real usage
    )
    billed: bool | None = None  # None: a 200 answer is billed
    cached: int = 0  # cached prompt tokens, on wires without cache markers
    raw: bytes | None = None  # raw stream that replaces the generated one
    flood: bytes = b""  # sent again and again after `raw`, until the client closes the connection


@dataclass(slots=True)
class Seen:
    """One logged request."""

    n: int  # number of the request, from 1
    nth: int  # number among the requests of its model, from 1
    model: str
    arrived: float
    raw: bytes
    body: Json
    headers: dict[str, str]
    ended: float | None = None
    status: int | None = None
    tokens: Json = field(default_factory=lambda: {"in": 0, "out": 0})
    wire: str = "openai"
    path: str = ""
    client_port: int = 0  # of the connection

    @property
    def prompt(self) -> str:
        if self.wire.startswith("openai"):
            turns = self.body.get("messages") or self.body.get("input") or []
            return "\n".join(str(message.get("content")) for message in turns)
        return "\n".join(texts(self.body))

    @property
    def schema(self) -> Json | None:
        place = {
            "anthropic": ("output_config", "format", "schema"),
            "google": ("generationConfig", "responseJsonSchema"),
            "openai-responses": ("text", "format", "schema"),
        }
        found: Any = self.body
        for name in place.get(self.wire, ("response_format", "json_schema", "schema")):
            found = (found or {}).get(name)
        return found  # type: ignore[no-any-return]

    @property
    def streamed(self) -> bool:
        return "stream" in self.path if self.wire == "google" else bool(self.body.get("stream"))

    @property
    def marker(self) -> str:
        """Return a token derived from the request, so that equal requests give equal answers."""
        turns = next((self.body[name] for name in ("messages", "contents", "input") if name in self.body), None)
        said = json.dumps([self.model, turns], sort_keys=True)
        return "mk" + hashlib.sha256(said.encode()).hexdigest()[:10]

    def as_json(self) -> Json:
        shown = {
            name: getattr(self, name) for name in ("n", "nth", "model", "arrived", "ended", "status", "body", "headers")
        }
        return {**shown, "tokens": dict(self.tokens), "raw": self.raw.decode(errors="replace"), "marker": self.marker}


def texts(body: Json) -> list[str]:
    """Return the texts of a Messages or generateContent request, turn by turn."""
    system: Any = body.get("system") or (body.get("systemInstruction") or {}).get("parts") or []
    turns = [turn.get("content", turn.get("parts")) for turn in body.get("messages") or body.get("contents") or []]
    said: list[Any] = [system, *turns]
    return [parts if isinstance(parts, str) else "".join(part.get("text", "") for part in parts) for parts in said]


Typed = Callable[[str, Json, Seen], Any]  # (property, its schema, the request) → the value a test wants, or None


def said_by(typed: Typed, seen: Seen, reply: Reply) -> str:
    """Return the text of the answer: scripted, generated from the schema, or derived from model and prompt."""
    if reply.empty:
        return ""
    said = _said(typed, seen, reply)
    if reply.loop:
        return "The very same sentence comes again and again. " * reply.loop
    return f"```json\n{said}\n```" if reply.fenced else said


def _said(typed: Typed, seen: Seen, reply: Reply) -> str:
    if reply.text is not None:
        return reply.text
    if reply.wrong_schema:
        return json.dumps({"unexpected": seen.marker})
    if seen.schema is not None:
        return json.dumps(instance(seen.schema, "", seen, typed))
    return f"{seen.model} says {seen.marker}. This is a plain answer of a few sentences. It ends here, {seen.marker}."


def instance(schema: Json, name: str, seen: Seen, typed: Typed, root: Json | None = None) -> Any:
    """Return a valid instance: the first enum value, one array item, the marker in every string."""
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
    """Resolve references and return the first non-null choice."""
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
