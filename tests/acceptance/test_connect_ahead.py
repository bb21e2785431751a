"""Connections to the members are opened while the plan is made, and nothing is sent on them before the first
request.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace


class Listener:
    """Server that counts its connections and what arrives on them, and answers nothing."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.connections: list[socket.socket] = []
        self.connected = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                self.connections.append(self.server.accept()[0])
            except OSError:
                return
            self.connected.set()

    def close(self) -> None:
        self.server.close()
        for connection in self.connections:
            connection.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    one = Listener()
    yield one
    one.close()


@pytest.mark.behaviour("15-connect-ahead")
@pytest.mark.parametrize("flags", [["--dry-run"], ["--max-cost", "1"]])
def test_nothing_is_sent_for_a_dry_run_or_a_refused_run(
    workspace: Workspace, council: Terminal, listener: Listener, flags: list[str]
) -> None:
    workspace.configure(base_url=f"http://127.0.0.1:{listener.server.getsockname()[1]}/v1")
    done = council(*flags, "--protocol", "triad", QUESTION)
    assert done.code == (0 if flags == ["--dry-run"] else 2)  # without a price, a cap refuses the run
    for connection in listener.connections:
        assert connection.recv(1) == b""  # closed without a byte
    if flags == ["--dry-run"]:
        assert listener.connections == []


@pytest.mark.behaviour("15-connect-ahead")
def test_no_connection_is_opened_for_a_packet_that_is_refused(
    workspace: Workspace, council: Terminal, listener: Listener
) -> None:
    workspace.configure(base_url=f"http://127.0.0.1:{listener.server.getsockname()[1]}/v1")
    key = "-".join(["sk", "ant", "api03", "A9xQ2mZ7Lw4Tn8Vb6Rk1Yc3Hd5Jf0Gs"])
    Path("notes.md").write_text(f"The key is {key}\n", encoding="utf-8")
    assert council("--protocol", "triad", "What does notes.md say?").code == 2
    assert listener.connections == []
