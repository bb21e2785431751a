"""The same call with each vendor's SDK, and the SDK's view of the answer."""

from __future__ import annotations

import base64
import io
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import errors, types
from openai.types import chat, responses
from pydantic import BaseModel

from council.members.wires.wire import THINKING_TOKENS
from council.types import Ask, Attachment, Usage
from tests.fake_provider import FakeProvider

KEY = "-".join(["sk", "test", "0123456789abcdef"])
MODEL = "m1"
CAP = 8192


@dataclass
class Heard:
    """Result of a stream according to an SDK, with the vendor's finish reason."""

    text: str = ""
    finish: str | None = None
    usage: Usage | None = None
    id: str = ""
    refusal: str = ""
    error: str = ""


Call = Callable[[FakeProvider, Ask, type[BaseModel] | None], Awaitable[Heard]]


def split(ask: Ask) -> tuple[str, list[dict[str, str]]]:
    system = [said["content"] for said in ask.messages if said["role"] == "system"]
    return "\n\n".join(system), [said for said in ask.messages if said["role"] != "system"]


def file_param(one: Attachment) -> Any:
    return {"filename": one.path.rpartition("/")[2], "file_data": data_url(one)}


def data_url(one: Attachment) -> str:
    return f"data:{one.media_type};base64,{one.data}"


def with_parts(ask: Ask, messages: list[Any], text_type: str, part: Callable[[Attachment], Any]) -> list[Any]:
    """Return the messages with the attachments before the text of the first user message."""
    if not ask.attachments:
        return messages
    first = next(n for n, said in enumerate(messages) if said["role"] == "user")
    parts = [*map(part, ask.attachments), {"type": text_type, "text": messages[first]["content"]}]
    return [*messages[:first], {**messages[first], "content": parts}, *messages[first + 1 :]]


def _chat_part(one: Attachment) -> Any:
    if one.kind == "image":
        url: chat.chat_completion_content_part_image_param.ImageURL = {"url": data_url(one)}
        return chat.ChatCompletionContentPartImageParam(type="image_url", image_url=url)
    return chat.chat_completion_content_part_param.File(type="file", file=file_param(one))


def _response_part(one: Attachment) -> Any:
    if one.kind == "image":
        return responses.ResponseInputImageParam(type="input_image", image_url=data_url(one), detail="auto")
    return {"type": "input_file", **file_param(one)}


def _message_part(one: Attachment) -> Any:
    source = {"type": "base64", "media_type": one.media_type, "data": io.BytesIO(base64.b64decode(one.data))}
    return {"type": "image" if one.kind == "image" else "document", "source": source}  # the SDK encodes the file


def _content_parts(ask: Ask, n: int) -> list[types.Part]:
    attached = ask.attachments if n == 0 else ()
    return [types.Part.from_bytes(data=base64.b64decode(one.data), mime_type=one.media_type) for one in attached]


async def by_openai(provider: FakeProvider, ask: Ask, form: type[BaseModel] | None = None) -> Heard:
    client = openai.AsyncOpenAI(base_url=provider.base("openai"), api_key=KEY, max_retries=0)
    messages = with_parts(ask, list(ask.messages), "text", _chat_part)
    wish: dict[str, Any] = {"model": MODEL, "messages": messages, "stream_options": {"include_usage": True}}
    if ask.temperature is not None:
        wish["temperature"] = ask.temperature
    if ask.max_tokens is not None:
        wish["max_tokens"] = ask.max_tokens + (THINKING_TOKENS[ask.effort] if ask.effort else 0)
    if ask.effort:
        wish["reasoning_effort"] = ask.effort
    if form:
        wish["response_format"] = form
    heard = Heard()
    try:
        async with client:
            if form:
                async with client.chat.completions.stream(**wish) as typed:
                    async for event in typed:
                        if event.type == "chunk":
                            _take_chunk(heard, event.chunk)
            else:
                async for chunk in await client.chat.completions.create(stream=True, **wish):
                    _take_chunk(heard, chunk)
    except openai.LengthFinishReasonError:
        pass  # a truncated typed reply; all of its text was received
    except openai.APIError as error:
        heard.error = error.message
    return heard


def _take_chunk(heard: Heard, chunk: Any) -> None:
    heard.id = chunk.id
    for choice in chunk.choices:
        heard.text += choice.delta.content or ""
        heard.refusal += choice.delta.refusal or ""
        heard.finish = choice.finish_reason or heard.finish
    if told := chunk.usage:
        details = told.prompt_tokens_details
        cached, written = (details.cached_tokens or 0, details.cache_write_tokens or 0) if details else (0, 0)
        heard.usage = Usage(told.prompt_tokens, told.completion_tokens, cached, True, written)


