"""Leases of runs in a shared database, and the thread that renews them and does what does not wait for the disk."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import psycopg

from council.errors import LeaseLost, RunOwned, StoreError
from council.settings.config_files import default_owner
from council.store.interface import Connection, RunOwner
from council.store.locks import LockOwner, make_owner, word_wait
from council.store.postgres_connection import PostgresConnection
from council.store.postgres_statements import ADD_LEASE
from council.store.texts import index_run, unindex_run

CANCEL_POLL_S = 0.5  # seconds between reads of cancel requests
ANNOUNCE_INTERVAL_S = 0.05  # least seconds between announcements of a process
FOLLOW_POLL_S = 0.5  # seconds between polls of a followed run, if no change is announced
SIDE_TIMEOUT_S = 30.0  # seconds that the work of this thread waits for a lost database
FOLLOW_IDLE_S = 10.0  # seconds without a poll after which a run is not followed any more
MAX_FOLLOWED = 200  # followed runs of which idle ones are kept
LOCK_TIMEOUT_MS = 5000  # milliseconds that a new owner waits for the last transaction of the old one
CHANNEL = "council_runs"
QUEUE_CHANGE = "queue"  # announced in place of a run: a run waits for a worker
MAX_PAYLOAD_CHARS = 7000  # the limit of the database is 8000 bytes


# Processes


def this_process() -> tuple[str, str, int, str]:
    """Return the name of this process over all machines, as a lease has it: owner, host, pid and start time."""
    found = make_owner(os.getpid())
    return default_owner(), _identify_host(), os.getpid(), found.started if found else ""


@lru_cache(maxsize=1)
def _identify_host() -> str:
    """Return where the id of a process is valid: the machine since its start, the container, and the user.

    A system may hide the processes of other users, so theirs cannot be found to have ended.
    """
    parts = [socket.gethostname(), str(os.getuid())]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
    with suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class RemoteOwner:
    """Process on another machine: only its lease says whether it is alive."""

    name: str
    is_alive: bool = True
    is_suspended: bool = False

    def send(self, number: signal.Signals) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Lease:
    """Right of a process to execute a run, until it expires."""

    run: str
    owner: str
    host: str
    pid: int
    started: str
    is_valid: bool  # by the clock of the database

    @property
    def is_local(self) -> bool:
        return self.host == _identify_host()

    @property
    def is_held(self) -> bool:
        """Return whether the owner may be alive. The lease of a process of this machine ends with the process."""
        return self.is_valid and (not self.is_local or self.process.is_alive)

    @property
    def process(self) -> RunOwner:
        return LockOwner(self.pid, self.started, self.run) if self.is_local else RemoteOwner(self.owner)


def explain_holder(lease: Lease) -> str:
    place = f"process {lease.pid}" if lease.is_local else f"process {lease.pid} of {lease.owner}"
    return f"run {lease.run} is running in another process ({place}): {word_wait(lease.run)}"


def explain_loss(run: str, seconds: float) -> LeaseLost:
    return LeaseLost(
        f"run {run} was taken over by another process, because this one did not renew its lease for {seconds:g} s: "
        f"nothing more was stored; `council watch {run}` follows it"
    )


LEASE_COLUMNS = "run, owner, host, pid, started, expires > clock_timestamp()"


def read_leases(db: Connection, runs: Sequence[str]) -> list[Lease]:
    query = f"SELECT {LEASE_COLUMNS} FROM leases WHERE run IN (SELECT value FROM json_each(?))"
    return [Lease(*row) for row in db.execute(query, (json.dumps(list(runs)),))]


def take_lease(db: Connection, run: str, row: tuple[object, ...]) -> None:
    """Store the lease of a run, or raise RunOwned if another process holds it."""
    db.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")  # the owner may be stopped in a transaction
    query = f"SELECT {LEASE_COLUMNS} FROM leases WHERE run = ? FOR UPDATE"
    if found := db.execute(query, (run,)).fetchone():
        lease = Lease(*found)
        if lease.is_held:
            raise RunOwned(explain_holder(lease))
        db.execute("DELETE FROM leases WHERE run = ?", (run,))
        db.execute("SELECT add_total('takeovers', '', '', 1)")
    taken = db.execute(f"{ADD_LEASE} ON CONFLICT DO NOTHING", (run, *row))
    if not taken.rowcount:  # by another process, at the same moment
        raise RunOwned(explain_holder(Lease(*db.execute(query, (run,)).fetchone())))


# Thread

RENEW_LEASES = """UPDATE leases l SET expires = clock_timestamp() + make_interval(secs => ?)
           FROM (SELECT split_part(one, ':', 1) AS run, CAST(split_part(one, ':', 2) AS BIGINT) AS token
                 FROM unnest(string_to_array(?, ',')) one) h
           WHERE l.run = h.run AND l.token = h.token RETURNING l.run"""
CANCELLED = "SELECT id FROM runs WHERE cancel = 1 AND id IN (SELECT unnest(string_to_array(?, ',')))"


SideWork = Callable[[PostgresConnection], Any]


class LeasingStore(Protocol):
    """What the thread uses of its store."""

    lease_seconds: float

    @property
    def owned_runs(self) -> list[str]: ...
    def renew_leases(self) -> None: ...
    def connect_in_background(self) -> PostgresConnection: ...


@dataclass(frozen=True, slots=True)
class SideJob:
    """Work that waits for the thread, and for the database until a time."""

    work: SideWork
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    end: float

    def resolve(self, result: Any, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop may be closed
            self.loop.call_soon_threadsafe(self._resolve, result, error)

    def _resolve(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


@dataclass(slots=True)
class FollowedRun:
    """Run that an event loop follows."""

    event: asyncio.Event = field(default_factory=asyncio.Event)  # set by a change
    polled: float = 0.0  # when the loop last began to wait, by the monotonic clock


class LeaseThread:
    """Thread of a store: renews the leases of this process, reads cancel requests, indexes ended runs, announces and
    receives changes, and executes the statements of workers.

    It has its own connection, on which a commit does not wait for the disk. Without it, and through a pooler, where a
    connection hears nothing, followers poll.
    """

    def __init__(self, store: LeasingStore) -> None:
        self._store = store
        self.cancelled: frozenset[str] = frozenset()
        self._jobs: deque[SideJob] = deque()
        self._changed: set[str] = set()
        self._ended: list[str] = []  # runs to index
        self._followed: dict[tuple[str, asyncio.AbstractEventLoop], FollowedRun] = {}
        self._most_followed = MAX_FOLLOWED
        self._lock = threading.Lock()
        self._waker = Waker()
        self._is_closing = self._is_given_up = False
        self._is_listening = self._is_pooled = False
        self._thread: threading.Thread | None = None
        self._db: PostgresConnection | None = None
        self._next_renewal = self._next_cancel = self._next_announcement = 0.0

    def start(self) -> None:
        with self._lock:
            if self._thread is None and not self._is_closing:
                self._next_renewal = self._next_renewal or time.monotonic() + self._interval
                self._thread = threading.Thread(target=self._run, name="council-leases", daemon=True)
                self._thread.start()

    @property
    def _interval(self) -> float:
        return self._store.lease_seconds / 3

    def connect(self) -> None:
        """Connect before the thread starts."""
        with self._lock:
            if self._thread is None:
                self._connect()

    async def execute(self, work: SideWork) -> Any:
        """Execute work in the thread. Wait for a lost database for a while."""
        loop = asyncio.get_running_loop()
        job = SideJob(work, loop.create_future(), loop, time.monotonic() + SIDE_TIMEOUT_S)
        with self._lock:
            is_late = self._is_closing
            if not is_late:
                self._jobs.append(job)
        if is_late:
            raise StoreError("the run store is closed: open it again")
        self.start()
        self._waker.wake()
        return await job.future

    def announce(self, runs: Iterable[str], ended: Iterable[str]) -> None:
        """Tell the followers of these runs, in all processes, that they have new rows. Index those that have ended."""
        with self._lock:
            self._changed.update(runs)
            self._ended.extend(ended)
        self._waker.wake()
        self.start()

    async def wait_for_change(self, run: str) -> bool:
        """Return whether a change of the run was announced, after a while at the latest."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if len(self._followed) > self._most_followed:
                self._forget_idle()
            followed = self._followed.setdefault((run, loop), FollowedRun())
            followed.polled = time.monotonic()
            event = followed.event
        self.start()
        self._waker.wake()
        with suppress(TimeoutError):
            is_told = self._is_listening or self._is_pooled
            await asyncio.wait_for(event.wait(), FOLLOW_POLL_S if is_told else FOLLOW_POLL_S / 5)
        is_changed = event.is_set()
        event.clear()
        return is_changed

    def give_up(self) -> None:
        """Let the thread and its jobs end now, also without the database."""
        self._is_closing = self._is_given_up = True
        self._waker.wake()
        if db := self._db:
            db.cut()
        self._fail_jobs(StoreError("the database does not answer: the process has stopped waiting for it"))

    def _forget_idle(self) -> None:
        """Forget the runs that nothing follows any more. Look again when there are twice as many."""
        since = time.monotonic() - FOLLOW_IDLE_S
        self._followed = {key: one for key, one in self._followed.items() if one.polled > since}
        self._most_followed = max(MAX_FOLLOWED, 2 * len(self._followed))

    def close(self) -> None:
        with self._lock:
            self._is_closing, thread = True, self._thread
        self._waker.wake()
        if thread and thread is not threading.current_thread():
            thread.join(timeout=1 if self._is_given_up else 5)
        elif thread is None:
            self._drop_connection()
        self._fail_jobs(StoreError("the run store is closed: open it again"))
        if thread is None or not thread.is_alive():
            self._waker.close()

    def _fail_jobs(self, error: StoreError) -> None:
        while self._jobs:
            with suppress(IndexError):
                self._jobs.popleft().resolve(None, error)

    def _run(self) -> None:
        while not self._is_given_up and (not self._is_closing or self._changed or self._ended or self._jobs):
            try:
                self._renew()
                self._execute_jobs()
                self._read_cancelled()
                self._announce()
                self._index_ended()
                self._wait()
            except Exception:  # the thread must continue: the next attempt connects again
                self._drop_connection()
                if self._is_closing:
                    break
                self._waker.wait(CANCEL_POLL_S)
        self._drop_connection()

    # Jobs

    def _execute_jobs(self) -> None:
        while self._jobs:
            job = self._jobs[0]
            if job.future.cancelled():
                self._jobs.popleft()
                continue
            result, error = None, None
            try:
                result = job.work(self._connect())
            except Exception as failure:
                if isinstance(failure, psycopg.OperationalError) and time.monotonic() < job.end:
                    raise  # and try again
                self._drop_connection()  # it may be inside of a transaction
                error = failure
            with suppress(IndexError):  # the store gives up at this moment
                self._jobs.popleft()
            job.resolve(result, error)
            self._renew()

    # Leases

    def _renew(self) -> None:
        if time.monotonic() < self._next_renewal:
            return
        self._next_renewal = time.monotonic() + self._interval
        self._store.renew_leases()

    def _read_cancelled(self) -> None:
        runs = self._store.owned_runs
        if time.monotonic() < self._next_cancel or not runs:
            return
        self._next_cancel = time.monotonic() + CANCEL_POLL_S
        rows = self._connect().execute(CANCELLED, (",".join(runs),)).fetchall()
        self.cancelled = frozenset(row[0] for row in rows)

    # Changes

    def _announce(self) -> None:
        now = time.monotonic()
        if not self._changed or (now < self._next_announcement and not self._is_closing):
            return
        self._next_announcement = now + ANNOUNCE_INTERVAL_S
        with self._lock:
            changed, self._changed = self._changed, set()
        if self._is_pooled:  # nothing comes back
            self._receive(changed)
        for payload in split_payload(changed):
            self._connect().execute(f"SELECT pg_notify('{CHANNEL}', ?)", (payload,))

    def _wait(self) -> None:
        """Wait for work, and for changes of others."""
        if self._is_closing or self._jobs or self._ended:
            return
        wait = ANNOUNCE_INTERVAL_S if self._changed else CANCEL_POLL_S
        wait = max(0.0, min(wait, self._next_renewal - time.monotonic()))
        if not self._followed or (db := self._connect()).is_pooled:
            self._waker.wait(wait)
            return
        if not self._is_listening:
            db.raw.add_notify_handler(self._on_notice)
            db.execute(f"LISTEN {CHANNEL}")
            self._is_listening = True
        if self._waker.wait(wait, db.raw.fileno()):
            db.raw.pgconn.consume_input()
            while notice := db.raw.pgconn.notifies():
                self._receive(notice.extra.decode().split(","))

    def _on_notice(self, notice: psycopg.Notify) -> None:
        self._receive(notice.payload.split(","))

    def _index_ended(self) -> None:
        """Index an ended run for the search. One that was resumed since is indexed again at its end."""
        if not self._ended:
            return
        with self._lock:
            run = self._ended.pop(0)
        with self._connect().transaction():
            unindex_run(self._connect(), run)
            index_run(self._connect(), run)

    def _receive(self, runs: Iterable[str]) -> None:
        names = set(runs)
        with self._lock:
            followed = [(loop, one.event) for (run, loop), one in self._followed.items() if run in names]
        for loop, event in followed:
            with suppress(RuntimeError):  # a closed loop
                loop.call_soon_threadsafe(event.set)

    def _connect(self) -> PostgresConnection:
        if self._is_given_up:
            raise StoreError("the database does not answer: the process has stopped waiting for it")
        if self._db is None:
            self._db = self._store.connect_in_background()
            self._is_pooled = self._db.is_pooled
        return self._db

    def _drop_connection(self) -> None:
        self._is_listening = False
        if self._db is not None:
            with suppress(Exception):
                self._db.close()
            self._db = None


