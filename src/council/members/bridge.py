"""Members through pydantic-ai: `pai:PROVIDER:MODEL`, or any configured provider with `via = "pai"`.

pydantic-ai is an optional extra, imported when such a member is created. Only its model layer is used, without its
retries: errors are mapped to our fault kinds, and our retry loop handles them.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import re
import warnings
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, NotRequired, TypedDict, cast

from council.errors import ConfigError, Fault
from council.members.base import Member, MemberContext, OnDelta, check_key
from council.members.wires.error_responses import ErrorResponse, classify_error, parse_error_json
from council.members.wires.wire import append_schema
from council.settings import Provider
from council.settings.catalogue import model_id
from council.settings.member_lookup import list_inputs
from council.text_cleanup import redact_line
from council.types import Answer, Ask, JsonSchema, Message, Usage, encode_json

NOT_INSTALLED = "needs pydantic-ai, which is not installed: run `pip install 'model-council[pai]'`"
FINISH_REASONS = {"length": "length", "content_filter": "refused"}
# pydantic-ai error class -> fault kind; the first match wins.
FAULT_KINDS = {
    "ModelQuotaExceededError": "quota",
    "ModelRateLimitError": "rate",
    "ModelUnavailableError": "overload",
    "ModelAuthenticationError": "auth",
    "ModelNotFoundError": "model",
    "ModelContextWindowExceededError": "size",
    "ModelRequestTimeout": "stall",
}
UNSENT_PHASES = ("pool", "connect")  # phases before the request was sent

CloseClient = Callable[[], Awaitable[None]]


class SentFile(TypedDict):
    media_type: str
    data: str


class BridgeSettings(TypedDict, total=False):
    """Parameters of an answer, by the names of pydantic-ai."""

    temperature: float
    max_tokens: int
    thinking: str


class BridgeRequest(TypedDict):
    messages: list[Message]
    schema: JsonSchema | None  # None if there is none, or if it is in a message
    schema_name: str
    settings: BridgeSettings
    attachments: NotRequired[list[SentFile]]


class BridgeMember(Member):
    def __init__(
        self,
        name: str,
        model: Any,
        *,
        vendor: str,
        secret: str = "",
        structured: str = "json_schema",
        first_byte: float | None = None,
        idle: float = 90.0,
        backoff: float = 0.5,
        close_client: CloseClient | None = None,
        find_inputs: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.name, self.model, self.vendor, self.secret, self.close_client = name, model, vendor, secret, close_client
        self.native_schema = structured == "json_schema" and bool(model.profile.get("supports_json_schema_output"))
        self.first_byte, self.idle, self.backoff, self._find_inputs = first_byte, idle, backoff, find_inputs
        warnings.filterwarnings("ignore", module=r"pydantic_ai(\.|$)")  # problems show up as faults

    @property
    def accepts(self) -> Collection[str]:
        return self._find_inputs()

    def prepare(self, ask: Ask) -> bytes:
        in_prompt = ask.schema is not None and (ask.bare or not self.native_schema)
        request: BridgeRequest = {
            "messages": append_schema(ask.messages, ask.schema) if ask.schema and in_prompt else list(ask.messages),
            "schema": None if in_prompt else ask.schema,
            "schema_name": ask.schema_name or "reply",
            "settings": self._settings(ask),
        }
        if ask.attachments:
            request["attachments"] = [{"media_type": one.media_type, "data": one.data} for one in ask.attachments]
        return encode_json(request)

    def _settings(self, ask: Ask) -> BridgeSettings:
        given = {"temperature": ask.temperature, "max_tokens": ask.max_tokens, "thinking": ask.effort}
        known = {name: value for name, value in given.items() if value is not None and not ask.bare}
        return cast(BridgeSettings, known)

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        check_key(self.secret)
        request: BridgeRequest = json.loads(body)
        pieces: list[str] = []
        try:
            async with asyncio.timeout(self.first_byte) as clock, self.model:
                return await self._stream_answer(request, clock, pieces, on_delta)
        except TimeoutError:
            raise Fault("stall", "timed out waiting for data", said="".join(pieces)) from None
        except Fault:
            raise
        except Exception as error:
            raise self._to_fault(error, "".join(pieces)) from None

    async def _stream_answer(
        self, request: BridgeRequest, clock: asyncio.Timeout, pieces: list[str], on_delta: OnDelta
    ) -> Answer:
        from pydantic_ai.direct import model_request_stream
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition

        parameters = ModelRequestParameters()
        if (schema := request["schema"]) is not None:
            output = OutputObjectDefinition(json_schema=dict(schema), name=request["schema_name"], strict=True)
            parameters = ModelRequestParameters(output_mode="native", output_object=output)
        now = asyncio.get_running_loop().time
        settings: Any = {**request["settings"], "max_retries": 0}
        request_stream = model_request_stream(
            self.model,
            _to_pydantic_messages(request["messages"], request.get("attachments", [])),
            model_settings=settings,
            model_request_parameters=parameters,
        )
        async with request_stream as stream:
            async for event in stream:
                piece = _event_text(event)
                if piece is not None:  # only content extends the timeout
                    pieces.append(piece)
                    clock.reschedule(now() + self.idle if any(pieces) else None)  # thinking may pause
                    on_delta(piece)
            response = stream.get()
        text, reason = "".join(pieces), response.finish_reason
        is_unknown = reason in (None, "error")
        if reason == "stop" and any(base.__name__ == "OpenAIChatModel" for base in type(self.model).__mro__):
            # For chat completions pydantic-ai reports "stop" anyway.
            is_unknown = not (response.provider_details or {}).get("finish_reason")
        if response.state != "complete" or is_unknown:
            raise Fault("cut", "the stream ended without its terminator", said=text)
        finish = FINISH_REASONS.get(reason or "", "stop")
        names = (response.model_name or "", response.provider_response_id or "")
        return Answer(text, finish, _to_usage(response.usage, text), *names)

    def _to_fault(self, error: Exception, partial_text: str) -> Fault:
        retry_after = getattr(error, "retry_after", None)
        complaint = parse_error_json(getattr(error, "body", None), str(error) or type(error).__name__)
        status = getattr(error, "status_code", None)
        detail = redact_line(f"{status}: {complaint.message}" if status else complaint.message, [self.secret])
        return Fault(_fault_kind(error, complaint), detail, said=partial_text, retry_after=retry_after)

    async def probe(self) -> str:
        """Return the model class. pydantic-ai has no free call, so the endpoint is not contacted."""
        return f"{type(self.model).__name__} of pydantic-ai, not called"

    async def close(self) -> None:
        """Close the client if we created one; otherwise each call closes its connections."""
        if self.close_client:
            await self.close_client()


def make_pai_member(name: str, context: MemberContext) -> BridgeMember:
    """Return the member for `pai:PROVIDER:MODEL`; the key is pydantic-ai's default or PROVIDER_API_KEY."""
    provider, _, model = name.removeprefix("pai:").partition(":")
    if not provider or not model:
        raise ConfigError(f'"{name}" names no model: write pai:PROVIDER:MODEL')
    variable = f"{provider.upper().replace('-', '_')}_API_KEY"
    secret = context.env.get(variable, "").strip()
    try:
        from pydantic_ai.models import infer_model
        from pydantic_ai.providers import infer_provider_class

        def make_provider(kind: str) -> Any:
            provider_class: Any = infer_provider_class(kind)
            takes_key = secret and "api_key" in inspect.signature(provider_class.__init__).parameters
            return provider_class(api_key=secret) if takes_key else provider_class()

        bridged = infer_model(f"{provider}:{model}", make_provider)
    except Exception as error:
        raise _unavailable_error(name, error) from None
    find_inputs = partial(list_inputs, name, context.settings)
    return BridgeMember(name, bridged, vendor=provider, secret=secret, find_inputs=find_inputs)


