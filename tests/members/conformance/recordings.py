"""Recorded answers built from the SDKs' event types: the same cases on every wire."""

from __future__ import annotations

import json
from typing import Any

from anthropic import types as a
from google.genai import types as g
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from tests.members.conformance.vendors import TYPED

Story = list[BaseModel | dict[str, Any]]


def sse(wire: str, story: Story) -> bytes:
    """Return the events as the vendor sends them."""
    said = b""
    for event in story:
        told = event if isinstance(event, dict) else event.model_dump(mode="json", by_alias=True, exclude_none=not wire.startswith("openai"))  # fmt: skip
        data = json.dumps(told, ensure_ascii=False).encode()
        if wire in ("anthropic", "openai-responses"):
            said += f"event: {told['type']}\n".encode()
        said += b"data: " + data + (b"\r\n\r\n" if wire == "google" else b"\n\n")
    return said


# Chat completions


def chunk(delta: Any = None, finish: str | None = None, usage: Any = None, **more: Any) -> ChatCompletionChunk:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    told = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m1", "choices": choices}
    return ChatCompletionChunk.model_validate({**told, "usage": usage, **more})


COUNTED = chunk(usage={"prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29,
                       "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 4},
                       "completion_tokens_details": {"reasoning_tokens": 5}})  # fmt: skip
OPENING = chunk({"role": "assistant", "content": ""}, obfuscation="xYz")


def openai_says(*pieces: str, finish: str = "stop") -> Story:
    return [OPENING, *(chunk({"content": piece}) for piece in pieces), chunk({}, finish), COUNTED]


OPENAI: dict[str, Story] = {
    "plain": openai_says("Tabs, of course."),
    "streamed": openai_says("Ta", "bs, ", "of ", "course", ".", " Ünï — 🙂"),
    "structured": openai_says(*(TYPED[n : n + 7] for n in range(0, len(TYPED), 7))),
    "reasoning": [OPENING, chunk({"reasoning_content": "hm"}), chunk({"reasoning_content": " hm"}), *openai_says("Tabs.")[1:]],
    "refusal": [OPENING, chunk({"refusal": "I cannot "}), chunk({"refusal": "say."}), chunk({}, "stop"), COUNTED],
    "filtered": openai_says("Ta", finish="content_filter"),
    "length": openai_says("Tabs, of cou", finish="length"),
    "error": [OPENING, chunk({"content": "Tabs"}), {"error": {"message": "The server had an error", "type": "server_error"}}],
    "news": [OPENING, chunk({"content": "Tabs.", "hologram": 3}, nova={"a": [1]}), chunk({}, "stop", lights="on"), COUNTED],
}  # fmt: skip


# Responses


def response_event(kind: str, **fields: Any) -> BaseModel:
    told = {"type": f"response.{kind}", "sequence_number": 1, **fields}
    found: BaseModel = TypeAdapter(ResponseStreamEvent).validate_python(told)
    return found


