"""Starting a council: what it would be, that the owner's word holds, and that it is held."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from council import protocols
from council.runs.service import Convener
from tests.doors.web.conftest import write_project
from tests.doors.web.server import QUESTION, SCRIPTED, SEATS, Json, WebServer, environment

ROSTER = 'seats = [{name = "cfo", lens = "cash"}, {name = "coo", lens = "people"}]\n'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A server whose owner allows half a dollar, and what callers might like to read."""
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


# Before


@pytest.mark.behaviour("50-web-protocols")
def test_every_protocol_is_described_by_its_own_options_and_a_plan(server: WebServer) -> None:
    rows = {row["name"]: row for row in server.get("/api/protocols")}
    assert tuple(rows) == protocols.protocol_names()
    for name in protocols.SHIPPED_PROTOCOLS:
        assert rows[name]["options"] == protocols.get_protocol(name).load_options().model_json_schema()
        assert rows[name]["summary"]
        assert rows[name]["seats"]
        assert all({"name", "calls", "parallel"} <= set(phase) for phase in rows[name]["phases"])
    assert [phase["name"] for phase in rows["collaborative"]["phases"]] == ["draft", "improve", "synthesise"]
    assert rows["collaborative"]["seats"] == list(SEATS)
    assert "not enabled" in rows["general"]["note"]


@pytest.mark.behaviour("50-web-members")
def test_who_can_sit_and_who_would_is_told(server: WebServer) -> None:
    told = server.get("/api/members")
    assert {"member", "vendor", "available", "needs", "price", "context"} <= set(told["members"][0])
    assert [place["member"] for place in told["seats"]] == ["scripted:"] * 4
    assert isinstance(told["notices"], list)
    assert {"name", "about", "seats", "error"} == set(told["rosters"][0])


@pytest.mark.behaviour("50-web-estimate")
def test_an_estimate_is_the_plan_that_the_command_would_print(server: WebServer) -> None:
    async def printed() -> Json:
        convener = Convener(server.folder, server.env, flags={"max_cost": 0.5})
        plan = await convener.plan([QUESTION], {"rounds": 2}, protocol="advisors")
        await convener.close()
        return plan.as_json()

    told = server.post("/api/estimate", {"question": QUESTION, "protocol": "advisors", "options": {"rounds": 2}})
    assert told == asyncio.run(printed())
    assert told["schema"] == "council.plan/1"
    assert told["cost"]["worst"] == 0
    assert server.get("/api/runs")["runs"] == []


@pytest.mark.behaviour("50-web-estimate")
def test_the_words_choose_the_protocol_as_at_the_shell(server: WebServer) -> None:
    told = server.post("/api/estimate", {"question": "adversarial council: Rust versus Go?"})
    assert (told["protocol"], told["question"]) == ("adversarial", "Rust versus Go?")


@pytest.mark.behaviour("50-web-estimate")
def test_fields_of_a_form_that_nobody_filled_in_choose_nothing(server: WebServer) -> None:
    blank: Json = {"quick": False, "preset": None, "perspectives": [], "search": "", "roster": None}
    assert server.post("/api/estimate", {"question": QUESTION, "options": blank})["protocol"] == "collaborative"


# What options may say


@pytest.mark.behaviour("50-web-options")
@pytest.mark.parametrize(("protocol", "options", "line"), [
    ("judges", {"quick": True, "debate": True}, "Error: --quick and --debate are incompatible."),
    ("advisors", {"rounds": 9}, "from 1 to 5"),
    ("advisors", {"rounds": "many"}, "whole number"),
    ("advisors", {"rounds": {"a": [1]}}, "whole number"),
    ("advisors", {"flow": "paralel"}, 'did you mean "parallel"?'),
    ("advisors", {"quick": True}, "--quick belongs to judges"),
    ("judges", {"perspectives": [1, 2]}, "perspectives"),
    (None, {"nonsense": True}, "no protocol has the option"),
    (None, {"\ud800": True}, "no protocol has the option"),
    ("nothing", {}, 'unknown protocol "nothing"'),
    ("judges", {"profile": "fats"}, "fats"),
])  # fmt: skip
def test_options_are_checked_by_the_protocols_own_models(
    server: WebServer, protocol: str | None, options: Json, line: str
) -> None:
    wish = {"question": QUESTION, "protocol": protocol, "options": options}
    assert line in server.refused("/api/estimate", wish)
    assert line in server.refused("/api/runs", wish)


@pytest.mark.behaviour("50-web-options")
@pytest.mark.parametrize("name", ["allow_unpriced", "config"])
@pytest.mark.parametrize("value", [True, "/etc/passwd", None])
def test_what_only_the_owner_can_say_is_refused_wherever_it_stands(server: WebServer, name: str, value: Any) -> None:
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
def test_no_search_leads_out_of_the_roots_or_to_an_address_of_the_callers(server: WebServer, search: str) -> None:
    wish = {"question": QUESTION, "protocol": "general", "options": {"search": search}}
    assert server.refused("/api/estimate", wish)
    assert server.refused("/api/runs", wish)


