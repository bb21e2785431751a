"""A person as a member: asked through any interface, waited for, and never asked twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from typing import Any

import pytest

from council.errors import UsageError
from council.runs.service import Convener
from tests.acceptance.helpers import QUESTION, Json, Table, Terminal, die_at, mark, until
from tests.acceptance.pseudo_terminal import Typist
from tests.acceptance.test_crash_everywhere import processes
from tests.acceptance.test_worker import check_store, queue_run, status
from tests.fake_provider import Reply

__all__ = ["processes"]

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
    until(lambda: found.extend(one for one in asks() if one["key"] == key) or found, f"{key} is asked")
    return found[0]


# At the terminal


@pytest.mark.behaviour("50-human-terminal")
def test_a_person_is_shown_what_the_seat_sees_and_what_they_type_is_its_statement(
    table: Table, council: Terminal
) -> None:
    typist = Typist(table.folder, *TRIAD, QUESTION)
    shown = typist.sees("Your seat is beta.")
    assert QUESTION in shown and "# Your part" in shown
    typist.sees("End it with a line that has a single dot")
    typist.types("Not all of it.", "", f"Tape is slow: {mark('beta', 'draft')}.", ".")
    typist.sees("Thank you.")
    done = typist.ended()
    assert done.code == 0, done.err
    assert done.out.strip().endswith(f"The merge of chair: {mark('chair', 'merge')}.")
    assert sorted(table.asked()) == ["draft/alpha", "draft/gamma", "merge/chair"]
    assert f"Not all of it.\n\nTape is slow: {mark('beta', 'draft')}." in table.prompt("merge/chair")
    report = council("report", "--json").json
    (seat,) = (seat for seat in report["seats"] if seat["name"] == "beta")
    assert (seat["model"], seat["vendor"], seat["served_by"], seat["state"]) == ("human", "human", "human", "ok")
    assert seat["cost"] == 0
    check_store(council)


@pytest.mark.behaviour("50-human-typed")
def test_a_typed_reply_is_asked_field_by_field(table: Table, council: Terminal) -> None:
    typist = Typist(table.folder, "--protocol", "adversarial", *HUMAN, QUESTION)
    typist.sees("Your seat is beta.")
    typist.types("My draft.", ".")
    typist.sees("Your seat is beta. Type your answer field by field.")
    typist.sees("issues, ")
    typist.types("major")
    typist.sees("hits, ")
    typist.types("the price")
    typist.sees("flaw, ")
    typist.types("it is per restore")
    typist.sees("correction, ")
    typist.types("count restores")
    typist.sees("severity (FATAL, MAJOR, MINOR): ")
    typist.types("")
    typist.sees("case, ")
    typist.types("Mine counts them.", ".")
    typist.sees("verdict, ")
    typist.types("SURVIVED")
    typist.sees("choose one of STAND, MODIFIED, REJECTED")
    typist.types("mod")
    typist.sees("Thank you.")
    done = typist.ended()
    assert done.code == 0, done.err
    said = json.loads(table.rows("SELECT body FROM results WHERE key = 'attack/beta'")[0][0])["text"]
    assert json.loads(said) == {
        "issues": [{"severity": "MAJOR", "hits": "the price", "flaw": "it is per restore", "correction": "count restores"}],
        "case": "Mine counts them.", "verdict": "MODIFIED",
    }  # fmt: skip
    assert "beta-1" in table.prompt("verdict/chair")
    check_store(council)


@pytest.mark.behaviour("50-human-abstains")
@pytest.mark.parametrize("typed", ["-\n", ".\n", "\x04"])
def test_a_person_may_abstain_and_is_absent_with_that_reason(table: Table, council: Terminal, typed: str) -> None:
    typist = Typist(table.folder, *TRIAD, QUESTION)
    typist.sees("a single - to abstain.")
    typist.presses(typed)
    typist.sees("You abstained.")
    done = typist.ended()
    assert done.code == 0, done.err
    assert "beta did not answer in draft: it declined to answer (refused): the person abstained" in done.out
    assert council("report", "--json").json["quorum"] == {"needed": 1, "ok": 2, "asked": 3}
    check_store(council)


@pytest.mark.behaviour("50-human-terminal")
def test_a_short_answer_of_a_person_is_accepted(table: Table) -> None:
    typist = Typist(table.folder, *TRIAD, QUESTION)
    typist.sees("a single - to abstain.")
    typist.types("none", ".")
    assert typist.ended().code == 0
    assert "none" in table.prompt("merge/chair")


def test_the_live_table_is_suspended_during_a_question(table: Table) -> None:
    gate = table.hold("draft")
    typist = Typist(table.folder, *TRIAD, QUESTION)
    gate.wait(count=2)
    typist.sees("a single - to abstain.")
    gate.release()
    until(lambda: len(table.rows("SELECT 1 FROM results")) == 2, "the others have answered")
    assert "draft" not in typist.screen[typist._seen :]
    typist.types("Mine.", ".")
    typist.sees("Thank you.")
    typist.sees("merge")
    assert typist.ended().code == 0


@pytest.mark.behaviour("50-human-interrupt")
def test_ctrl_c_while_a_person_is_asked_interrupts_the_run_and_it_can_be_resumed(
    table: Table, council: Terminal
) -> None:
    typist = Typist(table.folder, *TRIAD, QUESTION)
    typist.sees("a single - to abstain.")
    typist.types("Half an ans")
    typist.presses("\x03")
    done = typist.ended()
    assert done.code == 130
    assert "Traceback" not in done.err
    assert asks() == []
    check_store(council)
    again = Typist(table.folder, "resume")
    again.sees("a single - to abstain.")
    again.types("All of it.", ".")
    assert again.ended().code == 0
    assert "All of it." in table.prompt("merge/chair")
    assert "Half" not in table.prompt("merge/chair")


# Without a terminal


@pytest.mark.behaviour("50-human-refused")
@pytest.mark.parametrize("command", [(), ("--json",), ("--jsonl",)])
def test_without_a_terminal_a_person_is_rejected_before_anything_is_spent(
    table: Table, council: Terminal, command: tuple[str, ...]
) -> None:
    refused = table.council(*command, *TRIAD, QUESTION)
    assert (refused.code, (refused.err or refused.out).count("\n")) == (2, 1)
    assert 'seat "beta" is a person, but there is no terminal' in refused.err + refused.out.replace('\\"', '"')
    assert (table.provider.log, table.runs()) == ([], [])


@pytest.mark.behaviour("50-human-refused")
def test_with_no_input_a_person_is_rejected_at_a_terminal_too(table: Table) -> None:
    typist = Typist(table.folder, "--no-input", *TRIAD, QUESTION)
    done = typist.ended()
    assert done.code == 2
    assert "there is no terminal (or --no-input is set)" in done.err
    assert (table.provider.log, table.runs()) == ([], [])


def test_forks_and_resumed_runs_are_rejected_without_a_terminal(table: Table, council: Terminal) -> None:
    run = council("--json", "--protocol", "triad", QUESTION).json["run"]
    table.provider.forget()
    assert table.council("fork", run, *HUMAN).code == 2
    waiting = queue_run("triad")
    assert (table.provider.log, len(table.runs())) == ([], 2)
    council("cancel", waiting)


# Through other interfaces


@pytest.mark.behaviour("50-human-any-door")
def test_a_detached_run_waits_for_an_answer_from_any_interface(detached: Table, council: Terminal) -> None:
    run = council("--detach", "--json", "--protocol", "adversarial", *HUMAN, QUESTION).json["run"]
    draft = asked("draft/beta")
    assert (draft["run"], draft["seat"], draft["schema"], draft["fields"]) == (run, "beta", None, [])
    assert QUESTION in draft["prompt"]
    assert status(detached, run) == "running"
    assert answer(run, "draft/beta", f"Keep it: {mark('beta', 'draft')}.")
    attack = asked("attack/beta")
    assert [field["name"] for field in attack["fields"]] == ["issues", "case", "verdict"]
    with pytest.raises(UsageError, match=r"missing: verdict \(STAND, MODIFIED, REJECTED\)"):
        answer(run, "attack/beta", "I do not like it.")
    assert answer(run, "attack/beta", "It can STAND, if it is paid for.")
    with pytest.raises(UsageError, match="has no open question"):
        answer(run, "attack/beta", "Again.")
    watched = council("watch", run, "--json")
    assert (watched.code, watched.json["status"]) == (0, "complete")
    said = json.loads(detached.rows("SELECT body FROM results WHERE key = 'attack/beta'")[0][0])["text"]
    assert json.loads(said) == {"issues": [], "case": "It can STAND, if it is paid for.", "verdict": "STAND"}
    assert asks() == []
    check_store(council)


@pytest.mark.behaviour("50-human-typed")
def test_an_invalid_answer_is_asked_for_again_with_the_reason(detached: Table, council: Terminal) -> None:
    run = council("--detach", "--json", "--protocol", "adversarial", "--seat", "chair=human", QUESTION).json["run"]
    triage = {"leader": "alpha", "reason": "it counts", "same_conclusion": False, "no_critical_flag": False}
    asked("triage/chair")
    assert answer(run, "triage/chair", json.dumps(triage | {"no_contradiction": False, "mostly_high": False}))
    asked("verdict/chair")
    points = [{"issue": f"{seat}-1", "landed": False, "why": "no"} for seat in ("beta", "gamma")]
    ruling = {"points": points, "outcome": "OVERTURNED", "answer": "Stay.", "assessment": "Clear."}
    assert answer(run, "verdict/chair", json.dumps(ruling))
    again = "OVERTURNED needs at least one attack point that landed"
    until(lambda: any(again in one["prompt"] for one in asks(run)), "it is asked again")
    assert answer(run, "verdict/chair", json.dumps(ruling | {"outcome": "SURVIVED"}))
    watched = council("watch", run, "--json")
    assert (watched.json["outcome"], watched.json["chair"]["state"]) == ("SURVIVED", "ok_repaired")
    check_store(council)


@pytest.mark.behaviour("50-human-watch")
def test_watching_a_detached_run_at_a_terminal_asks_the_person_there(detached: Table, council: Terminal) -> None:
    run = council("--detach", "--json", *TRIAD, QUESTION).json["run"]
    typist = Typist(detached.folder, "watch", run)
    typist.sees("a single - to abstain.")
    typist.types("From afar.", ".")
    typist.sees("Thank you.")
    done = typist.ended()
    assert done.code == 0, done.err
    assert mark("chair", "merge") in done.out
    assert "From afar." in detached.prompt("merge/chair")
    check_store(council)


def test_a_question_answered_elsewhere_is_withdrawn(table: Table) -> None:
    typist = Typist(table.folder, *TRIAD, QUESTION)
    typist.sees("a single - to abstain.")
    gate, one = table.hold("merge"), asked("draft/beta")
    assert answer(one["run"], one["key"], "I was faster.")
    typist.sees("This question is closed: it was answered elsewhere or timed out.")
    gate.release()
    assert typist.ended().code == 0
    assert "I was faster." in table.prompt("merge/chair")


# Killed runs


@pytest.mark.behaviour("50-human-resumed")
def test_a_resumed_run_keeps_the_answers_of_the_person(table: Table, council: Terminal) -> None:
    typist = Typist(table.folder, "--protocol", "adversarial", *HUMAN, QUESTION)
    typist.sees("a single - to abstain.")
    typist.types(f"My only draft: {mark('beta', 'draft')}.", ".")
    typist.sees("Type your answer field by field.")
    os.killpg(typist.process.pid, signal.SIGKILL)
    typist.ended()
    check_store(council)
    again = Typist(table.folder, "resume")
    shown = again.sees("Type your answer field by field.")
    assert "My only draft" in shown  # quoted in what the attacker is shown, not asked for again
    again.sees("issues, ")
    again.types("", ".", "stand")
    again.sees("Thank you.")
    done = again.ended()
    assert done.code == 0, done.err
    assert table.rows("SELECT count(*) FROM intents WHERE key = 'draft/beta'") == [(1,)]
    check_store(council)


@pytest.mark.behaviour("50-human-resumed")
def test_an_answer_given_just_before_a_crash_is_not_asked_for_again(
    processes: ForkServerContext, table: Table, council: Terminal
) -> None:
    configure_human_beta(table)
    gate = table.hold("draft")
    process = processes.Process(
        target=die_at, args=(table.folder, dict(os.environ), "triad", 9), kwargs={"resume": False}
    )
    process.start()
    gate.wait(count=2)
    one = asked("draft/beta")  # events: convened, phase, asked ×3, attempted ×3; the ninth is the statement
    assert answer(one["run"], one["key"], "Said once.")
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert table.rows("SELECT count(*) FROM results") == [(0,)]
    gate.release()
    minutes = _with(lambda convener: convener.resume(None, lambda entry: None))
    assert minutes.status == "complete"
    assert "Said once." in table.prompt("merge/chair")
    check_store(council)


# Timeouts


@pytest.mark.behaviour("50-human-clock")
def test_a_person_has_a_separate_timeout(table: Table, council: Terminal) -> None:
    table.configure(more="[human]\ntimeout = 0.2\n")
    configure_human_beta(table)
    run = queue_run("triad")
    minutes = _with(lambda convener: convener.resume(run, lambda entry: None))
    assert [(missed.seat, missed.state, missed.reason) for missed in minutes.absences] == [("beta", "timed_out", "no answer within 0.2 s")]  # fmt: skip
    assert asks() == []
    check_store(council)


def configure_human_beta(table: Table) -> None:
    """Set the member of beta to a person in the settings."""
    path = table.folder / "council.toml"
    path.write_text(path.read_text().replace('model = "sim:beta"', 'model = "human"'))


@pytest.mark.behaviour("50-human-clock")
def test_the_member_timeout_does_not_apply_to_a_person(table: Table) -> None:
    """Gamma times out; the person, asked at the same time, is still waited for."""
    table.cast.instead["gamma"] = Reply(hang=True)
    typist = Typist(table.folder, "--timeout", "0.3", *TRIAD, QUESTION)
    typist.sees("a single - to abstain.")
    until(lambda: table.rows("SELECT 1 FROM events WHERE type = 'fault'"), "gamma is given up")
    typist.types("Still here.", ".")
    done = typist.ended()
    assert done.code == 0
    assert "gamma did not answer" in done.out and "beta did not" not in done.out


def test_the_timeout_of_a_person_is_a_setting(council: Terminal) -> None:
    assert council("config", "--json").json["human.timeout"] == {"value": 3600.0, "origin": "built-in"}


def test_the_grace_flag_does_not_drop_a_person(table: Table) -> None:
    typist = Typist(table.folder, "--grace", "0", *TRIAD, QUESTION)
    typist.sees("a single - to abstain.")
    until(lambda: len(table.rows("SELECT 1 FROM results")) == 2, "the others have answered")
    typist.types("Late.", ".")
    assert typist.ended().code == 0
    assert "Late." in table.prompt("merge/chair")


def test_a_closed_terminal_leaves_a_run_that_can_be_resumed(table: Table, council: Terminal) -> None:
    typist = Typist(table.folder, *TRIAD, QUESTION)
    typist.sees("a single - to abstain.")
    os.killpg(typist.process.pid, signal.SIGHUP)
    assert typist.ended().code == 130
    (run,) = table.runs()
    assert status(table, run) == "incomplete"
    check_store(council)
