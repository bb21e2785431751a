"""The table of the acceptance tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.helpers import Table, Terminal, until
from tests.acceptance.workers import kill_remaining_workers, workers
from tests.fake_provider import FakeProvider


@pytest.fixture
def table(provider: FakeProvider) -> Table:
    """Alpha, beta, gamma and the chair, each on its own model of one fake endpoint, in the folder of the test."""
    return Table(Path.cwd(), provider)


@pytest.fixture
def council(capsys: pytest.CaptureFixture[str]) -> Terminal:
    """`council("runs", "--json")` in this process."""
    return Terminal(capsys.readouterr)


@pytest.fixture
def detached(table: Table, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    """The table, with a worker that goes as soon as it has nothing to do; no process may be left when the test is over."""
    monkeypatch.setenv("COUNCIL_WORKER_IDLE", "0.2")
    data = Path(os.environ["COUNCIL_DATA"])
    yield table
    try:
        until(lambda: not workers(data), "the worker went away when it was idle")
    finally:
        assert not kill_remaining_workers(data)
