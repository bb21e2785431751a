"""Crash trials: kill a run, kill it again while it is resumed, resume it to its end, and compare it with a run without
a crash.

A starter starts and resumes a run in one of the ways that people use. A point says where its process is killed: those
of `tests/kill_points.py`, `emit:N` (at the Nth event of the process, before its rows are written) and `request:N` (when
its Nth request has arrived at the endpoint).
"""

from __future__ import annotations

import asyncio
import http.client
import json
import multiprocessing
import os
import re
import shutil
import signal
import socket
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import cache, cached_property
from itertools import pairwise
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from council import events as ev
from council.render.report import build_report
from council.runs.service import Convener
from council.runs.worker_client import with_absolute_folders, worker_lock
from council.store.sqlite import SqliteStore
from tests import kill_points
from tests.acceptance.crash_shapes import SHAPES, Shape
from tests.acceptance.helpers import Json, Workspace, comparable, wait_until
from tests.acceptance.shared_store import LEASE_S
from tests.acceptance.test_money import billed
from tests.acceptance.workers import kill_remaining_workers
from tests.fake_provider import FakeProvider, Reply, Seen
from tests.fork_server import CLI, SERVERS, Process
from tests.paths import ROOT
from tests.trusted_project import trust_project

MakeStore = Callable[[Path], SqliteStore]
TIMEOUT_S = 120.0
HELLO: Json = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "crash", "version": "1"}}


# The state that a kill leaves

TABLES = {
    "events": "run, seq, type, body",
    "steps": "run, key, fingerprint",
    "intents": "run, key, n, member, body",
    "settled": "run, key, n, body",
    "results": "run, key, body",
    "phases": "run, phase, absences",
}


@dataclass(frozen=True)
class Snapshot:
    """Committed rows by table, and the number of requests that the endpoint had received."""

    rows: dict[str, set[tuple[Any, ...]]]
    sent: int

    @cached_property
    def settled(self) -> set[tuple[str, int]]:
        return {(key, n) for _, key, n, _ in self.rows["settled"]}

    @cached_property
    def bodies(self) -> dict[tuple[str, int], bytes]:
        """Requests by step and attempt."""
        return {(key, n): body for _, key, n, _, body in self.rows["intents"]}

    @property
    def answered(self) -> set[bytes]:
        """Requests whose answers are kept."""
        kept = {(key, n) for _, key, n, body in self.rows["settled"] if '"finish"' in body}
        return {body for attempt, body in self.bodies.items() if attempt in kept}

    @cached_property
    def hedged_keys(self) -> set[str]:
        """Steps on which two members have worked at the same time."""
        return {json.loads(body)["key"] for _, _, type_, body in self.rows["events"] if type_ == "hedge"}

    @property
    def lines(self) -> dict[tuple[str, str], list[int]]:
        """The attempts of each step in order; those of each member, if two have worked at the same time."""
        found: dict[tuple[str, str], list[int]] = {}
        for _, key, n, member, _ in sorted(self.rows["intents"]):
            found.setdefault((key, member if key in self.hedged_keys else ""), []).append(n)
        return found

    @property
    def in_flight(self) -> dict[tuple[str, int], bytes]:
        """The last request of each step and, if two members work on it, of each of them, if it has no result."""
        last = [(key, attempts[-1]) for (key, _), attempts in self.lines.items()]
        return {attempt: self.bodies[attempt] for attempt in last if attempt not in self.settled}

    @property
    def finished_keys(self) -> set[str]:
        """Steps that must not be asked again: those with a result, and those of finished phases."""
        ended = {phase for _, phase, _ in self.rows["phases"]}
        return {key for _, key, _ in self.rows["results"]} | {
            key for key, _ in self.bodies if key.rpartition("/")[0] in ended
        }


@dataclass(frozen=True)
class Outcome:
    """End of a run: its report, its steps, and the files on the disk."""

    report: Json
    keys: set[str]
    phases: list[str]  # of the flow, in order
    events: int
    files: dict[str, str]  # by name, with everything masked that differs between two runs


