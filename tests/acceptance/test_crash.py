"""kill -9 in every phase of every protocol, then `council resume`: nothing is lost, nothing is paid twice."""

from __future__ import annotations

import json
import sqlite3
import time
from functools import cache
from pathlib import Path

import pytest

from council.runs import report_files
from tests.acceptance.helpers import PHASES, QUESTION, Done, Json, Table, Terminal, ended, kill, mark, settled, until
from tests.fake_provider import FakeProvider, Reply

EVERY_PHASE = [(protocol, phase) for protocol, phases in PHASES.items() for phase in phases]
TOGETHER = [(protocol, phase) for protocol, phase in EVERY_PHASE if len(PHASES[protocol][phase]) > 1]


@cache
def reference_report(protocol: str, folder: Path) -> Json:
    """Return the report of a run without a crash."""
    folder.mkdir(exist_ok=True)
    with FakeProvider() as provider:
        done = Table(folder, provider).council("--json", "--protocol", protocol, QUESTION)
    assert done.code == 0, done.err
    return settled(done.json)


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("calm")


def keys_before(protocol: str, phase: str) -> list[str]:
    """Return the keys of the phases before this one."""
    names = list(PHASES[protocol])
    return [f"{name}/{seat}" for name in names[: names.index(phase)] for seat in PHASES[protocol][name]]


def keys_of(protocol: str, phase: str) -> list[str]:
    return [f"{phase}/{seat}" for seat in PHASES[protocol][phase]]


def resume_and_check(table: Table, since: int, again: list[str], protocol: str) -> Done:
    """Resume, and check that only the requests in `again` were repeated, with the same bytes."""
    first = {key: seen.raw for key, seen in zip(table.asked(), table.provider.log, strict=True)}
    done = table.council("resume", "--json")
    assert done.code == 0, done.err
    sent = table.asked(since)
    every = [key for phase in PHASES[protocol] for key in keys_of(protocol, phase)]
    assert sorted(key for key in sent if key in first) == sorted(again)
    assert sorted({*first, *sent}) == sorted(every)
    assert len(set(sent)) == len(sent)
    for key, seen in zip(sent, table.provider.log[since:], strict=True):
        assert first.get(key, seen.raw) == seen.raw
    assert done.json["calls"] == {"made": len(sent), "replayed": len(every) - len(sent), "in_doubt": len(again)}
    return done


def check_store(council: Terminal) -> None:
    done = council("runs", "fsck")
    assert (done.code, done.err) == (0, ""), done.out


@pytest.mark.behaviour(
    "40-kill-resume-every-phase", "40-resume-byte-identical", "40-in-doubt-counted", "40-fsck", "40-replay-asks-nobody"
)
@pytest.mark.parametrize(("protocol", "phase"), EVERY_PHASE)
def test_run_killed_in_a_phase_resumes_to_the_same_report(
    table: Table, council: Terminal, calm: Path, protocol: str, phase: str
) -> None:
    gate = table.hold(phase)
    process = table.process("--json", "--protocol", protocol, QUESTION)
    gate.wait(count=len(PHASES[protocol][phase]))
    kill(process)
    gate.release()
    done = resume_and_check(table, len(table.provider.log), keys_of(protocol, phase), protocol)
    assert settled(done.json) == reference_report(protocol, calm / protocol)
    check_store(council)
    sent = len(table.provider.log)
    assert council("replay", "--json").json == done.json
    assert len(table.provider.log) == sent


@pytest.mark.behaviour("40-committed-never-bought-again")
@pytest.mark.parametrize(("protocol", "phase"), TOGETHER)
def test_run_killed_in_a_phase_resends_only_the_open_request(
    table: Table, council: Terminal, calm: Path, protocol: str, phase: str
) -> None:
    late = PHASES[protocol][phase][-1]
    gate = table.hold(phase, late)
    process = table.process("--json", "--protocol", protocol, QUESTION)
    gate.wait()
    answered = keys_before(protocol, phase) + keys_of(protocol, phase)[:-1]
    until(lambda: len(table.rows("SELECT key FROM results")) == len(answered), "the other answers are kept")
    kill(process)
    gate.release()
    done = resume_and_check(table, len(table.provider.log), [f"{phase}/{late}"], protocol)
    assert settled(done.json) == reference_report(protocol, calm / protocol)
    check_store(council)


@pytest.mark.behaviour("40-in-doubt-counted")
@pytest.mark.parametrize(("protocol", "phase"), [("collaborative", "improve"), ("adversarial", "verdict")])
def test_answer_that_was_not_stored_is_in_doubt(
    table: Table, council: Terminal, calm: Path, protocol: str, phase: str
) -> None:
    gate = table.hold(phase)
    process = table.process("--json", "--protocol", protocol, QUESTION)
    held = gate.wait(count=len(PHASES[protocol][phase]))
    writer = sqlite3.connect(table.data / "council.db")
    writer.execute("BEGIN IMMEDIATE")  # from here on the process cannot write
    gate.release()
    until(lambda: all(seen.ended for seen in held), "the answers have left the endpoint")
    kill(process)
    writer.close()
    done = resume_and_check(table, len(table.provider.log), keys_of(protocol, phase), protocol)
    assert settled(done.json) == reference_report(protocol, calm / protocol)
    check_store(council)


