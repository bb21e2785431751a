"""Looking back: the list, one run, its report in every format, its requests, its packet, its price."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from council.engine.minutes import Minutes
from council.render.formats import render_as
from council.render.report import build_report
from council.runs.service import Convener
from tests.doors.web.conftest import write_project
from tests.doors.web.server import Json, WebServer, environment

ROW = {
    "id", "name", "folder", "question", "protocol", "task", "status", "running", "verdict", "outcome", "confidence", "created",
    "seconds", "cost", "unfinished",
}  # fmt: skip
KEY = "sk-ant-api03-" + "Zm9vYmFyYmF6" * 8


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WebServer, dict[str, str]]]:
    """Four runs, oldest first: two that were answered, a review, and one that was left behind."""
    place = tmp_path_factory.mktemp("runs")
    server = WebServer(write_project(place), environment(place))
    named = {
        "tabs": server.convened("Tabs or spaces?"),
        "storage": server.convened("adversarial council: hot or cold storage?"),
        "review": server.convened("validate notes.md"),
        "killed": server.convened("What was it?"),
    }
    with server.database() as db:
        db.execute("UPDATE runs SET status = 'running', report = '' WHERE id = ?", (named["killed"],))
        db.execute("DELETE FROM events WHERE run = ? AND type = 'closed'", (named["killed"],))
    yield server, named
    server.close()


def ids(server: WebServer, query: str = "") -> list[str]:
    return [run["id"] for run in server.get(f"/api/runs{query}")["runs"]]


@pytest.mark.behaviour("50-web-history")
def test_the_unfinished_come_first_then_the_newest(runs: tuple[WebServer, dict[str, str]]) -> None:
    server, named = runs
    told = server.get("/api/runs")
    assert [run["id"] for run in told["runs"]] == [named[name] for name in ("killed", "review", "storage", "tabs")]
    assert all(set(run) == ROW for run in told["runs"])
    assert told["more"] is False
    killed, review, storage, _ = told["runs"]
    assert (killed["status"], killed["running"], killed["unfinished"], killed["cost"]) == ("stopped", False, True, None)
    assert (review["task"], review["status"], review["cost"]) == ("validate", "complete", 0.0)
    assert review["verdict"] in ("PASS", "WARN", "FAIL", "DISAGREE")
    assert storage["outcome"] in ("SURVIVED", "MODIFIED", "OVERTURNED")


@pytest.mark.behaviour("50-web-history")
@pytest.mark.parametrize(("query", "found"), [
    ("?task=validate", ["review"]), ("?protocol=adversarial", ["storage"]), ("?status=complete", ["review", "storage", "tabs"]),
    ("?status=stopped", ["killed"]), ("?status=running", []), ("?q=COLD", ["storage"]), ("?q=%25", []), ("?q=nothing-like-it", []),
    ("?task=ask&protocol=collaborative", ["killed", "tabs"]), ("?verdict=NONE", []), ("?limit=2", ["killed", "review"]),
    ("?task=&q=", ["killed", "review", "storage", "tabs"]),
])  # fmt: skip
def test_runs_are_found_by_what_they_were(runs: tuple[WebServer, dict[str, str]], query: str, found: list[str]) -> None:
    server, named = runs
    assert ids(server, query) == [named[name] for name in found]


@pytest.mark.behaviour("50-web-history")
def test_verdicts_and_outcomes_are_found_by_their_word(runs: tuple[WebServer, dict[str, str]]) -> None:
    server, named = runs
    rows = {run["id"]: run for run in server.get("/api/runs")["runs"]}
    assert ids(server, f"?verdict={rows[named['review']]['verdict']}") == [named["review"]]
    assert ids(server, f"?verdict={rows[named['storage']]['outcome']}") == [named["storage"]]


@pytest.mark.behaviour("50-web-history")
def test_pages_follow_each_other_without_a_gap_or_a_double(runs: tuple[WebServer, dict[str, str]]) -> None:
    server, _ = runs
    seen: list[str] = []
    more = True
    while more:
        told = server.get(f"/api/runs?limit=1{f'&before={seen[-1]}' if seen else ''}")
        seen += [run["id"] for run in told["runs"]]
        more = told["more"]
    assert seen == ids(server)
    assert server.refused("/api/runs?before=nothing", status=404)


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize("query", ["?limit=0", "?limit=501", "?limit=x", f"?q={'x' * 201}"])
def test_a_list_that_cannot_be_made_is_refused(runs: tuple[WebServer, dict[str, str]], query: str) -> None:
    assert runs[0].refused(f"/api/runs{query}", status=422)


@pytest.mark.behaviour("50-web-run")
def test_a_run_is_its_report_its_plan_and_its_minutes(runs: tuple[WebServer, dict[str, str]]) -> None:
    server, named = runs
    told = server.get(f"/api/runs/{named['tabs'][:5]}")
    minutes = _minutes(server, named["tabs"])
    assert told["report"] == build_report(minutes)
    assert told["plan"] == minutes.plan
    assert (told["run"], told["status"], told["running"], told["cap"]) == (named["tabs"], "complete", False, None)
    assert told["cost"] == told["report"]["cost"]
    phases = told["minutes"]["phases"]
    assert [phase["name"] for phase in phases] == ["draft", "improve", "synthesise"]
    assert [said["seat"] for said in phases[0]["said"]] == ["alpha", "beta", "gamma"]
    said = phases[0]["said"][0]
    assert {"key", "seat", "state", "said", "reply", "served_by", "tokens", "attempts", "seconds"} <= set(said)
    assert (said["key"], said["state"], said["tokens"]["out"] > 0) == ("draft/alpha", "ok", True)
    assert (phases[0]["asked"], phases[0]["absent"]) == (["alpha", "beta", "gamma"], [])
    assert phases[0]["started"] <= phases[0]["ended"]
    assert {"notes", "labels"} <= set(told["minutes"])


def _minutes(server: WebServer, run: str) -> Minutes:
    async def work() -> Minutes:
        convener = Convener(server.folder, server.env)
        minutes = await convener.minutes(run)
        await convener.close()
        return minutes

    return asyncio.run(work())


# Reports


@pytest.mark.behaviour("50-web-report")
@pytest.mark.parametrize(("form", "kind"), [
    ("md", "text/plain; charset=utf-8"), ("github", "text/plain; charset=utf-8"), ("junit", "text/plain; charset=utf-8"),
    ("json", "application/json"), ("sarif", "application/sarif+json"),
])  # fmt: skip
def test_a_report_comes_in_the_formats_of_the_command_and_as_no_page(
    runs: tuple[WebServer, dict[str, str]], form: str, kind: str
) -> None:
    server, named = runs
    told = server.ask("GET", f"/api/runs/{named['review']}/report?format={form}")
    assert (told.status, told.headers["content-type"]) == (200, kind)
    assert told.headers["x-content-type-options"] == "nosniff"
    assert told.body.decode() == render_as(_minutes(server, named["review"]), form)
    if form in ("json", "sarif"):
        assert json.loads(told.body)
    if form == "junit":
        assert ElementTree.fromstring(told.body).tag == "testsuites"


@pytest.mark.behaviour("50-web-report")
def test_a_report_comes_as_a_diagram_too_and_plain_without_a_word(runs: tuple[WebServer, dict[str, str]]) -> None:
    server, named = runs
    assert server.get(f"/api/runs/{named['tabs']}/report?format=mermaid").startswith("flowchart LR")
    assert server.get(f"/api/runs/{named['tabs']}/report") == server.get(f"/api/runs/{named['tabs']}/report?format=md")
    assert server.refused(f"/api/runs/{named['tabs']}/report?format=docx", status=422)


@pytest.mark.behaviour("40-web-model-text")
def test_html_is_a_file_to_keep_and_never_a_page_that_opens(runs: tuple[WebServer, dict[str, str]]) -> None:
    server, named = runs
    told = server.ask("GET", f"/api/runs/{named['tabs']}/report?format=html")
    assert told.status == 200
    assert told.body.startswith(b"<!doctype html>")
    assert told.headers["content-disposition"] == f'attachment; filename="{named["tabs"]}.html"'


@pytest.mark.behaviour("40-web-model-text")
def test_no_answer_of_the_api_is_read_as_a_page_whatever_a_model_wrote(server: WebServer) -> None:
    (server.folder / "script.toml").write_text(
        '["draft/alpha"]\ntext = "<script>alert(1)</script><img src=x onerror=alert(1)>"\n'
    )
    config = (server.folder / "council.toml").read_text()
    mine = f"scripted:{server.folder / 'script.toml'}"
    (server.folder / "council.toml").write_text(
        config.replace('[seats.alpha]\nmodel = "scripted:"', f'[seats.alpha]\nmodel = "{mine}"')
    )
    run = server.convened("<script>alert(2)</script>?")
    paths = [
        "",
        "/events",
        "/attempts",
        "/packet",
        "/asks",
        *(f"/report?format={form}" for form in ("md", "json", "sarif", "junit", "github", "mermaid")),
    ]
    for path in paths:
        told = server.ask("GET", f"/api/runs/{run}{path}")
        assert told.status == 200
        assert not told.headers["content-type"].startswith(
            ("text/html", "image/", "application/xml", "application/xhtml")
        )
        assert told.headers["x-content-type-options"] == "nosniff"


# Requests and the packet


@pytest.mark.behaviour("50-web-attempts")
def test_every_request_is_shown_as_it_left_and_secrets_are_masked(server: WebServer) -> None:
    run = server.convened()
    with server.database() as db:
        (body,) = db.execute("SELECT body FROM intents WHERE run = ? AND key = 'draft/alpha'", (run,)).fetchone()
        leaked = body.replace(b"cold storage", f"cold storage {KEY}".encode())
        db.execute("UPDATE intents SET body = ? WHERE run = ? AND key = 'draft/alpha'", (leaked, run))
        db.execute(
            "UPDATE settled SET body = json_set(body, '$.text', ?) WHERE run = ? AND key = 'draft/alpha'",
            (f"It is {KEY}", run),
        )
    rows = server.get(f"/api/runs/{run}/attempts")
    assert [(row["key"], row["n"], row["seat"]) for row in rows if row["key"].startswith("draft/")] == [
        ("draft/alpha", 1, "alpha"), ("draft/beta", 1, "beta"), ("draft/gamma", 1, "gamma"),
    ]  # fmt: skip
    assert all({"member", "request", "result", "why"} <= set(row) for row in rows)
    assert KEY not in json.dumps(rows)
    assert (
        "cold storage" in json.loads(rows[1]["request"])["messages"][1]["content"]
        or "cold storage" in rows[1]["request"]
    )
    assert [row["key"] for row in server.get(f"/api/runs/{run}/attempts?key=draft/beta")] == ["draft/beta"]


@pytest.mark.behaviour("50-web-packet")
def test_the_packet_is_shown_as_it_was_sent_even_when_its_files_are_gone(server: WebServer) -> None:
    run = server.convened("validate notes.md")
    (server.folder / "notes.md").unlink()
    told = server.get(f"/api/runs/{run}/packet")
    assert told["receipt"]["files"] == ["notes.md"]
    assert "Cold storage is cheap." in json.dumps(told["dossier"])
    assert told["dossier"]["council_packet"]["mode"] == "validate"


@pytest.mark.behaviour("50-web-spend")
def test_spending_is_told_since_a_day(runs: tuple[WebServer, dict[str, str]]) -> None:
    server, _ = runs
    assert server.get("/api/spend")["schema"] == "council.spend/1"
    assert server.get("/api/spend?since=all")["since"] == ""
    assert server.get("/api/spend?since=2026-01-02")["since"] == "2026-01-02"
    assert '"yesterday"' in server.refused("/api/spend?since=yesterday")


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize("rest", ["", "/events", "/report", "/attempts", "/packet", "/asks"])
@pytest.mark.parametrize("run", ["nothing", "..", "r", "%00", "%2e%2e", "*"])
def test_a_run_that_nobody_knows_is_told_in_a_line(runs: tuple[WebServer, dict[str, str]], run: str, rest: str) -> None:
    assert runs[0].refused(f"/api/runs/{run}{rest}", status=404)


@pytest.mark.behaviour("50-web-openapi")
def test_the_description_of_the_api_has_an_example_of_everything(runs: tuple[WebServer, dict[str, str]]) -> None:
    described: Json = runs[0].get("/api/openapi.json")
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            good = [code for code in operation["responses"] if code.startswith("2")]
            contents = [content for code in good for content in operation["responses"][code]["content"].values()]
            assert all("example" in content for content in contents), (path, method)
            if "requestBody" in operation:
                assert operation["requestBody"]["content"].keys() == {"application/json"}
                body = operation["requestBody"]["content"]["application/json"]["schema"]
                name = (body.get("anyOf") or [body])[0]["$ref"].rpartition("/")[2]
                assert "examples" in described["components"]["schemas"][name], (path, method)
