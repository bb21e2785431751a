"""A model behind an endpoint: what every wire does alike. A wire says how an ask is dressed and how an answer is heard."""

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
# Thoughts count as output with every vendor, so a cap on the answer leaves room for them.
ROOM = {"low": 4096, "medium": 8192, "high": 16384}


class OnWire:
    """One model behind an endpoint."""

    hears: ClassVar[type[Hearing]]
    path: str  # where an ask is posted, under the base_url

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

    # What a wire says

    def headers(self, key: str) -> Mapping[str, str]:
        raise NotImplementedError

    def body(self, ask: Ask) -> Json:
        raise NotImplementedError

    # What all of them do

    def prepare(self, ask: Ask) -> bytes:
        # A lone surrogate cannot be sent as UTF-8; a question mark can.
        return json.dumps(self.body(ask), ensure_ascii=False, separators=(",", ":")).encode(errors="replace")

    async def ready(self, progress: Progress) -> None:
        """An endpoint needs nothing fetched."""

    async def send(self, body: bytes, hear: Hear) -> Answer:
        heard = self.hears(hear)
        async with self.endpoint.post(self.path, body, self.first_byte, heard.text) as (response, clock):
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
        if not isinstance(models, list):
            return "answered"
        more = isinstance(listed, dict) and (listed.get("has_more") or listed.get("nextPageToken"))
        missing = "" if more or self._is_among(models) else f", {self.model} not among them"
        return f"answered, {len(models)} models{missing}"

    def _is_among(self, models: list[Any]) -> bool:
        """Whether a list of models names ours. Some write a folder before the name, or a tag behind it."""
        named = {str(one.get("id") or one.get("name")) for one in models if isinstance(one, dict)}
        short = {name.removeprefix("models/").removesuffix(":latest") for name in named}
        return not named or self.model in named | short

    async def close(self) -> None:
        await self.endpoint.close()

    # What an ask comes to here

    def way(self, ask: Ask) -> str:
        """How a typed reply is asked for: json_schema, json_object, prompt; nothing, if none is wanted."""
        if ask.schema is None:
            return ""
        return "prompt" if ask.bare else self.structured

    def spoken(self, ask: Ask) -> list[Message]:
        """The messages; with the schema in words where nothing else tells it."""
        if ask.schema is None or self.way(ask) == "json_schema":
            return list(ask.messages)
        return with_schema(ask.messages, ask.schema)

    def effort(self, ask: Ask) -> str | None:
        """The wished effort, or the next higher that the model knows; nothing, if it knows none."""
        if ask.effort is None or ask.bare:
            return None
        wished = EFFORTS[EFFORTS.index(ask.effort) :]
        return next((level for level in (*wished, *reversed(EFFORTS)) if level in self.efforts), None)

    def most(self, ask: Ask, otherwise: int | None = None) -> int | None:
        """The cap on all that is written: the answer's, and room for thoughts where the model has any."""
        cap = ask.max_tokens or otherwise
        effort = self.effort(ask)
        room = ROOM[effort or "medium"] if effort or self.thinks else 0
        return cap and cap + room


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
