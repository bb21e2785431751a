"""A connection that is opened ahead: it serves the first request, and its failure is not an error."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.fakes.members import ASK, asked, member_at

pytestmark = pytest.mark.anyio
BODY = json.dumps({"model": "m1", "choices": [{"message": {"content": "Tabs."}, "finish_reason": "stop"}]}).encode()


@pytest.mark.behaviour("15-connect-ahead")
async def test_a_connection_opened_ahead_serves_the_first_request() -> None:
    received: list[bytes] = []
    opened = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(b"")
        opened.set()
        received[-1] = await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
        )

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    member = member_at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", "openai")
    await member.connect_ahead()
    await opened.wait()
    await member.connect_ahead()  # it has one
    assert received == [b""]
    answer, _ = await asked(member, ASK)
    assert answer.text == "Tabs."
    assert len(received) == 1 and received[0].startswith(b"POST /v1/chat/completions ")
    server.close()


@pytest.mark.behaviour("15-connect-ahead")
async def test_a_host_that_cannot_be_reached_is_reported_by_the_request_only() -> None:
    member = member_at("http://127.0.0.1:9/v1", "openai", connect=5.0)
    await member.connect_ahead()
    await member.close()
