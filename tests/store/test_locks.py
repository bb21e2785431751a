"""Suspended processes: a process that is stopped while it writes delays no reader, and no writer for long."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from council.errors import RunOwned, StoreError, UsageError
from council.store.interface import Row
from council.store.locks import LockOwner, find_holders, make_owner, read_owner
from council.store.sqlite import RunLock, SqliteStore, quick_check
from council.store.sqlite_repair import repair_file, repair_store

pytestmark = pytest.mark.anyio
RUN = "r2345"
RUN_ROW: Row = ("run", ("a run", "here", 1.0, "random", "{}"))
# A process that owns a run, writes a row, and stops itself inside the transaction. Continued, it commits and waits.
STOP_IN_TRANSACTION = """
import os, signal, sys, time
from pathlib import Path
from council.store.sqlite import RunLock, SqliteStore
store = SqliteStore(Path(sys.argv[1]))
with RunLock(store.folder / "locks" / "rowner.lock"):
    store._db.execute("BEGIN IMMEDIATE")
    store._db.execute("INSERT INTO events VALUES ('rowner', 1, 1.0, 'note', '{}')")
    print("writing", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    store._db.execute("COMMIT")
    print("committed", flush=True)
    while True:
        time.sleep(60)
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store")
    store.post(RUN, [RUN_ROW])
    yield store
    store.close()


def wait_until_stopped(process: subprocess.Popen[str]) -> None:
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)


