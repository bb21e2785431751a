"""Parameters of the vendors' prompt caches, and which endpoints get them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from council.members.base import CacheRules
from council.members.registry import MemberRegistry
from council.settings import load_settings
from council.types import Ask
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.members import ASK, asked, fault, member_at, seated
from tests.fakes.prompt_cache import PromptCache

pytestmark = pytest.mark.anyio
PACKET = "The packet: " + "line after line, " * 400
SHOWN = replace(
    ASK, messages=(ASK.messages[0], {"role": "user", "content": f"{PACKET}You are Alpha."}), shared=len(PACKET),
    cache_points=(0,), cache_key="council-0123456789abcdef",
)  # fmt: skip
BREAKPOINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}
EXPLICIT = {"prompt_cache_options": {"mode": "explicit"}}


def body(wire: str, ask: Ask, model: str = "gpt-6.1-sol", *, prompt_cache: bool = True) -> Any:
    return json.loads(member_at("http://x/v1", wire, model=model, prompt_cache=prompt_cache).prepare(ask))


@pytest.mark.behaviour("29-cache-openai")
@pytest.mark.parametrize(("wire", "turns", "kind"), [("openai", "messages", "text"), ("openai-responses", "input", "input_text")])  # fmt: skip
def test_openai_gets_a_key_and_a_breakpoint_at_the_end_of_the_packet(wire: str, turns: str, kind: str) -> None:
    told = body(wire, SHOWN)
    assert told["prompt_cache_key"] == "council-0123456789abcdef"
    assert told.items() >= EXPLICIT.items()
    system, user = told[turns]
    assert system["content"] == "Be brief."
    assert user["content"] == [{"type": kind, "text": PACKET, **BREAKPOINT}, {"type": kind, "text": "You are Alpha."}]


@pytest.mark.behaviour("29-cache-openai")
def test_a_continued_conversation_has_breakpoints_only_in_user_messages() -> None:
    turns = ({"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Why?"})
    told = body("openai-responses", replace(SHOWN, messages=(*SHOWN.messages, *turns), cache_points=(0, 1)))
    _, first, answer, second = told["input"]
    assert ["prompt_cache_breakpoint" in part for part in first["content"]] == [True, True]
    assert (answer["content"], second["content"]) == ("Yes.", "Why?")


@pytest.mark.behaviour("29-cache-openai")
def test_without_points_the_explicit_mode_avoids_the_price_of_writing() -> None:
    told = body("openai-responses", replace(SHOWN, cache_points=()))
    assert told.items() >= EXPLICIT.items()
    assert told["input"][1]["content"] == f"{PACKET}You are Alpha."


@pytest.mark.behaviour("29-cache-openai")
@pytest.mark.parametrize(
    ("model", "has_points"),
    [("gpt-5.6", True), ("gpt-5.6-terra", True), ("gpt-6", True), ("gpt-6.1-sol", True), ("gpt-10", True),
     ("gpt-5.2", False), ("gpt-5.3-codex", False), ("gpt-5", False), ("gpt-4o", False), ("o3", False), ("chat-latest", False)],
)  # fmt: skip
def test_only_models_that_have_breakpoints_get_them(model: str, has_points: bool) -> None:
    told = body("openai-responses", SHOWN, model)
    assert told["prompt_cache_key"] == SHOWN.cache_key
    assert ("prompt_cache_options" in told) == ("prompt_cache_breakpoint" in json.dumps(told)) == has_points


@pytest.mark.behaviour("29-cache-openai")
@pytest.mark.parametrize(("ask", "prompt_cache"), [(SHOWN, False), (replace(SHOWN, bare=True), True)])
def test_other_endpoints_and_bare_requests_get_no_parameter_of_the_cache(ask: Ask, prompt_cache: bool) -> None:
    for wire in ("openai", "openai-responses"):
        assert "prompt_cache" not in json.dumps(body(wire, ask, prompt_cache=prompt_cache))


def test_google_needs_no_parameter() -> None:
    model = "gemini-3.1-pro-preview"
    assert body("google", SHOWN, model) == body("google", SHOWN, model, prompt_cache=False)


@pytest.mark.behaviour("29-cache-openai")
@pytest.mark.parametrize(
    ("toml", "name", "rules"),
    [
        ("", "openai:gpt-6.1-sol", CacheRules(1024, has_points=True)),
        ("", "openai:gpt-5.2", CacheRules(1024)),
        ("", "google:gemini-3.1-pro-preview", CacheRules(4096, schema_first=False)),
        ("", "google:gemini-2.5-pro", CacheRules(2048, schema_first=False)),
        ("", "anthropic:claude-opus-5.5", CacheRules(1024, has_points=True)),
        ("", "anthropic:claude-opus-4.6", CacheRules(4096, has_points=True)),
        ("", "openrouter:openai/gpt-6.1-sol", None),
        ('[providers.openai]\nbase_url = "https://gateway.example/v1"\n', "openai:gpt-6.1-sol", None),
        ('[providers.openai]\nbase_url = "https://eu.api.openai.com/v1"\n', "openai:gpt-6.1-sol", CacheRules(1024, has_points=True)),
        ('[providers.google]\nbase_url = "https://gateway.example/v1"\n', "google:gemini-3.8-flash", None),
        ('[providers.lab]\nwire = "anthropic"\nbase_url = "https://lab.example/v1"\n', "lab:m1", CacheRules(1024, has_points=True)),
        ('[providers.lab]\nwire = "anthropic"\nbase_url = "https://lab.example/v1"\nprompt_cache = false\n', "lab:m1", None),
        ('[providers.lab]\nbase_url = "https://lab.example/v1"\n', "lab:gpt-6.1-sol", None),
        ('[providers.lab]\nbase_url = "https://lab.example/v1"\nprompt_cache = true\n', "lab:gpt-6.1-sol", CacheRules(1024, has_points=True)),
    ],
)  # fmt: skip
def test_the_address_decides_whether_an_endpoint_is_known_to_cache(
    tmp_path: Path, toml: str, name: str, rules: CacheRules | None
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(toml, encoding="utf-8")
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    settings = load_settings(tmp_path, env, flags={"trust": True}, config=config)
    member = MemberRegistry(settings, env, tmp_path)(name)
    assert getattr(member, "cache_rules", None) == rules


@pytest.mark.behaviour("29-cache-openai")
async def test_seats_read_the_packet_that_another_one_wrote(provider: FakeProvider) -> None:
    provider.cache = PromptCache()
    other = replace(SHOWN, messages=(SHOWN.messages[0], {"role": "user", "content": f"{PACKET}You are Beta."}))
    first, _ = await asked(seated(provider, "openai-responses", model="gpt-6.1-sol", prompt_cache=True), SHOWN)
    second, _ = await asked(seated(provider, "openai-responses", model="gpt-6.1-sol", prompt_cache=True), other)
    assert (first.usage.cached, second.usage.written) == (0, 0)
    assert first.usage.written == second.usage.cached > 1500
    assert second.usage.input - second.usage.cached < 20


@pytest.mark.behaviour("29-cache-openai")
async def test_a_rejected_parameter_of_the_cache_is_a_parameter_fault(provider: FakeProvider) -> None:
    message = {"error": {"message": "Unknown parameter: 'prompt_cache_options'.", "code": "unknown_parameter"}}
    provider.script("gpt-6.1-sol", Reply(status=400, error=message))
    member = seated(provider, "openai-responses", model="gpt-6.1-sol", prompt_cache=True)
    assert (await fault(member, SHOWN)).kind == "parameter"
