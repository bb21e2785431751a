"""SQLite run store: rows written once, one writer, one owner, clear errors."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from council import events as ev
from council.errors import RunOwned, StoreError, UnknownRun
from council.store import run_store
from council.store.interface import Row
from council.store.migrations import MIGRATIONS
from council.store.run_store import Job
from council.store.sqlite import WRITE_TIMEOUT_S, SqliteStore
from council.types import FinalState, Outcome, Usage

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


@pytest.mark.behaviour("40-append-once")
@pytest.mark.parametrize(
    "row",
    [
        event(1), ("step", ("k", "print")), ("result", ("k", "{}")), ("intent", ("k", 1, "m", b"x", 1.0)),
        ("settled", ("k", 1, "{}", 1.0)), ("phase", ("draft", "{}")), RUN_ROW,
    ],
    ids=lambda row: row[0],
)  # fmt: skip
async def test_the_database_itself_refuses_a_second_row_under_one_key(store: SqliteStore, row: Row) -> None:
    if row != RUN_ROW:
        await store.write(RUN, [row])
    with pytest.raises(StoreError, match="UNIQUE constraint failed"):
        await store.write(RUN, [row])


async def test_rows_of_one_write_are_stored_all_or_none(store: SqliteStore) -> None:
    await store.write(RUN, [event(1)])
    with pytest.raises(StoreError):
        await store.write(RUN, [event(2), event(1)])
    assert [entry.seq for entry in (await store.load(RUN)).entries] == [1]


async def test_the_failing_rows_of_one_run_roll_back_only_that_run(store: SqliteStore) -> None:
    jobs = [store.write(RUN, [event(1)]), store.write("other", [event(1), event(1)]), store.write("r3456", [RUN_ROW])]
    first, second, third = await asyncio.gather(*jobs, return_exceptions=True)
    assert (first, type(second), third) == (None, StoreError, None)
    assert [entry.seq for entry in (await store.load(RUN)).entries] == [1]


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


@pytest.mark.behaviour("40-step-in-one-transaction")
async def test_after_a_write_that_failed_no_later_row_of_the_run_is_stored(store: SqliteStore) -> None:
    await store.write(RUN, [event(1)])
    with pytest.raises(StoreError):
        await store.write(RUN, [event(1)])
    with pytest.raises(StoreError):
        await store.write(RUN, [event(2)])
    assert [entry.seq for entry in (await store.load(RUN)).entries] == [1]


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


async def test_a_queued_row_that_failed_is_raised_by_the_next_write(store: SqliteStore) -> None:
    store.post(RUN, [event(1)])
    store.post(RUN, [event(1)])
    await store.load(RUN)  # everything before this has been tried
    with pytest.raises(StoreError, match="UNIQUE constraint failed"):
        await store.write(RUN, [event(2)])


@pytest.mark.behaviour("40-disk-full-stops-before-the-next-call")
async def test_full_disk_fails_the_next_write_with_a_clear_error(store: SqliteStore) -> None:
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    store.post(RUN, [event(1, body='"' + "x" * 100_000 + '"')])
    with suppress(StoreError):
        await store.list_runs()  # everything before this has been tried
    with pytest.raises(StoreError, match=r"database or disk is full.*free some space or set COUNCIL_DATA"):
        await store.write(RUN, [event(2)])


async def test_close_waits_for_queued_rows(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "other")
    store.post(RUN, [RUN_ROW, *(event(seq) for seq in range(1, 51))])
    store.close()
    store = SqliteStore(tmp_path / "other")
    assert len((await store.load(RUN)).entries) == 50
    store.close()


# One owner

HOLD = """
import asyncio, sys
from pathlib import Path
from council.store.sqlite import SqliteStore

async def hold():
    async with SqliteStore(Path(sys.argv[1])).lock_run("r2345"):
        print("held", flush=True)
        sys.stdin.read()

