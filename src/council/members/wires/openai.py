"""Wire for chat completions: OpenAI and most other endpoints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

from council.members.base import CacheRules, OnDelta
from council.members.wires.schema_dialects import OPENAI, convert_schema
from council.members.wires.stream_parser import StreamParser, ThinkingFilter, read_text
from council.members.wires.wire import WireMember, data_url, split_at_points
from council.types import Ask, Attachment, Json, JsonSchema, Usage

MIN_CACHED_TOKENS = 1024
GPT_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?![\d.])")
FIRST_WITH_BREAKPOINTS = (5, 6)  # earlier models cache by themselves, and reject the options


class CacheBreakpoint(TypedDict):
    """The vendor may cache the prompt up to the part with this breakpoint."""

    mode: Literal["explicit"]


class TextPart(TypedDict):
    type: str
    text: str
    prompt_cache_breakpoint: NotRequired[CacheBreakpoint]


class ImageUrl(TypedDict):
    url: str


class ImagePart(TypedDict):
    type: Literal["image_url"]
    image_url: ImageUrl


class FileData(TypedDict):
    filename: str
    file_data: str


class FilePart(TypedDict):
    type: Literal["file"]
    file: FileData


class InputImagePart(TypedDict):
    type: Literal["input_image"]
    image_url: str
    detail: Literal["auto"]


class InputFilePart(FileData):
    type: Literal["input_file"]


AttachedPart = ImagePart | FilePart | InputImagePart | InputFilePart


class Turn(TypedDict):
    role: str
    content: str | list[TextPart | AttachedPart]


class StreamOptions(TypedDict):
    include_usage: bool


class ReplySchema(TypedDict):
    name: str
    strict: bool
    schema: JsonSchema


class ResponseFormat(TypedDict):
    type: Literal["json_object", "json_schema"]
    json_schema: NotRequired[ReplySchema]


class OpenAIRequest(TypedDict, total=False):
    """What the requests of both APIs of OpenAI have in common."""

    model: str
    stream: bool
    temperature: float
    prompt_cache_key: str
    prompt_cache_options: CacheBreakpoint


class ChatRequest(OpenAIRequest, total=False):
    """A request. Endpoints differ in the field that limits the output."""

    messages: list[Turn]
    stream_options: StreamOptions
    reasoning_effort: str
    max_tokens: int
    max_completion_tokens: int
    response_format: ResponseFormat


class ChatCompletionParser(StreamParser):
    """Parser for chunks with choices, ended by [DONE]."""

    finish_reasons: ClassVar[Mapping[str, str]] = {
        "length": "length",
        "max_tokens": "length",
        "model_length": "length",
        "content_filter": "refused",
        "refusal": "refused",
        "safety": "refused",
        "error": "broken",
    }

    def __init__(self, on_delta: OnDelta) -> None:
        super().__init__(on_delta)
        self.thinking_filter = ThinkingFilter()  # some servers leave thinking in the content

    def filter_thinking(self, piece: str) -> str:
        text = self.thinking_filter.feed(piece)
        self.may_think = not self.thinking_filter.is_over
        return text

    def flush(self) -> str:
        return self.thinking_filter.flush()

    def parse_event(self, event: Json) -> str:
        if self.model and "error" not in event and not event.get("usage"):
            try:  # most events have one piece of text and nothing else
                (choice,) = event["choices"]
                text = choice["delta"]["content"]
                if text and type(text) is str and not choice.get("finish_reason"):
                    return text
            except (KeyError, TypeError, ValueError, AttributeError):
                pass
        return self._parse_choices(event, "delta")

    def parse_body(self, body: Json) -> str:
        return self._parse_choices(body, "message")

    def _parse_choices(self, event: Json, part: str) -> str:
        piece = ""
        for choice in event.get("choices") or ():
            if choice.get("index"):  # a second answer, which was not requested
                continue
            piece += self._parse_content(choice.get(part) or {})
            if finish := choice.get("finish_reason"):
                self.finish = str(finish)
        usage = event.get("usage")
        if usage is None and isinstance(groq := event.get("x_groq"), dict):
            usage = groq.get("usage")
        if isinstance(usage, dict):
            self.update_counts(usage)
            self.update_counts(usage.get("prompt_tokens_details"))
        if not self.model:
            self.model, self.id = str(event.get("model") or ""), str(event.get("id") or "")
        if error := event.get("error"):
            self.error = error
        return piece

    def _parse_content(self, message: Json) -> str:
        content = message.get("content")
        if content:
            if isinstance(content, str):
                return content
            return "".join(read_text(part.get("text")) for part in content if part.get("type") == "text")
        if refusal := message.get("refusal"):
            self.refusal.append(str(refusal))
            self.has_thinking = True
        elif message.get("reasoning_content") or message.get("reasoning"):
            self.has_thinking = True  # reasoning is activity, unlike a keep-alive
        return ""

    def usage(self) -> Usage:
        return read_usage(self.counts, "prompt_tokens", "completion_tokens")


def read_usage(counts: Mapping[str, int], read: str, written: str) -> Usage:
    """Return the usage, with the vendor's names of its counts. Some endpoints count reasoning only in the total."""
    sent, total = counts.get(read, 0), counts.get("total_tokens", 0)
    output = max(counts.get(written, 0), total - sent)
    return Usage(sent, output, counts.get("cached_tokens", 0), written in counts, counts.get("cache_write_tokens", 0))


