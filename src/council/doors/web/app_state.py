"""State shared by all requests: roots, store, budget caps and event feeds."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from council.doors.limits import BudgetCaps, Owner
from council.doors.web.sse import RunFeeds
from council.errors import CouncilError, UsageError
from council.runs.database_worker import embed_worker
from council.runs.service import Convener
from council.runs.worker_client import ensure_worker
from council.settings.schema import quote_value
from council.text_cleanup import single_line

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
        self._worker_calls: dict[str, asyncio.Task[None]] = {}

    def find_root(self, name: str | None) -> Path:
        if not name:
            return self.owner.folder
        if name not in self.roots:
            raise UsageError(f"no root {quote_value(name[:80])}: available are {', '.join(self.roots)}")
        return self.roots[name]

    @asynccontextmanager
    async def open_convener(self, folder: Path | None = None, **flags: Any) -> AsyncIterator[Convener]:
        """Yield a convener for one request, because planning can change a convener's folder."""
        flags = {"max_cost": self.owner.max_cost, **flags}
        folder = folder or self.owner.folder
        convener = Convener(
            folder, self.shared_convener.env, flags=flags, config=self.owner.config, store=self.shared_convener.store
        )
        try:
            yield convener
        finally:
            await convener.close()

    # Runs

    async def resolve_run(self, run: str) -> str:
        """Return the run id for an id, a name, or a unique prefix."""
        return (await self.shared_convener.run_state(run)).run

    async def ensure_worker(self, run: str) -> None:
        """Call the worker if a detached run has no owner."""
        state = await self.shared_convener.run_state(run)
        if state.needs_worker:
            self.call_worker(state.run)

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

    @asynccontextmanager
    async def run_worker(self) -> AsyncIterator[None]:
        """Execute runs of a shared store, inside the block."""
        if not self.owner.has_worker:
            yield
            return
        address = self.shared_convener.find_store()
        async with embed_worker(address, self.owner.env, self.owner.folder, self.owner.config):
            yield

    async def close(self) -> None:
        if self._worker_calls:  # finish calls to a worker that is starting, within a limit
            _, late = await asyncio.wait(self._worker_calls.values(), timeout=WORKER_CALL_TIMEOUT_S)
            for task in late:
                task.cancel()
        await self.shared_convener.close()


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
