"""Wire for the Anthropic Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from council.members.base import UNCAPPED
from council.members.wires.hearing import Hearing
from council.members.wires.member import OnWire
from council.members.wires.schemas import ANTHROPIC, fitted
from council.types import Ask, Json, Message, Usage

VERSION = "2026-10-21"  # this version has no temperature parameter
MARK = {"type": "ephemeral"}  # the vendor may cache the prompt up to this block


class Messages(Hearing):
    """Parser for events from message_start to message_stop. A stream without message_stop is incomplete."""

    finishes: ClassVar[Mapping[str, str]] = {
        "max_tokens": "length", "model_context_window_exceeded": "length", "pause_turn": "length", "refusal": "refused",
    }  # fmt: skip

    def event(self, event: Json) -> str:
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._delta(event["delta"])
        if kind == "content_block_start":
            return self._block(event["content_block"])
        if kind == "message_start":
            self._note(event["message"])
        elif kind == "message_delta":
            self._end(event.get("delta") or {}, event.get("usage"))
        elif kind == "message_stop":
            self.done = True
        elif kind == "error":
            self.error = event.get("error") or event
        return ""

    def whole(self, body: Json) -> str:
        if body.get("type") == "error":
            return self.event(body)
        self._note(body)
        self._end(body, body.get("usage"))
        return "".join(self._block(block) for block in body["content"])

    def closed(self, framed: bool) -> bool:
        return self.done

    def _delta(self, delta: Json) -> str:
        if "text" in delta:
            return str(delta["text"])
        self.thought = True  # thinking, its signature or a tool call: activity, but not answer text
        return ""

    def _block(self, block: Json) -> str:
        if block.get("type") == "text":
            return str(block.get("text") or "")
        self.thought = True
        return ""

    def _note(self, message: Json) -> None:
        self.model, self.id = str(message.get("model") or ""), str(message.get("id") or "")
        # output_tokens in message_start is a placeholder; the real count comes in message_delta.
        self.count({name: value for name, value in (message.get("usage") or {}).items() if name != "output_tokens"})

    def _end(self, delta: Json, usage: Json | None) -> None:
        self.count(usage or {})
        self.finish = str(delta.get("stop_reason") or self.finish)
        if self.finish == "refusal" and (why := (delta.get("stop_details") or {}).get("explanation")):
            self.refusal.append(str(why))

    def usage(self) -> Usage:
        """Return the usage. Cached and cache-written tokens are reported separately from input_tokens, so add them."""
        counts = self.counts
        cached, written = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
        read = counts.get("input_tokens", 0) + cached + written
        return Usage(read, counts.get("output_tokens", 0), cached, "output_tokens" in counts, written)


class AnthropicMember(OnWire):
    """Member behind a Messages endpoint."""

    hears = Messages
    path = "/messages"

    def headers(self, key: str) -> Mapping[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def body(self, ask: Ask) -> Json:
        messages = self.spoken(ask)
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        turns = [message for message in messages if message["role"] != "system"]
        body: Json = {"model": self.model, "max_tokens": self.most(ask, UNCAPPED), "stream": True}
        shared = 0 if ask.bare else ask.shared
        if system:
            body["system"] = [_block(system, marked=bool(shared))]
        body["messages"] = [_turn(turn, shared if n == 0 else 0) for n, turn in enumerate(turns)]
        return body | self._thinking(ask) | self._output(ask)

    def _thinking(self, ask: Ask) -> Json:
        # Without displayed thinking, a thinking model looks like a stalled one.
        return {"thinking": {"type": "adaptive", "display": "summarized"}} if self.effort(ask) else {}

    def _output(self, ask: Ask) -> Json:
        output: Json = {}
        if effort := self.effort(ask):
            output["effort"] = effort
        if self.way(ask) == "json_schema":
            output["format"] = {"type": "json_schema", "schema": fitted(ask.schema, ANTHROPIC)}
        return {"output_config": output} if output else {}


def _turn(turn: Message, shared: int) -> Json:
    """Build a turn. Split off the part that all seats share, so that it is cached once for all of them."""
    text = turn["content"]
    parts = [_block(text[:shared], marked=True), _block(text[shared:])] if 0 < shared < len(text) else [_block(text)]
    return {"role": turn["role"], "content": parts}


def _block(text: str, *, marked: bool = False) -> Json:
    block: dict[str, Any] = {"type": "text", "text": text}
    return block | ({"cache_control": MARK} if marked else {})
