"""What all requests share: the folders that may be seen, the store, the owner's word on money, and who listens to which run."""

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

PATIENCE = 5.0  # seconds a worker that was called has to answer when the server stops


class Hall:
    def __init__(self, roots: Mapping[str, Path], owner: Owner) -> None:
        self.roots = roots  # by name; a council sits in the first, unless another is named
        self.owner = owner
        self.main = Convener(owner.folder, owner.env, flags={"max_cost": owner.max_cost}, config=owner.config)
        self.caps = Caps.of(self.main.settings)
        self.feeds = Feeds(self.main.follow)
        self._errands: dict[str, asyncio.Task[None]] = {}

    def root(self, name: str | None) -> Path:
        if not name:
            return self.owner.folder
        if name not in self.roots:
            raise UsageError(f"there is no root {quoted(name[:80])}: this server shows {', '.join(self.roots)}")
        return self.roots[name]

    @asynccontextmanager
    async def convener(self, folder: Path | None = None, **flags: Any) -> AsyncIterator[Convener]:
        """A convener of one request's own: some of what it does changes where it sits."""
        said: Json = {"max_cost": self.owner.max_cost, **flags}
        place = folder or self.owner.folder
        own = Convener(place, self.main.env, flags=said, config=self.owner.config, store=self.main.store)
        try:
            yield own
        finally:
            await own.close()

    # Runs

    async def known(self, run: str) -> str:
        """The run that is meant, by its name or the beginning of it."""
        return str((await self.main.standing(run))["run"])

    async def standing(self, run: str) -> Json:
        """{status, running}: a run that nobody works on and that never ended was stopped by something that did not ask."""
        found = await self.main.standing(run)
        running = found["status"] == "running" and found["owned"]
        stopped = found["status"] == "running" and not running
        return {"status": "stopped" if stopped else found["status"], "running": running}

    async def see_to(self, run: str) -> None:
        """A run that is the worker's, and that nobody has taken up, is taken up."""
        found = await self.main.standing(run)
        if found["detached"] and found["status"] in ("queued", "running") and not found["owned"]:
            self.call_worker(found["run"])

    def call_worker(self, run: str) -> None:
        """See to it that somebody works on a run. Nobody waits for that: the run is queued, whatever comes."""
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
        if self._errands:  # a worker that is on its way is told; one that never comes is not waited for
            _, late = await asyncio.wait(self._errands.values(), timeout=PATIENCE)
            for errand in late:
                errand.cancel()
        await self.main.close()


def roots_from(folders: Iterable[Path]) -> dict[str, Path]:
    """Each folder under a name of its own: that of the folder, with a number if there are several."""
    named: dict[str, Path] = {}
    for folder in dict.fromkeys(place.expanduser().resolve() for place in folders):
        if not folder.is_dir():
            raise UsageError(f"--root {quoted(folder)} is no folder: name one that is there")
        name = folder.name or "root"
        later = (f"{name}-{n}" for n in range(2, len(named) + 3))
        named[name if name not in named else next(one for one in later if one not in named)] = folder
    return named
