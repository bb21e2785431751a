"""Server on a real socket in a separate thread, and a client with full control of its requests."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from council.doors.limits import Owner
from council.doors.web.app_state import AppState, name_roots
from council.doors.web.serve import Address, make_server
from council.runs.service import Convener
from council.runs.worker_client import worker_lock
from tests.acceptance.helpers import wait_until
from tests.stored_rows import expand_texts

Json = dict[str, Any]
SEATS = ("alpha", "beta", "gamma")
SCRIPTED = '[models]\ndefault = "scripted:"\n[chair]\nmodel = "scripted:"\n' + "".join(
    f'[seats.{seat}]\nmodel = "scripted:"\n' for seat in SEATS
)
QUESTION = "Should the archive move to cold storage?"


@dataclass(frozen=True)
class Response:
    """Response of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def line(self) -> str:
        """One-line error."""
        assert set(self.json) == {"schema", "error", "exit"}
        error = self.json["error"]
        assert set(error) == {"code", "message", "field"}
        assert re.fullmatch("[a-z_]+", error["code"])
        line = str(error["message"])
        assert line
        assert not re.search(r"\n|Traceback|\x1b", line)
        assert not re.search(
            r"(^| )--[a-z]", re.sub("`[^`]*`", "", line)
        )  # commands for the owner of the server are quoted
        return line


class WebServer:
    """Server of one folder. Closing it waits for its runs and its worker."""

    def __init__(
        self, folder: Path, env: Mapping[str, str], roots: Sequence[Path] = (), max_cost: float | None = None, *, has_worker: bool = True,
        public_url: str = "",
    ) -> None:  # fmt: skip
        self.folder, self.env, self._public_url = folder, dict(env), public_url
        self._roots, self._max_cost, self._has_worker = roots, max_cost, has_worker
        self.start()

    def start(self, port: int = 0) -> None:
        owner = Owner(self.folder.resolve(), self.env, None, self._max_cost, has_worker=self._has_worker)
        self.app_state = AppState(name_roots([self.folder, *self._roots]), owner)
        address = Address(port=port, public_url=self._public_url)
        listening = address.listen()
        self.server, self.url = make_server(self.app_state, address, listening)
        self.host = urlsplit(self.url).netloc
        self.token = self.url.partition("#token=")[2]
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, args=(listening,), daemon=True)
        self._thread.start()
        wait_until(lambda: self.server.started, "the server")

    def _serve(self, listening: Any) -> None:
        self.loop.run_until_complete(self.server.serve(sockets=[listening]))

    def stop(self) -> None:
        """End the server. Its runs and its worker go on."""
        self.server.should_exit = True
        self._thread.join(60)
        assert not self._thread.is_alive(), "the server did not stop"
        self.loop.close()

    def close(self) -> None:
        self.stop()
        asyncio.run(self._stop_runs())
        wait_until(self._no_worker, "the worker exits", 60)

    async def _stop_runs(self) -> None:
        convener = Convener(self.folder, self.env)
        for run in await convener.runs():
            if run["status"] in ("queued", "running"):
                await convener.cancel(run["run"])
        await convener.close()

    def _no_worker(self) -> bool:
        with worker_lock(Path(self.env["COUNCIL_DATA"])) as free:
            return free is not None

    # Requests

    def ask(
        self, method: str, path: str, body: Any = None, *, token: bool = True, headers: Mapping[str, str | None] | None = None
    ) -> Response:  # fmt: skip
        """Send one request on a new connection. None removes a header; a str body is sent as it is."""
        with self.open_request(method, path, body, token=token, headers=headers) as response:
            return Response(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )

    @contextmanager
    def open_request(
        self, method: str, path: str, body: Any = None, *, token: bool = True, headers: Mapping[str, str | None] | None = None
    ) -> Iterator[http.client.HTTPResponse]:  # fmt: skip
        sent = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        usual: dict[str, str | None] = {"Host": self.host, "Content-Type": None if sent is None else "application/json"}
        usual |= {"Authorization": f"Bearer {self.token}" if token else None, **(headers or {})}
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in usual.items():
                if value is not None:
                    connection.putheader(name, value)
            if sent is not None:
                connection.putheader("Content-Length", str(len(sent)))
            connection.endheaders(sent)
            yield connection.getresponse()
        finally:
            connection.close()

    def get(self, path: str, status: int = 200) -> Any:
        response = self.ask("GET", path)
        assert response.status == status, response.body
        return response.json if response.headers["content-type"].startswith("application/") else response.body.decode()

    def post(self, path: str, body: Any, status: int = 200) -> Any:
        response = self.ask("POST", path, body)
        assert response.status == status, response.body
        return response.json

    def refused(self, path: str, body: Any = None, status: int = 400) -> str:
        """Send a request that must fail, and return its one-line error."""
        response = self.ask("GET" if body is None else "POST", path, body)
        assert response.status == status, (response.status, response.body)
        return response.line

    def read_stream(self, path: str, headers: Mapping[str, str | None] | None = None) -> list[Json]:
        """Read an event stream to its end."""
        with self.open_request("GET", path, headers=headers) as response:
            assert response.status == 200, response.read()
            assert (response.getheader("content-type") or "").startswith("text/event-stream")
            return list(events(response))

    # Runs

    def run_council(self, question: str = QUESTION, **how: Any) -> str:
        """Run a council in this process and return the run id."""

        async def work() -> str:
            convener = Convener(self.folder, self.env, flags=how.pop("settings", None))
            plan = await convener.plan([question], how.pop("options", None), **how)
            minutes = await convener.run(plan, lambda entry: None)
            await convener.close()
            return minutes.run

        return asyncio.run(work())

    def ledger(self, run: str) -> list[Json]:
        """Return the stored events of a run."""

        async def work() -> list[Json]:
            convener = Convener(self.folder, self.env)
            entries = await convener.entries(run)
            await convener.close()
            return [entry.as_json() for entry in entries]

        return asyncio.run(work())

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Open the store, to simulate a crash."""
        db = sqlite3.connect(Path(self.env["COUNCIL_DATA"]) / "council.db")
        try:
            expand_texts(db)
            yield db
            db.commit()
        finally:
            db.close()

    def wait_for_end(self, run: str) -> Json:
        """Wait until the run ends, and return it."""
        self.read_stream(f"/api/runs/{run}/events")
        response: Json = self.get(f"/api/runs/{run}")
        return response


def events(response: Iterator[bytes]) -> Iterator[Json]:
    """Yield each event of a stream as {id, event, data}, without comments."""
    event: Json = {}
    for line in response:
        name, colon, value = line.decode().rstrip("\n").partition(": ")
        if name in ("id", "event", "data"):
            event[name] = value
        elif not name and not colon and "data" in event:
            yield event | {"data": json.loads(event["data"])}
            event = {}


def environment(folder: Path) -> dict[str, str]:
    """Return a clean environment with a short worker idle timeout."""
    return {
        "PATH": os.environ["PATH"], "HOME": str(folder), "COUNCIL_DATA": str(folder / "data"), "COUNCIL_WORKER_IDLE": "0.3",
        "COUNCIL_CACHE": os.environ.get("COUNCIL_CACHE", str(folder / "cache")), "XDG_CONFIG_HOME": str(folder / "config"),
        **({"PYTHONPATH": path} if (path := os.environ.get("PYTHONPATH")) else {}),
    }  # fmt: skip
