"""Endpoints and proxies that do not read a large request: the seat ends at its deadline, and nothing else is held
up.
"""

from __future__ import annotations

import asyncio
import gc
import select
import socket
import struct
import threading
from asyncio.selector_events import _SelectorSocketTransport  # type: ignore[attr-defined]
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from council.members.wires.http import Endpoint
from tests.hostile.councils import QUESTION, Done, run_council
from tests.hostile.modes import WIRES

TIMEOUT_S, CONNECT_S = 6, 1
MAX_MEMORY_MB = 300
FILES, FILE_BYTES = 8, 250_000  # a packet of 2 MB
Serve = Callable[[socket.socket, threading.Event], None]


# What is done with a connection


def never_read(connection: socket.socket, ends: threading.Event) -> None:
    ends.wait()


def read_slowly(connection: socket.socket, ends: threading.Event) -> None:
    """Read one byte a second."""
    while connection.recv(1) and not ends.wait(1):
        pass


def close_read_half(connection: socket.socket, ends: threading.Event) -> None:
    connection.shutdown(socket.SHUT_RD)
    ends.wait()


def read_half_then_reset(connection: socket.socket, ends: threading.Event) -> None:
    received = 0
    while received < FILES * FILE_BYTES // 2 and (part := connection.recv(65536)):
        received += len(part)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextmanager
def serve(behaviour: Serve) -> Iterator[int]:
    """Accept connections with a small buffer, so that a large request does not fit into it, and yield the port."""
    ends, opened = threading.Event(), list[socket.socket]()

    def work(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            behaviour(connection, ends)

    def accept() -> None:
        while not ends.is_set():
            if select.select([listening], [], [], 0.1)[0]:
                opened.append(listening.accept()[0])
                threading.Thread(target=work, args=(opened[-1],), daemon=True).start()

    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            ends.set()
            thread.join()
            for connection in opened:
                connection.close()


# Whole councils


def configure(wire: str, base_url: str) -> str:
    return f"""
[providers.sim]
wire = "{wire}"
base_url = "{base_url}"
api_key_env = "SIM_KEY"
backoff = 0
connect = {CONNECT_S}
[prices."sim:*"]
input = 1.0
output = 2.0
[seats.alpha]
model = "sim:m1"
fallback = []
[seats.beta]
model = "scripted:"
[seats.gamma]
model = "scripted:"
[chair]
model = "scripted:"
"""


def hold_council(folder: Path, wire: str, base_url: str, **env: str) -> Done:
    """Run a council with a packet of 2 MB and one seat at the endpoint."""
    attached = list[str]()
    folder.mkdir(exist_ok=True)
    for n in range(FILES):
        (folder / f"{n}.txt").write_text(f"Row {n} of the archive.\n" * (FILE_BYTES // 24), encoding="utf-8")
        attached += ["--attach", str(folder / f"{n}.txt")]
    flags = ("--json", "--protocol", "triad", "--timeout", str(TIMEOUT_S), "--max-cost", "9")
    return run_council(folder, configure(wire, base_url), *flags, *attached, QUESTION, env={"SIM_KEY": "k", **env})


def check_council(done: Done, states: tuple[str, ...]) -> float:
    """Check that only the one seat is missing, and return what is in doubt."""
    assert done.code == 0, done.err[-500:]
    seats = {seat["name"]: seat["state"] for seat in done.report["seats"]}
    assert seats["alpha"] in states and (seats["beta"], seats["gamma"]) == ("ok", "ok"), seats
    assert done.report["status"] == "complete" and done.fsck == "" and done.peak_mb < MAX_MEMORY_MB
    assert done.report["cost"]["usd"] == 0
    return float(done.report["cost"].get("in_doubt", 0))


def cases() -> list[object]:
    """Return one behaviour on one wire, and all others as a sweep."""
    behaviours = (never_read, read_slowly, close_read_half, read_half_then_reset)
    return [
        pytest.param(behaviour, wire, id=f"{behaviour.__name__}-{wire}", marks=() if n == 0 and wire == WIRES[0] else pytest.mark.sweep)
        for n, behaviour in enumerate(behaviours)
        for wire in WIRES
    ]  # fmt: skip


@pytest.mark.behaviour("14-never-reads")
@pytest.mark.parametrize(("behaviour", "wire"), cases())
def test_an_endpoint_that_does_not_read_the_request_ends_at_the_deadline(
    behaviour: Serve, wire: str, tmp_path: Path, sweep_figures: Callable[..., None]
) -> None:
    """A part of the request was sent, so its cost is in doubt."""
    with serve(behaviour) as port:
        done = hold_council(tmp_path / "run", wire, f"http://127.0.0.1:{port}/v1")
    assert check_council(done, ("timed_out", "in_doubt")) > 0
    sweep_figures("never reads", councils=1, failures=0, worst_peak_mb=round(done.peak_mb))


@pytest.mark.behaviour("14-never-reads")
@pytest.mark.parametrize("place", ["tls", pytest.param("proxy", marks=pytest.mark.sweep)])
def test_a_connection_that_is_never_ready_costs_nothing(place: str, tmp_path: Path) -> None:
    """The handshake, or the request for a tunnel, is never answered: nothing of the request was sent."""
    with serve(never_read) as port:
        if place == "tls":
            done = hold_council(tmp_path / "run", "openai", f"https://127.0.0.1:{port}/v1")
        else:
            proxy = f"http://127.0.0.1:{port}"
            done = hold_council(tmp_path / "run", "openai", "https://models.invalid/v1", HTTPS_PROXY=proxy, https_proxy=proxy)  # fmt: skip
    assert check_council(done, ("failed(net)", "timed_out")) == 0


@pytest.mark.sweep
@pytest.mark.behaviour("14-never-reads")
def test_a_proxy_that_does_not_read_the_request_ends_at_the_deadline(tmp_path: Path) -> None:
    with serve(never_read) as port:
        proxy = f"http://127.0.0.1:{port}"
        done = hold_council(tmp_path / "run", "openai", "http://models.invalid/v1", HTTP_PROXY=proxy, http_proxy=proxy)
    assert check_council(done, ("timed_out",)) > 0


# Connections


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.behaviour("14-never-reads")
async def test_a_connection_that_is_given_up_keeps_no_socket_and_no_data() -> None:
    async def read(response: object, clock: object) -> None:
        raise AssertionError("nothing was answered")

    with serve(never_read) as port:
        endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", headers={})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await endpoint.post("/chat/completions", b"x" * 6_000_000, None, read, str)
        await endpoint.close()
        await asyncio.sleep(0)
        open_ = [one for one in gc.get_objects() if isinstance(one, _SelectorSocketTransport) and one._sock is not None]
        assert [one for one in open_ if one.get_extra_info("peername") == ("127.0.0.1", port)] == []
