"""kill -9 in every phase, then `council resume`: the same report, no call repeated."""

from __future__ import annotations

import shutil

import pytest

from tests.acceptance.helpers import QUESTION, Json, Terminal, Workspace, comparable, kill, wait_until
from tests.acceptance.ranking.fake_readers import keys

RANKING = ("--json", "--protocol", "ranking")


def resume_and_check(workspace: Workspace, council: Terminal, again: list[str]) -> Json:
    """Resume, and check that only the requests in `again` are repeated, byte for byte, including labels and order."""
    first = {key: seen.raw for key, seen in zip(workspace.asked(), workspace.provider.log, strict=True)}
    since = len(workspace.provider.log)
    done = council("resume", "--json")
    assert done.code == 0, done.err
    sent = dict(zip(workspace.asked(since), (seen.raw for seen in workspace.provider.log[since:]), strict=True))
    assert sorted(key for key in sent if key in first) == sorted(again)
    assert all(first.get(key, raw) == raw for key, raw in sent.items())
    fsck = council("runs", "fsck")
    assert (fsck.code, fsck.err) == (0, ""), fsck.out
    return comparable(done.json)


def uninterrupted_report(workspace: Workspace, council: Terminal) -> Json:
    shutil.rmtree(workspace.data / "reports")
    return comparable(council(*RANKING, QUESTION).json)


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("10-ranking-kill-resume")
@pytest.mark.parametrize("phase", ["answer", "rank", "synthesise"])
def test_a_ranking_killed_during_a_phase_resumes_to_the_same_report(
    workspace: Workspace, council: Terminal, phase: str
) -> None:
    gate = workspace.hold(phase)
    process = workspace.process(*RANKING, QUESTION)
    gate.wait(count=len(keys(phase)))
    kill(process)
    gate.release()
    assert resume_and_check(workspace, council, keys(phase)) == uninterrupted_report(workspace, council)


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("10-ranking-kill-resume", "40-committed-never-bought-again")
def test_a_ranking_killed_during_one_ballot_repeats_only_that_ballot(workspace: Workspace, council: Terminal) -> None:
    gate = workspace.hold("rank", "gamma")
    process = workspace.process(*RANKING, QUESTION)
    gate.wait()
    wait_until(lambda: len(workspace.rows("SELECT key FROM results")) == 5, "the other ballots are kept")
    kill(process)
    gate.release()
    assert resume_and_check(workspace, council, ["rank/gamma"]) == uninterrupted_report(workspace, council)
