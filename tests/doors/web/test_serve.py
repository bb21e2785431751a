"""The `council serve` command: its output, its address, and its shutdown."""

from __future__ import annotations

import asyncio
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from council.runs.servers import load_token
from council.runs.service import Convener
from council.store.sqlite import RunLock
from tests.acceptance.helpers import Result, Terminal, wait_for_exit, wait_until
from tests.doors.web.conftest import write_project
from tests.doors.web.server import environment
from tests.fork_server import SERVERS, Process

WIDENING = {"HOST": "0.0.0.0", "UVICORN_HOST": "0.0.0.0", "COUNCIL_HOST": "0.0.0.0", "FORWARDED_ALLOW_IPS": "*", "WEB_CONCURRENCY": "4", "PORT": "1"}  # fmt: skip


class Command:
    """`council serve …` in a separate process."""

    def __init__(self, place: Path, *flags: str, **env: str) -> None:
        self.folder = write_project(place)
        self.process = self._start(["serve", *flags], environment(place) | env)

    def _start(self, arguments: list[str], env: dict[str, str]) -> Process | subprocess.Popen[str]:
        return Process(arguments, self.folder, trusts=False, modules=SERVERS, **env)  # type: ignore[arg-type]

    @property
    def line(self) -> str:
        assert self.process.stdout
        return str(self.process.stdout.readline()).rstrip("\n")

    def stop(self, number: int = signal.SIGINT) -> Result:
        self.process.send_signal(number)
        return wait_for_exit(self.process)


