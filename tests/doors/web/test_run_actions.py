"""What can be done to a run from the page: stop it, take it up, fork it, answer it. Whoever holds it is a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.helpers import Table, until
from tests.doors.web.conftest import laid
from tests.doors.web.server import QUESTION, SCRIPTED, Json, Site, environment
from tests.fake_provider import FakeProvider


@pytest.fixture
def table(provider: FakeProvider, tmp_path: Path) -> Table:
    """The seats on a fake endpoint, in the served folder."""
    return Table(laid(tmp_path), provider)


@pytest.fixture
def served(table: Table, tmp_path: Path) -> Iterator[Site]:
    site = Site(table.folder, environment(tmp_path))
    yield site
    site.close()


def started(site: Site, **wish: object) -> str:
    return str(site.post("/api/runs", {"question": QUESTION, "protocol": "collaborative", **wish}, 201)["run"])


@pytest.mark.behaviour("50-web-cancel", "50-web-resume", "007-web-api")
def test_a_run_is_stopped_and_taken_up_again_without_buying_an_answer_twice(served: Site, table: Table) -> None:
    gate = table.hold("improve", "gamma")
    run = started(served)
    gate.wait()
    until(lambda: len(served.get(f"/api/runs/{run}")["minutes"]["phases"][1]["said"]) == 2, "two have improved theirs")
    assert served.get("/api/runs?status=running")["runs"][0]["running"] is True
    assert "running in another process" in served.refused(f"/api/runs/{run}/resume", {}, 409)
    assert served.post(f"/api/runs/{run[:4]}/cancel", {}, 202)["run"] == run
    stopped = served.ended(run)
    assert (stopped["status"], stopped["minutes"]["stopped"]) == ("incomplete", "cancelled")
    asked = len(table.provider.log)
    gate.release()
    assert served.post(f"/api/runs/{run}/resume", {}, 202) == {"run": run, "status": "queued"}
    ended = served.ended(run)
    assert ended["status"] == "complete"
    assert table.asked(since=asked) == ["improve/gamma", "synthesise/chair"]


@pytest.mark.behaviour("50-web-cancel")
def test_a_run_that_is_over_is_neither_stopped_nor_taken_up(site: Site) -> None:
    run = site.convened()
    before = site.ledger(run)
    for act in ("cancel", "resume"):
        assert site.post(f"/api/runs/{run}/{act}", {}, 202) == {"run": run, "status": "complete"}
    assert site.ledger(run) == before


@pytest.mark.behaviour("50-web-fork", "007-web-api")
def test_a_fork_takes_what_was_said_before_for_free(served: Site, table: Table) -> None:
    run = started(served)
    served.ended(run)
    asked = len(table.provider.log)
    fork = served.post(f"/api/runs/{run}/fork", {"from": "improve", "seats": {"beta": "sim:alpha"}}, 202)["run"]
    assert fork != run
    ended = served.ended(fork)
    assert ended["status"] == "complete"
    assert [seat["model"] for seat in ended["plan"]["seats"]] == ["sim:alpha", "sim:alpha", "sim:gamma"]
    assert not any(name.startswith("draft/") for name in table.asked(since=asked))
    assert len(table.provider.log) > asked


@pytest.mark.behaviour("50-web-fork")
@pytest.mark.parametrize(("wish", "line"), [
    ({"from": "nothing"}, 'no phase "nothing"'), ({"seats": {"zeta": "scripted:"}}, "this run has no such seat"),
    ({"seats": {"beta": "scripted:/etc/passwd"}}, "not configured"), ({"seats": {"beta": "local:/etc/passwd"}}, "not configured"),
])  # fmt: skip
def test_a_fork_that_cannot_be_is_refused(past: Site, wish: Json, line: str) -> None:
    run = past.convened()
    assert line in past.refused(f"/api/runs/{run}/fork", wish)
    assert past.refused(f"/api/runs/{run}/fork", {"seats": "x"}, 422)
    assert past.refused(f"/api/runs/{run}/fork", {"max_cost": 9}, 422)


@pytest.mark.behaviour("50-web-cap")
def test_what_was_left_behind_goes_on_within_what_callers_are_allowed(tmp_path: Path) -> None:
    folder = laid(tmp_path)
    site = Site(folder, environment(tmp_path), max_cost=0.5)
    try:
        run = site.convened()
        with site.database() as db:
            db.execute(
                "UPDATE runs SET status = 'incomplete', setup = json_set(setup, '$.max_cost', 9) WHERE id = ?", (run,)
            )
        site.post(f"/api/runs/{run}/resume", {}, 202)
        assert site.ended(run)["cap"] == 0.5
        fork = site.post(f"/api/runs/{run}/fork", {}, 202)["run"]
        site.ended(fork)
        with site.database() as db:
            query = "SELECT json_extract(setup, '$.max_cost') FROM runs WHERE id IN (?, ?)"
            assert db.execute(query, (run, fork)).fetchall() == [(0.5,), (0.5,)]
    finally:
        site.close()


@pytest.mark.behaviour("50-web-asks")
def test_a_person_is_asked_and_answers_on_the_page(site: Site) -> None:
    config = SCRIPTED.replace('[seats.gamma]\nmodel = "scripted:"', '[seats.gamma]\nmodel = "human"')
    (site.folder / "council.toml").write_text(config)
    run = started(site, protocol="triad")
    until(lambda: site.get(f"/api/runs/{run}/asks"), "somebody is asked")
    [ask] = site.get(f"/api/runs/{run}/asks")
    assert {"run", "key", "seat", "prompt", "schema", "at", "fields"} == set(ask)
    assert (ask["run"], ask["key"], ask["seat"]) == (run, "draft/gamma", "gamma")
    assert "has no open question" in site.refused(f"/api/runs/{run}/asks/draft/beta", {"answer": "I am beta."})
    told = site.post(f"/api/runs/{run}/asks/draft/gamma", {"answer": "Cold, if it can be read within a day."})
    assert told == {"run": run, "key": "draft/gamma", "taken": True}
    ended = site.ended(run)
    assert ended["minutes"]["phases"][0]["said"][-1]["said"] == "Cold, if it can be read within a day."
    assert site.get(f"/api/runs/{run}/asks") == []
    assert site.refused(f"/api/runs/{run}/asks/draft/gamma", {"answer": "Too late."})
    assert site.refused(f"/api/runs/{run}/asks/draft/gamma", {}, 422)


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize("act", ["cancel", "resume", "fork", "asks/x"])
@pytest.mark.parametrize("run", ["nothing", "r", "..", "%00"])
def test_nothing_is_done_to_a_run_that_nobody_knows(past: Site, run: str, act: str) -> None:
    body = {"answer": "x"} if act.startswith("asks") else {}
    assert past.refused(f"/api/runs/{run}/{act}", body, 404)
    assert not [path for path in Path(past.env["COUNCIL_DATA"], "locks").iterdir() if path.name == f"{run}.lock"]
