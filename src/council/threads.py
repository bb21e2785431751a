"""Blocking work in threads that the end of the process does not wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """Return the result of blocking work. If the caller is cancelled, the thread is left alone."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            outcome = partial(_settle, future, work(), None)
        except Exception as error:
            outcome = partial(_settle, future, None, error)
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(outcome)

    threading.Thread(target=run, daemon=True).start()
    return await future


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
