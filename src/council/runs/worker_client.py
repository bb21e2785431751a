"""Client of the local worker: send it a queued run, and start it if it is not running."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from council.errors import CouncilError
from council.settings.config_files import cache_folder, data_folder
from council.settings.private_files import make_private_folder, open_private_handle
from council.store.locks import make_owner
from council.store.run_store import RunStore

WORKER_COMMAND = (sys.executable, "-m", "council", "serve", "worker")
LOCK_VARIABLE = "COUNCIL_WORKER_LOCK"  # file descriptor of the lock that a started worker inherits
MAX_MESSAGE_BYTES = 8 << 20  # bytes of one message
MAX_LOG_BYTES = 1 << 20  # bytes; a larger log is kept as worker.log.1, and replaces the one before
RETRY_INTERVAL_S = 0.1  # seconds between attempts
STARTUP_TIMEOUT_S = 30.0  # seconds to wait for a worker
ConnectionHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def request_worker(run: str, env: Mapping[str, str]) -> None:
    """Send a queued run and its environment to the worker, starting the worker if needed."""
    env, end = with_absolute_folders(env), time.monotonic() + STARTUP_TIMEOUT_S
    while not await _send_run(run, env):
        with worker_lock(data_folder(env)) as lock:
            if lock is not None:
                start_worker(env, lock)
        if time.monotonic() > end:
            raise CouncilError(
                f"no worker could be started for run {run}, which stays queued{_name_log(env)}: retry with `council watch {run}`"
            )
        await asyncio.sleep(RETRY_INTERVAL_S)


async def ensure_worker(store: RunStore, run: str, env: Mapping[str, str]) -> str:
    """Make sure that a worker executes a queued run. Return a warning if no worker of a shared store is alive."""
    if not store.is_shared:
        await request_worker(run, env)
        return ""
    from council.runs.queues import warn_without_worker

    return await warn_without_worker(store, run)


def with_absolute_folders(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with absolute data and cache folders, since the worker has another working directory."""
    folders = {"COUNCIL_DATA": data_folder(env), "COUNCIL_CACHE": cache_folder(env)}
    return {**env, **{name: str(folder.absolute()) for name, folder in folders.items()}}


async def _send_run(run: str, env: Mapping[str, str]) -> bool:
    with _socket_address(data_folder(env)) as address:
        try:
            reader, writer = await asyncio.open_unix_connection(address)
        except OSError:
            return False
    try:
        pid, user = _read_peer(writer.get_extra_info("socket"))
        if user != os.getuid():
            raise CouncilError(
                f'another user listens in "{data_folder(env)}", so no keys were sent: set COUNCIL_DATA to a private folder'
            )
        owner = make_owner(pid) if pid else None
        if owner and owner.is_suspended:  # it holds the lock, so no other worker can start
            owner.send(signal.SIGCONT)
        writer.write(json.dumps({"run": run, "env": dict(env)}).encode() + b"\n")
        await writer.drain()
        return await asyncio.wait_for(reader.readline(), 5) == b"ok\n"
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()


def _read_peer(peer: socket.socket) -> tuple[int, int]:
    """Return the process that listens, 0 if unknown, and its user; keys must not be sent to other users."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0, os.getuid()
    pid, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return pid, user


def start_worker(env: Mapping[str, str], lock: int) -> None:
    """Start the worker as a separate session. It inherits the lock, so that no second worker can start."""
    log = _open_log(_log_path(env))
    try:
        process = subprocess.Popen(
            WORKER_COMMAND,
            env={**env, LOCK_VARIABLE: str(lock)},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock,),
        )
    finally:
        os.close(log)
    threading.Thread(target=process.wait, daemon=True).start()  # reap it when it ends


def _open_log(path: Path) -> int:
    """Open the log of the worker. One that cannot be written, such as on a full disk, stops no run."""
    try:
        log = open_private_handle(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        if os.fstat(log).st_size > MAX_LOG_BYTES:  # it may say why the last worker ended
            os.close(log)
            path.replace(path.with_name(f"{path.name}.1"))
            log = open_private_handle(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        return log
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


def _log_path(env: Mapping[str, str]) -> Path:
    return data_folder(env) / "worker.log"


def _name_log(env: Mapping[str, str]) -> str:
    """Name the log in a message, if there is one and it says something."""
    path = _log_path(env)
    try:
        return f' (see "{path}")' if path.stat().st_size else ""
    except OSError:
        return ""


# The lock and the socket


@contextmanager
def worker_lock(folder: Path, inherited: int | None = None) -> Iterator[int | None]:
    """Hold the lock of the single worker; yield None if another process has it. It is released after kill -9."""
    make_private_folder(folder)
    handle = open_private_handle(folder / "worker.lock", os.O_RDWR) if inherited is None else inherited
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield handle
    finally:
        os.close(handle)


def find_inherited_lock(env: Mapping[str, str], folder: Path) -> int | None:
    """Return the lock inherited from the process that started this one, if any."""
    number = env.get(LOCK_VARIABLE, "")
    if not number.isdigit():
        return None
    try:
        same = os.path.samestat(os.fstat(int(number)), (folder / "worker.lock").stat())
    except OSError:
        return None
    if same:
        os.set_inheritable(int(number), False)
    return int(number) if same else None


@asynccontextmanager
async def serve_socket(folder: Path, handler: ConnectionHandler) -> AsyncIterator[None]:
    """Listen on the worker's socket, which only this user can open."""
    path = folder / "worker.sock"
    path.unlink(missing_ok=True)
    mask = os.umask(0o177)
    try:
        with _socket_address(folder) as address:
            server = await asyncio.start_unix_server(handler, address, limit=MAX_MESSAGE_BYTES)
    finally:
        os.umask(mask)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


@contextmanager
def _socket_address(folder: Path) -> Iterator[str]:
    """Yield the socket's address, through /proc/self/fd where possible, because socket paths have a length limit."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield str(folder / "worker.sock")
        return
    try:
        link = Path(f"/proc/self/fd/{handle}")
        yield f"{link if link.is_dir() else folder}/worker.sock"
    finally:
        os.close(handle)
