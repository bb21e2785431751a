"""Responses wire: its requests, and which endpoints use it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from council.settings import load_settings
from tests.fakes.members import ASK, SCHEMA, member_at

OPENAI = '[providers.openai]\nbase_url = "{url}"\n'


def body_of(ask: Any = ASK, **options: Any) -> Any:
    return json.loads(member_at("http://x/v1", "openai-responses", **options).prepare(ask))


@pytest.mark.behaviour("18-responses-wire")
def test_nothing_is_stored_by_the_vendor() -> None:
    assert body_of()["store"] is False
    assert body_of(replace(ASK, bare=True))["store"] is False


@pytest.mark.behaviour("18-responses-wire")
def test_a_thinking_model_is_asked_for_summaries_and_gets_no_temperature() -> None:
    body = body_of(replace(ASK, temperature=0.7), thinks=True)
    assert (body["reasoning"], "temperature" in body) == ({"summary": "auto"}, False)
    assert body_of(replace(ASK, effort="low"))["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body_of(replace(ASK, temperature=0.7)).keys() - body_of().keys() == {"temperature"}


def test_a_typed_reply_is_asked_for_as_a_strict_schema() -> None:
    typed = replace(ASK, schema=SCHEMA, schema_name="ballot")
    wanted = {"type": "json_schema", "name": "ballot", "strict": True, "schema": SCHEMA}
    assert body_of(typed)["text"] == {"format": wanted}
    assert body_of(typed, structured="json_object")["text"] == {"format": {"type": "json_object"}}
    assert "text" not in body_of(typed, structured="prompt")


@pytest.mark.behaviour("18-responses-wire")
@pytest.mark.parametrize(
    ("config", "wire"),
    [
        ("", "openai-responses"),
        (OPENAI.format(url="https://eu.api.openai.com/v1"), "openai-responses"),
        (OPENAI.format(url="https://gateway.example.com/v1"), "openai"),
        (OPENAI.format(url="https://api.openai.com.example.com/v1"), "openai"),
        (OPENAI.format(url="https://gateway.example.com/v1") + 'wire = "openai-responses"', "openai-responses"),
        ('[providers.openai]\nwire = "openai"', "openai"),
    ],
)
def test_only_openais_own_host_uses_the_responses_wire_by_default(tmp_path: Path, config: str, wire: str) -> None:
    file = tmp_path / "council.toml"
    file.write_text(config, encoding="utf-8")
    settings = load_settings(tmp_path, {}, config=file)
    assert settings.providers["openai"].wire == wire
    assert settings.providers["openrouter"].wire == "openai"


def test_another_provider_at_openais_host_keeps_chat_completions(tmp_path: Path) -> None:
    file = tmp_path / "council.toml"
    file.write_text('[providers.mine]\nbase_url = "https://api.openai.com/v1"\n', encoding="utf-8")
    assert load_settings(tmp_path, {}, config=file).providers["mine"].wire == "openai"
