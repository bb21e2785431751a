"""Requests that were never sent: the fault is one that is not charged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from council.money import UNBILLED_FAULTS
from tests.fakes.members import fault, member_at

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def listen(kind: str) -> AsyncIterator[str]:
    """Listen without TLS, and yield the address as one with TLS."""
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if kind == "plain":
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        elif kind == "silent":
            await done.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    done.set()
    server.close()


@pytest.mark.behaviour("40-unsent-costs-nothing")
@pytest.mark.parametrize("kind", ["plain", "silent", "closing"])
async def test_a_failed_tls_handshake_is_not_charged_and_bounded_by_connect(kind: str) -> None:
    async with listen(kind) as url:
        caught = await fault(member_at(url, "openai", connect=0.3))
    assert caught.kind == "net"
    assert caught.kind in UNBILLED_FAULTS


@pytest.mark.behaviour("40-unsent-costs-nothing")
@pytest.mark.parametrize("host", ["a" * 70, f"{'b' * 70}.example", "x..y", "a b", ":99999"])
async def test_an_invalid_host_name_is_not_charged(host: str) -> None:
    caught = await fault(member_at(f"https://{host}/v1", "openai", connect=2.0))
    assert caught.kind == "net"
    assert caught.detail.startswith("no connection to ")
