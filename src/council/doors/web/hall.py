"""What all requests share: the folders that may be seen, the store, the owner's word on money, and who listens to which run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from council.convene import Convener
from council.convene.working import call
from council.doors.web.sse import Feeds
from council.errors import UsageError
from council.settings import quoted
from council.types import Json


@dataclass(slots=True)
class Hall:
    roots: Mapping[str, Path]  # by name; a council sits in the first, unless another is named
    env: Mapping[str, str]
    config: Path | None = None
    max_cost: float | None = None
    main: Convener = field(init=False)
    feeds: Feeds = field(init=False)
    _errands: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.main = Convener(self.first, self.env, flags={"max_cost": self.max_cost}, config=self.config)
        self.feeds = Feeds(self.main.follow)

    @property
    def first(self) -> Path:
        return next(iter(self.roots.values()))

    def root(self, name: str | None) -> Path:
        if not name:
            return self.first
        if name not in self.roots:
            raise UsageError(f"there is no root {quoted(name)}: this server shows {', '.join(self.roots)}")
        return self.roots[name]

    @asynccontextmanager
    async def convener(self, folder: Path | None = None, **flags: Any) -> AsyncIterator[Convener]:
        """A convener of one request's own: some of what it does changes where it sits."""
        said: Json = {"max_cost": self.max_cost, **flags}
        own = Convener(folder or self.first, self.main.env, flags=said, config=self.config, store=self.main.store)
        try:
            yield own
        finally:
            await own.close()

    async def known(self, run: str) -> str:
        """The run that is meant, by its name or the beginning of it."""
        found = await self.main.named(run)
        await self.main.store.load(found)
        return found

    def call_worker(self, run: str) -> None:
        """See to it that somebody works on a run. Nobody waits for that: the run is queued, whatever comes."""
        errand = asyncio.create_task(call(run, self.main.env))
        self._errands.add(errand)
        errand.add_done_callback(self._errands.discard)

    async def close(self) -> None:
        await asyncio.gather(*self._errands, return_exceptions=True)
        await self.main.close()


def roots_from(folders: Iterable[Path]) -> dict[str, Path]:
    """Each folder under a name of its own: that of the folder, with a number if there are several."""
    named: dict[str, Path] = {}
    for folder in dict.fromkeys(place.resolve() for place in folders):
        if not folder.is_dir():
            raise UsageError(f"--root {quoted(folder)} is no folder: name one that is there")
        name = folder.name or "root"
        later = (f"{name}-{n}" for n in range(2, len(named) + 3))
        named[name if name not in named else next(one for one in later if one not in named)] = folder
    return named
