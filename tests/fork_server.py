"""Start `council` processes quickly: a server imports the package once and forks a process for each command.

Each command is a real process with its own session, environment, folder and streams; only the imports are shared. Run
as a script, this file is the server (`fork_server.py serve ADDRESS MODULE…`) or a client (`fork_server.py run ADDRESS
ARGUMENT…`) that behaves like the command `council`.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import fcntl
import gc
import hashlib
import importlib
import importlib.util
import io
import json
import os
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import _lru_cache_wrapper, cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

CLI = (
    "aiohttp", "council.doors.cli.ask", "council.doors.cli.runner", "council.doors.cli.run_commands", "council.doors.cli.batch_command", "council.doors.cli.info_commands",
    "council.doors.cli.history_commands", "council.doors.cli.report_commands", "council.doors.cli.service_commands",
    "council.members.wires.openai", "council.members.wires.anthropic", "council.members.wires.google", "genai_prices.data", "council.members.scripted", "council.members.registry", "council.render.live",
    "council.runs.worker", "council.store.postgres", "council.render.terminal_markdown", "council.render.html", "council.render.sarif", "council.render.junit",
    *(f"council.protocols.{name}.flow" for name in ("adversarial", "advisors", "collaborative", "general", "judges", "ranking", "triad")),
)  # fmt: skip
SERVERS = (
    *CLI,
    "council.doors.mcp.server",
    "council.doors.mcp.tools_impl",
    "council.doors.web.serve",
)
STDIN, STDOUT, STDERR = 0, 1, 2
PYTHON_PATH = os.environ.get("PYTHONPATH", "")  # before a test sets another one
ADDRESS, USERS = "socket", "users"  # of a server: its socket, and a pipe that each of its users holds open
REAL_WORKERS = "REAL_WORKERS"  # variable of a process that starts workers as new interpreters, as outside the tests
_kept_open: list[Any] = []  # until this process ends


# In the tests


class Process:
    """A `council` process, with the methods of `subprocess.Popen` that tests use."""

    def __init__(
        self, arguments: Sequence[str], folder: Path, *, stdin: bool = False, terminal: dict[int, int] | None = None,
        trusts: bool = True, modules: Sequence[str] = CLI, preload: str = "", umask: int | None = None, **env: str,
    ) -> None:  # fmt: skip
        """Streams are pipes, except for those of a terminal (`{0: handle}`) and for an unused standard input.

        The configuration of the folder is trusted first, unless `trusts` is false. `preload` is a library that
        replaces functions of the system in the process.
        """
        if trusts:
            from tests.trusted_project import trust_project  # not in the server

            trust_project(folder, **env)
        ours: list[Any] = []
        theirs: list[int] = []
        for fd in (STDIN, STDOUT, STDERR):
            if fd in (terminal or {}) or (fd == STDIN and not stdin):
                theirs.append(os.dup(terminal[fd]) if terminal else os.open(os.devnull, os.O_RDONLY))
                ours.append(None)
                continue
            read, write = os.pipe()
            theirs.append(read if fd == STDIN else write)
            ours.append(os.fdopen(write, "w") if fd == STDIN else os.fdopen(read, encoding="utf-8"))
        self.stdin, self.stdout, self.stderr = ours
        self.returncode: int | None = None
        self._connection = _connect(fork_server(*modules, preload=preload))
        real = {REAL_WORKERS: "1"} if preload else {}  # without its faults
        _request(self._connection, arguments, folder, {**os.environ, **real, **env}, theirs, umask=umask)
        for one in theirs:
            os.close(one)
        self._messages = self._connection.makefile("r")
        self.pid = int(self._messages.readline())

    @property
    def exit_code(self) -> int:
        """The exit code of the ended process."""
        assert self.returncode is not None, "the process is still running"
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(TimeoutError):
            self.wait(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._connection, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise TimeoutError(f"process {self.pid} did not end within {timeout} s")
            self.returncode = int(self._messages.readline())
            self._messages.close()
            self._connection.close()
        return self.returncode

    def communicate(self, text: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """Write the input, read both outputs to their ends, and wait for the exit."""
        outputs = ["", ""]

        def read(place: int, stream: Any) -> None:
            if stream is not None and not stream.closed:
                with stream:
                    outputs[place] = stream.read()

        readers = [
            threading.Thread(target=read, args=(place, stream), daemon=True)
            for place, stream in enumerate((self.stdout, self.stderr))
        ]
        for reader in readers:
            reader.start()
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                self.stdin.write(text or "")
        for reader in readers:
            reader.join(timeout)
            if reader.is_alive():
                raise TimeoutError(f"process {self.pid} did not end within {timeout} s")
        self.wait(timeout)
        return outputs[0], outputs[1]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def fork_server(*modules: str, preload: str = "") -> str:
    """Return the address of the server with these modules. The processes of a test session share it: the first one that
    needs it starts it, and it ends with the last one.
    """
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    name = hashlib.sha256("\0".join([session, preload, *modules]).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"fork-server-{name}"
    with _lock(folder):
        if not (folder / ADDRESS).exists():
            os.mkfifo(folder / USERS)
        _kept_open.append(os.open(folder / USERS, os.O_RDWR))
        if not (folder / ADDRESS).exists():
            _start_server(folder / ADDRESS, modules, preload)
    return str(folder / ADDRESS)


def _lock(folder: Path) -> IO[str]:
    """Lock a folder until the file is closed. Its server may remove it at any time before."""
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            lock = (folder / "lock").open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(lock.fileno()), (folder / "lock").stat()):
                return lock
            lock.close()


def _start_server(address: Path, modules: Sequence[str], preload: str) -> None:
    command = [sys.executable, __file__, "serve", str(address), *modules]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COUNCIL_", "XDG_", "PYTHONPATH"))}
    env |= {"PYTHONPATH": PYTHON_PATH} | ({"LD_PRELOAD": preload} if preload else {})
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd="/", env=env)
    assert server.stdout
    assert server.stdout.readline() == b"ready\n", "the fork server did not start"
    _kept_open.append(server)


def client_command(*modules: str) -> list[str]:
    """Return a command line that behaves like `council`."""
    return [sys.executable, "-I", "-S", __file__, "run", fork_server(*modules)]


@cache
def command_folder() -> Path:
    """Return a folder for PATH with a `council` that starts quickly."""
    path = Path(tempfile.mkdtemp(prefix="fork-server-command-")) / "council"
    atexit.register(shutil.rmtree, path.parent)
    path.write_text(f'#!/bin/sh\nexec {shlex.join(client_command(*CLI))} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path.parent


def command_path() -> str:
    """Return a PATH with a `council` that starts quickly, and with the programs of this environment."""
    return os.pathsep.join([str(command_folder()), str(Path(sys.executable).parent), os.environ["PATH"]])


def fork_workers(address: str = "") -> None:
    """Let the local workers that this process starts be forked too, by the server at the address or by that of the
    tests.

    Only the start of the interpreter differs: `start_worker` chooses environment, streams and lock. REAL_WORKERS turns
    it off.
    """
    from council.runs import worker_client

    forked = partial(_fork_worker, address)
    vars(worker_client)["subprocess"] = SimpleNamespace(Popen=forked, DEVNULL=subprocess.DEVNULL)


def _fork_worker(
    address: str, command: Sequence[str], *, env: Mapping[str, str], cwd: str, stdin: int, stdout: int, stderr: int,
    start_new_session: bool, pass_fds: Sequence[int],
) -> Any:  # fmt: skip
    """Start `python -m council serve worker` like `subprocess.Popen`. It outlives this process."""
    assert stdin == subprocess.DEVNULL and start_new_session
    if os.environ.get(REAL_WORKERS):
        how = {"stdin": stdin, "stdout": stdout, "stderr": stderr, "pass_fds": pass_fds}
        return subprocess.Popen(command, env=env, cwd=cwd, start_new_session=True, **how)  # type: ignore[call-overload]
    with _connect(address or fork_server(*CLI)) as connection, Path(os.devnull).open() as nothing:
        fds = (nothing.fileno(), stdout, stderr, *pass_fds)
        umask = os.umask(0)
        os.umask(umask)
        _request(connection, command[3:], Path(cwd), env, fds, command=command, kept_fds=pass_fds, umask=umask)
        with connection.makefile("r") as messages:
            pid = int(messages.readline())
    return SimpleNamespace(pid=pid, wait=lambda: None)


# Both sides


def _connect(address: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


def _request(
    connection: socket.socket, arguments: Sequence[str], folder: Path, env: Mapping[str, str], fds: Sequence[int], *,
    command: Sequence[str] = (), kept_fds: Sequence[int] = (), umask: int | None = None,
) -> None:  # fmt: skip
    """Send the streams and other files of the process, and what it executes. The other files keep their numbers.

    With a command the process outlives its client, and the system shows it as that command.
    """
    request = {"arguments": list(arguments), "folder": str(folder), "env": dict(env), "command": list(command)}
    body = json.dumps({**request, "umask": umask, "fds": [STDIN, STDOUT, STDERR, *kept_fds]}).encode()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
    connection.sendmsg([len(body).to_bytes(8, "big")], rights)
    connection.sendall(body)


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, fds, _, _ = socket.recv_fds(connection, 8, 8)
    with connection.makefile("rb") as stream:
        return json.loads(stream.read(int.from_bytes(head, "big"))), fds


# The server


def serve(address: str, modules: Sequence[str]) -> None:
    """Fork a process for every connection until no user is left. Tell its process id, then its exit code."""
    for name in modules:
        importlib.import_module(name)
    _compile_triggers()
    assert threading.active_count() == 1, "a forked process would miss the other threads"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    users = os.open(Path(address).with_name(USERS), os.O_RDONLY | os.O_NONBLOCK)
    wake, woken = socket.socketpair()
    wake.setblocking(False)
    woken.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(wake, selectors.EVENT_READ)
    selector.register(users, selectors.EVENT_READ)
    running: dict[int, socket.socket | None] = {}
    gc.freeze()  # a forked process copies fewer pages
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if key.fileobj == users:
                with _lock(Path(address).parent), contextlib.suppress(BlockingIOError):  # there is a new user
                    os.read(users, 1)
                    shutil.rmtree(Path(address).parent)
                    for pid in running:
                        os.kill(pid, signal.SIGKILL)
                    os._exit(0)
            elif key.fileobj is listener:
                connection, _ = listener.accept()
                request, fds = _receive(connection)
                if (pid := os.fork()) == 0:
                    signal.set_wakeup_fd(-1)
                    selector.close()
                    os.close(users)
                    for one in (listener, wake, woken, connection, *filter(None, running.values())):
                        one.close()
                    return _become(request, fds, address)
                for fd in fds:
                    os.close(fd)
                connection.sendall(f"{pid}\n".encode())
                if request["command"]:  # it outlives its client
                    running[pid] = None
                    connection.close()
                else:
                    running[pid] = connection
                    selector.register(connection, selectors.EVENT_READ, pid)
            elif key.fileobj is wake:
                with contextlib.suppress(BlockingIOError):
                    wake.recv(4096)
                _report_exits(running, selector)
            elif key.data in running:  # the client is gone
                os.kill(key.data, signal.SIGKILL)
                selector.unregister(key.fileobj)


def _compile_triggers() -> None:
    """Compile the patterns of the words that choose a protocol: a third of the CPU time of a short command."""
    from council.planning.intent import parse_intent

    parse_intent(["Should we keep it?"], {}, folder=Path("/"), known=())


def _report_exits(running: dict[int, socket.socket | None], selector: selectors.BaseSelector) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        if (connection := running.pop(pid)) is None:
            continue
        with contextlib.suppress(KeyError):
            selector.unregister(connection)
        with contextlib.suppress(OSError):
            connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        connection.close()


def _become(request: dict[str, Any], fds: Sequence[int], address: str) -> None:
    """Be the command in this forked process, to its end."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    free = max(*request["fds"], *fds) + 1
    received = [fcntl.fcntl(fd, fcntl.F_DUPFD, free) for fd in fds]  # none has the number that another one gets
    for fd in fds:
        os.close(fd)
    for target, fd in zip(request["fds"], received, strict=True):
        os.dup2(fd, target)
        os.close(fd)
    if os.isatty(STDIN):
        fcntl.ioctl(STDIN, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["folder"])
    if request["umask"] is not None:
        os.umask(request["umask"])
    if request["command"]:
        _show_as(request["command"])
    fork_workers(address)
    _add_python_path()
    if point := os.environ.pop("KILL_AT", ""):
        _load_kill_points().install(point, [os.environ["COUNCIL_DATA"], request["folder"]])
    sys.stdin = open(STDIN, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = _writer(STDOUT, "surrogateescape", is_unbuffered=False)
    sys.stderr = _writer(STDERR, "backslashreplace", is_unbuffered=True)
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{name}__", getattr(sys, name))
    sys.argv = ["council", *request["arguments"]]
    code = 1
    try:
        importlib.import_module("council.doors.cli").main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)  # without freeing all the modules one by one


