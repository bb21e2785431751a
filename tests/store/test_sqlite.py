"""SQLite run store: rows written once, one writer, one owner, clear errors."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from council.errors import StoreError
from council.store import run_store
from council.store.interface import Row
from council.store.sqlite import MIGRATIONS, WRITE_TIMEOUT_S, SqliteStore

pytestmark = pytest.mark.anyio
RUN = "r2345"
RUN_ROW: Row = ("run", ("a run", "here", 1.0, "random", "{}"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store")
    store.post(RUN, [RUN_ROW])
    yield store
    store.close()


def event(seq: int, tag: str = "note", body: str = '{"what":"a","why":"b"}') -> Row:
    return ("event", (seq, 1.0, tag, body))


def trace_statements(store: SqliteStore) -> list[str]:
    """Return a list that collects every statement the store's connection runs."""
    seen: list[str] = []
    store._db.set_trace_callback(seen.append)
    return seen


# Rows are written once


# Transactions


async def test_writes_of_one_turn_and_the_rows_before_them_are_one_transaction(store: SqliteStore) -> None:
    await store.list_runs()  # the row of the run is stored
    seen = trace_statements(store)
    store.post(RUN, [event(1)], may_wait=True)
    await asyncio.sleep(0)
    await asyncio.gather(*(store.write(RUN, [event(seq)]) for seq in (2, 3, 4)))
    assert sum(line == "COMMIT" for line in seen) == 1
    assert [entry.seq for entry in (await store.load(RUN)).entries] == [1, 2, 3, 4]


async def test_rows_that_may_wait_are_stored_without_other_rows_too(store: SqliteStore) -> None:
    loop, committed = asyncio.get_running_loop(), asyncio.Event()
    store._db.set_trace_callback(
        lambda statement: loop.call_soon_threadsafe(committed.set) if statement == "COMMIT" else None
    )
    store.post(RUN, [event(1)], may_wait=True)
    await committed.wait()
    assert [entry.seq for entry in (await store.load(RUN)).entries] == [1]


async def test_a_result_is_sent_soon_with_the_rows_that_waited(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_store, "MAX_DELAY_S", 3600.0)
    loop, committed = asyncio.get_running_loop(), asyncio.Event()
    await store.list_runs()  # the row of the run is stored
    store._db.set_trace_callback(
        lambda statement: loop.call_soon_threadsafe(committed.set) if statement == "COMMIT" else None
    )
    store.post(RUN, [event(1)], may_wait=True)
    store.post(RUN, [event(2)])
    await committed.wait()
    assert [entry.seq for entry in (await store.load(RUN)).entries] == [1, 2]


async def test_streamed_text_that_cannot_be_stored_stops_no_run(store: SqliteStore) -> None:
    store.post(RUN, [("live", ("k", "text", float("nan")))])  # not a number is stored as NULL, which is refused
    await store.list_runs()  # everything before this has been tried
    await store.write(RUN, [event(1)])
    assert [entry.seq for entry in (await store.load(RUN)).entries] == [1]


# One writer


async def test_queued_rows_are_committed_in_one_transaction(store: SqliteStore) -> None:
    seen = trace_statements(store)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # the writer has to wait, so the queue fills
    for seq in range(1, 101):
        store.post(RUN, [event(seq)])
    other.execute("COMMIT")
    other.close()
    assert len((await store.load(RUN)).entries) == 100
    assert sum(line.startswith("INSERT INTO events") for line in seen) == 100
    assert seen.count("BEGIN IMMEDIATE") <= 3  # the first batch, the rest, and the read


@pytest.mark.behaviour("40-committed-never-bought-again")
async def test_rows_are_on_disk_when_write_returns(store: SqliteStore) -> None:
    await store.write(RUN, [event(1)])
    other = sqlite3.connect(store.path)
    assert other.execute("SELECT count(*) FROM events").fetchone() == (1,)
    assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert WRITE_TIMEOUT_S == 30.0
    other.close()


@pytest.mark.behaviour("40-disk-full-stops-before-the-next-call")
async def test_full_disk_fails_the_next_write_with_a_clear_error(store: SqliteStore) -> None:
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    store.post(RUN, [event(1, body='"' + "x" * 100_000 + '"')])
    with suppress(StoreError):
        await store.list_runs()  # everything before this has been tried
    with pytest.raises(StoreError, match=r"database or disk is full.*free some space or set COUNCIL_DATA"):
        await store.write(RUN, [event(2)])


