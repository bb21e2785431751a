"""Stores of every earlier version are migrated once, with all rows: beside running processes, and after kill -9 at
any point.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from council.errors import StoreError
from council.store import postgres_connection, sqlite
from council.store.interface import StoreAddress
from council.store.migrations import read_statements
from council.store.run_store import RunStore
from council.store.shared import open_store
from council.store.sqlite import SqliteStore
from tests.acceptance.helpers import wait_for_exit
from tests.databases import Server
from tests.fork_server import Process
from tests.store.older_stores import (
    ROWS,
    RUNS,
    SCHEMA_VERSIONS,
    Content,
    describe_new_sqlite,
    describe_postgres,
    describe_sqlite,
    digest_migrations,
    insert_postgres_rows,
    insert_sqlite_rows,
    make_postgres,
    make_sqlite,
    read_postgres,
    read_sqlite,
)
from tests.system_faults import DiskFault, start_with_fault

SQLITE_SCHEMA, POSTGRES_SCHEMA = (f"{name}/schema-{SCHEMA_VERSIONS[name]}" for name in ("sqlite", "postgres"))
OLDER_SQLITE = range(1, SCHEMA_VERSIONS["sqlite"])
OLDER_POSTGRES = range(1, SCHEMA_VERSIONS["postgres"])
# Each file with the digests of its bytes and of its statements. Add a row for a new file, and change none.
RELEASED = {
    "sqlite": {
        "01_tables.sql": ("441d2a92f3c72c32", "75d27e745f428b01"),
        "02_spending.sql": ("a44dcec6e27f64b4", "ff528e22376bf04e"),
        "03_human_seats.sql": ("99194178df679433", "f0c2f0273b624af8"),
        "04_live_parts.sql": ("fd800b49d2f73d57", "7d6c88c6dfa92eaf"),
        "05_texts.sql": ("0539ecf1c72017e5", "f24efb39ef73f963"),
        "06_summaries.sql": ("189e9f24cd03f575", "76a25e6d28692165"),
        "07_search.sql": ("c1ff9498ac086886", "ed9806aadf78a621"),
        "08_owners.sql": ("0a5e41564f031714", "cf979ab3368088f9"),
        "09_users.sql": ("081e7d108486a94b", "7c0ca542da7baed3"),
        "10_titles.sql": ("bd1100b2cded8f19", "551f9df9616b1128"),
        "11_outcomes.sql": ("d569ea0a6918e1cf", "2aa5d5600cc1eb0e"),
        "12_stops.sql": ("be3710348e5a2c5b", "8ae075b1030288e7"),
        "13_trust.sql": ("feef72e4997bfd32", "73c730b09c59b45b"),
        "14_totals.sql": ("7936e749e3c7c3ee", "cd8d0dc2a97b2dc0"),
        "15_limits.sql": ("384f80af316e58bb", "655bcdedaf7e8028"),
        "16_evaluations.sql": ("c348d621e77ab427", "c296dc0565047d62"),
        "17_earlier_outcomes.sql": ("5b2b3113d072e3f2", "7184681f5abd9215"),
    },
    "postgres": {
        "01_tables.sql": ("831b599ccf0d645e", "a5a33df9da8e2c12"),
        "02_workers.sql": ("c354d82ec012a74e", "cf29d7d3ec34c182"),
        "03_users.sql": ("c373edc8f07fdc50", "17f7ebf65ce3cc17"),
        "04_titles.sql": ("f7ec175449e7bbcc", "425504f05de170f2"),
        "05_outcomes.sql": ("bad156e8c622edbd", "0a6b5b238c6691ef"),
        "06_stops.sql": ("8e11feeedc5e16e5", "94cc6ec73046eece"),
        "07_trust.sql": ("15412da12f95c242", "61cee5ff6f90d385"),
        "08_queue.sql": ("69a5f3d2cd54aa3b", "da7b088a609d4976"),
        "09_totals.sql": ("0341622e803601ad", "8a1566fb518f522e"),
        "10_limits.sql": ("afe9aa7b33ebcf88", "e3dcca9f45eec885"),
        "11_evaluations.sql": ("f4195ecde6888dc8", "75660e4b21beea76"),
        "12_earlier_outcomes.sql": ("d3d4b2812d1ea5e8", "badf146be3dea692"),
    },
}
LIST_RUNS = ("runs", "list", "--json")


@pytest.mark.behaviour("40-migrations-never-change")
@pytest.mark.parametrize("kind", RELEASED)
def test_a_migration_never_changes(kind: str) -> None:
    assert digest_migrations(kind) == RELEASED[kind]
    numbers = [name.partition("_")[0] for name in RELEASED[kind]]
    assert numbers == [f"{n:02}" for n in range(1, len(numbers) + 1)]


@pytest.mark.behaviour("40-migrations-never-change")
def test_a_statement_of_a_migration_may_contain_semicolons_and_follow_comments(tmp_path: Path) -> None:
    file = tmp_path / "13_labels.sql"
    file.write_text("-- Labels.\n\n-- Of runs.\nCREATE TABLE labels (run);\n\n\n-- Ends.\n\nBEGIN\n  a; b;\nEND;\n")
    assert read_statements(file) == ["CREATE TABLE labels (run)", "BEGIN\n  a; b;\nEND"]


@pytest.mark.behaviour("40-migrations-never-change")
def test_a_store_of_this_version_is_opened_without_reading_migrations(
    store_address: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(store_address).close()
    missing = [Path("missing.sql")] * SCHEMA_VERSIONS["postgres" if store_address.url else "sqlite"]
    monkeypatch.setattr(postgres_connection if store_address.url else sqlite, "MIGRATIONS", missing)
    open_store(store_address).close()


def keeps_rows(before: Content, after: Content) -> bool:
    """Return whether the tables have the rows that they had, each once. `live` was emptied by a migration."""
    return all(after[table] == rows for table, rows in before.items())


def check_sqlite(path: Path, before: Content, schema: tuple[int, set[tuple[str, str, str]]]) -> None:
    """Open a file with the present version, and compare it with the rows before and with a new file."""
    store = SqliteStore(path.parent)
    try:
        rows = store._db.execute("SELECT id, status, protocol, trust FROM summaries ORDER BY n").fetchall()
        assert rows == [(RUNS[0], "complete", "triad", "MEDIUM"), (RUNS[1], "running", "triad", None)]
        assert store._db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        store.close()
    assert keeps_rows(before, read_sqlite(path))
    assert describe_sqlite(path) == schema


def check_postgres(url: str, folder: Path, before: Content) -> None:
    open_store(StoreAddress(folder, url)).close()
    assert keeps_rows(before, read_postgres(url))
    with closing(psycopg.connect(url)) as db:
        rows = db.execute("SELECT id, status, protocol, trust FROM council.summaries ORDER BY n").fetchall()
    assert rows == [(RUNS[0], "complete", "triad", "MEDIUM"), (RUNS[1], "running", "triad", None)]


@pytest.mark.behaviour("16-migrations", "40-migration-keeps-rows")
@pytest.mark.parametrize("version", OLDER_SQLITE)
def test_a_file_of_every_version_becomes_one_of_this_version(tmp_path: Path, version: int) -> None:
    path = tmp_path / "store" / "council.db"
    make_sqlite(path, version)
    before = read_sqlite(path)
    assert len(before) > len([one for one in ROWS.values() if one[0] <= version])
    check_sqlite(path, before, describe_new_sqlite(tmp_path / "new"))


@pytest.mark.behaviour("16-migrations", "40-migration-keeps-rows")
@pytest.mark.parametrize("version", OLDER_POSTGRES)
def test_a_database_of_every_version_becomes_one_of_this_version(
    postgres: Server, database: str, tmp_path: Path, version: int
) -> None:
    with postgres.database("template1") as url:
        make_postgres(url, version)
        check_postgres(url, tmp_path, read_postgres(url))
        assert describe_postgres(url) == describe_postgres(database)


# Processes of two versions


@pytest.mark.behaviour("40-older-beside-newer")
@pytest.mark.parametrize("version", OLDER_SQLITE)
def test_a_migration_that_an_older_process_numbered_lower_is_not_repeated(tmp_path: Path, version: int) -> None:
    path = tmp_path / "store" / "council.db"
    make_sqlite(path, SCHEMA_VERSIONS["sqlite"])
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")  # as version 0.2.0, if it waited for the migration
    check_sqlite(path, read_sqlite(path), describe_new_sqlite(tmp_path / "new"))


@pytest.mark.behaviour("40-older-beside-newer", "40-newer-database")
def test_an_older_process_that_waited_for_a_migration_leaves_the_newer_store_alone(tmp_path: Path) -> None:
    newest = SCHEMA_VERSIONS["sqlite"]
    path = tmp_path / "store" / "council.db"
    make_sqlite(path, newest - 2)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        argv = [sys.executable, "-m", "tests.store.migration_process", "older", str(path.parent), str(newest - 1)]
        with subprocess.Popen(argv, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as older:
            assert older.stdout
            while older.stdout.readline() != "BEGIN IMMEDIATE\n":
                assert older.poll() is None
            for statement in chain.from_iterable(map(read_statements, sqlite.MIGRATIONS[newest - 2 :])):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {newest}")
            db.execute("COMMIT")
            said = older.stdout.read()
    refused = f"was written by a newer council (schema version {newest}, this one supports {newest - 1}): upgrade"
    assert refused in said.splitlines()[-1]
    assert describe_sqlite(path)[0] == newest


@pytest.mark.behaviour("40-older-beside-newer", "40-newer-database")
def test_an_older_version_changes_nothing_in_a_newer_store(
    store_address: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store_address.folder / "council.db"
    if store_address.url:
        open_store(store_address).close()
    else:
        make_sqlite(path, SCHEMA_VERSIONS["sqlite"])

    def read() -> object:
        if store_address.url:
            return read_postgres(store_address.url), describe_postgres(store_address.url)
        return path.read_bytes()

    before = read()
    for module in (sqlite, postgres_connection):
        monkeypatch.setattr(module, "MIGRATIONS", module.MIGRATIONS[:-1])
    for _ in range(2):
        with pytest.raises(StoreError, match="was written by a newer council") as refused:
            open_store(store_address)
        assert "\n" not in str(refused.value)
    assert read() == before


def open_in_thread(address: StoreAddress) -> tuple[threading.Thread, list[RunStore]]:
    opened: list[RunStore] = []
    thread = threading.Thread(target=lambda: opened.append(open_store(address)))  # type: ignore[arg-type]
    thread.start()
    return thread, opened


LATER_RUN = "rlater23"


@pytest.mark.behaviour("40-older-beside-newer")
@pytest.mark.parametrize("version", OLDER_SQLITE)
def test_an_older_process_ends_its_run_in_a_file_that_is_migrated_meanwhile(tmp_path: Path, version: int) -> None:
    path = tmp_path / "store" / "council.db"
    make_sqlite(path, version)
    with closing(sqlite3.connect(path, isolation_level=None)) as older:
        add_run = "INSERT INTO runs (id, name, folder, created, seed, setup) SELECT ?, name, folder, created, seed, setup FROM runs LIMIT 1"
        older.execute("BEGIN IMMEDIATE")
        older.execute(add_run, (LATER_RUN,))
        thread, opened = open_in_thread(StoreAddress(path.parent))
        insert_sqlite_rows(older, version, LATER_RUN)
        older.execute("COMMIT")
        thread.join()
        older.execute("BEGIN IMMEDIATE")
        older.execute("INSERT INTO results (run, key, body) VALUES (?, 'draft/beta', '{}')", (LATER_RUN,))
        older.execute("UPDATE runs SET status = 'complete', report = '{}' WHERE id = ?", (LATER_RUN,))
        older.execute("COMMIT")
    [store] = opened
    summary = store._db.execute("SELECT status, unfinished FROM summaries WHERE id = ?", (LATER_RUN,)).fetchall()
    store.close()
    assert summary == [("complete", 0)]
    kept = {table: sum(row[0] == LATER_RUN for row in rows) for table, rows in read_sqlite(path).items()}
    assert kept == {table: kept_rows(table, "sqlite", version) for table in kept}


@pytest.mark.behaviour("40-older-beside-newer")
@pytest.mark.parametrize("version", OLDER_POSTGRES)
def test_an_older_process_ends_its_run_in_a_database_that_is_migrated_meanwhile(
    postgres: Server, tmp_path: Path, version: int
) -> None:
    with postgres.database("template1") as url:
        make_postgres(url, version)
        with closing(postgres_connection.connect(url).raw) as older:
            update = "UPDATE runs SET status = $1, report = $2 WHERE id = $3"
            add_run = "INSERT INTO runs (id, name, folder, created, seed, setup) SELECT $1, name, folder, created, seed, setup FROM runs LIMIT 1"
            for _ in range(6):  # from the fifth time on, psycopg prepares a statement
                older.execute(update, ("complete", "{}", RUNS[0]))
            with older.transaction():
                older.execute(add_run, (LATER_RUN,))
                thread, opened = open_in_thread(StoreAddress(tmp_path, url))
                insert_postgres_rows(older, version, LATER_RUN)
            thread.join()
            with older.transaction():
                older.execute("INSERT INTO results (run, key, body) VALUES ($1, 'draft/beta', '{}')", (LATER_RUN,))
                older.execute(update, ("complete", "{}", LATER_RUN))
        [store] = opened
        store.close()
        kept = {table: sum(row[0] == LATER_RUN for row in rows) for table, rows in read_postgres(url).items()}
        assert kept == {table: kept_rows(table, "postgres", version) for table in kept}
        with closing(psycopg.connect(url)) as db:
            query = "SELECT status, unfinished FROM council.summaries WHERE id = %s"
            assert db.execute(query, (LATER_RUN,)).fetchall() == [("complete", 0)]


def kept_rows(table: str, kind: str, version: int) -> int:
    """Return how many rows of a table the older process has written."""
    if table == "runs":
        return 1
    sqlite_since, postgres_since, _, rows = ROWS[table]
    count = len(rows) if version >= (sqlite_since if kind == "sqlite" else postgres_since) else 0
    return count + (table == "results")


@pytest.mark.behaviour("16-migrations", "40-migration-keeps-rows")
def test_processes_that_open_an_older_store_at_once_migrate_it_once(
    postgres: Server, database: str, tmp_path: Path
) -> None:
    path = tmp_path / "data" / "council.db"
    make_sqlite(path, 1)
    path.parent.chmod(0o700)
    path.chmod(0o600)
    before = read_sqlite(path)
    with postgres.database("template1") as url:
        make_postgres(url, 1)
        rows = read_postgres(url)
        folders = [tmp_path / f"data {n}" for n in range(4)]
        processes = [Process(LIST_RUNS, Path.cwd()) for _ in folders]
        processes += [Process(LIST_RUNS, Path.cwd(), COUNCIL_DATABASE=url, COUNCIL_DATA=str(one)) for one in folders]
        done = [wait_for_exit(process) for process in processes]
        assert [(one.code, one.err) for one in done] == [(0, "")] * 8
        check_postgres(url, tmp_path, rows)
        assert describe_postgres(url) == describe_postgres(database)
    check_sqlite(path, before, describe_new_sqlite(tmp_path / "new"))


# Killed processes


def kill_at_each_statement(tmp_path: Path, version: int, every: int = 1) -> int:
    """Migrate files of a version, kill each process before another statement, and check them.

    Return the number of kills.
    """
    path = tmp_path / f"version {version}" / "council.db"
    make_sqlite(path, version)
    before, schema = read_sqlite(path), describe_new_sqlite(tmp_path / f"new {version}")
    argv = [
        sys.executable,
        "-m",
        "tests.store.migration_process",
        "kill",
        str(path),
        str(path.parent / "copies"),
        str(every),
    ]
    done = subprocess.run(argv, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = [line.partition(" ") for line in done.stdout.splitlines()]
    assert [state for state, _, _ in results] == ["killed"] * (len(results) - 1) + ["ended"]
    for _, _, copy in results:
        check_sqlite(Path(copy) / "council.db", before, schema)
    return len(results) - 1


@pytest.mark.behaviour("40-killed-migration", "40-migration-keeps-rows")
@pytest.mark.parametrize("version", (1, 6, SCHEMA_VERSIONS["sqlite"] - 1))
def test_a_process_killed_at_a_statement_of_a_migration_changes_nothing(tmp_path: Path, version: int) -> None:
    assert kill_at_each_statement(tmp_path, version, every=5) >= 3


@pytest.mark.sweep
@pytest.mark.covers(SQLITE_SCHEMA)
@pytest.mark.behaviour("40-killed-migration", "40-migration-keeps-rows")
def test_a_process_killed_at_every_statement_of_every_migration_changes_nothing(
    tmp_path: Path, sweep_figures: Callable[..., None]
) -> None:
    kills = sum(kill_at_each_statement(tmp_path, version) for version in OLDER_SQLITE)
    sweep_figures("migrations", statement_kills=kills, versions=len(OLDER_SQLITE), lost=0)
    assert kills > 200


def kill_at_disk_operations(tmp_path: Path, version: int, every: int = 1) -> int:
    """Migrate files of a version, and kill each process before another write, sync or other disk operation."""
    schema = describe_new_sqlite(tmp_path / f"new {version}")
    number = 1
    while True:
        data = tmp_path / f"disk {version} {number}"
        path = data / "council.db"
        make_sqlite(path, version)
        before = read_sqlite(path)
        fault = DiskFault(data, first=number, signal=signal.SIGKILL)
        done = wait_for_exit(start_with_fault(fault, LIST_RUNS, Path.cwd(), COUNCIL_DATA=str(data)))
        check_sqlite(path, before, schema)
        shutil.rmtree(data)
        if done.code != -signal.SIGKILL:
            assert done.code == 0, done.err
            return (number - 1) // every
        number += every


@pytest.mark.behaviour("40-killed-migration")
def test_a_process_killed_while_it_writes_a_migration_changes_nothing_or_everything(tmp_path: Path) -> None:
    assert kill_at_disk_operations(tmp_path, 1, every=9) >= 3


@pytest.mark.sweep
@pytest.mark.covers(SQLITE_SCHEMA)
@pytest.mark.behaviour("40-killed-migration")
def test_a_process_killed_at_every_disk_operation_of_a_migration_changes_nothing_or_everything(
    tmp_path: Path, sweep_figures: Callable[..., None]
) -> None:
    kills = sum(kill_at_disk_operations(tmp_path, version) for version in OLDER_SQLITE)
    sweep_figures("migrations", disk_kills=kills)
    assert kills > 100


class KillingProxy:
    """Address of a database, which kills its client at the nth message: before the server gets it, or after."""

    def __init__(self, url: str, number: int, moment: str) -> None:
        parts = conninfo_to_dict(url)
        self._target = f"{parts['host']}/.s.PGSQL.5432"
        self._listener = socket.create_server(("127.0.0.1", 0))
        host, port = self._listener.getsockname()
        self.url = f"postgresql://postgres@{host}:{port}/{parts['dbname']}?sslmode=disable&gssencmode=disable"
        self._left, self._moment = number, moment
        self._client, self._is_client_known = 0, threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def kill(self, client: int) -> None:
        """Name the process to kill. Until then, its messages wait."""
        self._client = client
        self._is_client_known.set()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                threading.Thread(target=self._forward, args=(client, server, True), daemon=True).start()
                threading.Thread(target=self._forward, args=(server, client, False), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, is_client: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 20):
                if is_client:
                    self._is_client_known.wait()
                    self._left -= 1
                    if not self._left:
                        os.kill(self._client, signal.SIGKILL)
                        if self._moment == "before":
                            break
                target.sendall(data)
        for one in (target, source):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@contextmanager
def older_databases(postgres: Server, version: int) -> Iterator[tuple[Callable[[], object], Content]]:
    """Yield a function that makes a copy of a database of a version, and its rows."""
    with postgres.database("template1") as url:
        make_postgres(url, version)
        name = str(conninfo_to_dict(url)["dbname"])
        yield lambda: postgres.database(name), read_postgres(url)


def kill_at_messages(postgres: Server, tmp_path: Path, version: int, every: int = 1) -> int:
    """Migrate databases of a version, and kill each process at another message to the server."""
    number, kills = 1, 0
    with older_databases(postgres, version) as (copy, before):
        while True:
            for moment in ("before", "after"):
                with copy() as url:  # type: ignore[attr-defined]
                    proxy = KillingProxy(url, number, moment)
                    process = Process(
                        LIST_RUNS, Path.cwd(), COUNCIL_DATABASE=proxy.url, COUNCIL_DATA=str(tmp_path / "data")
                    )
                    proxy.kill(process.pid)
                    done = wait_for_exit(process)
                    proxy.close()
                    check_postgres(url, tmp_path, before)
                if done.code != -signal.SIGKILL:
                    assert done.code == 0, done.err
                    return kills
                kills += 1
            number += every


@pytest.mark.behaviour("40-killed-migration", "40-migration-keeps-rows")
def test_a_process_killed_during_a_migration_of_a_database_changes_nothing_or_everything(
    postgres: Server, tmp_path: Path
) -> None:
    assert kill_at_messages(postgres, tmp_path, SCHEMA_VERSIONS["postgres"] - 1, every=3) >= 4


@pytest.mark.sweep
@pytest.mark.covers(POSTGRES_SCHEMA)
@pytest.mark.behaviour("40-killed-migration", "40-migration-keeps-rows")
def test_a_process_killed_at_every_message_of_every_migration_changes_nothing_or_everything(
    postgres: Server, tmp_path: Path, sweep_figures: Callable[..., None]
) -> None:
    kills = sum(kill_at_messages(postgres, tmp_path, version) for version in OLDER_POSTGRES)
    sweep_figures("migrations", postgres_kills=kills)
    assert kills > 100
