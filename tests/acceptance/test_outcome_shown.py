"""Outcomes beside the answers they are about: in lists, reports and follow-ups, and asked for one after another."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import time
from pathlib import Path

import anyio
import pytest

from council import Client
from tests.acceptance.helpers import QUESTION, Terminal, Workspace
from tests.acceptance.pseudo_terminal import PseudoTerminal
from tests.acceptance.test_continue import NEXT
from tests.fake_provider import Reply, Seen

NOTES = {"agreed": [], "contested": [], "unique": [], "taken_from": [], "closest_draft": "alpha", "recommendation_shared_by": ["alpha", "beta", "gamma"]}  # fmt: skip
WRONG = "the answer turned out wrong: the right value is 43"
EARLIER = "an earlier answer of this conversation turned out wrong"
PROMPT = "skip or quit [skip]: "
DAY_S = 86_400


def answer(seen: Seen) -> Reply:
    text = "Move it.\n\nAnswer: 42"
    return Reply(text=f"{text}\n\n```council-notes\n{json.dumps(NOTES)}\n```" if seen.model == "chair" else text)


class Decisions:
    """Runs that answer every question with 42."""

    def __init__(self, workspace: Workspace, council: Terminal) -> None:
        self.workspace, self.council = workspace, council
        workspace.provider.answer = answer

    def ask(self, *arguments: str) -> str:
        done = self.council("--protocol", "triad", "--json", *arguments)
        assert done.code == 0, done.err
        return str(done.json["run"])

    def make_older(self, run: str, days: float) -> None:
        with sqlite3.connect(self.workspace.data / "council.db") as db:
            db.execute("UPDATE runs SET created = ? WHERE id = ?", (time.time() - days * DAY_S, run))

    def trust_line(self, run: str) -> str:
        (line,) = (line for line in self.council("runs", "show", run).out.splitlines() if line.startswith("Trust: "))
        return line


@pytest.fixture
def decisions(workspace: Workspace, council: Terminal) -> Decisions:
    return Decisions(workspace, council)


@pytest.mark.behaviour("evidence-outcome-shown")
def test_every_command_that_shows_a_run_says_that_it_turned_out_wrong(
    decisions: Decisions, council: Terminal, workspace: Workspace
) -> None:
    run = decisions.ask(QUESTION)
    assert "decision_outcome" not in council("report", "--format", "json", run).json
    assert council("runs", "--json").json[0]["decision_outcome"] is None
    council("outcome", run, "43", "--note", "counted in\nMarch")
    for command in (("runs", "show", run), ("report", run), ("resume", run), ("runs", "replay", run)):
        assert WRONG in council(*command).out, command
    shown = council("runs", "show", run).out
    assert re.search(r"^turned out wrong \(recorded on 20..-..-..\); the right value is 43; counted in March$", shown, re.MULTILINE)  # fmt: skip
    assert "| Turned out | wrong (recorded on " in council("report", run).out
    report = council("report", "--format", "json", run).json
    assert {**report["decision_outcome"], "at": 0} == {"at": 0, "label": "wrong", "value": "43", "note": "counted in\nMarch"}  # fmt: skip
    assert report["trust"]["because"][0] == WRONG and WRONG in report["tail"][-1]
    assert WRONG in council("report", "--format", "html", run).out
    assert council("runs", "--json").json[0]["decision_outcome"] == "wrong"
    assert f"{report['trust']['level']}, wrong" in council("runs").out
    assert "wrong" in council("runs", "search", "archive").out
    assert council("runs", "fsck").code == 0  # the record of the run is as it was


@pytest.mark.behaviour("evidence-outcome-shown")
def test_a_right_outcome_is_shown_and_the_newest_one_counts(decisions: Decisions, council: Terminal) -> None:
    run = decisions.ask(QUESTION)
    council("outcome", run, "wrong", "--note", "too slow")
    council("outcome", run, "right", "--note", "it was the network")
    shown = council("runs", "show", run).out
    assert "turned out right (recorded on " in shown and "wrong" not in shown and "it was the network" in shown
    assert council("report", "--format", "json", run).json["trust"]["in_favour"][0] == "the answer turned out right"
    stored = council("outcome", run, "--json").json
    assert (stored["label"], [(row["label"], row["note"]) for row in stored["earlier"]]) == ("right", [("wrong", "too slow")])  # fmt: skip


@pytest.mark.behaviour("evidence-outcome-report")
def test_the_report_file_is_written_again_unless_someone_has_changed_it(
    decisions: Decisions, council: Terminal
) -> None:
    run, other = decisions.ask(QUESTION), decisions.ask("Should the garden grow?")
    path, changed = (Path(council("report", "--format", "json", name).json["report_path"]) for name in (run, other))
    before = path.read_text(encoding="utf-8")
    assert council("outcome", run, "wrong").err == ""
    assert "the answer turned out wrong" in path.read_text(encoding="utf-8")
    council("outcome", run, "right")
    assert "the answer turned out wrong" not in path.read_text(encoding="utf-8") != before
    changed.write_text("My notes.", encoding="utf-8")
    warned = council("outcome", other, "wrong")
    assert warned.code == 0 and f"! {changed} was changed" in warned.err
    assert changed.read_text(encoding="utf-8") == "My notes."


@pytest.mark.behaviour("evidence-outcome-follow-up")
def test_a_follow_up_says_that_an_earlier_answer_turned_out_wrong_and_tells_its_members(
    decisions: Decisions, council: Terminal, workspace: Workspace
) -> None:
    first = decisions.ask(QUESTION)
    second = decisions.ask("-c", first, NEXT)
    assert EARLIER not in decisions.trust_line(second)
    council("outcome", first, "43", "--note", "the restores took a week")
    assert f"{EARLIER} ({first})" in decisions.trust_line(second)  # recorded after the follow-up has ended
    assert EARLIER in council("report", second).out

    workspace.provider.forget()
    plan = council("-c", second, "--dry-run", "And then?")
    assert f"turned out wrong: {first}; the members are told" in plan.out
    third = council("-c", second, "And then?")
    assert f"{EARLIER} ({first})" in third.out
    told = "[This answer later turned out wrong. The right value is 43. Note of the user: the restores took a week]"
    drafts = [seen.prompt for seen in workspace.provider.log if seen.model != "chair"]
    assert len(drafts) == 3 and all(told in prompt for prompt in drafts)
    assert council("runs", "fsck").code == 0

    run = council("runs", "--json").json[0]["run"]
    council("outcome", first, "right")  # a correction
    assert EARLIER not in decisions.trust_line(run)
    council("outcome", first, "wrong")
    council("runs", "rm", first, "--yes")  # what its members were told stays
    assert f"{EARLIER} ({first})" in decisions.trust_line(run)
    assert EARLIER not in decisions.trust_line(second)


@pytest.mark.behaviour("evidence-outcome-follow-up")
def test_a_fork_says_that_the_answer_it_is_a_fork_of_turned_out_wrong(decisions: Decisions, council: Terminal) -> None:
    first = decisions.ask(QUESTION)
    early = council("fork", first, "--json").json["run"]
    council("outcome", first, "wrong")
    late = council("fork", first, "--json").json
    line = f"the answer of {first}, of which this is a fork, turned out wrong"
    assert line in late["trust"]["because"] and line in late["tail"][-1]
    assert line in decisions.trust_line(early)
    assert f"continues {late['run']}" in council("-c", late["run"], "--dry-run", NEXT).out
    assert f"turned out wrong: {first}" in council("-c", late["run"], "--dry-run", NEXT).out


@pytest.mark.behaviour("evidence-outcome-shown")
def test_secrets_in_a_note_are_masked(decisions: Decisions, council: Terminal, workspace: Workspace) -> None:
    run, secret = decisions.ask(QUESTION), "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    shown = council("outcome", run, "wrong", "--note", f"the token {secret} was rejected", "--json").json
    assert secret not in shown["note"] and shown["note"].endswith("was rejected")


@pytest.mark.behaviour("evidence-outcome-ask")
def test_without_a_run_and_a_terminal_the_oldest_decisions_are_listed(decisions: Decisions, council: Terminal) -> None:
    first, second, new = (decisions.ask(f"{QUESTION} {n}") for n in range(3))
    decisions.make_older(first, 20)
    decisions.make_older(second, 8)
    rows = council("outcome", "--json").json
    assert [(row["run"], row["question"], row["skipped"]) for row in rows] == [(first, f"{QUESTION} 0", None), (second, f"{QUESTION} 1", None)]  # fmt: skip
    assert "Answer: 42" in rows[0]["answer"] and rows[0]["trust"] == "MEDIUM"
    listed = council("outcome")
    assert [line.split()[0] for line in listed.out.splitlines()] == ["RUN", first, second]
    assert listed.out.splitlines()[1].endswith("42") and "1 decision of the last 7 days not asked about" in listed.err
    assert [row["run"] for row in council("outcome", "--older-than", "0d", "--limit", "3", "--json").json] == [first, second, new]  # fmt: skip
    assert council("outcome", "--older-than", "30d").out == "no decisions without an outcome\n"
    refused = council("outcome", first, "right", "--here")
    assert refused.code == 2 and f"leave them out with {first}" in refused.err
    refused = council("outcome", "--note", "no run")
    assert refused.code == 2 and "needs a run" in refused.err


@pytest.mark.behaviour("evidence-outcome-ask")
def test_a_person_is_asked_about_one_decision_after_another_and_ctrl_c_keeps_what_was_said(
    decisions: Decisions, council: Terminal, workspace: Workspace
) -> None:
    runs = [decisions.ask(f"{QUESTION} {n}") for n in range(5)]
    for n, run in enumerate(runs):
        decisions.make_older(run, 20 - n)
    terminal = PseudoTerminal(workspace.folder, "outcome", stdout=True)
    shown = terminal.wait_for(PROMPT)
    assert f"1 of 5 · {runs[0]} · 20" in shown and "trust MEDIUM" in shown
    assert f"question: {QUESTION} 0" in shown and "answer: 42" in shown
    terminal.type_lines("r")
    terminal.wait_for(PROMPT)
    terminal.type_lines("w")
    terminal.wait_for("note, empty for none: ")
    terminal.type_lines("the disk was full")
    terminal.wait_for(PROMPT)
    terminal.type_lines("")
    terminal.wait_for(PROMPT)
    terminal.type_lines("43")
    terminal.wait_for("note, empty for none: ")
    terminal.type_lines("")
    terminal.wait_for(PROMPT)
    os.kill(terminal.process.pid, signal.SIGINT)  # the key also discards output that is not shown yet
    ended = terminal.wait_for_exit()
    assert ended.code == 130 and "3 recorded, 1 skipped, 1 left" in ended.err
    rows = {row["run"]: row["decision_outcome"] for row in council("runs", "--json").json}
    assert [rows[run] for run in runs] == ["right", "wrong", None, "wrong", None]
    assert "the disk was full" in council("runs", "show", runs[1]).out
    assert [row["run"] for row in council("outcome", "--json").json] == [runs[4], runs[2]]  # the skipped one is last


@pytest.mark.behaviour("evidence-outcome-ask")
def test_a_value_that_cannot_be_compared_is_asked_for_again(
    decisions: Decisions, council: Terminal, workspace: Workspace
) -> None:
    workspace.provider.answer = lambda seen: Reply(text="It depends on many things that nobody knows today.")
    run = decisions.ask(QUESTION)
    terminal = PseudoTerminal(workspace.folder, "outcome", "--older-than", "0d", stdout=True)
    terminal.wait_for(PROMPT)
    terminal.type_lines("44")
    assert "note" not in terminal.wait_for("say right or wrong")
    terminal.wait_for(PROMPT)
    terminal.type_lines("quit")
    assert terminal.wait_for_exit().code == 0
    assert council("runs", "--json").json[0] | {"run": run, "decision_outcome": None} == council("runs", "--json").json[0]  # fmt: skip


@pytest.mark.behaviour("evidence-outcome-shown")
def test_the_library_records_an_outcome_and_its_reports_show_it(decisions: Decisions) -> None:
    run = decisions.ask(QUESTION)

    async def work() -> None:
        async with Client() as client:
            recorded = await client.record_outcome(run, "wrong", note="too slow")
            assert (recorded["label"], recorded["note"]) == ("wrong", "too slow")
            outcome = (await client.report(run)).decision_outcome
            assert outcome is not None and (outcome.label, outcome.note) == ("wrong", "too slow")
            assert [row["decision_outcome"] for row in await client.runs()] == ["wrong"]

    anyio.run(work)
