"""Detached runs: start, watch, cancel, resume in the background."""

from __future__ import annotations

import json
import os
import shutil
import signal

import pytest

from council.runs.service import Convener
from tests.acceptance.helpers import (
    QUESTION,
    Result,
    Terminal,
    Workspace,
    check_store,
    comparable,
    kill,
    mark,
    wait_for_exit,
)
from tests.acceptance.test_worker import queue_run, with_convener
from tests.acceptance.workers import workers
from tests.fake_provider import Gate, Reply
from tests.trusted_project import write_user_file

ARGS = ("--protocol", "collaborative")


def start_and_hold(workspace: Workspace, council: Terminal, phase: str = "improve") -> tuple[str, Gate]:
    """Start a detached run and hold it in a phase."""
    gate = workspace.hold(phase)
    started = council("--detach", "--json", *ARGS, QUESTION)
    assert started.code == 0, started.err
    gate.wait(count=3)
    return str(started.json["run"]), gate


# Detach


@pytest.mark.behaviour("50-detach")
@pytest.mark.parametrize("more", [(), ("-v",)])
def test_detach_prints_the_run_and_returns_before_anything_is_answered(
    detached: Workspace, more: tuple[str, ...]
) -> None:
    gate = detached.hold("draft")
    done = detached.council("--detach", *more, *ARGS, QUESTION)
    (run,) = detached.runs()
    assert (done.code, done.out) == (0, f"run {run}\n")
    *plan, last = done.err.splitlines()
    assert last == f"watch: council watch {run} · stop: council cancel {run}"
    assert plan[:1] == (["protocol collaborative: chosen by name"] if more else [])
    gate.wait(count=3)
    gate.release()
    detached.wait_until_finished(run)


@pytest.mark.behaviour("50-detach")
def test_detach_with_json_prints_only_the_run(detached: Workspace, council: Terminal) -> None:
    done = council("--detach", "--json", *ARGS, QUESTION)
    assert done.json == {"run": detached.runs()[0]}
    assert council("watch").code == 0


@pytest.mark.behaviour("50-detach")
@pytest.mark.parametrize("flags", [("--seat", "alpha=nope:m1"), ("-o", "answer.md"), ("--protocol", "nope"), ("--fail-on", "fail"), ("--format", "sarif")])  # fmt: skip
def test_an_invalid_run_is_refused_before_it_is_queued(
    workspace: Workspace, council: Terminal, flags: tuple[str, ...]
) -> None:
    refused = council("--detach", *flags, QUESTION)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert (workspace.runs(), workspace.provider.log) == ([], [])


def test_a_dry_run_queues_nothing(workspace: Workspace, council: Terminal) -> None:
    assert council("--detach", "--dry-run", *ARGS, QUESTION).code == 0
    assert workspace.runs() == []


@pytest.mark.behaviour("50-runs-queued")
def test_a_queued_run_is_listed_shown_and_reported_as_such(workspace: Workspace, council: Terminal) -> None:
    run = queue_run()
    listed = council("runs").out
    assert f"{run}  " in listed and "queued, detached  collaborative" in listed
    assert [(row["run"], row["status"], row["detached"]) for row in council("runs", "--json").json] == [(run, "queued", True)]  # fmt: skip
    shown = council("runs", "show", run)
    assert shown.code == 0
    assert f"run {run} · queued · collaborative" in shown.out
    assert "queued: no worker has started it yet" in shown.out
    assert shown.out.rstrip().endswith(f"watch: council watch {run}")
    assert council("report", run).code == 0
    assert council("report", run, "--json").json["status"] is None
    check_store(council)
    assert council("cancel", run).code == 0


def test_a_started_detached_run_is_listed_as_running(detached: Workspace, council: Terminal) -> None:
    run, gate = start_and_hold(detached, council)
    assert "running, detached  collaborative" in council("runs").out
    assert council("runs", "show", run).out.rstrip().endswith(f"watch: council watch {run}")
    check_store(council)
    gate.release()
    detached.wait_until_finished(run)


# Watch


@pytest.mark.behaviour("50-watch")
def test_watch_has_the_same_output_and_exit_code_as_a_foreground_run(detached: Workspace, council: Terminal) -> None:
    here = council("--json", *ARGS, QUESTION)
    run, gate = start_and_hold(detached, council)
    watching = detached.process("watch", run, "--json", "-v")
    gate.release()
    there = wait_for_exit(watching)
    assert (there.code, _same(there)) == (here.code, _same(here))
    lines = [line.partition(f"council {run} ")[2] for line in there.err.splitlines() if line.startswith("council")]
    assert lines[0] == "convened: collaborative, 3 seats"
    assert {"draft begins", "improve done: 3 of 3 answered"} <= set(lines)
    assert lines[-1].startswith("complete")
    plain = council("watch", run)
    assert mark("chair", "synthesise") in plain.out
    first, *_, last = plain.err.splitlines()
    assert first.startswith("draft 3/3 ") and f" · {run} · council open" in last


def _same(done: Result) -> object:
    return {key: value for key, value in comparable(done.json).items() if key != "report_path"}


