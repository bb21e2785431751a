"""Parse the output of command-line agents: JSON lines, one JSON object at the end, or plain text.

Unknown events and fields are ignored. An answer is complete only after an explicit final event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from council.types import Json, Usage, parse_token_count

# Terminal titles and links, colours and cursor moves, single escapes, and all control characters but tab and newline.
CONTROL_SEQUENCES = re.compile(
    r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
FINISH_REASONS = {"max_tokens": "length", "refusal": "refused"}
KEY_REFUSED = (401, 403)  # HTTP status; a retry with the same key cannot help
MAX_AGENT_RETRIES = 1  # of one call; further ones are decided by the fault table
# HTTP status in a message: "unexpected status 401", "last status: 429", "API Error: 500", '"code": 403'
STATUS = re.compile(r'(?:\bstatus:? |API Error: (?:Request rejected \()?|"code": ?)([45]\d\d)\b')
WEBSOCKET = re.compile(r"\bwss?://")
# Standard error of gemini: "Attempt 1 failed with status 429. Retrying with backoff... _ApiError: {…}"
RETRY_LINE = re.compile(r"^Attempt \d+ failed(?: with status (\d+)| with (\d\d\d) error)?.*\bRetrying\b")
MAX_LINE_BYTES = 64 * 1024  # of standard error; a longer line is not a message


@dataclass(slots=True)
class AgentOutput:
    text: str = ""
    done: bool = False  # the final event, success or failure, was received
    error: str = ""  # error message of a failed answer
    warning: str = ""  # last non-fatal error
    status: int = 0  # HTTP status of the last error, if it is known
    retries: int = 0  # requests that the agent says it repeats
    finish: str = "stop"
    usage: Usage = field(default_factory=lambda: Usage(known=False))
    model: str = ""
    id: str = ""

    @property
    def is_hopeless(self) -> bool:
        """Return whether the vendor refuses the key, or keeps refusing the request."""
        is_refused = self.retries > 0 and self.status in KEY_REFUSED
        return not self.done and (is_refused or self.retries > MAX_AGENT_RETRIES)

    def record_status(self, message: str) -> None:
        if match := STATUS.search(message):
            self.status = int(match[1])


Delta = str | None  # content; "" for activity without content; None for neither
EventReader = Callable[[AgentOutput, Json], Delta]


class OutputParser:
    """Incremental parser of standard output."""

    def __init__(self, read_event: EventReader | None, on_delta: Callable[[str], None]) -> None:
        self.read_event = read_event  # None: the output is plain text
        self.on_delta = on_delta
        self.output = AgentOutput()
        self.pending = self.pending_error = b""
        self.stdout = bytearray()

    def feed(self, data: bytes) -> bool:
        """Parse bytes; return whether they contained content."""
        self.stdout += data
        *lines, self.pending = (self.pending + data).split(b"\n")
        if self.read_event is None:
            if piece := strip_escapes(data):
                self.on_delta(piece)
            return bool(piece.strip())
        moved = [self._parse_line(line) for line in lines]
        if not self.output.done and lines and lines[-1].strip() in (b"}", b"]"):
            moved.append(self._parse_object())
        return any(moved)

    def feed_error(self, data: bytes) -> bool:
        """Parse bytes of standard error; return whether the agent says there that it repeats a request."""
        *lines, rest = (self.pending_error + data).split(b"\n")
        self.pending_error = rest[:MAX_LINE_BYTES]
        retries = self.output.retries
        for line in map(str.strip, map(strip_escapes, lines)):
            if match := RETRY_LINE.search(line):
                self.output.retries += 1
                self.output.warning, self.output.status = line, int(match[1] or match[2] or 0)
        return self.output.retries > retries

    def finish(self) -> AgentOutput:
        """Parse the rest as a last line or as one object, and return the result."""
        if self.read_event is None:
            self.output.text, self.output.done = self.text, True
        elif not self.output.done:
            self._parse_line(self.pending)
            if not self.output.done:
                self._parse_object()
        return self.output

    @property
    def text(self) -> str:
        """Return the whole output without control sequences."""
        return strip_escapes(bytes(self.stdout)).strip()

    def _parse_line(self, line: bytes) -> bool:
        text = strip_escapes(line).strip()
        return text.startswith("{") and self._parse_events(text)

    def _parse_object(self) -> bool:
        start = re.search(r"^[\[{]", text := self.text, re.MULTILINE)
        return start is not None and self._parse_events(text[start.start() :])

    def _parse_events(self, text: str) -> bool:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return False
        moved = [self._handle_event(event) for event in (value if isinstance(value, list) else [value])]
        return any(moved)

    def _handle_event(self, event: Any) -> bool:
        if not isinstance(event, dict) or self.read_event is None:
            return False
        retries = self.output.retries
        try:
            piece = self.read_event(self.output, event)
        except (AttributeError, LookupError, TypeError, ValueError):  # a field with an unexpected type
            return False
        if piece is None:
            return self.output.retries > retries  # activity, but neither content nor thinking
        self.on_delta(CONTROL_SEQUENCES.sub("", piece))
        return True


def strip_escapes(data: bytes) -> str:
    return CONTROL_SEQUENCES.sub("", data.decode(errors="replace").replace("\r\n", "\n"))


def read_claude_event(output: AgentOutput, event: Json) -> Delta:
    match event.get("type"):
        case "stream_event":
            delta = event["event"].get("delta") or {}
            output.model = output.model or str((event["event"].get("message") or {}).get("model") or "")
            return str(delta["text"]) if delta.get("type") == "text_delta" else "" if delta else None
        case "system" if event.get("subtype") == "api_retry":
            status = event.get("error_status")
            output.status = status if isinstance(status, int) else 0
            output.retries += 1
            reason = str(event.get("error") or "error without a reason")
            output.warning = f"{reason} (status {status})" if output.status else reason
        case "assistant":
            output.warning = str(event.get("error") or output.warning)
            return ""
        case "result":
            return _read_claude_result(output, event)
    return None


def _read_claude_result(output: AgentOutput, event: Json) -> Delta:
    typed, text = event.get("structured_output"), str(event.get("result") or "")
    output.done, output.id = True, str(event.get("session_id") or "")
    if event.get("is_error") or str(event.get("subtype", "success")).startswith("error"):
        reasons = [text, *map(str, event.get("errors") or []), str(event.get("subtype") or "")]
        output.error = next(reason for reason in (*reasons, "error without a reason") if reason)
        output.record_status(output.error)
        status = event.get("api_error_status")
        output.status = status if isinstance(status, int) else output.status
    output.text = json.dumps(typed, ensure_ascii=False) if typed is not None else text
    output.finish = FINISH_REASONS.get(str(event.get("stop_reason")), "stop")
    output.model = output.model or next(iter(event.get("modelUsage") or {}), "").partition("[")[0]  # "opus[1m]"
    if usage := event.get("usage"):
        cached, written = (read_count(usage, f"cache_{kind}_input_tokens") for kind in ("read", "creation"))
        read = read_count(usage, "input_tokens") + cached + written
        output.usage = Usage(read, read_count(usage, "output_tokens"), cached, True, written)
    return ""


def read_codex_event(output: AgentOutput, event: Json) -> Delta:
    match event.get("type"):
        case "thread.started":
            output.id = str(event.get("thread_id") or "")
        case "item.completed" if event["item"].get("type") == "agent_message":
            output.text = str(event["item"].get("text") or "")  # the last one is the answer
            return output.text
        case "item.started" | "item.updated" | "item.completed":
            output.warning = str(event["item"].get("message") or output.warning)
            return None if event["item"].get("type") == "error" else ""
        case "turn.completed":
            output.done = True
            usage = event.get("usage") or {}
            read, written = read_count(usage, "input_tokens"), read_count(usage, "output_tokens")
            cached, stored = (read_count(usage, f"{kind}_input_tokens") for kind in ("cached", "cache_write"))
            output.usage = Usage(read, written, cached, bool(usage), stored)
            return ""
        case "turn.failed":
            output.done, output.error = True, str((event.get("error") or {}).get("message") or "the turn failed")
            output.record_status(output.error)
        case "error":  # not final: codex may retry
            _record_codex_retry(output, str(event.get("message") or ""))
    return None


def _record_codex_retry(output: AgentOutput, message: str) -> None:
    """Record an error. Codex tries WebSockets first; if an endpoint has none, it uses HTTP after a few errors."""
    output.warning = message or output.warning
    match = STATUS.search(message)
    if match and (not WEBSOCKET.search(message) or match[1] == "401"):
        output.status = int(match[1])
    if message.startswith("Reconnecting") and not (WEBSOCKET.search(message) and output.status != 401):
        output.retries += 1


def read_gemini_event(output: AgentOutput, event: Json) -> Delta:
    match event.get("type"):
        case "init":
            output.model, output.id = str(event.get("model") or ""), str(event.get("session_id") or "")
        case "message" if event.get("role") == "assistant":
            piece = str(event.get("content") or "")
            output.text = output.text + piece if event.get("delta") else piece
            return piece
        case "tool_use" | "tool_result":
            return ""
        case "error":
            output.warning = str(event.get("message") or output.warning)
        case "result":
            _read_gemini_result(output, event, event.get("status") == "error")
            return ""
        case None if "response" in event or "error" in event:
            output.text = str(event.get("response") or "")
            _read_gemini_result(output, event, bool(event.get("error")))
            return ""
    return None


def _read_gemini_result(output: AgentOutput, event: Json, failed: bool) -> None:
    output.done, output.id = True, str(event.get("session_id") or output.id)
    if failed:
        output.error = str((event.get("error") or {}).get("message") or output.warning or "error without a reason")
        output.record_status(output.error)
    stats = event.get("stats") or {}
    if models := stats.get("models"):
        counts = {name: _read_gemini_counts(model) for name, model in models.items()}
        output.usage = sum(counts.values(), Usage())
        output.model = max(counts, key=lambda name: counts[name].output)  # the requested name may be an alias
    elif "output_tokens" in stats:
        output.usage = _read_gemini_counts(stats)


def _read_gemini_counts(stats: Json) -> Usage:
    """Return the usage of one model: by version a nested table with the thoughts, or a total that includes them."""
    if "tokens" in stats or "output_tokens" not in stats:
        tokens = stats.get("tokens") or {}
        written = read_count(tokens, "candidates") + read_count(tokens, "thoughts")
        return Usage(read_count(tokens, "prompt"), written, read_count(tokens, "cached"), bool(tokens))
    read, written = read_count(stats, "input_tokens"), read_count(stats, "output_tokens")
    return Usage(read, max(written, read_count(stats, "total_tokens") - read), read_count(stats, "cached"))


def read_count(values: Json, name: str) -> int:
    """Return a token count: 0 if it is missing, INVALID_COUNT if it is invalid."""
    value = values.get(name)
    return 0 if value is None else parse_token_count(value)


READERS: dict[str, EventReader] = {"claude": read_claude_event, "codex": read_codex_event, "gemini": read_gemini_event}
