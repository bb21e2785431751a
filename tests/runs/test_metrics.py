"""Health and metrics: their figures are those of the ledger, and nobody else can read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from council.runs.metrics import is_loopback, may_read_metrics, render_metrics
from council.store.interface import HOLD_KEY, Row, StoreAddress
from council.store.run_store import RunStore
from council.store.shared import open_store
from tests.doors.web.server import WebServer

pytestmark = pytest.mark.anyio
ANSWER = {"text": "Yes.", "finish": "stop", "usage": {"in": 100, "out": 7, "cached": 40}, "model": "m"}
FAULT = {"fault": "rate", "detail": "", "said": "", "retry_after": None}
LABELS = ("provider", "kind", "status", "queue", "version")
SETUP = {"protocol": "triad", "question": {"text": "Why?"}, "owner": "ann"}


@pytest.fixture
def store(store_address: StoreAddress) -> Iterator[RunStore]:
    opened = open_store(store_address)
    yield opened
    opened.close()


def request(key: str, n: int, member: str) -> Row:
    return ("intent", (key, n, member, b"{}", 1.0))


async def write_run(store: RunStore, run: str) -> None:
    """Store a run with a fault that was retried, a request without an answer, and one that was withdrawn."""
    await store.write(run, [("run", ("name", "/folder", 1.0, "seed", json.dumps(SETUP)))])
    money = [("reserve", (key, 1, "x:m", 1.0, "2026-11-19", "", 900)) for key in ("a", "c")]
    await store.write(run, [request("a", 1, "x:m"), request("b", 1, "y:m:o"), request("c", 1, "x:m"), *money])
    await store.write(run, [request("d", 1, "x:m"), ("reserve", (HOLD_KEY, 0, "", 1.0, "2026-11-19", "", 5000))])
    await store.write(run, [("withdraw_attempt", ("d", 1)), ("settled", ("a", 1, json.dumps(ANSWER), 2.0))])
    await store.write(run, [("charge", ("a", 1, 700, 0)), ("settled", ("b", 1, json.dumps(FAULT), 2.0))])
    await store.write(run, [request("b", 2, "y:m:o"), ("settled", ("b", 2, json.dumps(ANSWER), 2.0))])
    await store.write(run, [("settled", ("odd", 1, '{"usage": "many"}', 2.0)), ("close", ("complete", "{}"))])


async def read_samples(store: RunStore) -> dict[str, float]:
    body, _ = await render_metrics(store)
    return {
        " ".join([sample.name, *(sample.labels[label] for label in LABELS if label in sample.labels)]): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


OF_A_RUN = {
    "council_requests_total x": 2, "council_requests_total y": 2, "council_retries_total y": 1,
    "council_answers_total x": 1, "council_answers_total y": 1, "council_faults_total y rate": 1,
    "council_tokens_total x in": 100, "council_tokens_total x out": 7, "council_tokens_total x cached": 40,
    "council_tokens_total y in": 100, "council_tokens_total y out": 7, "council_tokens_total y cached": 40,
    "council_cost_dollars_total x": 700e-9, "council_ended_councils_total complete": 1,
}  # fmt: skip


@pytest.mark.behaviour("32-metrics-ledger")
async def test_the_figures_are_those_of_the_ledger_also_after_a_run_is_removed(store: RunStore) -> None:
    empty = await read_samples(store)
    assert [name for name in empty if name.split(" ")[0] in {key.split(" ")[0] for key in OF_A_RUN}] == []
    for run in ("r1", "r2"):
        await write_run(store, run)
    twice = {name: pytest.approx(2 * value) for name, value in OF_A_RUN.items()}
    after = await read_samples(store)
    assert {name: value for name, value in after.items() if name in twice} == twice
    assert {name.split(" ")[0] for name in after if name.endswith(("_total x", "_total y"))} <= {
        key.split(" ")[0] for key in OF_A_RUN
    }
    async with store.lock_run("r1"):
        await store.delete_run("r1")
    removed = await read_samples(store)
    assert {name: value for name, value in removed.items() if name in twice} == twice


@pytest.mark.behaviour("32-metrics-ledger")
async def test_the_queue_has_its_depth_and_its_oldest_run(store: RunStore) -> None:
    assert (await read_samples(store))["council_queue_runs default"] == 0
    for run in ("r1", "r2", "r3"):
        await store.write(run, [("queue", ("name", "/folder", 1.0, "seed", json.dumps(SETUP)))])
    async with store.lock_run("r3"):
        await store.write("r3", [("reopen", ())])
        found = await read_samples(store)
        assert (found["council_queue_runs default"], found["council_running_councils"]) == (2, 1)
    assert found["council_queue_oldest_seconds default"] > 0
    assert [(one.run, one.owner, one.question) for one in await store.list_waiting(10)][:2] == [
        ("r1", "ann", "Why?"),
        ("r2", "ann", "Why?"),
    ]
    assert len(await store.list_waiting(1)) == 1


@pytest.mark.behaviour("32-metrics-access")
@pytest.mark.parametrize(
    ("token", "headers", "peer", "may"),
    [
        ("", {"host": "127.0.0.1:8377"}, "127.0.0.1", True),
        ("", {"host": "localhost:8377"}, "::1", True),
        ("", {"host": "[::1]:8377"}, "::1", True),
        ("", {"host": "127.0.0.1:8377"}, "10.0.0.7", False),
        ("", {"host": "evil.example:8377"}, "127.0.0.1", False),
        ("", {"host": "127.0.0.1:8377", "x-forwarded-for": "10.0.0.7"}, "127.0.0.1", False),
        ("", {"host": "127.0.0.1:8377", "forwarded": "for=10.0.0.7"}, "127.0.0.1", False),
        ("", {"host": "127.0.0.1:8377"}, "", False),
        ("", {}, "127.0.0.1", False),
        ("", {"host": "127.0.0.1", "authorization": "Bearer "}, "10.0.0.7", False),
        ("t", {"host": "10.0.0.3:8377", "authorization": "Bearer t"}, "10.0.0.7", True),
        ("t", {"host": "127.0.0.1:8377"}, "127.0.0.1", False),
        ("t", {"host": "127.0.0.1:8377", "authorization": "Bearer tt"}, "127.0.0.1", False),
        ("t", {"host": "127.0.0.1:8377", "authorization": "Basic t"}, "127.0.0.1", False),
    ],
)
def test_metrics_need_their_token_or_this_machine(token: str, headers: dict[str, str], peer: str, may: bool) -> None:
    assert may_read_metrics(headers, peer, {"COUNCIL_METRICS_TOKEN": token} if token else {}) is may


def test_a_text_that_is_no_address_is_not_this_machine() -> None:
    assert [is_loopback(text) for text in ("127.0.0.1", "::1", "testclient", "", "127.0.0.1.example")] == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.behaviour("32-health", "32-metrics-access")
def test_the_server_tells_its_health_to_everyone_and_its_metrics_to_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "served").mkdir()
    server = WebServer(tmp_path / "served", {"COUNCIL_DATA": str(tmp_path / "data"), "HOME": str(tmp_path)})
    other = {"Host": "10.0.0.3:8377", "Authorization": ""}
    try:
        for path, text in (("/healthz", b"ok\n"), ("/readyz", b"ready\n")):
            found = server.ask("GET", path, headers=other)
            assert (found.status, found.body) == (200, text)
        assert server.ask("POST", "/healthz", {}, headers=other).status == 400
        assert server.ask("GET", "/metrics", headers=other).status == 401
        monkeypatch.setenv("COUNCIL_METRICS_TOKEN", "scrape")
        found = server.ask("GET", "/metrics", headers={**other, "Authorization": "Bearer scrape"})
        assert found.status == 200
        assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert b"council_queue_runs" in found.body
        assert "/metrics" not in server.ask("GET", "/api/openapi.json").json["paths"]
    finally:
        server.close()
