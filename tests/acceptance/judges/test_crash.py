"""kill -9 and Ctrl-C in every phase of judges, then `council resume`."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import sys

import pytest

from tests.acceptance.helpers import Json, Terminal, kill, wait_for_exit, wait_until
from tests.acceptance.judges.fake_judges import JudgesWorkspace, Result, comparable, finding, look, opinion, second
from tests.packet.conftest import commit, git

BUG = finding(
    "critical",
    "src/auth/jwt.py:7",
    "The signature is never checked.",
    quote="return json.loads(base64.b64decode(body))",
)
ROUNDS: dict[str, tuple[list[str], dict[str, list[str]]]] = {
    "plain": (["validate", "src/auth"], {"judge": ["judge-1", "judge-2"]}),
    "debate": (["--debate", "validate", "src/auth"], {"judge": ["judge-1", "judge-2"], "r2": ["judge-1", "judge-2"]}),
    "explorers": (
        ["--explorers=1", "--explorer-model=sim:explorer", "validate", "src/auth"],
        {"questions": ["judge-1", "judge-2"], "look": ["judge-1-1", "judge-2-1"], "judge": ["judge-1", "judge-2"]},
    ),
    "clerk": (["validate", "src/auth"], {"judge": ["judge-1", "judge-2"], "clerk": ["fast"]}),
    "brainstorm": (["brainstorm", "caching approaches"], {"judge": ["judge-1", "judge-2"], "consolidate": ["chair"]}),
}
EVERY_PHASE = [(kind, phase) for kind, (_, phases) in ROUNDS.items() for phase in phases]


@pytest.fixture(autouse=True)
def _one_fails(judges: JudgesWorkspace) -> None:
    judges.judge_answers.explorers = 1
    judges.judge_answers.said["r2/judge-1"] = second("FAIL", BUG)


def script(judges: JudgesWorkspace, kind: str) -> None:
    if kind != "brainstorm":
        judges.judge_answers.said["judge/judge-1"] = opinion("FAIL", BUG)
    if kind == "clerk":  # it is only asked if two judges have findings
        other = BUG | {"description": "Forged tokens are accepted.", "quote": ""}
        judges.judge_answers.said["judge/judge-2"] = opinion("FAIL", other)
        judges.judge_answers.said["clerk/fast"] = {
            "groups": [{"findings": ["F1", "F2"], "defect": "No signature check."}]
        }


def keys(kind: str, phase: str) -> list[str]:
    return [f"{phase}/{seat}" for seat in ROUNDS[kind][1][phase]]


def undisturbed(judges: JudgesWorkspace, council: Terminal, words: list[str]) -> Json:
    """Return the report of an uninterrupted run under the same name."""
    shutil.rmtree(judges.folder / ".agents" / "council")
    done = council(*words, "--json")
    assert done.code == 0, done.err
    return comparable(done.json)


def resumed(judges: JudgesWorkspace, council: Terminal, kind: str, again: list[str]) -> Result:
    """Resume, and check that only `again` is requested again, with the same bytes."""
    first = {key: seen.raw for key, seen in zip(judges.steps(), judges.provider.log, strict=True)}
    since = len(judges.provider.log)
    done = council("resume", "--json")
    assert done.code == 0, done.err
    sent = judges.steps(since)
    assert sorted(key for key in sent if key in first) == sorted(again)
    assert len(set(sent)) == len(sent)
    for key, seen in zip(sent, judges.provider.log[since:], strict=True):
        assert first.get(key, seen.raw) == seen.raw, key
    every = [key for phase in ROUNDS[kind][1] for key in keys(kind, phase)]
    assert sorted({*first, *sent}) == sorted(every)
    made = len(judges.provider.log)  # by all processes
    assert done.json["calls"] == {"made": made, "replayed": len(every) - len(sent), "in_doubt": made - len(every)}
    return done


def looks_clean(judges: JudgesWorkspace, council: Terminal, report: Json) -> None:
    fsck = council("runs", "fsck")
    assert (fsck.code, fsck.err) == (0, ""), fsck.out
    text = (judges.folder / report["report_path"]).read_text(encoding="utf-8")
    assert "INCOMPLETE" not in text
    assert all(
        (judges.folder / seat["file"]).read_text().startswith("```json\n") for seat in report["seats"] if seat["file"]
    )


@pytest.mark.behaviour("issue-3-kill-resume")
@pytest.mark.parametrize(("kind", "phase"), EVERY_PHASE)
def test_a_run_killed_in_any_phase_resumes_to_the_same_report(
    judges: JudgesWorkspace, council: Terminal, kind: str, phase: str
) -> None:
    script(judges, kind)
    words = ROUNDS[kind][0]
    gate = judges.hold_key(phase)
    process = judges.process(*words, "--json")
    gate.wait(count=len(keys(kind, phase)))
    kill(process)
    gate.release()
    done = resumed(judges, council, kind, keys(kind, phase))
    looks_clean(judges, council, done.json)
    assert comparable(done.json) == undisturbed(judges, council, words)


@pytest.mark.behaviour("issue-3-kill-resume", "40-committed-never-bought-again")
@pytest.mark.parametrize(
    ("kind", "late", "kept"),
    [("plain", "judge/judge-2", 1), ("debate", "r2/judge-1", 3), ("explorers", "look/judge-2-1", 4)],
)
def test_answers_from_before_the_kill_are_not_requested_again(
    judges: JudgesWorkspace, council: Terminal, kind: str, late: str, kept: int
) -> None:
    script(judges, kind)
    gate = judges.hold_key(late)
    process = judges.process(*ROUNDS[kind][0], "--json")
    gate.wait()
    wait_until(lambda: len(judges.rows("SELECT key FROM results")) == kept, "the other answers are kept")
    kill(process)
    gate.release()
    done = resumed(judges, council, kind, [late])
    looks_clean(judges, council, done.json)
    assert comparable(done.json) == undisturbed(judges, council, ROUNDS[kind][0])


@pytest.mark.behaviour("issue-3-first-packet")
def test_resume_uses_the_packet_of_the_first_process(judges: JudgesWorkspace, council: Terminal) -> None:
    judges.judge_answers.said["judge/judge-1"] = opinion("FAIL", BUG)
    gate = judges.hold_key("judge/judge-2")
    process = judges.process("--debate", "validate", "src/auth", "--json")
    gate.wait()
    wait_until(lambda: len(judges.rows("SELECT key FROM results")) == 1, "judge-1 is kept")
    kill(process)
    gate.release()
    commit(judges.folder, {"src/auth/jwt.py": "# all gone\n"})
    git(judges.folder, "rm", "-q", "src/auth/middleware.py")
    done = council("resume", "--json")
    assert done.code == 0, done.out
    assert len(judges.provider.log) == 5
    assert all("base64.b64decode" in seen.prompt and "all gone" not in seen.prompt for seen in judges.provider.log)
    assert [(row["verified"], row["location"]) for row in done.json["findings"]] == [(True, "src/auth/jwt.py:7")]
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("issue-3-first-packet")
def test_resume_does_not_repeat_an_explorers_look_up(judges: JudgesWorkspace, council: Terminal) -> None:
    judges.judge_answers.explorers = 1
    judges.judge_answers.said["look/judge-1-1"] = look("README.md")
    gate = judges.provider.hold(
        lambda seen: judges.judge_answers.key(seen) == "look/judge-1-1" and len(seen.body["messages"]) == 4
    )
    process = judges.process("--explorers=1", "--explorer-model=sim:explorer", "validate", "src/auth", "--json")
    (held,) = gate.wait()
    kill(process)
    del judges.judge_answers.said["look/judge-1-1"]
    gate.release()
    (judges.folder / "README.md").write_text("# Something else\n", encoding="utf-8")
    since = len(judges.provider.log)
    done = council("resume", "--json")
    assert done.code == 0, done.out
    (again,) = (seen for seen in judges.provider.log[since:] if judges.judge_answers.key(seen) == "look/judge-1-1")
    assert again.raw == held.raw and "Sells things." in again.prompt
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("issue-3-ctrl-c", "20-incomplete-marker")
@pytest.mark.parametrize(
    ("kind", "late"), [("plain", "judge/judge-2"), ("debate", "r2/judge-2"), ("brainstorm", "consolidate/chair")]
)
def test_an_interrupt_leaves_an_incomplete_report_and_resume_completes_it(
    judges: JudgesWorkspace, council: Terminal, kind: str, late: str
) -> None:
    script(judges, kind)
    words = ROUNDS[kind][0]
    gate = judges.hold_key(late)
    process = judges.process(*words)
    gate.wait()
    before = sum(len(seats) for phase, seats in ROUNDS[kind][1].items()) - 1
    wait_until(lambda: len(judges.rows("SELECT key FROM results")) == before, "the other answers are kept")
    os.killpg(process.pid, signal.SIGINT)
    done = wait_for_exit(process)
    assert (done.code, "Traceback" in done.err) == (130, False)
    (run,) = judges.runs()
    assert f"resume: council resume {run}" in done.err
    stopped = council("report", "--format", "json", run).json
    assert (stopped["status"], stopped["verdict"]) == ("incomplete", None)
    text = (judges.folder / stopped["report_path"]).read_text(encoding="utf-8")
    assert "INCOMPLETE" in text.partition("\n")[0]
    assert f"`council resume {run}` continues from here" in text
    assert ("The signature is never checked." in text) == (kind != "brainstorm")
    assert council("gate", run).code == 3
    gate.release()
    again = resumed(judges, council, kind, [late])
    assert again.json["report_path"] == stopped["report_path"]
    looks_clean(judges, council, again.json)
    assert comparable(again.json) == undisturbed(judges, council, words)


@pytest.mark.behaviour("issue-3-ctrl-c")
def test_ctrl_c_in_a_real_terminal_does_the_same(judges: JudgesWorkspace, council: Terminal) -> None:
    gate = judges.hold_key("judge/judge-2")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "council", "validate", "src/auth"])
    gate.wait()
    wait_until(lambda: len(judges.rows("SELECT key FROM results")) == 1, "judge-1 is kept")
    os.write(terminal, b"\x03")
    screen = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # end of file on a terminal
            break
        if not piece:
            break
        screen += piece
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 130
    assert b"INCOMPLETE" in screen and b"Traceback" not in screen
    (report,) = (path for path in judges.reports() if "-validate-" in path.name)
    assert report.read_text(encoding="utf-8").startswith("## Council Consensus: INCOMPLETE\n")
    gate.release()
    assert council("resume", "--json").json["status"] == "complete"
    assert sorted(judges.steps()) == ["judge/judge-1", "judge/judge-2", "judge/judge-2"]
