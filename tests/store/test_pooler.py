"""The store through PgBouncer in transaction mode: each transaction may have another session of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from council.errors import LeaseLost, StoreError
from council.store import leases
from council.store.interface import ClaimRequest, Hold, Row, StoreAddress
from council.store.postgres import PostgresStore
from council.store.postgres_connection import MIGRATIONS, connect
from council.store.shared import open_store
from tests.databases import Bouncer, Proxy, Server, needs_bouncer

pytestmark = [pytest.mark.anyio, needs_bouncer]
RUN = "r2345"
RUN_ROW: Row = ("run", ("a run", "here", 1.0, "random", '{"owner": "ann@laptop", "project": "archive"}'))
OpenStore = Callable[..., PostgresStore]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def bouncer(postgres: Server) -> Iterator[Bouncer]:
    bouncer = Bouncer(postgres, server_connections=3)
    yield bouncer
    bouncer.remove()


@pytest.fixture
def open_pooled(bouncer: Bouncer, database: str, tmp_path: Path) -> Iterator[OpenStore]:
    """Return a function that opens the database through the pooler, as separate processes would."""
    opened: list[PostgresStore] = []

    def open_one(url: str = "", lease_seconds: float = 30.0) -> PostgresStore:
        store = open_store(StoreAddress(tmp_path / f"data-{len(opened)}", url or bouncer.url(database), lease_seconds))
        assert isinstance(store, PostgresStore)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


def event(seq: int) -> Row:
    return ("event", (seq, 1.0, "note", '{"what":"a","why":"b"}'))


async def until(is_true: Callable[[], Any]) -> None:
    """Wait for a state."""
    async with asyncio.timeout(60):
        while not await is_true():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def seqs(store: PostgresStore) -> list[int]:
    return [entry.seq for entry in (await store.load(RUN)).entries]


SETTINGS = ("search_path", "synchronous_commit", "idle_in_transaction_session_timeout", "transaction_timeout")


@pytest.mark.behaviour("32-pooler")
async def test_a_pooler_is_detected_and_its_sessions_stay_as_they_were(
    open_pooled: OpenStore, bouncer: Bouncer, database: str
) -> None:
    def read_settings() -> set[tuple[object, ...]]:
        found = set()
        connections = [psycopg.connect(bouncer.url(database), prepare_threshold=None) for _ in range(3)]
        for one in connections:  # each in a transaction, so that they have all sessions of the pool
            values = ", ".join(f"current_setting('{name}')" for name in SETTINGS)
            prepared = one.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() or ()
            found.add((*(one.execute(f"SELECT {values}").fetchone() or ()), *prepared))  # type: ignore[arg-type]
        for one in connections:
            one.close()
        return found

    before = read_settings()
    assert len(before) == 1
    store = open_pooled(lease_seconds=3.0)
    assert store._db.is_pooled
    assert not connect(database).is_pooled
    async with store.lock_run(RUN, is_new=True):
        await store.write(RUN, [RUN_ROW])
        for seq in range(1, 12):  # more often than psycopg executes a statement before it prepares it
            await store.write(RUN, [event(seq)])
            assert len(await seqs(store)) == seq
        await store.claim_runs("w", ClaimRequest(["default"], 1, 60.0))
        await store.wait_for_change(RUN)
    assert read_settings() == before


@pytest.mark.behaviour("32-pooler")
async def test_every_transaction_through_a_pooler_has_its_settings(open_pooled: OpenStore) -> None:
    store = open_pooled(lease_seconds=3.0)
    query = f"SELECT {', '.join(f'current_setting({name!r})' for name in SETTINGS)}"
    (written,) = await store._write("", lambda db: db.execute(query).fetchall())
    (read,) = await store._select(query)
    (aside,) = await store._execute_aside(query)
    assert (written[0], read[0], aside[0]) == ("council, pg_catalog",) * 3
    assert written[2] == aside[2] == "3s"
    assert (written[1], aside[1]) == ("on", "off")
    isolation = "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"
    assert await store._select(isolation) == [("repeatable read", "on")]


@pytest.mark.behaviour("32-pooler", "16-migrations")
def test_a_database_is_migrated_through_a_pooler(bouncer: Bouncer, postgres: Server, tmp_path: Path) -> None:
    with postgres.database("template1") as url:
        open_store(StoreAddress(tmp_path, bouncer.url(url))).close()
        with psycopg.connect(url) as db:
            assert db.execute("SELECT applied FROM council.schema_version").fetchall() == [(len(MIGRATIONS),)]


@pytest.mark.behaviour("32-pooler", "16-fencing")
async def test_a_run_that_was_taken_over_through_a_pooler_gets_no_more_rows(open_pooled: OpenStore) -> None:
    first, second = open_pooled(lease_seconds=0.2), open_pooled()
    first._leases._next_renewal = float("inf")  # as if the process was stopped
    async with first.lock_run(RUN, is_new=True):
        await first.write(RUN, [RUN_ROW, event(1)])
        await until(lambda: _is_free(second))
        async with second.lock_run(RUN):
            await second.write(RUN, [event(2)])
            with pytest.raises(LeaseLost):
                await first.write(RUN, [event(3)])
            hold = Hold("k", 1, "m", 1.0, "2026-11-16", "", 1, run_cap=10)
            with pytest.raises(LeaseLost):
                await first.reserve(RUN, hold)
            assert await second.reserve(RUN, hold) is None
        assert await seqs(second) == [1, 2]


async def _is_free(store: PostgresStore) -> bool:
    return not await store.is_locked(RUN) and [
        row[0] for row in await store._select("SELECT expires < clock_timestamp() FROM leases")
    ] == [True]


@pytest.mark.behaviour("32-pooler", "16-cancel-over-processes")
async def test_a_cancel_request_and_a_change_pass_a_pooler_without_a_notification(
    open_pooled: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "FOLLOW_POLL_S", 0.1)
    first, second = open_pooled(), open_pooled()
    async with first.lock_run(RUN, is_new=True):
        await first.write(RUN, [RUN_ROW])
        await second.write(RUN, [("cancel", ())])
        await until(lambda: first.is_cancelled(RUN))
        await first.write(RUN, [event(1)])
        for _ in range(3):
            await second.wait_for_change(RUN)
        assert [entry.seq for entry in (await second.load_since(RUN, 0))[0]] == [1]
        assert not second._leases._is_listening


@pytest.mark.behaviour("32-pooler", "16-commit-outcome-unknown")
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_rows_are_stored_once_if_the_connection_to_the_pooler_is_lost_at_the_commit(
    open_pooled: OpenStore, bouncer: Bouncer, database: str, moment: str
) -> None:
    proxy = Proxy(bouncer.url(database))
    store = open_pooled(proxy.url)
    async with store.lock_run(RUN, is_new=True):
        await store.write(RUN, [RUN_ROW])
        proxy.cut_commit(moment)
        await store.write(RUN, [event(1), ("intent", ("k", 1, "m", b"{}", 1.0))])
        await store.write(RUN, [event(2)])
    assert (await seqs(store), proxy.cuts, store.split_commits) == ([1, 2], 1, 0)
    proxy.close()


@pytest.mark.behaviour("32-pooler", "16-database-lost")
async def test_a_run_continues_after_the_pooler_was_killed(open_pooled: OpenStore, bouncer: Bouncer) -> None:
    store = open_pooled()
    async with store.lock_run(RUN, is_new=True):
        await store.write(RUN, [RUN_ROW, event(1)])
        assert await seqs(store) == [1]
        bouncer.stop()
        writing = asyncio.ensure_future(store.write(RUN, [event(2)]))
        bouncer.start()
        await writing
        assert await seqs(store) == [1, 2]


@pytest.mark.behaviour("32-full-slots")
def test_a_full_pooler_has_a_line_of_its_own(postgres: Server, database: str, tmp_path: Path) -> None:
    bouncer = Bouncer(postgres, clients=1)
    try:
        with psycopg.connect(bouncer.url(database)) as held:
            held.execute("SELECT 1")
            with pytest.raises(StoreError, match=r"all connection slots of the database .* are in use") as refused:
                open_store(StoreAddress(tmp_path, bouncer.url(database)))
        assert "\n" not in str(refused.value)
    finally:
        bouncer.remove()
