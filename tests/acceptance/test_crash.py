"""kill -9 in every phase of every protocol, then `council resume`: nothing is lost, nothing is paid twice."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
import pytest

from council.runs import report_files
from tests.acceptance.helpers import (
    PHASES,
    QUESTION,
    Json,
    Result,
    Terminal,
    Workspace,
    comparable,
    kill,
    mark,
    wait_for_exit,
    wait_until,
)
from tests.fake_provider import FakeProvider, Reply
from tests.fork_server import Process


@pytest.fixture(autouse=True, params=["sqlite", pytest.param("postgres", marks=pytest.mark.sweep)])
def database_in_use(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Store the runs in SQLite, and in a sweep in PostgreSQL."""
    if request.param == "postgres":
        monkeypatch.setenv("COUNCIL_DATABASE", request.getfixturevalue("database"))
    return str(request.param)


EVERY_PHASE = [(protocol, phase) for protocol, phases in PHASES.items() for phase in phases]
TOGETHER = [(protocol, phase) for protocol, phase in EVERY_PHASE if len(PHASES[protocol][phase]) > 1]


@cache
def reference_report(protocol: str, folder: Path) -> Json:
    """Return the report of a run without a crash."""
    folder.mkdir(exist_ok=True)
    with FakeProvider() as provider:
        Workspace(folder, provider)
        arguments = ("--json", "--protocol", protocol, QUESTION)
        done = wait_for_exit(Process(arguments, folder, COUNCIL_DATA=f"{folder}-data"))
    assert done.code == 0, done.err
    return comparable(done.json)


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("calm")


def keys_before(protocol: str, phase: str) -> list[str]:
    """Return the keys of the phases before this one."""
    names = list(PHASES[protocol])
    return [f"{name}/{seat}" for name in names[: names.index(phase)] for seat in PHASES[protocol][name]]


def keys_of(protocol: str, phase: str) -> list[str]:
    return [f"{phase}/{seat}" for seat in PHASES[protocol][phase]]


def resume_and_check(workspace: Workspace, since: int, again: list[str], protocol: str) -> Result:
    """Resume, and check that only the requests in `again` were repeated, with the same bytes."""
    first = {key: seen.raw for key, seen in zip(workspace.asked(), workspace.provider.log, strict=True)}
    done = workspace.council("resume", "--json")
    assert done.code == 0, done.err
    sent = workspace.asked(since)
    every = [key for phase in PHASES[protocol] for key in keys_of(protocol, phase)]
    assert sorted(key for key in sent if key in first) == sorted(again)
    assert sorted({*first, *sent}) == sorted(every)
    assert len(set(sent)) == len(sent)
    for key, seen in zip(sent, workspace.provider.log[since:], strict=True):
        assert first.get(key, seen.raw) == seen.raw
    made = len(workspace.provider.log)  # by all processes
    assert done.json["calls"] == {"made": made, "replayed": len(every) - len(sent), "in_doubt": made - len(every)}
    return done


def check_store(council: Terminal) -> None:
    done = council("runs", "fsck")
    assert (done.code, done.err) == (0, ""), done.out


@pytest.mark.behaviour(
    "40-kill-resume-every-phase", "40-resume-byte-identical", "40-in-doubt-counted", "40-fsck", "40-replay-asks-nobody"
)
@pytest.mark.parametrize(("protocol", "phase"), EVERY_PHASE)
def test_run_killed_in_a_phase_resumes_to_the_same_report(
    workspace: Workspace, council: Terminal, calm: Path, protocol: str, phase: str
) -> None:
    gate = workspace.hold(phase)
    process = workspace.process("--json", "--protocol", protocol, QUESTION)
    gate.wait(count=len(PHASES[protocol][phase]))
    kill(process)
    gate.release()
    done = resume_and_check(workspace, len(workspace.provider.log), keys_of(protocol, phase), protocol)
    assert comparable(done.json) == reference_report(protocol, calm / protocol)
    check_store(council)
    sent = len(workspace.provider.log)
    assert council("runs", "replay", "--json").json == done.json
    assert len(workspace.provider.log) == sent


