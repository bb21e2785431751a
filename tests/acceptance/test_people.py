"""A person as a member: asked through any interface, waited for, and never asked twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from council.errors import UsageError
from council.runs.service import Convener
from tests.acceptance.crash_trials import library_processes, run_in_library
from tests.acceptance.helpers import QUESTION, Json, Terminal, Workspace, check_store, mark, wait_until
from tests.acceptance.pseudo_terminal import PseudoTerminal
from tests.acceptance.test_worker import queue_run
from tests.fake_provider import Reply
from tests.packet.fake_secrets import SECRETS
from tests.trusted_project import trust_project

HUMAN = ("--seat", "beta=human")
TRIAD = ("--protocol", "triad", *HUMAN)


def asks(run: str | None = None) -> list[Json]:
    return list(_with(lambda convener: convener.open_asks(run)))


def answer(run: str, key: str, text: str) -> bool:
    return bool(_with(lambda convener: convener.answer(run, key, text)))


def _with(act: Callable[[Convener], Any]) -> Any:
    async def work() -> Any:
        convener = Convener()
        try:
            return await act(convener)
        finally:
            await convener.close()

    return asyncio.run(work())


def asked(key: str) -> Json:
    """Wait for the open question with that key."""
    found: list[Json] = []
    wait_until(lambda: found.extend(one for one in asks() if one["key"] == key) or found, f"{key} is asked")
    return found[0]


# At the terminal


@pytest.mark.behaviour("50-human-terminal")
def test_a_person_is_shown_what_the_seat_sees_and_what_they_type_is_its_statement(
    workspace: Workspace, council: Terminal
) -> None:
    terminal = PseudoTerminal(workspace.folder, *TRIAD, QUESTION)
    shown = terminal.wait_for("Your seat is beta.")
    assert QUESTION in shown and "# Your part" in shown
    terminal.wait_for("End it with a line that has a single dot")
    terminal.type_lines("Not all of it.", "", f"Tape is slow: {mark('beta', 'draft')}.", ".")
    terminal.wait_for("Thank you.")
    done = terminal.wait_for_exit()
    assert done.code == 0, done.err
    assert done.out.startswith(f"The merge of chair: {mark('chair', 'merge')}.\n\n---\n\nTrust: ")
    assert sorted(workspace.asked()) == ["draft/alpha", "draft/gamma", "merge/chair"]
    assert f"Not all of it.\n\nTape is slow: {mark('beta', 'draft')}." in workspace.prompt("merge/chair")
    report = council("report", "--json").json
    (seat,) = (seat for seat in report["seats"] if seat["name"] == "beta")
    assert (seat["model"], seat["vendor"], seat["served_by"], seat["state"]) == ("human", "human", "human", "ok")
    assert seat["cost"] == 0
    check_store(council)


@pytest.mark.behaviour("50-human-typed")
def test_a_typed_reply_is_asked_field_by_field(workspace: Workspace, council: Terminal) -> None:
    terminal = PseudoTerminal(workspace.folder, "--protocol", "adversarial", *HUMAN, QUESTION)
    terminal.wait_for("Your seat is beta.")
    terminal.type_lines("My draft.", ".")
    terminal.wait_for("Your seat is beta. Type your answer field by field.")
    terminal.wait_for("issues, ")
    terminal.type_lines("major")
    terminal.wait_for("hits, ")
    terminal.type_lines("the price")
    terminal.wait_for("flaw, ")
    terminal.type_lines("it is per restore")
    terminal.wait_for("correction, ")
    terminal.type_lines("count restores")
    terminal.wait_for("severity (FATAL, MAJOR, MINOR): ")
    terminal.type_lines("")
    terminal.wait_for("case, ")
    terminal.type_lines("Mine counts them.", ".")
    terminal.wait_for("concedes, ")
    terminal.type_lines("it is simpler", "")
    terminal.wait_for("verdict, ")
    terminal.type_lines("SURVIVED")
    terminal.wait_for("choose one of STAND, MODIFIED, REJECTED")
    terminal.type_lines("mod")
    terminal.wait_for("Thank you.")
    done = terminal.wait_for_exit()
    assert done.code == 0, done.err
    said = json.loads(workspace.rows("SELECT body FROM results WHERE key = 'attack/beta'")[0][0])["text"]
    assert json.loads(said) == {
        "issues": [{"severity": "MAJOR", "hits": "the price", "flaw": "it is per restore", "correction": "count restores"}],
        "case": "Mine counts them.", "concedes": ["it is simpler"], "verdict": "MODIFIED",
    }  # fmt: skip
    assert all(part in workspace.prompt("verdict/chair") for part in ("it is per restore", "it is simpler"))
    check_store(council)


@pytest.mark.behaviour("50-human-abstains")
@pytest.mark.parametrize("typed", ["-\n", ".\n", "\x04"])
def test_a_person_may_abstain_and_is_absent_with_that_reason(
    workspace: Workspace, council: Terminal, typed: str
) -> None:
    terminal = PseudoTerminal(workspace.folder, *TRIAD, QUESTION)
    terminal.wait_for("a single - to abstain.")
    terminal.press(typed)
    terminal.wait_for("You abstained.")
    done = terminal.wait_for_exit()
    assert done.code == 0, done.err
    assert "beta did not answer (human: declined to answer: the person abstained)" in done.out
    assert council("report", "--json").json["quorum"] == {"needed": 1, "ok": 2, "asked": 3}
    check_store(council)


@pytest.mark.behaviour("50-human-terminal")
def test_a_short_answer_of_a_person_is_accepted(workspace: Workspace) -> None:
    terminal = PseudoTerminal(workspace.folder, *TRIAD, QUESTION)
    terminal.wait_for("a single - to abstain.")
    terminal.type_lines("none", ".")
    assert terminal.wait_for_exit().code == 0
    assert "none" in workspace.prompt("merge/chair")


def test_the_live_table_is_suspended_during_a_question(workspace: Workspace) -> None:
    gate = workspace.hold("draft")
    terminal = PseudoTerminal(workspace.folder, *TRIAD, QUESTION)
    gate.wait(count=2)
    terminal.wait_for("a single - to abstain.")
    gate.release()
    wait_until(lambda: len(workspace.rows("SELECT 1 FROM results")) == 2, "the others have answered")
    assert "draft" not in terminal.screen[terminal._seen :]
    terminal.type_lines("Mine.", ".")
    terminal.wait_for("Thank you.")
    terminal.wait_for("merge")
    assert terminal.wait_for_exit().code == 0


@pytest.mark.behaviour("50-human-interrupt")
def test_ctrl_c_while_a_person_is_asked_interrupts_the_run_and_it_can_be_resumed(
    workspace: Workspace, council: Terminal
) -> None:
    terminal = PseudoTerminal(workspace.folder, *TRIAD, QUESTION)
    terminal.wait_for("a single - to abstain.")
    terminal.type_lines("Half an ans")
    terminal.press("\x03")
    done = terminal.wait_for_exit()
    assert done.code == 130
    assert "Traceback" not in done.err
    assert asks() == []
    check_store(council)
    again = PseudoTerminal(workspace.folder, "resume")
    again.wait_for("a single - to abstain.")
    again.type_lines("All of it.", ".")
    assert again.wait_for_exit().code == 0
    assert "All of it." in workspace.prompt("merge/chair")
    assert "Half" not in workspace.prompt("merge/chair")


@pytest.mark.behaviour("packet-person-masked")
def test_a_secret_that_a_person_types_is_masked_before_it_is_stored_and_sent(workspace: Workspace) -> None:
    line, secret = SECRETS["github"]
    terminal = PseudoTerminal(workspace.folder, *TRIAD, QUESTION)
    terminal.wait_for("a single - to abstain.")
    terminal.type_lines(f"Rotate the {line}.", ".")
    assert terminal.wait_for_exit().code == 0
    assert "Rotate the token [redacted:GitHub token]." in workspace.prompt("merge/chair")
    stored = [path for path in workspace.data.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert stored == []


# Without a terminal


@pytest.mark.behaviour("50-human-refused")
@pytest.mark.parametrize("command", [(), ("--json",), ("--jsonl",)])
def test_without_a_terminal_a_person_is_rejected_before_anything_is_spent(
    workspace: Workspace, council: Terminal, command: tuple[str, ...]
) -> None:
    refused = workspace.council(*command, *TRIAD, QUESTION)
    assert (refused.code, (refused.err or refused.out).count("\n")) == (2, 1)
    assert 'seat "beta" is a person, but there is no terminal' in refused.err + refused.out.replace('\\"', '"')
    assert (workspace.provider.log, workspace.runs()) == ([], [])


@pytest.mark.behaviour("50-human-refused")
def test_with_no_input_a_person_is_rejected_at_a_terminal_too(workspace: Workspace) -> None:
    terminal = PseudoTerminal(workspace.folder, "--no-input", *TRIAD, QUESTION)
    done = terminal.wait_for_exit()
    assert done.code == 2
    assert "there is no terminal (or --no-input is set)" in done.err
    assert (workspace.provider.log, workspace.runs()) == ([], [])


def test_forks_and_resumed_runs_are_rejected_without_a_terminal(workspace: Workspace, council: Terminal) -> None:
    run = council("--json", "--protocol", "triad", QUESTION).json["run"]
    workspace.provider.forget()
    assert workspace.council("fork", run, *HUMAN).code == 2
    waiting = queue_run("triad")
    assert (workspace.provider.log, len(workspace.runs())) == ([], 2)
    council("cancel", waiting)


# Through other interfaces


@pytest.mark.behaviour("50-human-any-door")
def test_a_detached_run_waits_for_an_answer_from_any_interface(detached: Workspace, council: Terminal) -> None:
    run = council("--detach", "--json", "--protocol", "adversarial", *HUMAN, QUESTION).json["run"]
    draft = asked("draft/beta")
    assert (draft["run"], draft["seat"], draft["schema"], draft["fields"]) == (run, "beta", None, [])
    assert QUESTION in draft["prompt"]
    assert detached.status(run) == "running"
    assert answer(run, "draft/beta", f"Keep it: {mark('beta', 'draft')}.")
    attack = asked("attack/beta")
    assert [field["name"] for field in attack["fields"]] == ["issues", "case", "concedes", "verdict"]
    with pytest.raises(UsageError, match=r"missing: verdict \(STAND, MODIFIED, REJECTED\)"):
        answer(run, "attack/beta", "I do not like it.")
    assert answer(run, "attack/beta", "It can STAND, if it is paid for.")
    with pytest.raises(UsageError, match="has no open question"):
        answer(run, "attack/beta", "Again.")
    watched = council("watch", run, "--json")
    assert (watched.code, watched.json["status"]) == (0, "complete")
    said = json.loads(detached.rows("SELECT body FROM results WHERE key = 'attack/beta'")[0][0])["text"]
    said_json = {"issues": [], "case": "It can STAND, if it is paid for.", "concedes": [], "verdict": "STAND"}
    assert json.loads(said) == said_json
    assert asks() == []
    check_store(council)


@pytest.mark.behaviour("50-human-typed")
def test_an_invalid_answer_is_asked_for_again_with_the_reason(detached: Workspace, council: Terminal) -> None:
    run = council("--detach", "--json", "--protocol", "adversarial", "--seat", "chair=human", QUESTION).json["run"]
    triage = {"leader": "alpha", "reason": "it counts", "same_conclusion": False, "no_critical_flag": False}
    asked("triage/chair")
    assert answer(run, "triage/chair", json.dumps(triage | {"no_contradiction": False, "mostly_high": False}))
    asked("verdict/chair")
    points = [{"issue": f"issue-{n}", "landed": False, "why": "no"} for n in (1, 2)]
    ruling = {"points": points, "outcome": "OVERTURNED", "answer": "Stay.", "assessment": "Clear."}
    assert answer(run, "verdict/chair", json.dumps(ruling))
    again = "the outcome is OVERTURNED although no FATAL or MAJOR issue landed"
    wait_until(lambda: any(again in one["prompt"] for one in asks(run)), "it is asked again")
    assert answer(run, "verdict/chair", json.dumps(ruling | {"outcome": "SURVIVED"}))
    watched = council("watch", run, "--json")
    assert (watched.json["outcome"], watched.json["chair"]["state"]) == ("SURVIVED", "ok_repaired")
    check_store(council)


@pytest.mark.behaviour("50-human-watch")
def test_watching_a_detached_run_at_a_terminal_asks_the_person_there(detached: Workspace, council: Terminal) -> None:
    run = council("--detach", "--json", *TRIAD, QUESTION).json["run"]
    terminal = PseudoTerminal(detached.folder, "watch", run)
    terminal.wait_for("a single - to abstain.")
    terminal.type_lines("From afar.", ".")
    terminal.wait_for("Thank you.")
    done = terminal.wait_for_exit()
    assert done.code == 0, done.err
    assert mark("chair", "merge") in done.out
    assert "From afar." in detached.prompt("merge/chair")
    check_store(council)


def test_a_question_answered_elsewhere_is_withdrawn(workspace: Workspace) -> None:
    terminal = PseudoTerminal(workspace.folder, *TRIAD, QUESTION)
    terminal.wait_for("a single - to abstain.")
    gate, one = workspace.hold("merge"), asked("draft/beta")
    assert answer(one["run"], one["key"], "I was faster.")
    terminal.wait_for("This question is closed: it was answered elsewhere or timed out.")
    gate.release()
    assert terminal.wait_for_exit().code == 0
    assert "I was faster." in workspace.prompt("merge/chair")


# Killed runs


@pytest.mark.behaviour("50-human-resumed")
def test_a_resumed_run_keeps_the_answers_of_the_person(workspace: Workspace, council: Terminal) -> None:
    terminal = PseudoTerminal(workspace.folder, "--protocol", "adversarial", *HUMAN, QUESTION)
    terminal.wait_for("a single - to abstain.")
    terminal.type_lines(f"My only draft: {mark('beta', 'draft')}.", ".")
    terminal.wait_for("Type your answer field by field.")
    os.killpg(terminal.process.pid, signal.SIGKILL)
    terminal.wait_for_exit()
    check_store(council)
    again = PseudoTerminal(workspace.folder, "resume")
    shown = again.wait_for("Type your answer field by field.")
    assert "My only draft" in shown  # quoted in what the attacker is shown, not asked for again
    again.wait_for("issues, ")
    again.type_lines("", ".", "", "stand")
    again.wait_for("Thank you.")
    done = again.wait_for_exit()
    assert done.code == 0, done.err
    assert workspace.rows("SELECT count(*) FROM intents WHERE key = 'draft/beta'") == [(1,)]
    check_store(council)


@pytest.mark.behaviour("50-human-resumed")
def test_an_answer_given_just_before_a_crash_is_not_asked_for_again(workspace: Workspace, council: Terminal) -> None:
    configure_human_beta(workspace)
    gate = workspace.hold("draft")
    run_and_kill = (workspace.folder, dict(os.environ), "triad", "", "emit:9", None)
    process = library_processes().Process(target=run_in_library, args=run_and_kill)
    process.start()
    gate.wait(count=2)
    one = asked("draft/beta")  # events: convened, phase, asked ×3, attempted ×3; the ninth is the statement
    assert answer(one["run"], one["key"], "Said once.")
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert workspace.rows("SELECT count(*) FROM results") == [(0,)]
    gate.release()
    minutes = _with(lambda convener: convener.resume(None, lambda entry: None))
    assert minutes.status == "complete"
    assert "Said once." in workspace.prompt("merge/chair")
    check_store(council)


# Timeouts


@pytest.mark.behaviour("50-human-clock")
def test_a_person_has_a_separate_timeout(workspace: Workspace, council: Terminal) -> None:
    workspace.configure(more="[human]\ntimeout = 0.2\n")
    configure_human_beta(workspace)
    run = queue_run("triad")
    minutes = _with(lambda convener: convener.resume(run, lambda entry: None))
    assert [(missed.seat, missed.state, missed.reason) for missed in minutes.absences] == [("beta", "timed_out", "no answer within 0.2 s")]  # fmt: skip
    assert asks() == []
    check_store(council)


def configure_human_beta(workspace: Workspace) -> None:
    """Set the member of beta to a person in the settings."""
    path = workspace.folder / "council.toml"
    path.write_text(path.read_text().replace('model = "sim:beta"', 'model = "human"'))
    trust_project(workspace.folder)


@pytest.mark.behaviour("50-human-clock")
def test_the_member_timeout_does_not_apply_to_a_person(workspace: Workspace) -> None:
    """Gamma times out; the person, asked at the same time, is still waited for."""
    workspace.answers.instead["gamma"] = Reply(hang=True)
    terminal = PseudoTerminal(workspace.folder, "--timeout", "4", *TRIAD, QUESTION)
    terminal.wait_for("a single - to abstain.")
    wait_until(lambda: workspace.rows("SELECT 1 FROM events WHERE type = 'fault'"), "gamma is given up")
    terminal.type_lines("Still here.", ".")
    done = terminal.wait_for_exit()
    assert done.code == 0
    assert "gamma did not answer" in done.out and "beta did not" not in done.out


def test_the_timeout_of_a_person_is_a_setting(council: Terminal) -> None:
    assert council("config", "--json").json["human.timeout"] == {"value": 3600.0, "origin": "built-in"}


def test_the_grace_flag_does_not_drop_a_person(workspace: Workspace) -> None:
    terminal = PseudoTerminal(workspace.folder, "--grace", "0", *TRIAD, QUESTION)
    terminal.wait_for("a single - to abstain.")
    wait_until(lambda: len(workspace.rows("SELECT 1 FROM results")) == 2, "the others have answered")
    terminal.type_lines("Late.", ".")
    assert terminal.wait_for_exit().code == 0
    assert "Late." in workspace.prompt("merge/chair")


def test_a_closed_terminal_leaves_a_run_that_can_be_resumed(workspace: Workspace, council: Terminal) -> None:
    terminal = PseudoTerminal(workspace.folder, *TRIAD, QUESTION)
    terminal.wait_for("a single - to abstain.")
    os.killpg(terminal.process.pid, signal.SIGHUP)
    assert terminal.wait_for_exit().code == 130
    (run,) = workspace.runs()
    assert workspace.status(run) == "incomplete"
    check_store(council)
