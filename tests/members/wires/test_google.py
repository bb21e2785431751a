"""generateContent wire: vendor-specific behaviour."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from council.errors import Fault
from council.members.wires.google import GenerateContentParser
from council.types import Answer, Ask, Usage
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.members import ASK, KEY, SCHEMA, asked, fault, member_at, seated
from tests.fakes.raw import OPEN_ENDED, endpoint

pytestmark = pytest.mark.anyio


def body(ask: Ask, **options: Any) -> Any:
    return json.loads(member_at("http://x/v1beta", "google", **options).prepare(ask))


def heard(*events: Any) -> Answer:
    hearing = GenerateContentParser(lambda piece: None)
    for event in events:
        hearing.feed_json(json.dumps(event).encode(), hearing.parse_event)
    return hearing.build_answer(str)


def said(*parts: Any, finish: str | None = None, **more: Any) -> Any:
    candidate = {"content": {"parts": list(parts), "role": "model"}} | ({"finishReason": finish} if finish else {})
    return {"candidates": [candidate], **more}


async def test_the_model_is_in_the_url_and_the_key_is_not(provider: FakeProvider) -> None:
    await asked(seated(provider, "google", model="models/gemini-9"))
    (seen,) = provider.log
    assert seen.path == "/v1beta/models/gemini-9:streamGenerateContent?alt=sse"
    assert (seen.model, "model" in seen.body) == ("gemini-9", False)
    assert seen.headers["x-goog-api-key"] == KEY


@pytest.mark.behaviour("issue-5-same-bytes")
async def test_stored_bytes_go_to_the_model_of_the_member_that_sends_them(provider: FakeProvider) -> None:
    stored = seated(provider, "google").prepare(ASK)
    member = seated(provider, "google", model="m2")
    await member.send(stored, lambda piece: None)
    await member.close()
    assert [(seen.model, seen.raw) for seen in provider.log] == [("m2", stored)]


def test_a_model_name_cannot_change_the_path() -> None:
    assert member_at("http://x/v1beta", "google", model="../a?b").path.startswith("/models/..%2Fa%3Fb:stream")


def test_the_system_prompt_is_separate_and_the_assistant_role_is_model() -> None:
    turns = (*ASK.messages, {"role": "assistant", "content": "Because."}, {"role": "user", "content": "Really?"})
    told = body(replace(ASK, messages=turns))
    assert told["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert [(turn["role"], turn["parts"][0]["text"]) for turn in told["contents"]] == [
        ("user", "Why?"), ("model", "Because."), ("user", "Really?"),
    ]  # fmt: skip
    assert "generationConfig" not in told


def test_settings_are_in_generation_config() -> None:
    told = body(replace(ASK, schema=SCHEMA, temperature=0.2, max_tokens=600, effort="low"))
    assert told["generationConfig"] == {
        "temperature": 0.2, "maxOutputTokens": 600 + 4096, "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA, "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
    }  # fmt: skip
    assert body(ASK, thinks=True)["generationConfig"] == {"thinkingConfig": {"includeThoughts": True}}


# Answers


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("STOP", "stop"), ("MAX_TOKENS", "length"), ("CONTINUATION", "length"), ("SAFETY", "refused"), ("RECITATION", "refused"),
     ("BLOCKLIST", "refused"), ("PROHIBITED_CONTENT", "refused"), ("SPII", "refused"), ("LANGUAGE", "refused"),
     ("A_NEW_REASON", "stop")],
)  # fmt: skip
def test_every_finish_reason_is_mapped(reason: str, finish: str) -> None:
    assert heard(said({"text": "Tabs."}, finish=reason)).finish == finish


@pytest.mark.parametrize("reason", ["OTHER", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL"])
def test_an_error_finish_reason_is_a_cut(reason: str) -> None:
    with pytest.raises(Fault) as caught:
        heard(said({"text": "Ta"}, finish=reason))
    assert (caught.value.kind, caught.value.said, reason in caught.value.detail) == ("cut", "Ta", True)


@pytest.mark.parametrize("message", [{}, {"blockReasonMessage": "not this"}])
def test_a_blocked_prompt_is_a_refusal(message: Any) -> None:
    feedback = {"blockReason": "SAFETY", **message}
    answer = heard({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9}})
    assert (answer.finish, answer.usage) == ("refused", Usage(9, 0))
    assert answer.text == message.get("blockReasonMessage", "the prompt was blocked: SAFETY")


@pytest.mark.behaviour("issue-5-four-counts")
def test_thoughts_are_counted_as_output_and_cached_tokens_as_input() -> None:
    counts = {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 80,
        "candidatesTokenCount": 10,
        "thoughtsTokenCount": 40,
    }
    assert heard(said({"text": "T"}, finish="STOP", usageMetadata=counts)).usage == Usage(100, 50, 80)
    assert heard(said(finish="STOP", usageMetadata={"promptTokenCount": 5, "totalTokenCount": 12})).usage == Usage(5, 7)


def test_text_after_the_first_finish_reason_is_part_of_the_answer() -> None:
    events = [said({"text": word}, finish="STOP") for word in ("All ", "of ", "it.")]
    assert heard(*events).text == "All of it."


def sent(event: Any) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\r\n\r\n"


async def test_late_text_after_a_finish_reason_is_awaited() -> None:
    words = [sent(said({"text": word}, finish="STOP")) for word in ("All ", "of ", "it.")]
    async with endpoint([OPEN_ENDED, words[0], 0.05, words[1], 0.05, words[2]]) as url:
        assert (await asked(member_at(url, "google")))[0].text == "All of it."


async def test_a_connection_left_open_after_the_end_does_not_delay_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(GenerateContentParser, "drain_timeout", 0.1)
    async with endpoint([OPEN_ENDED, sent(said({"text": "Tabs."}, finish="STOP")), 5.0]) as url:
        assert (await asked(member_at(url, "google", idle=0.05)))[0].text == "Tabs."


def test_a_body_that_is_a_list_of_events_is_an_answer() -> None:
    hearing = GenerateContentParser(lambda piece: None)
    events = [said({"text": "All "}), said({"text": "of it."}, finish="STOP", modelVersion="g", responseId="r1")]
    hearing.feed_json(json.dumps(events).encode(), hearing.parse_body)
    answer = hearing.build_answer(str)
    assert (answer.text, answer.model) == ("All of it.", "g")


def test_unknown_events_and_fields_are_ignored() -> None:
    answer = heard(
        {"modelVersion": "g", "responseId": "r1", "weather": "fine"},
        said({"executableCode": {"code": "1"}}, {"text": "Tabs.", "news": True}),
        said({"text": "hm", "thought": True}, finish="STOP"),
    )
    assert (answer.text, answer.id) == ("Tabs.", "r1")


# Errors


def error(status: str, message: str, *details: Any) -> Any:
    return {"error": {"code": 0, "message": message, "status": status, "details": list(details)}}


WAIT = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
QUOTA = "You exceeded your current quota, please check your plan and billing details."


def exceeded(quota: str) -> Any:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}


@pytest.mark.behaviour("wire.status-decides-the-kind")
@pytest.mark.parametrize(
    ("status", "error", "kind", "after"),
    [
        (429, error("RESOURCE_EXHAUSTED", QUOTA, exceeded("RequestsPerMinutePerProject"), WAIT), "rate", 34.5),
        (429, error("RESOURCE_EXHAUSTED", QUOTA, exceeded("RequestsPerDayPerProject"), WAIT), "quota", 34.5),
        (429, error("RESOURCE_EXHAUSTED", QUOTA), "quota", None),
        (429, error("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."), "rate", None),
        (400, error("INVALID_ARGUMENT", "Bad key.", {"reason": "API_KEY_INVALID"}), "auth", None),
        (400, error("INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."), "auth", None),
        (400, error("INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), "size", None),
        (400, error("INVALID_ARGUMENT", "Thinking level is not supported for this model."), "parameter", None),
        (403, error("PERMISSION_DENIED", "no"), "auth", None),
        (404, error("NOT_FOUND", "models/gemini-9 is not found for API version v1beta"), "model", None),
        (503, error("UNAVAILABLE", "The model is overloaded. Please try again later."), "overload", None),
        (504, error("DEADLINE_EXCEEDED", "too slow"), "cut", None),
        (500, [error("INTERNAL", "an error in a list")], "server", None),
    ],
)  # fmt: skip
async def test_vendor_errors_map_to_fault_kinds(
    provider: FakeProvider, status: int, error: Any, kind: str, after: float | None
) -> None:
    provider.script("m1", Reply(status=status, error=error))
    caught = await fault(seated(provider, "google"))
    assert (caught.kind, caught.retry_after) == (kind, after)
