"""A panel on real sockets: its output, its plan, a clerk with a fallback, and kill -9 in each phase."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.acceptance.helpers import QUESTION, SEATS, Terminal, Workspace, check_store, comparable, kill, wait_for_exit
from tests.acceptance.panel.fake_clerk import PanelAnswers, write_answer
from tests.fake_provider import Reply

PANEL = ("--protocol", "panel")
pytestmark = pytest.mark.usefixtures("answers")


@pytest.mark.behaviour("10-panel-report", "10-panel-calls")
def test_json_has_the_answers_and_the_comparison(workspace: Workspace, council: Terminal) -> None:
    done = council("--json", *PANEL, QUESTION)
    report = done.json
    assert (done.code, report["status"]) == (0, "complete"), done.err
    assert sorted(workspace.asked()) == ["answer/alpha", "answer/beta", "answer/gamma", "compare/clerk"]
    assert [seat["text"] for seat in report["seats"]] == [write_answer(seat) for seat in SEATS]
    assert report["consensus"] == [{"point": "Take the train.", "seats": list(SEATS)}]
    assert report["chair"] is None


@pytest.mark.behaviour("10-panel-digest")
def test_the_text_is_the_digest_with_its_tail(council: Terminal) -> None:
    done = council(*PANEL, QUESTION)
    assert done.out.startswith("## Where they agree\n\n- Take the train.\n\n## Where they differ")
    assert [done.out.count(f"## {seat.capitalize()}\n") for seat in SEATS] == [1, 1, 1]
    assert "They agree: all 3 reach the same conclusion; they differ on: when to book" in done.out
    assert "Trust: MEDIUM — all answers are from one vendor (sim); one point is disputed" in done.out


@pytest.mark.behaviour("10-panel-calls")
def test_the_plan_shows_the_clerk_and_n_plus_one_calls(workspace: Workspace, council: Terminal) -> None:
    plan = council("--json", "--dry-run", "--seats", "5", *PANEL, QUESTION).json
    assert (plan["calls"], [row["name"] for row in plan["phases"]]) == ({"min": 6, "max": 6}, ["answer", "compare"])
    assert [helper["model"] for helper in plan["helpers"]] == ["sim:clerk"]
    assert workspace.provider.log == []


@pytest.mark.behaviour("10-points-optional")
def test_a_clerk_that_fails_is_told_above_the_answers(answers: PanelAnswers, council: Terminal) -> None:
    answers.instead["clerk/compare"] = Reply(status=500)
    done = council(*PANEL, QUESTION)
    assert done.code == 0
    assert "The answers below were not compared: the clerk did not answer." in done.out
    assert "agreement was not assessed" in done.out


@pytest.mark.behaviour("10-points-optional")
def test_the_fallback_of_the_clerk_compares(workspace: Workspace, answers: PanelAnswers, council: Terminal) -> None:
    workspace.configure(more='[seats.clerk]\nmodel = "sim:clerk"\nfallback = ["sim:spare"]\n')
    answers.instead["clerk/compare"] = Reply(status=500)
    answers.seat_of["spare"] = "spare"
    report = council("--json", *PANEL, QUESTION).json
    assert (report["comparison"]["state"], workspace.asked()[-1]) == ("answered", "compare/spare")


@pytest.mark.behaviour("10-panel-kill-resume")
@pytest.mark.parametrize(("phase", "seats"), [("answer", SEATS), ("compare", ("clerk",))])
def test_a_run_killed_during_a_phase_resumes_to_the_same_report(
    workspace: Workspace, council: Terminal, phase: str, seats: tuple[str, ...]
) -> None:
    gate = workspace.hold(phase)
    process = workspace.process("--json", *PANEL, QUESTION)
    gate.wait(count=len(seats))
    kill(process)
    gate.release()
    first = dict(zip(workspace.asked(), (seen.raw for seen in workspace.provider.log), strict=True))
    since = len(workspace.provider.log)
    done = council("resume", "--json")
    assert done.code == 0, done.err
    sent = dict(zip(workspace.asked(since), (seen.raw for seen in workspace.provider.log[since:]), strict=True))
    assert sorted(key for key in sent if key in first) == sorted(f"{phase}/{seat}" for seat in seats)
    assert all(first.get(key, raw) == raw for key, raw in sent.items())
    check_store(council)
    whole = council("--json", *PANEL, QUESTION)
    assert comparable(done.json) | {"report_path": None} == comparable(whole.json) | {"report_path": None}


@pytest.mark.behaviour("10-panel-stopped")
def test_a_run_that_is_stopped_before_the_clerk_answers_keeps_the_whole_answers(
    workspace: Workspace, council: Terminal
) -> None:
    gate = workspace.hold("compare")
    process = workspace.process("--json", *PANEL, QUESTION)
    gate.wait()
    os.killpg(process.pid, signal.SIGINT)
    done = wait_for_exit(process)
    gate.release()
    assert (done.code, done.json["status"], done.json["trust"]["level"]) == (130, "incomplete", "LOW")
    assert all(write_answer(seat) in done.json["answer"] for seat in SEATS)
    not_compared = {"state": "stopped", "why": "not compared: the run stopped first", "unknown": []}
    assert done.json["comparison"] == not_compared
    since = len(workspace.provider.log)
    resumed = council("resume", "--json")
    assert (resumed.code, resumed.json["status"]) == (0, "complete"), resumed.err
    assert workspace.asked(since) == ["compare/clerk"]


@pytest.mark.behaviour("00-exclude-family")
def test_an_unknown_vendor_is_one_line_and_sends_nothing(workspace: Workspace, council: Terminal) -> None:
    done = council(*PANEL, "--exclude-family", "simm", QUESTION)
    assert (done.code, workspace.provider.log) == (2, [])
    [line] = [line for line in done.err.splitlines() if "unknown vendor" in line]
    assert '--exclude-family: unknown vendor "simm": did you mean "sim"?' in line
    wrong = council("--json", *PANEL, "--exclude-family", "sim", QUESTION)
    assert "--exclude-family sim leaves no member that can be called" in json.loads(wrong.out)["error"]
