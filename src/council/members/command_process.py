"""A foreign program at work: its prompt goes in, both its streams are heard at once, and nothing of it is left behind.

It is the first of a process group of its own. Whatever happens here, an answer, a fault or a cancelled wait, the whole
group is gone before this module lets go of it; on Linux also what left the group, known by a mark in its environment.
Should this process itself be killed, a watchman beside it ends the group and clears the room.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from council.errors import Fault

MOST = 8 * 1024 * 1024  # bytes of standard output
TAIL = 4096  # bytes of each stream that are kept to tell why it failed
LINGER = 1.0  # seconds to end by itself once it has said all
GRACE = 1.0  # seconds between asking it to end and making it
GONE = 2.0  # seconds in which the killed are gone
POLL = 0.02
MARK = "COUNCIL_CALL"
PROC = Path("/proc")
# It waits for one line. Where none comes, whoever should have sent it is gone.
WATCH = 'read -r all_is_well || { kill -s KILL -- "-$1"; rm -rf -- "$2"; }'

Take = Callable[[bytes], bool]  # hears bytes of standard output; whether they hold content


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds until the first content, and between one and the next."""

    first_byte: float = 300.0
    idle: float = 300.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How it went. `code` is None where it had to be ended."""

    code: int | None
    out: bytes  # the last of each stream
    err: bytes


class Conversation(asyncio.SubprocessProtocol):
    """What asyncio tells of one process."""

    def __init__(self, take: Take) -> None:
        self.take = take
        self.tails = {1: b"", 2: b""}
        self.open = {1, 2}
        self.heard = 0
        self.exited = False
        self.complete = False  # it has said all, whether or not it ends
        self.moved = False  # content came since anybody looked
        self.news = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.tails[fd] = (self.tails[fd] + data[-TAIL:])[-TAIL:]
        if fd == 1:
            self.heard += len(data)
            if self.heard <= MOST:
                self.moved |= self.take(data)
            self.news.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.open.discard(fd)
        self.news.set()

    def process_exited(self) -> None:
        self.exited = True
        self.news.set()

    async def until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            self.news.clear()
            await self.news.wait()


async def converse(
    argv: Sequence[str], *, env: Mapping[str, str], folder: Path, prompt: bytes, clocks: Clocks, take: Take,
    complete: Callable[[], bool] = lambda: False,
) -> Ended:  # fmt: skip
    """Start it in a folder of its room, give it the prompt and hear it out. Raises the Fault of a program that floods, falls silent or is not there."""
    mark = secrets.token_hex(8)
    talk = Conversation(take)
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.subprocess_exec(
            lambda: talk, *argv, env={**env, MARK: mark}, cwd=folder, start_new_session=True
        )
    except OSError as error:
        raise Fault("cli:start", f"{Path(argv[0]).name} could not be started: {error.strerror or error}") from None
    group = transport.get_pid()
    with watched(group, folder.parent):
        try:
            _feed(transport, prompt)
            await _heard_out(talk, clocks, complete)
            return Ended(transport.get_returncode(), talk.tails[1], talk.tails[2])
        except Fault as fault:
            raise Fault(fault.kind, fault.detail, said=_tails(talk)) from None
        finally:
            try:
                await _end(group, mark)
            except BaseException:  # cancelled once more: no time is left for asking
                _kill(group, mark)
                raise
            finally:
                transport.close()


@contextmanager
def watched(group: int, room: Path) -> Iterator[None]:
    """While this lasts, the group and its room do not outlive this process, however it ends: then a pipe breaks."""
    argv = ["/bin/sh", "-c", WATCH, "watchman", str(group), str(room)]
    try:
        watchman = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    cwd="/", env={"PATH": os.defpath}, start_new_session=True)  # fmt: skip
    except OSError:  # then nobody watches, as on systems without a shell
        yield
        return
    try:
        yield
    finally:
        watchman.communicate(b"\n")


def _feed(transport: asyncio.SubprocessTransport, prompt: bytes) -> None:
    """All of it and then the end, so that nobody waits for more; whoever does not read it is not waited for either."""
    pipe = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
    if prompt:
        pipe.write(prompt)
    pipe.close()


async def _heard_out(talk: Conversation, clocks: Clocks, complete: Callable[[], bool]) -> None:
    now = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(clocks.first_byte) as clock:
            while not (complete() or talk.exited or 1 not in talk.open):
                talk.news.clear()
                await talk.news.wait()
                _refuse_flood(talk)
                if talk.moved:  # only content moves the clock
                    talk.moved = False
                    clock.reschedule(now() + clocks.idle)
    except TimeoutError:
        raise Fault("cli:silent", "it fell silent: it may be waiting for input that nobody will give it") from None
    # A child of its own may hold the streams open after it has ended, and it may not end after all is said.
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            await talk.until(lambda: talk.exited and not talk.open)
    _refuse_flood(talk)


def _refuse_flood(talk: Conversation) -> None:
    if talk.heard > MOST:
        raise Fault("cli:flood", f"it wrote more than {MOST >> 20} MB and was stopped")


def _tails(talk: Conversation) -> str:
    return told(talk.tails[1], talk.tails[2])


def told(out: bytes, err: bytes) -> str:
    """The last of both streams, for whoever looks into a failure."""
    named = (("standard output", out), ("standard error", err))
    return "\n".join(f"[{name}]\n{text.decode(errors='replace')}" for name, text in named if text.strip())


async def _end(group: int, mark: str) -> None:
    """Ask, wait a moment, then make it; returns when nobody is left."""
    if not left(group, mark):
        return
    _signal(group, signal.SIGTERM)
    await _gone(group, mark, GRACE)
    _kill(group, mark)
    await _gone(group, mark, GONE)


async def _gone(group: int, mark: str, within: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            while left(group, mark):  # noqa: ASYNC110  nobody tells of processes that are not our children
                await asyncio.sleep(POLL)


def _kill(group: int, mark: str) -> None:
    _signal(group, signal.SIGKILL)
    for one in left(group, mark):
        with suppress(OSError):
            os.kill(one, signal.SIGKILL)


def _signal(group: int, number: int) -> bool:
    """Whether there was anybody to signal."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def left(group: int, mark: str) -> list[int]:
    """Who still runs: of the group, and on Linux whoever carries the mark, wherever it has gone. The dead do not count."""
    if not PROC.is_dir():
        return [group] if _signal(group, 0) else []
    return [int(place.name) for place in PROC.glob("[0-9]*") if _belongs(place, group, f"{MARK}={mark}".encode())]


def _belongs(place: Path, group: int, marked: bytes) -> bool:
    try:
        state, _, own = (place / "stat").read_bytes().rpartition(b")")[2].split()[:3]
        if state in (b"Z", b"X"):
            return False
        return int(own) == group or marked in (place / "environ").read_bytes().split(b"\0")
    except (OSError, ValueError):  # it ended, or is another user's
        return False
