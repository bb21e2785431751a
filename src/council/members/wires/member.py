"""Base class of members behind an HTTP endpoint. Each wire adds its request body, headers and parser."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from council.errors import Fault
from council.members.base import Hear, Progress
from council.members.wires.faults import REFUSING_CODES
from council.members.wires.hearing import Hearing
from council.members.wires.http import Endpoint
from council.types import Answer, Ask, Json, Message

if TYPE_CHECKING:
    from aiohttp import ClientResponse

EFFORTS = ("low", "medium", "high")
# Every vendor counts thinking as output, so add this to the cap on the answer.
ROOM = {"low": 4096, "medium": 8192, "high": 16384}


class OnWire:
    """Member behind an HTTP endpoint."""

    hears: ClassVar[type[Hearing]]
    path: str  # request path under base_url

    def __init__(
        self,
        name: str,
        *,
        base_url: str,
        model: str,
        api_key: str | None,
        vendor: str,
        structured: str = "json_schema",
        small: bool = False,
        free: bool = False,
        thinks: bool = False,
        efforts: Sequence[str] = EFFORTS,
        connect: float = 10.0,
        first_byte: float = 120.0,
        idle: float = 90.0,
        max_connections: int = 16,
        backoff: float = 0.5,
    ) -> None:
        key = (api_key or "").strip()
        headers = self.headers(key)
        self.endpoint = Endpoint(base_url, headers=headers, secret=key, connect=connect, limit=max_connections)
        self.name, self.model, self.vendor, self.small, self.free = name, model, vendor, small, free
        self.structured, self.thinks, self.efforts = structured, thinks, tuple(efforts)
        self.first_byte, self.idle, self.backoff = first_byte, idle, backoff

    # Implemented by each wire

    def headers(self, key: str) -> Mapping[str, str]:
        raise NotImplementedError

    def body(self, ask: Ask) -> Json:
        raise NotImplementedError

    # Shared by all wires

    def prepare(self, ask: Ask) -> bytes:
        # A lone surrogate cannot be encoded as UTF-8, so replace it.
        return json.dumps(self.body(ask), ensure_ascii=False, separators=(",", ":")).encode(errors="replace")

    async def ready(self, progress: Progress) -> None:
        """Do nothing: an endpoint needs no download."""

    async def send(self, body: bytes, hear: Hear) -> Answer:
        parser = self.hears(hear)
        async with self.endpoint.post(self.path, body, self.first_byte, parser.text) as (response, clock):
            if response.status >= 300:
                return await self._turned_down(response)
            await parser.read(response, clock, self.idle)
        return parser.answer(self.endpoint.detail)

    async def _turned_down(self, response: ClientResponse) -> Answer:
        """Return a refusal if a content filter caused the status, else raise the Fault."""
        error = await self.endpoint.complaint(response)
        if error.codes & REFUSING_CODES:
            return Answer(self.endpoint.detail(error.message), "refused")
        raise self.endpoint.fault(response, error)

    async def probe(self) -> str:
        body = await self.endpoint.get("/models", self.endpoint.connect + min(self.first_byte, 20.0))
        try:
            listed = json.loads(body)
        except ValueError:
            raise Fault("endpoint", "the endpoint did not return a list of models: check base_url") from None
        models = listed.get("data", listed.get("models")) if isinstance(listed, dict) else listed
        if not isinstance(models, list):
            return "answered"
        more = isinstance(listed, dict) and (listed.get("has_more") or listed.get("nextPageToken"))
        missing = "" if more or self._is_among(models) else f", {self.model} not listed"
        return f"answered, {len(models)} models{missing}"

    def _is_among(self, models: list[Any]) -> bool:
        """Return whether the list contains this model, ignoring a `models/` prefix and a `:latest` tag."""
        named = {str(model.get("id") or model.get("name")) for model in models if isinstance(model, dict)}
        short = {name.removeprefix("models/").removesuffix(":latest") for name in named}
        return not named or self.model in named | short

    async def close(self) -> None:
        await self.endpoint.close()

    # Request parameters

    def way(self, ask: Ask) -> str:
        """Return how to request a typed reply: json_schema, json_object or prompt; empty for free text."""
        if ask.schema is None:
            return ""
        return "prompt" if ask.bare else self.structured

    def spoken(self, ask: Ask) -> list[Message]:
        """Return the messages, with the schema appended unless it is sent as a parameter."""
        if ask.schema is None or self.way(ask) == "json_schema":
            return list(ask.messages)
        return with_schema(ask.messages, ask.schema)

    def effort(self, ask: Ask) -> str | None:
        """Return the requested effort, or the next higher one the model supports, or None."""
        if ask.effort is None or ask.bare:
            return None
        requested = EFFORTS[EFFORTS.index(ask.effort) :]
        return next((level for level in (*requested, *reversed(EFFORTS)) if level in self.efforts), None)

    def most(self, ask: Ask, otherwise: int | None = None) -> int | None:
        """Return the cap on output tokens: the answer's cap plus an allowance for thinking."""
        cap = ask.max_tokens or otherwise
        effort = self.effort(ask)
        room = ROOM[effort or "medium"] if effort or self.thinks else 0
        return cap and cap + room


def with_schema(messages: tuple[Message, ...], schema: Json) -> list[Message]:
    """Return the messages with the schema appended to the last user message."""
    schema_json = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    instruction = f"Reply with only one JSON object that matches this JSON Schema: {schema_json}"
    copies = [dict(message) for message in messages]
    for message in reversed(copies):
        if message["role"] == "user":
            message["content"] += f"\n\n{instruction}"
            return copies
    return [*copies, {"role": "user", "content": instruction}]
