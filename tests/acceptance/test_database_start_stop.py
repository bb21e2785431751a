"""Workers and servers whose database cannot be reached, is full or hangs: they start later, and end in time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from council.store.postgres_workers import CLAIM_LOCK
from tests.acceptance.helpers import QUESTION, Terminal, Workspace, check_store, wait_for_exit, wait_until
from tests.acceptance.shared_store import Workers, detach
from tests.acceptance.test_many_workers import count_open, queue_runs
from tests.acceptance.test_worker_metrics import read_url
from tests.databases import PASSWORD, Bouncer, Proxy, Server, needs_bouncer
from tests.fork_server import SERVERS, Process

STOP_S = 25.0  # a stop with `--drain 1` takes less, also if the database hangs
SLOTS = 3


@pytest.fixture
def proxy(database: str) -> Iterator[Proxy]:
    with closing(Proxy(database)) as proxy:
        yield proxy


@pytest.fixture
def limited(database: str, postgres: Server) -> Iterator[str]:
    """The address of the database for a user who may have three connections."""
    name = f"limited_{conninfo_to_dict(database)['dbname']}"
    with psycopg.connect(database, autocommit=True) as db:
        db.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT {SLOTS}")  # type: ignore[arg-type]
        for kind in ("TABLES", "SEQUENCES", "FUNCTIONS"):
            db.execute(f"GRANT ALL ON ALL {kind} IN SCHEMA council TO {name}")  # type: ignore[arg-type]
        db.execute(f"GRANT USAGE ON SCHEMA council TO {name}")  # type: ignore[arg-type]
        yield database.replace("postgres@", f"{name}@")
        db.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'")  # type: ignore[arg-type]
        db.execute(f"DROP OWNED BY {name}")  # type: ignore[arg-type]
        db.execute(f"DROP ROLE {name}")  # type: ignore[arg-type]


def stop(worker: Process, code: int = 0) -> str:
    """Stop a process with TERM, which has to end it in time. Return the rest of its log."""
    os.kill(worker.pid, signal.SIGTERM)
    _, log = worker.communicate(timeout=STOP_S)
    assert worker.wait(STOP_S) == code, log
    assert "Traceback" not in log, log
    assert "never retrieved" not in log, log
    assert not any(line.startswith(" ") for line in log.splitlines()), log
    return log


# Connections


@pytest.mark.behaviour("32-connections")
def test_a_worker_under_load_needs_three_connections(
    shared: Workspace, shared_workers: Workers, council: Terminal, limited: str
) -> None:
    """The user of the worker may have no more."""
    runs = queue_runs(shared, 40)
    worker = shared_workers.start(
        "--concurrency", "20", "--metrics-port", "0", waits=False, COUNCIL_DATABASE=limited, COUNCIL_METRICS_TOKEN="t"
    )
    url = shared_workers.wait_for_line(worker, "health and metrics").rpartition(" ")[2].strip()
    most, name = 0, conninfo_to_dict(limited)["user"]
    with psycopg.connect(os.environ["COUNCIL_DATABASE"], autocommit=True) as db:

        def is_done() -> bool:
            nonlocal most
            ((number,),) = db.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = %s", (name,)).fetchall()
            most = max(most, number)
            return count_open() == 0

        wait_until(is_done, "the runs ended", 60)
    assert most == SLOTS
    status, body = read_url(f"{url}/metrics", Authorization="Bearer t")
    assert (status, f"council_process_database_connections {SLOTS}.0" in body) == (200, True)
    assert "council_process_database_connects_total 3.0" in body
    assert len(runs) == 40
    log = stop(worker)
    assert "slots" not in log
    check_store(council)


# Starts


@pytest.mark.behaviour("32-patient-start")
def test_a_worker_waits_for_its_database_with_one_line(
    shared: Workspace, shared_workers: Workers, council: Terminal, proxy: Proxy
) -> None:
    proxy.is_down = True
    worker = shared_workers.start("--metrics-port", "0", waits=False, COUNCIL_DATABASE=proxy.url)
    url = worker.stderr.readline().rpartition(" ")[2].strip()
    line = worker.stderr.readline()
    assert "waiting for the database: the database " in line
    assert "cannot be reached" in line
    assert PASSWORD not in line
    assert (read_url(f"{url}/healthz")[0], read_url(f"{url}/readyz")[0]) == (200, 503)
    assert read_url(f"{url}/metrics") == (503, "the run store is not open yet\n")
    refused = wait_for_exit(Process(["runs"], shared.folder, COUNCIL_DATABASE=proxy.url))
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    proxy.is_down = False
    assert "ready; queues" in worker.stderr.readline()
    shared.wait_until_finished(detach(council))
    assert stop(worker) == ""


@pytest.mark.behaviour("32-patient-start", "32-full-slots")
def test_a_worker_without_a_slot_waits_until_another_one_ends(
    shared: Workspace, shared_workers: Workers, council: Terminal, limited: str
) -> None:
    first = shared_workers.start(COUNCIL_DATABASE=limited)
    second = shared_workers.start(waits=False, COUNCIL_DATABASE=limited)
    line = second.stderr.readline()
    assert "waiting for the database: all connection slots of the database " in line
    assert "raise max_connections, use PgBouncer, or start fewer workers" in line
    shared.wait_until_finished(detach(council))
    stop(first)
    assert "ready; queues" in second.stderr.readline()
    shared.wait_until_finished(detach(council))
    assert stop(second) == ""


@pytest.mark.behaviour("32-patient-start")
@pytest.mark.parametrize("command", [("serve", "worker"), ("serve", "--port", "0")], ids=["worker", "serve"])
@pytest.mark.parametrize("wrong", ["user", "database"])
def test_a_database_that_refuses_the_user_is_not_asked_again(
    shared: Workspace, database: str, command: tuple[str, ...], wrong: str
) -> None:
    parts = conninfo_to_dict(database)
    user, name = ("nobody", parts["dbname"]) if wrong == "user" else ("postgres", "nothing")
    url = f"postgresql://{user}@/{name}?host={quote(str(parts['host']))}"
    done = wait_for_exit(Process(command, shared.folder, modules=SERVERS, COUNCIL_DATABASE=url))
    assert (done.code, "does not exist" in done.err, "Traceback" in done.err) == (1, True, False), done.err


@needs_bouncer
@pytest.mark.behaviour("32-patient-start")
def test_a_wrong_password_is_not_tried_again(shared: Workspace, database: str, postgres: Server) -> None:
    bouncer = Bouncer(postgres, password=PASSWORD)
    try:
        done = wait_for_exit(
            Process(
                ["serve", "worker"], shared.folder, COUNCIL_DATABASE=bouncer.url(database), PGPASSWORD="-".join("wrong")
            )
        )
        assert (done.code, done.err.count("\n"), "password" in done.err) == (1, 1, True), done.err
    finally:
        bouncer.remove()


@pytest.mark.behaviour("32-patient-start")
@pytest.mark.parametrize("flags", [(), ("--no-worker",)], ids=["worker", "no worker"])
def test_the_web_server_starts_before_its_database(
    shared: Workspace, council: Terminal, proxy: Proxy, flags: tuple[str, ...]
) -> None:
    proxy.is_down = True
    server = Process(["serve", "--port", "0", *flags], shared.folder, modules=SERVERS, COUNCIL_DATABASE=proxy.url)
    url = server.stdout.readline().partition("#")[0].strip().rstrip("/")
    assert "council: waiting for the database: the database " in server.stderr.readline()
    assert (read_url(f"{url}/healthz")[0], read_url(f"{url}/readyz")[0]) == (200, 503)
    proxy.is_down = False
    wait_until(lambda: read_url(f"{url}/readyz")[0] == 200, "the server is ready", 30)
    if not flags:
        shared.wait_until_finished(detach(council))
    assert "waiting" not in stop(server, -signal.SIGTERM)


# Stops


@pytest.mark.behaviour("32-prompt-stop")
def test_term_ends_a_worker_that_waits_for_its_database(
    shared: Workspace, shared_workers: Workers, proxy: Proxy
) -> None:
    proxy.is_down = True
    worker = shared_workers.start(waits=False, COUNCIL_DATABASE=proxy.url)
    assert "waiting for the database" in worker.stderr.readline()
    assert stop(worker) == ""


@pytest.mark.behaviour("32-prompt-stop")
def test_term_ends_a_worker_whose_database_hangs_at_the_start(
    shared: Workspace, shared_workers: Workers, proxy: Proxy
) -> None:
    proxy.passes.clear()
    worker = shared_workers.start("--metrics-port", "0", waits=False, COUNCIL_DATABASE=proxy.url)
    assert "health and metrics" in worker.stderr.readline()
    assert stop(worker) == ""


@pytest.mark.behaviour("32-prompt-stop")
@pytest.mark.parametrize(
    "is_executing", [False, pytest.param(True, marks=pytest.mark.sweep)], ids=["idle", "with a run"]
)
def test_term_ends_a_worker_whose_database_hangs(
    shared: Workspace, shared_workers: Workers, council: Terminal, proxy: Proxy, is_executing: bool
) -> None:
    """A run is left as it is, until its lease has expired."""
    worker = shared_workers.start("--drain", "1", COUNCIL_DATABASE=proxy.url)
    if is_executing:
        gate = shared.hold("draft")
        run = detach(council)
        gate.wait(count=3)
    proxy.passes.clear()
    if is_executing:
        gate.release()
    assert "the database does not answer" in stop(worker)
    if is_executing:
        proxy.close()
        other = shared_workers.start()
        shared.wait_until_finished(run)
        stop(other)
        check_store(council)


@pytest.mark.sweep
@pytest.mark.behaviour("32-prompt-stop")
def test_term_ends_a_worker_that_waits_for_its_claim(
    shared: Workspace, shared_workers: Workers, council: Terminal
) -> None:
    worker = shared_workers.start()
    with psycopg.connect(os.environ["COUNCIL_DATABASE"], autocommit=True) as db:
        db.execute("SELECT pg_advisory_lock(%s)", (CLAIM_LOCK,))
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_until(lambda: db.execute(waiting).fetchall() != [(0,)], "the worker claims")  # type: ignore[arg-type]
        stop(worker)


@pytest.mark.sweep
@pytest.mark.behaviour("32-prompt-stop")
def test_term_ends_a_worker_that_drains_when_the_database_begins_to_hang(
    shared: Workspace, shared_workers: Workers, council: Terminal, proxy: Proxy
) -> None:
    worker = shared_workers.start("--drain", "1", COUNCIL_DATABASE=proxy.url)
    gate = shared.hold("improve")
    detach(council)
    gate.wait(count=3)
    os.kill(worker.pid, signal.SIGTERM)
    assert "stopping: 1 runs" in worker.stderr.readline()
    proxy.passes.clear()
    gate.release()
    _, log = worker.communicate(timeout=STOP_S)
    assert (worker.wait(STOP_S), "Traceback" in log, "never retrieved" in log) == (0, False, False), log


@pytest.mark.sweep
@pytest.mark.behaviour("32-prompt-stop")
def test_term_ends_the_web_server_whose_database_hangs(shared: Workspace, proxy: Proxy) -> None:
    server = Process(["serve", "--port", "0"], shared.folder, modules=SERVERS, COUNCIL_DATABASE=proxy.url)
    url = server.stdout.readline().partition("#")[0].strip().rstrip("/")
    wait_until(lambda: read_url(f"{url}/readyz")[0] == 200, "the server is ready", 30)
    proxy.passes.clear()
    stop(server, -signal.SIGTERM)


@pytest.mark.behaviour("32-full-slots")
def test_a_command_without_a_slot_fails_with_one_line(shared: Workspace, shared_workers: Workers, limited: str) -> None:
    worker = shared_workers.start(COUNCIL_DATABASE=limited)
    done = wait_for_exit(Process(["--protocol", "triad", QUESTION], shared.folder, COUNCIL_DATABASE=limited))
    assert (done.code, done.err.count("\n")) == (1, 1), done.err
    assert "all connection slots of the database" in done.err
    stop(worker)
