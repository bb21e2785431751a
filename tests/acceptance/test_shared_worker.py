"""Workers of a shared database: they execute queued runs, take over those of dead workers, and store nothing without
a lease.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.helpers import QUESTION, SEATS, Terminal, Workspace, check_store, kill, wait_until
from tests.acceptance.shared_store import Workers, detach
from tests.fake_provider import Gate
from tests.fork_server import Process
from tests.trusted_project import trust_project


def start_and_hold(
    shared: Workspace, shared_workers: Workers, council: Terminal, phase: str, *flags: str
) -> tuple[Process, str, Gate]:
    """Start a worker and a run, and hold the run in a phase."""
    gate = shared.hold(phase)
    worker = shared_workers.start(*flags)
    run = detach(council)
    gate.wait(count=3)
    return worker, run, gate


@pytest.mark.behaviour("16-worker", "16-worker-report")
def test_a_worker_executes_a_queued_run_with_its_own_settings(
    shared: Workspace, shared_workers: Workers, council: Terminal, tmp_path: Path
) -> None:
    """The worker has another folder, another data folder and its own configuration file."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    waiting = detach(council)
    assert shared.provider.log == []
    config = shared.folder / "council.toml"
    shared.folder = elsewhere
    shared_workers.start("--config", str(config), COUNCIL_DATA=str(tmp_path / "data of the worker"))
    shared.wait_until_finished(waiting)
    assert len(shared.asked()) == 7
    done = council("watch", waiting, "--json")
    assert (done.code, done.json["status"], done.json["report_path"]) == (0, "complete", None)
    assert shared.reports() == []
    assert council("report", waiting).out.startswith("#")
    check_store(council)


@pytest.mark.behaviour("16-worker-takeover")
def test_the_run_of_a_killed_worker_is_taken_over_without_repeating_a_stored_answer(
    shared: Workspace, shared_workers: Workers, council: Terminal
) -> None:
    first, run, gate = start_and_hold(shared, shared_workers, council, "improve")
    second = shared_workers.start()
    shared_workers.kill(first)
    gate.release()
    sent = len(shared.provider.log)
    shared.wait_until_finished(run)
    assert sorted(shared.asked(sent)) == ["improve/alpha", "improve/beta", "improve/gamma", "synthesise/chair"]
    assert council("report", run, "--json").json["calls"] == {"made": 10, "replayed": 3, "in_doubt": 3}
    assert f"run {run}: its worker is gone" in shared_workers.stop(second)
    check_store(council)


@pytest.mark.behaviour("16-worker-fencing")
def test_a_worker_that_was_stopped_longer_than_its_lease_stores_nothing(
    shared: Workspace, shared_workers: Workers, council: Terminal
) -> None:
    first, run, gate = start_and_hold(shared, shared_workers, council, "improve")
    os.kill(first.pid, signal.SIGSTOP)
    second = shared_workers.start()
    gate.wait(count=6)  # the second worker has taken the run over and asks again
    gate.release()
    shared.wait_until_finished(run)
    stored = {
        table: shared.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in ("events", "settled", "results")
    }
    report = shared.rows("SELECT status, report FROM runs")
    os.kill(first.pid, signal.SIGCONT)
    log = shared_workers.wait_for_line(first, run)
    assert f"run {run} was taken over by another process" in log
    shared_workers.stop(first)
    assert stored == {table: shared.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in stored}
    assert report == shared.rows("SELECT status, report FROM runs")
    shared_workers.stop(second)
    check_store(council)


@pytest.mark.behaviour("16-worker-drain")
@pytest.mark.parametrize("seconds", [60, 0])
def test_after_term_a_worker_ends_its_runs_or_hands_them_back(
    shared: Workspace, shared_workers: Workers, council: Terminal, seconds: int
) -> None:
    worker, run, gate = start_and_hold(shared, shared_workers, council, "improve", "--drain", str(seconds))
    os.kill(worker.pid, signal.SIGTERM)
    if seconds:
        assert "stopping: 1 runs have 60 s" in worker.stderr.readline()
        later = detach(council)
        gate.release()
        assert worker.wait() == 0
        assert (shared.status(run), shared.status(later)) == ("complete", "queued")
    else:
        assert worker.wait() == 0
        assert f"handed back to the queue: {run}" in worker.stderr.read()
        assert shared.status(run) == "queued"
        gate.release()
        shared_workers.start()
        shared.wait_until_finished(run)
        assert [shared.asked().count(f"draft/{seat}") for seat in SEATS] == [1, 1, 1]
    check_store(council)


