"""Fixtures of the acceptance tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.helpers import Workspace, wait_until
from tests.acceptance.workers import kill_remaining_workers, workers


@pytest.fixture
def detached(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """Return the table with a worker that exits as soon as it is idle; fail if a process is left over."""
    monkeypatch.setenv("COUNCIL_WORKER_IDLE", "0.2")
    data = Path(os.environ["COUNCIL_DATA"])
    yield workspace
    try:
        wait_until(lambda: not workers(data), "the idle worker exited")
    finally:
        assert not kill_remaining_workers(data)
