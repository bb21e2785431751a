"""Run an external program: write its prompt, read both output streams, and leave no process behind.

The program leads a separate process group. After an answer, a fault or a cancellation the whole group is killed; on Linux
also processes that left the group, found by a marker variable in their environment. If this process is killed, a watchdog
process kills the group and deletes the workspace.
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
TAIL = 4096  # bytes of each stream kept for error messages
LINGER = 1.0  # seconds to exit after the output is complete
GRACE = 1.0  # seconds between SIGTERM and SIGKILL
GONE = 2.0  # seconds to wait after SIGKILL
POLL = 0.02
MARK = "COUNCIL_CALL"
PROC = Path("/proc")
# Waits for one line. End of file without a line means that the parent died.
WATCH = 'read -r finished || { kill -s KILL -- "-$1"; rm -rf -- "$2"; }'

Take = Callable[[bytes], bool]  # receives bytes of standard output; returns whether they contain content


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds until the first content, and between pieces of content."""

    first_byte: float = 300.0
    idle: float = 300.0


@dataclass(frozen=True, slots=True)
class Ended:
    """Exit code and last output. `code` is None if the process had to be killed."""

    code: int | None
    out: bytes  # tail of standard output
    err: bytes  # tail of standard error


class Conversation(asyncio.SubprocessProtocol):
    """Output and state of one process."""

    def __init__(self, take: Take) -> None:
        self.take = take
        self.tails = {1: b"", 2: b""}
        self.open = {1, 2}
        self.heard = 0
        self.exited = False
        self.moved = False  # new content since the last check
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
    """Run a program with the prompt on standard input. Raise Fault if it cannot start, stalls or prints too much."""
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
            except BaseException:  # cancelled again: skip SIGTERM
                _kill(group, mark)
                raise
            finally:
                transport.close()


@contextmanager
def watched(group: int, room: Path) -> Iterator[None]:
    """Kill the group and delete the workspace if this process dies: the watchdog's pipe then closes."""
    argv = ["/bin/sh", "-c", WATCH, "watchdog", str(group), str(room)]
    try:
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   cwd="/", env={"PATH": os.defpath}, start_new_session=True)  # fmt: skip
    except OSError:  # no /bin/sh on this system, so no watchdog
        yield
        return
    try:
        yield
    finally:
        process.communicate(b"\n")


def _feed(transport: asyncio.SubprocessTransport, prompt: bytes) -> None:
    """Write the whole prompt and close standard input, without waiting for the program to read it."""
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
                if talk.moved:  # only content extends the timeout
                    talk.moved = False
                    clock.reschedule(now() + clocks.idle)
    except TimeoutError:
        raise Fault("cli:silent", "no output before the timeout; it may be waiting for input") from None
    # A child process may keep the streams open after it exits, or it may not exit after its last output.
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER):
            await talk.until(lambda: talk.exited and not talk.open)
    _refuse_flood(talk)


def _refuse_flood(talk: Conversation) -> None:
    if talk.heard > MOST:
        raise Fault("cli:flood", f"printed more than {MOST >> 20} MB and was stopped")


def _tails(talk: Conversation) -> str:
    return told(talk.tails[1], talk.tails[2])


def told(out: bytes, err: bytes) -> str:
    """Format the tails of both streams for error details."""
    named = (("standard output", out), ("standard error", err))
    return "\n".join(f"[{name}]\n{text.decode(errors='replace')}" for name, text in named if text.strip())


async def _end(group: int, mark: str) -> None:
    """Send SIGTERM, wait, then send SIGKILL; return when no process is left."""
    if not left(group, mark):
        return
    _signal(group, signal.SIGTERM)
    await _gone(group, mark, GRACE)
    _kill(group, mark)
    await _gone(group, mark, GONE)


async def _gone(group: int, mark: str, within: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            while left(group, mark):  # noqa: ASYNC110  no event exists for processes that are not our children
                await asyncio.sleep(POLL)


def _kill(group: int, mark: str) -> None:
    _signal(group, signal.SIGKILL)
    for one in left(group, mark):
        with suppress(OSError):
            os.kill(one, signal.SIGKILL)


def _signal(group: int, number: int) -> bool:
    """Return whether a process received the signal."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def left(group: int, mark: str) -> list[int]:
    """Return the running processes of the group and, on Linux, all with the marker variable. Zombies do not count."""
    if not PROC.is_dir():
        return [group] if _signal(group, 0) else []
    return [int(place.name) for place in PROC.glob("[0-9]*") if _belongs(place, group, f"{MARK}={mark}".encode())]


def _belongs(place: Path, group: int, marked: bytes) -> bool:
    try:
        state, _, own = (place / "stat").read_bytes().rpartition(b")")[2].split()[:3]
        if state in (b"Z", b"X"):
            return False
        return int(own) == group or marked in (place / "environ").read_bytes().split(b"\0")
    except (OSError, ValueError):  # exited, or owned by another user
        return False
