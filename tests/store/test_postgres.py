"""PostgreSQL store: leases with fencing, lost connections, migrations, notifications, and what its messages say."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from council import events as ev
from council.errors import LeaseLost, RunOwned, StoreError, UsageError
from council.store import leases, postgres, postgres_connection
from council.store.interface import Hold, Row, RunState, StoreAddress
from council.store.postgres import PostgresStore
from council.store.postgres_connection import MIGRATIONS
from council.store.postgres_statements import MARK_BATCH
from council.store.shared import open_store
from council.store.texts import index_run
from tests.databases import PASSWORD, Proxy, Server

pytestmark = pytest.mark.anyio
RUN = "r2345"
RUN_ROW: Row = ("run", ("a run", "here", 1.0, "random", '{"owner": "ann@laptop", "project": "archive"}'))
OpenStore = Callable[..., PostgresStore]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # the clock of the database cannot be advanced


@pytest.fixture
def open_postgres(database: str, tmp_path: Path) -> Iterator[OpenStore]:
    """Return a function that opens the database, as separate processes with their own data folders would."""
    opened: list[PostgresStore] = []

    def open_one(url: str = database, lease_seconds: float = 30.0) -> PostgresStore:
        store = open_store(StoreAddress(tmp_path / f"data-{len(opened)}", url, lease_seconds))
        assert isinstance(store, PostgresStore)
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def proxy(database: str) -> Iterator[Proxy]:
    proxy = Proxy(database)
    yield proxy
    proxy.close()


def event(seq: int) -> Row:
    return ("event", (seq, 1.0, "note", '{"what":"a","why":"b"}'))


async def until(is_true: Callable[[], Any]) -> None:
    """Wait for a state."""
    async with asyncio.timeout(60):
        while not await is_true():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def seqs(store: PostgresStore) -> list[int]:
    return [entry.seq for entry in (await store.load(RUN)).entries]


# Leases


@pytest.mark.behaviour("16-fencing")
async def test_a_process_whose_run_was_taken_over_writes_nothing(open_postgres: OpenStore) -> None:
    first, second = open_postgres(lease_seconds=0.2), open_postgres()
    first._leases._next_renewal = math.inf  # as if the process was stopped
    async with first.lock_run(RUN, is_new=True):
        await first.write(RUN, [RUN_ROW, event(1)])
        await until(lambda: _can_lock(second))
        async with second.lock_run(RUN):
            await second.write(RUN, [event(2)])
            with pytest.raises(LeaseLost, match=f"run {RUN} was taken over by another process"):
                await first.write(RUN, [event(3)])
            with pytest.raises(LeaseLost):  # nor anything after it
                await first.write(RUN, [("result", ("k", "{}"))])
            hold = Hold("k", 1, "m", 1.0, "2026-11-16", "", 1, run_cap=10)
            with pytest.raises(LeaseLost):
                await first.reserve(RUN, hold)
            await second.write(RUN, [event(3)])
        assert await seqs(second) == [1, 2, 3]
        assert (await second.load(RUN)).spending == {}
    await first.write("rother", [RUN_ROW])  # other runs of the process continue


async def _can_lock(store: PostgresStore) -> bool:
    try:
        async with store.lock_run(RUN):
            return True
    except RunOwned:
        return False


@pytest.mark.behaviour("16-fencing")
async def test_a_process_that_is_stopped_in_a_transaction_does_not_keep_its_run(
    open_postgres: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LOCK_TIMEOUT_MS", 20)
    first, second = open_postgres(lease_seconds=0.5), open_postgres()
    first._leases._next_renewal = math.inf
    async with first.lock_run(RUN, is_new=True):
        await first.write(RUN, [RUN_ROW])
        first._db.execute("BEGIN")
        first._db.execute("SELECT check_leases(?)", (f"{RUN}:{first._owned_runs[RUN]}",))
        with pytest.raises(RunOwned, match="is locked by a transaction of another process"):
            async with second.lock_run(RUN):
                pass
        await until(lambda: _can_lock(second))  # the server has ended the transaction
        async with second.lock_run(RUN):
            with pytest.raises(LeaseLost):
                await first.write(RUN, [event(1)])
    assert await seqs(second) == []


@pytest.mark.behaviour("16-lease-renewed")
async def test_a_lease_is_renewed_while_its_process_lives(open_postgres: OpenStore) -> None:
    first, second = open_postgres(lease_seconds=0.6), open_postgres()

    async def expires() -> Any:
        query = "SELECT expires FROM leases WHERE run = ?"
        return (await second._read(lambda db: db.execute(query, (RUN,)).fetchone()))[0]

    async with first.lock_run(RUN, is_new=True):
        await first.write(RUN, [RUN_ROW])
        before = await expires()

        async def is_renewed() -> bool:
            return bool(await expires() > before)

        await until(is_renewed)
        with pytest.raises(RunOwned, match=f"run {RUN} is running in another process"):
            async with second.lock_run(RUN):
                pass
        assert await second.is_locked(RUN)
    await until(lambda: _can_lock(second))


@pytest.mark.behaviour("16-abandoned-runs")
async def test_a_detached_run_whose_lease_expired_is_listed(open_postgres: OpenStore) -> None:
    first, second = open_postgres(lease_seconds=0.2), open_postgres()
    first._leases._next_renewal = math.inf
    await first.write(RUN, [("queue", RUN_ROW[1])])
    assert await second.list_detached() == [RUN]
    async with first.lock_run(RUN):
        await first.write(RUN, [("reopen", ())])

        async def is_abandoned() -> bool:
            return (await second.run_state(RUN)).needs_worker

        await until(is_abandoned)
        assert await second.list_detached() == [RUN]
        assert await second.run_state(RUN) == RunState(RUN, "running", is_detached=True, is_owned=False)  # type: ignore[arg-type]


@pytest.mark.behaviour("16-cancel-over-processes")
async def test_the_owner_reads_a_cancel_request_of_another_process(open_postgres: OpenStore) -> None:
    first, second = open_postgres(), open_postgres()
    async with first.lock_run(RUN, is_new=True):
        await first.write(RUN, [RUN_ROW])
        assert not await first.is_cancelled(RUN)
        await second.write(RUN, [("cancel", ())])
        await until(lambda: first.is_cancelled(RUN))


# Connections


@pytest.mark.behaviour("16-commit-outcome-unknown")
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_rows_are_stored_once_if_the_connection_is_lost_at_the_commit(
    open_postgres: OpenStore, proxy: Proxy, moment: str
) -> None:
    store = open_postgres(proxy.url)
    async with store.lock_run(RUN, is_new=True):
        await store.write(RUN, [RUN_ROW])
        proxy.cut_commit(moment)
        await store.write(RUN, [event(1), ("intent", ("k", 1, "m", b"{}", 1.0))])
        await store.write(RUN, [event(2)])
    assert (await seqs(store), proxy.cuts) == ([1, 2], 1)


@pytest.mark.behaviour("16-commit-outcome-unknown")
async def test_a_transaction_that_arrives_after_its_outcome_was_read_fails(
    open_postgres: OpenStore, database: str
) -> None:
    """A pooler or a busy server may begin it later than the process reads that it is missing."""
    store = open_postgres()
    for is_first in (True, False):
        store._batch += 1
        sent = store._batch
        assert not store._is_committed()
        with (
            psycopg.connect(
                database, cursor_factory=psycopg.RawCursor, options="-c search_path=council", application_name="late"
            ) as late,
            pytest.raises(psycopg.errors.NotNullViolation),
        ):
            late.execute(MARK_BATCH, (store._id, sent))
        await store.write(RUN, [RUN_ROW] if is_first else [event(1)])
        assert store._is_committed()
    assert await seqs(store) == [1]


@pytest.mark.behaviour("16-database-lost")
async def test_a_run_waits_for_a_lost_database_and_loses_no_row(
    open_postgres: OpenStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger("psycopg"), "propagate", False)  # as in a process without a log
    monkeypatch.setattr(postgres, "NOTICE_AFTER_S", 0.0)
    monkeypatch.setattr(postgres, "WRITE_TIMEOUT_S", 0.0)
    store, other = open_postgres(proxy.url), open_postgres(proxy.url)
    said, is_waiting = list[str](), threading.Event()
    store.on_wait = lambda message: (said.append(message), is_waiting.set())
    async with store.lock_run(RUN, is_new=True):
        await store.write(RUN, [RUN_ROW])
        proxy.cut_all()
        writing = asyncio.ensure_future(store.write(RUN, [event(1)]))
        await asyncio.to_thread(is_waiting.wait, 60)
        with pytest.raises(StoreError, match="cannot be reached") as caught:  # it owns no run
            await other.write("rother", [RUN_ROW])
        proxy.is_down = False
        await writing
    assert said[0].startswith('waiting for the database: the database "postgresql://postgres@127.0.0.1:')
    assert (await seqs(store), capsys.readouterr().err) == ([1], "")
    for message in (*said, str(caught.value)):
        assert PASSWORD not in message and "\n" not in message


@pytest.mark.behaviour("16-database-lost", "16-password-hidden")
@pytest.mark.parametrize(
    "url", [f"postgresql://ann:{PASSWORD}@127.0.0.1:1/x", f"postgresql://ann:{PASSWORD}@/x?host=/none"]
)
def test_an_unreachable_database_is_one_line_without_the_password(tmp_path: Path, url: str) -> None:
    with pytest.raises(
        StoreError, match=r'the database "postgresql://ann@.*" cannot be reached .*COUNCIL_DATABASE'
    ) as caught:
        open_store(StoreAddress(tmp_path, url))
    assert PASSWORD not in f"{caught.value} {StoreAddress(tmp_path, url)!r}" and "\n" not in str(caught.value)


@pytest.mark.behaviour("16-password-hidden")
@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{PASSWORD}@host/x?nonsense=1",
        f"postgresql://?{PASSWORD}",
        f"mysql://a:{PASSWORD}@b",
        f"postgresql://ann:{'x/' + PASSWORD}@host/x",
        f"postgresql://ann:{'x@' + PASSWORD}@host/x",
    ],
)
def test_an_invalid_address_is_a_usage_error_without_the_password(tmp_path: Path, url: str) -> None:
    with pytest.raises((UsageError, StoreError), match="the address of the database is invalid") as caught:
        open_store(StoreAddress(tmp_path, url))
    assert PASSWORD not in str(caught.value)


# Refused rows


@pytest.mark.behaviour("30-refused-rows-are-counted")
@pytest.mark.refused_rows
async def test_a_transaction_with_refused_rows_is_repeated_run_by_run_counted_and_logged_once(
    open_postgres: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_postgres()
    await store.write(RUN, [RUN_ROW, event(1), event(2)])
    for n, broken in enumerate(("rbroken1", "rbroken2"), 1):
        rows = [event(1), event(2), event(2)]
        jobs = [store.write(broken, rows), store.write(RUN, [event(2 * n + 1), event(2 * n + 2)])]
        refused, stored = await asyncio.gather(*jobs, return_exceptions=True)
        assert (type(refused), stored, store.split_commits) == (StoreError, None, n)
    assert await seqs(store) == [1, 2, 3, 4, 5, 6]
    (line,) = (record.getMessage() for record in caplog.records if record.name == "council.store")
    assert 'duplicate key value violates unique constraint "events_pkey"' in line and "\n" not in line


async def test_rows_of_several_runs_are_one_transaction_that_is_not_repeated(open_postgres: OpenStore) -> None:
    store = open_postgres()
    runs = [f"r{n}" for n in range(5)]
    rows = [RUN_ROW, event(1), event(2), ("text", (1, b"x")), ("live", ("k", 1, "a")), ("live", ("m", 1, "b"))]
    rows += [("reserve", (key, 1, "m", 1.0, "2026-11-16", "", 5)) for key in ("k", "m")]
    await asyncio.gather(*(store.write(run, rows) for run in runs))
    ended = [
        ("charge", ("k", 1, 3, 0)),
        ("charge", ("m", 1, 2, 1)),
        ("discard_stream", ("k",)),
        ("close", ("complete", "{}")),
    ]
    await asyncio.gather(*(store.write(run, ended) for run in runs))
    live = await store._read(lambda db: db.execute("SELECT run, key FROM live_parts ORDER BY run").fetchall())
    assert live == [(run, "m") for run in runs]
    for run in runs:
        record = await store.load(run)
        assert (record.status, [entry.seq for entry in record.entries]) == ("complete", [1, 2])
        charged = {key: (row.charged, int(row.certainty)) for key, row in record.spending.items()}
        assert charged == {("k", 1): (3, 0), ("m", 1): (2, 1)}
    await asyncio.gather(*(store.write(run, [("discard_streams", ())]) for run in runs[1:]))
    live = await store._read(lambda db: db.execute("SELECT run, key FROM live_parts").fetchall())
    assert live == [(runs[0], "m")]
    assert store.split_commits == 0


@pytest.mark.behaviour("40-budget-race")
async def test_a_request_that_is_reserved_again_has_its_last_reservation(open_postgres: OpenStore) -> None:
    """A request that was withdrawn has the number of the next one."""
    store = open_postgres()
    first = ("reserve", ("k", 1, "m", 1.0, "2026-11-16", "", 5))
    await store.write(RUN, [RUN_ROW, event(1), first, ("charge", ("k", 1, 3, 1))])
    await store.write(RUN, [event(2), ("reserve", ("k", 1, "n", 2.0, "2026-11-17", "p", 7))])
    rows = await store._read(
        lambda db: db.execute(
            "SELECT key, n, member, at, day, price, reserved, charged, estimated FROM spending"
        ).fetchall()
    )
    assert rows == [("k", 1, "n", 2.0, "2026-11-17", "p", 7, None, 0)]
    assert store.split_commits == 0


# Schema


@pytest.mark.behaviour("16-migrations")
def test_processes_that_open_an_empty_database_at_once_create_the_schema_once(postgres: Server, tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def open_one(url: str, n: int) -> None:
        try:
            open_store(StoreAddress(tmp_path / str(n), url)).close()
        except BaseException as error:
            failures.append(error)

    with postgres.database("template1") as url:
        threads = [threading.Thread(target=open_one, args=(url, n)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        with psycopg.connect(url) as db:
            assert db.execute("SELECT version FROM council.schema_version").fetchall() == [(len(MIGRATIONS),)]


@pytest.mark.behaviour("16-migrations")
@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
async def test_a_database_of_every_version_is_migrated_with_its_runs(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, postgres: Server
) -> None:
    added = tmp_path / "later.sql"
    added.write_text("ALTER TABLE runs ADD COLUMN later TEXT NOT NULL DEFAULT 'x';\n")
    later = [*MIGRATIONS, added]
    with postgres.database("template1") as url:
        monkeypatch.setattr(postgres_connection, "MIGRATIONS", later[:version])
        store = open_store(StoreAddress(tmp_path, url))
        await store.write(RUN, [RUN_ROW, event(1)])
        store.close()
        monkeypatch.setattr(postgres_connection, "MIGRATIONS", later)
        store = open_store(StoreAddress(tmp_path, url))
        assert [entry.seq for entry in (await store.load(RUN)).entries] == [1]
        store.close()
        with psycopg.connect(url) as db:
            assert db.execute("SELECT later FROM council.runs").fetchall() == [("x",)]
            assert db.execute("SELECT applied FROM council.schema_version").fetchone() == (len(later),)


@pytest.mark.behaviour("16-migrations", "40-newer-database")
def test_a_newer_schema_is_refused_in_one_line(database: str, tmp_path: Path) -> None:
    with psycopg.connect(database) as db:
        db.execute("UPDATE council.schema_version SET version = version + 1")
    for _ in range(2):
        with pytest.raises(
            StoreError, match=rf"newer council \(schema version {len(MIGRATIONS) + 1}, .*upgrade council"
        ):
            open_store(StoreAddress(tmp_path, database))


async def test_a_database_that_is_refused_keeps_no_connection(database: str, tmp_path: Path) -> None:
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as db:
        await db.execute("UPDATE council.schema_version SET version = version + 1")
        with pytest.raises(StoreError) as refused:
            open_store(StoreAddress(tmp_path, database))

        async def is_alone() -> bool:
            query = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return await (await db.execute(query)).fetchone() == (0,)

        await until(is_alone)
    assert refused.value  # until here it has referred to the frame that made the connection


# Followers


@pytest.mark.behaviour("16-live-view-over-machines")
async def test_a_follower_in_another_process_is_notified(
    open_postgres: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "FOLLOW_POLL_S", 3600.0)
    first, second = open_postgres(), open_postgres()
    await first.write(RUN, [RUN_ROW])
    waiting = asyncio.ensure_future(second.wait_for_change(RUN))

    async def is_listening() -> bool:
        return second._leases._is_listening

    await until(is_listening)
    await first.write(RUN, [event(1)])
    async with asyncio.timeout(60):
        await waiting
    assert [entry.seq for entry in (await second.load_since(RUN, 0))[0]] == [1]


# Lists, search, removal


@pytest.mark.behaviour("16-owner-and-project", "16-search-on-both")
async def test_runs_are_listed_searched_exported_and_removed(open_postgres: OpenStore) -> None:
    store = open_postgres()
    stated = ev.Stated("draft/alpha", "draft", "alpha", "ok", "Move the archive. " * 20, None, "m", {}, 1, 0.5)
    said: Row = ("event", (2, 1.0, "statement", ev.dump_fields(stated)))
    await store.write(RUN, [RUN_ROW, event(1), said, ("close", ("complete", '{"verdict": "PASS", "seconds": 2.5}'))])
    await store.write("r9", [("run", ("a run", "there", 2.0, "random", "{}"))])
    assert [run["run"] for run in await store.list_runs({"owner": "ann@laptop", "project": "archive"})] == [RUN]
    assert await store.count_runs({"owner": "bob@desk"}) == 0
    (row,) = await store.list_runs({"ids": f'["{RUN}"]'})
    assert (row["verdict"], row["seconds"], row["project"]) == ("PASS", 2.5, "archive")

    async def is_indexed() -> bool:
        return await store.count_runs({"indexed": 1}) == 1

    await until(is_indexed)
    assert [await store.search_runs([word]) for word in ("RCHIV", "archive", "nothing", "a_chive")] == [
        [RUN],
        [RUN],
        [],
        [],
    ]
    assert await store.check_integrity() == []
    pieces: list[str] = []
    await store.export_run(RUN, pieces.append)
    assert "Move the archive." in "".join(pieces)
    await store.rebuild_search()
    async with store.lock_run(RUN):
        await store.delete_run(RUN)
    assert (await store.search_runs(["archive"]), await store.match_runs("r")) == ([], ["r9"])
    assert await store.size() > 0
    await store._write("", lambda db: db.execute("INSERT INTO steps VALUES ('rlost', 'k', 'print')"))
    assert await store.check_integrity() == ["steps: rows of the unknown run rlost"]


@pytest.mark.behaviour("16-search-on-both")
async def test_two_processes_may_index_a_run_at_once(open_postgres: OpenStore) -> None:
    """One has handed the run on, and another one ends it."""
    store = open_postgres()
    stated = ev.Stated("draft/alpha", "draft", "alpha", "ok", "Move the archive.", None, "m", {}, 1, 0.5)
    await store.write(RUN, [RUN_ROW, ("event", (1, 1.0, "statement", ev.dump_fields(stated)))])
    first, second = store.connect_in_background(), store.connect_in_background()
    first.execute("BEGIN")
    index_run(first, RUN)  # not committed
    more = ev.Stated("draft/beta", "draft", "beta", "ok", "Keep the ledger.", None, "m", {}, 1, 0.5)
    await store.write(RUN, [("event", (2, 1.0, "statement", ev.dump_fields(more)))])

    def index_again() -> None:
        second.execute("BEGIN")
        index_run(second, RUN)
        second.execute("COMMIT")

    indexing = asyncio.create_task(asyncio.to_thread(index_again))

    async def is_waiting() -> bool:
        query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return bool(await store._read(lambda db: db.execute(query).fetchone()[0]))

    await until(is_waiting)
    first.execute("COMMIT")
    await indexing
    assert await store.count_runs({"indexed": 1}) == 1
    assert [await store.search_runs([word]) for word in ("archive", "ledger")] == [[RUN], [RUN]]
    first.close()
    second.close()


@pytest.mark.behaviour("16-search-on-both")
async def test_a_run_with_the_character_0_is_listed_and_found(open_postgres: OpenStore) -> None:
    store = open_postgres()
    setup = json.dumps({"protocol": "triad", "question": {"text": "which\0tape and \\u0000 disk?"}})
    stated = ev.Stated("draft/alpha", "draft", "alpha", "ok", "take the\0 first", None, "m", {}, 1, 0.5)
    said: Row = ("event", (1, 1.0, "statement", ev.dump_fields(stated)))
    await store.write(RUN, [("run", ("a run", "here", 1.0, "random", setup)), said])
    (row,) = await store.list_runs({})
    assert (row["protocol"], row["question"]) == ("triad", "which\ufffdtape and \\u0000 disk?")
    assert [await store.search_runs([word]) for word in ("tape", "first", "nothing")] == [[RUN], [RUN], []]
