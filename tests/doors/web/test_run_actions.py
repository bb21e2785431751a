"""What can be done to a run from the page: stop it, take it up, fork it, answer it. Whoever holds it is a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.helpers import Workspace, wait_until
from tests.doors.web.conftest import write_project
from tests.doors.web.server import QUESTION, SCRIPTED, Json, WebServer, environment
from tests.fake_provider import FakeProvider


@pytest.fixture
def workspace(provider: FakeProvider, tmp_path: Path) -> Workspace:
    """The seats on a fake endpoint, in the served folder."""
    return Workspace(write_project(tmp_path), provider)


@pytest.fixture
def served(workspace: Workspace, tmp_path: Path) -> Iterator[WebServer]:
    server = WebServer(workspace.folder, environment(tmp_path))
    yield server
    server.close()


def started(server: WebServer, **wish: object) -> str:
    return str(server.post("/api/runs", {"question": QUESTION, "protocol": "collaborative", **wish}, 201)["run"])


@pytest.mark.behaviour("50-web-cancel", "50-web-resume", "007-web-api")
def test_a_run_is_stopped_and_taken_up_again_without_buying_an_answer_twice(
    served: WebServer, workspace: Workspace
) -> None:
    gate = workspace.hold("improve", "gamma")
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
    asked = len(workspace.provider.log)
    gate.release()
    resumed = served.post(f"/api/runs/{run}/resume", {}, 202)
    assert (resumed["run"], resumed["status"] in ("queued", "running", "complete")) == (
        run,
        True,
    )  # a worker may be fast
    finished = served.wait_for_end(run)
    assert finished["status"] == "complete"
    assert workspace.asked(since=asked) == ["improve/gamma", "synthesise/chair"]


@pytest.mark.behaviour("50-web-cancel")
def test_a_run_that_is_over_is_neither_stopped_nor_taken_up(server: WebServer) -> None:
    run = server.convened()
    before = server.ledger(run)
    for act in ("cancel", "resume"):
        assert server.post(f"/api/runs/{run}/{act}", {}, 202) == {"run": run, "status": "complete"}
    assert server.ledger(run) == before


@pytest.mark.behaviour("50-web-fork", "007-web-api")
def test_a_fork_takes_what_was_said_before_for_free(served: WebServer, workspace: Workspace) -> None:
    run = started(served)
    served.wait_for_end(run)
    asked = len(workspace.provider.log)
    fork = served.post(f"/api/runs/{run}/fork", {"from": "improve", "seats": {"beta": "sim:alpha"}}, 202)["run"]
    assert fork != run
    finished = served.wait_for_end(fork)
    assert finished["status"] == "complete"
    assert [seat["model"] for seat in finished["plan"]["seats"]] == ["sim:alpha", "sim:alpha", "sim:gamma"]
    assert not any(name.startswith("draft/") for name in workspace.asked(since=asked))
    assert len(workspace.provider.log) > asked


@pytest.mark.behaviour("50-web-fork")
@pytest.mark.parametrize(("wish", "line"), [
    ({"from": "nothing"}, 'no phase "nothing"'), ({"seats": {"zeta": "scripted:"}}, "this run has no such seat"),
    ({"seats": {"beta": "scripted:/etc/passwd"}}, "not configured"), ({"seats": {"beta": "local:/etc/passwd"}}, "not configured"),
])  # fmt: skip
def test_a_fork_that_cannot_be_is_refused(shared_server: WebServer, wish: Json, line: str) -> None:
    run = shared_server.convened()
    assert line in shared_server.refused(f"/api/runs/{run}/fork", wish)
    assert shared_server.refused(f"/api/runs/{run}/fork", {"seats": "x"}, 422)
    assert shared_server.refused(f"/api/runs/{run}/fork", {"max_cost": 9}, 422)


@pytest.mark.behaviour("50-web-cap")
def test_what_was_left_behind_goes_on_within_what_callers_are_allowed(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    server = WebServer(folder, environment(tmp_path), max_cost=0.5)
    try:
        run = server.convened()
        with server.database() as db:
            db.execute(
                "UPDATE runs SET status = 'incomplete', setup = json_set(setup, '$.max_cost', 9) WHERE id = ?", (run,)
            )
        server.post(f"/api/runs/{run}/resume", {}, 202)
        assert server.wait_for_end(run)["cap"] == 0.5
        fork = server.post(f"/api/runs/{run}/fork", {}, 202)["run"]
        server.wait_for_end(fork)
        with server.database() as db:
            query = "SELECT json_extract(setup, '$.max_cost') FROM runs WHERE id IN (?, ?)"
            assert db.execute(query, (run, fork)).fetchall() == [(0.5,), (0.5,)]
    finally:
        server.close()


@pytest.mark.behaviour("50-web-asks")
def test_a_person_is_asked_and_answers_on_the_page(server: WebServer) -> None:
    config = SCRIPTED.replace('[seats.gamma]\nmodel = "scripted:"', '[seats.gamma]\nmodel = "human"')
    (server.folder / "council.toml").write_text(config)
    run = started(server, protocol="triad")
    wait_until(lambda: server.get(f"/api/runs/{run}/asks"), "somebody is asked")
    [ask] = server.get(f"/api/runs/{run}/asks")
    assert {"run", "key", "seat", "prompt", "schema", "at", "fields"} == set(ask)
    assert (ask["run"], ask["key"], ask["seat"]) == (run, "draft/gamma", "gamma")
    assert "has no open question" in server.refused(f"/api/runs/{run}/asks/draft/beta", {"answer": "I am beta."})
    told = server.post(f"/api/runs/{run}/asks/draft/gamma", {"answer": "Cold, if it can be read within a day."})
    assert told == {"run": run, "key": "draft/gamma", "taken": True}
    finished = server.wait_for_end(run)
    assert finished["minutes"]["phases"][0]["said"][-1]["said"] == "Cold, if it can be read within a day."
    assert server.get(f"/api/runs/{run}/asks") == []
    assert server.refused(f"/api/runs/{run}/asks/draft/gamma", {"answer": "Too late."})
    assert server.refused(f"/api/runs/{run}/asks/draft/gamma", {}, 422)


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize("act", ["cancel", "resume", "fork", "asks/x"])
@pytest.mark.parametrize("run", ["nothing", "r", "..", "%00"])
def test_nothing_is_done_to_a_run_that_nobody_knows(shared_server: WebServer, run: str, act: str) -> None:
    body = {"answer": "x"} if act.startswith("asks") else {}
    assert shared_server.refused(f"/api/runs/{run}/{act}", body, 404)
    assert not [
        path for path in Path(shared_server.env["COUNCIL_DATA"], "locks").iterdir() if path.name == f"{run}.lock"
    ]
