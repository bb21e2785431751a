"""`council worker`: process detached runs until the queue is empty. Queueing a run starts it automatically."""

from __future__ import annotations

import asyncio
import os
import signal

from council.convene.working import Worker

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run_worker() -> int:
    asyncio.run(_serve_until_signal())
    return 0


async def _serve_until_signal() -> None:
    """Process runs until idle or signalled. On a signal, active runs go back into the queue."""
    worker = Worker(os.environ)
    for number in STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, worker.stop)
    await worker.serve()