@dataclass
class Trial:
    """Result of one trial."""

    kills: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)  # kind, text

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _ in self.problems}


# The place of the trials


class CrashBench:
    """Folder, endpoint and stores of the trials of one shape."""

    def __init__(
        self, shape: Shape, folder: Path, provider: FakeProvider, set_env: Callable[[str, str], None],
        make_database: Callable[[], str] | None = None,
    ) -> None:  # fmt: skip
        """`make_database` returns the address of a new database; without it, the stores are SQLite files."""
        self.shape, self.folder, self.provider, self._set_env = shape, folder, provider, set_env
        self._make_database = make_database
        self.workspace: Workspace = shape.prepare(folder, provider)
        if make_database:
            with (folder / "council.toml").open("a") as file:
                file.write(f"[store]\nlease_seconds = {LEASE_S}\n")
        self._answer, provider.answer = provider.answer, self._answer_or_kill
        self._kill_at, self._pid, self._has_pid = 0, 0, threading.Event()
        self._trials = 0
        self.reset()

    def reset(self) -> None:
        """Start with an empty store, no reports and an empty log."""
        shutil.rmtree(self.data, ignore_errors=True) if self._trials else None
        shutil.rmtree(self.folder / ".agents", ignore_errors=True)
        self._trials += 1
        self._set_env("COUNCIL_DATA", str(self.folder.parent / f"data-{self._trials}"))
        if self._make_database:
            self._set_env("COUNCIL_DATABASE", self._make_database())
        trust_project(self.folder)
        self.provider.forget()

    @property
    def data(self) -> Path:
        return Path(os.environ["COUNCIL_DATA"])

    @property
    def run(self) -> str:
        """The only run, or "" if it was not stored."""
        runs = self.workspace.runs()
        assert len(runs) <= 1, runs
        return runs[0] if runs else ""

    # Kills by the endpoint

    def arm(self, point: str) -> None:
        """Before a process starts: kill it when its request arrives, if the point says so."""
        kind, _, number = point.partition(":")
        self._has_pid.clear()
        self._kill_at = len(self.provider.log) + int(number) if kind == "request" else 0

    def aim(self, pid: int) -> None:
        self._pid = pid
        self._has_pid.set()

    def _answer_or_kill(self, seen: Seen) -> Reply | None:
        if self._kill_at and seen.n == self._kill_at and self._has_pid.wait(10):
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        return self._answer(seen) if self._answer else None

    def settle(self) -> None:
        """Wait until the endpoint has read everything that a killed process has sent."""

        async def turn() -> None:
            for _ in range(20):
                await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(turn(), self.provider._loop).result(30)

    # Reading the state

    def snapshot(self) -> Snapshot:
        rows = {}
        for table, columns in TABLES.items():
            try:
                rows[table] = set(self.workspace.rows(f"SELECT {columns} FROM {table}"))
            except sqlite3.OperationalError:  # killed before the tables were made
                rows[table] = set()
        return Snapshot(rows, len(self.provider.log))

    def is_owned(self) -> bool:
        """Return whether a process executes the run."""

        async def work() -> bool:
            convener = Convener(self.folder)
            try:
                return await convener.store.is_locked(self.run)
            finally:
                await convener.close()

        return asyncio.run(work())

    def check_store(self) -> list[str]:
        """Return the problems that `fsck` finds, without leftovers that the next process removes."""

        async def work() -> list[str]:
            convener = Convener(self.folder)
            try:
                return [*(await convener.audit(self.run)), *(await convener.store.check_integrity())]
            finally:
                await convener.close()

        return asyncio.run(work()) if self.run else []

    def outcome(self) -> Outcome:
        async def work() -> Json:
            convener = Convener(self.folder)
            try:
                return dict(build_report(await convener.minutes(self.run)))
            finally:
                await convener.close()

        keys = {key for (key,) in self.workspace.rows("SELECT key FROM intents")}
        ends = "SELECT json_extract(body, '$.phase') FROM events WHERE type = 'phase_ended' ORDER BY seq"
        phases = [phase for (phase,) in self.workspace.rows(ends)]
        ended = [phase for phase in phases if "/" not in phase or phase.partition("/")[0] not in phases]
        ((events,),) = self.workspace.rows("SELECT count(*) FROM events")
        return Outcome(asyncio.run(work()), keys, ended, events, self._read_files())

    def _read_files(self) -> dict[str, str]:
        """Return the text of all files outside the store: the reports, and nothing else."""
        found = {}
        for place in (self.data, self.folder / ".agents"):
            for path in sorted(place.rglob("*")):
                name = str(path.relative_to(place)).replace(self.run, "RUN")
                if path.is_file() and not name.startswith(("council.db", "locks", "worker.", "servers")):
                    found[name] = self._mask(path.read_text(encoding="utf-8"))
        return found

    def _mask(self, text: str) -> str:
        """Hide the run, numbers (times, calls) and the data folder."""
        text = text.replace(self.run, "RUN").replace(str(self.data), "DATA")
        return (
            re.sub(r"\d+(\.\d+)?", "#", re.sub(r"\| Cost \|.*", "| Cost |", text))
            .replace("# calls", "# call")
            .replace("# attempts", "# attempt")
        )


