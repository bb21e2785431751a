"""Routes that act on a run in another process: cancel, resume, fork, answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from council.runs.outcome import EXIT_PARTIAL
from council.runs.worker_client import request_worker
from tests.acceptance.helpers import Terminal, Workspace, wait_until
from tests.acceptance.workers import held_worker
from tests.doors.web.conftest import write_project
from tests.doors.web.server import QUESTION, SCRIPTED, Json, WebServer, environment
from tests.fake_provider import FakeProvider


@pytest.fixture
def table(provider: FakeProvider, tmp_path: Path) -> Workspace:
    """Seats on a fake endpoint, in the served folder."""
    return Workspace(write_project(tmp_path), provider)


@pytest.fixture
def served(table: Workspace, tmp_path: Path) -> Iterator[WebServer]:
    site = WebServer(table.folder, environment(tmp_path))
    yield site
    site.close()


def started(site: WebServer, **body: object) -> str:
    return str(site.post("/api/runs", {"question": QUESTION, "protocol": "collaborative", **body}, 201)["run"])


@pytest.mark.behaviour("evidence-outcome-http")
def test_an_outcome_is_recorded_over_http_and_shown_wherever_the_run_is(site: WebServer) -> None:
    run = site.run_council()
    path = f"/api/runs/{run}/outcome"
    assert "label" in site.refused(path, {"label": ""}, 422)
    assert "has no final answer that can be compared" in site.refused(path, {"label": "43"})
    assert site.ask("POST", path, {"label": "wrong"}, token=False).status == 401
    assert site.ask("POST", "/api/runs/rnothing/outcome", {"label": "wrong"}).status == 404
    recorded = site.post(path, {"label": "wrong", "note": "the disk was full"})
    assert (recorded["schema"], recorded["label"], recorded["earlier"]) == ("council.outcome/1", "wrong", [])
    assert site.get("/api/runs")["runs"][0]["decision_outcome"] == "wrong"
    report = site.get(f"/api/runs/{run}")["report"]
    assert report["decision_outcome"]["note"] == "the disk was full"
    assert report["trust"]["because"][0] == "the answer turned out wrong"
    for form in ("md", "html"):
        assert "the answer turned out wrong" in site.get(f"/api/runs/{run}/report?format={form}")
    assert [row["label"] for row in site.post(path, {"label": "right"})["earlier"]] == ["wrong"]


@pytest.mark.behaviour("50-web-cancel", "50-web-resume", "007-web-api")
def test_a_cancelled_run_resumes_without_paying_twice(served: WebServer, table: Workspace) -> None:
    gate = table.hold("improve", "gamma")
    run = started(served)
    gate.wait()
    wait_until(
        lambda: len(served.get(f"/api/runs/{run}")["minutes"]["phases"][1]["said"]) == 2, "two have improved theirs"
    )
    assert served.get("/api/runs?status=running")["runs"][0]["running"] is True
    assert "running in another process" in served.refused(f"/api/runs/{run}/resume", {}, 409)
    assert served.post(f"/api/runs/{run[:4]}/cancel", {}, 202)["run"] == run
    stopped = served.wait_for_end(run)
    assert (stopped["status"], stopped["minutes"]["stopped"]) == ("incomplete", "cancelled")
    asked = len(table.provider.log)
    gate.release()
    with held_worker(Path(served.env["COUNCIL_DATA"])) as accepted:
        resumed = served.post(f"/api/runs/{run}/resume", {}, 202)
        wait_until(lambda: accepted == [run], "the worker has the run")
    assert (resumed["run"], resumed["status"]) == (run, "queued")
    asyncio.run(request_worker(run, served.env))
    ended = served.wait_for_end(run)
    assert ended["status"] == "complete"
    assert table.asked(since=asked) == ["improve/gamma", "synthesise/chair"]


def assert_has_no_result(site: WebServer, command: Terminal, run: str, status: str) -> None:
    """Assert that no view says how a run ended or how far to trust it."""
    shown = site.get(f"/api/runs/{run}")
    report = site.get(f"/api/runs/{run}/report?format=json")
    assert (shown["status"], shown["report"]) == (status, report)
    assert (report["status"], report["verdict"], report["confidence"], report["answer"]) == (None, None, None, "")
    assert report["trust"] == {"level": None, "because": [], "in_favour": [], "facts": []}
    assert report["tail"] == []
    assert shown["above"][0].startswith("The run has not ended")
    assert all(row["state"] != "cancelled" for row in report["degraded"])
    (row,) = (row for row in site.get("/api/runs")["runs"] if row["run"] == run)
    assert (row["status"], row["trust"], row["outcome"], row["confidence"]) == (status, None, None, None)
    assert command("runs", "show", run, "--json").json == report
    texts = [site.get(f"/api/runs/{run}/report?format={form}") for form in ("md", "junit", "sarif")]
    texts += [command("runs", "show", run, *flags).out for flags in ([], ["-v"])]
    assert f"{status.upper()}: the run has not ended" in texts[0]
    for text in [*map(str, texts), *shown["above"]]:
        assert not re.search(r"INCOMPLETE|\bLOW\b|council resume", text), text
    assert command("gate", run).code == EXIT_PARTIAL


@pytest.mark.behaviour("50-web-no-result-before-end")
@pytest.mark.parametrize("asked", [{}, {"question": "validate", "targets": ["notes.md"], "protocol": "judges"}])
def test_a_run_has_no_status_and_no_trust_until_it_ends(
    served: WebServer, table: Workspace, asked: Json, monkeypatch: pytest.MonkeyPatch, council: Terminal
) -> None:
    monkeypatch.chdir(table.folder)
    monkeypatch.setenv("COUNCIL_DATA", served.env["COUNCIL_DATA"])
    table.provider.answer = None  # the scripted answers of the provider: texts and typed replies
    gate = table.provider.hold(nth=2)
    run = started(served, **asked)
    gate.wait()
    wait_until(lambda: len(served.get(f"/api/runs/{run}")["minutes"]["phases"][0]["said"]) >= 1, "one has answered")
    assert_has_no_result(served, council, run, "running")
    served.post(f"/api/runs/{run}/cancel", {}, 202)
    stopped = served.wait_for_end(run)
    assert (stopped["report"]["status"], stopped["report"]["trust"]["level"]) == ("incomplete", "LOW")
    assert "cancelled" in stopped["above"][0].lower()
    assert served.get("/api/runs")["runs"][0]["trust"] == "LOW"
    gate.release()
    with held_worker(Path(served.env["COUNCIL_DATA"])) as accepted:
        served.post(f"/api/runs/{run}/resume", {}, 202)
        wait_until(lambda: accepted == [run], "the worker has the run")
    assert_has_no_result(served, council, run, "queued")
    asyncio.run(request_worker(run, served.env))
    report = served.wait_for_end(run)["report"]
    assert (report["status"], bool(report["trust"]["level"])) == ("complete", True)


@pytest.mark.behaviour("50-web-cancel")
def test_cancel_and_resume_leave_a_finished_run_unchanged(site: WebServer) -> None:
    run = site.run_council()
    before = site.ledger(run)
    assert "nothing to cancel" in site.refused(f"/api/runs/{run}/cancel", {}, 409)
    assert "nothing to resume" in site.refused(f"/api/runs/{run}/resume", {}, 409)
    assert site.ledger(run) == before


@pytest.mark.behaviour("50-web-delete")
def test_a_run_is_deleted_once_it_has_ended(served: WebServer, table: Workspace) -> None:
    gate = table.hold("draft", "gamma")
    run = started(served)
    gate.wait()
    line = served.ask("DELETE", f"/api/runs/{run}")
    assert (line.status, "is running in another process" in line.line) == (409, True)
    served.post(f"/api/runs/{run}/cancel", {}, 202)
    served.wait_for_end(run)
    gate.release()
    fork = served.post(f"/api/runs/{run}/fork", {}, 202)["run"]
    served.wait_for_end(fork)
    spent = served.get("/api/spend?since=today")["total"]["calls"]

    def delete(name: str) -> int:
        return served.ask("DELETE", f"/api/runs/{name}").status

    wait_until(lambda: delete(run) == 204, "the worker has let go of the run")
    assert [row["id"] for row in served.get("/api/runs")["runs"]] == [fork]
    assert (served.ask("GET", f"/api/runs/{run}").status, delete(run)) == (404, 404)
    assert served.get("/api/spend?since=today")["total"]["calls"] == spent
    assert delete(fork) == 204


@pytest.mark.behaviour("50-web-fork", "007-web-api")
def test_a_fork_reuses_earlier_answers(served: WebServer, table: Workspace) -> None:
    run = started(served)
    served.wait_for_end(run)
    asked = len(table.provider.log)
    fork = served.post(f"/api/runs/{run}/fork", {"from": "improve", "seats": {"beta": "sim:alpha"}}, 202)["run"]
    assert fork != run
    ended = served.wait_for_end(fork)
    assert ended["status"] == "complete"
    assert [seat["model"] for seat in ended["plan"]["seats"]] == ["sim:alpha", "sim:alpha", "sim:gamma"]
    assert not any(name.startswith("draft/") for name in table.asked(since=asked))
    assert len(table.provider.log) > asked


@pytest.mark.behaviour("50-web-fork")
@pytest.mark.parametrize(("body", "line"), [
    ({"from": "nothing"}, 'no phase "nothing"'), ({"seats": {"zeta": "scripted:"}}, "this run has no such seat"),
    ({"seats": {"beta": "scripted:/etc/passwd"}}, "not configured"), ({"seats": {"beta": "local:/etc/passwd"}}, "not configured"),
])  # fmt: skip
def test_an_invalid_fork_is_refused(shared_site: WebServer, body: Json, line: str) -> None:
    run = shared_site.run_council()
    assert line in shared_site.refused(f"/api/runs/{run}/fork", body)
    assert shared_site.refused(f"/api/runs/{run}/fork", {"seats": "x"}, 422)
    assert shared_site.refused(f"/api/runs/{run}/fork", {"max_cost": 9}, 422)


@pytest.mark.behaviour("50-web-cap")
def test_resume_and_fork_stay_within_the_servers_cap(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    site = WebServer(folder, environment(tmp_path), max_cost=0.5)
    try:
        run = site.run_council()
        with site.database() as db:
            db.execute(
                "UPDATE runs SET status = 'incomplete', setup = json_set(setup, '$.max_cost', 9) WHERE id = ?", (run,)
            )
        site.post(f"/api/runs/{run}/resume", {}, 202)
        assert site.wait_for_end(run)["cap"] == 0.5
        fork = site.post(f"/api/runs/{run}/fork", {}, 202)["run"]
        site.wait_for_end(fork)
        with site.database() as db:
            query = "SELECT json_extract(setup, '$.max_cost') FROM runs WHERE id IN (?, ?)"
            assert db.execute(query, (run, fork)).fetchall() == [(0.5,), (0.5,)]
    finally:
        site.close()


@pytest.mark.behaviour("50-web-asks")
def test_a_person_is_asked_and_answers_on_the_page(site: WebServer) -> None:
    config = SCRIPTED.replace('[seats.gamma]\nmodel = "scripted:"', '[seats.gamma]\nmodel = "human"')
    (site.folder / "council.toml").write_text(config)
    run = started(site, protocol="triad")
    wait_until(lambda: site.get(f"/api/runs/{run}/asks"), "a person is asked")
    [ask] = site.get(f"/api/runs/{run}/asks")
    assert {"run", "key", "seat", "prompt", "schema", "at", "fields"} == set(ask)
    assert (ask["run"], ask["key"], ask["seat"]) == (run, "draft/gamma", "gamma")
    assert "has no open question" in site.refused(f"/api/runs/{run}/asks/draft/beta", {"answer": "I am beta."})
    response = site.post(f"/api/runs/{run}/asks/draft/gamma", {"answer": "Cold, if it can be read within a day."})
    assert response == {"run": run, "key": "draft/gamma", "taken": True}
    ended = site.wait_for_end(run)
    assert ended["minutes"]["phases"][0]["said"][-1]["said"] == "Cold, if it can be read within a day."
    assert site.get(f"/api/runs/{run}/asks") == []
    assert site.refused(f"/api/runs/{run}/asks/draft/gamma", {"answer": "Too late."})
    assert site.refused(f"/api/runs/{run}/asks/draft/gamma", {}, 422)


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize("act", ["cancel", "resume", "fork", "asks/x"])
@pytest.mark.parametrize("run", ["nothing", "r", "..", "%00"])
def test_actions_on_an_unknown_run_are_refused(shared_site: WebServer, run: str, act: str) -> None:
    body = {"answer": "x"} if act.startswith("asks") else {}
    assert shared_site.refused(f"/api/runs/{run}/{act}", body, 404)
    assert not [path for path in Path(shared_site.env["COUNCIL_DATA"], "locks").iterdir() if path.name == f"{run}.lock"]
