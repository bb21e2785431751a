"""kill -9 in every phase of refine, then `council resume`, and forks: nothing is lost, nothing is paid twice."""

from __future__ import annotations

import shutil

import pytest

from tests.acceptance.helpers import (
    QUESTION,
    SEATS,
    Json,
    Terminal,
    Workspace,
    check_store,
    comparable,
    kill,
    mark,
)
from tests.acceptance.refine.fake_authors import Authors, make_error

REFINE = ("--json", "--protocol", "refine")
FATAL = make_error("FATAL", "It costs 5,000 euros in all", "The train is not counted.")
PHASES = {
    **dict.fromkeys(("draft", "attack", "rewrite"), SEATS),
    **dict.fromkeys(("synthesise", "fix"), ("chair",)),
    **dict.fromkeys(("check", "check-again"), ("beta", "gamma")),
}


@pytest.fixture
def authors(answers: Authors) -> Authors:
    """Authors whose text is corrected after a fatal error, and checked again."""
    answers.errors["check/beta"] = [FATAL]
    return answers


def list_keys(*phases: str) -> list[str]:
    return sorted(f"{phase}/{seat}" for phase in phases for seat in PHASES[phase])


def finish_run(council: Terminal, *flags: str) -> Json:
    done = council(*REFINE, *flags, QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete"), done.err
    return done.json


@pytest.mark.usefixtures("authors")
@pytest.mark.behaviour("10-refine-kill-resume")
@pytest.mark.parametrize("phase", ["draft", "attack", "rewrite", "synthesise", "check", "fix", "check-again"])
def test_a_run_killed_during_a_phase_resumes_to_the_same_report(
    workspace: Workspace, council: Terminal, phase: str
) -> None:
    gate = workspace.hold(phase)
    process = workspace.process(*REFINE, QUESTION)
    gate.wait(count=len(PHASES[phase]))
    kill(process)
    gate.release()
    first = {key: seen.raw for key, seen in zip(workspace.asked(), workspace.provider.log, strict=True)}
    since = len(workspace.provider.log)
    done = council("resume", "--json")
    assert done.code == 0, done.err
    sent = dict(zip(workspace.asked(since), (seen.raw for seen in workspace.provider.log[since:]), strict=True))
    assert sorted(key for key in sent if key in first) == list_keys(phase)
    assert all(first.get(key, raw) == raw for key, raw in sent.items())
    assert sorted({*first, *sent}) == list_keys(*PHASES)
    check_store(council)
    shutil.rmtree(workspace.data / "reports")
    assert comparable(done.json) == comparable(finish_run(council))


# Forks


@pytest.mark.behaviour("10-refine-fork")
@pytest.mark.parametrize("phase", ["draft", "attack", "rewrite", "synthesise", "check", "fix"])
def test_a_fork_without_changes_sends_no_requests(
    workspace: Workspace, council: Terminal, authors: Authors, phase: str
) -> None:
    before = finish_run(council)
    workspace.provider.forget()
    fork = council("fork", before["run"], "--from", phase, "--json")
    assert (fork.code, workspace.provider.log) == (0, [])
    assert fork.json["calls"] == {"made": 0, "replayed": len(list_keys(*PHASES)), "in_doubt": 0}
    assert {key: fork.json[key] for key in ("answer", "attacks", "check", "notes", "trust", "tail")} == {
        key: before[key] for key in ("answer", "attacks", "check", "notes", "trust", "tail")
    }
    check_store(council)


@pytest.mark.behaviour("10-refine-fork")
def test_a_fork_from_synthesise_with_another_chair_has_its_text_checked(
    workspace: Workspace, council: Terminal, authors: Authors
) -> None:
    run = finish_run(council)["run"]
    workspace.provider.forget()
    authors.seat_of["other"] = "chair"
    authors.base = "beta"
    authors.errors = {}
    fork = council("fork", run, "--from", "synthesise", "--seat", "chair=sim:other", "--json")
    assert (fork.code, fork.json["status"]) == (0, "complete"), fork.err
    assert workspace.asked() == ["synthesise/chair", "check/alpha"]  # gamma has read the same text before
    assert mark("chair", "synthesise") in fork.json["answer"]
    assert fork.json["tail"][0] == "Outcome: built on beta's answer; checked by alpha and gamma: no error found"
    check_store(council)


@pytest.mark.behaviour("10-refine-fork")
def test_a_fork_from_check_with_a_reader_that_finds_nothing_keeps_the_text_uncorrected(
    workspace: Workspace, council: Terminal, authors: Authors
) -> None:
    before = finish_run(council)
    workspace.provider.forget()
    authors.seat_of["other"] = "beta"
    authors.errors = {}
    fork = council("fork", before["run"], "--from", "check", "--seat", "beta=sim:other", "--json")
    assert (fork.code, workspace.asked()) == (0, ["check/beta"]), fork.err
    assert mark("chair", "fix") in before["answer"]
    assert mark("chair", "fix") not in fork.json["answer"]
    assert fork.json["check"]["errors"] == []
    check_store(council)


@pytest.mark.behaviour("10-refine-fork")
def test_a_fork_from_check_of_a_checked_answer_asks_only_the_other_reader(
    workspace: Workspace, council: Terminal, answers: Authors
) -> None:
    done = council("--json", "--protocol", "collaborative", "--check", QUESTION)
    workspace.provider.forget()
    answers.seat_of["other"] = "beta"
    answers.errors["check/beta"] = [FATAL | {"hits": "It costs 4,000 euros in all"}]
    fork = council("fork", done.json["run"], "--from", "check", "--seat", "beta=sim:other", "--json")
    assert (fork.code, fork.json["status"]) == (0, "complete"), fork.err
    assert workspace.asked() == ["check/beta", "fix/chair", "check-again/alpha", "check-again/beta"]
    assert mark("chair", "fix") in fork.json["answer"]
    check_store(council)
