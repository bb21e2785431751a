"""The queue of a local store: in every state that a crash can leave, the worker finds the runs that have not ended."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from council.runs.worker import Worker
from council.store.interface import StoreAddress
from council.store.shared import open_store

pytestmark = pytest.mark.anyio
STATES = {
    # state: status, whether the run is detached, who owns it, and whether the worker executes it
    "queued": ("queued", 1, "", True),
    "queued, owned by a live process": ("queued", 1, "alive", False),
    "queued, owned by a process that is gone": ("queued", 1, "gone", True),
    "running": ("running", 1, "", True),
    "running, owned by a live process": ("running", 1, "alive", False),
    "running, owned by a process that is gone": ("running", 1, "gone", True),
    "incomplete": ("incomplete", 1, "", False),
    "complete": ("complete", 1, "", False),
    "failed": ("failed", 1, "gone", False),
    "in the foreground": ("running", 0, "gone", False),
}


def own_and_end(folder: Path) -> None:
    """Own the run in a process that ends without its clean-up."""
    if (pid := os.fork()) == 0:
        store = open_store(StoreAddress(folder))
        asyncio.run(store.lock_run("r2345").__aenter__())
        os._exit(0)
    os.waitpid(pid, 0)


@pytest.mark.behaviour("32-no-run-forgotten")
@pytest.mark.parametrize("state", STATES)
async def test_a_run_is_found_in_every_state_that_a_crash_can_leave(tmp_path: Path, state: str) -> None:
    status, detached, owner, is_found = STATES[state]
    store = open_store(StoreAddress(tmp_path))
    await store.write("r2345", [("queue", ("name", str(tmp_path), 1.0, "seed", json.dumps({"protocol": "triad"})))])
    if owner == "gone":
        own_and_end(tmp_path)
    with closing(sqlite3.connect(tmp_path / "council.db", isolation_level=None)) as db:
        db.execute("UPDATE runs SET status = ?, detached = ?", (status, detached))
    worker = Worker({"COUNCIL_DATA": str(tmp_path), "HOME": str(tmp_path)})
    try:
        if owner == "alive":
            async with store.lock_run("r2345"):
                found = await worker._list_waiting()
        else:
            found = await worker._list_waiting()
    finally:
        worker.store.close()
        store.close()
    assert found == (["r2345"] if is_found else [])
