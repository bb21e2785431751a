"""Stores that the calls of a process share: opened once, kept for a while, and closed by their last user."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from council.errors import UsageError
from council.store.interface import StoreAddress
from council.store.run_store import RunStore
from council.store.shared import MAX_IDLE_STORES, acquire_store, close_stores, open_store, release_store


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    close_stores()
    yield
    close_stores()


def is_open(store: RunStore) -> bool:
    try:
        store._db.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def test_an_address_has_one_store_as_long_as_it_is_kept(tmp_path: Path) -> None:
    address = StoreAddress(tmp_path)
    first, second = acquire_store(address), acquire_store(address)
    assert first is second
    release_store(first)
    release_store(second)
    assert acquire_store(address) is first
    release_store(first)


def test_a_store_in_use_is_closed_by_its_last_user(tmp_path: Path) -> None:
    address = StoreAddress(tmp_path)
    store = acquire_store(address)
    acquire_store(address)
    close_stores()
    assert is_open(store)
    release_store(store)
    assert is_open(store)
    release_store(store)
    assert not is_open(store)


def test_only_a_few_stores_are_kept_without_users_and_the_oldest_is_closed(tmp_path: Path) -> None:
    stores = [acquire_store(StoreAddress(tmp_path / str(n))) for n in range(MAX_IDLE_STORES + 1)]
    for store in stores:
        release_store(store)
    assert [is_open(store) for store in stores] == [False] + [True] * MAX_IDLE_STORES


def test_a_database_that_was_replaced_is_opened_again(tmp_path: Path) -> None:
    address = StoreAddress(tmp_path)
    old = acquire_store(address)
    (tmp_path / "council.db").rename(tmp_path / "moved.db")
    new = acquire_store(address)
    assert new is not old
    release_store(old)
    assert [is_open(store) for store in (old, new)] == [False, True]
    release_store(new)


def test_the_last_user_takes_its_messages_away(tmp_path: Path) -> None:
    said: list[str] = []
    store = acquire_store(StoreAddress(tmp_path))
    store.on_wait = said.append
    release_store(store)
    store.on_wait("busy")
    assert said == []


@pytest.mark.parametrize("url", ["mysql://host/runs", "host/runs", "postgres:/host"])
def test_an_address_of_another_kind_of_database_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="start with postgresql://"):
        open_store(StoreAddress(tmp_path, url))