@pytest.mark.behaviour("40-committed-never-bought-again")
@pytest.mark.parametrize(("protocol", "phase"), TOGETHER)
def test_run_killed_in_a_phase_resends_only_the_open_request(
    workspace: Workspace, council: Terminal, calm: Path, protocol: str, phase: str
) -> None:
    late = PHASES[protocol][phase][-1]
    gate = workspace.hold(phase, late)
    process = workspace.process("--json", "--protocol", protocol, QUESTION)
    gate.wait()
    answered = keys_before(protocol, phase) + keys_of(protocol, phase)[:-1]
    wait_until(lambda: len(workspace.rows("SELECT key FROM results")) == len(answered), "the other answers are kept")
    kill(process)
    gate.release()
    done = resume_and_check(workspace, len(workspace.provider.log), [f"{phase}/{late}"], protocol)
    assert comparable(done.json) == reference_report(protocol, calm / protocol)
    check_store(council)


@contextmanager
def blocked_writes(workspace: Workspace) -> Iterator[None]:
    """Let no process write inside the block."""
    if url := os.environ.get("COUNCIL_DATABASE"):
        with psycopg.connect(url) as other:
            other.execute("LOCK TABLE council.settled IN ACCESS EXCLUSIVE MODE")
            yield
            other.rollback()
    else:
        writer = sqlite3.connect(workspace.data / "council.db")
        writer.execute("BEGIN IMMEDIATE")
        yield
        writer.close()


@pytest.mark.behaviour("40-in-doubt-counted")
@pytest.mark.parametrize(("protocol", "phase"), [("collaborative", "improve"), ("adversarial", "verdict")])
def test_answer_that_was_not_stored_is_in_doubt(
    workspace: Workspace, council: Terminal, calm: Path, protocol: str, phase: str
) -> None:
    gate = workspace.hold(phase)
    process = workspace.process("--json", "--protocol", protocol, QUESTION)
    held = gate.wait(count=len(PHASES[protocol][phase]))
    with blocked_writes(workspace):
        gate.release()
        wait_until(lambda: all(seen.ended for seen in held), "the answers have left the endpoint")
        kill(process)
    done = resume_and_check(workspace, len(workspace.provider.log), keys_of(protocol, phase), protocol)
    assert comparable(done.json) == reference_report(protocol, calm / protocol)
    check_store(council)


@pytest.mark.behaviour("40-kill-during-resume")
@pytest.mark.parametrize("protocol", ["collaborative", "adversarial"])
def test_run_killed_again_while_resuming(workspace: Workspace, council: Terminal, calm: Path, protocol: str) -> None:
    first, _, second, *_ = PHASES[protocol]
    for phase, words in ((first, ("--protocol", protocol, QUESTION)), (first, ("resume",)), (second, ("resume",))):
        gate = workspace.hold(phase)
        process = workspace.process("--json", *words)
        gate.wait(count=len(PHASES[protocol][phase]))
        kill(process)
        gate.release()
    sent = len(workspace.provider.log)
    done = resume_and_check(workspace, sent, keys_of(protocol, second), protocol)
    assert comparable(done.json) == reference_report(protocol, calm / protocol)
    assert [workspace.asked().count(key) for key in keys_of(protocol, first)] == [3, 3, 3]
    check_store(council)


@pytest.mark.behaviour("40-one-owner")
def test_second_resume_is_refused_and_sends_nothing(workspace: Workspace, council: Terminal) -> None:
    gate = workspace.hold("draft")
    process = workspace.process("--json", QUESTION)
    gate.wait(count=3)
    (run,) = workspace.runs()
    while_it_runs = council("resume", run)
    kill(process)
    first = workspace.process("resume", "--json", run)
    gate.wait(count=6)
    second = council("resume", run)
    by_default = council("resume", "--json")
    assert len(workspace.provider.log) == 6
    for refused in (while_it_runs, second):
        assert refused.code == 1
        assert refused.out == ""
        assert refused.err.count("\n") == 1
        assert f"run {run} is running in another process" in refused.err
    assert by_default.json["exit"] == 1
    gate.release()
    assert wait_for_exit(first).code == 0
    assert len(workspace.provider.log) == 10


