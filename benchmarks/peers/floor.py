"""The lower bound in Python: a minimal HTTP/1.1 client on asyncio's protocols, with keep-alive and the json module.

It cannot stream.
"""

from __future__ import annotations

import asyncio
import json
import re
from urllib.parse import urlsplit

from peers.workload import messages, run_waves

LENGTH = re.compile(rb"content-length:\s*(\d+)", re.IGNORECASE)


class Connection(asyncio.Protocol):
    """One connection with at most one request in flight."""

    transport: asyncio.Transport
    response: asyncio.Future[bytes]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head = self.buffer.find(b"\r\n\r\n")
        length = LENGTH.search(self.buffer, 0, head + 2) if head >= 0 else None
        if length and len(self.buffer) >= (end := head + 4 + int(length[1])):
            body, self.buffer = self.buffer[head + 4 : end], b""
            self.response.set_result(body)

    def connection_lost(self, error: Exception | None) -> None:
        if "response" in vars(self) and not self.response.done():
            self.response.set_exception(error or ConnectionError("the server closed the connection"))


class Contestant:
    def __init__(self, base_url: str, model: str, stream: bool) -> None:
        if stream:
            raise NotImplementedError("the floor has no streams")
        self.model = model
        self.address = urlsplit(base_url)
        self.idle: list[Connection] = []

    async def call(self, role: str, prompt: str) -> str:
        loop = asyncio.get_running_loop()
        if self.idle:
            connection = self.idle.pop()
        else:
            _, connection = await loop.create_connection(Connection, self.address.hostname, self.address.port)
        body = json.dumps({"model": self.model, "messages": messages(role, prompt)}).encode()
        head = (
            f"POST {self.address.path}/chat/completions HTTP/1.1\r\nhost: {self.address.netloc}\r\nauthorization: Bearer x\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        connection.response = loop.create_future()
        connection.transport.write(head.encode() + body)
        answer = json.loads(await connection.response)
        self.idle.append(connection)
        text: str = answer["choices"][0]["message"]["content"]
        return text

    async def council(self) -> str:
        return await run_waves(self.call)

    async def close(self) -> None:
        for connection in self.idle:
            connection.transport.close()
