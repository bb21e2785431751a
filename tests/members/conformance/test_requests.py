"""Request bodies match those of the vendors' SDKs."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from functools import cache
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel, TypeAdapter

from council.engine.reply import Reply, build_schema
from council.members.wires.schema_dialects import ANTHROPIC, convert_schema
from council.types import Ask, Attachment
from tests.fake_provider import FakeProvider
from tests.fake_provider import Reply as Said
from tests.fakes.members import ASK, WIRES, member_at, seated
from tests.members.conformance.normalize import alike, plain
from tests.members.conformance.vendors import call_sdk
from tests.reply_types import REPLY_TYPES

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.behaviour("issue-5-conformance"),
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]
every_wire = pytest.mark.parametrize("wire", WIRES)
TURNS = (*ASK.messages, {"role": "assistant", "content": "Because."}, {"role": "user", "content": "Really? “Ja”…"})
PICTURE = Attachment("attached/chart.png", "image/png", "0", 6, base64.b64encode(b"png>>?").decode(), 4, 3)
PAGES = Attachment("attached/2/plan.pdf", "application/pdf", "1", 4, base64.b64encode(b"%PDF").decode(), pages=2)
ASKS = {
    "plain": ASK,
    "a conversation": replace(ASK, messages=TURNS),
    "no system": replace(ASK, messages=ASK.messages[1:]),
    "capped": replace(ASK, max_tokens=600),
    "warm": replace(ASK, temperature=0.7),
    "effort": replace(ASK, effort="high", max_tokens=600),
    "shared": replace(ASK, shared=2),
    "attachments": replace(ASK, messages=TURNS, attachments=(PICTURE, PAGES)),
}


def typed(form: type[Reply]) -> Ask:
    return replace(ASK, schema=build_schema(form, {}), schema_name=form.__name__)


def body_of(wire: str, ask: Ask, **options: Any) -> Any:
    return json.loads(member_at("http://x/v1", wire, **options).prepare(ask))


# Parameters published by the SDKs


@cache
def published(params: Any) -> Any:
    """Return a validator for an SDK's parameters that rejects unknown names."""

    def closed(node: Any) -> Any:
        if isinstance(node, list):
            return [closed(item) for item in node]
        if not isinstance(node, dict):
            return node
        told = {name: closed(item) for name, item in node.items()}
        return told | ({"additionalProperties": False} if "properties" in told and told.get("type") == "object" else {})

    return jsonschema.Draft202012Validator(closed(TypeAdapter(params).json_schema()))


def check(wire: str, body: Any) -> None:
    """Raise if the body does not match the vendor's published types."""
    if wire == "google":
        from google.genai import types

        body = dict(body)
        TypeAdapter(list[types.Content]).validate_python(body.pop("contents"))
        types.Content.model_validate(body.pop("systemInstruction", {}))
        types.GenerationConfig.model_validate(body.pop("generationConfig", {}))
        assert not body, f"unknown: {list(body)}"
        return
    published(_parameters(wire)).validate(body)


def _parameters(wire: str) -> Any:
    if wire == "openai":
        from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

        return CompletionCreateParamsStreaming
    if wire == "openai-responses":
        from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

        return ResponseCreateParamsStreaming
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    return MessageCreateParamsStreaming


@every_wire
@pytest.mark.parametrize("ask", [*ASKS.values(), replace(ASK, bare=True)], ids=[*ASKS, "bare"])
@pytest.mark.parametrize("thinks", [False, True])
def test_a_body_fits_the_published_parameters(wire: str, ask: Ask, thinks: bool) -> None:
    check(wire, body_of(wire, ask, thinks=thinks))


@every_wire
@pytest.mark.behaviour("29-cache-openai")
@pytest.mark.parametrize("attachments", [(), (PICTURE, PAGES)])
@pytest.mark.parametrize("points", [(), (0,), (1, 2), (0, 1, 2)])
def test_a_body_with_cache_points_fits_the_published_parameters(
    wire: str, points: tuple[int, ...], attachments: tuple[Attachment, ...]
) -> None:
    ask = replace(ASK, messages=TURNS, shared=2, cache_points=points, cache_key="council-0", attachments=attachments)
    body = body_of(wire, ask, model="gpt-6.1-sol", prompt_cache=True)
    check(wire, body)
    marks = json.dumps(body).count("prompt_cache_breakpoint") + json.dumps(body).count("cache_control")
    assert marks == (0 if wire == "google" else len(points))


@every_wire
@pytest.mark.parametrize("form", REPLY_TYPES.values(), ids=list(REPLY_TYPES))
@pytest.mark.parametrize("structured", ["json_schema", "json_object", "prompt"])
def test_a_typed_body_fits_the_published_parameters(wire: str, form: type[Reply], structured: str) -> None:
    check(wire, body_of(wire, typed(form), structured=structured))


@every_wire
@pytest.mark.parametrize(
    "wrong",
    [{"reasoning": "much"}, {"max_tokens": "many"}, {"messages": [{"role": "king"}], "input": [{"role": "king"}]}],
)
def test_the_check_can_fail(wire: str, wrong: Any) -> None:
    with pytest.raises((jsonschema.ValidationError, AssertionError)):
        check(wire, body_of(wire, ASK) | wrong)


# The same call with the SDK


async def both(provider: FakeProvider, wire: str, ask: Ask, form: type[BaseModel] | None = None) -> tuple[Any, Any]:
    provider.always("m1", Said("{}", finish="stop") if form else Said())
    member = seated(provider, wire)
    await member.send(member.prepare(ask), lambda piece: None)
    await member.close()
    try:
        await call_sdk(wire, provider, ask, form)
    except ValueError:
        assert form  # the SDK validates the reply too, and {} is invalid
    ours, theirs = provider.log
    assert ours.path == theirs.path
    assert ours.headers.get("anthropic-version") == theirs.headers.get("anthropic-version")
    return alike(wire, ours.body), alike(wire, theirs.body)


@every_wire
@pytest.mark.parametrize("ask", ASKS.values(), ids=list(ASKS))
async def test_the_sdk_sends_the_same(provider: FakeProvider, wire: str, ask: Ask) -> None:
    ours, theirs = await both(provider, wire, ask)
    assert ours == theirs


# Google's SDK passes a schema through, and OpenAI's converts it in one way for both wires, so a few are enough there.
PAIRS = [
    (wire, name)
    for wire in WIRES
    for name in (list(REPLY_TYPES) if wire in ("openai", "anthropic") else ["Opinion", "Triage", "Lookups"])
]


@pytest.mark.parametrize(
    ("wire", "form"), [(wire, REPLY_TYPES[name]) for wire, name in PAIRS], ids=map("-".join, PAIRS)
)
async def test_the_sdk_asks_for_the_same_typed_reply(provider: FakeProvider, wire: str, form: type[Reply]) -> None:
    ours, theirs = await both(provider, wire, typed(form), form)
    assert ours == theirs


@pytest.mark.parametrize("form", REPLY_TYPES.values(), ids=list(REPLY_TYPES))
@pytest.mark.parametrize("small", [False, True])
def test_a_schema_is_converted_like_the_vendors_own_helper_does(form: type[Reply], small: bool) -> None:
    from anthropic.lib._parse._transform import transform_schema

    schema = build_schema(form, {}, small=small)
    assert plain(convert_schema(schema, ANTHROPIC)) == plain(transform_schema(dict(schema)))