def make_provider_member(
    name: str, provider: Provider, *, key: str | None, find_inputs: Callable[[], Collection[str]] = tuple
) -> BridgeMember:
    """Return a member of a configured provider that sends its requests through pydantic-ai."""
    try:
        key = (key or "").strip()
        bridged, close_client = WIRE_MODELS[provider.wire](provider.base_url.rstrip("/"), model_id(name), key or "none")
    except Exception as error:
        raise _unavailable_error(name, error) from None
    return BridgeMember(
        name,
        bridged,
        vendor=provider.vendor,
        secret=key,
        structured=provider.structured,
        first_byte=provider.first_byte,
        idle=provider.idle,
        backoff=provider.backoff,
        close_client=close_client,
        find_inputs=find_inputs,
    )


def _openai_model(base: str, model: str, key: str, has_responses: bool = False) -> tuple[Any, CloseClient | None]:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=base, api_key=key)
    settings: Any = {"openai_store": False}
    if has_responses:
        return OpenAIResponsesModel(model, provider=provider, settings=settings), None
    return OpenAIChatModel(model, provider=provider), None


def _anthropic_model(base: str, model: str, key: str) -> tuple[Any, CloseClient | None]:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(api_key=key, base_url=base.removesuffix("/v1"))  # the SDK appends /v1
    return AnthropicModel(model, provider=provider), None


