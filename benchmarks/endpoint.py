"""Minimal chat-completions endpoint in a separate process, so that benchmarks measure only the client.

The model name sets the behaviour, with fields joined by "-": `sim-300ms` waits before the first byte, `sim-0ms-500w`
answers in 500 words (one event each). Typed replies are generated from the schema; with `-agree` every boolean is true.
With `-whole` the answer is one JSON body, and with `-1pp` each event is a separate packet. With `-varied` consecutive
answers differ. A request without `"stream": true` also gets one JSON body. Hand-written HTTP/1.1 takes about a tenth of
the CPU time of a framework. GET /log returns the start, the end and the size of each request, POST /reset clears the
log.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import count, islice
from typing import Any, NamedTuple

from council.members.scripted import example_value

LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
SENTENCE = "the council weighs the costs and the benefits before it recommends one option and explains why"
SYLLABLES = ("ac", "be", "co", "da", "en", "fi", "ga", "he", "in", "ju", "ko", "la", "me", "no", "or", "pe", "qui", "ra", "so", "tu", "un")  # fmt: skip
EVENTS_PER_CHUNK = 8  # a fast provider sends several events in one packet
PACKET_INTERVAL_S = 0.0005  # between the packets of `-1pp`
VARIANTS = 8  # different answers of `-varied`


class Behaviour(NamedTuple):
    """What a model name asks for."""

    delay: float  # seconds
    words: int
    agree: bool  # booleans are true
    whole: bool  # one JSON body
    single: bool  # one event per packet
    varied: bool  # consecutive answers differ


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
            wanted = behaviour(request_body["model"])
            if not request_body.get("stream"):
                wanted = wanted._replace(whole=True)
            seen = {"arrived": time.monotonic(), "ended": 0.0, "bytes": len(body)}
            self.log.append(seen)
            text = make_reply(request_body, wanted, len(self.log))
            model = request_body["model"]
            asyncio.get_running_loop().call_later(wanted.delay, self.answer, text, model, wanted, seen)
            return
        if b"/reset" in line:
            self.log.clear()
        self.plain(json.dumps(self.log).encode())

    def plain(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self.transport.write(head % len(body) + body)

    def answer(self, text: str, model: str, wanted: Behaviour, seen: dict[str, float]) -> None:
        if wanted.whole:
            self.plain(whole_body(text, model))
            seen["ended"] = time.monotonic()
            return
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        if wanted.single:
            self.send_next(iter(events(text, model, 1)), seen)
            return
        for chunk in events(text, model, EVENTS_PER_CHUNK):
            self.send_chunk(chunk)
        self.end(seen)

    def send_next(self, chunks: Iterator[bytes], seen: dict[str, float]) -> None:
        """Send one chunk, and the next one after a pause, so that each is a packet."""
        chunk = next(chunks, None)
        if chunk is None:
            self.end(seen)
            return
        self.send_chunk(chunk)
        asyncio.get_running_loop().call_later(PACKET_INTERVAL_S, self.send_next, chunks, seen)

    def send_chunk(self, chunk: bytes) -> None:
        self.transport.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))

    def end(self, seen: dict[str, float]) -> None:
        seen["ended"] = time.monotonic()
        self.transport.write(b"0\r\n\r\n")


@lru_cache
def behaviour(model: str) -> Behaviour:
    fields = model.split("-")[1:]
    numbers = {field.lstrip("0123456789"): int(re.sub(r"\D", "", field) or 0) for field in fields}
    return Behaviour(
        numbers.get("ms", 0) / 1000,
        numbers.get("w", 60),
        "agree" in fields,
        "whole" in fields,
        "1pp" in fields,
        "varied" in fields,
    )


def make_reply(request_body: dict[str, Any], wanted: Behaviour, number: int) -> str:
    """Return the text of the answer to the request with this number."""
    typed = request_body.get("response_format")
    if typed is None:
        return make_variant(wanted.words, number % VARIANTS) if wanted.varied else make_text(wanted.words)
    return json.dumps(example_value(typed["json_schema"]["schema"], wanted.agree, "as it is"))


@lru_cache
def make_text(words: int) -> str:
    return " ".join(islice(generate_words(), words))


def generate_words() -> Iterator[str]:
    """Yield endless words without exact repetition, which would be detected as a loop."""
    for n in count(1):
        yield from (f"{n}.", *SENTENCE.split())


@lru_cache
def make_variant(words: int, variant: int) -> str:
    """Return sentences of random words. They compress about as well as prose, for the size of stored texts."""
    source = random.Random(variant)
    chosen = ["".join(source.choices(SYLLABLES, k=source.choice((1, 2, 2, 3, 4)))) for _ in range(words)]
    ends = {*range(11, words, 12), words - 1}
    return " ".join(word + "." if n in ends else word for n, word in enumerate(chosen))


@lru_cache
def events(text: str, model: str, per_chunk: int) -> tuple[bytes, ...]:
    """Encode an answer as server-sent events, so many per chunk."""
    deltas: list[Any] = [{"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]} for piece in re.findall(r"\s*\S+", text)]  # fmt: skip
    deltas.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    deltas.append({"choices": [], "usage": usage(text)})
    lines = [
        b"data: "
        + json.dumps({"id": "sim", "object": "chat.completion.chunk", "created": 1, "model": model, **delta}).encode()
        + b"\n\n"
        for delta in deltas
    ]
    lines.append(b"data: [DONE]\n\n")
    return tuple(b"".join(lines[n : n + per_chunk]) for n in range(0, len(lines), per_chunk))


@lru_cache
def whole_body(text: str, model: str) -> bytes:
    """Encode an answer as one JSON body."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "sim", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}
    return json.dumps({**body, "usage": usage(text)}).encode()


def usage(text: str) -> dict[str, int]:
    written = len(text.split())
    return {"prompt_tokens": 100, "completion_tokens": written, "total_tokens": 100 + written}


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
def endpoint(core: int | None = None) -> Iterator[Endpoint]:
    """Start the endpoint as a process, on this core if one is given, and stop it at the end."""
    command = [sys.executable, __file__, *([] if core is None else [str(core)])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
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
    if sys.argv[1:]:
        os.sched_setaffinity(0, {int(sys.argv[1])})
    asyncio.run(serve())
