"""Streamed text of unfinished statements: it is stored for other processes to show, and removed when the run or its
process ends.
"""

from __future__ import annotations

import signal

import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace, kill, wait_for_exit, wait_until
from tests.fake_provider import Reply
from tests.fork_server import Process

ARGS = ("--protocol", "triad", QUESTION)
pytestmark = pytest.mark.behaviour("40-live-table")


def count_live(workspace: Workspace) -> int:
    return int(workspace.rows("SELECT count(*) FROM live_parts")[0][0])


def start_and_stall(workspace: Workspace, *flags: str) -> Process:
    """Start a council whose third draft stops in the middle; return when its text is stored."""
    usual = workspace.provider.answer
    assert usual
    workspace.provider.answer = lambda seen: Reply(stall=600) if seen.n == 3 else usual(seen)
    process = workspace.process("--json", *flags, *ARGS)
    wait_until(lambda: workspace.runs() and count_live(workspace), "the text is stored")
    return process


REMEDIES = {
    "resume": ("resume", "--json"),
    "cancel": ("cancel",),
    "the next council": ARGS,
    "repair": ("runs", "fsck", "--repair"),
    "removal": ("runs", "rm", "--yes"),
}


@pytest.mark.parametrize("remedy", REMEDIES)
def test_text_of_a_killed_process_is_removed(workspace: Workspace, council: Terminal, remedy: str) -> None:
    kill(start_and_stall(workspace))
    (run,) = workspace.runs()
    assert count_live(workspace)
    names_run = remedy in ("resume", "cancel", "removal")
    done = council(*REMEDIES[remedy], *([run] if names_run else []))
    assert done.code == 0, done.err
    assert count_live(workspace) == 0
    assert council("runs", "fsck").code == 0


def test_text_of_an_interrupted_run_is_removed(workspace: Workspace) -> None:
    process = start_and_stall(workspace)
    process.send_signal(signal.SIGINT)
    assert wait_for_exit(process).code == 130
    assert count_live(workspace) == 0


def test_text_of_a_cancelled_run_is_removed(workspace: Workspace, council: Terminal) -> None:
    process = start_and_stall(workspace)
    assert council("cancel", *workspace.runs()).code == 0
    assert wait_for_exit(process).code == 130
    assert count_live(workspace) == 0


def test_text_of_a_failed_seat_is_removed(workspace: Workspace) -> None:
    process = start_and_stall(workspace, "--timeout", "3")
    done = wait_for_exit(process)
    assert (done.code, done.json["seats"][2]["state"]) == (0, "timed_out")
    assert count_live(workspace) == 0


def test_text_of_a_running_council_is_not_removed_by_another_one(workspace: Workspace, council: Terminal) -> None:
    process = start_and_stall(workspace)
    assert council(*ARGS).code == 0
    assert count_live(workspace)
    kill(process)
