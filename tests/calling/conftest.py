"""Fixtures: a ledger over a real store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from council.engine.ledger import Ledger
from council.store.interface import Record
from council.store.sqlite import SqliteStore
from tests.calling.helpers import RUN


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store")
    store.post(RUN, [("run", ("a run", "here", 1.0, "s1", "{}"))])
    yield store
    store.close()


@pytest.fixture
def ledger(store: SqliteStore) -> Ledger:
    return Ledger(store, Record(RUN, "a run", "here", 1.0, "s1", {}))
