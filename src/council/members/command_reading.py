"""Parse the output of command-line agents: JSON lines, one JSON object at the end, or plain text.

Unknown events and fields are ignored. An answer is complete only after an explicit final event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from council.types import Json, Usage

# Terminal titles and links, colours and cursor moves, single escapes, and all control characters but tab and newline.
ESCAPES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
FINISHES = {"max_tokens": "length", "refusal": "refused"}


@dataclass(slots=True)
class Said:
    """Answer of an agent so far."""

    text: str = ""
    done: bool = False  # the final event, success or failure, was received
    failed: str = ""  # error message of a failed answer
    complaint: str = ""  # last non-fatal error
    finish: str = "stop"
    usage: Usage = field(default_factory=lambda: Usage(known=False))
    model: str = ""
    id: str = ""


Piece = str | None  # content; "" for activity without content; None for neither
Read = Callable[[Said, Json], Piece]


class Listener:
    """Incremental parser of standard output."""

    def __init__(self, read: Read | None, hear: Callable[[str], None]) -> None:
        self.read = read  # None: the output is plain text
        self.hear = hear
        self.said = Said()
        self.rest = b""
        self.whole = bytearray()

    def take(self, data: bytes) -> bool:
        """Parse bytes; return whether they contained content."""
        self.whole += data
        *lines, self.rest = (self.rest + data).split(b"\n")
        if self.read is None:
            return self._plain(data)
        moved = [self._line(line) for line in lines]
        if not self.said.done and lines and lines[-1].strip() in (b"}", b"]"):
            moved.append(self._object())
        return any(moved)

    def end(self) -> Said:
        """Parse the rest as a last line or as one object, and return the result."""
        if self.read is None:
            self.said.text, self.said.done = plain(bytes(self.whole)).strip(), True
        elif not self.said.done:
            self._line(self.rest)
            if not self.said.done:
                self._object()
        return self.said

    @property
    def text(self) -> str:
        """Return the whole output without control sequences."""
        return plain(bytes(self.whole)).strip()

    def _plain(self, data: bytes) -> bool:
        piece = plain(data)
        if piece:
            self.hear(piece)
        return bool(piece.strip())

    def _line(self, line: bytes) -> bool:
        text = plain(line).strip()
        return text.startswith("{") and self._events(text)

    def _object(self) -> bool:
        start = re.search(r"^[\[{]", text := self.text, re.MULTILINE)
        return start is not None and self._events(text[start.start() :])

    def _events(self, text: str) -> bool:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return False
        moved = [self._event(event) for event in (found if isinstance(found, list) else [found])]
        return any(moved)

    def _event(self, event: Any) -> bool:
        if not isinstance(event, dict) or self.read is None:
            return False
        try:
            piece = self.read(self.said, event)
        except (AttributeError, LookupError, TypeError, ValueError):  # a field with an unexpected type
            return False
        if piece is None:
            return False
        self.hear(ESCAPES.sub("", piece))
        return True


def plain(data: bytes) -> str:
    return ESCAPES.sub("", data.decode(errors="replace").replace("\r\n", "\n"))


def read_claude(said: Said, event: Json) -> Piece:
    match event.get("type"):
        case "stream_event":
            delta = event["event"].get("delta") or {}
            said.model = said.model or str((event["event"].get("message") or {}).get("model") or "")
            return str(delta["text"]) if delta.get("type") == "text_delta" else "" if delta else None
        case "assistant":
            said.complaint = str(event.get("error") or said.complaint)
            return ""
        case "result":
            return _claude_result(said, event)
    return None


def _claude_result(said: Said, event: Json) -> Piece:
    typed, text = event.get("structured_output"), str(event.get("result") or "")
    said.done, said.id = True, str(event.get("session_id") or "")
    if event.get("is_error") or str(event.get("subtype", "success")).startswith("error"):
        reasons = [text, *map(str, event.get("errors") or []), str(event.get("subtype") or "")]
        said.failed = next(reason for reason in (*reasons, "error without a reason") if reason)
    said.text = json.dumps(typed, ensure_ascii=False) if typed is not None else text
    said.finish = FINISHES.get(str(event.get("stop_reason")), "stop")
    said.model = said.model or next(iter(event.get("modelUsage") or {}), "")
    if usage := event.get("usage"):
        cached, written = (count(usage, f"cache_{kind}_input_tokens") for kind in ("read", "creation"))
        read = count(usage, "input_tokens") + cached + written
        said.usage = Usage(read, count(usage, "output_tokens"), cached, True, written)
    return ""


def read_codex(said: Said, event: Json) -> Piece:
    match event.get("type"):
        case "thread.started":
            said.id = str(event.get("thread_id") or "")
        case "item.completed" if event["item"].get("type") == "agent_message":
            said.text = str(event["item"].get("text") or "")  # the last one is the answer
            return said.text
        case "item.started" | "item.updated" | "item.completed":
            said.complaint = str(event["item"].get("message") or said.complaint)
            return None if event["item"].get("type") == "error" else ""
        case "turn.completed":
            said.done = True
            usage = event.get("usage") or {}
            said.usage = Usage(
                count(usage, "input_tokens"),
                count(usage, "output_tokens"),
                count(usage, "cached_input_tokens"),
                bool(usage),
                count(usage, "cache_write_input_tokens"),
            )
            return ""
        case "turn.failed":
            said.done, said.failed = True, str((event.get("error") or {}).get("message") or "the turn failed")
        case "error":  # not final: codex may retry
            said.complaint = str(event.get("message") or said.complaint)
    return None


def read_gemini(said: Said, event: Json) -> Piece:
    match event.get("type"):
        case "init":
            said.model, said.id = str(event.get("model") or ""), str(event.get("session_id") or "")
        case "message" if event.get("role") == "assistant":
            piece = str(event.get("content") or "")
            said.text = said.text + piece if event.get("delta") else piece
            return piece
        case "tool_use" | "tool_result":
            return ""
        case "error":
            said.complaint = str(event.get("message") or said.complaint)
        case "result":
            _gemini_end(said, event, event.get("status") == "error")
            return ""
        case None if "response" in event or "error" in event:
            said.text = str(event.get("response") or "")
            _gemini_end(said, event, bool(event.get("error")))
            return ""
    return None


def _gemini_end(said: Said, event: Json, failed: bool) -> None:
    said.done, said.id = True, str(event.get("session_id") or said.id)
    if failed:
        said.failed = str((event.get("error") or {}).get("message") or said.complaint or "error without a reason")
    stats = event.get("stats") or {}
    if models := stats.get("models"):
        tokens = [model.get("tokens") or {} for model in models.values()]
        read, cached = (sum(count(one, name) for one in tokens) for name in ("prompt", "cached"))
        said.usage = Usage(read, sum(count(one, "candidates") + count(one, "thoughts") for one in tokens), cached)
        said.model = said.model or next(iter(models))
    elif "output_tokens" in stats:
        said.usage = Usage(count(stats, "input_tokens"), count(stats, "output_tokens"), count(stats, "cached"))


def count(values: Json, name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0


READERS: dict[str, Read] = {"claude": read_claude, "codex": read_codex, "gemini": read_gemini}
