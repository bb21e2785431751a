"""What the fake provider says: the script's values, and the text of an answer made of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(slots=True)
class Reply:
    """How one request is answered. The plain `Reply()` is a whole, valid answer."""

    text: str | None = None  # None: derived from model and prompt, or an instance of the schema
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    error: Any = None  # the body of a status other than 200: JSON, or text as it is; None: as the vendor words it
    delay: float | None = None  # seconds before the first byte; None: the provider's own
    hang: bool = False  # never answers
    comments: bool = False  # 200, then signs without content for ever: comments, and pings where the wire has them
    cut: int | None = None  # drops the connection after so many bytes of the body
    reset: int | None = None  # the same, but rudely
    stall: int | None = None  # falls silent after so many bytes of the body, the connection stays open
    slices: int = 0  # sends so many bytes at a time
    drip: float = 0.0  # seconds between the pieces
    piece: int = 12  # characters of a piece
    finish: str | None = "stop"  # "length", "content_filter", None …, in the words of chat completions
    refuse: bool = False  # refusal text in the place of content
    empty: bool = False  # a whole answer that says nothing
    thinks: str = ""  # what it thinks aloud before it answers
    blanks: bool = False  # chunks that hold nothing, between the others
    twice: bool = False  # whatever opens, counts or ends the answer is said twice
    error_after: str = ""  # an error event in the middle of the stream
    wrong_schema: bool = False  # JSON that is not what was asked for
    fenced: bool = False  # the answer in a code fence
    loop: int = 0  # the same sentence so many times
    stream: bool | None = None  # None: as the request wants it; False: one JSON body
    done: bool = True  # ends with the wire's terminator
    usage: list[Json] | None = None  # usage reports in the words of chat completions, one event each; None: a true one
    billed: bool | None = None  # None: an answer of 200 is billed
    cached: int = 0  # tokens of the prompt that were in a cache, where the wire has no marks for that
    raw: bytes | None = None  # the stream as it is, in the place of one made here


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
    wire: str = "openai"
    path: str = ""

    @property
    def prompt(self) -> str:
        if self.wire == "openai":
            return "\n".join(str(message.get("content")) for message in self.body.get("messages", []))
        return "\n".join(texts(self.body))

    @property
    def schema(self) -> Json | None:
        place = {
            "anthropic": ("output_config", "format", "schema"),
            "google": ("generationConfig", "responseJsonSchema"),
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
        """A token of this request alone; the same request gets the same one, so that runs can be compared."""
        said = json.dumps([self.model, self.body.get("messages", self.body.get("contents"))], sort_keys=True)
        return "mk" + hashlib.sha256(said.encode()).hexdigest()[:10]

    def as_json(self) -> Json:
        shown = {
            name: getattr(self, name) for name in ("n", "nth", "model", "arrived", "ended", "status", "body", "headers")
        }
        return {**shown, "tokens": dict(self.tokens), "raw": self.raw.decode(errors="replace"), "marker": self.marker}


def texts(body: Json) -> list[str]:
    """What a request of another wire than chat completions says, turn by turn."""
    system: Any = body.get("system") or (body.get("systemInstruction") or {}).get("parts") or []
    turns: list[Any] = [
        turn.get("content", turn.get("parts")) for turn in body.get("messages", body.get("contents", []))
    ]
    return [parts if isinstance(parts, str) else "".join(part["text"] for part in parts) for parts in (system, *turns)]


Typed = Callable[[str, Json, Seen], Any]  # (property, its schema, the request) → the value a test wants, or None


def said_by(typed: Typed, seen: Seen, reply: Reply) -> str:
    """The text of the answer: scripted, made from the schema, or derived from model and prompt."""
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