@pytest.mark.behaviour("40-kill-during-resume")
@pytest.mark.parametrize("protocol", ["collaborative", "adversarial"])
def test_run_killed_again_while_resuming(table: Table, council: Terminal, calm: Path, protocol: str) -> None:
    first, _, second, *_ = PHASES[protocol]
    for phase, words in ((first, ("--protocol", protocol, QUESTION)), (first, ("resume",)), (second, ("resume",))):
        gate = table.hold(phase)
        process = table.process("--json", *words)
        gate.wait(count=len(PHASES[protocol][phase]))
        kill(process)
        gate.release()
    sent = len(table.provider.log)
    done = resume_and_check(table, sent, keys_of(protocol, second), protocol)
    assert settled(done.json) == reference_report(protocol, calm / protocol)
    assert [table.asked().count(key) for key in keys_of(protocol, first)] == [3, 3, 3]
    check_store(council)


@pytest.mark.behaviour("40-one-owner")
def test_second_resume_is_refused_and_sends_nothing(table: Table, council: Terminal) -> None:
    gate = table.hold("draft")
    process = table.process("--json", QUESTION)
    gate.wait(count=3)
    (run,) = table.runs()
    while_it_runs = council("resume", run)
    kill(process)
    first = table.process("resume", "--json", run)
    gate.wait(count=6)
    second = council("resume", run)
    by_default = council("resume", "--json")
    assert len(table.provider.log) == 6
    for refused in (while_it_runs, second):
        assert refused.code == 1
        assert refused.out == ""
        assert refused.err.count("\n") == 1
        assert f"run {run} is running in another process" in refused.err
    assert by_default.json["exit"] == 1
    gate.release()
    assert ended(first).code == 0
    assert len(table.provider.log) == 10


@pytest.mark.behaviour("40-replay-asks-nobody", "40-resume-complete-asks-nobody")
def test_a_finished_run_is_replayed_and_resumed_without_a_request(table: Table, council: Terminal) -> None:
    done = council("--json", "--protocol", "adversarial", QUESTION)
    (run,) = table.runs()
    sent = len(table.provider.log)
    answer = council("report", "--format", "json", run)
    assert answer.json == done.json
    replayed = council("replay", "--json")
    assert (replayed.code, replayed.json) == (0, done.json)
    events = [json.loads(line) for line in council("replay", "--jsonl", run).out.splitlines()]
    assert [event["seq"] for event in events if event["seq"]] == list(range(1, events[-1]["seq"] + 1))
    again = council("resume", "--json", run)
    assert again.code == 0
    assert again.json == done.json | {"calls": {"made": 0, "replayed": 7, "in_doubt": 0}}
    assert mark("chair", "verdict") in council("resume", run).out
    assert len(table.provider.log) == sent
    none_left = council("resume")
    assert (none_left.code, none_left.err.count("\n")) == (2, 1)


@pytest.mark.behaviour("40-resume-rewrites-report")
@pytest.mark.parametrize("left", ["nothing", "an empty file", "a held place"])
def test_resume_writes_a_report_that_a_crash_left_unwritten(table: Table, council: Terminal, left: str) -> None:
    council(QUESTION)
    (path,) = table.reports()
    (run,) = table.runs()
    text = path.read_text()
    path.unlink()
    if left == "an empty file":
        path.touch()
    elif left == "a held place":
        assert report_files.reserve_report_path(path.parent, "collaborative", QUESTION, time.time(), run) == path
    assert council("resume", run).code == 0
    assert path.read_text() == text


@pytest.mark.behaviour("40-no-resend")
def test_no_resend_leaves_the_open_seat_in_doubt(table: Table, council: Terminal) -> None:
    gate = table.hold("draft", "beta")
    process = table.process("--protocol", "triad", QUESTION)
    gate.wait()
    until(lambda: len(table.rows("SELECT key FROM results")) == 2, "the other drafts are kept")
    kill(process)
    gate.release()
    done = council("resume", "--no-resend", "--json")
    assert done.code == 0
    assert table.asked()[3:] == ["merge/chair"]
    assert [(row["seat"], row["state"]) for row in done.json["degraded"] if row["seat"]] == [("beta", "in_doubt")]
    check_store(council)


@pytest.mark.behaviour("40-absence-replays", "40-unfinished-phase-asks-absent-again")
@pytest.mark.parametrize("finished", [True, False], ids=["finished", "unfinished"])
def test_absent_seat_is_asked_again_only_if_its_phase_had_not_ended(
    table: Table, council: Terminal, finished: bool
) -> None:
    table.cast.instead["beta"] = Reply(status=500)
    gate = table.hold("merge") if finished else table.hold("draft", "gamma")
    process = table.process("--protocol", "triad", QUESTION)
    gate.wait()
    until(lambda: table.rows("SELECT seq FROM events WHERE type = 'absence'"), "the absence is kept")
    kill(process)
    gate.release()
    table.cast.instead.clear()
    sent = len(table.provider.log)
    done = council("resume", "--json")
    assert done.code == 0
    assert ("draft/beta" in table.asked(sent)) is not finished
    assert [row["seat"] for row in done.json["degraded"] if row["seat"]] == (["beta"] if finished else [])
    check_store(council)


@pytest.mark.behaviour("40-resume-byte-identical", "40-repair-turn")
def test_open_repair_turn_is_resent_without_the_original_request(table: Table, council: Terminal) -> None:
    table.cast.instead["chair/triage"] = [Reply(wrong_schema=True)]
    gate = table.provider.hold(lambda seen: len(seen.body["messages"]) == 4)
    process = table.process("--protocol", "adversarial", QUESTION)
    (held,) = gate.wait()
    kill(process)
    gate.release()
    sent = len(table.provider.log)
    done = council("resume", "--json")
    assert (done.code, done.json["calls"]["in_doubt"]) == (0, 1)
    assert table.provider.log[sent].raw == held.raw
    assert table.asked(sent).count("triage/chair") == 1
    check_store(council)
