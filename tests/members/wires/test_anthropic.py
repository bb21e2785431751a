"""Messages wire: vendor-specific behaviour."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from council.members.base import DEFAULT_MAX_TOKENS
from council.members.wires.anthropic import MessagesParser
from council.types import Ask, Usage
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.members import ASK, SCHEMA, asked, fault, member_at, seated

pytestmark = pytest.mark.anyio
PACKET = "The packet: " + "line after line, " * 400
SHOWN = replace(
    ASK,
    messages=(ASK.messages[0], {"role": "user", "content": f"{PACKET}You are Alpha."}),
    shared=len(PACKET),
    cache_points=(0,),
)


def body(ask: Ask, **options: Any) -> Any:
    return json.loads(member_at("http://x/v1", "anthropic", **options).prepare(ask))


def test_the_system_prompt_is_separate_and_the_version_is_a_header() -> None:
    member = member_at("http://x/v1", "anthropic")
    told = body(ASK)
    assert told["system"] == [{"type": "text", "text": "Be brief."}]
    assert told["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}]
    assert member.endpoint.headers["anthropic-version"] == "2026-10-21"


def test_max_tokens_is_always_set_and_temperature_never() -> None:
    assert body(replace(ASK, temperature=0.2))["max_tokens"] == DEFAULT_MAX_TOKENS
    assert "temperature" not in body(replace(ASK, temperature=0.2))
    assert body(replace(ASK, max_tokens=600))["max_tokens"] == 600


def test_effort_and_schema_share_output_config() -> None:
    told = body(replace(ASK, schema=SCHEMA, effort="low"))
    assert told["output_config"] == {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}
    assert told["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert not body(ASK).keys() & {"output_config", "thinking"}


# The cache


@pytest.mark.behaviour("issue-5-cache-marks")
def test_a_cache_marker_follows_the_shared_packet() -> None:
    told = body(SHOWN, prompt_cache=True)
    first, second = told["messages"][0]["content"]
    assert first == {"type": "text", "text": PACKET, "cache_control": {"type": "ephemeral"}}
    assert second == {"type": "text", "text": "You are Alpha."}
    assert json.dumps(told).count("cache_control") == 1


@pytest.mark.behaviour("29-cache-points")
def test_a_continued_conversation_is_marked_at_the_ends_of_user_messages() -> None:
    turns = ({"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Why?"})
    told = body(replace(SHOWN, messages=(*SHOWN.messages, *turns), cache_points=(0, 1, 2)), prompt_cache=True)
    marked = [["cache_control" in block for block in turn["content"]] for turn in told["messages"]]
    assert marked == [[True, True], [False], [True]]


@pytest.mark.behaviour("29-cache-points")
def test_a_request_has_at_most_four_cache_markers() -> None:
    turns = ({"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Why?"}) * 6
    told = body(replace(SHOWN, messages=(*SHOWN.messages, *turns), cache_points=tuple(range(8))), prompt_cache=True)
    assert json.dumps(told).count("cache_control") == 4


@pytest.mark.behaviour("29-cache-points")
@pytest.mark.parametrize(
    ("ask", "prompt_cache"),
    [
        (ASK, True),
        (replace(SHOWN, cache_points=()), True),  # no other request begins so
        (replace(SHOWN, shared=0), True),  # it was truncated
        (replace(SHOWN, bare=True), True),
        (SHOWN, False),
    ],
)
def test_otherwise_there_are_no_cache_markers(ask: Ask, prompt_cache: bool) -> None:
    assert "cache_control" not in json.dumps(body(ask, prompt_cache=prompt_cache))


@pytest.mark.behaviour("issue-5-cache-marks")
async def test_seats_share_the_cache_and_usage_reports_writes_and_reads(provider: FakeProvider) -> None:
    other = replace(SHOWN, messages=(SHOWN.messages[0], {"role": "user", "content": f"{PACKET}You are Beta."}))
    first, _ = await asked(seated(provider, "anthropic", prompt_cache=True), SHOWN)
    second, _ = await asked(seated(provider, "anthropic", prompt_cache=True), other)
    kept = (len("Be brief.") + len(PACKET)) // 4
    assert (first.usage.written, first.usage.cached) == (kept, 0)
    assert (second.usage.written, second.usage.cached) == (0, kept)
    assert first.usage.input == provider.log[0].tokens["in"] > kept
    assert provider.bill["cached"] == provider.bill["written"] == kept


# Answers


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("end_turn", "stop"), ("stop_sequence", "stop"), ("tool_use", "stop"), ("max_tokens", "length"), ("refusal", "refused"),
     ("model_context_window_exceeded", "length"), ("pause_turn", "length"), ("a_new_reason", "stop")],
)  # fmt: skip
async def test_every_stop_reason_is_mapped(provider: FakeProvider, reason: str, finish: str) -> None:
    provider.script("m1", Reply(finish=reason))
    assert (await asked(seated(provider, "anthropic")))[0].finish == finish


async def test_a_stream_needs_message_stop_even_if_http_ends_cleanly(provider: FakeProvider) -> None:
    provider.script("m1", Reply(done=False))
    caught = await fault(seated(provider, "anthropic"))
    assert (caught.kind, caught.detail) == ("cut", "the stream ended without its terminator")


def test_unknown_events_and_fields_are_ignored() -> None:
    heard = MessagesParser(lambda piece: None)
    for event in (
        {"type": "message_start", "message": {"id": "msg_1", "model": "m1", "usage": {"input_tokens": 3}, "news": 1}},
        {"type": "something_new", "delta": {"text": "never"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "holograph", "text": "never"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Tabs.", "more": {}}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2, "new": {"a": 1}}},
        {"type": "message_stop", "why": "because"},
    ):
        heard.feed_json(json.dumps(event).encode(), heard.parse_event)
    answer = heard.build_answer(str)
    assert (answer.text, answer.id, answer.usage) == ("Tabs.", "msg_1", Usage(3, 2))


# Errors


def said(message: str, kind: str = "invalid_request_error", **details: Any) -> Any:
    error = {"type": kind, "message": message} | ({"details": details} if details else {})
    return {"type": "error", "error": error, "request_id": "req_1"}


@pytest.mark.behaviour("wire.status-decides-the-kind")
@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (
            400,
            said("Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."),
            "quota",
        ),
        (400, said("You have reached your specified API usage limits. You will regain access on 2027-01-01."), "quota"),
        (402, said("pay first", "billing_error"), "quota"),
        (429, said("slower", "rate_limit_error", error_code="enforced_spend_limit_reached"), "quota"),
        (429, said("slower", "rate_limit_error", error_code="ramp_limit_exceeded"), "rate"),
        (400, said("prompt is too long: 210000 tokens > 200000 maximum"), "size"),
        (400, said("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), "size"),
        (413, said("Request exceeds the maximum size", "request_too_large"), "size"),
        (400, said("max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens"), "parameter"),
        (400, said("output_config.effort: this model does not support the effort parameter"), "parameter"),
        (401, said("invalid x-api-key", "authentication_error"), "auth"),
        (404, said("model: claude-9", "not_found_error"), "model"),
        (529, said("Overloaded", "overloaded_error"), "overload"),
    ],
)
async def test_vendor_errors_map_to_fault_kinds(provider: FakeProvider, status: int, error: Any, kind: str) -> None:
    provider.script("m1", Reply(status=status, error=error))
    assert (await fault(seated(provider, "anthropic"))).kind == kind