# Starters


class Starter(Protocol):
    """A way to start a run and to continue it.

    Both return whether the process was killed at the point ("": at none).
    """

    name: str

    def start(self, bench: CrashBench, point: str) -> bool: ...
    def resume(self, bench: CrashBench, point: str) -> bool: ...


def _own_point(point: str) -> str:
    """Return a point that the process reaches without the endpoint, or ""."""
    return point if point.partition(":")[0] in kill_points.KINDS else ""


class ProcessFailed(Exception):
    """A process ended with an error."""


def _is_killed(code: int, said: str = "") -> bool:
    if code not in (0, -signal.SIGKILL):
        raise ProcessFailed(f"exit code {code}: {said[-1000:]}")
    return code != 0


class Command:
    """`council …` and `council resume RUN`."""

    name = "cli"

    def start(self, bench: CrashBench, point: str) -> bool:
        return self._run(bench, point, "--json", *bench.shape.arguments)

    def resume(self, bench: CrashBench, point: str) -> bool:
        return self._run(bench, point, "resume", "--json", bench.run)

    def _run(self, bench: CrashBench, point: str, *arguments: str) -> bool:
        bench.arm(point)
        process = Process(arguments, bench.folder, KILL_AT=_own_point(point))
        bench.aim(process.pid)
        out, err = process.communicate(timeout=TIMEOUT_S)
        return _is_killed(process.exit_code, out + err)


