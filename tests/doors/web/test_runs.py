"""Routes that read runs: the list, one run, reports, attempts, packet, spending."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

from council.engine.minutes import Minutes
from council.render.formats import render_as
from council.render.report import read_report
from council.runs.service import Convener
from council.store.interface import RunRow, list_fields
from tests.doors.web.conftest import write_project
from tests.doors.web.server import Json, WebServer, environment
from tests.trusted_project import trust_project

ROW = {"id", *(field.name for field in list_fields(RunRow))}
KEY = "sk-ant-api03-" + "Zm9vYmFyYmF6" * 8


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WebServer, dict[str, str]]]:
    """Server with four runs, oldest first: two answers, a review, and a killed run."""
    place = tmp_path_factory.mktemp("runs")
    site = WebServer(write_project(place), environment(place))
    named = {
        "tabs": site.run_council("Are tabs fine?"),
        "storage": site.run_council("adversarial council: hot or cold storage?"),
        "review": site.run_council("validate notes.md"),
        "killed": site.run_council("What was it?"),
    }
    with site.database() as db:
        db.execute("UPDATE runs SET status = 'running', report = '' WHERE id = ?", (named["killed"],))
        db.execute("DELETE FROM events WHERE run = ? AND type = 'closed'", (named["killed"],))
    yield site, named
    site.close()


def ids(site: WebServer, query: str = "") -> list[str]:
    return [run["id"] for run in site.get(f"/api/runs{query}")["runs"]]


@pytest.mark.behaviour("50-web-history", "13-one-run-row")
def test_unfinished_runs_come_first_then_the_newest(runs: tuple[WebServer, dict[str, str]]) -> None:
    site, named = runs
    response = site.get("/api/runs")
    assert [run["id"] for run in response["runs"]] == [named[name] for name in ("killed", "review", "storage", "tabs")]
    assert all(set(run) == ROW for run in response["runs"])
    assert response["more"] is False
    killed, review, storage, _ = response["runs"]
    assert (killed["status"], killed["running"], killed["unfinished"], killed["cost"]) == ("stopped", False, True, None)
    assert (review["task"], review["status"], review["cost"]) == ("validate", "complete", 0.0)
    assert review["verdict"] in ("PASS", "WARN", "FAIL", "DISAGREE")
    assert storage["outcome"] in ("SURVIVED", "MODIFIED", "OVERTURNED")


@pytest.mark.behaviour("50-web-history")
@pytest.mark.parametrize(("query", "found"), [
    ("?task=validate", ["review"]), ("?protocol=adversarial", ["storage"]), ("?status=complete", ["review", "storage", "tabs"]),
    ("?status=stopped", ["killed"]), ("?status=running", []), ("?status=unfinished", []), ("?status=nothing", []), ("?q=COLD", ["storage"]), ("?q=%25", []), ("?q=nothing-like-it", []),
    ("?task=ask&protocol=collaborative", ["killed", "tabs"]), ("?verdict=NONE", []), ("?limit=2", ["killed", "review"]),
    ("?task=&q=", ["killed", "review", "storage", "tabs"]), ("?project=PROJECT&task=validate", ["review"]), ("?project=other", []),
    ("?owner=OWNER&protocol=adversarial", ["storage"]), ("?owner=bob", []),
])  # fmt: skip
def test_runs_are_filtered(runs: tuple[WebServer, dict[str, str]], query: str, found: list[str]) -> None:
    site, named = runs
    row = site.get("/api/runs?limit=1")["runs"][0]
    query = query.replace("PROJECT", quote(row["project"])).replace("OWNER", quote(row["owner"]))
    assert ids(site, query) == [named[name] for name in found]


@pytest.mark.behaviour("evidence-eval-apart")
def test_runs_of_evaluations_are_listed_only_if_asked_for(runs: tuple[WebServer, dict[str, str]]) -> None:
    site, named = runs
    everything = ids(site)
    with site.database() as db:
        db.execute(
            """UPDATE runs SET setup = json_set(setup, '$.batch', json('{"evaluation": true}')) WHERE id = ?""",
            (named["tabs"],),
        )
    try:
        assert ids(site) == [run for run in everything if run != named["tabs"]]
        assert ids(site, "?q=tabs") == []
        assert ids(site, "?q=tabs&all=true") == [named["tabs"]]
        assert ids(site, "?all=true") == everything
        assert site.get(f"/api/runs/{named['tabs']}")["run"] == named["tabs"]
    finally:
        with site.database() as db:
            db.execute("UPDATE runs SET setup = json_remove(setup, '$.batch') WHERE id = ?", (named["tabs"],))


@pytest.mark.behaviour("50-web-history")
def test_runs_are_filtered_by_verdict_and_outcome(runs: tuple[WebServer, dict[str, str]]) -> None:
    site, named = runs
    rows = {run["id"]: run for run in site.get("/api/runs")["runs"]}
    assert ids(site, f"?verdict={rows[named['review']]['verdict']}") == [named["review"]]
    assert ids(site, f"?verdict={rows[named['storage']]['outcome']}") == [named["storage"]]


@pytest.mark.behaviour("50-web-rename")
def test_a_run_gets_a_title_that_is_found_and_can_be_removed(runs: tuple[WebServer, dict[str, str]]) -> None:
    site, named = runs
    run = named["tabs"]

    def rename(title: object, run: str = run) -> Json:
        response = site.ask("PATCH", f"/api/runs/{run}", {"title": title})
        return response.json | {"http": response.status}

    created = next(row["created"] for row in site.get("/api/runs")["runs"] if row["id"] == run)
    shown = rename(f"  Indent\nation {KEY} ", run[:6])
    assert (shown["http"], shown["id"], shown["question"]) == (200, run, "Are tabs fine?")
    assert shown["title"].startswith("Indent ation") and KEY not in shown["title"]
    assert ids(site, "?q=INDENT") == [run]
    assert run in ids(site, f"?from={created}&to={created + 0.001}") and run not in ids(
        site, f"?from={created + 0.001}"
    )
    assert rename("")["title"] is None
    assert (rename("x" * 201)["http"], rename(1)["http"], rename("x", "r2none")["http"]) == (422, 422, 404)
    assert site.ask("PATCH", f"/api/runs/{run}", "title=x", headers={"Content-Type": "text/plain"}).status == 415


@pytest.mark.behaviour("50-web-history")
def test_pages_have_no_gaps_or_duplicates(runs: tuple[WebServer, dict[str, str]]) -> None:
    site, _ = runs
    seen: list[str] = []
    more = True
    while more:
        response = site.get(f"/api/runs?limit=1{f'&before={seen[-1]}' if seen else ''}")
        seen += [run["id"] for run in response["runs"]]
        more = response["more"]
    assert seen == ids(site)
    assert site.refused("/api/runs?before=nothing", status=404)


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize("query", ["?limit=0", "?limit=501", "?limit=x", f"?q={'x' * 201}"])
def test_an_invalid_list_query_is_refused(runs: tuple[WebServer, dict[str, str]], query: str) -> None:
    assert runs[0].refused(f"/api/runs{query}", status=422)


@pytest.mark.behaviour("50-web-run")
def test_a_run_is_its_report_its_plan_and_its_minutes(runs: tuple[WebServer, dict[str, str]]) -> None:
    site, named = runs
    response = site.get(f"/api/runs/{named['tabs'][:5]}")
    minutes = _minutes(site, named["tabs"])
    assert response["report"] == read_report(minutes)
    assert response["plan"] == minutes.plan
    assert (response["run"], response["status"], response["running"], response["cap"]) == (
        named["tabs"],
        "complete",
        False,
        None,
    )
    assert response["cost"] == response["report"]["cost"]
    phases = response["minutes"]["phases"]
    assert [phase["name"] for phase in phases] == ["draft", "improve", "synthesise"]
    assert [said["seat"] for said in phases[0]["said"]] == ["alpha", "beta", "gamma"]
    said = phases[0]["said"][0]
    assert {"key", "seat", "state", "said", "reply", "served_by", "tokens", "attempts", "seconds"} <= set(said)
    assert (said["key"], said["state"], said["tokens"]["out"] > 0) == ("draft/alpha", "ok", True)
    assert (phases[0]["asked"], phases[0]["absent"]) == (["alpha", "beta", "gamma"], [])
    assert phases[0]["started"] <= phases[0]["ended"]
    assert {"notes", "labels"} <= set(response["minutes"])


def _minutes(site: WebServer, run: str) -> Minutes:
    async def work() -> Minutes:
        convener = Convener(site.folder, site.env)
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
def test_a_report_has_the_formats_of_the_cli_and_no_html_type(
    runs: tuple[WebServer, dict[str, str]], form: str, kind: str
) -> None:
    site, named = runs
    response = site.ask("GET", f"/api/runs/{named['review']}/report?format={form}")
    assert (response.status, response.headers["content-type"]) == (200, kind)
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.body.decode() == render_as(_minutes(site, named["review"]), form)
    if form in ("json", "sarif"):
        assert json.loads(response.body)
    if form == "junit":
        assert ElementTree.fromstring(response.body).tag == "testsuites"


@pytest.mark.behaviour("50-web-report")
def test_a_report_can_be_mermaid_and_defaults_to_markdown(runs: tuple[WebServer, dict[str, str]]) -> None:
    site, named = runs
    assert site.get(f"/api/runs/{named['tabs']}/report?format=mermaid").startswith("flowchart LR")
    assert site.get(f"/api/runs/{named['tabs']}/report") == site.get(f"/api/runs/{named['tabs']}/report?format=md")
    assert site.refused(f"/api/runs/{named['tabs']}/report?format=docx", status=422)


@pytest.mark.behaviour("40-web-model-text")
def test_an_html_report_is_a_download(runs: tuple[WebServer, dict[str, str]]) -> None:
    site, named = runs
    response = site.ask("GET", f"/api/runs/{named['tabs']}/report?format=html")
    assert response.status == 200
    assert response.body.startswith(b"<!doctype html>")
    assert response.headers["content-disposition"] == f'attachment; filename="{named["tabs"]}.html"'


@pytest.mark.behaviour("40-web-model-text")
def test_no_response_with_model_text_is_rendered_as_a_page(site: WebServer) -> None:
    (site.folder / "script.toml").write_text(
        '["draft/alpha"]\ntext = "<script>alert(1)</script><img src=x onerror=alert(1)>"\n'
    )
    config = (site.folder / "council.toml").read_text()
    mine = f"scripted:{site.folder / 'script.toml'}"
    (site.folder / "council.toml").write_text(
        config.replace('[seats.alpha]\nmodel = "scripted:"', f'[seats.alpha]\nmodel = "{mine}"')
    )
    trust_project(site.folder)
    run = site.run_council("<script>alert(2)</script>?")
    paths = [
        "",
        "/events",
        "/attempts",
        "/packet",
        "/asks",
        *(f"/report?format={form}" for form in ("md", "json", "sarif", "junit", "github", "mermaid")),
    ]
    for path in paths:
        response = site.ask("GET", f"/api/runs/{run}{path}")
        assert response.status == 200
        assert not response.headers["content-type"].startswith(
            ("text/html", "image/", "application/xml", "application/xhtml")
        )
        assert response.headers["x-content-type-options"] == "nosniff"


# Requests and the packet


@pytest.mark.behaviour("50-web-attempts")
def test_attempts_show_the_requests_with_secrets_masked(site: WebServer) -> None:
    run = site.run_council()
    with site.database() as db:
        (body,) = db.execute("SELECT body FROM intents WHERE run = ? AND key = 'draft/alpha'", (run,)).fetchone()
        leaked = body.replace(b"cold storage", f"cold storage {KEY}".encode())
        db.execute("UPDATE intents SET body = ? WHERE run = ? AND key = 'draft/alpha'", (leaked, run))
        db.execute(
            "UPDATE settled SET body = json_set(body, '$.text', ?) WHERE run = ? AND key = 'draft/alpha'",
            (f"It is {KEY}", run),
        )
    rows = site.get(f"/api/runs/{run}/attempts")
    assert [(row["key"], row["n"], row["seat"]) for row in rows if row["key"].startswith("draft/")] == [
        ("draft/alpha", 1, "alpha"), ("draft/beta", 1, "beta"), ("draft/gamma", 1, "gamma"),
    ]  # fmt: skip
    assert all({"member", "request", "result", "why"} <= set(row) for row in rows)
    assert KEY not in json.dumps(rows)
    assert (
        "cold storage" in json.loads(rows[1]["request"])["messages"][1]["content"]
        or "cold storage" in rows[1]["request"]
    )
    assert [row["key"] for row in site.get(f"/api/runs/{run}/attempts?key=draft/beta")] == ["draft/beta"]
    last = rows[1]
    assert site.get(f"/api/runs/{run}/attempts?limit=2") == rows[:2]
    assert site.get(f"/api/runs/{run}/attempts?limit=2&after={last['key']}&after_n={last['n']}") == rows[2:4]


@pytest.mark.behaviour("50-web-packet")
def test_the_packet_is_shown_as_sent_after_its_files_are_deleted(site: WebServer) -> None:
    run = site.run_council("validate notes.md")
    (site.folder / "notes.md").unlink()
    response = site.get(f"/api/runs/{run}/packet")
    assert response["receipt"]["files"] == ["notes.md"]
    assert "Cold storage is cheap." in json.dumps(response["dossier"])
    assert response["dossier"]["council_packet"]["mode"] == "validate"


@pytest.mark.behaviour("50-web-spend")
def test_spending_since_a_day(runs: tuple[WebServer, dict[str, str]]) -> None:
    site, _ = runs
    assert site.get("/api/spend")["schema"] == "council.spend/1"
    assert site.get("/api/spend?since=all")["since"] == ""
    assert site.get("/api/spend?since=2026-01-02")["since"] == "2026-01-02"
    assert '"yesterday"' in site.refused("/api/spend?since=yesterday")


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize("rest", ["", "/events", "/report", "/positions", "/attempts", "/packet", "/asks"])
@pytest.mark.parametrize("run", ["nothing", "..", "r", "%00", "%2e%2e", "*", "a%0Ab"])
def test_an_unknown_run_is_a_one_line_error(runs: tuple[WebServer, dict[str, str]], run: str, rest: str) -> None:
    assert runs[0].refused(f"/api/runs/{run}{rest}", status=404)


@pytest.mark.behaviour("50-web-openapi")
def test_the_openapi_description_has_examples(runs: tuple[WebServer, dict[str, str]]) -> None:
    described: Json = runs[0].get("/api/openapi.json")
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            good = [code for code in operation["responses"] if code.startswith("2")]
            contents = [
                content for code in good for content in operation["responses"][code].get("content", {}).values()
            ]
            assert all("example" in content for content in contents), (path, method)
            if "requestBody" in operation:
                assert operation["requestBody"]["content"].keys() == {"application/json"}
                body = operation["requestBody"]["content"]["application/json"]["schema"]
                name = (body.get("anyOf") or [body])[0]["$ref"].rpartition("/")[2]
                assert "examples" in described["components"]["schemas"][name], (path, method)
