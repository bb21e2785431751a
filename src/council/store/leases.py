"""Leases of runs in a shared database, and the thread that renews them, reads cancel requests and announces changes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from council.errors import LeaseLost, RunOwned
from council.settings.config_files import default_owner
from council.store.interface import Connection, RunOwner
from council.store.locks import LockOwner, make_owner, word_wait
from council.store.postgres_statements import ADD_LEASE
from council.store.texts import index_run, unindex_run

CANCEL_POLL_S = 0.5  # seconds between reads of cancel requests
ANNOUNCE_INTERVAL_S = 0.05  # least seconds between announcements of a process
FOLLOW_POLL_S = 0.5  # seconds between polls of a followed run, if no change is announced
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


class LeasingStore(Protocol):
    """What the thread uses of its store."""

    lease_seconds: float

    @property
    def owned_runs(self) -> list[str]: ...
    def renew_leases(self) -> None: ...
    def connect_in_background(self) -> Any: ...


@dataclass(slots=True)
class FollowedRun:
    """Run that an event loop follows."""

    event: asyncio.Event = field(default_factory=asyncio.Event)  # set by a change
    polled: float = 0.0  # when the loop last began to wait, by the monotonic clock


class LeaseThread:
    """Thread of a store: renews the leases of this process, reads cancel requests, indexes ended runs,
    announces and receives changes.

    It has its own connection, on which a commit does not wait for the disk. Without it, followers poll.
    """

    def __init__(self, store: LeasingStore) -> None:
        self._store = store
        self.cancelled: frozenset[str] = frozenset()
        self._changed: set[str] = set()
        self._ended: list[str] = []  # runs to index
        self._followed: dict[tuple[str, asyncio.AbstractEventLoop], FollowedRun] = {}
        self._most_followed = MAX_FOLLOWED
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._is_closing = False
        self._is_listening = False
        self._thread: threading.Thread | None = None
        self._db: Any = None
        self._next_renewal = self._next_cancel = self._next_announcement = 0.0

    def start(self) -> None:
        with self._lock:
            if self._thread is None and not self._is_closing:
                self._next_renewal = time.monotonic() + self._interval
                self._thread = threading.Thread(target=self._run, name="council-leases", daemon=True)
                self._thread.start()

    @property
    def _interval(self) -> float:
        return self._store.lease_seconds / 3

    def announce(self, runs: Iterable[str], ended: Iterable[str]) -> None:
        """Tell the followers of these runs, in all processes, that they have new rows. Index those that have ended."""
        with self._lock:
            self._changed.update(runs)
            self._ended.extend(ended)
        self._wake.set()
        self.start()

    async def wait_for_change(self, run: str) -> None:
        """Return when a change of the run was announced, or after a while."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if len(self._followed) > self._most_followed:
                self._forget_idle()
            followed = self._followed.setdefault((run, loop), FollowedRun())
            followed.polled = time.monotonic()
            event = followed.event
        self.start()
        self._wake.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), FOLLOW_POLL_S if self._is_listening else FOLLOW_POLL_S / 5)
        event.clear()

    def _forget_idle(self) -> None:
        """Forget the runs that nothing follows any more. Look again when there are twice as many."""
        since = time.monotonic() - FOLLOW_IDLE_S
        self._followed = {key: one for key, one in self._followed.items() if one.polled > since}
        self._most_followed = max(MAX_FOLLOWED, 2 * len(self._followed))

    def close(self) -> None:
        with self._lock:
            self._is_closing, thread = True, self._thread
        self._wake.set()
        if thread and thread is not threading.current_thread():
            thread.join(timeout=5)

    def _run(self) -> None:
        while not self._is_closing or self._changed or self._ended:
            try:
                self._renew()
                self._read_cancelled()
                self._exchange()
                self._index_ended()
            except Exception:  # the thread must continue: the next attempt connects again
                self._drop_connection()
                if self._is_closing:
                    break
                self._wake.wait(CANCEL_POLL_S)
        self._drop_connection()

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

    def _exchange(self) -> None:
        """Announce changes, then wait for those of others, or for work."""
        self._wake.clear()
        now = time.monotonic()
        if self._changed and (now >= self._next_announcement or self._is_closing):
            self._next_announcement = now + ANNOUNCE_INTERVAL_S
            with self._lock:
                changed, self._changed = self._changed, set()
            for payload in split_payload(changed):
                self._connect().execute(f"SELECT pg_notify('{CHANNEL}', ?)", (payload,))
        if self._is_closing:
            return
        wait = ANNOUNCE_INTERVAL_S if self._changed else CANCEL_POLL_S
        if not self._followed:
            self._wake.wait(wait)
            return
        db = self._connect()
        if not self._is_listening:
            db.execute(f"LISTEN {CHANNEL}")
            self._is_listening = True
        for notice in db.raw.notifies(timeout=min(wait, ANNOUNCE_INTERVAL_S), stop_after=100):
            self._receive(notice.payload.split(","))

    def _index_ended(self) -> None:
        """Index ended runs for the search. One that was resumed since is indexed again at its end."""
        if not self._ended:
            return
        with self._lock:
            ended, self._ended = self._ended, []
        db = self._connect()
        db.execute("BEGIN")
        for run in ended:
            unindex_run(db, run)
            index_run(db, run)
        db.execute("COMMIT")

    def _receive(self, runs: Iterable[str]) -> None:
        names = set(runs)
        with self._lock:
            followed = [(loop, one.event) for (run, loop), one in self._followed.items() if run in names]
        for loop, event in followed:
            with suppress(RuntimeError):  # a closed loop
                loop.call_soon_threadsafe(event.set)

    def _connect(self) -> Any:
        if self._db is None:
            self._db = self._store.connect_in_background()
        return self._db

    def _drop_connection(self) -> None:
        self._is_listening = False
        if self._db is not None:
            with suppress(Exception):
                self._db.close()
            self._db = None


def split_payload(runs: Iterable[str]) -> list[str]:
    """Return the names of runs as few texts, each short enough for an announcement."""
    payloads, names = list[str](), list[str]()
    for run in sorted(runs):
        if names and sum(map(len, names)) + len(names) + len(run) > MAX_PAYLOAD_CHARS:
            payloads.append(",".join(names))
            names = []
        names.append(run)
    return [*payloads, ",".join(names)] if names else payloads