def response_object(status: str = "in_progress", **more: Any) -> Any:
    usage = {"input_tokens": 20, "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 4},
             "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 29}  # fmt: skip
    return {"id": "resp_1", "object": "response", "created_at": 1, "model": "m1", "status": status, "output": [],
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "store": False,
            "usage": None if status == "in_progress" else usage, **more}  # fmt: skip


BEGUN: Story = [
    response_event("created", response=response_object()),
    response_event("in_progress", response=response_object()),
]
FINAL = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": [], "phase": "final_answer"}  # fmt: skip
COMMENT = FINAL | {"id": "msg_0", "phase": "commentary"}


def item_added(item: Any, index: int = 0) -> BaseModel:
    return response_event("output_item.added", output_index=index, item=item)


def response_text(*pieces: str, index: int = 0) -> Story:
    at = {"item_id": "msg_1", "output_index": index, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": []}
    return [
        item_added(FINAL, index),
        response_event("content_part.added", part=part, **at),
        *(response_event("output_text.delta", delta=piece, logprobs=[], **at) for piece in pieces),
        response_event("output_text.done", text="".join(pieces), logprobs=[], **at),
        response_event("content_part.done", part=part | {"text": "".join(pieces)}, **at),
    ]


def response_ended(status: str = "completed", **more: Any) -> BaseModel:
    return response_event(status, response=response_object(status, **more))


def reasoning_items() -> Story:
    item = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    at = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    part = {"type": "summary_text", "text": ""}
    thoughts = [response_event("reasoning_summary_text.delta", delta=piece, **at) for piece in ("hm", " hm")]
    return [item_added(item), response_event("reasoning_summary_part.added", part=part, **at), *thoughts]


def refusal_items(*pieces: str) -> Story:
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    return [item_added(FINAL), *(response_event("refusal.delta", delta=piece, **at) for piece in pieces)]


RESPONSES: dict[str, Story] = {
    "plain": [*BEGUN, *response_text("Tabs, of course."), response_ended()],
    "streamed": [*BEGUN, *response_text("Ta", "bs, ", "of ", "course", ".", " Ünï — 🙂"), response_ended()],
    "structured": [*BEGUN, *response_text(*(TYPED[n : n + 7] for n in range(0, len(TYPED), 7))), response_ended()],
    "reasoning": [*BEGUN, *reasoning_items(), *response_text("Tabs.", index=1), response_ended()],
    "refusal": [*BEGUN, *refusal_items("I cannot ", "say."), response_ended()],
    "filtered": [*BEGUN, *response_text("Ta"), response_ended("incomplete", incomplete_details={"reason": "content_filter"})],
    "length": [*BEGUN, *response_text("Tabs, of cou"), response_ended("incomplete", incomplete_details={"reason": "max_output_tokens"})],
    "error": [*BEGUN, *response_text("Tabs")[:3], response_ended("failed", error={"code": "server_error", "message": "The server had an error"})],
    "news": [*BEGUN, {"type": "response.weather", "sun": True}, {"type": "keepalive", "sequence_number": 4}, *response_text("Tabs."), response_ended()],
}  # fmt: skip


# Messages


def started(**usage: int) -> a.RawMessageStartEvent:
    counts = {"input_tokens": 8, "output_tokens": 1, "cache_read_input_tokens": 8, "cache_creation_input_tokens": 4}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m1", "content": [], "usage": {**counts, **usage}}  # fmt: skip
    return a.RawMessageStartEvent.model_validate({"type": "message_start", "message": message})


def block(index: int, kind: str, *pieces: str) -> Story:
    field = {"text": "text", "thinking": "thinking"}[kind]
    opening = {"type": kind, field: ""} | ({"signature": ""} if kind == "thinking" else {})
    deltas: list[Any] = [{"type": f"{kind}_delta", field: piece} for piece in pieces]
    deltas += [{"type": "signature_delta", "signature": "c2ln"}] if kind == "thinking" else []
    return [
        a.RawContentBlockStartEvent.model_validate({"type": "content_block_start", "index": index, "content_block": opening}),
        {"type": "ping"},
        *(a.RawContentBlockDeltaEvent.model_validate({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas),
        a.RawContentBlockStopEvent(type="content_block_stop", index=index),
    ]  # fmt: skip


def ended(reason: str = "end_turn", **details: Any) -> Story:
    delta = {"stop_reason": reason, **details}
    told = {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 5}}}  # fmt: skip
    return [a.RawMessageDeltaEvent.model_validate(told), a.RawMessageStopEvent(type="message_stop")]


REFUSED = {"type": "refusal", "category": "cyber", "explanation": "I cannot say."}
ANTHROPIC: dict[str, Story] = {
    "plain": [started(), *block(0, "text", "Tabs, of course."), *ended()],
    "streamed": [started(), *block(0, "text", "Ta", "bs, ", "of ", "course", ".", " Ünï — 🙂"), *ended()],
    "structured": [started(), *block(0, "text", *(TYPED[n : n + 7] for n in range(0, len(TYPED), 7))), *ended()],
    "reasoning": [started(), *block(0, "thinking", "hm", " hm"), *block(1, "text", "Tabs."), *ended()],
    "refusal": [started(), *ended("refusal", stop_details=REFUSED)],
    "filtered": [started(), *block(0, "text", "Ta"), *ended("refusal")],
    "length": [started(), *block(0, "text", "Tabs, of cou"), *ended("max_tokens")],
    "error": [started(), *block(0, "text", "Tabs")[:-1], {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}],
    "news": [started(), {"type": "weather_report", "sun": True}, *block(0, "text", "Tabs."), *ended()],
}  # fmt: skip


# generateContent


def response(*parts: Any, finish: str | None = None, **more: Any) -> g.GenerateContentResponse:
    candidate = {"content": {"parts": list(parts), "role": "model"}, "index": 0} | (
        {"finishReason": finish} if finish else {}
    )
    told = {"candidates": [candidate], "modelVersion": "m1", "responseId": "r1", **more}
    return g.GenerateContentResponse.model_validate(told)


def counted(written: int = 4) -> Any:
    return {"promptTokenCount": 20, "candidatesTokenCount": written, "thoughtsTokenCount": 5, "cachedContentTokenCount": 8,
            "totalTokenCount": 25 + written}  # fmt: skip


def google_says(*pieces: str, finish: str = "STOP") -> Story:
    words = [response({"text": piece}, usageMetadata=counted(1)) for piece in pieces]
    return [*words, response({"text": ""}, finish=finish, usageMetadata=counted())]


NEWS: Any = {
    "candidates": [{"content": {"parts": [{"hologram": 3}], "role": "model"}, "mood": 1}],
    "lights": "on",
    "responseId": "r1",
}
GOOGLE: dict[str, Story] = {
    "plain": [response({"text": "Tabs, of course."}, finish="STOP", usageMetadata=counted())],
    "streamed": google_says("Ta", "bs, ", "of ", "course", ".", " Ünï — 🙂"),
    "structured": google_says(*(TYPED[n : n + 7] for n in range(0, len(TYPED), 7))),
    "reasoning": [response({"text": "hm", "thought": True}), response({"text": " hm", "thought": True}), *google_says("Tabs.")],
    "refusal": [g.GenerateContentResponse.model_validate({
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "I cannot say."},
        "usageMetadata": {"promptTokenCount": 20, "totalTokenCount": 20}, "modelVersion": "m1", "responseId": "r1"})],
    "filtered": google_says("Ta", finish="SAFETY"),
    "length": google_says("Tabs, of cou", finish="MAX_TOKENS"),
    "error": [response({"text": "Tabs"}), {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}],
    "news": [NEWS, *google_says("Tabs.")],
}  # fmt: skip

STORIES = {"openai": OPENAI, "openai-responses": RESPONSES, "anthropic": ANTHROPIC, "google": GOOGLE}
ENDS = {"openai": b"data: [DONE]\n\n", "openai-responses": b"", "anthropic": b"", "google": b""}


def recorded(wire: str, name: str) -> bytes:
    """Return the stream of a recording. One that ends with an error has no terminator."""
    return sse(wire, STORIES[wire][name]) + (b"" if name == "error" else ENDS[wire])
