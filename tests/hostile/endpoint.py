"""Hostile endpoint on a real socket: reads requests of every wire and answers those for the model "m1" in one of its
modes.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.dialects import DIALECTS
from tests.fakes.replies import Json, Reply, Seen

HOSTILE_MODEL = "m1"
ANSWER = "The endpoint gave this complete answer, and the seat may use it as it is."
HONEST = "An honest seat gave this answer, and it stays as it is."
STREAM, BODY = "text/event-stream", "application/json"
Pause = Callable[[float], Awaitable[None]]
BASE_PATHS = {"openai": "/v1", "anthropic": "/v1", "google": "/v1beta"}


# Events of each wire


def sse(*events: Any, prefix: str = "data: ", end: str = "\n\n") -> bytes:
    """Return events as a stream. Bytes are sent as they are."""
    parts = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    return b"".join(prefix.encode() + part + end.encode() for part in parts)


def say(wire: str, text: Any) -> Json:
    """Return the event with one piece of text, which may be any JSON value."""
    if wire == "anthropic":
        return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    if wire == "google":
        return {"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}]}
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


def think(wire: str, text: str) -> Json:
    if wire == "anthropic":
        return {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": text}}
    if wire == "google":
        return {"candidates": [{"content": {"parts": [{"text": text, "thought": True}]}, "index": 0}]}
    return {"choices": [{"index": 0, "delta": {"reasoning_content": text}}]}


def start(wire: str) -> list[Any]:
    """Return the events before the text."""
    if wire != "anthropic":
        return []
    message = {"id": "msg_1", "role": "assistant", "model": "m1", "content": [], "usage": {"input_tokens": 7}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    return [{"type": "message_start", "message": message}, block]


def finish(wire: str, reason: str = "", usage: Any = None) -> list[Any]:
    """Return the events after the text. Usage is given in the names of chat completions, or is no object."""
    usage = {"prompt_tokens": 7, "completion_tokens": 5} if usage is None else usage
    if wire == "anthropic":
        told = DIALECTS[wire].counted(usage) if isinstance(usage, dict) else usage  # type: ignore[attr-defined]
        delta = {"stop_reason": reason or "end_turn", "stop_sequence": None}
        return [{"type": "message_delta", "delta": delta, "usage": told}, {"type": "message_stop"}]
    if wire == "google":
        told = DIALECTS[wire].counted(usage) if isinstance(usage, dict) else usage  # type: ignore[attr-defined]
        candidate = {"content": {"parts": []}, "finishReason": reason or "STOP", "index": 0}
        return [{"candidates": [candidate], "usageMetadata": told}]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": reason or "stop"}]}
    return [last, {"choices": [], "usage": usage}, b"[DONE]"]


def answer_events(wire: str, text: str = ANSWER) -> list[Any]:
    """Return the events of a complete answer, three words at a time."""
    words = text.split(" ")
    pieces = [" ".join(words[n : n + 3]) + (" " if n + 3 < len(words) else "") for n in range(0, len(words), 3)]
    return [*start(wire), *(say(wire, piece) for piece in pieces), *finish(wire)]


# HTTP


def head(status: str = "200 OK", kind: str = STREAM, length: int | None = None, **headers: str) -> bytes:
    """Return the head of a response. Without a length the body ends when the connection closes."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}"]
    lines += [f"Content-Length: {length}"] if length is not None else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in ({"Connection": "close"} | headers).items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def respond(body: bytes, status: str = "200 OK", kind: str = STREAM, **headers: str) -> bytes:
    return head(status, kind, len(body), **headers) + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@dataclass
