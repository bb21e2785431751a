"""Wire for the Gemini generateContent API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypedDict
from urllib.parse import quote

from council.members.base import CacheRules
from council.members.wires.schema_dialects import GOOGLE, convert_schema
from council.members.wires.stream_parser import StreamParser
from council.members.wires.wire import WireMember, split_system
from council.types import Ask, Attachment, Json, JsonSchema, Usage

MIN_CACHED_TOKENS, OLD_MIN_CACHED_TOKENS = 4096, 2048  # the old one is that of Gemini 2
ROLES = {"assistant": "model"}
REFUSAL_REASONS = (
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
    "language",
    "image_safety",
    "model_armor",
)
ERROR_REASONS = (
    "other",
    "malformed_response",
    "malformed_function_call",
    "unexpected_tool_call",
    "too_many_tool_calls",
)


class InlineData(TypedDict):
    mimeType: str
    data: str


class Part(TypedDict, total=False):
    text: str
    inlineData: InlineData


class SystemInstruction(TypedDict):
    parts: list[Part]


class Turn(TypedDict):
    role: str
    parts: list[Part]


class ThinkingConfig(TypedDict, total=False):
    includeThoughts: bool
    thinkingLevel: str


class GenerationConfig(TypedDict, total=False):
    """Parameters of the answer. They are set in this order."""

    temperature: float
    maxOutputTokens: int
    responseMimeType: str
    responseJsonSchema: JsonSchema
    thinkingConfig: ThinkingConfig


class GenerateContentRequest(TypedDict, total=False):
    """A request. Its fields are set in this order."""

    contents: list[Turn]
    systemInstruction: SystemInstruction
    generationConfig: GenerationConfig


class GenerateContentParser(StreamParser):
    """Parser for chunks with candidates. finishReason ends the stream, but text may follow the first one."""

    finish_reasons: ClassVar[Mapping[str, str]] = {
        "max_tokens": "length",
        "continuation": "length",
        **dict.fromkeys(REFUSAL_REASONS, "refused"),
        **dict.fromkeys(ERROR_REASONS, "broken"),
    }
    drain_timeout: ClassVar[float] = 2.0
    has_trailing_events: ClassVar[bool] = True

    def parse_event(self, event: Json) -> str:
        piece = ""
        for candidate in event.get("candidates") or ():
            if candidate.get("index"):  # a second answer, which was not requested
                continue
            for part in (candidate.get("content") or {}).get("parts") or ():
                if part.get("thought"):
                    self.has_thinking = True
                else:
                    piece += part.get("text") or ""
            if finish := candidate.get("finishReason"):
                self.finish, self.is_done = str(finish), True
        if usage := event.get("usageMetadata"):
            self.update_counts(usage)
        feedback = event.get("promptFeedback") or {}
        if reason := feedback.get("blockReason"):
            self.refusal.append(str(feedback.get("blockReasonMessage") or f"the prompt was blocked: {reason}"))
            self.is_done = True
        if not self.model:
            self.model, self.id = str(event.get("modelVersion") or ""), str(event.get("responseId") or "")
        if error := event.get("error"):
            self.error = error
        return piece

    def parse_body(self, body: Any) -> str:
        """Parse one object, or a list of stream events."""
        return "".join(map(self.parse_event, body if isinstance(body, list) else [body]))

    def usage(self) -> Usage:
        """Return the usage. Thinking is counted separately; tokens that appear only in the total are output."""
        read, total = self.counts.get("promptTokenCount", 0), self.counts.get("totalTokenCount", 0)
        read += self.counts.get("toolUsePromptTokenCount", 0)
        written = [self.counts[name] for name in ("candidatesTokenCount", "thoughtsTokenCount") if name in self.counts]
        is_known = bool(written) or bool(total)
        return Usage(read, max(sum(written), total - read), self.counts.get("cachedContentTokenCount", 0), is_known)


class GoogleMember(WireMember):
    """Member behind a generateContent endpoint. The model name is in the URL, not in the body."""

    parser = GenerateContentParser
    list_path = "/models?pageSize=1000"

    def __init__(self, name: str, **common: Any) -> None:
        super().__init__(name, **common)
        self.path = f"/models/{quote(self.model.removeprefix('models/'), safe='')}:streamGenerateContent?alt=sse"

    def headers(self, key: str) -> Mapping[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def body(self, ask: Ask) -> GenerateContentRequest:
        system, messages = split_system(self.build_messages(ask))
        turns: list[Turn] = [
            {"role": ROLES.get(message["role"], message["role"]), "parts": [{"text": message["content"]}]}
            for message in messages
        ]
        if ask.attachments:
            first = next(turn for turn in turns if turn["role"] == "user")
            first["parts"] = [*map(self.make_part, ask.attachments), *first["parts"]]
        body: GenerateContentRequest = {"contents": turns}
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if config := self._generation_config(ask):
            body["generationConfig"] = config
        return body

    def make_part(self, attachment: Attachment) -> Part:
        return {"inlineData": {"mimeType": attachment.media_type, "data": attachment.data}}

    def find_cache_rules(self) -> CacheRules:
        least = OLD_MIN_CACHED_TOKENS if self.model.startswith("gemini-2") else MIN_CACHED_TOKENS
        return CacheRules(least, schema_first=False)

    def _generation_config(self, ask: Ask) -> GenerationConfig:
        config: GenerationConfig = {}
        if ask.temperature is not None:
            config["temperature"] = ask.temperature
        if (max_tokens := self.max_output_tokens(ask)) is not None:
            config["maxOutputTokens"] = max_tokens
        mode = self.structured_mode(ask)
        if mode in ("json_schema", "json_object"):
            config["responseMimeType"] = "application/json"
        if mode == "json_schema":
            config["responseJsonSchema"] = convert_schema(ask.schema, GOOGLE)
        if thinking := self._thinking_config(ask):
            config["thinkingConfig"] = thinking
        return config

    def _thinking_config(self, ask: Ask) -> ThinkingConfig:
        """Request thoughts, because without them a thinking model looks like a stalled one."""
        if ask.bare:
            return {}
        if effort := self.resolve_effort(ask):
            return {"includeThoughts": True, "thinkingLevel": effort.upper()}
        return {"includeThoughts": True} if self.thinks else {}
