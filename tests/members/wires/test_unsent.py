"""Requests that were never sent: the fault is one that is not charged."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from council.money import UNBILLED_FAULTS
from council.types import Delivery, current_delivery
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.members import WIRES, fault, member_at, seated

MAX_POOL_THREADS = min(32, (os.cpu_count() or 1) + 4)  # of the event loop's own pool


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


@pytest.mark.anyio
@pytest.mark.behaviour("40-unsent-costs-nothing")
@pytest.mark.parametrize("kind", ["plain", "silent", "closing"])
async def test_a_failed_tls_handshake_is_not_charged_and_bounded_by_connect(kind: str) -> None:
    delivery = note_delivery()
    async with listen(kind) as url:
        caught = await fault(member_at(url, "openai", connect=0.3))
    assert caught.kind == "net"
    assert caught.kind in UNBILLED_FAULTS
    assert (delivery.is_connecting, delivery.is_sent) == (True, False)


@pytest.mark.anyio
@pytest.mark.behaviour("40-unsent-costs-nothing")
@pytest.mark.parametrize("host", ["a" * 70, f"{'b' * 70}.example", "x..y", "a b", ":99999"])
async def test_an_invalid_host_name_is_not_charged(host: str) -> None:
    caught = await fault(member_at(f"https://{host}/v1", "openai", connect=2.0))
    assert caught.kind == "net"
    assert caught.detail.startswith("no connection to ")


def note_delivery() -> Delivery:
    """Return the record of how far the next request of this test gets."""
    delivery = Delivery()
    current_delivery.set(delivery)
    return delivery


@pytest.mark.anyio
@pytest.mark.behaviour("40-unsent-costs-nothing")
@pytest.mark.parametrize("wire", WIRES)
async def test_a_request_on_an_open_connection_is_sent(provider: FakeProvider, wire: str) -> None:
    provider.script("m1", Reply(cut=0))
    delivery = note_delivery()
    caught = await fault(seated(provider, wire))
    assert caught.kind == "cut"
    assert (delivery.is_connecting, delivery.is_sent) == (False, True)


# Slow lookups of host names


@pytest.fixture
def slow_lookups(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Let lookups of names under .invalid take until the end of the test, and return those that have begun."""
    ended, look_up, begun = threading.Event(), socket.getaddrinfo, list[str]()

    def wait(host: Any, *given: Any, **more: Any) -> Any:
        if str(host).endswith(".invalid"):
            begun.append(str(host))
            ended.wait(60)
        return look_up(host, *given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", wait)
    yield begun
    ended.set()


@pytest.mark.behaviour("40-connect-bounds-lookup")
@pytest.mark.usefixtures("slow_lookups")
def test_neither_the_request_nor_the_end_of_the_loop_waits_for_a_slow_lookup() -> None:
    started = time.monotonic()
    caught = asyncio.run(fault(member_at("https://models.invalid/v1", "openai", connect=1.0)))
    assert caught.kind == "net"
    assert 0.9 < time.monotonic() - started < 20  # the lookup takes 60 s


@pytest.mark.behaviour("40-connect-bounds-lookup")
def test_slow_lookups_do_not_delay_other_endpoints(provider: FakeProvider, slow_lookups: list[str]) -> None:
    async def ask_all() -> list[str]:
        slow = [fault(member_at(f"https://m{n}.invalid/v1", "openai", connect=2.0)) for n in range(40)]
        waiting = [asyncio.ensure_future(one) for one in slow]
        while len(slow_lookups) < MAX_POOL_THREADS:  # noqa: ASYNC110
            await asyncio.sleep(0)
        provider.script("m1", Reply(status=401))
        quick = await fault(member_at(provider.base_url.replace("127.0.0.1", "localhost"), "openai", connect=1.9))
        return [quick.kind, *(one.kind for one in await asyncio.gather(*waiting))]

    assert asyncio.run(ask_all()) == ["auth", *["net"] * 40]
