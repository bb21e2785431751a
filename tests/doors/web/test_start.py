"""Planning and starting a run within the owner's limits."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from council import protocols
from council.protocols.options import describe_options
from council.runs.service import Convener
from council.settings.config_files import config_folder
from tests.doors.web.conftest import write_project
from tests.doors.web.server import QUESTION, SCRIPTED, SEATS, Json, WebServer, environment
from tests.trusted_project import trust_project

ROSTER = 'seats = [{name = "cfo", lens = "cash"}, {name = "coo", lens = "people"}]\n'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """Server with a cap of half a dollar, and files inside and outside its root."""
    place = tmp_path_factory.mktemp("start")
    folder, outside = write_project(place), place / "outside"
    outside.mkdir()
    for path in (folder, outside):
        (path / "board.toml").write_text(ROSTER)
        (path / "lenses.yaml").write_text("perspectives: [{name: cost, focus: what it costs}]\n")
        (path / "papers").mkdir()
        (path / "papers" / "paper.md").write_text("Cold storage costs little.\n")
    (folder / "away.toml").symlink_to(outside / "board.toml")
    served = WebServer(folder, environment(place), max_cost=0.5)
    yield served
    served.close()


# Planning


@pytest.mark.behaviour("50-web-protocols")
def test_every_protocol_is_described_by_its_own_options_and_a_plan(server: WebServer) -> None:
    rows = {row["name"]: row for row in server.get("/api/protocols")}
    assert tuple(rows) == protocols.protocol_names()
    for name in protocols.SHIPPED_PROTOCOLS:
        assert rows[name]["options"] == describe_options(protocols.get_protocol(name).load_options())
        assert rows[name]["summary"]
        assert rows[name]["seats"]
        assert rows[name]["tasks"] == list(protocols.get_protocol(name).tasks)
        assert all({"name", "calls", "parallel"} <= set(phase) for phase in rows[name]["phases"])
    assert [phase["name"] for phase in rows["collaborative"]["phases"]] == ["draft", "improve", "synthesise"]
    assert rows["collaborative"]["seats"] == list(SEATS)
    assert "not enabled" in rows["general"]["note"]


@pytest.mark.behaviour("50-web-form")
def test_options_describe_themselves_for_a_form(server: WebServer) -> None:
    rows = {row["name"]: row for row in server.get("/api/protocols")}
    assert {row["use"]: name for name, row in rows.items() if row["use"]} == {
        "Decide": "adversarial", "Review": "judges", "Research": "general", "Rank": "ranking",
        "Refine": "refine",
    }  # fmt: skip
    assert rows["advisors"]["options"]["properties"]["roster"]["choices"] == "rosters"
    assert rows["judges"]["options"]["properties"]["preset"]["choices"] == "presets"
    about = server.get("/api/options")["properties"]
    assert set(about) == {
        "models",
        "cheap",
        "exclude_family",
        "decisions",
        "effort",
        "redact",
        "skip_secrets",
        "look",
        "check",
        "max_cost",
    }
    assert all(row["description"] for row in about.values())
    members = server.get("/api/members")
    assert "security-audit" in [row["name"] for row in members["presets"]]


def test_a_preset_that_cannot_be_read_is_listed_with_its_error(server: WebServer) -> None:
    folder = config_folder(server.env) / "presets"
    folder.mkdir(parents=True)
    (folder / "risks.toml").write_text(
        'about = "what can go wrong"\n[[perspectives]]\nname = "cost"\nfocus = "what it costs"\n'
    )
    (folder / "typo.toml").write_text("[[perspectives]\n")
    presets = {row["name"]: row["about"] for row in server.get("/api/members")["presets"]}
    assert presets["risks"] == "what can go wrong"
    assert "typo.toml" in presets["typo"] and "\n" not in presets["typo"]
    shutil.rmtree(folder)


@pytest.mark.behaviour("00-exclude-family")
def test_a_vendor_that_does_not_exist_is_refused_with_its_field(server: WebServer) -> None:
    request = {"question": "Where to?", "protocol": "panel", "exclude_family": ["antropic"]}
    line = server.refused("/api/estimate", request)
    assert line.startswith('exclude_family: unknown vendor "antropic": did you mean "anthropic"? known are ')


@pytest.mark.behaviour("13-model-flag", "13-cheap")
def test_a_caller_can_name_the_members_of_the_seats(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    (folder / "council.toml").write_text(
        '[providers.sim]\nbase_url = "http://127.0.0.1:9/v1"\n[models]\ndefault = "sim:m1"\nfast = "sim:m2"\n'
    )
    trust_project(folder)
    site = WebServer(folder, environment(tmp_path))
    try:
        plan = site.post("/api/estimate", {"question": QUESTION, "models": ["sim:a", "sim:b", "sim:c", "sim:d"]})
        assert [seat["model"] for seat in plan["seats"]] == ["sim:a", "sim:b", "sim:c", "sim:d"]
        assert {
            seat["model"] for seat in site.post("/api/estimate", {"question": QUESTION, "cheap": True})["seats"]
        } == {"sim:m2"}
        assert "at most 8 seats" in site.refused("/api/estimate", {"question": QUESTION, "models": ["sim:a"] * 9})
        assert "is not configured" in site.refused("/api/runs", {"question": QUESTION, "models": ["local:/etc/passwd"]})
    finally:
        site.close()


@pytest.mark.behaviour("50-web-members")
def test_members_and_the_current_seating_are_listed(server: WebServer) -> None:
    response = server.get("/api/members")
    assert {"member", "vendor", "available", "needs", "price", "context"} <= set(response["members"][0])
    assert [place["member"] for place in response["seats"]] == ["scripted:"] * 4
    assert isinstance(response["notices"], list)
    assert {"name", "about", "seats", "error"} == set(response["rosters"][0])


@pytest.mark.behaviour("50-web-estimate")
def test_an_estimate_is_the_plan_of_the_cli(server: WebServer) -> None:
    async def printed() -> Json:
        convener = Convener(server.folder, server.env, flags={"max_cost": 0.5})
        plan = await convener.plan([QUESTION], {"rounds": 2}, protocol="advisors")
        await convener.close()
        return plan.as_json()

    response = server.post("/api/estimate", {"question": QUESTION, "protocol": "advisors", "options": {"rounds": 2}})
    assert response == asyncio.run(printed())
    assert response["schema"] == "council.plan/1"
    assert response["cost"]["worst"] == 0
    assert server.get("/api/runs")["runs"] == []


@pytest.mark.behaviour("50-web-estimate")
def test_the_question_chooses_the_protocol_as_on_the_command_line(server: WebServer) -> None:
    response = server.post("/api/estimate", {"question": "adversarial council: Rust versus Go?"})
    assert (response["protocol"], response["question"]) == ("adversarial", "Rust versus Go?")


@pytest.mark.behaviour("50-web-estimate")
def test_empty_form_fields_are_ignored(server: WebServer) -> None:
    blank: Json = {"quick": False, "preset": None, "perspectives": [], "search": "", "roster": None}
    assert server.post("/api/estimate", {"question": QUESTION, "options": blank})["protocol"] == "collaborative"


# Options


@pytest.mark.behaviour("50-web-options")
@pytest.mark.parametrize(("protocol", "options", "line", "field"), [
    ("judges", {"quick": True, "debate": True}, "Error: quick and debate are incompatible.", "options"),
    ("advisors", {"rounds": 9}, "from 1 to 5", "options.rounds"),
    ("advisors", {"rounds": "many"}, "whole number", "options.rounds"),
    ("advisors", {"rounds": {"a": [1]}}, "whole number", "options.rounds"),
    ("advisors", {"flow": "paralel"}, 'did you mean "parallel"?', "options.flow"),
    ("advisors", {"quick": True}, "quick belongs to judges", "options.quick"),
    ("judges", {"perspectives": [1, 2]}, "perspectives", "options.perspectives"),
    (None, {"nonsense": True}, "no protocol has the option", "options.nonsense"),
    (None, {"\ud800": True}, "no protocol has the option", "options."),
    ("nothing", {}, 'unknown protocol "nothing"', "protocol"),
    ("judges", {"profile": "fats"}, "fats", ""),
])  # fmt: skip
def test_options_are_checked_by_the_protocols_own_models(
    server: WebServer, protocol: str | None, options: Json, line: str, field: str
) -> None:
    body = {"question": QUESTION, "protocol": protocol, "options": options}
    assert line in server.refused("/api/estimate", body)
    refused = server.ask("POST", "/api/runs", body)
    assert line in refused.line
    assert (refused.json["error"]["field"] or "").startswith(field)


@pytest.mark.behaviour("50-web-options")
@pytest.mark.parametrize("name", ["allow_unpriced", "config"])
@pytest.mark.parametrize("value", [True, "/etc/passwd", None])
def test_owner_options_are_refused(server: WebServer, name: str, value: Any) -> None:
    assert name in server.refused("/api/runs", {"question": QUESTION, "options": {name: value}})
    assert name in server.refused("/api/runs", {"question": QUESTION, name: value}, status=422)


@pytest.mark.behaviour("50-web-options")
@pytest.mark.parametrize(
    "path", ["../outside/{}", "/{outside}/{}", "src/../../outside/{}", "~/{}", "a\0b", "away.toml"]
)
@pytest.mark.parametrize(("protocol", "name", "file"), [("advisors", "roster", "board.toml"), ("ranking", "roster", "board.toml"), ("general", "preset", "board.toml"), ("judges", "perspectives_file", "lenses.yaml")])  # fmt: skip
def test_no_option_names_a_file_outside_the_roots(
    server: WebServer, path: str, protocol: str, name: str, file: str
) -> None:
    said = path.format(file, outside=server.folder.parent / "outside")
    options = {name: said, **({"no_search": True} if protocol == "general" else {})}
    line = server.refused("/api/estimate", {"question": QUESTION, "protocol": protocol, "options": options})
    assert "cash" not in line


@pytest.mark.behaviour("50-web-options")
@pytest.mark.parametrize("search", ["files:../outside/papers", "files:/etc", "FILES : ../outside", "files:~", "http://127.0.0.1:9/", "searxng:http://127.0.0.1:9", "files:\0"])  # fmt: skip
def test_search_is_limited_to_the_roots_and_configured_addresses(server: WebServer, search: str) -> None:
    body = {"question": QUESTION, "protocol": "general", "options": {"search": search}}
    assert server.refused("/api/estimate", body)
    assert server.refused("/api/runs", body)


@pytest.mark.behaviour("50-web-options")
@pytest.mark.parametrize(("protocol", "options", "seats"), [
    ("advisors", {"roster": "board.toml"}, ["cfo", "coo"]),
    ("judges", {"perspectives_file": "lenses.yaml", "count": 1}, None),
    ("general", {"search": "files:papers"}, None),
])  # fmt: skip
def test_files_inside_a_root_can_be_named_in_options(
    server: WebServer, protocol: str, options: Json, seats: list[str] | None
) -> None:
    response = server.post("/api/estimate", {"question": QUESTION, "protocol": protocol, "options": options})
    assert seats is None or [seat["name"] for seat in response["seats"]] == seats


@pytest.mark.behaviour("50-web-options")
@pytest.mark.parametrize(
    "member", ["scripted:/etc/passwd", "local:/etc/passwd", "scripted:other.toml", "unknown:at-all"]
)
def test_an_unconfigured_member_is_refused(server: WebServer, member: str) -> None:
    assert server.refused("/api/runs", {"question": QUESTION, "seats": {"alpha": member}})
    explorer = {"question": "validate notes.md", "options": {"explorers": 1, "explorer_model": member}}
    assert server.refused("/api/runs", explorer)


@pytest.mark.behaviour("50-web-options")
def test_a_configured_member_can_be_seated(server: WebServer) -> None:
    response = server.post("/api/estimate", {"question": QUESTION, "seats": {"beta": "scripted:"}})
    assert response["seats"][1]["model"] == "scripted:"
    assert "no protocol has such a seat" in server.refused(
        "/api/estimate", {"question": QUESTION, "seats": {"omega": "scripted:"}}
    )


# Money


@pytest.mark.behaviour("50-web-cap")
def test_a_caller_can_lower_the_cap_but_not_raise_it(server: WebServer) -> None:
    body = {"question": QUESTION}
    assert server.post("/api/estimate", body)["cap"] == 0.5
    assert server.post("/api/estimate", body | {"max_cost": 0.2})["cap"] == 0.2
    assert "use 0.5 or less" in server.refused("/api/runs", body | {"max_cost": 0.51})
    for value in (-1, "much", [1]):
        assert server.refused("/api/runs", body | {"max_cost": value}, status=422)
    assert server.ask("POST", "/api/runs", '{"question": "x", "max_cost": NaN}').status in (400, 422)


@pytest.mark.behaviour("50-web-cap")
def test_the_cap_of_the_settings_applies_to_callers(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    (folder / "council.toml").write_text(SCRIPTED + "[budget]\nmax_cost = 0.25\n")
    site = WebServer(folder, environment(tmp_path))
    try:
        assert site.post("/api/estimate", {"question": QUESTION})["cap"] == 0.25
        assert "use 0.25 or less" in site.refused("/api/runs", {"question": QUESTION, "max_cost": 1})
    finally:
        site.close()


@pytest.mark.behaviour("14-trust-doors")
def test_a_folder_that_is_not_trusted_refuses_each_run(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    (folder / "council.toml").write_text(
        '[providers.sim]\nbase_url = "http://192.0.2.1:9/v1"\n[models]\ndefault = "sim:m1"\n'
    )
    site = WebServer(folder, environment(tmp_path))
    try:
        for path in ("/api/estimate", "/api/runs"):
            line = site.refused(path, {"question": QUESTION})
            assert "need trust" in line and "the owner of this server can run `council trust`" in line
        assert "sim" not in {row["member"].partition(":")[0] for row in site.get("/api/members")["members"]}
        trust_project(folder)
        assert "sim:m1" in {seat["model"] for seat in site.post("/api/estimate", {"question": QUESTION})["seats"]}
    finally:
        site.close()


@pytest.mark.behaviour("50-web-cap")
def test_an_unpriced_member_is_refused_under_a_cap(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    unknown = '[providers.sim]\nbase_url = "http://192.0.2.1:9/v1"\n[models]\ndefault = "sim:m1"\n'
    (folder / "council.toml").write_text(unknown + "".join(f'[seats.{seat}]\nmodel = "sim:m1"\n' for seat in SEATS))
    trust_project(folder)
    site = WebServer(folder, environment(tmp_path), max_cost=1)
    try:
        assert site.post("/api/estimate", {"question": QUESTION})["unpriced"]
        assert "no price for" in site.refused("/api/runs", {"question": QUESTION})
    finally:
        site.close()


# Starting


@pytest.mark.behaviour("50-web-start", "007-web-api")
def test_a_start_is_queued_at_once_and_run_by_the_worker(server: WebServer) -> None:
    response = server.post(
        "/api/runs", {"question": QUESTION, "protocol": "triad", "targets": ["notes.md"], "max_cost": 0.3}, 201
    )
    assert response["plan"]["protocol"] == "triad"
    assert server.get(f"/api/runs/{response['run']}")["status"] in ("queued", "running", "complete")
    ended = server.wait_for_end(response["run"])
    assert (ended["status"], ended["cap"], ended["plan"]) == ("complete", 0.3, response["plan"])
    assert ended["report"]["answer"]
    assert Path(ended["report"]["report_path"]).is_file()


@pytest.mark.behaviour("50-web-start")
@pytest.mark.parametrize(("body", "line"), [
    ({"question": ""}, "no question was given"), ({}, "no question was given"), ({"question": "   "}, "no question was given"), ({"question": QUESTION, "root": "other"}, "no root"),
    ({"question": QUESTION, "protocol": "general"}, "not enabled"), ({"question": "validate -"}, "standard input"),
])  # fmt: skip
def test_an_invalid_start_is_refused_and_leaves_no_run(server: WebServer, body: Json, line: str) -> None:
    before = len(server.get("/api/runs")["runs"])
    assert line in server.refused("/api/runs", body)
    assert len(server.get("/api/runs")["runs"]) == before


@pytest.mark.behaviour("50-web-start")
def test_an_empty_question_never_sends_the_changes_of_the_work_tree(server: WebServer) -> None:
    subprocess.run(["git", "init", "--quiet", str(server.folder)], check=True)
    try:
        assert "no question was given, nothing was sent" in server.refused("/api/runs", {"question": ""})
    finally:
        shutil.rmtree(server.folder / ".git")
