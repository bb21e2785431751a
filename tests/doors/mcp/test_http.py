"""`council mcp --http`: loopback only, a new token at each start, exact Host and Origin checks."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.doors.mcp.clients import HELLO, QUESTION, SCRIPTED, call_tool, environment, mcp_command, wait_until_done

Json = dict[str, Any]
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
GREETING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})


@dataclass
class Served:
    process: subprocess.Popen[str]
    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def post(self, body: str = GREETING, **headers: str) -> tuple[int, dict[str, str], str]:
        """Send one request with exactly these headers."""
        sent = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.token}"} | ACCEPT
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        line.putrequest("POST", "/mcp", skip_host=True, skip_accept_encoding=True)
        for name, value in {**sent, "Content-Length": str(len(body.encode()))}.items():
            if value:
                line.putheader(name, value)
        line.endheaders(body.encode())
        answer = line.getresponse()
        result = answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read().decode()
        line.close()
        return result


def serve(*flags: str, cwd: Path | None = None, **env: str) -> Served:
    process = subprocess.Popen(
        mcp_command("--http", *flags), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=environment(**env), cwd=cwd,
    )  # fmt: skip
    assert process.stderr
    address, bearer = process.stderr.readline(), process.stderr.readline()
    found = re.fullmatch(r"council mcp: http://127\.0\.0\.1:(\d+)/mcp\n", address)
    token = re.fullmatch(r"Authorization: Bearer (\S{40,})\n", bearer)
    assert found and token, (address, bearer, process.stderr.read())
    return Served(process, int(found[1]), token[1])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests of this file, with its own folder and data."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "council.toml").write_text(SCRIPTED, encoding="utf-8")
    exposed = {"HOST": "0.0.0.0", "UVICORN_HOST": "0.0.0.0", "FORWARDED_ALLOW_IPS": "*", "WEB_CONCURRENCY": "3"}
    running = serve(cwd=folder, COUNCIL_DATA=str(folder / "data"), XDG_CONFIG_HOME=str(folder / "config"), **exposed)
    yield running
    running.process.send_signal(signal.SIGTERM)
    running.process.communicate(timeout=60)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.behaviour("40-mcp-http")
async def test_the_sdk_client_runs_a_council_over_http_with_the_token(served: Served, mode: str) -> None:
    web = httpx2.AsyncClient(headers={"Authorization": f"Bearer {served.token}"}, timeout=60)
    async with web, Client(streamable_http_client(served.url, http_client=web), mode=mode) as client:
        run = (await call_tool(client, "council_start", question=QUESTION))["run"]
        assert (await wait_until_done(client, run))["status"] == "complete"
        assert (await call_tool(client, "council_result", run=run))["question"] == QUESTION


@pytest.mark.behaviour("40-mcp-http")
def test_requests_need_the_right_host_origin_and_token(served: Served) -> None:
    at = f"127.0.0.1:{served.port}"
    assert served.post()[0] == 200
    assert served.post(Host=f"localhost:{served.port}", Origin=f"http://localhost:{served.port}")[0] == 200
    assert served.post(Sec_Fetch_Site="same-origin", Origin=f"http://{at}")[0] == 200
    for host in (
        "",
        "127.0.0.1",
        f"evil.example:{served.port}",
        f"{at}.evil.example",
        "127.0.0.1:1",
        f"localhost.:{served.port}",
    ):
        assert served.post(Host=host)[0] == 400, host
    for origin in ("null", "http://evil.example", f"https://{at}", f"http://{at}.evil.example", "http://127.0.0.1:1"):
        assert served.post(Origin=origin)[0] == 403, origin
    for site in ("cross-site", "same-site"):
        assert served.post(Sec_Fetch_Site=site)[0] == 403, site
    for bearer in (
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        f"Basic {served.token}",
        served.token,
        f"Bearer {served.token}x",
    ):
        status, headers, body = served.post(Authorization=bearer)
        assert (status, headers["www-authenticate"]) == (401, "Bearer"), bearer
        assert json.loads(body)["schema"] == "council.error/1"
        assert served.token not in body
    assert served.post("{")[0] == 400
    assert served.post(Content_Type="text/plain")[0] == 400


@pytest.mark.behaviour("40-mcp-http")
def test_it_listens_only_on_loopback_despite_environment_variables(served: Served) -> None:
    other = "127.0.0.2"  # also this machine; a server on all addresses would answer
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((other, served.port), timeout=2)


@pytest.mark.behaviour("40-mcp-http")
def test_each_start_prints_a_new_token_once(served: Served) -> None:
    another = serve()
    try:
        assert another.token != served.token
        assert another.post(Authorization=f"Bearer {served.token}")[0] == 401
    finally:
        another.process.send_signal(signal.SIGTERM)
        out, err = another.process.communicate(timeout=60)
    assert (out, err) == ("", "")


def test_a_port_in_use_is_a_one_line_error(served: Served) -> None:
    command = mcp_command("--http", "--port", str(served.port))
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f'council: port "{served.port}" is already in use')
    assert done.stderr.count("\n") == 1