@cache
def library_processes() -> ForkServerContext:
    """Return a fork server with everything imported, so that processes start fast."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*CLI, "tests.acceptance.broken_stores", __name__])
    with chdir(ROOT):  # the package of tests is there
        forkserver.ensure_running()
    return context


class Library:
    """A Python program that uses the service, with another store if one is given."""

    name = "library"

    def __init__(self, make_store: MakeStore | None = None) -> None:
        self.make_store = make_store

    def start(self, bench: CrashBench, point: str) -> bool:
        return self._run(bench, point, "")

    def resume(self, bench: CrashBench, point: str) -> bool:
        return self._run(bench, point, bench.run)

    def _run(self, bench: CrashBench, point: str, run: str) -> bool:
        bench.arm(point)
        shape = next(name for name, shape in SHAPES.items() if shape is bench.shape)
        arguments = (bench.folder, dict(os.environ), shape, run, point, self.make_store)
        process = library_processes().Process(target=run_in_library, args=arguments)
        process.start()
        bench.aim(process.pid or 0)
        process.join(TIMEOUT_S)
        return _is_killed(process.exitcode if process.exitcode is not None else 1)


def run_in_library(
    folder: Path, env: dict[str, str], name: str, run: str, point: str, make_store: MakeStore | None
) -> None:
    """Run or resume in this process, which kills itself at the point."""
    shape, emitted = SHAPES[name], 0
    os.environ.clear()
    os.environ.update(env)
    if point.partition(":")[0] in kill_points.KINDS:
        kill_points.install(point, [env["COUNCIL_DATA"], str(folder)])

    def listen(entry: ev.Entry) -> None:
        nonlocal emitted
        emitted += entry.seq > 0
        if entry.seq > 0 and point == f"emit:{emitted}":
            kill_points.kill()

    async def work() -> None:
        store = make_store(Path(env["COUNCIL_DATA"])) if make_store else None
        convener = Convener(folder, env, flags={} if run else shape.settings, store=store)
        if run:
            await convener.resume(run, listen)
        else:
            await convener.run(
                await convener.plan(shape.words, shape.options, protocol=shape.protocol, material=shape.material),
                listen,
            )
        await convener.close()

    asyncio.run(work())


# The worker, and the servers that use it


@contextmanager
def running(bench: CrashBench, *arguments: str, point: str = "", stdin: bool = False) -> Iterator[Process]:
    """Run a server or a worker inside the block; kill it at the end if it still runs."""
    process = Process(
        arguments, bench.folder, stdin=stdin, modules=SERVERS, COUNCIL_WORKER_IDLE="60", KILL_AT=_own_point(point)
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)


class Detached:
    """A queued run in the local worker. After the worker is killed, another one takes over."""

    name = "worker"

    def start(self, bench: CrashBench, point: str) -> bool:
        async def enqueue() -> None:
            shape = bench.shape
            convener = Convener(bench.folder, flags=shape.settings)
            try:
                await convener.enqueue(
                    await convener.plan(shape.words, shape.options, protocol=shape.protocol, material=shape.material)
                )
            finally:
                await convener.close()

        asyncio.run(enqueue())
        return self.resume(bench, point)

    def resume(self, bench: CrashBench, point: str) -> bool:
        bench.arm(point)
        with running(bench, "worker", point=point) as worker:
            bench.aim(worker.pid)
            if _notify_worker(bench, worker):
                wait_until(lambda: worker.poll() is not None or _is_done(bench), "the worker ends the run")
            return _is_stopped(worker)


def _notify_worker(bench: CrashBench, worker: Process) -> bool:
    """Send the run and its environment to this worker. Return False if the worker was killed first."""
    if os.environ.get("COUNCIL_DATABASE"):  # the worker of a shared store looks into the queue
        return worker.poll() is None
    message = json.dumps({"run": bench.run, "env": with_absolute_folders(os.environ)}).encode() + b"\n"
    wait_until(lambda: worker.poll() is not None or _send(bench.data / "worker.sock", message), "the worker listens")
    return worker.poll() is None


def _end_workers(data: Path) -> bool:
    """Kill the workers. Return whether none is left, also none that is about to start: it has inherited the lock."""
    kill_remaining_workers(data)
    with worker_lock(data) as lock:
        return lock is not None


def _is_listening(bench: CrashBench) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(bench.data / "worker.sock")) == 0


def _send(address: Path, message: bytes) -> bool:
    with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
        connection.connect(str(address))
        connection.sendall(message)
        return connection.recv(16) == b"ok\n"
    return False


def _is_done(bench: CrashBench) -> bool:
    """Return whether the run is complete and no process holds its lock."""
    run = bench.run
    is_complete = bool(run) and bench.workspace.rows("SELECT status FROM runs WHERE id = ?", run) == [("complete",)]
    return is_complete and not bench.is_owned()


def _is_stopped(process: Process) -> bool:
    """Stop a worker or a server that still runs. Return whether it was killed before."""
    if process.poll() is None:
        with suppress(ProcessLookupError):  # it has just ended
            process.terminate()
        process.wait(TIMEOUT_S)
    return process.exit_code != -signal.SIGTERM and _is_killed(process.exit_code)


class Served:
    """A run that a server starts and the worker executes. One of the two processes is the victim: it is killed at the
    point. Then the other one is killed too, and a new server and a new worker continue.
    """

    arguments: tuple[str, ...]

    def __init__(self, victim: str) -> None:
        self.points_of = {"server": ("", "{}"), "worker": ("{}", "")}[victim]

    def start(self, bench: CrashBench, point: str) -> bool:
        return self._run(bench, point, self.ask_to_start)

    def resume(self, bench: CrashBench, point: str) -> bool:
        return self._run(bench, point, self.ask_to_continue)

    def _run(self, bench: CrashBench, point: str, ask: Callable[[CrashBench, Process], None]) -> bool:
        of_worker, of_server = (place.format(point) for place in self.points_of)
        bench.arm(point)
        try:
            with (
                running(bench, "worker", point=of_worker) as worker,
                running(bench, *self.arguments, point=of_server, stdin=True) as server,
            ):
                victim = worker if of_worker else server
                bench.aim(victim.pid)
                wait_until(lambda: worker.poll() is not None or _is_listening(bench), "the worker listens")
                with suppress(OSError, ValueError, http.client.HTTPException):  # the server dies while it answers
                    ask(bench, server)
                wait_until(lambda: victim.poll() is not None or _is_done(bench), "the run ends")
                return _is_stopped(victim)
        finally:
            # The server may have started a worker for the one that was killed.
            wait_until(lambda: _end_workers(bench.data), "the workers exited")

    def ask_to_start(self, bench: CrashBench, server: Process) -> None:
        raise NotImplementedError

    def ask_to_continue(self, bench: CrashBench, server: Process) -> None:
        raise NotImplementedError


class Web(Served):
    """`council serve`: a request starts the run; opening its events on another server continues it."""

    arguments = ("serve", "--port", "0")
    name = "web"

    def ask_to_start(self, bench: CrashBench, server: Process) -> None:
        shape = bench.shape
        self._request(
            server,
            "POST",
            "/api/runs",
            {"question": " ".join(shape.words), "protocol": shape.protocol, "options": shape.options},
        )

    def ask_to_continue(self, bench: CrashBench, server: Process) -> None:
        self._request(server, "GET", f"/api/runs/{bench.run}/events")

    def _request(self, server: Process, method: str, path: str, body: Json | None = None) -> None:
        url = urlsplit(server.stdout.readline().strip())
        connection = http.client.HTTPConnection(url.netloc, timeout=TIMEOUT_S)
        headers = {"Authorization": f"Bearer {url.fragment.removeprefix('token=')}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            assert response.status in (200, 201), response.read()
        finally:
            connection.close()


class Mcp(Served):
    """`council mcp`: `council_start` starts the run; `council_wait` of another server continues it."""

    arguments = ("mcp",)
    name = "mcp"

    def ask_to_start(self, bench: CrashBench, server: Process) -> None:
        shape = bench.shape
        arguments = {"question": " ".join(shape.words), "options": shape.options}
        self._call(server, "council_start", arguments | ({"protocol": shape.protocol} if shape.protocol else {}))

    def ask_to_continue(self, bench: CrashBench, server: Process) -> None:
        self._call(server, "council_wait", {"run": bench.run, "seconds": 0.1})

    def _call(self, server: Process, tool: str, arguments: Json) -> None:
        self._send(server, "initialize", HELLO, 1)
        server.stdout.readline()
        self._send(server, "notifications/initialized", {})
        self._send(server, "tools/call", {"name": tool, "arguments": arguments}, 2)
        if line := server.stdout.readline():
            assert not json.loads(line)["result"].get("isError"), line

    def _send(self, server: Process, method: str, params: Json, number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {})
        server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()


# Trials and checks


def make_reference(bench: CrashBench, starter: Starter | None = None) -> Outcome:
    """Return the end of a run without a crash: in this process, or by a starter."""

    async def work() -> None:
        shape = bench.shape
        convener = Convener(bench.folder, flags=shape.settings)
        plan = await convener.plan(shape.words, shape.options, protocol=shape.protocol, material=shape.material)
        await convener.run(plan, lambda entry: None)
        await convener.close()

    bench.reset()
    if starter:
        assert not starter.start(bench, "")
    else:
        asyncio.run(work())
    assert bench.check_store() == []
    return bench.outcome()


def count_points(bench: CrashBench, kind: str) -> int:
    """Return the number of points of a kind in an undisturbed run of the command."""
    bench.reset()
    process = Process(["--json", *bench.shape.arguments], bench.folder, KILL_AT=f"{kind}:0")
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.exit_code == 0, err
    return int(err.split()[-1])


def try_points(bench: CrashBench, starter: Starter, reference: Outcome, points: Sequence[str]) -> Trial:
    """Kill the run at the first point, its resume at the next one, and so on; then resume to the end and check
    everything.
    """
    bench.reset()
    trial, snapshots = Trial(), list[Snapshot]()
    try:
        for point in [*points, ""]:
            was_killed = (starter.resume if bench.run else starter.start)(bench, point)
            bench.settle()
            if not was_killed:
                break
            trial.kills += 1
            snapshots.append(bench.snapshot())
            trial.problems += check_kill(bench, reference, snapshots)
    except ProcessFailed as error:
        trial.problems.append(("failed", str(error)))
    trial.problems += check_end(bench, reference, snapshots)
    return trial


def check_kill(bench: CrashBench, reference: Outcome, snapshots: Sequence[Snapshot]) -> Iterator[tuple[str, str]]:
    """Yield the problems of the state that a kill has left."""
    now = snapshots[-1]
    for problem in bench.check_store():
        yield "fsck", problem
    recorded = set(now.bodies.values())
    for seen in bench.provider.log:
        if seen.raw not in recorded:
            yield "unrecorded", f"the endpoint has a request for {seen.model} that the store does not have"
    ended = {phase for _, phase, _ in now.rows["phases"]}
    top_phases = [name.partition("/")[0] for name in reference.phases]
    for phase in {key.partition("/")[0] for key, _ in now.bodies}.intersection(
        top_phases
    ):  # others end by an exception
        earlier = reference.phases[: top_phases.index(phase)]
        for missing in [name for name in earlier if name not in ended]:
            yield "lost", f"{phase} was asked, but the end of {missing} is not stored"
    yield from check_kept(snapshots)


def check_kept(snapshots: Sequence[Snapshot]) -> Iterator[tuple[str, str]]:
    for before, after in pairwise(snapshots):
        for table in TABLES:
            for row in before.rows[table] - after.rows[table]:
                yield "lost", f"a row of {table} is gone: {str(row)[:200]}"


def check_end(bench: CrashBench, reference: Outcome, snapshots: Sequence[Snapshot]) -> Iterator[tuple[str, str]]:
    """Yield the differences from a run without a crash, and everything that was lost or sent without need."""
    outcome, end, log = bench.outcome(), bench.snapshot(), bench.provider.log
    for problem in bench.check_store():
        yield "fsck", problem
    yield from check_kept([*snapshots, end])
    for before in snapshots:
        again = [seen for seen in log[before.sent :] if seen.raw in before.answered]
        for seen in again:
            yield "bought_again", f"an answer of {seen.model} was kept, and requested again"
        for key, n in end.bodies.keys() - before.bodies.keys():
            if key in before.finished_keys:
                yield "bought_again", f"{key} was finished, and requested again (attempt {n})"
    if snapshots:
        sent = {seen.raw for seen in log[snapshots[-1].sent :]}
        in_flight = snapshots[-1].in_flight
        for key in {key for key, _ in in_flight}:  # of two requests for one step, one is enough
            if not any(body in sent for (other, _), body in in_flight.items() if other == key):
                yield "not_identical", f"{key} was in flight, and its bytes were not sent again"
    yield from check_requests(end, log, snapshots)
    made, open_ = len(end.bodies), len(end.bodies.keys() - end.settled)
    if (outcome.report["calls"]["made"], outcome.report["calls"]["in_doubt"]) != (made, open_):
        yield "miscounted", f"{outcome.report['calls']}, but the ledger has {made} made and {open_} in doubt"
    if bench.shape.cap is not None:
        yield from check_money(bench, outcome, bench.shape.cap)
    if outcome.keys != reference.keys:
        yield "differs", f"steps: {sorted(outcome.keys ^ reference.keys)}"
    told, expected = (_without_cost(bench, comparable(end.report)) for end in (outcome, reference))
    yield from (("differs", text) for text in _compare(told, expected))
    yield from (("files", text) for text in _compare(outcome.files, reference.files))


def _without_cost(bench: CrashBench, report: Json) -> Json:
    """A request in doubt is charged, so the cost of a run with prices differs."""
    if bench.shape.cap is None:
        return report
    parts = {name: [{**seat, "cost": None} for seat in report[name]] for name in ("seats",)}
    return {**report, **parts, "chair": {**report["chair"], "cost": None}, "cost": None}


def _compare(found: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences of two mappings, texts line by line."""
    for name in sorted(found.keys() | expected.keys()):
        values = [mapping.get(name) for mapping in (expected, found)]
        if values[0] != values[1]:
            before, after = (value.splitlines() if isinstance(value, str) else [repr(value)] for value in values)
            yield "\n".join([name, *unified_diff(before, after, n=0, lineterm="")])


