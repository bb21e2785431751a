"""`council worker`: works on detached runs until none is left. Whoever queues a run calls it; nobody needs to start it by hand."""

from __future__ import annotations

import asyncio
import os

from council.convene.working import Worker


def work() -> int:
    asyncio.run(Worker(os.environ).serve())
    return 0
