"""Base class of members behind an HTTP endpoint. Each wire adds its request body, headers and parser."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from council.errors import Fault
from council.members.base import MAX_CACHE_POINTS, CacheRules, Member, OnDelta
from council.members.wires.error_responses import classify_error, classify_stream_error, is_refusal, parse_error_json
from council.members.wires.http import ByteLimits, Endpoint, network_errors
from council.members.wires.stream_parser import StreamParser, load_json
from council.settings.catalogue import find_successor
from council.types import Answer, Ask, Attachment, JsonSchema, Message, encode_json

if TYPE_CHECKING:
    from aiohttp import ClientResponse


EFFORTS = ("low", "medium", "high")
# Every vendor counts thinking as output, so add this to the cap on the answer.
THINKING_TOKENS = {"low": 4096, "medium": 8192, "high": 16384}
PROBE_TIMEOUT_S = 20.0  # seconds after the connection until the list of models is there


class ModelList(NamedTuple):
    names: tuple[str, ...]  # without the prefix `models/`; "" for an entry without a name
    has_more: bool  # the list has further pages
    shutdowns: Mapping[str, str] = {}  # dates that the list states


def _model_name(model: Any) -> str:
    name = (model.get("id") or model.get("name") or "") if isinstance(model, dict) else ""
    return str(name).removeprefix("models/")


def _shutdown_date(model: Any) -> str:
    """Return the date of a model's shutdown, which OpenAI lists; "" if it is not a date."""
    date = model.get("shutdown_date") if isinstance(model, dict) else None
    return date if isinstance(date, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", date) else ""


class WireMember(Member):
    parser: ClassVar[type[StreamParser]]
    path: str  # request path under base_url
    list_path: ClassVar[str] = "/models"  # for all models in one page

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
        first_byte: float | None = None,  # None: silence ends at the deadline of the caller
        idle: float = 90.0,
        max_connections: int = 16,
        backoff: float = 0.5,
        token_field: str = "max_tokens",
        limits: ByteLimits | None = None,
        find_inputs: Callable[[], Collection[str]] = tuple,
        prompt_cache: bool = False,  # the endpoint caches prompts as the vendor of this wire does
    ) -> None:
        key = (api_key or "").strip()
        headers = self.headers(key)
        self.endpoint = Endpoint(
            base_url, headers=headers, secret=key, connect=connect, limit=max_connections, limits=limits
        )
        self.name, self.model, self.vendor, self.small, self.free = name, model, vendor, small, free
        self.structured, self.thinks, self.efforts, self.token_field = structured, thinks, tuple(efforts), token_field
        self.first_byte, self.idle, self.backoff, self._find_inputs = first_byte, idle, backoff, find_inputs
        self.cache_rules = self.find_cache_rules() if prompt_cache else None

    @property
    def accepts(self) -> Collection[str]:
        """Return the kinds of attachments that the model takes. They are looked up only for a run that has some."""
        return self._find_inputs() if type(self).make_part is not WireMember.make_part else ()

    # Implemented by each wire

    def headers(self, key: str) -> Mapping[str, str]:
        raise NotImplementedError

    def body(self, ask: Ask) -> Mapping[str, object]:
        """Return the request in the format of the vendor. The order of its fields is kept."""
        raise NotImplementedError

    def make_part(self, attachment: Attachment) -> Mapping[str, object]:
        """Return an attachment in the format of the vendor, as a part of the first user message."""
        raise NotImplementedError

    def find_cache_rules(self) -> CacheRules | None:
        """Return how the vendor of this wire caches prompts of the model; None if that is not known."""
        return None

    # Shared by all wires

    def prepare(self, ask: Ask) -> bytes:
        return encode_json(self.body(ask))

    async def connect_ahead(self) -> None:
        """Open a connection for the first request if none is open and there is no proxy; only TLS is negotiated."""
        import aiohttp
        from yarl import URL

        pool = self.endpoint.join_pool()
        connector = pool.session.connector
        if pool.proxy or connector is None or any(getattr(connector, name, None) for name in ("_conns", "_acquired")):
            return
        url, loop = URL(self.endpoint.base_url), asyncio.get_running_loop()
        with suppress(*network_errors()):  # the request reports the problem
            target = aiohttp.ClientRequest("POST", url, loop=loop, session=pool.session)
            clocks = aiohttp.ClientTimeout(total=None, connect=self.endpoint.connect)
            (await connector.connect(target, [], clocks)).release()

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        parser = self.parser(on_delta)

        async def read(response: ClientResponse, clock: asyncio.Timeout) -> None:
            if not 200 <= response.status < 300:
                raise await self._read_error_status(response)
            await parser.read(response, clock, self.idle, self.endpoint.limits)

        await self.endpoint.post(self.path, body, self.first_byte, read, parser.text)
        return parser.build_answer(self.endpoint.format_detail)

    def read_answer(self, body: object, on_delta: OnDelta) -> Answer:
        """Return the answer in a body that was received apart, as the results of a batch job are."""
        parser, data = self.parser(on_delta), encode_json(body)
        try:
            parser.feed_json(data, parser.parse_body)
        except ValueError as error:
            raise Fault("endpoint", self.endpoint.format_detail(f"the answer cannot be read: {error}")) from None
        parser.is_done = True
        return parser.build_answer(self.endpoint.format_detail)

    def make_result_fault(self, status: int, error: object) -> Fault:
        """Return the fault of an error that was received apart."""
        parsed = parse_error_json(error, "no reason given")
        if is_refusal(parsed):
            said = self.endpoint.format_detail(parsed.message)
            return Fault("refused", f'the member declined to answer: "{said}"', said=said, has_status=True)
        kind = classify_error(status, parsed, None) if status >= 400 else classify_stream_error(parsed)
        return Fault(
            kind, self.endpoint.format_detail(f"{status or 'batch'}: {parsed.message}"), has_status=status >= 400
        )

    async def _read_error_status(self, response: ClientResponse) -> Fault:
        """Return the Fault of an error status: a refusal if a content filter caused it."""
        error = await self.endpoint.read_error(response)
        if is_refusal(error):
            said = self.endpoint.format_detail(error.message)
            return Fault("refused", f'the member declined to answer: "{said}"', said=said, has_status=True)
        fault = self.endpoint.make_fault(response, error)
        if fault.kind == "model" and (successor := find_successor(self.model)):
            return Fault("model", self.endpoint.format_detail(f"{fault.detail} Its successor is {successor}."))
        return fault

    async def probe(self) -> str:
        listed = await self.list_models()
        if listed is None:
            return "answered"
        missing = "" if listed.has_more or self._is_listed(listed.names) else f", {self.model} not listed"
        return f"answered, {len(listed.names)} models{missing}"

    async def list_models(self) -> ModelList | None:
        """Return the models that the endpoint lists, without a billed call; None if it lists none in a known form."""
        body = await self.endpoint.get(
            self.list_path, self.endpoint.connect + min(self.first_byte or PROBE_TIMEOUT_S, PROBE_TIMEOUT_S)
        )
        try:
            listed = load_json(body)
        except (ValueError, RecursionError):
            raise Fault("endpoint", "the endpoint did not return a list of models: check base_url") from None
        models = listed.get("data", listed.get("models")) if isinstance(listed, dict) else listed
        if not isinstance(models, list):
            return None
        more = isinstance(listed, dict) and (listed.get("has_more") or listed.get("nextPageToken"))
        shutdowns = {_model_name(model): date for model in models if (date := _shutdown_date(model))}
        return ModelList(tuple(_model_name(model) for model in models), bool(more), shutdowns)

    def _is_listed(self, names: Sequence[str]) -> bool:
        """Return whether the list contains this model, ignoring a `:latest` tag."""
        return not any(names) or self.model in {*names, *(name.removesuffix(":latest") for name in names)}

    async def close(self) -> None:
        await self.endpoint.close()

    # Request parameters

    def structured_mode(self, ask: Ask) -> str:
        """Return how to request a typed reply: json_schema, json_object or prompt; empty for free text."""
        if ask.schema is None:
            return ""
        return "prompt" if ask.bare else self.structured

    def build_messages(self, ask: Ask) -> list[Message]:
        """Return the messages, with the schema appended unless it is sent as a parameter."""
        if ask.schema is None or self.structured_mode(ask) == "json_schema":
            return list(ask.messages)
        return append_schema(ask.messages, ask.schema)

    def list_cache_points(self, ask: Ask) -> tuple[int, ...]:
        """Return the points up to which the vendor is told to cache this request, at most MAX_CACHE_POINTS."""
        is_marked = self.cache_rules and self.cache_rules.has_points and ask.shared and not ask.bare
        return ask.cache_points[-MAX_CACHE_POINTS:] if is_marked else ()

    def resolve_effort(self, ask: Ask) -> str | None:
        """Return the requested effort, or the next higher one the model supports, or None."""
        if ask.effort is None or ask.bare:
            return None
        requested = EFFORTS[EFFORTS.index(ask.effort) :]
        return next((level for level in (*requested, *reversed(EFFORTS)) if level in self.efforts), None)

    def max_output_tokens(self, ask: Ask, default: int | None = None) -> int | None:
        """Return the cap on output tokens: the answer's cap plus an allowance for thinking."""
        cap = ask.max_tokens or default
        effort = self.resolve_effort(ask)
        room = THINKING_TOKENS[effort or "medium"] if effort or self.thinks else 0
        if ask.max_thinking is not None:
            room = min(room, ask.max_thinking)
        return cap and cap + room


