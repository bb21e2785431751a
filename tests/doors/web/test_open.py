"""`council open`: use a running server or start one, open the browser, and name a missing package."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from council.runs.servers import find_server, register_server
from council.runs.service import Convener
from tests.acceptance.helpers import Result, wait_for_exit, wait_until
from tests.doors.web.conftest import write_project
from tests.doors.web.server import QUESTION, WebServer, environment
from tests.fork_server import SERVERS, Process


class Place:
    """A folder with one finished run, and a browser that writes down what it opens."""

    def __init__(self, place: Path, run: str) -> None:
        self.folder, self.run, self.opened = place / "project", run, place / "opened"
        browser = place / "browser"
        browser.write_text(
            f'#!/bin/sh\nprintf "%s" "$1" > "{self.opened}.part" && mv "{self.opened}.part" "{self.opened}"\n'
        )
        browser.chmod(0o755)
        path = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        self.env = environment(place) | path | {"BROWSER": f"{browser} %s"}

    def start(self, *arguments: str, **env: str) -> Process:
        return Process(["open", *arguments], self.folder, trusts=False, modules=SERVERS, **(self.env | env))  # type: ignore[arg-type]

    def open(self, *arguments: str, **more: str) -> Result:
        return wait_for_exit(self.start(*arguments, **more))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, asyncio.run(run_once(write_project(tmp_path), environment(tmp_path))))


async def run_once(folder: Path, env: dict[str, str]) -> str:
    convener = Convener(folder, env)
    minutes = await convener.run(await convener.plan([QUESTION], protocol="triad"), lambda entry: None)
    await convener.close()
    return minutes.run


@pytest.fixture
def server(place: Place) -> Iterator[WebServer]:
    served = WebServer(place.folder, place.env)
    with register_server(served.url, place.env):
        yield served
    served.close()


@pytest.mark.behaviour("50-open")
def test_it_uses_a_running_server_and_opens_the_run_in_the_browser(place: Place, server: WebServer) -> None:
    for arguments in ((), (place.run,), (place.run[:4],)):
        done = place.open(*arguments)
        assert (done.code, done.out) == (0, f"{server.url}&run={place.run}\n"), done.err
        wait_until(place.opened.exists, "the browser")
        opened, token = place.opened.read_text(), server.token
        assert re.fullmatch(rf"http://{server.host}/#code=[\w-]+&run={place.run}", opened)
        assert token not in opened
        place.opened.unlink()


@pytest.mark.behaviour("50-open")
def test_without_a_browser_it_says_so_below_the_address(place: Place, server: WebServer) -> None:
    done = place.open(BROWSER="/nowhere/browser %s", PATH="/nowhere")
    assert (done.code, done.out) == (0, f"{server.url}&run={place.run}\n")
    assert "no browser could be opened" in done.err


@pytest.mark.behaviour("50-open")
def test_without_a_server_it_starts_one_until_interrupted(place: Place) -> None:
    (Path(place.env["COUNCIL_DATA"]) / "servers").mkdir(mode=0o700)
    stale = Path(place.env["COUNCIL_DATA"]) / "servers" / "1.url"
    stale.write_text("http://127.0.0.1:9/#token=old")
    process = place.start()
    url = process.stdout.readline().strip()
    assert url.endswith(f"&run={place.run}")
    wait_until(lambda: find_server(place.env) == url.partition("&run=")[0], "the server answers")
    (file,) = (Path(place.env["COUNCIL_DATA"]) / "servers").glob("*.url")
    assert file.stat().st_mode & 0o777 == 0o600
    process.send_signal(signal.SIGINT)
    assert wait_for_exit(process).code == 0
    assert find_server(place.env) is None
    assert not stale.exists()


@pytest.mark.behaviour("50-open")
def test_without_the_web_extra_or_the_run_it_says_what_to_do(place: Place) -> None:
    code = "import sys; sys.modules['fastapi'] = None; from council.doors.cli import main; main(['open'])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=place.folder, env=place.env, text=True, capture_output=True, check=False)
    assert (done.returncode, "pip install 'model-council[web]'" in done.stderr) == (2, True)
    assert done.stderr.count("\n") == 1
    assert place.open("r99999").code == 2
    assert not place.opened.exists()
