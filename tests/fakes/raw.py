"""Server that sends raw bytes, for malformed responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def endpoint(*answers: list[bytes | float]) -> AsyncIterator[str]:
    """Serve one list of raw bytes per request (a number is a pause), then close the connection."""
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while left:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().splitlines() if line.startswith(b"content-length:"))
            await reader.readexactly(length)
            for part in left.pop(0):
                if isinstance(part, float):
                    await asyncio.sleep(part)
                else:
                    writer.write(part)
                    await writer.drain()
            if b"Connection: keep-alive" not in b"".join(p for p in answers[0] if isinstance(p, bytes)):
                break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


OPEN_ENDED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
