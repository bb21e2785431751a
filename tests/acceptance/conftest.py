"""Fixtures of the acceptance tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.helpers import Workspace
from tests.acceptance.shared_store import LEASE_S, Workers
from tests.acceptance.workers import kill_remaining_workers, wait_for_worker_exit


@pytest.fixture
def detached(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """Return the table with a worker that exits as soon as it is idle; fail if a process is left over."""
    monkeypatch.setenv("COUNCIL_WORKER_IDLE", "0.2")
    data = Path(os.environ["COUNCIL_DATA"])
    yield workspace
    try:
        wait_for_worker_exit(data)
    finally:
        assert not kill_remaining_workers(data)


@pytest.fixture
def shared(workspace: Workspace, database: str, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace whose runs are stored in PostgreSQL."""
    monkeypatch.setenv("COUNCIL_DATABASE", database)
    workspace.configure(more=f"[store]\nlease_seconds = {LEASE_S}\n")
    return workspace


@pytest.fixture
def shared_workers(shared: Workspace) -> Iterator[Workers]:
    """Worker processes of the shared database, which the test starts."""
    started = Workers(shared)
    yield started
    for worker in started.processes:
        if worker.poll() is None:
            os.kill(worker.pid, signal.SIGKILL)
            worker.wait()
