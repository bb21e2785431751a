"""Wire for the Anthropic Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

from council.members.base import DEFAULT_MAX_TOKENS, CacheRules
from council.members.wires.schema_dialects import ANTHROPIC, convert_schema
from council.members.wires.stream_parser import StreamParser, read_text
from council.members.wires.wire import WireMember, split_at_points, split_system
from council.types import Ask, Attachment, Json, JsonSchema, Usage

API_VERSION = "2026-10-21"  # this version has no temperature parameter
MIN_CACHED_TOKENS = 1024
# Models with another minimum, by the beginning of their names.
MIN_CACHED_TOKENS_OF = {
    "claude-opus-4-5": 4096,
    "claude-opus-4-6": 4096,
    "claude-haiku-4-5": 4096,
    "claude-opus-4-7": 2048,
    "claude-3-haiku": 2048,
    "claude-3-5-haiku": 2048,
}


class CacheMarker(TypedDict):
    """The vendor may cache the prompt up to the block with this marker."""

    type: Literal["ephemeral"]


class TextBlock(TypedDict):
    type: Literal["text"]
    text: str
    cache_control: NotRequired[CacheMarker]


class FileSource(TypedDict):
    type: Literal["base64"]
    media_type: str
    data: str


class FileBlock(TypedDict):
    type: Literal["image", "document"]
    source: FileSource


class Turn(TypedDict):
    role: str
    content: list[TextBlock | FileBlock]


class ThinkingConfig(TypedDict):
    type: Literal["adaptive"]
    display: Literal["summarized"]


class OutputFormat(TypedDict):
    type: Literal["json_schema"]
    schema: JsonSchema


class OutputConfig(TypedDict, total=False):
    effort: str
    format: OutputFormat


class MessagesRequest(TypedDict, total=False):
    """A request. Its fields are set in this order."""

    model: str
    max_tokens: int | None
    stream: bool
    system: list[TextBlock]
    messages: list[Turn]
    thinking: ThinkingConfig
    output_config: OutputConfig


class MessagesParser(StreamParser):
    """Parser for events from message_start to message_stop. A stream without message_stop is incomplete."""

    finish_reasons: ClassVar[Mapping[str, str]] = {
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "pause_turn": "length",
        "refusal": "refused",
    }

    def parse_event(self, event: Json) -> str:
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._parse_delta(event["delta"])
        if kind == "content_block_start":
            return self._parse_block(event["content_block"])
        if kind == "message_start":
            self._parse_message(event["message"])
        elif kind == "message_delta":
            self._parse_end(event.get("delta") or {}, event.get("usage"))
        elif kind == "message_stop":
            self.is_done = True
        elif kind == "error":
            self.error = event.get("error") or event
        return ""

    def parse_body(self, body: Json) -> str:
        if body.get("type") == "error":
            return self.parse_event(body)
        self._parse_message(body)
        self._parse_end(body, body.get("usage"))
        return "".join(self._parse_block(block) for block in body["content"])

    def is_complete(self, framed: bool) -> bool:
        return self.is_done

    def _parse_delta(self, delta: Json) -> str:
        if "text" in delta:
            return read_text(delta["text"])
        self.has_thinking = True  # thinking, its signature or a tool call: activity, but not answer text
        return ""

    def _parse_block(self, block: Json) -> str:
        if block.get("type") == "text":
            return read_text(block.get("text"))
        self.has_thinking = True
        return ""

    def _parse_message(self, message: Json) -> None:
        self.model, self.id = str(message.get("model") or ""), str(message.get("id") or "")
        # output_tokens in message_start is a placeholder; the real count comes in message_delta.
        usage = message.get("usage")
        if isinstance(usage, dict):
            self.update_counts({name: value for name, value in usage.items() if name != "output_tokens"})

    def _parse_end(self, delta: Json, usage: Any) -> None:
        self.update_counts(usage)
        self.finish = str(delta.get("stop_reason") or self.finish)
        if self.finish == "refusal" and (why := (delta.get("stop_details") or {}).get("explanation")):
            self.refusal.append(str(why))

    def usage(self) -> Usage:
        """Return the usage. Cached and cache-written tokens are reported separately from input_tokens, so add them."""
        counts = self.counts
        cached, written = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
        read = counts.get("input_tokens", 0) + cached + written
        return Usage(read, counts.get("output_tokens", 0), cached, "output_tokens" in counts, written)


class AnthropicMember(WireMember):
    parser = MessagesParser
    path = "/messages"
    list_path = "/models?limit=1000"

    def headers(self, key: str) -> Mapping[str, str]:
        return {"anthropic-version": API_VERSION, **({"x-api-key": key} if key else {})}

    def body(self, ask: Ask) -> MessagesRequest:
        system, turns = split_system(self.build_messages(ask))
        body: MessagesRequest = {
            "model": self.model,
            "max_tokens": self.max_output_tokens(ask, DEFAULT_MAX_TOKENS),
            "stream": True,
        }
        if system:
            body["system"] = [_make_block(system)]
        pieces = split_at_points(turns, ask.shared, self.list_cache_points(ask))
        body["messages"] = [
            {"role": turn["role"], "content": [_make_block(text, is_cached=is_point) for text, is_point in parts]}
            for turn, parts in zip(turns, pieces, strict=True)
        ]
        if ask.attachments:
            first = next(turn for turn in body["messages"] if turn["role"] == "user")
            first["content"] = [*map(self.make_part, ask.attachments), *first["content"]]
        if self.resolve_effort(ask):  # without displayed thinking, a thinking model looks like a stalled one
            body["thinking"] = {"type": "adaptive", "display": "summarized"}
        if output := self._output_config(ask):
            body["output_config"] = output
        return body

    def make_part(self, attachment: Attachment) -> FileBlock:
        return {
            "type": "image" if attachment.kind == "image" else "document",
            "source": {"type": "base64", "media_type": attachment.media_type, "data": attachment.data},
        }

    def find_cache_rules(self) -> CacheRules:
        least = (tokens for name, tokens in MIN_CACHED_TOKENS_OF.items() if self.model.startswith(name))
        return CacheRules(next(least, MIN_CACHED_TOKENS), has_points=True)

    def _output_config(self, ask: Ask) -> OutputConfig:
        output: OutputConfig = {}
        if effort := self.resolve_effort(ask):
            output["effort"] = effort
        if self.structured_mode(ask) == "json_schema":
            output["format"] = {"type": "json_schema", "schema": convert_schema(ask.schema, ANTHROPIC)}
        return output


def _make_block(text: str, *, is_cached: bool = False) -> TextBlock:
    block: TextBlock = {"type": "text", "text": text}
    if is_cached:
        block["cache_control"] = {"type": "ephemeral"}
    return block