@pytest.mark.behaviour("50-watch")
def test_watch_is_verbose_if_the_run_was_started_verbose(detached: Workspace, council: Terminal) -> None:
    here = council("--protocol", "triad", "--verbose", QUESTION)
    run = council("--detach", "--json", "--protocol", "triad", "--verbose", QUESTION).json["run"]
    assert council("watch", run).out == here.out
    assert mark("beta", "draft") in here.out


@pytest.mark.behaviour("50-watch")
def test_watch_with_jsonl_streams_all_events(detached: Workspace, council: Terminal) -> None:
    run, gate = start_and_hold(detached, council)
    watching = detached.process("watch", run, "--jsonl")
    gate.release()
    done = wait_for_exit(watching)
    assert done.code == 0
    kept = [seq for (seq,) in detached.rows("SELECT seq FROM events WHERE run = ? ORDER BY seq", run)]
    told = [json.loads(line) for line in done.out.splitlines()]
    assert [one["seq"] for one in told if one["seq"]] == kept
    assert (told[0]["type"], told[-1]["type"]) == ("convened", "closed")


@pytest.mark.behaviour("50-watch-left-alone")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_watch_does_not_stop_the_run(detached: Workspace, council: Terminal, number: signal.Signals) -> None:
    run, gate = start_and_hold(detached, council)
    watching = detached.process("watch", run, "-v")
    assert watching.stderr
    assert watching.stderr.readline().startswith(f"council {run} convened")
    os.killpg(watching.pid, number)
    left = wait_for_exit(watching)
    assert left.code == 130
    assert (
        f"run {run} continues in the background: `council watch {run}` shows it, `council cancel {run}` stops it"
        in left.err
    )
    assert left.out == ""
    assert detached.status(run) == "running"
    gate.release()
    detached.wait_until_finished(run)
    assert council("report", run, "--json").json["calls"] == {"made": 7, "replayed": 0, "in_doubt": 0}


def test_a_foreground_run_in_another_terminal_can_be_watched(detached: Workspace) -> None:
    gate = detached.hold("improve")
    there = detached.process(*ARGS, QUESTION)
    gate.wait(count=3)
    watching = detached.process("watch")
    gate.release()
    assert wait_for_exit(there).out == wait_for_exit(watching).out
    assert len(detached.asked()) == 7


def test_watch_reports_a_run_that_was_killed_in_another_terminal(workspace: Workspace, council: Terminal) -> None:
    gate = workspace.hold("improve")
    there = workspace.process(*ARGS, QUESTION)
    gate.wait(count=3)
    kill(there)
    (run,) = workspace.runs()
    watched = council("watch", run)
    assert watched.code == 1
    assert f"run {run} was interrupted: continue it with `council resume {run}`" in watched.err
    gate.release()