@contextmanager
def lock_holder(path: Path) -> Iterator[int]:
    """A process in a transaction; yield its id."""
    hold = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()"
    argv = [sys.executable, "-c", hold, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        yield holder.pid
        holder.kill()


@contextmanager
def suspended_writer(store: SqliteStore) -> Iterator[tuple[subprocess.Popen[str], LockOwner]]:
    argv = [sys.executable, "-c", STOP_IN_TRANSACTION, str(store.folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "writing\n"
            wait_until_stopped(process)
            owner = make_owner(process.pid)
            assert owner is not None
            yield process, owner
        finally:
            process.send_signal(signal.SIGKILL)


@pytest.mark.behaviour("40-suspended-process-blocks-no-other")
async def test_a_suspended_writer_delays_no_reader(store: SqliteStore) -> None:
    await store.write(RUN, [])
    with suspended_writer(store) as (_, owner):
        other = SqliteStore(store.folder)
        assert [run["run"] for run in await other.list_runs()] == [RUN]
        assert not await store.is_cancelled(RUN)
        other.close()
        assert owner.is_suspended  # it was left alone
        assert [holder.pid for holder in find_holders(store.path)] == [owner.pid]


@pytest.mark.behaviour("40-suspended-process-blocks-no-other")
async def test_a_writer_lets_a_suspended_one_finish_and_suspends_it_again(store: SqliteStore) -> None:
    with suspended_writer(store) as (process, owner):
        assert [str(holder) for holder in find_holders(store.path)] == [f"process {process.pid} (run rowner)"]
        await store.write(RUN, [("event", (1, 1.0, "note", '{"what":"a","why":"b"}'))])
        assert process.stdout is not None and process.stdout.readline() == "committed\n"
        wait_until_stopped(process)
        assert owner.is_suspended
        assert find_holders(store.path) == []
        rows = store._db.execute("SELECT run, seq FROM events ORDER BY run").fetchall()
        assert rows == [(RUN, 1), ("rowner", 1)]


@pytest.mark.behaviour("40-waiting-names-the-process")
async def test_a_busy_store_names_the_process_that_it_waits_for(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.write(RUN, [])
    messages: list[str] = []
    store.on_wait = messages.append
    monkeypatch.setattr("council.store.sqlite.WRITE_TIMEOUT_S", 3.0)
    with lock_holder(store.path) as pid:
        with pytest.raises(StoreError, match=rf"is busy: process {pid} is writing to it") as caught:
            await store.write("r9", [])
        assert "\n" not in str(caught.value) and "space" not in str(caught.value)
        assert messages == [
            f"the run store is busy: process {pid} is writing to it: wait for it, or end it with `kill {pid}`"
        ]


@pytest.mark.behaviour("40-one-owner", "40-waiting-names-the-process")
async def test_the_owner_of_a_run_is_named(store: SqliteStore) -> None:
    with suspended_writer(store) as (process, _):
        assert await store.find_owner("rowner") is not None
        with pytest.raises(RunOwned, match=rf"suspended \(process {process.pid}\): continue it"):
            async with store.lock_run("rowner"):
                pass
    assert await store.find_owner("rowner") is None
    async with store.lock_run(RUN):
        owner = read_owner(store.folder / "locks" / f"{RUN}.lock")
        assert owner is not None and (owner.pid, owner.run, owner.is_suspended) == (os.getpid(), RUN, False)


def test_a_process_id_that_was_used_again_is_not_signalled() -> None:
    ours = make_owner(os.getpid())
    assert ours is not None and ours.is_alive
    earlier = LockOwner(ours.pid, "1")
    assert not earlier.is_alive
    assert not earlier.send(signal.SIGTERM)


# Stores that cannot be written

OTHER_USER = 65534


async def try_lock(store: SqliteStore, lines: list[str]) -> None:
    async with store.lock_run(RUN):
        lines.append("locked")


def read_as_another_user(folder: Path) -> list[str]:
    """List the runs and try to write, in a process that may not write to the folder."""
    read, write = os.pipe()
    if (pid := os.fork()) == 0:
        lines = []
        try:
            if os.geteuid() == 0:
                os.setuid(OTHER_USER)
            store = SqliteStore(folder)
            lines.append(f"{[run['run'] for run in asyncio.run(store.list_runs())]} {store.is_read_only}")
            with suppress(StoreError):
                asyncio.run(try_lock(store, lines))
            asyncio.run(store.write(RUN, []))
        except BaseException as error:
            lines.append(str(error))
        finally:
            os.write(write, "\n".join(lines).encode())
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read) as result:
        return result.read().splitlines()


@pytest.mark.behaviour("40-read-only-store")
@pytest.mark.parametrize("left", ["closed", "with a log", "of an older version"])
def test_a_store_that_cannot_be_written_can_be_read(left: str) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        store = SqliteStore(folder)
        store.post(RUN, [RUN_ROW])
        store._writer.close()
        files = {path: path.read_bytes() for path in (store.path, folder / "council.db-wal")}
        store.close()
        if left == "with a log":  # as after a crash
            for path, content in files.items():
                path.write_bytes(content)
        elif left == "of an older version":
            db = sqlite3.connect(store.path)
            db.executescript(
                "DROP TABLE earlier_outcomes; DROP TABLE outcome_skips; DROP TABLE limits; DROP VIEW totals; DROP VIEW run_totals; DROP TABLE removed_totals; DROP TRIGGER run_added; DROP TRIGGER run_changed; DROP TRIGGER run_removed; DROP VIEW run_summaries; DROP TABLE summaries; DROP TABLE search_words; DROP TABLE search_index; DROP TABLE outcomes; DROP TABLE tokens; DROP TABLE user_runs; DROP TABLE idempotency; DROP TABLE texts; DROP TABLE live_parts; DROP TABLE asks; ALTER TABLE runs DROP COLUMN detached; ALTER TABLE runs DROP COLUMN title; PRAGMA user_version = 2;"
            )
            db.close()
        folder.chmod(0o555)
        for path in folder.iterdir():
            path.chmod(0o555 if path.is_dir() else 0o444)
        listed, refused = read_as_another_user(folder)
        assert listed == f"['{RUN}'] True"
        assert refused.startswith(f'cannot write to the run store "{folder}/council.db"')
        assert not (folder / "council.db-shm").exists()
    finally:
        for path in (folder, *folder.iterdir()):
            path.chmod(0o700)
        shutil.rmtree(folder)


@pytest.mark.behaviour("15-no-lock-files-left")
async def test_a_lock_file_is_removed_while_it_is_locked(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    late = RunLock(tmp_path / "locks" / f"{RUN}.lock")  # has opened the file, but not locked it yet
    async with store.lock_run(RUN):
        assert await store.is_locked(RUN)
    assert not list((tmp_path / "locks").iterdir())
    with late:  # its file is not the one that was removed
        with pytest.raises(RunOwned):
            async with store.lock_run(RUN):
                pass
        assert await store.is_locked(RUN)
    assert not list((tmp_path / "locks").iterdir())
    store.close()


# Damage


def damage(path: Path) -> None:
    """Overwrite a page of the events, which are at the end of the file."""
    content = path.read_bytes()
    at = len(content) * 3 // 4 // 4096 * 4096
    path.write_bytes(content[:at] + b"\xff" * 4096 + content[at + 4096 :])


def list_damaged(folder: Path) -> list[Path]:
    return list(folder.glob("council.db.damaged-*"))


async def fill(folder: Path) -> Path:
    store = SqliteStore(folder)
    body = '{"what":"' + "x" * 500 + '","why":"b"}'
    await store.write(RUN, [RUN_ROW, *(("event", (seq, 1.0, "note", body)) for seq in range(1, 200))])
    store.close()
    return folder / "council.db"


@pytest.mark.behaviour("40-damage-noticed")
async def test_damage_is_noticed_before_a_run_starts(tmp_path: Path) -> None:
    damage(await fill(tmp_path))
    store = SqliteStore(tmp_path)
    with pytest.raises(StoreError, match=r"is damaged .*council runs fsck --repair.*COUNCIL_DATA") as caught:
        await store.require_sound()
    assert "\n" not in str(caught.value)
    store.close()


@pytest.mark.behaviour("40-repair")
async def test_repair_keeps_the_rows_that_can_be_read(tmp_path: Path) -> None:
    path = await fill(tmp_path)
    damage(path)
    (line,) = repair_file(path)
    assert "the readable rows were copied to a new database" in line
    assert quick_check(path) == ""
    store = SqliteStore(tmp_path)
    seqs = [entry.seq for entry in (await store.load(RUN)).entries]
    assert 100 < len(seqs) < 199 and seqs[0] == 1 and seqs[-1] == 199
    store.close()
    assert repair_file(path) == []
    assert list_damaged(tmp_path)


@pytest.mark.behaviour("40-repair")
async def test_a_damaged_store_is_not_repaired_while_a_run_is_executed(tmp_path: Path) -> None:
    assert repair_store(tmp_path) == []  # there is no store yet
    path = await fill(tmp_path)
    store = SqliteStore(tmp_path)
    async with store.lock_run(RUN):
        assert repair_store(tmp_path) == []
        damage(path)
        with pytest.raises(UsageError) as refused:
            repair_store(tmp_path)
    store.close()
    assert str(refused.value) == (
        f"the run store is damaged and cannot be repaired while run {RUN} is running: "
        f"wait for it, or stop it with `council cancel {RUN}`"
    )
    assert list_damaged(tmp_path) == []
    (line,) = repair_store(tmp_path)
    assert "the readable rows were copied to a new database" in line


async def test_an_index_is_rebuilt_in_place(tmp_path: Path) -> None:
    path = await fill(tmp_path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA writable_schema = 1")
    (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs_by_time'").fetchone()
    db.execute("INSERT INTO runs (id, name, folder, created, seed, setup) VALUES ('r3', '', '', 9.0, '', '{}')")
    db.commit()
    db.close()
    content = bytearray(path.read_bytes())
    start = (root - 1) * 4096
    content[start + 3 : start + 5] = b"\x00\x01"  # one cell of two
    path.write_bytes(content)
    (line,) = repair_file(path)
    assert line.startswith("the indexes were rebuilt")
    assert quick_check(path) == ""
