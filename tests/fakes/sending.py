"""Sending of responses, with scripted delays, cuts and resets."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterator
from itertools import chain, repeat
from typing import NoReturn

from aiohttp import web

from tests.fakes.dialects import Dialect
from tests.fakes.replies import Reply, Seen


def bytes_of(dialect: Dialect, seen: Seen, reply: Reply, said: str, streamed: bool) -> AsyncIterator[bytes]:
    pieces: Iterator[bytes]
    if reply.flood:
        pieces = chain([reply.raw] if reply.raw else [], repeat(reply.flood))
    elif reply.raw is not None:
        pieces = iter([reply.raw])
    elif streamed:
        pieces = dialect.stream(seen, reply, said)
    else:
        pieces = iter([json.dumps(dialect.whole(seen, reply, said)).encode()])
    return dripping(reply, sliced(reply, pieces))


def sliced(reply: Reply, pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        size = reply.slices or len(piece)
        yield from (piece[start : start + size] for start in range(0, len(piece), size))


async def dripping(reply: Reply, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for n, piece in enumerate(pieces, 1):
        yield piece
        if reply.pause and n == reply.pause_after:
            await reply.pause.wait_open()
        if reply.drip:
            await asyncio.sleep(reply.drip)


async def keep_alive(response: web.StreamResponse, breath: bytes) -> NoReturn:
    while True:
        await response.write(breath)
        await asyncio.sleep(0.01)


async def send(
    request: web.Request, response: web.StreamResponse, seen: Seen, reply: Reply, pieces: AsyncIterator[bytes]
) -> web.StreamResponse:
    ends = [limit for limit in (reply.cut, reply.reset, reply.stall) if limit is not None]
    room = min(ends) if ends else None
    async for piece in pieces:
        if room is not None and len(piece) > room:
            await response.write(piece[:room]) if room else None
            return await broken_off(request, response, reply)
        room = room if room is None else room - len(piece)
        await response.write(piece)
    seen.ended = time.monotonic()  # before the last byte, so that any next request starts later
    await response.write_eof()
    return response


async def broken_off(request: web.Request, response: web.StreamResponse, reply: Reply) -> web.StreamResponse:
    if reply.stall is not None:
        await asyncio.Event().wait()
    if (transport := request.transport) is None:
        return response
    if reply.reset is None:
        transport.close()  # flushes, then closes without the last chunk
        return response
    raw = transport.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert isinstance(transport, asyncio.WriteTransport)
    transport.abort()
    return response


def refusal(dialect: Dialect, reply: Reply) -> web.Response:
    error = dialect.error(reply.status, f"scripted {reply.status}") if reply.error is None else reply.error
    if isinstance(error, str):
        return web.Response(text=error, status=reply.status, headers=reply.headers)
    return web.json_response(error, status=reply.status, headers=reply.headers)