@pytest.mark.behaviour("50-watch")
def test_a_finished_run_is_shown_at_once_with_its_exit_code(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["chair"] = workspace.answers.instead["alpha"] = Reply(status=401)
    here = council("--json", *ARGS, QUESTION)
    watched = council("watch", here.json["run"], "--json")
    assert (watched.code, watched.json["status"]) == (here.code, here.json["status"])
    assert here.code == 3


def test_watching_an_unknown_run_is_a_one_line_error(workspace: Workspace, council: Terminal) -> None:
    assert council("watch").code == 2
    refused = council("watch", "r2222")
    assert (refused.code, refused.err.count("\n")) == (2, 1)


# Cancel


@pytest.mark.behaviour("50-cancel", "00-exit-cancelled")
def test_a_cancelled_run_ends_incomplete_and_can_be_resumed(detached: Workspace, council: Terminal) -> None:
    run, gate = start_and_hold(detached, council)
    watching = detached.process("watch", run, "--json")
    cancelled = council("cancel", run)
    assert cancelled.code == 0
    assert cancelled.out == f"run {run} is cancelled, its answers are kept: continue it with `council resume {run}`\n"
    watched = wait_for_exit(watching)
    assert (watched.code, watched.json["status"]) == (130, "incomplete")
    assert {row["state"] for row in watched.json["degraded"]} >= {"cancelled"}
    assert "cancelled before the last step" in council("report", run).out
    check_store(council)
    gate.release()
    resumed = council("resume", run, "--json")
    assert (resumed.code, resumed.json["status"]) == (0, "complete")
    assert [detached.asked().count(f"draft/{seat}") for seat in ("alpha", "beta", "gamma")] == [1, 1, 1]
    check_store(council)


@pytest.mark.behaviour("50-cancel")
def test_a_cancelled_queued_run_is_never_started(detached: Workspace, council: Terminal) -> None:
    run = queue_run()
    cancelled = council("cancel", run, "--json")
    assert cancelled.json == {"run": run, "status": "incomplete", "cancelled": True}
    watched = council("watch", run)
    assert (watched.code, detached.provider.log) == (130, [])
    assert council("cancel", run).out == f"run {run} has already ended (incomplete): nothing to cancel\n"
    check_store(council)


@pytest.mark.behaviour("50-cancel")
def test_a_worker_that_was_about_to_start_a_cancelled_run_does_not(detached: Workspace, council: Terminal) -> None:
    run = queue_run()

    async def cancel_and_start(convener: Convener) -> str:
        assert await convener.cancel(run)
        return (await convener.resume(run, lambda entry: None, only_open=True)).stopped

    assert with_convener(cancel_and_start) == "cancelled"
    assert detached.provider.log == []
    check_store(council)


@pytest.mark.behaviour("50-cancel")
def test_a_cancel_at_the_moment_of_starting_takes_effect(workspace: Workspace, council: Terminal) -> None:
    gate = workspace.hold("draft")
    run = queue_run()

    async def cancel_and_resume(convener: Convener) -> str:
        await convener.store.write(run, [("cancel", ())])  # requested, but not closed yet
        return (await convener.resume(run, lambda entry: None)).stopped

    assert with_convener(cancel_and_resume) == "cancelled"
    gate.release()
    check_store(council)
    assert council("resume", run, "--json").json["status"] == "complete"


@pytest.mark.behaviour("50-cancel")
def test_a_run_in_another_terminal_can_be_cancelled(workspace: Workspace, council: Terminal) -> None:
    gate = workspace.hold("draft")
    there = workspace.process(*ARGS, QUESTION)
    gate.wait(count=3)
    (run,) = workspace.runs()
    assert council("cancel", run).code == 0
    assert wait_for_exit(there).code == 130
    assert workspace.status(run) == "incomplete"
    gate.release()
    check_store(council)


def test_a_finished_run_cannot_be_cancelled(workspace: Workspace, council: Terminal) -> None:
    run = council("--json", *ARGS, QUESTION).json["run"]
    done = council("cancel", run)
    assert (done.code, done.out) == (0, f"run {run} has already ended (complete): nothing to cancel\n")
    assert council("resume", run, "--json").json["status"] == "complete"


@pytest.mark.parametrize("lost", ["folder", "config"])
def test_a_queued_run_with_a_missing_folder_can_be_cancelled(
    workspace: Workspace, council: Terminal, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = workspace.folder / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("COUNCIL_CONFIG", str(workspace.folder / "council.toml"))
    run = queue_run()
    monkeypatch.chdir(workspace.folder)
    if lost == "folder":
        shutil.rmtree(place)
    else:
        monkeypatch.setenv("COUNCIL_CONFIG", str(workspace.folder / "other.toml"))
        (workspace.folder / "other.toml").write_text("timeout = 9\n")
    assert council("cancel", run, "--json").json["status"] == "incomplete"
    check_store(council)


# Resume in the background


@pytest.mark.behaviour("50-resume-detached")
def test_an_interrupted_run_is_resumed_in_the_background(detached: Workspace, council: Terminal) -> None:
    gate = detached.hold("improve")
    there = detached.process(*ARGS, QUESTION)
    gate.wait(count=3)
    os.killpg(there.pid, signal.SIGINT)
    assert wait_for_exit(there).code == 130
    gate.release()
    done = council("resume", "--detach")
    (run,) = detached.runs()
    assert (done.code, done.out) == (0, f"run {run}\n")
    watched = council("watch", run, "--json")
    assert (watched.code, watched.json["status"]) == (0, "complete")
    assert [detached.asked().count(f"draft/{seat}") for seat in ("alpha", "beta", "gamma")] == [1, 1, 1]
    check_store(council)


@pytest.mark.behaviour("50-resume-detached")
def test_flags_of_resume_apply_in_the_background(detached: Workspace, council: Terminal) -> None:
    write_user_file('[prices."sim:*"]\ninput = 3\noutput = 15\n')
    long_text = " ".join(f"word{n}" for n in range(20_000))  # much more than was asked for
    detached.answers.instead |= {f"{seat}/draft": [Reply(text=long_text)] for seat in ("alpha", "beta", "gamma")}
    needed = council("--json", "--max-cost", "0.01", *ARGS, QUESTION).json["details"]["needed"]
    stopped = council("--json", "--max-cost", str(needed), *ARGS, QUESTION)
    assert stopped.code == 5, stopped.err
    run = stopped.json["run"]
    assert council("resume", "--detach", run, "--max-cost", "100").code == 0
    watched = council("watch", run, "--json")
    assert (watched.code, watched.json["cost"]["cap"]) == (0, 100)
    check_store(council)


def test_a_complete_run_is_not_resumed_in_the_background(workspace: Workspace, council: Terminal) -> None:
    run = council("--json", *ARGS, QUESTION).json["run"]
    refused = council("resume", "--detach", run)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "is complete" in refused.err


def test_a_run_resumed_in_the_foreground_is_not_started_by_the_worker(detached: Workspace, council: Terminal) -> None:
    run, gate = start_and_hold(detached, council)
    refused = council("resume", run)
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    (worker,) = workers(detached.data)
    assert f"run {run} is running in another process (process {worker}): `council watch {run}` waits" in refused.err
    gate.release()
    detached.wait_until_finished(run)