class NewInterpreter(Command):
    """`python -m council serve …`."""

    def _start(self, arguments: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
        path = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        return subprocess.Popen(
            [sys.executable, "-m", "council", *arguments], cwd=self.folder, env=env | path, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip


@pytest.fixture
def commands() -> Iterator[list[Command]]:
    started: list[Command] = []
    yield started
    for command in started:
        if command.process.poll() is None:
            command.process.kill()
            command.process.communicate()


def asked(address: str, port: int, host: str, token: str) -> int:
    connection = http.client.HTTPConnection(address, port, timeout=60)
    try:
        connection.request("GET", "/api/roots", headers={"Host": host, "Authorization": f"Bearer {token}"})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.behaviour("50-web-serve", "40-web-bind")
def test_it_prints_one_line_listens_on_loopback_and_stops_with_streams_open(
    tmp_path: Path, commands: list[Command]
) -> None:
    command = NewInterpreter(tmp_path, "--port", "0", **WIDENING)
    commands.append(command)
    url = urlsplit(command.line)
    assert (url.scheme, url.hostname, url.path, url.fragment[:6]) == ("http", "127.0.0.1", "/", "token=")
    token, port = url.fragment[6:], url.port or 0
    assert len(token) >= 32
    assert asked("127.0.0.1", port, url.netloc, token) == 200
    with pytest.raises(ConnectionRefusedError):
        asked("127.0.0.2", port, url.netloc, token)
    assert asked("127.0.0.1", port, "0.0.0.0:1", token) == 400
    stream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with waiting(command.folder, tmp_path) as run:
        stream.request(
            "GET", f"/api/stream?run={run}", headers={"Host": url.netloc, "Authorization": f"Bearer {token}"}
        )
        response = stream.getresponse()
        assert response.status == 200
        done = command.stop()
        response.read()  # the stream is complete: the server has ended it before it closed the connection
    stream.close()
    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.behaviour("50-token-kept")
def test_the_token_outlives_the_server_until_it_is_replaced(tmp_path: Path) -> None:
    env = {"COUNCIL_DATA": str(tmp_path / "data")}
    token = load_token(env)
    file = tmp_path / "data" / "servers" / "token"
    assert (load_token(env), file.stat().st_mode & 0o777) == (token, 0o600)
    assert load_token(env, renew=True) not in (token, "")
    for damage in (lambda: file.chmod(0o644), lambda: file.write_text("short"), lambda: file.write_bytes(b"\xff" * 43)):
        before = load_token(env)
        damage()
        assert load_token(env) != before, "a token that others could read or write is replaced"
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    assert load_token(env) != before


@pytest.mark.behaviour("50-token-kept")
def test_new_token_ends_the_addresses_printed_before(tmp_path: Path, commands: list[Command]) -> None:
    lines = []
    for flags in ((), (), ("--new-token",)):
        command = Command(tmp_path, "--port", "0", *flags)
        commands.append(command)
        lines.append(command.line.partition("#token=")[2])
        command.stop()
    assert lines[0] == lines[1] != lines[2]


@contextmanager
def waiting(folder: Path, place: Path) -> Iterator[str]:
    """Yield a run that has an owner but makes no progress."""

    async def queued(convener: Convener) -> str:
        return await convener.enqueue(await convener.plan(["Tabs or spaces?"]))

    convener = Convener(folder, environment(place))
    run = asyncio.run(queued(convener))
    with RunLock(convener.store.folder / "locks" / f"{run}.lock"):
        yield run
    asyncio.run(convener.close())


@pytest.mark.behaviour("50-web-serve")
def test_every_start_has_a_new_token(tmp_path: Path, commands: list[Command]) -> None:
    for n in ("one", "two"):
        commands.append(Command(tmp_path / n, "--port", "0"))
    lines = [command.line for command in commands]
    assert len({line.partition("#")[2] for line in lines}) == 2
    assert [command.stop(signal.SIGTERM).err for command in commands] == ["", ""]


@pytest.mark.behaviour("50-web-serve")
def test_a_port_in_use_is_a_one_line_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = wait_for_exit(Command(tmp_path, "--port", str(port)).process)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f'council: port "{port}" is already in use')
    assert "--port 0" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.behaviour("50-web-serve")
def test_open_opens_the_address_in_the_browser(tmp_path: Path, commands: list[Command]) -> None:
    tmp_path.mkdir(exist_ok=True)
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{seen}"\n')
    browser.chmod(0o755)
    command = Command(tmp_path, "--port", "0", "--open", BROWSER=f"{browser} %s")
    commands.append(command)
    line = command.line
    wait_until(lambda: seen.exists() and seen.read_text().strip(), "the browser opens")
    opened, _, token = seen.read_text().strip(), *line.partition("#token=")[1:]
    assert opened.startswith(f"{line.partition('#')[0]}#code=")
    assert token not in opened


@pytest.mark.behaviour("40-web-bind")
def test_unsafe_host_listens_on_that_address_and_warns(tmp_path: Path, commands: list[Command]) -> None:
    with socket.socket() as taken:  # on this address the port is in use, which does not matter
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = Command(tmp_path, "--port", str(port), "--unsafe-host", "127.0.0.2")
        commands.append(command)
        url = urlsplit(command.line)
    token = url.fragment[6:]
    assert asked("127.0.0.2", port, url.netloc, token) == 200
    assert asked("127.0.0.2", port, f"localhost:{port}", token) == 400
    assert "which other machines can reach" in command.stop().err


@pytest.mark.behaviour("40-web-bind", "50-web-serve")
@pytest.mark.parametrize(("flags", "line"), [
    (["--unsafe-host", "0.0.0.0"], "every address"), (["--unsafe-host", "::"], "every address"), (["--unsafe-host", "example"], "is not an IP address"),
    (["--unsafe-host", "192.0.2.1"], "cannot be used"), (["--port", "70000"], "70000"), (["--root", "nothing"], "is not a folder"),
    (["--max-cost", "-1"], "-1"), (["--host", "0.0.0.0"], "--host"), (["--config", "nothing.toml"], "not found"),
])  # fmt: skip
def test_invalid_flags_are_one_line_errors(flags: list[str], line: str, council: Terminal) -> None:
    done = council("serve", *flags)
    assert (done.code, done.out) == (2, "")
    assert line in done.err
    assert done.err.count("\n") == 1


@pytest.mark.behaviour("50-web-extra")
@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_without_the_extra_it_says_what_to_install(tmp_path: Path, missing: str) -> None:
    code = f"import sys; sys.modules['{missing}'] = None; from council.doors.cli import main; main(['serve'])"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=write_project(tmp_path),
        env=dict(os.environ),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    done = wait_for_exit(process)
    assert done.code == 2
    assert "pip install 'model-council[web]'" in done.err
    assert done.err.count("\n") == 1
