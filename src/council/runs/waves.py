"""Waves: the requests of a slow batch, sent together through the batch interfaces of vendors.

The councils of a batch ask until each of them waits. Then what they ask is one job for each member, and the councils
continue with its results. Beside the output, OUT.jsonl.waves has the jobs and their requests: after a crash, the same
command collects the results that are paid for, and asks nothing of them again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from council.engine.layout import format_count
from council.errors import CouncilError, Fault
from council.members.base import Member, OnDelta
from council.members.wires.batches import MAX_BYTES, MAX_REQUESTS, BatchApi, BatchResult, find_batch_api
from council.members.wires.wire import WireMember
from council.settings.private_files import open_named_file
from council.types import Answer, Ask

QUIET_S = 2.0  # seconds without a new request until a wave is sent
FIRST_POLL_S, MAX_POLL_S = 5.0, 60.0  # between two looks at the jobs; longer each time
WAIT_S = 26 * 3600.0  # that a request may take: vendors end a job within a day
PRICE_DIVISOR = 2  # a request in a job costs half


class WaveLine(TypedDict, total=False):
    """A line of the file: a wave before it is sent, its job, or its end."""

    wave: str
    member: str
    requests: list[str]
    job: str
    ended: bool


@dataclass(slots=True)
class Wave:
    """Requests of one member that are one job."""

    name: str
    member: str
    requests: list[str]
    job: str = ""


@dataclass(slots=True)
class Waiting:
    """A request that waits for its result."""

    member: WireMember
    name: str
    body: bytes
    result: asyncio.Future[BatchResult] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class SlowMember(Member):
    """Member whose requests are sent in waves."""

    def __init__(self, inner: WireMember, waves: Waves) -> None:
        self.inner, self._waves = inner, waves
        self.name, self.vendor, self.small, self.free = inner.name, inner.vendor, inner.small, inner.free
        self.backoff, self.thinks, self.max_output_tokens = inner.backoff, inner.thinks, inner.max_output_tokens

    @property
    def accepts(self) -> Collection[str]:
        return self.inner.accepts

    def prepare(self, ask: Ask) -> bytes:
        return self.inner.prepare(ask)

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        result = await self._waves.ask(self.inner, body)
        if result.error is not None or result.body is None:
            raise self.inner.make_result_fault(result.status, result.error)
        return self.inner.read_answer(result.body, on_delta)

    async def probe(self) -> str:
        return await self.inner.probe()

    async def close(self) -> None:
        await self.inner.close()


class Waves:
    """The waves of one batch."""

    wait_seconds = WAIT_S
    price_divisor = PRICE_DIVISOR

    def __init__(self, output: Path, say: Callable[[str], object] = lambda line: None) -> None:
        self.path = output.with_name(f"{output.name}.waves")
        self.say = say
        self.quiet_seconds, self.first_poll, self.max_poll = QUIET_S, FIRST_POLL_S, MAX_POLL_S
        self._known = {wave.name: wave for wave in read_waves(self.path)}  # with their jobs
        self._used: Counter[str] = Counter()  # how often a request was asked in this process
        self._new: list[Waiting] = []
        self._sent: dict[str, list[Waiting]] = {}  # by request, those that wait for the result of a wave
        self._apis: dict[str, BatchApi] = {}
        self._last_request = 0.0
        self._task: asyncio.Task[None] | None = None

    def wrap(self, member: Member) -> Member:
        """Return a member whose requests are sent in waves, or the member itself if its vendor has no interface."""
        is_known = isinstance(member, WireMember) and find_batch_api(member) is not None
        return SlowMember(member, self) if is_known and isinstance(member, WireMember) else member

    def is_slow(self, member: Member) -> bool:
        """Return whether the requests of a member are sent in waves."""
        return isinstance(member, SlowMember)

    async def ask(self, member: WireMember, body: bytes) -> BatchResult:
        """Return the result of a request: of a wave that has it already, or of the next one."""
        digest = hashlib.sha256(member.name.encode() + b"\0" + body).hexdigest()[:32]
        self._used[digest] += 1
        one = Waiting(member, f"{digest}-{self._used[digest]}", body)
        self._last_request = asyncio.get_running_loop().time()
        if any(one.name in wave.requests for wave in self._known.values()):
            self._sent.setdefault(one.name, []).append(one)
        else:
            self._new.append(one)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await one.result

    async def close(self) -> None:
        """Stop waiting. The jobs continue at the vendors."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._sent:
            waiting = format_count(len(self._sent), "request")
            self.say(f"{waiting} wait for jobs of vendors: run the same command again to collect their results")

    async def _work(self) -> None:
        loop, pause = asyncio.get_running_loop(), self.first_poll
        next_poll = loop.time()
        while self._new or self._sent:
            if self._new and loop.time() - self._last_request >= self.quiet_seconds:
                await self._send_wave()
                next_poll, pause = loop.time() + self.first_poll, self.first_poll
            if self._sent and loop.time() >= next_poll:
                has_results = await self._collect()
                pause = self.first_poll if has_results else min(2 * pause, self.max_poll)
                next_poll = loop.time() + pause
            due = [next_poll] if self._sent else []
            due += [self._last_request + self.quiet_seconds] if self._new else []
            if due:
                await asyncio.sleep(max(0.01, min(due) - loop.time()))

    # Sending

    async def _send_wave(self) -> None:
        asked, self._new = [one for one in self._new if not one.result.done()], []
        members = {one.member.name: one.member for one in asked}
        for name, member in members.items():
            for part in divide([one for one in asked if one.member.name == name]):
                await self._send_job(member, part)

    async def _send_job(self, member: WireMember, part: list[Waiting]) -> None:
        wave = Wave(f"w{secrets.token_hex(4)}", member.name, [one.name for one in part])
        self._write({"wave": wave.name, "member": wave.member, "requests": wave.requests})
        try:
            wave.job = await self._api(member).submit({one.name: one.body for one in part})
        except Exception as error:
            fault = error if isinstance(error, Fault) else Fault("endpoint", f"{type(error).__name__}: {error}")
            self._write({"wave": wave.name, "ended": True})
            for one in part:
                if not one.result.done():
                    one.result.set_exception(fault)
            return
        self._write({"wave": wave.name, "job": wave.job})
        self._known[wave.name] = wave
        for one in part:
            self._sent.setdefault(one.name, []).append(one)
        self.say(f"{len(part)} requests were sent to {member.name} as the job {wave.job}")

    def _api(self, member: WireMember) -> BatchApi:
        if member.name not in self._apis:
            api = find_batch_api(member)
            assert api is not None
            self._apis[member.name] = api
        return self._apis[member.name]

    # Collecting

    async def _collect(self) -> bool:
        """Look at the jobs whose results are waited for. Return whether any result has arrived."""
        has_results = False
        for wave in list(self._known.values()):
            wanted = [name for name in wave.requests if name in self._sent]
            if not wanted:
                continue
            member, results = self._sent[wanted[0]][0].member, None
            with suppress(Fault):  # it is looked at again
                results = await self._api(member).collect(wave.job)
            if results is not None:
                has_results = True
                self._resolve(wanted, results)
        return has_results

    def _resolve(self, wanted: list[str], results: Mapping[str, BatchResult]) -> None:
        for name in wanted:
            result = results.get(name, BatchResult(status=0, error={"message": "the job has no result of the request"}))
            for one in self._sent.pop(name):
                if not one.result.done():
                    one.result.set_result(result)

    # File

    def _write(self, line: WaveLine) -> None:
        """Add a line, on disk before anything else is sent."""
        with open_named_file(self.path, "ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def read_waves(path: Path) -> Iterator[Wave]:
    """Yield the waves of a file that have a job."""
    waves: dict[str, Wave] = {}
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        raise CouncilError(f'"{path}" cannot be read ({error.strerror}): it has the jobs that are paid for') from error
    for text in lines:
        with suppress(ValueError, KeyError, TypeError):  # the last line may be cut
            line: WaveLine = json.loads(text)
            if "requests" in line:
                waves[line["wave"]] = Wave(line["wave"], line["member"], list(line["requests"]))
            elif "job" in line:
                waves[line["wave"]].job = line["job"]
            else:
                waves.pop(line["wave"], None)
    yield from (wave for wave in waves.values() if wave.job)


def divide(requests: list[Waiting]) -> Iterator[list[Waiting]]:
    """Divide requests into jobs."""
    part: list[Waiting] = []
    size = 0
    for one in requests:
        if part and (len(part) >= MAX_REQUESTS or size + len(one.body) > MAX_BYTES):
            yield part
            part, size = [], 0
        part.append(one)
        size += len(one.body)
    if part:
        yield part
