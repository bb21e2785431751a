"""Adaptive: when it stops, when it goes on, and what the report says about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.adaptive.fake_solvers import ABSENT, QUESTION, Solvers, make_answer, make_error, seat_vendors
from tests.acceptance.helpers import Json, Terminal, Workspace, mark
from tests.fake_provider import Reply
from tests.trusted_project import trust_project

STOPPED_AFTER_CHECK = ["answer/alpha", "answer/beta", "check/beta"]


def ask(council: Terminal, *flags: str, question: str = QUESTION) -> Json:
    done = council("--json", "--protocol", "adaptive", *flags, question)
    assert done.code == 0, done.err
    report: Json = done.json
    return report


def kinds(report: Json) -> list[str]:
    return [fact["kind"] for fact in report["trust"]["facts"]]


def phases(workspace: Workspace) -> list[str]:
    """Return the phases that were held, in order."""
    return list(dict.fromkeys(key.partition("/")[0] for key in workspace.asked()))


# Stops


@pytest.mark.behaviour("10-adaptive-stop")
def test_two_members_that_agree_and_a_check_are_enough(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    report = ask(council)
    assert sorted(workspace.asked()) == STOPPED_AFTER_CHECK
    assert report["status"] == "complete" and report["answer"] == f"It is 408. {mark('alpha', 'answer')}"
    assert report["stopped"] == {
        "after": "check",
        "reason": "confirmed",
        "why": "alpha and beta reached the same conclusion, and beta found no severe error in alpha's answer",
        "skipped": ["draft", "points", "argue", "write"],
    }
    outcome, trust = report["tail"]
    assert outcome == (
        "Outcome: stopped after 3 calls — alpha and beta reached the same conclusion; checked by beta: no error found"
    )
    assert trust.startswith("Trust: HIGH") and "members can share an error" in trust
    assert report["quorum"] == {"needed": 1, "ok": 2, "asked": 2}
    assert {seat["name"]: seat["state"] for seat in report["seats"]}["gamma"] == "not_asked"


@pytest.mark.behaviour("10-adaptive-stop")
def test_the_report_file_and_the_verbose_text_say_why_it_stopped(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    done = council("--protocol", "adaptive", "--verbose", QUESTION)
    why = "alpha and beta reached the same conclusion, and beta found no severe error in alpha's answer"
    assert f"Stopped: {why}." in done.out
    (path,) = workspace.reports()
    assert f"Stopped: {why}." in path.read_text() and "The answer above." in path.read_text()


@pytest.mark.behaviour("10-adaptive-check")
def test_a_small_error_is_shown_and_does_not_prevent_the_stop(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    answers.confirmation = {"same_conclusion": "yes", "errors": [make_error("MINOR")]}
    report = ask(council)
    assert sorted(workspace.asked()) == STOPPED_AFTER_CHECK
    assert [error["state"] for error in report["check"]["errors"]] == ["open"]
    assert report["trust"]["level"] == "MEDIUM" and "error_open" in kinds(report)


@pytest.mark.behaviour("10-adaptive-trust")
def test_conclusions_that_only_the_checker_calls_the_same_are_trusted_less(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    answers.said = {"alpha": make_answer("alpha", "Lima"), "beta": make_answer("beta", "The City of the Kings")}
    report = ask(council)
    assert sorted(workspace.asked()) == STOPPED_AFTER_CHECK
    assert report["trust"]["level"] == "MEDIUM" and "confirmed_by_reader" in kinds(report)
    answers.confirmation = {"errors": []}  # it does not say
    assert ask(council)["continued"][0]["reason"] == "not_confirmed"


@pytest.mark.behaviour("10-adaptive-cheap-first", "10-adaptive-check")
def test_cheap_first_asks_the_cheapest_members_and_the_dearer_one_checks(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    prices = {"north": 9, "east": 3, "south": 1, "west": 1}
    rows = [f'[prices."{vendor}:*"]\ninput = {usd}\noutput = {usd}\n' for vendor, usd in prices.items()]
    seat_vendors(workspace, more="\n".join(rows))
    report = ask(council, "--cheap-first")
    assert sorted(workspace.asked()) == ["answer/beta", "answer/gamma", "check/beta"]
    assert report["answer"].endswith(mark("gamma", "answer"))
    asked = len(workspace.asked())
    assert ask(council)["answer"].endswith(mark("beta", "answer"))  # alpha and beta, and beta is cheaper
    assert sorted(workspace.asked(asked)) == ["answer/alpha", "answer/beta", "check/alpha"]


# No stop after the first answers


@pytest.mark.behaviour("10-adaptive-may-stop")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (make_answer("beta", confidence="300%"), "not_sure"),
        (make_answer("beta", confidence="medium"), "not_sure"),
        (make_answer("beta", confidence="very high", doubts=["the unit"]), "doubts"),
        (make_answer("beta", confidence=0.95, doubts=None), "doubts"),
        (make_answer("beta", "418"), "different"),
        (make_answer("beta", ""), "no_conclusion"),
    ],
)
def test_doubts_unknown_confidence_and_differences_prevent_the_stop(
    workspace: Workspace, council: Terminal, answers: Solvers, said: Json, reason: str
) -> None:
    answers.said["beta"] = said
    answers.disputed = {"408": ["alpha"], "418": ["beta"]}
    report = ask(council)
    assert report["continued"][0]["reason"] == reason and "stopped" not in report
    assert phases(workspace) == ["answer", "points", "argue", "write"]
    assert len(workspace.asked()) == 7 and mark("chair", "write") in report["answer"]


@pytest.mark.behaviour("10-adaptive-may-stop")
@pytest.mark.parametrize(
    "said",
    [
        "Here is my answer:\n```json\n{json}\n```\nI hope it helps.",
        "{json},",
        '{{"result": {json}}}',
    ],
)
def test_json_in_prose_is_read(workspace: Workspace, council: Terminal, answers: Solvers, said: str) -> None:
    text = (
        said.replace("{json}", json.dumps(make_answer("beta", confidence="very high")))
        .replace("{{", "{")
        .replace("}}}", "}}")
    )
    answers.instead["beta/answer"] = Reply(text=text)
    ask(council)
    assert sorted(workspace.asked()) == STOPPED_AFTER_CHECK


@pytest.mark.behaviour("10-adaptive-may-stop")
def test_an_answer_in_prose_counts_as_an_answer_without_a_conclusion(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    answers.instead["beta/answer"] = Reply(
        text="Seventeen times twenty-four is four hundred and eight, as twenty times twenty-four shows. mark-beta-answer-mark"
    )
    report = ask(council)
    assert report["continued"][0]["why"] == "beta stated no conclusion"
    assert report["trust"]["level"] == "MEDIUM"


@pytest.mark.behaviour("10-adaptive-one-vendor")
def test_two_seats_of_one_vendor_are_one_voice(workspace: Workspace, council: Terminal, answers: Solvers) -> None:
    seat_vendors(workspace, {"alpha": "north", "beta": "north", "gamma": "north"})
    report = ask(council)
    assert report["continued"][0] == {
        "after": "answer",
        "reason": "one_vendor",
        "why": "alpha and beta have one vendor, so they are one voice",
    }
    assert report["trust"]["level"] != "HIGH"


@pytest.mark.behaviour("10-adaptive-one-vendor")
def test_a_fallback_of_the_same_vendor_behind_another_provider_is_one_voice(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    more = f'[providers.mirror]\nwire = "openai"\nvendor = "north"\nbase_url = "{workspace.provider.base_url}"\n'
    seat_vendors(workspace, more=more)
    path = workspace.folder / "council.toml"
    row = 'model = "east:beta"\nfallback = '
    path.write_text(path.read_text().replace(f"{row}[]", f'{row}["mirror:north-model"]'))
    trust_project(workspace.folder)
    answers.instead["beta"] = ABSENT
    answers.seat_of["north-model"] = "second"
    answers.said["second"] = make_answer("beta")
    report = ask(council)
    assert report["continued"][0]["reason"] == "one_vendor"
    plan = council("--json", "--dry-run", "--protocol", "adaptive", QUESTION).json
    assert plan["seats"][1]["fallback_vendors"] == {"mirror:north-model": "north"}
    two = ask(council, "--seat", "gamma=north:alpha")
    assert "one_vendor" in kinds(two)  # alpha, a fallback of its vendor, and alpha again


@pytest.mark.behaviour("10-adaptive-first-seats")
def test_the_second_seat_is_the_next_one_of_another_vendor(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    seat_vendors(workspace, {"beta": "north"})
    ask(council)
    assert sorted(workspace.asked()) == ["answer/alpha", "answer/gamma", "check/gamma"]


# Check


@pytest.mark.behaviour("10-adaptive-check")
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(text="The answer looks right to me, I have nothing to add to it."), "not_checked"),
        (Reply(text='{"same_conclusion": false, "errors": []}'), "not_confirmed"),
        (ABSENT, "not_checked"),
        (Reply(refuse=True), "not_checked"),
    ],
)
def test_a_check_that_does_not_confirm_does_not_stop(
    workspace: Workspace, council: Terminal, answers: Solvers, reply: Reply, reason: str
) -> None:
    answers.instead["beta/check"] = reply
    answers.shared = ()
    report = ask(council)
    assert report["continued"][0]["reason"] == reason
    assert report["status"] == "complete" and mark("chair", "write") in report["answer"]


@pytest.mark.behaviour("10-adaptive-objections")
def test_a_severe_error_is_answered_by_the_author_and_ruled_on_by_the_chair(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    answers.confirmation = {"same_conclusion": True, "errors": [make_error()]}
    answers.conceding = ("alpha",)
    report = ask(council)
    assert phases(workspace) == ["answer", "check", "argue", "write"] and len(workspace.asked()) == 6
    assert workspace.asked()[-2:] == ["argue/alpha", "write/chair"]
    (point,) = report["argued"]
    assert point["point"] == "It is 418."
    assert point["arguments"] == [{"seat": "alpha", "stance": "concedes", "argument": mark("alpha", "argue")}]
    assert "It is 418." in workspace.prompt("write/chair")


@pytest.mark.behaviour("10-adaptive-check-absent")
@pytest.mark.parametrize("seats", [2, 3])
def test_an_absent_check_is_not_asked_again(
    workspace: Workspace, council: Terminal, answers: Solvers, seats: int
) -> None:
    answers.instead["beta/check"] = Reply(refuse=True)
    two = ("-m", "north:alpha", "-m", "east:beta", "--seat", "chair=west:chair") if seats == 2 else ()
    report = ask(council, *two)  # the clerk says that all share the conclusion
    assert report["status"] == "complete" and mark("chair", "write") in report["answer"]
    assert [row["reason"] for row in report["continued"]] == ["not_checked"] and "stopped" not in report
    assert phases(workspace)[-2:] == ["points", "write"] and report["trust"]["level"] == "MEDIUM"
    keys = dict.fromkeys(workspace.asked())  # a refusal is asked again
    assert len(keys) <= 2 * seats + 1 and not report.get("stops")


@pytest.mark.behaviour("10-adaptive-check-absent")
def test_an_absent_check_of_answers_without_a_dispute_is_told_and_nothing_else_is_claimed(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    answers.said["beta"] = make_answer("beta", confidence="MEDIUM")
    answers.instead |= {"beta/check": ABSENT, "gamma/check": ABSENT}
    report = ask(council)
    assert [row["reason"] for row in report["continued"]] == ["not_sure", "not_checked"]
    assert "missed_phase" in kinds(report) and "not_argued" not in kinds(report) and not report.get("stops")


@pytest.mark.behaviour("10-adaptive-objections", "10-adaptive-own-facts")
@pytest.mark.parametrize(
    ("severity", "conceding", "state", "kind", "level"),
    [
        ("MAJOR", ("alpha",), "corrected", "error_corrected", "MEDIUM"),
        ("MAJOR", (), "dismissed", "error_dismissed", "MEDIUM"),
        ("FATAL", (), "dismissed", "error_dismissed_fatal", "LOW"),
    ],
)
def test_the_report_of_a_run_that_went_on_says_what_the_check_found_and_what_became_of_it(
    workspace: Workspace, council: Terminal, answers: Solvers,
    severity: str, conceding: tuple[str, ...], state: str, kind: str, level: str,
) -> None:  # fmt: skip
    answers.confirmation = {"same_conclusion": True, "errors": [make_error(severity)]}
    answers.conceding = conceding
    report = ask(council)  # the chair says that all recommended its answer
    assert report["check"]["readers"] == ["beta"] and report["check"]["author"] == "alpha"
    (error,) = report["check"]["errors"]
    assert (error["id"], error["state"], error["why"]) == ("beta-1", state, mark("alpha", "argue"))
    assert report["trust"]["level"] == level and kind in kinds(report)
    assert ("contested_points" in kinds(report)) == (not conceding)


@pytest.mark.behaviour("10-adaptive-own-facts")
def test_equal_conclusions_that_a_check_calls_different_are_not_argued(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    answers.confirmation = {"same_conclusion": False, "errors": []}
    report = ask(council)
    assert phases(workspace) == ["answer", "check", "write"]
    assert report["trust"]["level"] == "MEDIUM" and "not_argued" in kinds(report) and "checked" not in kinds(report)
    assert "no error found" not in report["tail"][0]


@pytest.mark.behaviour("10-adaptive-own-facts")
def test_an_author_that_concedes_to_another_conclusion_did_not_recommend_it_at_first(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    answers.said = {"alpha": make_answer("alpha", "Lima"), "beta": make_answer("beta", "The City of the Kings")}
    answers.confirmation = {"same_conclusion": False, "errors": []}
    answers.conceding = ("alpha",)
    report = ask(council)  # the chair says that all recommended its answer
    assert phases(workspace) == ["answer", "check", "argue", "write"]
    assert report["trust"]["level"] == "MEDIUM" and "partial_agreement" in kinds(report)
    assert "2 of 3 seats recommended this at first (beta and gamma)" in report["tail"][-1]


# The long way


@pytest.mark.behaviour("10-adaptive-argue")
def test_only_the_disputed_points_are_argued(workspace: Workspace, council: Terminal, answers: Solvers) -> None:
    answers.said["beta"] = make_answer("beta", "418")
    answers.disputed = {"it is 408": ["alpha", "gamma"], "it is 418": ["beta"]}
    report = ask(council)
    assert sorted(key for key in workspace.asked() if key.startswith("argue")) == ["argue/alpha", "argue/beta"]
    words = workspace.prompt("argue/beta")
    assert "it is 408" in words and mark("beta", "answer") in words
    assert mark("alpha", "answer") not in words and mark("gamma", "answer") not in words
    final = workspace.prompt("write/chair")
    assert mark("alpha", "argue") in final and mark("gamma", "answer") in final
    (point,) = report["argued"]
    assert [side["seats"] for side in point["sides"]] == [["alpha", "gamma"], ["beta"]]
    shown = council("report", report["run"], "--format", "md").out
    assert "nothing was compared" not in shown  # only gamma answered in the phase draft, but two others before it


@pytest.mark.behaviour("10-adaptive-nothing-disputed")
def test_answers_without_a_dispute_are_not_argued(workspace: Workspace, council: Terminal, answers: Solvers) -> None:
    answers.said["beta"] = make_answer("beta", confidence="MEDIUM")
    report = ask(council)
    assert phases(workspace) == ["answer", "points", "check"] and len(workspace.asked()) == 5
    assert report["stopped"]["skipped"] == ["argue", "write"]
    assert report["tail"][0].startswith("Outcome: stopped after 5 calls — all 3 answers reach the same conclusion")
    assert report["trust"]["level"] == "MEDIUM"  # as beta's own confidence


@pytest.mark.behaviour("10-adaptive-nothing-disputed")
def test_a_doubt_that_is_left_limits_trust(workspace: Workspace, council: Terminal, answers: Solvers) -> None:
    answers.said["beta"] = make_answer("beta", doubts=["whether it is 16"])
    report = ask(council)
    assert report["stopped"]["after"] == "check" and report["trust"]["level"] == "MEDIUM"
    assert "doubts" in kinds(report)


@pytest.mark.behaviour("10-adaptive-argue", "10-conclusions-compared")
def test_conclusions_that_differ_by_their_values_are_argued_even_if_the_clerk_sees_no_dispute(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    answers.said["beta"] = make_answer("beta", "418")
    report = ask(council)  # the clerk calls all conclusions the same
    assert "stopped" not in report and phases(workspace) == ["answer", "points", "argue", "write"]
    (point,) = report["argued"]
    assert [(side["seats"], side["position"]) for side in point["sides"]] == [
        (["alpha", "gamma"], "408"),
        (["beta"], "418"),
    ]


@pytest.mark.behaviour("10-adaptive-clerk-absent")
@pytest.mark.parametrize(
    "reply", [ABSENT, Reply(text="They all agree, more or less, and I would trust the first one.")]
)
def test_without_a_clerk_the_chair_writes_without_arguments(
    workspace: Workspace, council: Terminal, answers: Solvers, reply: Reply
) -> None:
    answers.said["beta"] = make_answer("beta", "418")
    answers.instead["clerk"] = reply
    report = ask(council)
    assert phases(workspace) == ["answer", "points", "write"]
    assert report["trust"]["level"] == "MEDIUM" and "not_argued" in kinds(report)


@pytest.mark.behaviour("10-adaptive-two-seats")
def test_two_seats_that_differ_argue_their_conclusions_without_a_clerk(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    answers.said["beta"] = make_answer("beta", "418")
    answers.notes = {"agreed": [], "contested": [], "closest_draft": "alpha", "recommendation_shared_by": ["alpha"]}
    report = ask(council, "-m", "north:alpha", "-m", "east:beta", "--seat", "chair=west:chair")
    assert phases(workspace) == ["answer", "argue", "write"] and len(workspace.asked()) == 5
    assert report["trust"]["level"] == "LOW"  # no two seats recommend it


@pytest.mark.behaviour("10-adaptive-own-facts")
@pytest.mark.parametrize("conceding", [(), ("beta",)])
def test_a_chair_cannot_count_a_seat_with_another_conclusion_as_agreeing(
    workspace: Workspace, council: Terminal, answers: Solvers, conceding: tuple[str, ...]
) -> None:
    answers.said["beta"] = make_answer("beta", "418")
    answers.disputed = {"408": ["alpha", "gamma"], "418": ["beta"]}
    answers.conceding = conceding
    report = ask(council)  # the chair says that all three recommended 408 at first
    assert report["trust"]["level"] == "MEDIUM" and "partial_agreement" in kinds(report)
    assert ("contested_points" in kinds(report)) == (not conceding)
    assert "2 of 3 seats recommended this at first (alpha and gamma)" in report["tail"][-1]
    assert not any("all 3" in line for line in report["tail"])


@pytest.mark.behaviour("10-adaptive-cost", "10-adaptive-two-seats")
def test_two_seats_never_make_more_than_five_calls(workspace: Workspace, council: Terminal, answers: Solvers) -> None:
    answers.said["beta"] = make_answer("beta", doubts=["the unit"])
    answers.confirmation = {"same_conclusion": True, "errors": [make_error()]}
    report = ask(council, "-m", "north:alpha", "-m", "east:beta", "--seat", "chair=west:chair")
    assert phases(workspace) == ["answer", "points", "check", "write"] and len(workspace.asked()) == 5
    assert "not_argued" in kinds(report) and "error_open" in kinds(report) and not report.get("stops")


# Absent seats


@pytest.mark.behaviour("10-adaptive-stand-in")
def test_the_next_seat_takes_the_place_of_an_absent_one(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    answers.instead["beta"] = ABSENT
    report = ask(council)
    assert {"answer/alpha", "answer/gamma", "check/gamma"} <= set(workspace.asked())
    assert report["stopped"]["reason"] == "confirmed" and report["trust"]["level"] == "MEDIUM"
    assert report["tail"][0].startswith("Outcome: stopped after 4 calls — alpha and gamma reached the same conclusion")


@pytest.mark.behaviour("10-adaptive-stand-in")
def test_each_stand_in_is_named_with_the_seat_that_it_replaces(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    answers.instead |= dict.fromkeys(("alpha", "beta"), ABSENT)
    answers.seat_of["delta"] = "delta"
    members = ("north:alpha", "east:beta", "south:gamma", "west:delta")
    flags = [flag for member in members for flag in ("-m", member)]
    report = ask(council, *flags, "--seat", "chair=west:chair")
    assert report["stopped"]["reason"] == "confirmed"
    shown = council("report", report["run"], "--format", "md").out
    assert "gamma answers first in place of alpha" in shown and "delta answers first in place of beta" in shown


@pytest.mark.behaviour("10-adaptive-saved")
def test_a_stop_saves_only_calls_that_were_not_made(workspace: Workspace, council: Terminal, answers: Solvers) -> None:
    assert [(stop["skipped"], stop["calls"]) for stop in ask(council)["stops"]] == [
        (["draft", "points", "argue", "write"], 4)
    ]
    answers.instead["beta"] = ABSENT
    report = ask(council)
    assert report["stopped"]["skipped"] == ["points", "argue", "write"]  # gamma has answered
    assert [(stop["skipped"], stop["calls"]) for stop in report["stops"]] == [(["points", "argue", "write"], 3)]


@pytest.mark.behaviour("10-adaptive-saved")
@pytest.mark.parametrize("absent", [("alpha/argue", "beta/argue"), ("clerk",)])
def test_phases_without_an_answer_are_no_saving(
    workspace: Workspace, council: Terminal, answers: Solvers, absent: tuple[str, ...]
) -> None:
    answers.said["beta"] = make_answer("beta", "418")
    answers.disputed = {"408": ["alpha", "gamma"], "418": ["beta"]}
    answers.instead |= dict.fromkeys(absent, ABSENT)
    assert not ask(council).get("stops")


@pytest.mark.behaviour("10-adaptive-absent")
@pytest.mark.parametrize(
    ("absent", "level"),
    [(["gamma"], "LOW"), (["alpha"], "MEDIUM"), (["beta/argue"], "MEDIUM"), (["alpha/argue", "beta/argue"], "MEDIUM"), (["beta", "gamma"], "LOW")],
)  # fmt: skip
def test_an_absent_seat_in_any_phase_does_not_end_the_run(
    workspace: Workspace, council: Terminal, answers: Solvers, absent: list[str], level: str
) -> None:
    answers.said["beta"] = make_answer("beta", "418")
    answers.disputed = {"408": ["alpha", "gamma"], "418": ["beta"]}
    answers.instead |= dict.fromkeys(absent, ABSENT)
    report = ask(council)
    assert report["status"] == "complete" and mark("chair", "write") in report["answer"]
    assert report["trust"]["level"] == level, kinds(report)


@pytest.mark.behaviour("10-adaptive-absent")
def test_without_any_answer_the_run_fails(workspace: Workspace, council: Terminal, answers: Solvers) -> None:
    answers.instead |= dict.fromkeys(("alpha", "beta", "gamma"), ABSENT)
    done = council("--json", "--protocol", "adaptive", QUESTION)
    assert (done.code, done.json["status"]) == (1, "failed")


@pytest.mark.behaviour("10-adaptive-absent")
def test_without_a_chair_there_is_a_digest(workspace: Workspace, council: Terminal, answers: Solvers) -> None:
    answers.said["beta"] = make_answer("beta", "418")
    answers.disputed = {"408": ["alpha", "gamma"], "418": ["beta"]}
    answers.instead["chair"] = ABSENT
    done = council("--json", "--protocol", "adaptive", QUESTION)
    assert (done.code, done.json["status"]) == (3, "incomplete")
    assert mark("beta", "answer") in done.json["answer"]


@pytest.mark.behaviour("10-adaptive-plan")
def test_the_plan_shows_a_range_of_calls(workspace: Workspace, council: Terminal, answers: Solvers) -> None:
    plan: Any = council("--json", "--dry-run", "--protocol", "adaptive", QUESTION).json
    assert plan["calls"] == {"min": 3, "max": 7}
    assert [phase["name"] for phase in plan["phases"]] == ["answer", "draft", "points", "argue", "write"]
    assert workspace.asked() == []