@pytest.mark.behaviour("40-replay-asks-nobody", "40-resume-complete-asks-nobody")
def test_a_finished_run_is_replayed_and_resumed_without_a_request(workspace: Workspace, council: Terminal) -> None:
    done = council("--json", "--protocol", "adversarial", QUESTION)
    (run,) = workspace.runs()
    sent = len(workspace.provider.log)
    answer = council("report", "--format", "json", run)
    assert answer.json == done.json
    replayed = council("runs", "replay", "--json")
    assert (replayed.code, replayed.json) == (0, done.json)
    events = [json.loads(line) for line in council("runs", "replay", "--jsonl", run).out.splitlines()]
    assert [event["seq"] for event in events if event["seq"]] == list(range(1, events[-1]["seq"] + 1))
    again = council("resume", "--json", run)
    assert again.code == 0
    assert again.json == done.json | {"calls": {"made": 7, "replayed": 7, "in_doubt": 0}}
    assert mark("chair", "verdict") in council("resume", run).out
    assert len(workspace.provider.log) == sent
    none_left = council("resume")
    assert (none_left.code, none_left.err.count("\n")) == (2, 1)


@pytest.mark.behaviour("40-resume-rewrites-report")
@pytest.mark.parametrize("left", ["nothing", "an empty file", "a held place"])
def test_resume_writes_a_report_that_a_crash_left_unwritten(workspace: Workspace, council: Terminal, left: str) -> None:
    council(QUESTION)
    (path,) = workspace.reports()
    (run,) = workspace.runs()
    text = path.read_text()
    path.unlink()
    if left == "an empty file":
        path.touch()
    elif left == "a held place":
        assert report_files.reserve_report_path(path.parent, "collaborative", QUESTION, time.time(), run) == path
    assert council("resume", run).code == 0
    assert path.read_text() == text


@pytest.mark.behaviour("40-no-resend")
def test_no_resend_leaves_the_open_seat_in_doubt(workspace: Workspace, council: Terminal) -> None:
    gate = workspace.hold("draft", "beta")
    process = workspace.process("--protocol", "triad", QUESTION)
    gate.wait()
    wait_until(lambda: len(workspace.rows("SELECT key FROM results")) == 2, "the other drafts are kept")
    kill(process)
    gate.release()
    done = council("resume", "--no-resend", "--json")
    assert done.code == 0
    assert workspace.asked()[3:] == ["merge/chair"]
    assert [(row["seat"], row["state"]) for row in done.json["degraded"] if row["seat"]] == [("beta", "in_doubt")]
    check_store(council)


@pytest.mark.behaviour("40-absence-replays", "40-unfinished-phase-asks-absent-again")
@pytest.mark.parametrize("finished", [True, False], ids=["finished", "unfinished"])
def test_absent_seat_is_asked_again_only_if_its_phase_had_not_ended(
    workspace: Workspace, council: Terminal, finished: bool
) -> None:
    workspace.answers.instead["beta"] = Reply(status=500)
    gate = workspace.hold("merge") if finished else workspace.hold("draft", "gamma")
    process = workspace.process("--protocol", "triad", QUESTION)
    gate.wait()
    wait_until(lambda: workspace.rows("SELECT seq FROM events WHERE type = 'absence'"), "the absence is kept")
    kill(process)
    gate.release()
    workspace.answers.instead.clear()
    sent = len(workspace.provider.log)
    done = council("resume", "--json")
    assert done.code == 0
    assert ("draft/beta" in workspace.asked(sent)) is not finished
    assert [row["seat"] for row in done.json["degraded"] if row["seat"]] == (["beta"] if finished else [])
    check_store(council)


@pytest.mark.behaviour("40-resume-byte-identical", "40-repair-turn")
def test_open_repair_turn_is_resent_without_the_original_request(workspace: Workspace, council: Terminal) -> None:
    workspace.answers.instead["chair/triage"] = [Reply(wrong_schema=True)]
    gate = workspace.provider.hold(lambda seen: len(seen.body["messages"]) == 4)
    process = workspace.process("--protocol", "adversarial", QUESTION)
    (held,) = gate.wait()
    kill(process)
    gate.release()
    sent = len(workspace.provider.log)
    done = council("resume", "--json")
    assert (done.code, done.json["calls"]["in_doubt"]) == (0, 1)
    assert workspace.provider.log[sent].raw == held.raw
    assert workspace.asked(sent).count("triage/chair") == 1
    check_store(council)