asyncio.run(hold())
"""


@pytest.mark.behaviour("40-one-owner")
async def test_second_process_is_refused_and_a_killed_one_releases_the_lock(store: SqliteStore) -> None:
    argv = [sys.executable, "-c", HOLD, str(store.folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:  # noqa: ASYNC220
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        assert await store.is_locked(RUN)
        with pytest.raises(RunOwned, match="run r2345 is running in another process"):
            async with store.lock_run(RUN):
                pass
        async with store.lock_run("r3456"):
            pass  # another run is free
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        async with store.lock_run(RUN):
            assert await store.is_locked(RUN)
    assert not await store.is_locked(RUN)


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


async def test_an_unknown_run_points_to_the_list(store: SqliteStore) -> None:
    with pytest.raises(UnknownRun, match=r'there is no run "r9": `client.runs\(\)` lists them'):
        await store.load("r9")


@pytest.mark.behaviour("40-files-at-rest")
def test_store_files_are_private_to_the_user(store: SqliteStore) -> None:
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (store.folder, store.folder / "locks", store.path)}
    assert list(modes.values()) == [0o700, 0o700, 0o600]


# Round trips

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
JSON = st.dictionaries(
    st.text(),
    st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5),
    max_size=4,
)
BY_TYPE: dict[Any, Any] = {
    FinalState: st.sampled_from(get_args(FinalState)),
    str: st.text(), int: st.integers(0, 2**53), float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(), float | None: st.none() | st.floats(0, 1e6), dict[str, str]: st.dictionaries(st.text(), st.text()), dict[str, Any]: JSON, dict[str, Any] | None: st.none() | JSON,
    list[str]: st.lists(st.text()), list[dict[str, str]]: st.lists(st.dictionaries(st.text(), st.text())),
}  # fmt: skip
EVENTS = [kind for kind in get_args(ev.Event) if kind not in ev.TRANSIENT_EVENTS]


def any_event(kind: type[Any]) -> st.SearchStrategy[Any]:
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name != "type"}
    return st.builds(kind, **{name: _any_value(hint) for name, hint in hints.items()})


def _any_value(hint: Any) -> st.SearchStrategy[Any]:
    found: st.SearchStrategy[Any] = st.sampled_from(get_args(hint)) if get_origin(hint) is Literal else BY_TYPE[hint]
    return found


async def test_streamed_text_that_is_deleted_in_the_same_transaction_is_not_written(store: SqliteStore) -> None:
    rows = [
        ("live", ("k", 1, "a failed attempt")),
        ("hush", ("k",)),
        ("live", ("k", 1, "its retry")),
        ("live", ("other", 1, "text")),
    ]
    statements: list[str] = []
    await store.write(RUN, [])
    store._db.set_trace_callback(statements.append)
    await store.write(RUN, rows)
    assert sum("INSERT INTO live_parts" in line for line in statements) == 2
    assert (await store.load_since(RUN, 0))[1] == {"k": "its retry", "other": "text"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    store = SqliteStore(tmp_path_factory.mktemp("shared"))
    yield store, iter(range(10**6))
    store.close()


@given(told=st.lists(st.one_of([any_event(kind) for kind in EVENTS]), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_event_round_trips(shared: Any, told: list[Any]) -> None:
    from council.engine.ledger import Ledger
    from council.store.interface import Record

    store, numbers = shared
    run = f"r{next(numbers)}"

    async def round_trip() -> list[Any]:
        heard: list[Any] = []
        ledger = Ledger(store, Record(run, "", "", 1.0, "", {}), heard.append)
        await store.write(run, [RUN_ROW])
        for event in told:
            ledger.emit(event)
        entries = (await store.load(run)).entries
        assert entries == heard
        return [entry.event for entry in entries]

    assert asyncio.run(round_trip()) == told


async def test_steps_results_attempts_and_phases_round_trip(store: SqliteStore) -> None:
    outcome = Outcome("ok_repaired", "text", "", "m", Usage(1, 2, 3), 2, 0.5)
    rows: list[Row] = [
        ("step", ("k", "print")), ("result", ("k", json.dumps(outcome.as_json()))),
        ("intent", ("k", 1, "m", b"\x00\xff", 1.0)), ("settled", ("k", 1, '{"fault":"net"}', 2.0)),
        ("intent", ("k", 2, "m", b"two", 3.0)), ("phase", ("draft", '{"draft/beta":{"seat":"beta"}}')),
        ("close", ("complete", "report")),
    ]  # fmt: skip
    await store.write(RUN, rows)
    record = await store.load(RUN)
    assert (record.steps, record.results) == ({"k": "print"}, {"k": outcome})
    assert [(a.n, a.body, a.result) for a in record.attempts["k"]] == [
        (1, b"\x00\xff", {"fault": "net"}),
        (2, b"two", None),
    ]
    assert record.phases == {"draft": {"draft/beta": {"seat": "beta"}}}
    assert (record.status, record.report, record.seed) == ("complete", "report", "random")


@pytest.mark.behaviour("00-resume-newest")
async def test_the_newest_unfinished_run_of_a_folder_is_found(store: SqliteStore) -> None:
    for n, folder in enumerate(("here", "there", "here")):
        await store.write(f"r{n}", [("run", ("a run", folder, 10.0 + n, "random", "{}"))])
    await store.write("r2", [("close", ("complete", ""))])
    assert await store.find_newest_unfinished("here") == "r0"
    assert await store.find_newest_unfinished("nowhere") is None
    assert await store.find_newest("here") == "r2"
    assert [run["id"] for run in await store.list_runs()] == ["r1", "r0", RUN, "r2"]  # unfinished first


async def test_a_run_id_that_is_taken_is_not_used(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.write("r22222222", [RUN_ROW])
    numbers = iter((0, sum(31**place for place in range(8))))  # the first character everywhere, then the second one
    monkeypatch.setattr(secrets, "randbelow", lambda limit: next(numbers))
    assert await store.new_run_id() == "r33333333"


# All rows of one step, or none


@pytest.mark.behaviour("40-step-in-one-transaction")
async def test_rows_of_one_turn_are_one_transaction(store: SqliteStore) -> None:
    await store.write(RUN, [])
    seen = trace_statements(store)
    store.post(RUN, [("settled", ("k", 1, "{}", 1.0))])
    store.post(RUN, [event(1)])
    await store.write(RUN, [("result", ("k", "{}")), event(2)])
    kinds = [line.split()[0] for line in seen if not line.startswith(("SAVEPOINT", "RELEASE"))]
    assert kinds == ["BEGIN", "INSERT", "INSERT", "INSERT", "INSERT", "COMMIT"]


@pytest.mark.behaviour("40-step-in-one-transaction")
async def test_rows_that_cannot_be_stored_take_the_others_of_their_step_with_them(store: SqliteStore) -> None:
    store.post(RUN, [("settled", ("k", 1, "{}", 1.0)), ("charge", ("k", 1, 10**19, 0))])
    with pytest.raises(StoreError, match=r"too large.*check the disk and your quota, or set COUNCIL_DATA") as caught:
        await store.write(RUN, [("result", ("k", "{}"))])
    assert "free some space" not in str(caught.value)
    with pytest.raises(StoreError):  # later rows would leave a gap
        await store.write(RUN, [event(1)])
    record = await store.load(RUN)
    assert (record.results, record.entries) == ({}, [])
    await store.write("r3456", [RUN_ROW])  # other runs of the process continue
    async with store.lock_run(RUN):  # resumed
        await store.write(RUN, [event(1)])


@pytest.mark.parametrize("turns", range(6))
async def test_a_read_that_waits_for_own_rows_can_be_cancelled_at_any_moment(store: SqliteStore, turns: int) -> None:
    blocked, stored = threading.Event(), threading.Event()
    store._reader.put(Job("", lambda db: blocked.wait(60), lambda result, error: None))
    written = threading.Event()
    store._writer.put(Job("", lambda db: written.wait(60), lambda result, error: None))
    reading = asyncio.ensure_future(store.list_runs())
    await asyncio.sleep(0)  # it waits for the writer
    store._writer.put(Job("", lambda db: None, lambda result, error: stored.set()))
    written.set()
    assert stored.wait(60)  # the result is on the way, but the event loop has not seen it
    for _ in range(turns):
        await asyncio.sleep(0)
    reading.cancel()
    done, _ = await asyncio.wait({reading}, timeout=60)
    blocked.set()
    assert done and reading.cancelled()
