"""Busy stores and suspended processes: other councils continue, readers do not wait, and nothing that was paid for
is lost.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace, kill, wait_for_exit, wait_until
from tests.fork_server import Process


def suspend(process: Process) -> None:
    os.kill(process.pid, signal.SIGSTOP)
    wait_until(lambda: _state(process.pid) == "T", "the process is suspended")


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


@pytest.mark.behaviour("40-busy-store-cancels-nothing", "40-waiting-names-the-process")
def test_a_busy_store_delays_a_paid_run_and_says_which_process_it_waits_for(workspace: Workspace) -> None:
    gate = workspace.hold("draft")
    process = workspace.process("--json", "--protocol", "triad", QUESTION)
    gate.wait(count=3)
    other = sqlite3.connect(workspace.data / "council.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    gate.release()
    assert process.stderr
    said = ""
    while "the run store is busy" not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    assert f"process {os.getpid()} is writing to it" in said
    other.execute("COMMIT")
    other.close()
    done = wait_for_exit(process)
    assert (done.code, done.json["status"]) == (0, "complete")
    assert done.json["calls"] == {"made": 4, "replayed": 0, "in_doubt": 0}


@pytest.mark.behaviour("40-suspended-process-blocks-no-other")
def test_a_suspended_council_delays_no_other(workspace: Workspace, council: Terminal) -> None:
    gate = workspace.hold("draft", "gamma")
    process = workspace.process("--json", "--protocol", "triad", QUESTION)
    gate.wait()
    suspend(process)
    (run,) = workspace.runs()
    assert run in council("runs").out
    refused = council("resume", run)
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert f"suspended (process {process.pid}): continue it with `kill -CONT {process.pid}`" in refused.err
    second = workspace.process("--json", "--protocol", "triad", QUESTION)
    gate.wait(count=2)
    gate.release()
    assert wait_for_exit(second).code == 0
    os.kill(process.pid, signal.SIGCONT)
    assert wait_for_exit(process).code == 0
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("40-cancel-suspended")
@pytest.mark.parametrize("stays", [False, True], ids=["continues", "stays suspended"])
def test_a_run_of_a_suspended_process_is_cancelled(workspace: Workspace, council: Terminal, stays: bool) -> None:
    gate = workspace.hold("draft", "gamma")
    process = workspace.process("--json", "--protocol", "triad", QUESTION)
    gate.wait()
    (run,) = workspace.runs()
    wait_until(lambda: len(workspace.rows("SELECT key FROM results")) == 2, "the other drafts are kept")
    suspend(process)
    if stays:  # something suspends it again at once
        again = "import os, sys, time\nwhile True: os.kill(int(sys.argv[1]), 19), time.sleep(0.01)"
        helper = subprocess.Popen([sys.executable, "-c", again, str(process.pid)], stderr=subprocess.DEVNULL)
    done = council("cancel", run)
    assert done.out == f"run {run} is cancelled, its answers are kept: continue it with `council resume {run}`\n"
    gate.release()
    assert wait_for_exit(process).code == (-signal.SIGKILL if stays else 130)
    if stays:
        helper.kill()
        helper.wait()
    resumed = council("resume", run, "--json")
    assert (resumed.code, workspace.asked()[3:]) == (0, ["draft/gamma", "merge/chair"])
    assert resumed.json["calls"] == {"made": 5, "replayed": 2, "in_doubt": 1}
    assert council("runs", "fsck").code == 0


# Sweeps

MAX_LISTING_S = 2.0


@pytest.mark.sweep
@pytest.mark.behaviour("40-suspended-process-blocks-no-other")
def test_processes_suspended_at_random_moments_delay_no_other(
    workspace: Workspace, council: Terminal, sweep_figures: Callable[..., None]
) -> None:
    moments, listing_times, suspended = random.Random(14), [], 0
    for _ in range(200):
        process = workspace.process("--json", "--protocol", "triad", QUESTION)
        time.sleep(moments.uniform(0.0, 0.5))
        process.send_signal(signal.SIGSTOP)
        suspended += process.poll() is None
        started = time.monotonic()
        assert wait_for_exit(workspace.process("runs")).code == 0
        listing_times.append(time.monotonic() - started)
        assert workspace.council("--json", "--protocol", "triad", QUESTION).code == 0
        process.send_signal(signal.SIGCONT)
        assert wait_for_exit(process).code == 0
    slow = sum(seconds > MAX_LISTING_S for seconds in listing_times)
    sweep_figures(
        "suspended", moments=200, suspended=suspended, failed=0, slow_listings=slow, worst_listing_s=max(listing_times)
    )
    assert council("runs", "fsck").code == 0
    assert slow == 0


def count_results(workspace: Workspace, run: str) -> int:
    return len(workspace.rows("SELECT key FROM results WHERE run = ?", run))


@pytest.mark.sweep
@pytest.mark.behaviour("40-calls-of-all-processes", "40-report-name-after-a-crash")
def test_a_run_killed_twice_counts_the_calls_of_all_processes(
    workspace: Workspace, council: Terminal, sweep_figures: Callable[..., None]
) -> None:
    chance, requests, wrong_counts, paths = random.Random(14), 0, 0, []
    for _ in range(100):
        workspace.provider.forget()
        arguments: tuple[str, ...] = ("--protocol", "triad", QUESTION)
        held = ["alpha", "beta", "gamma"]
        for _ in range(2):
            held = chance.sample(held, chance.randint(1, len(held)))
            gate = workspace.hold("draft", *held)
            process = workspace.process("--json", *arguments)
            gate.wait(count=len(held))
            run, answered = workspace.runs()[-1], 3 - len(held)
            wait_until(lambda run=run, n=answered: count_results(workspace, run) == n, "the other drafts are kept")
            kill(process)
            gate.release()
            arguments = ("resume", run)
        done = council("resume", run, "--json")
        assert done.code == 0
        made = len(workspace.provider.log)  # an undisturbed run makes 4
        requests += made
        wrong_counts += (done.json["calls"]["made"], done.json["calls"]["in_doubt"]) != (made, made - 4)
        paths.append(done.json["report_path"])
    stem = paths[0].removesuffix(".md")  # an undisturbed run takes the next number
    wrong_paths = sum(path != f"{stem}-{trial}.md" for trial, path in enumerate(paths[1:], 2))
    unwritten = sum(not path.read_text().startswith("#") for path in workspace.reports())
    sweep_figures(
        "double kill", trials=100, kills=200, requests=requests,
        wrong_counts=wrong_counts, wrong_paths=wrong_paths, unwritten_reports=unwritten,
    )  # fmt: skip
    assert (wrong_counts, wrong_paths, unwritten, len(workspace.reports())) == (0, 0, 0, 100)
    assert council("runs", "fsck").code == 0