@pytest.mark.behaviour("16-worker-keys")
def test_a_worker_without_the_key_leaves_the_run_to_one_that_has_it(
    shared: Workspace, shared_workers: Workers, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = shared.folder / "council.toml"
    path.write_text(path.read_text().replace("backoff = 0.01", 'backoff = 0.01\napi_key_env = "SIM_KEY"'))
    monkeypatch.setenv("SIM_KEY", "of-the-client")
    run = detach(council)
    monkeypatch.delenv("SIM_KEY")
    first = shared_workers.start()
    assert f"run {run} is left to other workers: it needs SIM_KEY" in first.stderr.readline()
    assert (shared.status(run), shared.provider.log) == ("queued", [])
    shared_workers.start(SIM_KEY="of-the-worker")
    shared.wait_until_finished(run)
    assert {seen.headers["Authorization"] for seen in shared.provider.log} == {"Bearer of-the-worker"}
    check_store(council)


@pytest.mark.behaviour("16-worker-queues")
def test_a_run_that_needs_its_folder_waits_for_a_worker_of_this_host(
    shared: Workspace, shared_workers: Workers, council: Terminal
) -> None:
    script = shared.folder / "answers.toml"
    script.write_text('[[reply]]\ntext = "Yes."\n')
    local = ["--detach", "--json", "--protocol", "triad", "-m", "scripted:answers.toml"]
    queue = f"host:{socket.gethostname()}"
    shared_workers.start("--queues", "default")
    refused = council(*local, QUESTION)
    assert refused.code == 2
    assert f'no worker of the queue \\"{queue}\\" is alive' in refused.out
    shared_workers.start("--queues", "host")
    run = council(*local, QUESTION).json["run"]
    wait_until(lambda: shared.status(run) not in ("queued", "running"), "the run ended")
    assert len(shared.reports()) == 1
    check_store(council)


@pytest.mark.behaviour("16-worker-none", "16-worker-priority")
def test_without_a_worker_runs_wait_and_the_most_urgent_is_first(
    shared: Workspace, shared_workers: Workers, council: Terminal
) -> None:
    runs = []
    for priority in (0, 5, 1):
        done = council("--detach", "--json", "--priority", str(priority), "--protocol", "triad", QUESTION)
        assert 'no worker of the queue "default" is alive' in done.err
        runs.append(done.json["run"])
    shared_workers.start("--concurrency", "1")
    shared.wait_until_finished(*runs)
    started = shared.rows("SELECT run FROM settled GROUP BY run ORDER BY min(at)")
    assert [run for (run,) in started] == [runs[1], runs[2], runs[0]]
    assert council("--priority", "1", QUESTION).code == 2
    check_store(council)


@pytest.mark.behaviour("16-worker")
def test_a_run_that_a_worker_executes_is_watched_and_cancelled_from_another_process(
    shared: Workspace, shared_workers: Workers, council: Terminal
) -> None:
    worker, run, gate = start_and_hold(shared, shared_workers, council, "draft")
    assert council("cancel", run).out.startswith(f"run {run} is cancelled")
    assert council("watch", run).code == 130
    assert council("resume", "--detach", run).code == 0
    gate.release()
    shared.wait_until_finished(run)
    shared_workers.stop(worker)
    check_store(council)


# Servers


@pytest.mark.behaviour("16-worker-embedded")
def test_the_web_server_executes_runs_unless_it_has_no_worker(shared: Workspace, council: Terminal) -> None:
    from tests.doors.web.server import WebServer

    body = {"question": QUESTION, "protocol": "triad"}
    trust_project(shared.folder)
    for has_worker in (False, True):
        server = WebServer(shared.folder, os.environ, has_worker=has_worker)
        run = server.ask("POST", "/api/runs", body).json["run"]
        if has_worker:
            shared.wait_until_finished(run)
        listed = {one["id"]: one["status"] for one in server.ask("GET", "/api/runs").json["runs"]}
        assert listed[run] == ("complete" if has_worker else "queued")
        server.close()
    check_store(council)


@pytest.mark.behaviour("16-worker-embedded")
@pytest.mark.anyio
async def test_the_mcp_server_executes_runs(shared: Workspace) -> None:
    from tests.doors.mcp.clients import call_tool, connect

    trust_project(shared.folder)
    async with connect("--folder", str(shared.folder)) as client:
        started = await call_tool(client, "council_start", question=QUESTION, protocol="triad")
        while not (await call_tool(client, "council_wait", run=started["run"]))["done"]:
            pass
        assert (await call_tool(client, "council_result", run=started["run"]))["status"] == "complete"
    assert len(shared.provider.log) == 4


@pytest.mark.behaviour("16-batch-workers")
def test_the_rows_of_a_batch_are_executed_by_workers_also_after_the_batch_was_killed(
    shared: Workspace, shared_workers: Workers, council: Terminal
) -> None:
    rows = "".join(json.dumps({"id": f"row {n}", "question": f"Question {n}?"}) + "\n" for n in range(6))
    (shared.folder / "rows.jsonl").write_text(rows, encoding="utf-8")
    command = ("batch", "rows.jsonl", "-o", "out.jsonl", "--protocol", "triad", "--concurrency", "3")
    gate = shared.hold("merge")
    workers = [shared_workers.start() for _ in range(2)]
    batch = shared.process(*command)
    gate.wait(count=3)  # of three rows
    kill(batch)
    gate.release()
    done = council(*command)
    assert (done.code, "2 workers execute the rows" in done.err) == (0, True), done.err
    lines = [json.loads(line) for line in (shared.folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted(line["id"] for line in lines) == [f"row {n}" for n in range(6)]
    assert {line["status"] for line in lines} == {"complete"}
    asked = Counter((seen.prompt, seen.model) for seen in shared.provider.log)
    assert set(asked.values()) == {1}, "a call was sent twice"
    for worker in workers:
        shared_workers.stop(worker)
    again = council(*command)
    assert (again.code, len(shared.provider.log)) == (0, sum(asked.values()))
    check_store(council)


@pytest.mark.behaviour("16-worker-reconnects")
def test_a_worker_connects_again_after_the_database_has_closed_its_connections(
    shared: Workspace, shared_workers: Workers, council: Terminal
) -> None:
    worker, first, gate = start_and_hold(shared, shared_workers, council, "draft")
    with psycopg.connect(os.environ["COUNCIL_DATABASE"], autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    gate.release()
    second = detach(council)
    shared.wait_until_finished(first, second)
    assert len(shared.asked()) == 14
    shared_workers.stop(worker)
    check_store(council)
