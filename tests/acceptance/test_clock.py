"""The clock of the system is set while a council runs: durations, order, deadlines, retention and day budgets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.helpers import QUESTION, Result, Terminal, Workspace, kill, wait_for_exit
from tests.system_faults import ShiftedClock

HOUR, DAY = 3600, 86400
ASK = ("--json", "--protocol", "triad", QUESTION)


@pytest.fixture
def clock(tmp_path: Path) -> ShiftedClock:
    return ShiftedClock(tmp_path)


def run_over_jump(workspace: Workspace, clock: ShiftedClock, seconds: int, *arguments: str) -> Result:
    """Run a council, and set the clock while a draft is in flight."""
    gate = workspace.hold("draft", "gamma")
    process = clock.start(arguments or ASK, workspace.folder)
    gate.wait()
    clock.set(seconds)
    gate.release()
    return wait_for_exit(process)


@pytest.mark.behaviour("40-clock-jump")
@pytest.mark.parametrize("jump", [-HOUR, DAY], ids=["back", "forward"])
def test_a_clock_that_is_set_changes_no_duration_and_no_order(
    workspace: Workspace, council: Terminal, clock: ShiftedClock, jump: int
) -> None:
    workspace.configure(more="[store]\nkeep_days = 1\n")
    done = run_over_jump(workspace, clock, jump, *ASK[:-1], "--timeout", "60", QUESTION)
    assert (done.code, done.json["status"]) == (0, "complete"), done
    assert 0 <= done.json["seconds"] < HOUR
    assert all(0 <= seat["seconds"] < HOUR for seat in [*done.json["seats"], done.json["chair"]])
    times = [at for (at,) in workspace.rows("SELECT at FROM events ORDER BY seq")]
    assert times == sorted(times) and times[-1] - times[0] < HOUR
    later = wait_for_exit(clock.start(ASK, workspace.folder))
    assert later.code == 0, later
    if jump < 0:
        assert [row for (row,) in workspace.rows("SELECT id FROM runs ORDER BY created")] == [
            later.json["run"],
            done.json["run"],
        ]
        runs = [row["run"] for row in council("runs", "--json").json]
        assert runs == [later.json["run"], done.json["run"]]
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-clock-jump")
def test_a_clock_set_forward_during_a_run_removes_no_run(
    workspace: Workspace, council: Terminal, clock: ShiftedClock
) -> None:
    workspace.configure(more="[store]\nkeep_days = 1\n")
    first = council(*ASK)
    assert first.code == 0
    assert run_over_jump(workspace, clock, 2 * DAY).code == 0
    assert first.json["run"] in workspace.runs()


@pytest.mark.behaviour("40-clock-jump")
def test_a_run_killed_before_the_clock_was_set_is_resumed(
    workspace: Workspace, council: Terminal, clock: ShiftedClock
) -> None:
    for jump in (-HOUR, DAY):
        clock.set(0)
        gate = workspace.hold("merge")
        process = clock.start(ASK, workspace.folder)
        gate.wait()
        kill(process)
        gate.release()
        clock.set(jump)
        done = wait_for_exit(clock.start(("resume", "--json"), workspace.folder))
        assert (done.code, done.json["calls"]) == (0, {"made": 5, "replayed": 3, "in_doubt": 1}), done
        assert 0 <= done.json["seconds"] < HOUR
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-clock-jump")
def test_the_day_budget_counts_by_the_date_of_each_request(
    workspace: Workspace, council: Terminal, clock: ShiftedClock
) -> None:
    cap = 0.20
    workspace.configure(more=f'[prices."sim:*"]\ninput = 1.0\noutput = 10.0\n\n[budget]\nmax_cost_per_day = {cap}\n')
    codes = [run_over_jump(workspace, clock, jump).code for jump in (0, DAY, 0, -HOUR)]
    days = dict(workspace.rows("SELECT day, sum(coalesce(charged, reserved)) FROM spending GROUP BY day"))
    assert codes[0] == 0 and len(days) >= 2
    assert all(spent <= cap * 1e9 for spent in days.values()), json.dumps(days)
    assert council("runs", "fsck").code == 0
