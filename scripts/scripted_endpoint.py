"""A local endpoint that streams scripted chat completions, for the pictures of the README."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

Json = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """A reply of a model: its text and its speed, or only an HTTP status that is an error."""

    text: str = ""
    chars_per_second: float = 1e9
    status: int = 200


@asynccontextmanager
async def serve_replies(
    make_reply: Callable[[Json], Reply], *, first_token_delay: float, piece_chars: int
) -> AsyncIterator[str]:
    """Serve the replies to chat requests on a free port, and yield the base URL."""

    async def complete(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        reply = make_reply(body)
        if reply.status != 200:
            return web.json_response({"error": {"message": "busy, come back later"}}, status=reply.status)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await asyncio.sleep(first_token_delay)
        for start in range(0, len(reply.text), piece_chars):
            delta = {"content": reply.text[start : start + piece_chars]}
            await _send(response, {"choices": [{"index": 0, "delta": delta}]})
            await asyncio.sleep(piece_chars / reply.chars_per_second)
        usage = {"prompt_tokens": len(json.dumps(body)) // 4, "completion_tokens": len(reply.text) // 4}
        await _send(response, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage})
        await response.write(b"data: [DONE]\n\n")
        return response

    async with _listen(complete) as base_url:
        yield base_url


@asynccontextmanager
async def _listen(complete: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def _send(response: web.StreamResponse, value: Json) -> None:
    await response.write(f"data: {json.dumps(value)}\n\n".encode())