class Talk:
    """One request to the hostile model, and the connection to answer on."""

    seen: Seen
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    pause: Pause
    other: str  # address of another server, which must never get a request
    keeps_open: bool = False  # the connection stays open for the next request

    @property
    def wire(self) -> str:
        return self.seen.wire

    @property
    def key(self) -> str:
        """The key that the request carries."""
        names = ("authorization", "x-api-key", "x-goog-api-key")
        headers = {name.lower(): value for name, value in self.seen.headers.items()}
        return next(headers[name] for name in names if name in headers).removeprefix("Bearer ")

    def whole(self, text: str = ANSWER) -> Json:
        """Return a complete answer as one JSON body."""
        self.seen.tokens = {"in": 7, "out": 5}
        return DIALECTS[self.wire].whole(self.seen, Reply(), text)

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()

    async def flood(self, block: bytes) -> None:
        """Send the block until the client closes the connection."""
        while True:
            await self.send(block)

    async def drip(self, data: bytes, every: float = 0.4) -> None:
        """Send one byte at a time."""
        for at in range(len(data)):
            await self.send(data[at : at + 1])
            await self.pause(every)

    async def hang(self) -> None:
        while not self.reader.at_eof():
            await self.pause(0.5)

    def reset(self) -> None:
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Behaviour = Callable[[Talk], Awaitable[None]]


# Server


@dataclass
class HostileEndpoint:
    """Serve honest answers, except to the hostile model: its requests get `behaviour`."""

    behaviour: Behaviour
    pause: Pause = asyncio.sleep
    before_request: bool = False  # the behaviour starts before the request is read
    log: list[Seen] = field(default_factory=list)
    connections: int = 0  # of the other server
    port: int = 0
    other: str = ""

    def base_url(self, wire: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{BASE_PATHS[wire]}"

    def requests(self, model: str = HOSTILE_MODEL) -> list[Seen]:
        return [seen for seen in self.log if seen.model == model]

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[HostileEndpoint]:
        tasks: set[asyncio.Task[None]] = set()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, TimeoutError):
                await self._converse(reader, writer)
            writer.close()
            tasks.discard(task)

        async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", self.port)
        stranger = await asyncio.start_server(count, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.other = f"http://127.0.0.1:{stranger.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            stranger.close()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @contextmanager
    def in_thread(self) -> Iterator[HostileEndpoint]:
        """Serve in another thread, for clients in other processes."""
        ready, loop = threading.Event(), asyncio.new_event_loop()
        stop = asyncio.Event()

        async def work() -> None:
            async with self.serve():
                ready.set()
                await stop.wait()

        thread = threading.Thread(target=lambda: loop.run_until_complete(work()), daemon=True)
        thread.start()
        assert ready.wait(30)
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(30)
            loop.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection in turn."""
        if self.before_request:
            seen = Seen(len(self.log) + 1, 0, HOSTILE_MODEL, time.monotonic(), b"", {}, {})
            self.log.append(seen)
            await self.behaviour(Talk(seen, reader, writer, self.pause, self.other))
            return
        while not reader.at_eof():
            start_line = await reader.readline()
            if not start_line:
                return
            raw_head = start_line + await reader.readuntil(b"\r\n\r\n")
            headers = _parse_headers(raw_head)
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            seen = self._note(start_line.split()[1].decode(), headers, body)
            if seen.model != HOSTILE_MODEL:
                honest = sse(*answer_events(seen.wire, HONEST))
                writer.write(respond(honest, Connection="keep-alive"))
                await writer.drain()
                continue
            talk = Talk(seen, reader, writer, self.pause, self.other)
            await self.behaviour(talk)
            if not talk.keeps_open:
                return

    def _note(self, path: str, headers: dict[str, str], raw: bytes) -> Seen:
        wire = "google" if path.startswith("/v1beta") else "anthropic" if "anthropic-version" in headers else "openai"
        body = json.loads(raw)
        model = body.get("model") or path.rpartition("/")[2].partition(":")[0]
        seen = Seen(len(self.log) + 1, 0, model, time.monotonic(), raw, body, headers, wire=wire, path=path)
        self.log.append(seen)
        return seen


def _parse_headers(raw: bytes) -> dict[str, str]:
    rows = (line.partition(":") for line in raw.decode("latin-1").split("\r\n")[1:] if line)
    return {name.strip().lower(): value.strip() for name, _, value in rows}
