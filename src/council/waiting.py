"""Parallel waiting with an optional grace period for seats that have no output yet."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from council.types import Statement, Watch

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Grace:
    """Time limit for seats without output, once enough of the other seats have answered."""

    seconds: float
    watches: Sequence[Watch]  # one per task, in the same order
    enough: int

    async def keep(self, tasks: Sequence[asyncio.Future[Any]]) -> None:
        """Return when all tasks are done or one has failed. Drop the seats without output after the grace period."""
        watch = dict(zip(tasks, self.watches, strict=True))
        pending = set(tasks)
        while pending:
            only_silence = self._answered(tasks) and not _speaking(watch, pending)
            within = self.seconds if only_silence else None
            done, pending = await asyncio.wait(pending, timeout=within, return_when=asyncio.FIRST_COMPLETED)
            if any(task.exception() for task in done):
                return
            if not done and not _speaking(watch, pending):
                for task in pending:
                    watch[task].leave(f"left behind after {self.seconds:g} s grace")

    def _answered(self, tasks: Sequence[asyncio.Future[Any]]) -> bool:
        return sum(task.done() and isinstance(task.result(), Statement) for task in tasks) >= self.enough


def _speaking(watch: dict[asyncio.Future[Any], Watch], pending: set[asyncio.Future[Any]]) -> bool:
    return any(watch[task].spoke for task in pending)


async def together(asked: Sequence[Coroutine[Any, Any, T]], grace: Grace | None = None) -> list[T]:
    """Run all coroutines in parallel. Raise the first error and cancel the rest."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in asked]
    try:
        if grace:
            await grace.keep(tasks)
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