async def by_responses(provider: FakeProvider, ask: Ask, form: type[BaseModel] | None = None) -> Heard:
    client = openai.AsyncOpenAI(base_url=provider.base("openai"), api_key=KEY, max_retries=0)
    turns = with_parts(ask, list(ask.messages), "input_text", _response_part)
    wish: dict[str, Any] = {"model": MODEL, "input": turns, "store": False}
    if ask.temperature is not None:
        wish["temperature"] = ask.temperature
    if ask.max_tokens is not None:
        wish["max_output_tokens"] = ask.max_tokens + (THINKING_TOKENS[ask.effort] if ask.effort else 0)
    if ask.effort:
        wish["reasoning"] = {"effort": ask.effort, "summary": "auto"}
    heard = Heard()
    try:
        async with client:
            if form:
                async with client.responses.stream(text_format=form, **wish) as typed:
                    async for _ in typed:
                        pass
            else:
                async for event in await client.responses.create(stream=True, **wish):
                    _take_event(heard, event)
    except openai.APIError as error:
        heard.error = error.message
    return heard


def _take_event(heard: Heard, event: Any) -> None:
    if event.type == "response.output_text.delta":
        heard.text += event.delta
    elif event.type == "response.refusal.delta":
        heard.refusal += event.delta
    elif event.type == "error":
        heard.error = event.message
    elif event.type in ("response.completed", "response.incomplete", "response.failed"):
        response = event.response
        details, told = response.incomplete_details, response.usage
        heard.id, heard.finish = response.id, (details.reason if details else None) or response.status
        heard.error = response.error.message if response.error else ""
        more = told.input_tokens_details
        heard.usage = Usage(told.input_tokens, told.output_tokens, more.cached_tokens, True, more.cache_write_tokens)


async def by_anthropic(provider: FakeProvider, ask: Ask, form: type[BaseModel] | None = None) -> Heard:
    client = anthropic.AsyncAnthropic(base_url=provider.address, api_key=KEY, max_retries=0)
    system, turns = split(ask)
    messages = with_parts(ask, turns, "text", _message_part)
    wish: dict[str, Any] = {"model": MODEL, "messages": messages, "max_tokens": ask.max_tokens or CAP}
    if system:
        wish["system"] = system
    if ask.effort:
        wish["max_tokens"] += THINKING_TOKENS[ask.effort]
        wish |= {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": ask.effort}}
    if form:
        wish["output_format"] = form
    heard = Heard()
    try:
        async with client, client.messages.stream(**wish) as stream:
            message = await stream.get_final_message()
    except anthropic.APIStatusError as error:
        heard.error = error.api_message or ""
        return heard
    heard.id, heard.finish = message.id, message.stop_reason
    heard.text = "".join(block.text for block in message.content if block.type == "text")
    heard.refusal = (message.stop_details.explanation or "") if message.stop_details else ""
    told = message.usage
    cached, written = told.cache_read_input_tokens or 0, told.cache_creation_input_tokens or 0
    heard.usage = Usage(told.input_tokens + cached + written, told.output_tokens, cached, True, written)
    return heard


async def by_google(provider: FakeProvider, ask: Ask, form: type[BaseModel] | None = None) -> Heard:
    # Its default is v1, but the models of our catalogue are previews, which are in v1beta.
    there = types.HttpOptions(base_url=provider.address, api_version="v1beta")
    client = genai.Client(api_key=KEY, http_options=there)
    system, turns = split(ask)
    roles = {"user": "user", "assistant": "model"}
    contents = [
        types.Content(role=roles[said["role"]], parts=[*_content_parts(ask, n), types.Part(text=said["content"])])
        for n, said in enumerate(turns)
    ]
    config = types.GenerateContentConfig(system_instruction=system or None, temperature=ask.temperature)
    if ask.max_tokens is not None:
        config.max_output_tokens = ask.max_tokens + (THINKING_TOKENS[ask.effort] if ask.effort else 0)
    if ask.effort:
        level = types.ThinkingLevel(ask.effort.upper())
        config.thinking_config = types.ThinkingConfig(include_thoughts=True, thinking_level=level)
    if form:
        config.response_mime_type, config.response_json_schema = "application/json", form.model_json_schema()
    heard = Heard()
    try:
        async for chunk in await client.aio.models.generate_content_stream(
            model=MODEL, contents=contents, config=config
        ):
            _take_response(heard, chunk)
    except errors.APIError as error:
        heard.error = error.message or ""
    return heard


def _take_response(heard: Heard, chunk: types.GenerateContentResponse) -> None:
    heard.id = chunk.response_id or heard.id
    for candidate in chunk.candidates or []:
        parts = (candidate.content.parts if candidate.content else None) or []
        heard.text += "".join(part.text or "" for part in parts if not part.thought)
        heard.finish = candidate.finish_reason.value if candidate.finish_reason else heard.finish
    if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
        heard.finish = chunk.prompt_feedback.block_reason.value
        heard.refusal = chunk.prompt_feedback.block_reason_message or ""
    if told := chunk.usage_metadata:
        written = (told.candidates_token_count or 0) + (told.thoughts_token_count or 0)
        heard.usage = Usage(told.prompt_token_count or 0, written, told.cached_content_token_count or 0)


SDKS: dict[str, Call] = {
    "openai": by_openai,
    "openai-responses": by_responses,
    "anthropic": by_anthropic,
    "google": by_google,
}