def split_at_points(messages: Sequence[Message], shared: int, points: Collection[int]) -> list[list[tuple[str, bool]]]:
    """Return the text of each message in pieces, each with whether the vendor may cache up to its end.

    If a request has points, its first user message is always split at the end of the shared part, so that the pieces of
    several requests are the same.
    """
    pieces: list[list[tuple[str, bool]]] = []
    turn = 0
    for message in messages:
        text, is_user = message["content"], message["role"] == "user"
        turn += is_user
        is_point = is_user and turn in points
        if is_user and turn == 1 and points and 0 < shared < len(text):
            pieces.append([(text[:shared], 0 in points), (text[shared:], is_point)])
        else:
            pieces.append([(text, is_point)])
    return pieces


def split_system(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """Return the text of the system, and the other messages."""
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    return system, [message for message in messages if message["role"] != "system"]


def data_url(attachment: Attachment) -> str:
    return f"data:{attachment.media_type};base64,{attachment.data}"


def append_schema(messages: tuple[Message, ...], schema: JsonSchema) -> list[Message]:
    """Return the messages with the schema appended to the last user message."""
    schema_json = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    instruction = f"Reply with only one JSON object that matches this JSON Schema: {schema_json}"
    copies = [dict(message) for message in messages]
    for message in reversed(copies):
        if message["role"] == "user":
            message["content"] += f"\n\n{instruction}"
            return copies
    return [*copies, {"role": "user", "content": instruction}]
