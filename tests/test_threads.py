"""Blocking work in threads that the end of the process does not wait for."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from council.threads import run_in_daemon_thread

pytestmark = pytest.mark.anyio


class Work:
    """Blocking work that returns or raises when it is released."""

    def __init__(self, result: object) -> None:
        self.result = result
        self.has_started, self.may_end = threading.Event(), threading.Event()

    def __call__(self) -> object:
        self.thread = threading.current_thread()
        self.has_started.set()
        self.may_end.wait(60)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


async def start(work: Work) -> asyncio.Task[object]:
    running = asyncio.ensure_future(run_in_daemon_thread(work))
    assert await asyncio.to_thread(work.has_started.wait, 60)
    return running


async def test_work_returns_or_raises_to_its_caller() -> None:
    work = Work("done")
    running = await start(work)
    assert work.thread.daemon
    work.may_end.set()
    assert await running == "done"
    failing = Work(OSError("no such host"))
    failing.may_end.set()
    with pytest.raises(OSError, match="no such host"):
        await run_in_daemon_thread(failing)


@pytest.mark.parametrize("result", ["done", OSError("no such host")])
async def test_work_that_ends_after_its_caller_was_cancelled_is_ignored(result: object) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    work = Work(result)
    running = await start(work)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    work.may_end.set()
    await asyncio.to_thread(work.thread.join, 60)
    assert reported == []


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_work_that_ends_after_the_loop_is_ignored() -> None:
    work = Work("done")

    async def leave() -> None:
        (await start(work)).cancel()

    asyncio.run(leave())
    work.may_end.set()
    work.thread.join(60)
    assert not work.thread.is_alive()
