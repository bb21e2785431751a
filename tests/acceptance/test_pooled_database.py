"""Workers and commands through PgBouncer in transaction mode."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.acceptance.helpers import QUESTION, SEATS, Terminal, Workspace, check_store, wait_until
from tests.acceptance.shared_store import Workers, detach
from tests.acceptance.test_many_workers import count_open, queue_runs
from tests.acceptance.test_worker_metrics import read_url
from tests.databases import Bouncer, Server, needs_bouncer

pytestmark = needs_bouncer
WORKERS, COUNCILS, SERVER_CONNECTIONS = 30, 200, 20


@pytest.fixture
def bouncer(postgres: Server) -> Iterator[Bouncer]:
    bouncer = Bouncer(postgres, server_connections=SERVER_CONNECTIONS)
    yield bouncer
    bouncer.remove()


@pytest.fixture
def direct(database: str) -> str:
    return database


@pytest.fixture
def pooled(shared: Workspace, bouncer: Bouncer, database: str, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace whose commands and workers reach the database through the pooler only."""
    monkeypatch.setenv("COUNCIL_DATABASE", bouncer.url(database))
    return shared


@pytest.mark.behaviour("32-pooler", "32-connections")
def test_a_worker_behind_a_pooler_executes_a_run_that_is_watched(
    pooled: Workspace, shared_workers: Workers, council: Terminal
) -> None:
    worker = shared_workers.start("--metrics-port", "0", waits=False, COUNCIL_METRICS_TOKEN="t")
    url = shared_workers.wait_for_line(worker, "health and metrics").rpartition(" ")[2].strip()
    shared_workers.wait_for_line(worker, "ready; queues")
    run = detach(council)
    done = council("watch", run, "--json")
    assert (done.code, done.json["status"], len(pooled.asked())) == (0, "complete", 7)
    assert "council_process_database_connections 3.0" in read_url(f"{url}/metrics", Authorization="Bearer t")[1]
    assert shared_workers.stop(worker) == ""
    assert council("runs", "search", "archive").code == 0
    check_store(council)


@pytest.mark.behaviour("32-pooler")
def test_a_run_behind_a_pooler_is_cancelled_and_resumed(
    pooled: Workspace, shared_workers: Workers, council: Terminal
) -> None:
    worker = shared_workers.start()
    gate = pooled.hold("draft")
    run = detach(council)
    gate.wait(count=3)
    assert council("cancel", run).out.startswith(f"run {run} is cancelled")
    assert council("watch", run).code == 130
    assert council("resume", "--detach", run).code == 0
    gate.release()
    pooled.wait_until_finished(run)
    shared_workers.stop(worker)
    check_store(council)


@pytest.mark.behaviour("32-pooler", "16-worker-takeover")
def test_a_run_behind_a_pooler_is_taken_over_after_a_kill(
    pooled: Workspace, shared_workers: Workers, council: Terminal
) -> None:
    first = shared_workers.start()
    gate = pooled.hold("improve")
    run = detach(council)
    gate.wait(count=3)
    second = shared_workers.start()
    shared_workers.kill(first)
    gate.release()
    pooled.wait_until_finished(run)
    assert [pooled.asked().count(f"draft/{seat}") for seat in SEATS] == [1, 1, 1]
    assert council("report", run, "--json").json["calls"] == {"made": 10, "replayed": 3, "in_doubt": 3}
    assert f"run {run}: its worker is gone" in shared_workers.stop(second)
    check_store(council)


@pytest.mark.behaviour("32-pooler", "16-batch-workers")
def test_a_batch_is_executed_by_workers_behind_a_pooler(
    pooled: Workspace, shared_workers: Workers, council: Terminal
) -> None:
    rows = "".join(json.dumps({"id": f"row {n}", "question": f"Question {n}?"}) + "\n" for n in range(6))
    (pooled.folder / "rows.jsonl").write_text(rows, encoding="utf-8")
    workers = [shared_workers.start() for _ in range(2)]
    done = council("batch", "rows.jsonl", "-o", "out.jsonl", "--protocol", "triad", "--concurrency", "3")
    assert (done.code, "2 workers execute the rows" in done.err) == (0, True), done.err
    lines = [json.loads(line) for line in (pooled.folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted((line["id"], line["status"]) for line in lines) == [(f"row {n}", "complete") for n in range(6)]
    for worker in workers:
        shared_workers.stop(worker)
    check_store(council)


@pytest.mark.behaviour("32-pooler")
def test_a_pooler_that_is_replaced_ends_no_run(
    pooled: Workspace, shared_workers: Workers, council: Terminal, bouncer: Bouncer
) -> None:
    worker = shared_workers.start()
    gate = pooled.hold("draft")
    run = detach(council)
    gate.wait(count=3)
    bouncer.stop()
    gate.release()
    bouncer.start()
    pooled.wait_until_finished(run)
    assert len(pooled.asked()) == 7
    shared_workers.stop(worker)
    check_store(council)


@pytest.mark.sweep
@pytest.mark.behaviour("32-pooler", "32-connections")
def test_thirty_workers_share_twenty_connections_of_the_server(
    pooled: Workspace,
    shared_workers: Workers,
    council: Terminal,
    direct: str,
    bouncer: Bouncer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    started = time.monotonic()
    workers = [shared_workers.start("--concurrency", "8", waits=False) for _ in range(WORKERS)]
    for worker in workers:
        assert "ready; queues" in worker.stderr.readline()
    ready = time.monotonic() - started
    queue_runs(pooled, COUNCILS)
    most = 0
    with psycopg.connect(direct, autocommit=True) as db:

        def is_done() -> bool:
            nonlocal most
            query = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            ((number,),) = db.execute(query).fetchall()
            most = max(most, number)
            return count_open() == 0

        wait_until(is_done, "the runs ended", 300)
    took = time.monotonic() - started - ready
    logs = [shared_workers.stop(worker) for worker in workers]
    with capsys.disabled():
        print(f"\nready in {ready:.1f} s, {COUNCILS} councils in {took:.1f} s, {most} connections of the server")
    assert most <= SERVER_CONNECTIONS
    assert [log for log in logs if log] == []
    assert "ERROR" not in bouncer.log.read_text(encoding="utf-8")
    assert os.environ["COUNCIL_DATABASE"] == bouncer.url(direct)
    assert len(pooled.provider.log) == COUNCILS * 4
    check_store(council)


def test_a_question_through_a_pooler_is_answered(pooled: Workspace, council: Terminal) -> None:
    done = council("--json", "--protocol", "triad", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete"), done.err
    assert council("runs").code == 0
    check_store(council)