# One owner

# Unusable databases


@pytest.mark.behaviour("40-newer-database")
def test_newer_database_is_not_changed(tmp_path: Path) -> None:
    SqliteStore(tmp_path).close()
    db = sqlite3.connect(tmp_path / "council.db")
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    newer = rf"was written by a newer council \(schema version {len(MIGRATIONS) + 1}, this one supports {len(MIGRATIONS)}\): upgrade"
    for _ in range(2):
        with pytest.raises(StoreError, match=newer):
            SqliteStore(tmp_path)


@pytest.mark.behaviour("40-corrupt-database")
@pytest.mark.parametrize("garbage", [b"not a database, but long enough to be one " * 40, b"\0" * 99 + b"x" * 4096])
def test_corrupt_database_error_states_the_fix(tmp_path: Path, garbage: bytes) -> None:
    (tmp_path / "council.db").write_bytes(garbage)
    with pytest.raises(StoreError, match=r"is damaged .* move it away to start a new one, or set COUNCIL_DATA"):
        SqliteStore(tmp_path)
    assert (tmp_path / "council.db").read_bytes() == garbage


async def test_integrity_check_finds_an_overwritten_page(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.write(RUN, [RUN_ROW, *(event(seq, body='"' + "x" * 500 + '"') for seq in range(1, 200))])
    store.close()
    path = tmp_path / "council.db"
    whole = path.read_bytes()
    at = len(whole) * 3 // 4  # behind the list of tables
    path.write_bytes(whole[:at] + b"\xff" * 4096 + whole[at + 4096 :])
    store = SqliteStore(tmp_path)
    try:
        assert await store.check_integrity()
    except StoreError as error:
        assert "is damaged" in str(error)
    store.close()


def test_file_in_place_of_the_folder_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(StoreError, match=r'the run store ".*council.db" cannot be used .*COUNCIL_DATA') as caught:
        SqliteStore(tmp_path / "data")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_unwritable_folder_error_states_the_fix(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="make the folder writable"):
        SqliteStore(tmp_path / "data")
    tmp_path.chmod(0o700)


@pytest.mark.behaviour("40-files-at-rest")
def test_store_files_are_private_to_the_user(store: SqliteStore) -> None:
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (store.folder, store.folder / "locks", store.path)}
    assert list(modes.values()) == [0o700, 0o700, 0o600]


async def test_streamed_text_that_is_deleted_in_the_same_transaction_is_not_written(store: SqliteStore) -> None:
    rows = [
        ("live", ("k", 1, "a failed attempt")),
        ("discard_stream", ("k",)),
        ("live", ("k", 1, "its retry")),
        ("live", ("other", 1, "text")),
    ]
    statements: list[str] = []
    await store.write(RUN, [])
    store._db.set_trace_callback(statements.append)
    await store.write(RUN, rows)
    assert sum("INSERT INTO live_parts" in line for line in statements) == 2
    assert (await store.load_since(RUN, 0))[1] == {"k": "its retry", "other": "text"}


# All rows of one step, or none


@pytest.mark.behaviour("40-step-in-one-transaction")
async def test_rows_of_one_turn_are_one_transaction(store: SqliteStore) -> None:
    async with store.lock_run(RUN):
        await store.write(RUN, [event(0)])
        seen = trace_statements(store)
        store.post(RUN, [("settled", ("k", 1, "{}", 1.0))])
        store.post(RUN, [event(1)])
        await store.write(RUN, [("result", ("k", "{}")), event(2)])
    kinds = [line.split()[0] for line in seen if not line.startswith(("SAVEPOINT", "RELEASE"))]
    assert kinds == ["BEGIN", "INSERT", "INSERT", "INSERT", "INSERT", "COMMIT"]


async def test_the_size_of_a_database_behind_a_link_includes_its_log(tmp_path: Path) -> None:
    file = tmp_path / "disk" / "runs.db"
    for folder in (file.parent, tmp_path / "store"):
        folder.mkdir(mode=0o700)
    SqliteStore(file.parent).close()
    (file.parent / "council.db").rename(file)
    (tmp_path / "store" / "council.db").symlink_to(file)
    store = SqliteStore(tmp_path / "store")
    try:
        await store.write("r2345", [("run", ("a run", "here", 1.0, "random", "{}"))])
        log = file.with_name("runs.db-wal")
        assert await store.size() == file.stat().st_size + log.stat().st_size > file.stat().st_size
    finally:
        store.close()
