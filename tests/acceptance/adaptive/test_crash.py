"""kill -9 in every phase of adaptive, then `council resume`, and forks: nothing is lost, nothing is paid twice."""

from __future__ import annotations

import shutil

import pytest

from tests.acceptance.adaptive.fake_solvers import ABSENT, QUESTION, Solvers, make_answer
from tests.acceptance.helpers import Json, Terminal, Workspace, check_store, comparable, kill, mark

ADAPTIVE = ("--json", "--protocol", "adaptive")
LONG = {"answer": 2, "points": 1, "argue": 2, "write": 1}  # requests of a phase that wait at once; gamma answers later


def finish_run(council: Terminal) -> Json:
    done = council(*ADAPTIVE, QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete"), done.err
    return done.json


@pytest.fixture
def dispute(answers: Solvers) -> Solvers:
    answers.said["beta"] = make_answer("beta", "418")
    answers.disputed = {"408": ["alpha", "gamma"], "418": ["beta"]}
    return answers


def kill_and_resume(workspace: Workspace, council: Terminal, phase: str, count: int) -> None:
    gate = workspace.hold(phase)
    process = workspace.process(*ADAPTIVE, QUESTION)
    gate.wait(count=count)
    kill(process)
    gate.release()
    first = dict(zip(workspace.asked(), (seen.raw for seen in workspace.provider.log), strict=True))
    since = len(workspace.provider.log)
    done = council("resume", "--json")
    assert done.code == 0, done.err
    sent = dict(zip(workspace.asked(since), (seen.raw for seen in workspace.provider.log[since:]), strict=True))
    again = [key for key in sent if key in first]
    assert len(again) == count and all(key.startswith(f"{phase}/") for key in again)
    assert all(first.get(key, raw) == raw for key, raw in sent.items())
    check_store(council)
    shutil.rmtree(workspace.data / "reports")
    assert comparable(done.json) == comparable(finish_run(council))


@pytest.mark.behaviour("10-adaptive-kill-resume")
@pytest.mark.parametrize("phase", list(LONG))
def test_a_dispute_killed_during_a_phase_resumes_to_the_same_report(
    workspace: Workspace, council: Terminal, dispute: Solvers, phase: str
) -> None:
    kill_and_resume(workspace, council, phase, LONG[phase])


@pytest.mark.behaviour("10-adaptive-kill-resume")
@pytest.mark.parametrize(("phase", "count"), [("answer", 2), ("check", 1)])
def test_a_stop_killed_during_a_phase_resumes_to_the_same_stop(
    workspace: Workspace, council: Terminal, answers: Solvers, phase: str, count: int
) -> None:
    kill_and_resume(workspace, council, phase, count)


@pytest.mark.behaviour("10-adaptive-kill-resume")
@pytest.mark.parametrize(("held", "again"), [("gamma", ["answer/gamma", "answer/delta"]), ("delta", ["answer/delta"])])
def test_a_run_killed_while_a_stand_in_answers_asks_no_answered_or_absent_seat_again(
    workspace: Workspace, council: Terminal, answers: Solvers, held: str, again: list[str]
) -> None:
    answers.seat_of["delta"] = "delta"
    answers.instead |= dict.fromkeys(("alpha", "beta"), ABSENT)
    members = ("north:alpha", "east:beta", "south:gamma", "west:delta")
    flags = [flag for member in members for flag in ("-m", member)]
    gate = workspace.hold("answer", held)
    process = workspace.process(*ADAPTIVE, *flags, "--seat", "chair=west:chair", QUESTION)
    gate.wait(count=1)
    kill(process)
    gate.release()
    answers.instead.clear()  # they would answer now, but their absence is final
    since = len(workspace.provider.log)
    done = council("resume", "--json")
    assert (done.code, done.json["status"]) == (0, "complete"), done.err
    asked = workspace.asked(since)
    assert asked == [*again, "check/delta"]
    assert done.json["stopped"]["why"].startswith("gamma and delta reached the same conclusion")
    check_store(council)


@pytest.mark.behaviour("10-adaptive-fork")
@pytest.mark.parametrize("phase", ["answer", "draft", "points", "argue", "write"])
def test_a_fork_without_changes_sends_no_requests(
    workspace: Workspace, council: Terminal, dispute: Solvers, phase: str
) -> None:
    before = finish_run(council)
    workspace.provider.forget()
    fork = council("fork", before["run"], "--from", phase, "--json")
    assert (fork.code, workspace.provider.log) == (0, []), fork.err
    names = ("answer", "continued", "argued", "notes", "trust", "tail")
    assert {name: fork.json[name] for name in names} == {name: before[name] for name in names}
    check_store(council)


@pytest.mark.behaviour("10-adaptive-fork")
def test_a_fork_from_the_check_with_another_opinion_goes_on(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    before = finish_run(council)
    assert before["stopped"]
    workspace.provider.forget()
    answers.confirmation = {"same_conclusion": False, "errors": []}
    answers.seat_of["other"] = "beta"
    fork = council("fork", before["run"], "--from", "check", "--seat", "beta=east:other", "--json")
    assert (fork.code, fork.json["status"]) == (0, "complete"), fork.err
    assert [row["reason"] for row in fork.json["continued"]] == ["not_confirmed"] and "stopped" not in fork.json
    assert mark("chair", "write") in fork.json["answer"]
    check_store(council)