@pytest.mark.behaviour("50-web-options")
@pytest.mark.parametrize(("protocol", "options", "seats"), [
    ("advisors", {"roster": "board.toml"}, ["cfo", "coo"]),
    ("judges", {"perspectives_file": "lenses.yaml", "count": 1}, None),
    ("general", {"search": "files:papers"}, None),
])  # fmt: skip
def test_files_inside_a_root_can_be_named_in_options(
    server: WebServer, protocol: str, options: Json, seats: list[str] | None
) -> None:
    told = server.post("/api/estimate", {"question": QUESTION, "protocol": protocol, "options": options})
    assert seats is None or [seat["name"] for seat in told["seats"]] == seats


@pytest.mark.behaviour("50-web-options")
@pytest.mark.parametrize(
    "member", ["scripted:/etc/passwd", "local:/etc/passwd", "scripted:other.toml", "nobody:at-all"]
)
def test_nobody_sits_whom_the_owner_has_not_configured(server: WebServer, member: str) -> None:
    assert server.refused("/api/runs", {"question": QUESTION, "seats": {"alpha": member}})
    explorer = {"question": "validate notes.md", "options": {"explorers": 1, "explorer_model": member}}
    assert server.refused("/api/runs", explorer)


@pytest.mark.behaviour("50-web-options")
def test_a_seat_can_be_given_to_a_member_that_is_configured(server: WebServer) -> None:
    told = server.post("/api/estimate", {"question": QUESTION, "seats": {"beta": "scripted:"}})
    assert told["seats"][1]["model"] == "scripted:"
    assert "no protocol has such a seat" in server.refused(
        "/api/estimate", {"question": QUESTION, "seats": {"zeta": "scripted:"}}
    )


# Money


@pytest.mark.behaviour("50-web-cap")
def test_a_caller_can_ask_for_less_and_not_for_more_than_the_owner_allows(server: WebServer) -> None:
    wish = {"question": QUESTION}
    assert server.post("/api/estimate", wish)["cap"] == 0.5
    assert server.post("/api/estimate", wish | {"max_cost": 0.2})["cap"] == 0.2
    assert "use 0.5 or less" in server.refused("/api/runs", wish | {"max_cost": 0.51})
    for value in (-1, "much", [1]):
        assert server.refused("/api/runs", wish | {"max_cost": value}, status=422)
    assert server.ask("POST", "/api/runs", '{"question": "x", "max_cost": NaN}').status in (400, 422)


@pytest.mark.behaviour("50-web-cap")
def test_the_settings_cap_holds_for_callers_too(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    (folder / "council.toml").write_text(SCRIPTED + "[budget]\nmax_cost = 0.25\n")
    server = WebServer(folder, environment(tmp_path))
    try:
        assert server.post("/api/estimate", {"question": QUESTION})["cap"] == 0.25
        assert "use 0.25 or less" in server.refused("/api/runs", {"question": QUESTION, "max_cost": 1})
    finally:
        server.close()


@pytest.mark.behaviour("50-web-cap")
def test_under_a_cap_nobody_sits_whose_price_nobody_knows(tmp_path: Path) -> None:
    folder = write_project(tmp_path)
    unknown = '[providers.sim]\nbase_url = "http://192.0.2.1:9/v1"\n[models]\ndefault = "sim:m1"\n'
    (folder / "council.toml").write_text(unknown + "".join(f'[seats.{seat}]\nmodel = "sim:m1"\n' for seat in SEATS))
    server = WebServer(folder, environment(tmp_path), max_cost=1)
    try:
        assert server.post("/api/estimate", {"question": QUESTION})["unpriced"]
        assert "no price for" in server.refused("/api/runs", {"question": QUESTION})
    finally:
        server.close()


# The start


@pytest.mark.behaviour("50-web-start", "007-web-api")
def test_a_start_is_queued_at_once_and_held_by_the_worker(server: WebServer) -> None:
    told = server.post(
        "/api/runs", {"question": QUESTION, "protocol": "triad", "targets": ["notes.md"], "max_cost": 0.3}, 201
    )
    assert told["plan"]["protocol"] == "triad"
    assert server.get(f"/api/runs/{told['run']}")["status"] in ("queued", "running", "complete")
    ended = server.wait_for_end(told["run"])
    assert (ended["status"], ended["cap"], ended["plan"]) == ("complete", 0.3, told["plan"])
    assert ended["report"]["answer"]
    assert list((server.folder / ".agents" / "council").glob("*.md"))


@pytest.mark.behaviour("50-web-start")
@pytest.mark.parametrize(("wish", "line"), [
    ({"question": ""}, "no question was given"), ({}, "no question was given"), ({"question": "   "}, "no question was given"), ({"question": QUESTION, "root": "other"}, "no root"),
    ({"question": QUESTION, "protocol": "general"}, "not enabled"), ({"question": "validate -"}, "standard input"),
])  # fmt: skip
def test_what_cannot_be_convened_is_refused_and_leaves_no_run(server: WebServer, wish: Json, line: str) -> None:
    before = len(server.get("/api/runs")["runs"])
    assert line in server.refused("/api/runs", wish)
    assert len(server.get("/api/runs")["runs"]) == before
