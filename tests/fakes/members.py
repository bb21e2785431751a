"""Members of every wire that use the fake provider."""

from __future__ import annotations

from typing import Any

import pytest

from council.errors import Fault
from council.members.wires.anthropic import AnthropicMember
from council.members.wires.google import GoogleMember
from council.members.wires.openai import OpenAIMember
from council.members.wires.openai_responses import ResponsesMember
from council.members.wires.wire import WireMember
from council.types import Answer, Ask, JsonSchema
from tests.fake_provider import FakeProvider

KEY = "-".join(["sk", "test", "0123456789abcdef"])
ASK = Ask("draft/alpha", ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}))
SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {"yes": {"type": "boolean"}},
    "required": ["yes"],
    "additionalProperties": False,
}
KINDS: dict[str, type[WireMember]] = {
    "openai": OpenAIMember,
    "openai-responses": ResponsesMember,
    "anthropic": AnthropicMember,
    "google": GoogleMember,
}
WIRES = list(KINDS)


def member_at(base_url: str, wire: str, **options: Any) -> WireMember:
    given = {"model": "m1", "api_key": KEY, "vendor": "sim", "first_byte": 20.0, "backoff": 0.0, **options}
    return KINDS[wire](f"{wire}:m1", base_url=base_url, **given)


def seated(provider: FakeProvider, wire: str, **options: Any) -> WireMember:
    return member_at(provider.base(wire), wire, **options)


async def asked(member: WireMember, ask: Ask = ASK) -> tuple[Answer, list[str]]:
    heard: list[str] = []
    try:
        return await member.send(member.prepare(ask), heard.append), heard
    finally:
        await member.close()


async def fault(member: WireMember, ask: Ask = ASK) -> Fault:
    with pytest.raises(Fault) as caught:
        await asked(member, ask)
    return caught.value
