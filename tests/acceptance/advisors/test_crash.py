"""kill -9 in every round, then `council resume`: the same report, no call repeated."""

from __future__ import annotations

import shutil

import pytest

from tests.acceptance.advisors.fake_advisors import ADVISORS
from tests.acceptance.helpers import QUESTION, Json, Terminal, Workspace, comparable, kill, wait_until

DEBATE = ("--flow", "debate")
IN_TURN = ("--flow", "sequential", "--rounds", "2")
EVERY_ROUND = [f"r{n}" for n in (1, 2, 3)]


def resume_and_check(workspace: Workspace, council: Terminal, again: list[str]) -> Json:
    """Resume, and check that only the requests in `again` are repeated, byte for byte."""
    first = {key: seen.raw for key, seen in zip(workspace.asked(), workspace.provider.log, strict=True)}
    since = len(workspace.provider.log)
    done = council("resume", "--json")
    assert done.code == 0, done.err
    sent = workspace.asked(since)
    assert sorted(key for key in sent if key in first) == sorted(again)
    assert len(set(sent)) == len(sent)
    for key, seen in zip(sent, workspace.provider.log[since:], strict=True):
        assert first.get(key, seen.raw) == seen.raw, key
    assert done.json["calls"] == {
        "made": len(workspace.provider.log),  # by all processes
        "replayed": len({*first, *sent}) - len(sent),
        "in_doubt": len(workspace.provider.log) - len({*first, *sent}),
    }
    fsck = council("runs", "fsck")
    assert (fsck.code, fsck.err) == (0, ""), fsck.out
    return comparable(done.json)


def uninterrupted_report(workspace: Workspace, council: Terminal, flags: tuple[str, ...]) -> Json:
    """Return the report of an uninterrupted run, saved under the same name."""
    shutil.rmtree(workspace.data / "reports")
    return comparable(council("--json", *flags, QUESTION).json)


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("issue-4-advisors-kill-resume")
@pytest.mark.parametrize("phase", [*EVERY_ROUND, "referee"])
def test_a_debate_killed_during_a_round_resumes_to_the_same_report(
    workspace: Workspace, council: Terminal, phase: str
) -> None:
    keys = ["referee/referee"] if phase == "referee" else [f"{phase}/{name}" for name in ADVISORS]
    gate = workspace.hold(phase)
    process = workspace.process("--json", *DEBATE, QUESTION)
    gate.wait(count=len(keys))
    kill(process)
    gate.release()
    assert resume_and_check(workspace, council, keys) == uninterrupted_report(workspace, council, DEBATE)


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("issue-4-advisors-kill-resume", "40-committed-never-bought-again")
@pytest.mark.parametrize("late", ["r1/visionary", "r1/skeptic", "r2/pragmatist", "r2/skeptic", "referee/referee"])
def test_a_sequence_killed_during_a_turn_repeats_only_that_turn(
    workspace: Workspace, council: Terminal, late: str
) -> None:
    order = [f"r{n}/{name}" for n in (1, 2) for name in ADVISORS] + ["referee/referee"]
    gate = workspace.hold(*late.split("/"))
    process = workspace.process("--json", *IN_TURN, QUESTION)
    gate.wait()
    wait_until(
        lambda: len(workspace.rows("SELECT key FROM results")) == order.index(late), "earlier results are stored"
    )
    kill(process)
    gate.release()
    assert resume_and_check(workspace, council, [late]) == uninterrupted_report(workspace, council, IN_TURN)
