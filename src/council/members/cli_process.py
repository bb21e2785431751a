"""Run an external program: write its prompt, read both output streams, and leave no process behind.

The program leads a separate process group. After an answer, a fault or a cancellation the whole group is killed; on
Linux also processes that left the group, found by a marker variable in their environment. If this process is killed, a
watchdog process kills the group and deletes the workspace.
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

MAX_OUTPUT_BYTES = 8 * 1024 * 1024  # bytes of standard output
TAIL_BYTES = 4096  # bytes of each stream kept for error messages
EXIT_WAIT_S = 1.0  # seconds to exit after the output is complete
TERM_WAIT_S = 1.0  # seconds between SIGTERM and SIGKILL
KILL_WAIT_S = 2.0  # seconds to wait after SIGKILL
POLL_S = 0.02
CALL_ID_VARIABLE = "COUNCIL_CALL"
PROC = Path("/proc")
# Waits for one line. End of file without a line means that the parent died.
WATCHDOG_SCRIPT = 'read -r finished || { kill -s KILL -- "-$1"; rm -rf -- "$2"; }'

OnOutput = Callable[[bytes], bool]  # receives bytes of a stream; returns whether they contain content


@dataclass(frozen=True, slots=True)
class AgentTimeouts:
    """Seconds until the first content, and between pieces of content. None: the deadline of the caller applies."""

    first_byte: float | None = None
    idle: float | None = None


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """Exit code and last output. `exit_code` is None if the process had to be killed."""

    exit_code: int | None
    stdout_tail: bytes  # tail of standard output
    stderr_tail: bytes  # tail of standard error


class ProcessOutput(asyncio.SubprocessProtocol):
    def __init__(self, on_output: OnOutput, on_error_output: OnOutput) -> None:
        self.on_output, self.on_error_output = on_output, on_error_output
        self.tails = {1: b"", 2: b""}
        self.open_fds = {1, 2}
        self.bytes_read = 0
        self.exited = False
        self.has_new_content = False  # new content since the last check
        self.fault: Fault | None = None  # raised by the reader of the output
        self.changed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.tails[fd] = (self.tails[fd] + data[-TAIL_BYTES:])[-TAIL_BYTES:]
        if fd == 1:
            self.bytes_read += len(data)
            if self.bytes_read <= MAX_OUTPUT_BYTES and not self.fault:
                try:
                    self.has_new_content |= self.on_output(data)
                except Fault as fault:  # the event loop would only log it
                    self.fault = fault
        else:
            self.has_new_content |= self.on_error_output(data)
        self.changed.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.open_fds.discard(fd)
        self.changed.set()

    def process_exited(self) -> None:
        self.exited = True
        self.changed.set()

    async def wait_until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            self.changed.clear()
            await self.changed.wait()


async def run_process(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: Path,
    prompt: bytes,
    timeouts: AgentTimeouts,
    on_output: OnOutput,
    on_error_output: OnOutput = lambda data: False,
    is_complete: Callable[[], bool] = lambda: False,
    is_hopeless: Callable[[], bool] = lambda: False,
) -> ProcessResult:
    """Run a program with the prompt on standard input. Raise Fault if it cannot start, stalls or prints too much."""
    call_id = secrets.token_hex(8)
    output = ProcessOutput(on_output, on_error_output)
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.subprocess_exec(
            lambda: output, *argv, env={**env, CALL_ID_VARIABLE: call_id}, cwd=folder, start_new_session=True
        )
    except OSError as error:
        raise Fault("cli:start", f"{Path(argv[0]).name} could not be started: {error.strerror or error}") from None
    group = transport.get_pid()
    with watchdog(group, folder.parent):
        try:
            pipe = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
            pipe.write(prompt)  # without waiting for the program to read it
            pipe.close()
            await _wait_for_output(output, timeouts, is_complete, is_hopeless)
            return ProcessResult(transport.get_returncode(), output.tails[1], output.tails[2])
        except Fault as fault:
            raise Fault(fault.kind, fault.detail, said=format_tails(output.tails[1], output.tails[2])) from None
        except asyncio.CancelledError as cancelled:
            cancelled.add_note(format_tails(output.tails[1], output.tails[2]))
            raise
        finally:
            try:
                await _terminate_group(group, call_id)
            except BaseException:  # cancelled again: skip SIGTERM
                _kill_group(group, call_id)
                raise
            finally:
                transport.close()


@contextmanager
def watchdog(group: int, workspace: Path) -> Iterator[None]:
    """Kill the group and delete the workspace if this process dies: the watchdog's pipe then closes."""
    argv = ["/bin/sh", "-c", WATCHDOG_SCRIPT, "watchdog", str(group), str(workspace)]
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath},
            start_new_session=True,
        )
    except OSError:  # no /bin/sh on this system, so no watchdog
        yield
        return
    try:
        yield
    finally:
        process.communicate(b"\n")


