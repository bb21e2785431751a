"""Ctrl-C and SIGTERM leave a resumable run and a report that says so."""

from __future__ import annotations

import os
import signal

import pytest

from tests.acceptance.helpers import QUESTION, SEATS, Terminal, Workspace, mark, wait_for_exit


@pytest.mark.behaviour("00-exit-interrupted", "40-interrupt-resumable")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("phase", ["draft", "improve"])
def test_an_interrupted_run_is_marked_incomplete_and_resumes(
    workspace: Workspace, council: Terminal, number: signal.Signals, phase: str
) -> None:
    gate = workspace.hold(phase)
    process = workspace.process("--protocol", "collaborative", QUESTION)
    held = gate.wait(count=3)
    os.killpg(process.pid, number)
    done = wait_for_exit(process)
    assert done.code == 130
    assert "Traceback" not in done.err
    assert done.out.startswith("! INCOMPLETE: interrupted before the last step; `council resume ")
    (run,) = workspace.runs()
    assert f"resume: council resume {run}" in done.err
    stopped = council("report", "--format", "json", run).json
    assert stopped["status"] == "incomplete"
    (path,) = workspace.reports()
    assert stopped["report_path"] == str(path)
    assert path.read_text().startswith("# INCOMPLETE: ")
    assert [mark(seat, "draft") in path.read_text() for seat in SEATS] == [phase == "improve"] * 3
    assert council("runs", "fsck").code == 0
    gate.release()
    sent = len(workspace.provider.log)
    resumed = council("resume", "--json")
    assert (resumed.code, resumed.json["status"]) == (0, "complete")
    assert f"resuming: {3 if phase == 'improve' else 0} statements" in resumed.err
    assert resumed.json["report_path"] == stopped["report_path"]
    assert resumed.json["calls"]["in_doubt"] == 3
    again = {seen.model: seen.raw for seen in workspace.provider.log[sent : sent + 3]}
    assert again == {seen.model: seen.raw for seen in held}
    assert workspace.asked().count("draft/alpha") == (2 if phase == "draft" else 1)
    assert [path] == workspace.reports()
    assert "INCOMPLETE" not in path.read_text()
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("00-json-whatever-status", "00-exit-interrupted")
def test_an_interrupted_run_still_prints_its_report_object(workspace: Workspace) -> None:
    gate = workspace.hold("triage")
    process = workspace.process("--json", "--protocol", "adversarial", QUESTION)
    gate.wait()
    os.killpg(process.pid, signal.SIGINT)
    done = wait_for_exit(process)
    assert (done.code, done.json["status"], done.json["calls"]["made"]) == (130, "incomplete", 4)
    assert done.json["answer"].startswith("## Interrupted: digest of statements\n")


@pytest.mark.behaviour("40-interrupt-resumable")
def test_a_closed_event_pipe_stops_the_run_and_leaves_it_resumable(workspace: Workspace, council: Terminal) -> None:
    gate = workspace.hold("improve")
    process = workspace.process("--jsonl", "--protocol", "collaborative", QUESTION)
    gate.wait(count=3)
    assert process.stdout
    process.stdout.close()
    gate.release()
    assert process.wait(60) == 130
    resumed = council("resume", "--json")
    assert (resumed.code, resumed.json["status"]) == (0, "complete")
    assert workspace.asked().count("draft/alpha") == 1


def test_a_closed_progress_pipe_does_not_stop_the_run(workspace: Workspace) -> None:
    gate = workspace.hold("improve")
    process = workspace.process("--protocol", "collaborative", QUESTION)
    gate.wait(count=3)
    assert process.stderr and process.stdout
    process.stderr.close()
    gate.release()
    assert mark("chair", "synthesise") in str(process.stdout.read())
    assert process.wait(60) == 0
