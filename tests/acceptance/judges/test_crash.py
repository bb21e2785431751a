"""kill -9 and Ctrl-C in every phase of judges, then `council resume`."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import sys

import pytest

from tests.acceptance.helpers import Json, Terminal, ended, kill, until
from tests.acceptance.judges.fake_judges import Court, Done, finding, look, opinion, second, settled
from tests.packet.conftest import commit, git

BUG = finding("critical", "src/auth/jwt.py:7", "The signature is never checked.")
ROUNDS: dict[str, tuple[list[str], dict[str, list[str]]]] = {
    "plain": (["validate", "src/auth"], {"judge": ["judge-1", "judge-2"]}),
    "debate": (["--debate", "validate", "src/auth"], {"judge": ["judge-1", "judge-2"], "r2": ["judge-1", "judge-2"]}),
    "explorers": (
        ["--explorers=1", "--explorer-model=sim:explorer", "validate", "src/auth"],
        {"questions": ["judge-1", "judge-2"], "look": ["judge-1-1", "judge-2-1"], "judge": ["judge-1", "judge-2"]},
    ),
    "brainstorm": (["brainstorm", "caching approaches"], {"judge": ["judge-1", "judge-2"], "consolidate": ["chair"]}),
}
EVERY_PHASE = [(kind, phase) for kind, (_, phases) in ROUNDS.items() for phase in phases]


@pytest.fixture(autouse=True)
def _one_fails(court: Court) -> None:
    court.bench.explorers = 1
    court.bench.said["r2/judge-1"] = second("FAIL", BUG)


def script(court: Court, kind: str) -> None:
    if kind != "brainstorm":
        court.bench.said["judge/judge-1"] = opinion("FAIL", BUG)


def keys(kind: str, phase: str) -> list[str]:
    return [f"{phase}/{seat}" for seat in ROUNDS[kind][1][phase]]


def undisturbed(court: Court, council: Terminal, words: list[str]) -> Json:
    """Return the report of an uninterrupted run under the same name."""
    shutil.rmtree(court.folder / ".agents" / "council")
    done = council(*words, "--json")
    assert done.code == 0, done.err
    return settled(done.json)


def resumed(court: Court, council: Terminal, kind: str, again: list[str]) -> Done:
    """Resume, and check that only `again` is requested again, with the same bytes."""
    first = {key: seen.raw for key, seen in zip(court.steps(), court.provider.log, strict=True)}
    since = len(court.provider.log)
    done = council("resume", "--json")
    assert done.code == 0, done.err
    sent = court.steps(since)
    assert sorted(key for key in sent if key in first) == sorted(again)
    assert len(set(sent)) == len(sent)
    for key, seen in zip(sent, court.provider.log[since:], strict=True):
        assert first.get(key, seen.raw) == seen.raw, key
    every = [key for phase in ROUNDS[kind][1] for key in keys(kind, phase)]
    assert sorted({*first, *sent}) == sorted(every)
    assert done.json["calls"] == {"made": len(sent), "replayed": len(every) - len(sent), "in_doubt": len(again)}
    return done


def looks_clean(court: Court, council: Terminal, report: Json) -> None:
    fsck = council("runs", "fsck")
    assert (fsck.code, fsck.err) == (0, ""), fsck.out
    text = (court.folder / report["report_path"]).read_text(encoding="utf-8")
    assert "INCOMPLETE" not in text
    assert all(
        (court.folder / seat["file"]).read_text().startswith("```json\n") for seat in report["seats"] if seat["file"]
    )


@pytest.mark.behaviour("issue-3-kill-resume")
@pytest.mark.parametrize(("kind", "phase"), EVERY_PHASE)
def test_a_run_killed_in_any_phase_resumes_to_the_same_report(
    court: Court, council: Terminal, kind: str, phase: str
) -> None:
    script(court, kind)
    words = ROUNDS[kind][0]
    gate = court.hold_key(phase)
    process = court.process(*words, "--json")
    gate.wait(count=len(keys(kind, phase)))
    kill(process)
    gate.release()
    done = resumed(court, council, kind, keys(kind, phase))
    looks_clean(court, council, done.json)
    assert settled(done.json) == undisturbed(court, council, words)


@pytest.mark.behaviour("issue-3-kill-resume", "40-committed-never-bought-again")
@pytest.mark.parametrize(
    ("kind", "late", "kept"),
    [("plain", "judge/judge-2", 1), ("debate", "r2/judge-1", 3), ("explorers", "look/judge-2-1", 4)],
)
def test_answers_from_before_the_kill_are_not_requested_again(
    court: Court, council: Terminal, kind: str, late: str, kept: int
) -> None:
    script(court, kind)
    gate = court.hold_key(late)
    process = court.process(*ROUNDS[kind][0], "--json")
    gate.wait()
    until(lambda: len(court.rows("SELECT key FROM results")) == kept, "the other answers are kept")
    kill(process)
    gate.release()
    done = resumed(court, council, kind, [late])
    looks_clean(court, council, done.json)
    assert settled(done.json) == undisturbed(court, council, ROUNDS[kind][0])


@pytest.mark.behaviour("issue-3-first-packet")
def test_resume_uses_the_packet_of_the_first_process(court: Court, council: Terminal) -> None:
    court.bench.said["judge/judge-1"] = opinion("FAIL", BUG)
    gate = court.hold_key("judge/judge-2")
    process = court.process("--debate", "validate", "src/auth", "--json")
    gate.wait()
    until(lambda: len(court.rows("SELECT key FROM results")) == 1, "judge-1 is kept")
    kill(process)
    gate.release()
    commit(court.folder, {"src/auth/jwt.py": "# all gone\n"})
    git(court.folder, "rm", "-q", "src/auth/middleware.py")
    done = council("resume", "--json")
    assert done.code == 0, done.out
    assert len(court.provider.log) == 5
    assert all("base64.b64decode" in seen.prompt and "all gone" not in seen.prompt for seen in court.provider.log)
    assert [(row["verified"], row["location"]) for row in done.json["findings"]] == [(True, "src/auth/jwt.py:7")]
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("issue-3-first-packet")
def test_resume_does_not_repeat_an_explorers_look_up(court: Court, council: Terminal) -> None:
    court.bench.explorers = 1
    court.bench.said["look/judge-1-1"] = look("README.md")
    gate = court.provider.hold(
        lambda seen: court.bench.key(seen) == "look/judge-1-1" and len(seen.body["messages"]) == 4
    )
    process = court.process("--explorers=1", "--explorer-model=sim:explorer", "validate", "src/auth", "--json")
    (held,) = gate.wait()
    kill(process)
    del court.bench.said["look/judge-1-1"]
    gate.release()
    (court.folder / "README.md").write_text("# Something else\n", encoding="utf-8")
    since = len(court.provider.log)
    done = council("resume", "--json")
    assert done.code == 0, done.out
    (again,) = (seen for seen in court.provider.log[since:] if court.bench.key(seen) == "look/judge-1-1")
    assert again.raw == held.raw and "Sells things." in again.prompt
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("issue-3-ctrl-c", "20-incomplete-marker")
@pytest.mark.parametrize(
    ("kind", "late"), [("plain", "judge/judge-2"), ("debate", "r2/judge-2"), ("brainstorm", "consolidate/chair")]
)
def test_an_interrupt_leaves_an_incomplete_report_and_resume_completes_it(
    court: Court, council: Terminal, kind: str, late: str
) -> None:
    script(court, kind)
    words = ROUNDS[kind][0]
    gate = court.hold_key(late)
    process = court.process(*words)
    gate.wait()
    before = sum(len(seats) for phase, seats in ROUNDS[kind][1].items()) - 1
    until(lambda: len(court.rows("SELECT key FROM results")) == before, "the other answers are kept")
    os.killpg(process.pid, signal.SIGINT)
    done = ended(process)
    assert (done.code, "Traceback" in done.err) == (130, False)
    (run,) = court.runs()
    assert f"resume: council resume {run}" in done.err
    stopped = council("report", "--format", "json", run).json
    assert (stopped["status"], stopped["verdict"]) == ("incomplete", None)
    text = (court.folder / stopped["report_path"]).read_text(encoding="utf-8")
    assert "INCOMPLETE" in text.partition("\n")[0]
    assert f"`council resume {run}` continues from here" in text
    assert ("The signature is never checked." in text) == (kind != "brainstorm")
    assert council("gate", run).code == 3
    gate.release()
    again = resumed(court, council, kind, [late])
    assert again.json["report_path"] == stopped["report_path"]
    looks_clean(court, council, again.json)
    assert settled(again.json) == undisturbed(court, council, words)


@pytest.mark.behaviour("issue-3-ctrl-c")
def test_ctrl_c_in_a_real_terminal_does_the_same(court: Court, council: Terminal) -> None:
    gate = court.hold_key("judge/judge-2")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "council", "validate", "src/auth"])
    gate.wait()
    until(lambda: len(court.rows("SELECT key FROM results")) == 1, "judge-1 is kept")
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
    (report,) = (path for path in court.reports() if "-validate-" in path.name)
    assert report.read_text(encoding="utf-8").startswith("## Council Consensus: INCOMPLETE\n")
    gate.release()
    assert council("resume", "--json").json["status"] == "complete"
    assert sorted(court.steps()) == ["judge/judge-1", "judge/judge-2", "judge/judge-2"]
