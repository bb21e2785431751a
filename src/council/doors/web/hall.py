"""State shared by all requests: roots, store, budget caps and event feeds."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from council.convene import Convener
from council.convene.summoning import call
from council.doors.bounds import Caps, Owner
from council.doors.web.sse import Feeds
from council.errors import CouncilError, UsageError
from council.render.clean import one_line
from council.settings import quoted
from council.types import Json

PATIENCE = 5.0  # seconds to wait for open worker calls at shutdown


class Hall:
    def __init__(self, roots: Mapping[str, Path], owner: Owner) -> None:
        self.roots = roots  # by name; the first is the default
        self.owner = owner
        self.main = Convener(owner.folder, owner.env, flags={"max_cost": owner.max_cost}, config=owner.config)
        self.caps = Caps.of(self.main.settings)
        self.feeds = Feeds(self.main.follow)
        self._errands: dict[str, asyncio.Task[None]] = {}

    def root(self, name: str | None) -> Path:
        if not name:
            return self.owner.folder
        if name not in self.roots:
            raise UsageError(f"no root {quoted(name[:80])}: available are {', '.join(self.roots)}")
        return self.roots[name]

    @asynccontextmanager
    async def convener(self, folder: Path | None = None, **flags: Any) -> AsyncIterator[Convener]:
        """Yield a convener for one request, because planning can change a convener's folder."""
        flags = {"max_cost": self.owner.max_cost, **flags}
        folder = folder or self.owner.folder
        convener = Convener(folder, self.main.env, flags=flags, config=self.owner.config, store=self.main.store)
        try:
            yield convener
        finally:
            await convener.close()

    # Runs

    async def known(self, run: str) -> str:
        """Return the run id for an id, a name, or a unique prefix."""
        return str((await self.main.standing(run))["run"])

    async def standing(self, run: str) -> Json:
        """Return {status, running}. A running run without an owner counts as stopped."""
        state = await self.main.standing(run)
        running = state["status"] == "running" and state["owned"]
        stopped = state["status"] == "running" and not running
        return {"status": "stopped" if stopped else state["status"], "running": running}

    async def see_to(self, run: str) -> None:
        """Call the worker if a detached run has no owner."""
        state = await self.main.standing(run)
        if state["detached"] and state["status"] in ("queued", "running") and not state["owned"]:
            self.call_worker(state["run"])

    def call_worker(self, run: str) -> None:
        """Call the worker in the background; the run is already queued."""
        if run not in self._errands:
            self._errands[run] = asyncio.create_task(self._called(run))

    async def _called(self, run: str) -> None:
        try:
            await call(run, self.main.env)
        except (CouncilError, OSError) as error:
            print(f"council: {one_line(str(error), 400)}", file=sys.stderr)
        finally:
            del self._errands[run]

    async def close(self) -> None:
        if self._errands:  # finish calls to a worker that is starting, within a limit
            _, late = await asyncio.wait(self._errands.values(), timeout=PATIENCE)
            for task in late:
                task.cancel()
        await self.main.close()


def roots_from(folders: Iterable[Path]) -> dict[str, Path]:
    """Give each folder a unique name: its own, with a number if taken."""
    named: dict[str, Path] = {}
    for folder in dict.fromkeys(place.expanduser().resolve() for place in folders):
        if not folder.is_dir():
            raise UsageError(f"--root {quoted(folder)} is not a folder: pass an existing folder")
        name = folder.name or "root"
        later = (f"{name}-{n}" for n in range(2, len(named) + 3))
        named[name if name not in named else next(candidate for candidate in later if candidate not in named)] = folder
    return named