class Waker:
    """Lets a thread wait until it is woken, or until the server sends something."""

    def __init__(self) -> None:
        self._ends: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._is_woken = threading.Event()

    def wake(self) -> None:
        with self._lock:
            self._is_woken.set()
            if self._ends:
                with suppress(BlockingIOError):
                    os.write(self._ends[1], b"x")

    def wait(self, seconds: float, file: int | None = None) -> bool:
        """Wait until woken. With a file, return whether it can be read."""
        if file is None:
            self._is_woken.wait(seconds)
            self._is_woken.clear()
            return False
        with self._lock:
            if self._ends is None:
                self._ends = os.pipe()
                for end in self._ends:
                    os.set_blocking(end, False)
            is_woken = self._is_woken.is_set()
        poll = select.poll()
        poll.register(file, select.POLLIN)
        poll.register(self._ends[0], select.POLLIN)
        ready = {one for one, _ in poll.poll(0 if is_woken else seconds * 1000)}
        with self._lock:
            self._is_woken.clear()
            with suppress(BlockingIOError):
                os.read(self._ends[0], 1 << 16)
        return file in ready

    def close(self) -> None:
        with self._lock:
            for end in self._ends or ():
                os.close(end)
            self._ends = None


def split_payload(runs: Iterable[str]) -> list[str]:
    """Return the names of runs as few texts, each short enough for an announcement."""
    payloads, names = list[str](), list[str]()
    for run in sorted(runs):
        if names and sum(map(len, names)) + len(names) + len(run) > MAX_PAYLOAD_CHARS:
            payloads.append(",".join(names))
            names = []
        names.append(run)
    return [*payloads, ",".join(names)] if names else payloads
