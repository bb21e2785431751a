"""State shared by all requests: roots, store, budget caps and event feeds."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from council.doors.limits import BudgetCaps, Owner
from council.doors.web.responses import KeyReused
from council.doors.web.sse import RunFeeds
from council.doors.web.uploads import Uploads
from council.errors import CouncilError, StoreError, UsageError
from council.runs.service import Convener
from council.runs.tokens import OWNER, User, find_user
from council.runs.worker_client import ensure_worker
from council.settings.config_files import data_folder
from council.settings.schema import quote_value
from council.store.interface import RequestKey
from council.store.run_store import RunStore
from council.text_cleanup import single_line

KEEP_KEYS_S = 7 * 86400.0  # seconds that the key of a request is kept
RETRY_WINDOW_S = 1800.0  # seconds after which a client no longer retries: three timeouts of the openai SDK
RESTART_POLLS, RESTART_POLL_S = 300, 0.1  # while a new worker takes over a run
WORKER_CALL_TIMEOUT_S = 5.0  # seconds to wait for open worker calls at shutdown


class AppState:
    def __init__(self, roots: Mapping[str, Path], owner: Owner) -> None:
        self.roots = roots  # by name; the first is the default
        self.owner = owner
        self.shared_convener = Convener(
            owner.folder, owner.env, flags={"max_cost": owner.max_cost}, config=owner.config
        )
        self.caps = BudgetCaps.from_settings(self.shared_convener.settings)
        self.feeds = RunFeeds(self.shared_convener.follow)
        self.uploads = Uploads(data_folder(owner.env))
        self.has_started = False
        self.start_error: CouncilError | None = None  # why the server cannot start
        self._worker_calls: dict[str, asyncio.Task[None]] = {}
        self._empty_folder: tempfile.TemporaryDirectory[str] | None = None
        self._key_locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def find_root(self, name: str | None) -> Path:
        if not name:
            return self.owner.folder
        if name not in self.roots:
            raise UsageError(f"no root {quote_value(name[:80])}: available are {', '.join(self.roots)}", field="root")
        return self.roots[name]

    @asynccontextmanager
    async def open_convener(
        self, folder: Path | None = None, user: User = OWNER, **flags: Any
    ) -> AsyncIterator[Convener]:
        """Yield a convener for one request. New runs belong to the user."""
        flags = {"max_cost": self.owner.max_cost, **flags}
        if user.name:
            flags |= {"user": user.name, "user_cap": user.max_cost_per_day}
        async with self.owner.open_convener(self.shared_convener, folder, flags) as convener:
            yield convener

    # Runs

    async def resolve_run(self, run: str, user: User = OWNER) -> str:
        """Return the run id for an id or a unique prefix. A run of another user is unknown."""
        if user.sees_all:
            return (await self.shared_convener.run_state(run)).run
        return await self.shared_convener.find_owned_run(run, user.owner)

    @property
    def store(self) -> RunStore:
        return self.shared_convener.store

    # Users

    async def find_user(self, token: str) -> User | None:
        return await find_user(self.store, token)

    @property
    def empty_folder(self) -> Path:
        """Return a folder without files: users send their material, and nothing of this machine is read for them."""
        if self._empty_folder is None:
            self._empty_folder = tempfile.TemporaryDirectory(prefix="council-")
        return Path(self._empty_folder.name)

    # Requests that clients repeat

    async def run_once(self, key: RequestKey | None, start: Callable[[], Awaitable[str]]) -> tuple[str, bool]:
        """Return the run of an earlier request with this key and True, or start one.

        Equal requests at once start one run.
        """
        if key is None:
            return await start(), False
        async with self._key_locks.setdefault((key.owner, key.key), asyncio.Lock()):
            if run := await self._find_earlier(key):
                return run, True
            try:
                return await start(), False
            except StoreError:
                if run := await self._find_earlier(key):  # another process was faster
                    return run, True
                raise

    async def join_or_start(
        self, key: RequestKey, is_retry: bool, start: Callable[[], Awaitable[str]]
    ) -> tuple[str, bool]:
        """Return the run of a recent request with the same content and True, if this one retries it, or start one."""
        async with self._key_locks.setdefault((key.owner, key.digest), asyncio.Lock()):
            since = time.time() - RETRY_WINDOW_S
            if is_retry and (run := await self.store.find_recent_request(key.owner, key.digest, since)):
                return run, True
            return await start(), False

    async def _find_earlier(self, key: RequestKey) -> str | None:
        earlier = await self.store.find_request(key.owner, key.key)
        if earlier and earlier.digest != key.digest:
            raise KeyReused(
                f"Idempotency-Key {quote_value(key.key)} was used for another request: use a new key",
                field="Idempotency-Key",
            )
        return earlier.run if earlier else None

    async def forget_requests(self) -> None:
        with suppress(CouncilError):  # a store that can only be read
            await self.store.forget_requests(time.time() - KEEP_KEYS_S)

    async def ensure_worker(self, run: str) -> None:
        """Call the worker if a detached run has no owner."""
        state = await self.shared_convener.run_state(run)
        if state.needs_worker:
            self.call_worker(state.run)

    async def restart_worker(self, run: str) -> bool:
        """Return whether a process executes a run again whose process has ended."""
        if not (await self.shared_convener.run_state(run)).needs_worker:
            return False
        self.call_worker(run)
        for _ in range(RESTART_POLLS):
            state = await self.shared_convener.run_state(run)
            if not state.needs_worker:
                return True
            await asyncio.sleep(RESTART_POLL_S)
        return False

    def call_worker(self, run: str) -> None:
        """Call the worker in the background; the run is already queued."""
        if run not in self._worker_calls:
            self._worker_calls[run] = asyncio.create_task(self._request_worker(run))

    async def _request_worker(self, run: str) -> None:
        try:
            if warning := await ensure_worker(self.shared_convener.store, run, self.shared_convener.env):
                print(f"council: warning: {warning}", file=sys.stderr)
        except (CouncilError, OSError) as error:
            print(f"council: {single_line(str(error), 400)}", file=sys.stderr)
        finally:
            del self._worker_calls[run]

    async def close(self) -> None:
        if self._worker_calls:  # finish calls to a worker that is starting, within a limit
            _, late = await asyncio.wait(self._worker_calls.values(), timeout=WORKER_CALL_TIMEOUT_S)
            for task in late:
                task.cancel()
        await self.shared_convener.close()
        if self._empty_folder:
            self._empty_folder.cleanup()


def name_roots(folders: Iterable[Path]) -> dict[str, Path]:
    """Give each folder a unique name: its own, with a number if taken."""
    named: dict[str, Path] = {}
    for folder in dict.fromkeys(place.expanduser().resolve() for place in folders):
        if not folder.is_dir():
            raise UsageError(f"--root {quote_value(folder)} is not a folder: pass an existing folder")
        name = folder.name or "root"
        later = (f"{name}-{n}" for n in range(2, len(named) + 3))
        named[name if name not in named else next(candidate for candidate in later if candidate not in named)] = folder
    return named