async def _wait_for_output(
    output: ProcessOutput, timeouts: AgentTimeouts, is_complete: Callable[[], bool], is_hopeless: Callable[[], bool]
) -> None:
    now = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(timeouts.first_byte) as clock:
            while not (is_complete() or is_hopeless() or output.exited or 1 not in output.open_fds):
                output.changed.clear()
                await output.changed.wait()
                _check_output_size(output)
                if output.has_new_content:  # only content extends the timeout
                    output.has_new_content = False
                    clock.reschedule(None if timeouts.idle is None else now() + timeouts.idle)
    except TimeoutError:
        raise Fault("cli:silent", "no output before the timeout; it may be waiting for input") from None
    if is_hopeless():  # it would only repeat its request
        return
    # A child process may keep the streams open after it exits, or it may not exit after its last output.
    with suppress(TimeoutError):
        async with asyncio.timeout(EXIT_WAIT_S):
            await output.wait_until(lambda: output.exited and not output.open_fds)
    _check_output_size(output)


def _check_output_size(output: ProcessOutput) -> None:
    if output.fault:
        raise output.fault
    if output.bytes_read > MAX_OUTPUT_BYTES:
        raise Fault("cli:flood", f"printed more than {MAX_OUTPUT_BYTES >> 20} MB and was stopped")


def format_tails(out: bytes, err: bytes) -> str:
    named = (("standard output", out), ("standard error", err))
    return "\n".join(f"[{name}]\n{text.decode(errors='replace')}" for name, text in named if text.strip())


async def _terminate_group(group: int, call_id: str) -> None:
    """Send SIGTERM, wait, then send SIGKILL; return when no process is left."""
    if not running_pids(group, call_id):
        return
    _signal_group(group, signal.SIGTERM)
    await _wait_until_gone(group, call_id, TERM_WAIT_S)
    _kill_group(group, call_id)
    await _wait_until_gone(group, call_id, KILL_WAIT_S)


async def _wait_until_gone(group: int, call_id: str, timeout: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            while running_pids(group, call_id):  # noqa: ASYNC110  no event exists for processes that are not our children
                await asyncio.sleep(POLL_S)


def _kill_group(group: int, call_id: str) -> None:
    _signal_group(group, signal.SIGKILL)
    for pid in running_pids(group, call_id):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _signal_group(group: int, number: int) -> bool:
    """Return whether a process received the signal."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        return True
    return False


def running_pids(group: int, call_id: str) -> list[int]:
    """Return the running processes of the group and, on Linux, all with the marker variable. Zombies do not count."""
    if not PROC.is_dir():
        return [group] if _signal_group(group, 0) else []
    marker = f"{CALL_ID_VARIABLE}={call_id}".encode()
    return [int(place.name) for place in PROC.glob("[0-9]*") if _is_in_call(place, group, marker)]


def _is_in_call(place: Path, group: int, marker: bytes) -> bool:
    try:
        state, _, process_group = (place / "stat").read_bytes().rpartition(b")")[2].split()[:3]
        if state in (b"Z", b"X"):
            return False
        return int(process_group) == group or marker in (place / "environ").read_bytes().split(b"\0")
    except (OSError, ValueError):  # exited, or owned by another user
        return False
