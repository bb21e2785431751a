"""Open stores that the calls of this process share, one for each address, and all stores during a fork."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

from council.errors import StoreError, UsageError
from council.settings.private_files import describe_changes, repair_folder
from council.store.interface import StoreAddress
from council.store.run_store import RunStore
from council.threads import run_in_daemon_thread

MAX_IDLE_STORES = 4  # kept open without a user
FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 10.0  # between attempts to open a shared store
CLOSE_TIMEOUT_S = 5.0  # seconds that a shared store has to close, before it gives up


def open_store(address: StoreAddress) -> RunStore:
    """Open the store at an address. Create it, or bring it to the present schema, if needed."""
    if changes := describe_changes([repair_folder(address.folder, is_named=True)]):  # the command line has done it
        logging.getLogger("council").warning(changes)
    if not address.url:
        from council.store.sqlite import SqliteStore

        return SqliteStore(address.folder)
    if not address.url.startswith(("postgresql://", "postgres://")):
        raise UsageError(
            "the address of the database is invalid: COUNCIL_DATABASE and [store] url start with postgresql://"
        )
    try:
        from council.store.postgres import PostgresStore

        return PostgresStore(address)
    except ImportError as error:
        raise UsageError(
            f"a run store in PostgreSQL needs the package psycopg ({error}): pip install 'model-council[postgres]'"
        ) from None


# Servers


async def open_patiently(address: StoreAddress, on_failure: Callable[[StoreError], object]) -> RunStore:
    """Open a store with all its connections. Wait for a database that cannot be reached or is full.

    Raise StoreError if another attempt cannot succeed, such as for a wrong password.
    """
    pause = FIRST_PAUSE_S
    while True:
        try:
            return await _open_in_thread(address)
        except StoreError as error:
            if not _may_succeed_later(address, error):
                raise
            on_failure(error)
        await asyncio.sleep(pause * random.uniform(0.5, 1))  # processes that start at once do not try at once
        pause = min(2 * pause, MAX_PAUSE_S)


async def _open_in_thread(address: StoreAddress) -> RunStore:
    """Open a store in a thread: a database that hangs does not stop the event loop."""
    is_wanted = threading.Event()
    is_wanted.set()

    def work() -> RunStore:
        store = open_store(address)
        try:
            store.connect_fully()
        except StoreError:
            store.close()
            raise
        if not is_wanted.is_set():
            store.close()
        return store

    try:
        return await run_in_daemon_thread(work)
    except asyncio.CancelledError:
        is_wanted.clear()
        raise


def _may_succeed_later(address: StoreAddress, error: StoreError) -> bool:
    if not address.url:
        return False
    from council.store.postgres_connection import is_temporary

    return is_temporary(error.__cause__)


async def close_promptly(store: RunStore) -> None:
    """Close a store, also if its database hangs."""
    closing = asyncio.ensure_future(run_in_daemon_thread(store.close))
    await asyncio.wait([closing], timeout=CLOSE_TIMEOUT_S)
    if not closing.done():
        store.give_up()
        await asyncio.wait([closing], timeout=CLOSE_TIMEOUT_S)
    if closing.done():
        closing.result()


# Stores of this process


@dataclass(slots=True)
class SharedStore:
    """A store with the number of its users."""

    store: RunStore
    file: tuple[int, int] | None  # device and inode of a database file
    users: int = 0


_shared: dict[StoreAddress, SharedStore] = {}  # the least recently used first
_replaced: list[SharedStore] = []  # in use, and closed by the last user: the file was removed or replaced
_lock = threading.RLock()


def acquire_store(address: StoreAddress) -> RunStore:
    """Return the open store of an address, or open it. It stays open until `close_stores`."""
    with _lock:
        shared = _shared.pop(address, None)
        if shared and (shared.store.is_read_only or shared.file != _identify(address)):
            _drop(shared)
            shared = None
        if shared is None:
            shared = SharedStore(open_store(address), _identify(address))
        _shared[address] = shared
        shared.users += 1
        return shared.store


def release_store(store: RunStore) -> None:
    """End one use of a store. Close it if too many are kept open."""
    with _lock:
        for shared in (*_shared.values(), *_replaced):
            if shared.store is store:
                shared.users -= 1
                if not shared.users:
                    store.on_wait = lambda message: None
        for shared in [one for one in _replaced if not one.users]:
            _replaced.remove(shared)
            shared.store.close()
        idle = [address for address, one in _shared.items() if not one.users]
        for address in idle[: max(0, len(idle) - MAX_IDLE_STORES)]:
            _shared.pop(address).store.close()


def close_stores() -> None:
    """Close the stores that are kept open. One in use is closed by its last user."""
    with _lock:
        while _shared:
            _drop(_shared.popitem()[1])


def _drop(shared: SharedStore) -> None:
    if shared.users:
        _replaced.append(shared)
    else:
        shared.store.close()


def _identify(address: StoreAddress) -> tuple[int, int] | None:
    if address.url:
        return None
    try:
        found = (address.folder / "council.db").stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


# Fork

_paused: list[RunStore] = []  # during a fork


def _pause_stores() -> None:
    _paused.extend(RunStore.opened)
    for store in _paused:
        store.pause()


def _resume_stores() -> None:
    while _paused:
        _paused.pop().resume()


def _restart_stores() -> None:
    """In the new process: the jobs, the threads and the users of the stores stay with the parent."""
    global _lock
    _lock = threading.RLock()
    for shared in (*_shared.values(), *_replaced):
        shared.users = 0
    while _paused:
        _paused.pop().start()


os.register_at_fork(before=_pause_stores, after_in_parent=_resume_stores, after_in_child=_restart_stores)
atexit.register(close_stores)
