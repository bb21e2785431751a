"""Health and metrics of the workers of a shared database."""

from __future__ import annotations

import json
import os
import signal
import socket
import urllib.error
import urllib.request

import psycopg
import pytest

from council.store.migrations import list_migrations
from council.version import __version__
from tests.acceptance.helpers import QUESTION, Terminal, Workspace, wait_for_exit, wait_until
from tests.acceptance.shared_store import Workers, detach


def read_url(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.behaviour("32-health", "32-metrics-ledger", "32-metrics-access")
def test_a_worker_serves_its_health_and_metrics(shared: Workspace, shared_workers: Workers, council: Terminal) -> None:
    worker = shared_workers.start("--metrics-port", "0", waits=False, COUNCIL_METRICS_TOKEN="scrape")
    line = worker.stderr.readline()
    assert "health and metrics: http://127.0.0.1:" in line
    url = line.rpartition(" ")[2].strip()
    assert "ready; queues" in worker.stderr.readline()
    assert read_url(f"{url}/healthz") == (200, "ok\n")
    assert read_url(f"{url}/readyz") == (200, "ready\n")
    assert read_url(f"{url}/metrics")[0] == 401
    run = detach(council)
    shared.wait_until_finished(run)
    status, body = read_url(f"{url}/metrics", Authorization="Bearer scrape")
    assert (status, 'council_requests_total{provider="sim"} 7.0' in body) == (200, True), body
    assert 'council_workers{queue="default"} 1.0' in body
    gate = shared.hold("draft")
    detach(council)
    gate.wait(count=3)
    os.kill(worker.pid, signal.SIGTERM)
    assert "stopping" in worker.stderr.readline()
    gate.release()
    assert worker.wait() == 0


def test_the_port_of_metrics_must_be_free(shared: Workspace, shared_workers: Workers, council: Terminal) -> None:
    worker = shared_workers.start("--metrics-port", "0", waits=False)
    port = worker.stderr.readline().strip().rpartition(":")[2]
    assert "ready" in worker.stderr.readline()
    refused = council("serve", "worker", "--metrics-port", port)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert f"--metrics-port {port} of 127.0.0.1 cannot be used" in refused.err
    assert council("serve", "worker", "--metrics-host", "0.0.0.0").code == 2
    shared_workers.stop(worker)


@pytest.mark.behaviour("32-list-workers")
def test_the_workers_and_the_queue_are_listed(shared: Workspace, shared_workers: Workers, council: Terminal) -> None:
    assert council("serve", "workers").out == "no worker is alive: start one with `council serve worker`\n"
    assert council("serve", "queue", "--json").json == []
    first = detach(council, "--priority", "3")
    second = detach(council)
    assert [row["run"] for row in council("serve", "queue", "--json").json] == [first, second]
    [row] = council("serve", "queue", "--json", "--limit", "1").json
    assert row | {"waits": 0, "owner": ""} == {
        "run": first, "owner": "", "queue": "default", "priority": 3, "waits": 0, "question": QUESTION,
    }  # fmt: skip
    lines = council("serve", "queue").out.splitlines()
    assert lines[0].split() == ["RUN", "OWNER", "QUEUE", "PRIORITY", "WAITS", "QUESTION"] or lines[0].startswith("run")
    assert lines[1].startswith(first)
    gate = shared.hold("draft")
    shared_workers.start("--concurrency", "2")
    gate.wait(count=6)
    wait_until(lambda: council("serve", "workers", "--json").json[0]["running"] == 2, "the worker has renewed its row")
    [worker] = council("serve", "workers", "--json").json
    assert (worker["version"], worker["host"], worker["queues"][0]) == (__version__, socket.gethostname(), "default")
    shown = council("serve", "workers").out.splitlines()
    assert len(shown) == 2
    assert __version__ in shown[1]
    assert council("serve", "queue").out == "no run waits for a worker\n"
    gate.release()
    shared.wait_until_finished(first, second)


@pytest.mark.behaviour("32-migrate")
def test_migrate_creates_the_schema_and_says_its_version(shared: Workspace, council: Terminal) -> None:
    with psycopg.connect(os.environ["COUNCIL_DATABASE"], autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS council CASCADE")
    done = wait_for_exit(shared.process("serve", "migrate", "--json"))
    told = json.loads(done.out)
    assert told["schema"] == len(list_migrations("postgres"))
    with psycopg.connect(os.environ["COUNCIL_DATABASE"]) as db:
        assert db.execute("SELECT applied FROM council.schema_version").fetchall() == [(told["schema"],)]
    assert f"has schema version {told['schema']}" in council("serve", "migrate").out