def _show_as(command: Sequence[str]) -> None:
    """Let /proc show this command and the folders of this process, not those of the server."""
    stat = Path("/proc/self/stat")
    if not stat.exists():
        return
    places = [int(field) for field in stat.read_text(encoding="utf-8").rpartition(")")[2].split()[45:49]]
    shown = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("COUNCIL_")]
    for (start, end), words in ((places[:2], command), (places[2:], shown)):
        text = b"".join(os.fsencode(word) + b"\0" for word in words)[: end - start - 1]
        ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


def _add_python_path() -> None:
    """Import from PYTHONPATH, as a new interpreter does.

    Forget what depends on the packages that were found without it.
    """
    added = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
    if not added:
        return
    sys.path[:0] = added
    for name in [name for name in sys.modules if name.startswith("council.")]:
        for value in vars(sys.modules[name]).values():
            if isinstance(value, _lru_cache_wrapper):
                value.cache_clear()
        if name.startswith("council.doors."):
            del sys.modules[name]
            parent, _, attribute = name.rpartition(".")
            if parent in sys.modules:
                vars(sys.modules[parent]).pop(attribute, None)


def _load_kill_points() -> Any:
    """Load the module beside this file: the server has no package of tests."""
    spec = importlib.util.spec_from_file_location("kill_points", Path(__file__).with_name("kill_points.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _writer(fd: int, errors: str, *, is_unbuffered: bool) -> io.TextIOWrapper:
    return open(fd, "w", encoding="utf-8", errors=errors, buffering=1 if is_unbuffered else -1, closefd=False)


# The client


def run(address: str, arguments: Sequence[str]) -> None:
    """Run one command with the streams of this process, forward signals, and exit as it does."""
    connection = _connect(address)
    _request(connection, arguments, Path.cwd(), dict(os.environ), (STDIN, STDOUT, STDERR))
    for fd in (STDIN, STDOUT):
        os.close(fd)
    messages = connection.makefile("r")
    pid = int(messages.readline())
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: os.kill(pid, number))
    code = int(messages.readline())
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    _, role, place, *rest = sys.argv
    sys.path[:] = [path for path in sys.path if path != str(Path(__file__).parent)]
    serve(place, rest) if role == "serve" else run(place, rest)
