"""Parallel waiting with an optional grace period for seats that have no output yet."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from council.types import SeatWatch, Statement

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Grace:
    """Time limit for seats without output, once enough of the other seats have answered."""

    seconds: float
    watches: Sequence[SeatWatch]  # one per task, in the same order
    min_answers: int

    async def wait(self, tasks: Sequence[asyncio.Future[Any]]) -> None:
        """Return when all tasks are done, or raise the error of one. Drop seats without output after the period."""
        watch = dict(zip(tasks, self.watches, strict=True))
        pending = set(tasks)
        while pending:
            answers = sum(task.done() and isinstance(task.result(), Statement) for task in tasks)
            within = self.seconds if answers >= self.min_answers else None
            done, pending = await asyncio.wait(pending, timeout=within, return_when=asyncio.FIRST_COMPLETED)
            if not done and not any(watch[task].has_output for task in pending):
                for task in pending:
                    watch[task].drop(f"left behind after {self.seconds:g} s grace")


async def gather_or_cancel(coroutines: Sequence[Coroutine[Any, Any, T]], grace: Grace | None = None) -> list[T]:
    """Run all coroutines in parallel. Raise the first error and cancel the rest."""
    tasks = list(map(asyncio.get_running_loop().create_task, coroutines))
    try:
        if grace:
            await grace.wait(tasks)
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
