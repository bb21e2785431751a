"""Members created from a name and the settings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from council.members.registry import MemberRegistry
from council.members.wires.anthropic import AnthropicMember
from council.members.wires.google import GoogleMember
from council.members.wires.openai import OpenAIMember
from council.members.wires.openai_responses import ResponsesMember
from council.members.wires.wire import WireMember
from council.settings import load_settings
from tests.fakes.members import ASK
from tests.trusted_project import trust_project

KEYS = {"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "k"}


def seated(name: str, folder: Path) -> WireMember:
    member = MemberRegistry(load_settings(folder, KEYS), KEYS, folder)(name)
    assert isinstance(member, WireMember)
    return member


@pytest.mark.behaviour("issue-5-three-wires")
@pytest.mark.parametrize(
    ("name", "kind", "address"),
    [
        ("anthropic:claude-opus-4.6", AnthropicMember, "https://api.anthropic.com/v1/messages"),
        ("google:gemini-3-pro-preview", GoogleMember, "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"),
        ("openai:gpt-5.2", ResponsesMember, "https://api.openai.com/v1/responses"),
        ("openrouter:claude-opus-4.6", OpenAIMember, "https://openrouter.ai/api/v1/chat/completions"),
        ("ollama:llama3.2", OpenAIMember, "http://127.0.0.1:11434/v1/chat/completions"),
    ],
)  # fmt: skip
def test_each_provider_uses_its_wire(tmp_path: Path, name: str, kind: type[WireMember], address: str) -> None:
    member = seated(name, tmp_path)
    assert type(member) is kind
    assert member.endpoint.base_url + member.path == address


@pytest.mark.behaviour("40-silence-is-not-a-failure")
def test_only_a_configured_first_byte_timeout_limits_silence(tmp_path: Path) -> None:
    assert seated("openai:gpt-5.2", tmp_path).first_byte is None
    assert seated("anthropic:claude-opus-4.6", tmp_path).first_byte is None
    (tmp_path / "council.toml").write_text("[providers.openai]\nfirst_byte = 40\n")
    trust_project(tmp_path)
    assert seated("openai:gpt-5.2", tmp_path).first_byte == 40


@pytest.mark.behaviour("issue-5-effort")
@pytest.mark.parametrize(
    ("name", "sent"),
    [("anthropic:claude-haiku-4.5", None), ("google:gemini-3-pro-preview", "HIGH"), ("openai:gpt-5.2", "medium"), ("openai:gpt-99", "medium")],
)  # fmt: skip
def test_effort_is_sent_only_if_the_catalogue_lists_it(tmp_path: Path, name: str, sent: str | None) -> None:
    body = json.loads(seated(name, tmp_path).prepare(replace(ASK, effort="medium")))
    thinking = body.get("generationConfig", {}).get("thinkingConfig", {})
    found = [
        body.get("reasoning", {}).get("effort"),
        body.get("output_config", {}).get("effort"),
        thinking.get("thinkingLevel"),
    ]
    assert [level for level in found if level] == ([sent] if sent else [])


@pytest.mark.behaviour("issue-5-effort")
def test_embedded_model_gets_no_effort_and_keeps_max_tokens(tmp_path: Path) -> None:
    member = MemberRegistry(load_settings(tmp_path, KEYS), KEYS, tmp_path)("local:smollm2")
    body = json.loads(member.prepare(replace(ASK, effort="high", max_tokens=100)))
    assert (body["max_tokens"], "reasoning_effort" in body) == (100, False)
