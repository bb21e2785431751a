"""Results of a task while it runs, for the streams of the library and for the plugin of `llm`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Self, TypeVar

T = TypeVar("T")


class TaskStream(AsyncIterator[T]):
    """Results of a task. Closing the stream stops the task."""

    def __init__(self, results: AsyncGenerator[T, None]) -> None:
        self._results = results

    async def __anext__(self) -> T:
        return await anext(self._results)

    async def aclose(self) -> None:
        """Stop the task if it has not ended. What it started can be continued."""
        await self._results.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


async def iterate_results(
    work: Callable[[Callable[[T], None]], Awaitable[object]], stop: Callable[[], None] | None = None
) -> AsyncGenerator[T, None]:
    """Run a function in a task, and yield what it passes to its argument.

    At the end the task is cancelled, or `stop` is called, and awaited.
    """
    queue = asyncio.Queue[T | None]()

    async def run() -> None:
        try:
            await work(queue.put_nowait)
        finally:
            queue.put_nowait(None)

    task = asyncio.ensure_future(run())
    try:
        while (result := await queue.get()) is not None:
            yield result
        await task
    finally:
        (stop or task.cancel)()
        await asyncio.gather(task, return_exceptions=True)
