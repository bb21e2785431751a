"""Minimal chat-completions endpoint in a separate process, so that benchmarks measure only the client.

The model name sets the behaviour, with fields joined by "-": `sim-300ms` waits before the first byte, `sim-0ms-500w`
answers in 500 words (one event each). Typed replies are generated from the schema; with `-agree` every boolean is true.
Hand-written HTTP/1.1 takes about a tenth of the CPU time of a framework. GET /log returns the start and end of each
request, POST /reset clears the log.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import count, islice
from typing import Any

from council.members.scripted import example_value

LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
SENTENCE = "the council weighs the costs and the benefits before it recommends one option and explains why"
EVENTS_PER_CHUNK = 8  # a fast provider sends several events in one packet


class EndpointProtocol(asyncio.Protocol):
    log: list[dict[str, float]] = []  # noqa: RUF012  # one log for all connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (head := self.buffer.find(b"\r\n\r\n")) >= 0:
            found = LENGTH.search(self.buffer, 0, head + 2)
            end = head + 4 + (int(found[1]) if found else 0)
            if len(self.buffer) < end:
                return
            request, self.buffer = self.buffer[:end], self.buffer[end:]
            self.handle(request[: request.find(b"\r\n")], request[head + 4 :])

    def handle(self, line: bytes, body: bytes) -> None:
        if b"/chat/completions" in line:
            request_body = json.loads(body)
            delay, words, agree = behaviour(request_body["model"])
            seen = {"arrived": time.monotonic(), "ended": 0.0}
            self.log.append(seen)
            asyncio.get_running_loop().call_later(delay, self.answer, make_reply(request_body, words, agree), seen)
            return
        if b"/reset" in line:
            self.log.clear()
        self.plain(json.dumps(self.log).encode())

    def plain(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self.transport.write(head % len(body) + body)

    def answer(self, chunks: tuple[bytes, ...], seen: dict[str, float]) -> None:
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for chunk in chunks:
            self.transport.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        seen["ended"] = time.monotonic()
        self.transport.write(b"0\r\n\r\n")


@lru_cache
def behaviour(model: str) -> tuple[float, int, bool]:
    """Return the delay in seconds, the number of words, and whether booleans are true."""
    fields = model.split("-")[1:]
    numbers = {field.lstrip("0123456789"): int(re.sub(r"\D", "", field) or 0) for field in fields}
    return numbers.get("ms", 0) / 1000, numbers.get("w", 60), "agree" in fields


def make_reply(request_body: dict[str, Any], words: int, agree: bool) -> tuple[bytes, ...]:
    wanted = request_body.get("response_format")
    if wanted is None:
        return events(" ".join(islice(generate_words(), words)))
    return events(json.dumps(example_value(wanted["json_schema"]["schema"], agree, "as it is")))


def generate_words() -> Iterator[str]:
    """Yield endless words without exact repetition, which would be detected as a loop."""
    for n in count(1):
        yield from (f"{n}.", *SENTENCE.split())


@lru_cache
def events(text: str) -> tuple[bytes, ...]:
    """Encode an answer as server-sent events, several per chunk."""
    deltas: list[Any] = [{"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]} for piece in re.findall(r"\s*\S+", text)]  # fmt: skip
    deltas.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    deltas.append({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": len(text.split())}})
    lines = [
        b"data: "
        + json.dumps({"id": "sim", "object": "chat.completion.chunk", "created": 1, "model": "sim", **delta}).encode()
        + b"\n\n"
        for delta in deltas
    ]
    lines.append(b"data: [DONE]\n\n")
    return tuple(b"".join(lines[n : n + EVENTS_PER_CHUNK]) for n in range(0, len(lines), EVENTS_PER_CHUNK))


class Endpoint:
    """Client of the endpoint process."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.base_url = f"{address}/v1"

    def log(self) -> list[dict[str, float]]:
        with urllib.request.urlopen(f"{self.address}/log") as answer:
            found: list[dict[str, float]] = json.load(answer)
            return found

    def reset(self) -> None:
        urllib.request.urlopen(f"{self.address}/reset", data=b"").close()


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """Start the endpoint as a process and stop it at the end."""
    process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield Endpoint(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait()


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(EndpointProtocol, "127.0.0.1", 0, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
