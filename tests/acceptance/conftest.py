"""Fixtures of the acceptance tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.helpers import Terminal, Workspace, wait_until
from tests.acceptance.workers import kill_remaining_workers, workers
from tests.fake_provider import FakeProvider


@pytest.fixture
def workspace(provider: FakeProvider) -> Workspace:
    """Return a council with alpha, beta, gamma and the chair, each on its own model of one fake endpoint."""
    return Workspace(Path.cwd(), provider)


@pytest.fixture
def council(capsys: pytest.CaptureFixture[str]) -> Terminal:
    """Return a function that runs the command in this process: `council("runs", "--json")`."""
    return Terminal(capsys.readouterr)


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