class OpenAIMember(WireMember):
    parser: ClassVar[type[StreamParser]] = ChatCompletionParser
    path = "/chat/completions"
    text_type = "text"  # of a text part

    def __init__(self, name: str, *, takes_temperature: bool = True, **common: Any) -> None:
        super().__init__(name, **common)
        self.takes_temperature = takes_temperature

    def headers(self, key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, ask: Ask) -> OpenAIRequest:
        body: ChatRequest = {"model": self.model, "messages": self.build_turns(ask), "stream": True}
        if not ask.bare:
            body["stream_options"] = {"include_usage": True}
        if ask.temperature is not None and self.takes_temperature:
            body["temperature"] = ask.temperature
        if effort := self.resolve_effort(ask):
            body["reasoning_effort"] = effort
        if (max_tokens := self.max_output_tokens(ask)) is not None:
            if self.token_field == "max_completion_tokens":
                body["max_completion_tokens"] = max_tokens
            else:
                body["max_tokens"] = max_tokens
        self.set_cache_options(body, ask)
        if response_format := self._response_format(ask):
            body["response_format"] = response_format
        return body

    def build_turns(self, ask: Ask) -> list[Turn]:
        """Return the messages. With attachments or cache points, the content of a user message is a list of parts."""
        messages, points = self.build_messages(ask), self.list_cache_points(ask)
        turns: list[Turn] = [{"role": message["role"], "content": message["content"]} for message in messages]
        if not ask.attachments and not points:
            return turns
        first = next(n for n, message in enumerate(messages) if message["role"] == "user")
        for n, pieces in enumerate(split_at_points(messages, ask.shared, points)):
            attached = list(map(self.make_part, ask.attachments)) if n == first else []
            if attached or any(is_point for _, is_point in pieces) or (n == first and len(pieces) > 1):
                texts = [self._make_text(text, is_point) for text, is_point in pieces]
                turns[n]["content"] = [*attached, *texts]
        return turns

    def _make_text(self, text: str, is_point: bool) -> TextPart:
        part: TextPart = {"type": self.text_type, "text": text}
        if is_point:
            part["prompt_cache_breakpoint"] = {"mode": "explicit"}
        return part

    def set_cache_options(self, body: OpenAIRequest, ask: Ask) -> None:
        """Set the options of the prompt cache.

        Without the explicit mode, a model with breakpoints writes the whole request to the cache at a higher price,
        where only a request that continues it can read it.
        """
        if self.cache_rules is None or ask.bare:
            return
        if ask.cache_key:
            body["prompt_cache_key"] = ask.cache_key
        if self.cache_rules.has_points:
            body["prompt_cache_options"] = {"mode": "explicit"}

    def find_cache_rules(self) -> CacheRules:
        version = GPT_VERSION.match(self.model)
        numbers = (int(version[1]), int(version[2] or 0)) if version else (0, 0)
        return CacheRules(MIN_CACHED_TOKENS, has_points=numbers >= FIRST_WITH_BREAKPOINTS)

    def make_part(self, attachment: Attachment) -> AttachedPart:
        if attachment.kind == "image":
            return {"type": "image_url", "image_url": {"url": data_url(attachment)}}
        return {"type": "file", "file": {"filename": file_name(attachment), "file_data": data_url(attachment)}}

    def _response_format(self, ask: Ask) -> ResponseFormat | None:
        mode = self.structured_mode(ask)
        if mode == "json_object":
            return {"type": "json_object"}
        return {"type": "json_schema", "json_schema": self.reply_schema(ask)} if mode == "json_schema" else None

    def reply_schema(self, ask: Ask) -> ReplySchema:
        # The grammar of a small local model supports every keyword and needs the limits to terminate.
        schema = ask.schema if self.small and ask.schema else convert_schema(ask.schema, OPENAI)
        return {"name": ask.schema_name or "reply", "strict": True, "schema": schema}


def file_name(attachment: Attachment) -> str:
    return attachment.path.rpartition("/")[2]
