"""Fake endpoint of the three vendors for their real command-line agents, and the proxy that sees every other
connection.

It speaks the messages, responses and generateContent formats as far as the agents need them, on one address.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

Json = dict[str, Any]
TEXT = "Tabs are better."
TYPED = {"answer": TEXT}
READ, WRITTEN, CACHED = 23, 9, 7  # tokens of each answer; written includes four of thinking

# What each vendor answers: status, message, code or status word, and details.
TROUBLES: dict[str, dict[str, tuple[int, str, str]]] = {
    "401": {
        "claude": (401, "invalid x-api-key", "authentication_error"),
        "codex": (401, "Incorrect API key provided.", "invalid_api_key"),
        "gemini": (400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"),
    },
    "403": {
        "claude": (403, "This key may not use this model", "permission_error"),
        "codex": (403, "You have insufficient permissions for this operation.", ""),
        "gemini": (403, "The caller does not have permission", "PERMISSION_DENIED"),
    },
    "429": {
        "claude": (429, "This request would exceed your rate limit", "rate_limit_error"),
        "codex": (429, "Rate limit reached for requests", "rate_limit_exceeded"),
        "gemini": (429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED"),
    },
    "500": {
        "claude": (500, "Internal server error", "api_error"),
        "codex": (500, "The server had an error while processing your request", "server_error"),
        "gemini": (500, "An internal error has occurred.", "INTERNAL"),
    },
    "quota": {
        "claude": (400, "Your credit balance is too low to access the API.", "invalid_request_error"),
        "codex": (429, "You exceeded your current quota, please check your plan.", "insufficient_quota"),
        "gemini": (429, "You exceeded your current quota, please check your plan.", "RESOURCE_EXHAUSTED"),
    },
}
GOOGLE_DETAILS = {
    "401": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
    "quota": [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "RequestsPerDayPerModel"}]}],
}  # fmt: skip


class VendorEndpoint(ThreadingHTTPServer):
    """`mode` is a row of TROUBLES, "hang", "tools" (ask for tools first) or "answer"."""

    daemon_threads = True

    def __init__(self, mode: str = "answer") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.mode = mode
        self.requests: list[Json] = []  # bodies of the requests to a model
        self.outside: list[str] = []  # other hosts that a client wanted to reach, and other paths
        self.target = "/nonexistent"  # file that the tools would write
        self.arrived, self.stopped = threading.Event(), threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> VendorEndpoint:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopped.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: VendorEndpoint
    agents: ClassVar = {"/messages": "claude", "/responses": "codex", "GenerateContent": "gemini"}

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def do_CONNECT(self) -> None:
        self.server.outside.append(self.path)
        self.send_error(502)

    def do_GET(self) -> None:
        if self.path.startswith("/v1/responses"):  # a WebSocket: codex then uses HTTP
            return self._send_json(426, {"error": {"message": "no WebSockets here"}})
        self.server.outside.append(f"GET {self.path}")
        return self._send_json(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.loads(gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw or b"{}")
        agent = next((name for part, name in self.agents.items() if part in self.path), "")
        if not agent:
            self.server.outside.append(f"POST {self.path}")
            return self._send_json(404, {"error": {"message": "not found"}})
        self.server.requests.append(body)
        self.server.arrived.set()
        mode = self.server.mode
        if mode == "hang":
            self.server.stopped.wait()
            return None
        if mode in TROUBLES:
            return self._send_json(*_error(agent, mode))
        asks = mode == "tools" and len(self.server.requests) == 1
        return self._stream(ANSWERS[agent](body, self.server.target if asks else ""))

    def _send_json(self, status: int, body: Json) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[Json]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        self.close_connection = True


def _error(agent: str, mode: str) -> tuple[int, Json]:
    status, message, code = TROUBLES[mode][agent]
    if agent == "claude":
        return status, {"type": "error", "error": {"type": code, "message": message}, "request_id": "req_1"}
    if agent == "codex":
        return status, {
            "error": {"message": message, "type": code or "invalid_request_error", "param": None, "code": code or None}
        }
    details = GOOGLE_DETAILS.get(mode, [])
    return status, {"error": {"code": status, "message": message, "status": code, "details": details}}  # fmt: skip


def _answer_claude(body: Json, target: str) -> Iterator[Json]:
    counts = {"input_tokens": READ - CACHED - 5, "cache_read_input_tokens": CACHED, "cache_creation_input_tokens": 5}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    yield {"type": "message_start", "message": start | {"stop_reason": None, "usage": counts | {"output_tokens": 1}}}
    is_typed = any(tool["name"] == "StructuredOutput" for tool in body.get("tools", []))
    if target:
        yield from _claude_tool("Bash", {"command": f"touch {target}"})
    elif is_typed:
        yield from _claude_tool("StructuredOutput", TYPED)
    else:
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        for piece in (TEXT[:5], TEXT[5:]):
            yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
        yield {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if target or is_typed else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": WRITTEN}}
    yield {"type": "message_stop"}


def _claude_tool(name: str, values: Json) -> Iterator[Json]:
    block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(values)}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}


def _answer_codex(body: Json, target: str) -> Iterator[Json]:
    text = json.dumps(TYPED) if (body.get("text") or {}).get("format") else TEXT
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }
    items: list[Json] = [message]
    if target:
        patch = f"*** Begin Patch\n*** Add File: {target}\n+x\n*** End Patch\n"
        code = f"await tools.apply_patch({json.dumps(patch)})"
        call = json.dumps({"command": ["touch", target]})
        items = [
            {"type": "custom_tool_call", "id": "ct_1", "call_id": "c1", "name": "exec", "namespace": "functions", "input": code},
            {"type": "function_call", "id": "fc_1", "call_id": "c2", "name": "shell", "arguments": call},
        ]  # fmt: skip
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    for n, item in enumerate(items):
        yield {"type": "response.output_item.done", "output_index": n, "item": item}
    details = {"input_tokens_details": {"cached_tokens": CACHED}, "output_tokens_details": {"reasoning_tokens": 4}}
    usage = {"input_tokens": READ, "output_tokens": WRITTEN, "total_tokens": READ + WRITTEN, **details}
    yield {"type": "response.completed", "response": {"id": "resp_1", "output": items, "usage": usage}}


def _answer_gemini(body: Json, target: str) -> Iterator[Json]:
    said = json.dumps(TYPED) if "JSON Schema" in json.dumps(body["contents"]) else TEXT
    parts: list[Json] = [{"text": said}]
    if target:
        shell = {"name": "run_shell_command", "args": {"command": f"touch {target}"}}
        search = {"name": "google_web_search", "args": {"query": "Tabs or spaces?"}}
        parts = [{"functionCall": shell}, {"functionCall": search}]
    counts = {"promptTokenCount": READ, "candidatesTokenCount": WRITTEN - 4, "thoughtsTokenCount": 4}
    usage = {**counts, "cachedContentTokenCount": CACHED, "totalTokenCount": READ + WRITTEN}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    yield {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-real-name"}


ANSWERS = {"claude": _answer_claude, "codex": _answer_codex, "gemini": _answer_gemini}


def tools_in(body: Json) -> set[str]:
    """Return the names of the tools that a request offers to the model."""
    found: set[str] = set()

    def add(tool: Json) -> None:
        for inner in (*tool.get("tools", []), *tool.get("functionDeclarations", [])):
            add(inner)
        if "tools" not in tool and "functionDeclarations" not in tool:
            found.add(tool.get("name") or tool.get("type") or next(iter(tool)))

    items = body.get("input")
    listed = [*body.get("tools", []), *(item for item in items or [] if isinstance(item, dict) and "tools" in item)]
    for tool in listed:
        add(tool)
    return found