def _google_model(base: str, model: str, key: str) -> tuple[Any, CloseClient | None]:
    """Create the model with our own client: the default client sends a header twice, which strict servers reject."""
    from google.genai import Client
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    place, _, version = base.rpartition("/")
    where: Any = {"base_url": place, "api_version": version} if re.fullmatch(r"v\d\w*", version) else {"base_url": base}
    client = Client(api_key=key, http_options=where)
    return GoogleModel(model, provider=GoogleProvider(client=client)), client.aio.aclose


WIRE_MODELS: dict[str, Callable[[str, str, str], tuple[Any, CloseClient | None]]] = {
    "openai": _openai_model,
    "openai-responses": partial(_openai_model, has_responses=True),
    "anthropic": _anthropic_model,
    "google": _google_model,
}


def _unavailable_error(name: str, error: Exception) -> ConfigError:
    """Return the error for a member that cannot be created: pydantic-ai is missing, or its own message."""
    missing = isinstance(error, ImportError) and (error.name or "").split(".")[0] in ("", "pydantic_ai")
    if missing and "pip install" not in str(error):
        return ConfigError(f'"{name}" {NOT_INSTALLED}')
    return ConfigError(f'"{name}" cannot be used, pydantic-ai reports: {redact_line(str(error))}')


def _to_pydantic_messages(messages: list[Message], attachments: list[SentFile]) -> list[Any]:
    from pydantic_ai.messages import (
        BinaryContent,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserPromptPart,
    )

    history: list[Any] = []
    files = [BinaryContent(base64.b64decode(one["data"]), media_type=one["media_type"]) for one in attachments]
    for message in messages:
        if message["role"] == "assistant":
            history.append(ModelResponse(parts=[TextPart(message["content"])]))
            continue
        part = SystemPromptPart if message["role"] == "system" else UserPromptPart
        if not history or not isinstance(history[-1], ModelRequest):
            history.append(ModelRequest(parts=[]))
        content: Any = message["content"]
        if files and message["role"] == "user":
            content, files = [*files, content], []
        history[-1] = ModelRequest(parts=[*history[-1].parts, part(content)])
    return history


def _event_text(event: Any) -> str | None:
    """Return the content, "" for a reasoning event, or None for other events."""
    part = getattr(event, "part", None) if type(event).__name__ == "PartStartEvent" else getattr(event, "delta", None)
    if part is None:
        return None
    kind = type(part).__name__
    if kind.startswith("Text"):
        return str(getattr(part, "content", None) or getattr(part, "content_delta", None) or "") or None
    return "" if kind.startswith("Thinking") else None


def _to_usage(reported: Any, text: str) -> Usage:
    is_known = bool(reported.input_tokens and (reported.output_tokens or not text))
    counts = (reported.input_tokens, reported.output_tokens, reported.cache_read_tokens)
    return Usage(*counts, is_known, reported.cache_write_tokens).validated()


def _fault_kind(error: Exception, complaint: ErrorResponse) -> str:
    """Return the fault kind. An error inside an open stream is "cut": the partial answer is lost."""
    if getattr(error, "in_stream", False):
        return "cut"
    names = {base.__name__ for base in type(error).__mro__}
    if "ModelConnectionError" in names:
        unsent = getattr(error, "phase", None) in UNSENT_PHASES
        return "net" if unsent else "stall" if "ModelTimeoutError" in names else "cut"
    kinds = [kind for name, kind in FAULT_KINDS.items() if name in names]
    if kinds:
        return kinds[0]
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return classify_error(status, complaint, getattr(error, "retry_after", None))
    return "parameter" if "UserError" in names or "ModelRequestRejectedError" in names else "cut"
