"""`--early-stop` of collaborative: drafts that agree need no improvement."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from council.money import format_usd
from tests.acceptance.fake_drafts import FIRM, FakeDrafts, draft_text, take_seats
from tests.acceptance.helpers import QUESTION, SEATS, Terminal, Workspace, check_store, comparable, kill, mark
from tests.acceptance.test_money import PRICES
from tests.fake_provider import Reply
from tests.trusted_project import write_user_file

STOP = ("--json", "--early-stop")
IMPROVE = [f"improve/{seat}" for seat in SEATS]


@pytest.fixture
def drafts(workspace: Workspace) -> FakeDrafts:
    return take_seats(workspace)


def list_schemas(workspace: Workspace) -> list[Any]:
    return [
        (seen.body.get("response_format") or {}).get("json_schema", {}).get("name") for seen in workspace.provider.log
    ]


def improved(workspace: Workspace) -> list[str]:
    return sorted(key for key in workspace.asked() if key.startswith("improve/"))


@pytest.mark.usefixtures("drafts")
@pytest.mark.behaviour("10-early-stop-collaborative", "money-stops-saved")
def test_drafts_that_agree_go_straight_to_the_synthesis(workspace: Workspace, council: Terminal) -> None:
    write_user_file(PRICES)
    workspace.configure()
    plan = council("--dry-run", *STOP, QUESTION).json
    assert (plan["protocol"], plan["calls"]) == ("collaborative", {"min": 4, "max": 7})
    assert [phase["name"] for phase in plan["phases"] if phase.get("skippable")] == ["improve"]
    assert 0 < plan["cost"]["low"] < plan["cost"]["expected"]
    shown = council("--dry-run", "--early-stop", QUESTION).out.splitlines()
    assert "4 to 7 calls" in shown
    assert f"improve may not be needed: then 4 calls, low {format_usd(plan['cost']['low'])}" in shown

    report = council(*STOP, QUESTION).json
    assert list_schemas(workspace) == ["Draft"] * 3 + [None]
    assert (report["status"], report["calls"]["made"]) == ("complete", 4)
    (stop,) = report["stops"]
    assert stop["why"] == 'all 3 drafts conclude "Yes" with HIGH confidence and without a doubt, all of one vendor'
    assert (stop["skipped"], stop["calls"]) == (["improve"], 3)
    assert 0 < stop["saved"] < plan["cost"]["phases"]["improve"]  # the drafts were shorter than the plan expected
    synthesis = workspace.prompt("synthesise/chair")
    assert all(mark(seat, "draft") in synthesis for seat in SEATS)
    assert "none has read the others" in " ".join(synthesis.split())
    assert not [row for row in report["degraded"] if row["state"] != "notice"]


@pytest.mark.usefixtures("drafts")
@pytest.mark.behaviour("10-early-stop-off", "000-improve-never-skipped")
def test_without_the_flag_drafts_are_free_text_and_are_improved(workspace: Workspace, council: Terminal) -> None:
    plan = council("--json", "--dry-run", QUESTION).json
    assert plan["calls"] == {"min": 7, "max": 7}
    assert not [phase for phase in plan["phases"] if phase.get("skippable")]
    report = council("--json", QUESTION).json
    assert list_schemas(workspace) == [None] * 7
    assert improved(workspace) == IMPROVE
    assert "stops" not in report


@pytest.mark.behaviour("10-early-stop-collaborative")
@pytest.mark.parametrize(
    "said",
    [
        {"conclusion": "No"},
        {"conclusion": "Do not move the archive to cold storage"},
        {"conclusion": "Yes, if the audit allows it"},
        {"conclusion": "It depends"},
        {"conclusion": ""},
        {"conclusion": None},
        {"confidence": "MEDIUM"},
        {"confidence": None},
        {"confidence": "300 %"},
        {"confidence": 300},
        {"doubts": ["the price of a restore"]},
        json.dumps({"draft": draft_text("gamma"), "conclusion": "Yes", "doubts": []}),  # without confidence
        json.dumps({"draft": draft_text("gamma"), "conclusion": "Yes", "confidence": "HIGH"}),  # without doubts
        draft_text("gamma"),  # prose instead of a reply
    ],
)
def test_a_draft_that_differs_or_is_not_firm_is_improved_with_the_others(
    workspace: Workspace, council: Terminal, drafts: FakeDrafts, said: Any
) -> None:
    drafts.said["gamma"] = said
    report = council(*STOP, QUESTION).json
    assert report["status"] == "complete"
    assert improved(workspace) == IMPROVE
    assert "stops" not in report
    assert mark("gamma", "draft") in workspace.prompt("improve/alpha")
    assert '"draft"' not in workspace.prompt("improve/alpha")  # the others read the text, not the JSON


@pytest.mark.behaviour("10-early-stop-collaborative")
def test_the_same_words_with_a_negation_are_no_agreement(
    workspace: Workspace, council: Terminal, drafts: FakeDrafts
) -> None:
    drafts.said |= {seat: {"conclusion": "move the archive this year"} for seat in SEATS}
    drafts.said["beta"] = {"conclusion": "do not move the archive this year"}
    assert "stops" not in council(*STOP, QUESTION).json
    assert improved(workspace) == IMPROVE


@pytest.mark.behaviour("10-early-stop-collaborative")
@pytest.mark.parametrize(
    "said",
    [
        {"confidence": "very high"},
        {"confidence": "95 %"},
        {"conclusion": "**Yes.**"},
        {"doubts": "none"},
        f"Here is my draft:\n\n```json\n{json.dumps({'draft': draft_text('gamma'), **FIRM})}\n```\nI hope it helps.",
    ],
)
def test_imperfect_replies_that_agree_stop_the_run(
    workspace: Workspace, council: Terminal, drafts: FakeDrafts, said: Any
) -> None:
    drafts.said["gamma"] = said
    report = council(*STOP, QUESTION).json
    assert improved(workspace) == []
    assert [stop["skipped"] for stop in report["stops"]] == [["improve"]]


@pytest.mark.behaviour("10-early-stop-collaborative")
def test_an_absent_seat_does_not_vote(workspace: Workspace, council: Terminal, drafts: FakeDrafts) -> None:
    drafts.instead["gamma"] = Reply(status=401)
    report = council(*STOP, QUESTION).json
    assert report["status"] == "complete"
    assert [stop["why"] for stop in report["stops"]] == [
        'both drafts conclude "Yes" with HIGH confidence and without a doubt, all of one vendor'
    ]
    assert [row["seat"] for row in report["degraded"] if row["seat"]] == ["gamma"]


@pytest.mark.behaviour("10-early-stop-collaborative")
def test_a_single_draft_is_no_stop(workspace: Workspace, council: Terminal, drafts: FakeDrafts) -> None:
    drafts.instead |= {"beta": Reply(status=401), "gamma": Reply(status=401)}
    assert "stops" not in council(*STOP, QUESTION).json


@pytest.mark.behaviour("10-early-stop-voices")
def test_seats_of_one_member_are_one_voice(workspace: Workspace, council: Terminal, drafts: FakeDrafts) -> None:
    plan = council("--dry-run", *STOP, "-m", "sim:alpha", QUESTION).json
    assert plan["calls"] == {"min": 7, "max": 7}
    workspace.configure(beta=["sim:alpha"], gamma=["sim:alpha"])
    drafts.instead |= {"beta": Reply(status=500), "gamma": Reply(status=500)}
    report = council(*STOP, QUESTION).json
    assert {seat["served_by"] for seat in report["seats"]} == {"sim:alpha"}
    assert "stops" not in report


@pytest.mark.usefixtures("drafts")
@pytest.mark.behaviour("10-early-stop-flag")
@pytest.mark.parametrize(
    ("words", "protocol"),
    [
        ("How should we store the archive?", "collaborative"),
        ("Redis or Postgres for the session store?", "collaborative"),  # adversarial has no such flag
        ("stress test our plan to move the archive", "collaborative"),
    ],
)
def test_the_flag_alone_means_collaborative(council: Terminal, words: str, protocol: str) -> None:
    plan = council("--dry-run", *STOP, words).json
    assert plan["protocol"] == protocol
    assert plan["options"] == {"early_stop": True}


@pytest.mark.usefixtures("drafts")
@pytest.mark.behaviour("10-early-stop-flag")
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("council of advisors: should we move the archive?", "--early-stop needs at least 2 rounds"),
        ("validate council.toml", "--early-stop needs --debate"),
    ],
)
def test_words_that_choose_another_protocol_with_the_flag_keep_it(council: Terminal, words: str, problem: str) -> None:
    done = council("--dry-run", "--early-stop", *words.split())
    assert done.code == 2
    assert problem in done.err


@pytest.mark.usefixtures("drafts")
@pytest.mark.behaviour("10-early-stop-resumes")
@pytest.mark.parametrize(("phase", "seats"), [("draft", SEATS), ("synthesise", ("chair",))])
def test_a_run_killed_before_or_after_the_stop_resumes_to_the_same_stop(
    workspace: Workspace, council: Terminal, phase: str, seats: tuple[str, ...]
) -> None:
    gate = workspace.hold(phase)
    process = workspace.process(*STOP, QUESTION)
    gate.wait(count=len(seats))
    kill(process)
    gate.release()
    since = len(workspace.provider.log)
    done = council("resume", "--json")
    assert done.code == 0, done.err
    assert improved(workspace) == []
    repeated = {f"{phase}/{seat}" for seat in seats}
    assert set(workspace.asked(since)) == repeated | {"synthesise/chair"}
    assert [stop["skipped"] for stop in done.json["stops"]] == [["improve"]]
    check_store(council)
    shutil.rmtree(workspace.data / "reports")
    assert comparable(done.json) == comparable(council(*STOP, QUESTION).json)
