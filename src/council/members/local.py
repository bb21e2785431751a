"""Embedded model: the chat-completions wire to a llama.cpp server on the loopback interface.

One server per weights file, shared by all seats of the process; closing the last member stops it. The text that the
prompts of several seats have in common is evaluated once.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import threading
import zlib
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from council.errors import Fault, LocalModelError, UsageError
from council.members import local_weights
from council.members.base import MemberContext, OnDelta, Progress
from council.members.wires.http import Endpoint, read_body
from council.members.wires.openai import OpenAIMember, OpenAIRequest
from council.types import Answer, Ask, Json, Message

if TYPE_CHECKING:
    from aiohttp import ClientResponse

T = TypeVar("T")
SMALL_MODEL_BYTES = 10**9  # models with smaller files get the compact prompts
SERVER_SCRIPT = Path(__file__).with_name("local_server.py")
PLACEHOLDER_URL = "http://127.0.0.1:9/v1"  # replaced in `ready`
# Threads that wait for each other give up their core after 100 turns: otherwise another program on it slows the model
# down tenfold.
SPIN_TURNS = "100"
JOIN_WINDOW_S = 0.02  # the requests of a phase arrive within this time of each other
MIN_SAVED_CHARS = 256  # sharing a prefix takes a few requests to the server, as long as evaluating this much text
CGROUPS = Path("/sys/fs/cgroup")


class SeededRequest(OpenAIRequest, total=False):
    """A request that gets the same answer each time."""

    seed: int
    cache_prompt: bool


class ServerConfig(TypedDict):
    """What a server process is started with: the arguments of `start_server`."""

    path: str
    key: str
    threads: int
    seats: int
    context: int


class ServerResponse(TypedDict, total=False):
    """What a server process answers: its address, or why it did not start."""

    address: str
    state_file: str  # empty if there is none
    error: str


class LocalMember(OpenAIMember):
    """`local:smollm2`, or `local:/path/to/model.gguf`."""

    def __init__(self, name: str, *, cache: Path, env: Mapping[str, str] = os.environ, folder: Path = Path()) -> None:
        """A relative path of a model file belongs to the folder."""
        self.model_ref, self.folder = name.removeprefix("local:"), folder
        small = self.model_ref in local_weights.KNOWN_WEIGHTS or _file_size(self.model_ref, folder) < SMALL_MODEL_BYTES
        self.seed = env.get("COUNCIL_LOCAL_SEED", "")
        # A small model serves three seats at once; a large one only one, because of memory. A seeded one does too,
        # because requests that are evaluated together change each other's last digits.
        self.seats, self.context = (1 if self.seed else 3, 4096) if small else (1, 8192)
        threads = env.get("COUNCIL_LOCAL_THREADS", "")
        self.cache, self.threads = cache, max(1, int(threads)) if threads.isdigit() else count_cores()
        self._server: LocalServer | None = None
        self._prefix: PrefixSharing | None = None
        super().__init__(
            name,
            base_url=PLACEHOLDER_URL,
            model=self.model_ref,
            api_key=None,
            vendor="local",
            small=small,
            free=True,
            efforts=(),
            first_byte=600.0,
            idle=120.0,
            max_connections=self.seats,
            backoff=0.1,
        )

    def body(self, ask: Ask) -> OpenAIRequest:
        """Return the request. With a seed, equal requests get equal answers, and another sample another one."""
        body = super().body(ask)
        if not self.seed:
            return body
        text = json.dumps([self.seed, ask.key, body], sort_keys=True)
        seeded: SeededRequest = {**body, "seed": zlib.crc32(text.encode()), "cache_prompt": False}
        return seeded

    async def ready(self, progress: Progress) -> None:
        """Fetch the weights and start the server in a thread; cancellation stops the thread too."""
        loop, stop = asyncio.get_running_loop(), threading.Event()

        def report_progress(what: str, done: int, total: int) -> None:
            loop.call_soon_threadsafe(progress, what, done, total)

        try:
            server = await asyncio.to_thread(self._start_server, report_progress, stop)
        finally:
            stop.set()
        if server is not self._server:
            self._server = server
            await self.endpoint.close()
            if self._prefix:
                await self._prefix.endpoint.close()
            self.endpoint = server.endpoint(self.seats)
            self._prefix = PrefixSharing(server, self.seats, self.first_byte)

    async def connect_ahead(self) -> None:
        """Do nothing: the server starts in `ready`."""

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
        if weights := local_weights.KNOWN_WEIGHTS.get(self.model_ref):
            file = local_weights.fetch_weights(weights, self.cache, progress, stop)
        else:
            file = local_weights.check_user_file(self.model_ref, self.folder)
        return LocalServer.acquire(file, self, stop)

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        if self._server is None or not self._server.is_alive:
            try:  # used as a fallback, or its process died
                await self.ready(lambda what, done, total: None)
            except LocalModelError as error:
                raise Fault("model", str(error)) from None
        if self._prefix is None:
            return await super().send(body, on_delta)
        async with self._prefix.share(body):
            return await super().send(body, on_delta)

    async def probe(self) -> str:
        """Check the installation and the weights file without loading the model."""
        _require_llama()
        weights = local_weights.KNOWN_WEIGHTS.get(self.model_ref)
        if weights is None:
            return f"{local_weights.check_user_file(self.model_ref, self.folder).name} is available"
        if local_weights.find_cached(weights, self.cache):
            return f"{weights.file_name} is downloaded"
        raise LocalModelError(
            f"{weights.file_name} is not downloaded: the first run downloads it ({weights.wheel_bytes // 1_000_000} MB)"
        )

    async def close(self) -> None:
        await super().close()
        if self._prefix:
            await self._prefix.endpoint.close()
        self._server = self._prefix = None
        await asyncio.to_thread(LocalServer.release, self)


def _require_llama() -> None:
    if find_spec("xllamacpp") is None:
        raise LocalModelError(
            "the embedded model needs llama.cpp, which is not installed: run `pip install 'model-council[local]'`"
        )


class LocalServer:
    _running: dict[Path, LocalServer] = {}  # noqa: RUF012
    _lock = threading.Lock()

    def __init__(self, file: Path, member: LocalMember, stop: threading.Event) -> None:
        self.file = file
        self.key = secrets.token_urlsafe(24)
        self.users: set[int] = set()
        self.requests = 0  # of all members, waiting or running
        self.prompts: deque[str] = deque(maxlen=member.seats)  # the last ones: what the slots hold
        # A new session, so Ctrl-C reaches only the council, which then stops the server.
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(SERVER_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={"GOMP_SPINCOUNT": SPIN_TURNS, **os.environ},
        )
        config: ServerConfig = {
            "path": str(file),
            "key": self.key,
            "threads": member.threads,
            "seats": member.seats,
            "context": member.context,
        }
        self.state_file = ""  # name of the file for the state of a slot; empty if there is none
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

    def endpoint(self, seats: int, path: str = "/v1") -> Endpoint:
        # llama.cpp closes connections after a stream without announcing it, so each is used once.
        headers = {"Authorization": f"Bearer {self.key}"}
        return Endpoint(f"{self.address}{path}", headers=headers, secret=self.key, limit=seats, reuse=False)

    def _wait_for_address(self, config: ServerConfig, stop: threading.Event) -> str:
        response: ServerResponse = {}
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
        self.state_file = str(response.get("state_file", ""))
        return str(response["address"])

    def _send_config(self, config: ServerConfig) -> ServerResponse:
        assert self.process.stdin and self.process.stdout
        response: ServerResponse = {}
        with suppress(OSError):
            self.process.stdin.write(json.dumps(config).encode() + b"\n")
            self.process.stdin.flush()
            response = json.loads(self.process.stdout.readline() or b"{}")
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


class PrefixSharing:
    """Prefixes of the prompts of one member: what the waiting requests have in common is evaluated once, for all slots.

    llama.cpp keeps the last prompt of each slot and evaluates only what follows the part it knows. The seats of a phase
    start together, in different slots, so each slot would evaluate the common part again.
    """

    def __init__(self, server: LocalServer, slots: int, timeout: float | None) -> None:
        self.server, self.slots, self.timeout = server, slots, timeout
        self.endpoint = server.endpoint(slots, path="")
        self.evaluated = 0  # tokens of prefixes, which no request counts
        self.waiting: list[list[Message]] = []  # messages of the requests that wait for the common prefix
        self.task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def share(self, body: bytes) -> AsyncIterator[None]:
        """Wait until the prefix of this and other waiting requests is evaluated."""
        messages: list[Message] = json.loads(body)["messages"]
        self.server.requests += 1
        try:
            if self.slots > 1 and self.server.state_file:
                await self._join(messages)
            self.server.prompts.append(_join_messages(messages))
            yield
        finally:
            self.server.requests -= 1

    async def _join(self, messages: list[Message]) -> None:
        if self.task is None:
            self.task = asyncio.create_task(self._evaluate_when_quiet())
        self.waiting.append(messages)
        task = self.task
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if messages in self.waiting:
                self.waiting.remove(messages)
            if not self.waiting:
                task.cancel()
            raise

    async def _evaluate_when_quiet(self) -> None:
        """Evaluate the common prefix as soon as no further request arrives, unless the server is busy."""
        try:
            count = 0
            while count < len(self.waiting) < self.slots:
                count = len(self.waiting)
                await asyncio.sleep(JOIN_WINDOW_S)
            prompts = self.waiting
            if self.server.requests == len(prompts) <= self.slots and self._saved_chars(prompts) >= MIN_SAVED_CHARS:
                await self._evaluate_prefix(prompts)
        except (Fault, LookupError, TypeError, ValueError):
            pass  # the requests themselves report the problem
        finally:
            self.waiting, self.task = [], None

    def _saved_chars(self, prompts: Sequence[list[Message]]) -> int:
        """Return how much less text is evaluated with a shared prefix than without, given what the slots hold."""
        texts = [_join_messages(messages) for messages in prompts]
        prefix = texts[0][: _common_length(texts)]
        alone = sum(len(text) - self._known_chars(text) for text in texts)
        return alone - (len(prefix) - self._known_chars(prefix)) - sum(len(text) - len(prefix) for text in texts)

    def _known_chars(self, text: str) -> int:
        return max((_common_length([text, known]) for known in self.server.prompts), default=0)

    async def _evaluate_prefix(self, prompts: Sequence[list[Message]]) -> None:
        tokens = await asyncio.gather(*(self._tokenize(messages) for messages in prompts))
        # Each request evaluates something itself.
        shared = min(_common_length(tokens), *(len(row) - 1 for row in tokens))
        done = await self._post("/completion", {"prompt": tokens[0][:shared], "n_predict": 0, "cache_prompt": True})
        self.evaluated += int(done["timings"]["prompt_n"])
        slot, file = int(done["id_slot"]), {"filename": self.server.state_file}
        await self._post(f"/slots/{slot}?action=save", file)
        for other in [n for n in range(self.slots) if n != slot][: len(prompts) - 1]:
            await self._post(f"/slots/{other}?action=restore", file)

    async def _tokenize(self, messages: list[Message]) -> list[int]:
        prompt = (await self._post("/apply-template", {"messages": messages}))["prompt"]
        found = await self._post("/tokenize", {"content": prompt, "add_special": True, "parse_special": True})
        tokens: list[int] = found["tokens"]
        return tokens

    async def _post(self, path: str, body: Json) -> Json:
        async def read(response: ClientResponse, clock: asyncio.Timeout) -> Any:
            await self.endpoint.check_status(response)
            return json.loads(await read_body(response, self.endpoint.limits.body))

        found: Json = await self.endpoint.post(path, json.dumps(body).encode(), self.timeout, read, str)
        return found


def _join_messages(messages: Iterable[Message]) -> str:
    return "\n".join(f"{message['role']}\n{message['content']}" for message in messages)


def _common_length(rows: Sequence[str] | Sequence[list[int]]) -> int:
    """Return how many characters or tokens all rows begin with."""
    first, last = min(rows), max(rows)  # the rows between them in order share at least what these two do
    pairs = enumerate(zip(first, last, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(first), len(last)))


def _file_size(path: str, folder: Path) -> int:
    with suppress(OSError):  # `ready` reports the problem
        return (folder / Path(path).expanduser()).stat().st_size
    return 0


def count_cores(cgroups: Path = CGROUPS) -> int:
    """Return how many cores this process may use: by its affinity, and by the quota of its container."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([affinity, *(int(quota) for quota in _read_quotas(cgroups))]))


def _read_quotas(cgroups: Path) -> Iterator[float]:
    """Yield the quotas in cores, of version 2 and of version 1 of the control groups."""
    for files in (["cpu.max"], ["cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"]):
        try:
            quota, period = " ".join((cgroups / file).read_text(encoding="ascii") for file in files).split()
            if float(quota) > 0:  # "max" and -1 mean no quota
                yield float(quota) / float(period)
        except (OSError, ValueError, ZeroDivisionError):
            continue


def make_local_member(name: str, context: MemberContext) -> LocalMember:
    return LocalMember(name, cache=context.cache, env=context.env, folder=context.folder)