def check_money(bench: CrashBench, outcome: Outcome, cap: float) -> Iterator[tuple[str, str]]:
    """Compare the books with the bill of the endpoint: they cover it, and never exceed the cap."""
    # What a run held that was never stored does not count after a minute.
    known = "key <> '' OR run IN (SELECT id FROM runs)"
    ((nanos,),) = bench.workspace.rows(f"SELECT sum(coalesce(charged, reserved)) FROM spending WHERE {known}")
    books, bill, told = nanos / 1e9, billed(bench.provider.log), outcome.report["cost"]
    in_doubt = told.get("in_doubt", 0.0)
    if not bill - 1e-9 <= books <= cap or abs(told["usd"] + in_doubt - books) > 1e-9:
        yield "money", f"the books have {books}, the bill {bill}, the cap is {cap}, the report says {told}"
    if (told["estimated"] or in_doubt > 0) != (books > bill + 1e-9):
        yield "money", f"the books have {books}, the bill {bill}, but the report says {told}"


def check_requests(end: Snapshot, log: Sequence[Seen], snapshots: Sequence[Snapshot]) -> Iterator[tuple[str, str]]:
    """Compare the log of the endpoint with the ledger, request by request."""
    received = Counter(seen.raw for seen in log)
    recorded = Counter(end.bodies.values())
    answered = Counter(end.bodies[attempt] for attempt in end.settled)
    for body in received | recorded:
        if not answered[body] <= received[body] <= recorded[body]:
            yield (
                "miscounted",
                (
                    f"a request was received {received[body]} times, recorded {recorded[body]} times, answered {answered[body]} times"
                ),
            )
    for key, n in end.bodies.keys() - end.settled:
        if not any((key, n) in before.in_flight for before in snapshots):
            yield "miscounted", f"attempt {n} of {key} has no result, but was not in flight at a kill"
    for (key, _), attempts in end.lines.items():
        for n, later in pairwise(attempts):
            if (key, n) not in end.settled and end.bodies[key, later] != end.bodies[key, n]:
                yield "not_identical", f"attempt {later} of {key} repeats another request"
