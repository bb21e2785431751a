"""Wire for OpenAI's Responses API. Answers are not stored by the vendor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

from council.members.base import OnDelta
from council.members.wires.openai import (
    InputFilePart,
    InputImagePart,
    OpenAIMember,
    OpenAIRequest,
    Turn,
    file_name,
    read_usage,
)
from council.members.wires.stream_parser import StreamParser, read_text
from council.members.wires.wire import data_url
from council.types import Answer, Ask, Attachment, Json, JsonSchema, Usage

BODY_START = b'{"store":'  # of the requests of this wire; a stored request of the chat wire begins with its model
UNFINISHED = "incomplete"  # finish of an answer that the vendor calls incomplete without a reason


class Reasoning(TypedDict, total=False):
    effort: str
    summary: Literal["auto"]


class TextFormat(TypedDict):
    type: Literal["json_object", "json_schema"]
    name: NotRequired[str]
    strict: NotRequired[bool]
    schema: NotRequired[JsonSchema]


class TextConfig(TypedDict):
    format: TextFormat


class ResponsesRequest(OpenAIRequest, total=False):
    store: bool
    input: list[Turn]
    max_output_tokens: int
    reasoning: Reasoning
    text: TextConfig


class ResponsesParser(StreamParser):
    """Parser for events up to response.completed, .incomplete or .failed; a stream without these is incomplete."""

    finish_reasons: ClassVar[Mapping[str, str]] = {
        "max_output_tokens": "length",
        UNFINISHED: "length",
        "content_filter": "refused",
    }

    def __init__(self, on_delta: OnDelta) -> None:
        super().__init__(on_delta)
        self.commentary: dict[Any, str] = {}  # output index → text of a message that is not the final answer

    def parse_event(self, event: Json) -> str:
        kind = event.get("type")
        if kind == "response.output_text.delta":
            return self._parse_text(event)
        if kind in ("response.completed", "response.incomplete", "response.failed", "response.cancelled"):
            return self._parse_end(event["response"])
        if kind == "response.refusal.delta":
            self.refusal.append(read_text(event.get("delta")))
            self.has_thinking = True
        elif kind == "response.output_item.added":
            item, index = event["item"], event.get("output_index")
            if item.get("phase") == "commentary" and isinstance(index, int):
                self.commentary.setdefault(index, "")
            elif item.get("type") != "message":
                self.has_thinking = True
        elif kind in ("response.created", "response.in_progress", "response.queued"):
            self._parse_response(event["response"])
        elif kind == "error" or event.get("error"):
            self.error = event.get("error") or event
        elif isinstance(kind, str) and kind.endswith(".delta"):
            self.has_thinking = True  # reasoning, its summary, or a tool call: activity, but not answer text
        return ""

    def parse_body(self, body: Json) -> str:
        return self._parse_end(body) if "output" in body or "status" in body else self.parse_event(body)

    def is_complete(self, framed: bool) -> bool:
        return self.is_done

    def flush(self) -> str:
        """Return the text of messages that were marked as commentary if there is no other answer."""
        return "" if self.pieces or self.refusal else "".join(self.commentary.values())

    def _parse_text(self, event: Json) -> str:
        text, index = read_text(event.get("delta")), event.get("output_index")
        if self.commentary and index in self.commentary:
            self.commentary[index] += text
            self.has_thinking = True
            return ""
        return text

    def _parse_response(self, response: Json) -> None:
        self.model, self.id = str(response.get("model") or ""), str(response.get("id") or "")
        if isinstance(usage := response.get("usage"), dict):
            self.update_counts(usage)
            self.update_counts(usage.get("input_tokens_details"))

    def _parse_end(self, response: Json) -> str:
        """Store the end of an answer. Return its text if no text was streamed."""
        self._parse_response(response)
        self.is_done = True
        status = response.get("status")
        if error := response.get("error"):
            self.error = error
        elif status == UNFINISHED:
            reason = (response.get("incomplete_details") or {}).get("reason")
            self.finish = str(reason) if reason in self.finish_reasons else UNFINISHED
        elif status not in (None, "completed"):  # "failed" without an error, "cancelled", or "queued" in the background
            self.error = {"message": f'the response has the status "{status}"'}
        return "" if self.pieces or self.refusal else self._parse_output(response.get("output") or [])

    def _parse_output(self, output: list[Json]) -> str:
        """Return the text of a whole output, and store its refusals. Skip commentary if there is a final answer."""
        messages = [item for item in output if item.get("type") == "message"]
        if len(messages) < len(output):
            self.has_thinking = True
        final = [item for item in messages if item.get("phase") != "commentary"] or messages
        parts = [part for item in final for part in item.get("content") or ()]
        self.refusal += [read_text(part.get("refusal")) for part in parts if part.get("type") == "refusal"]
        return "".join(read_text(part.get("text")) for part in parts if part.get("type") == "output_text")

    def usage(self) -> Usage:
        return read_usage(self.counts, "input_tokens", "output_tokens")


class ResponsesMember(OpenAIMember):
    parser = ResponsesParser
    path = "/responses"
    text_type = "input_text"

    def __init__(self, name: str, **common: Any) -> None:
        super().__init__(name, **common)
        self._common = common

    def body(self, ask: Ask) -> ResponsesRequest:
        body: ResponsesRequest = {"store": False, "model": self.model, "input": self.build_turns(ask), "stream": True}
        if ask.temperature is not None and self.takes_temperature and not self.thinks:
            body["temperature"] = ask.temperature
        if (max_tokens := self.max_output_tokens(ask)) is not None:
            body["max_output_tokens"] = max_tokens
        self.set_cache_options(body, ask)
        if reasoning := self._reasoning(ask):
            body["reasoning"] = reasoning
        if text_format := self._text_format(ask):
            body["text"] = {"format": text_format}
        return body

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        """Send a request. One that an earlier version stored for the chat wire goes to that wire."""
        if body.startswith(BODY_START):
            return await super().send(body, on_delta)
        chat = OpenAIMember(self.name, **self._common)
        try:
            return await chat.send(body, on_delta)
        finally:
            await chat.close()

    def make_part(self, attachment: Attachment) -> InputImagePart | InputFilePart:
        if attachment.kind == "image":
            return {"type": "input_image", "image_url": data_url(attachment), "detail": "auto"}
        return {"type": "input_file", "filename": file_name(attachment), "file_data": data_url(attachment)}

    def _reasoning(self, ask: Ask) -> Reasoning | None:
        """Request summaries, because without them a thinking model looks like a stalled one."""
        effort = self.resolve_effort(ask)
        if ask.bare or not (effort or self.thinks):
            return None
        return {"effort": effort, "summary": "auto"} if effort else {"summary": "auto"}

    def _text_format(self, ask: Ask) -> TextFormat | None:
        mode = self.structured_mode(ask)
        if mode == "json_object":
            return {"type": "json_object"}
        return {"type": "json_schema", **self.reply_schema(ask)} if mode == "json_schema" else None
