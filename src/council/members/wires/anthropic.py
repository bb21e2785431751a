"""The messages wire: what Anthropic speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from council.members.base import UNCAPPED
from council.members.wires.hearing import Hearing
from council.members.wires.member import OnWire
from council.members.wires.schemas import ANTHROPIC, fitted
from council.types import Ask, Json, Message, Usage

VERSION = "2026-10-21"  # which no longer knows temperature and its like
MARK = {"type": "ephemeral"}  # up to here the vendor may keep what it has read


class Messages(Hearing):
    """Events by type, from message_start to message_stop; without the last one it is no answer."""

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
        self.thought = True  # thinking, its signature, a tool nobody offered: work, but no word of the answer
        return ""

    def _block(self, block: Json) -> str:
        if block.get("type") == "text":
            return str(block.get("text") or "")
        self.thought = True
        return ""

    def _note(self, message: Json) -> None:
        self.model, self.id = str(message.get("model") or ""), str(message.get("id") or "")
        # What is written is counted at the end; before it stands a number that means nothing.
        self.count({name: value for name, value in (message.get("usage") or {}).items() if name != "output_tokens"})

    def _end(self, delta: Json, usage: Json | None) -> None:
        self.count(usage or {})
        self.finish = str(delta.get("stop_reason") or self.finish)
        if self.finish == "refusal" and (why := (delta.get("stop_details") or {}).get("explanation")):
            self.refusal.append(str(why))

    def usage(self) -> Usage:
        """What came from the cache or went into it is counted beside the input, not in it."""
        counts = self.counts
        cached, written = counts.get("cache_read_input_tokens", 0), counts.get("cache_creation_input_tokens", 0)
        read = counts.get("input_tokens", 0) + cached + written
        return Usage(read, counts.get("output_tokens", 0), cached, "output_tokens" in counts, written)


class AnthropicMember(OnWire):
    """One model behind an endpoint that speaks messages."""

    hears = Messages
    path = "/messages"

    def headers(self, key: str) -> Mapping[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def body(self, ask: Ask) -> Json:
        spoken = self.spoken(ask)
        system = "\n\n".join(said["content"] for said in spoken if said["role"] == "system")
        turns = [said for said in spoken if said["role"] != "system"]
        body: Json = {"model": self.model, "max_tokens": self.most(ask, UNCAPPED), "stream": True}
        shared = 0 if ask.bare else ask.shared
        if system:
            body["system"] = [_block(system, marked=bool(shared))]
        body["messages"] = [_turn(turn, shared if n == 0 else 0) for n, turn in enumerate(turns)]
        return body | self._thinking(ask) | self._output(ask)

    def _thinking(self, ask: Ask) -> Json:
        # Shown thoughts are a sign of life; hidden ones are silence.
        return {"thinking": {"type": "adaptive", "display": "summarized"}} if self.effort(ask) else {}

    def _output(self, ask: Ask) -> Json:
        output: Json = {}
        if effort := self.effort(ask):
            output["effort"] = effort
        if self.way(ask) == "json_schema":
            output["format"] = {"type": "json_schema", "schema": fitted(ask.schema, ANTHROPIC)}
        return {"output_config": output} if output else {}


def _turn(turn: Message, shared: int) -> Json:
    """A turn whose beginning all seats share is cut in two, so that it is read once for all of them."""
    text = turn["content"]
    parts = [_block(text[:shared], marked=True), _block(text[shared:])] if 0 < shared < len(text) else [_block(text)]
    return {"role": turn["role"], "content": parts}


def _block(text: str, *, marked: bool = False) -> Json:
    block: dict[str, Any] = {"type": "text", "text": text}
    return block | ({"cache_control": MARK} if marked else {})
