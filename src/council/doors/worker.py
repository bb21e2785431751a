"""`council worker`: works on detached runs until none is left. Whoever queues a run calls it; nobody needs to start it by hand."""

from __future__ import annotations

import asyncio
import os
import signal

from council.convene.working import Worker

LEAVE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def work() -> int:
    asyncio.run(_serve())
    return 0


async def _serve() -> None:
    """Until it is told to leave: then what is under way goes back into the queue."""
    worker = Worker(os.environ)
    for number in LEAVE:
        asyncio.get_running_loop().add_signal_handler(number, worker.leave)
    await worker.serve()
