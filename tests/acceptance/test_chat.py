"""`council chat` at a real terminal and with piped questions."""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path

import pytest

from council.runs.servers import find_server
from tests.acceptance.helpers import Result, Terminal, Workspace, mark, wait_until
from tests.acceptance.pseudo_terminal import PseudoTerminal
from tests.fake_provider import Reply

PROMPT = "council> "
PRICES = '[prices."sim:*"]\ninput = 3.0\noutput = 15.0\n'
QUESTIONS = ("Which storage is cheapest?", "How long does a restore take?", "What do we tell the users?")


def open_chat(workspace: Workspace, *arguments: str) -> PseudoTerminal:
    terminal = PseudoTerminal(workspace.folder, "chat", "--protocol", "triad", *arguments, stdout=True)
    terminal.wait_for(PROMPT)
    return terminal


def ask(terminal: PseudoTerminal, *lines: str) -> str:
    """Type the lines, each at a prompt, and return what was shown before the last prompt."""
    shown = ""
    for line in lines:
        terminal.type_lines(line)
        shown = terminal.wait_for(PROMPT)
    return shown


def is_sleeping(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def count_open_files(terminal: PseudoTerminal) -> int:
    wait_until(lambda: is_sleeping(terminal.process.pid), "the prompt waits for keys")
    return len(list(Path(f"/proc/{terminal.process.pid}/fd").iterdir()))


def drafts(workspace: Workspace, since: int) -> list[str]:
    """Return the prompts of the drafts after the first `since` requests."""
    found = [seen.prompt for seen in workspace.provider.log[since:] if workspace.answers.who(seen)[1] == "draft"]
    assert len(found) == 3
    return found


def pipe(council: Terminal, monkeypatch: pytest.MonkeyPatch, text: str, *arguments: str) -> Result:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    return council("chat", "--protocol", "triad", *arguments)


@pytest.mark.behaviour("50-chat", "50-chat-commands", "50-continue-rule")
def test_each_turn_continues_the_last_and_undo_goes_back_one(workspace: Workspace, council: Terminal) -> None:
    workspace.configure(more=PRICES)
    terminal = open_chat(workspace)
    assert mark("chair", "merge") in ask(terminal, QUESTIONS[0])
    opened = count_open_files(terminal)
    ask(terminal, QUESTIONS[1])
    sent = len(workspace.provider.log)
    ask(terminal, QUESTIONS[2])
    assert count_open_files(terminal) == opened
    first, second, _ = workspace.runs()
    for prompt in drafts(workspace, sent):
        assert prompt.index(f"### council {second}\n") < prompt.index(f"### council {first}\n")
        assert "Turn 2 of 2 of this conversation, the latest." in prompt
        assert all(question in prompt for question in QUESTIONS)
    cost = ask(terminal, "/cost")
    assert "last turn: cost $" in cost and "3 turns, cost $" in cost
    assert f"the next question continues {second}" in ask(terminal, "/undo")
    sent = len(workspace.provider.log)
    terminal.type_lines("And what \\")
    terminal.wait_for("... ")
    ask(terminal, "about the law?")
    assert all(QUESTIONS[2] not in prompt and QUESTIONS[1] in prompt for prompt in drafts(workspace, sent))
    fourth = workspace.runs()[3]
    assert council("report", "--format", "json", fourth).json["question"] == "And what \nabout the law?"
    assert 'unknown command "/memberz": did you mean /members?' in ask(terminal, "/memberz")
    terminal.press("\x04")
    done = terminal.wait_for_exit()
    assert done.code == 0
    assert "4 turns, cost $" in done.err
    assert f"continue: council chat -c {fourth}" in done.err
    history = workspace.data / "chat_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert history.read_text().splitlines() == [*QUESTIONS, "/cost", "/undo", "And what about the law?", "/memberz"]


@pytest.mark.behaviour("50-chat-interrupt")
def test_ctrl_c_stops_the_turn_and_resume_sends_the_same_requests(workspace: Workspace) -> None:
    terminal = open_chat(workspace)
    ask(terminal, QUESTIONS[0])
    gate = workspace.hold("draft")
    terminal.type_lines(QUESTIONS[1])
    held = gate.wait(count=3)
    terminal.press("\x03")
    first, second = workspace.runs()
    terminal.wait_for("/resume continues it, /retry asks again")
    terminal.wait_for(f"continues {first}")
    terminal.wait_for(PROMPT)
    terminal.press("half a question")
    terminal.wait_for("half a question")
    wait_until(lambda: is_sleeping(terminal.process.pid), "the prompt waits for keys")
    terminal.press("\x03")
    terminal.wait_for("/quit or Ctrl-D ends the conversation")
    terminal.wait_for(PROMPT)
    gate.release()
    sent = len(workspace.provider.log)
    assert mark("chair", "merge") in ask(terminal, "/resume")
    again = {seen.model: seen.raw for seen in workspace.provider.log[sent : sent + 3]}
    assert again == {seen.model: seen.raw for seen in held}
    assert workspace.runs() == [first, second]
    assert "there is no unfinished turn to resume" in ask(terminal, "/resume")
    assert "2 turns" in ask(terminal, "/cost")
    terminal.type_lines("/quit")
    done = terminal.wait_for_exit()
    assert (done.code, f"continue: council chat -c {second}" in done.err) == (0, True)


@pytest.mark.behaviour("50-chat")
def test_every_turn_is_confirmed_and_a_refused_one_changes_nothing(workspace: Workspace) -> None:
    workspace.configure(more=f"{PRICES}[budget]\nconfirm_above = 0.01\n")
    terminal = open_chat(workspace)
    for key, told in (("n\n", "not started, nothing was spent"), ("\x03", "stopped before it started")):
        terminal.type_lines(QUESTIONS[0])
        terminal.wait_for("Continue? [y/N]")
        terminal.press(key)
        terminal.wait_for(told)
        terminal.wait_for(PROMPT)
    assert (workspace.provider.log, workspace.runs()) == ([], [])
    for question in QUESTIONS[:2]:
        terminal.type_lines(question)
        terminal.wait_for("Continue? [y/N]")
        ask(terminal, "y")
    assert len(workspace.runs()) == 2
    terminal.press("\x04")
    assert "2 turns, cost $" in terminal.wait_for_exit().err


@pytest.mark.behaviour("50-chat", "50-chat-commands")
def test_pasted_lines_are_one_question_and_commands_change_the_next_turn(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER", "true %s")
    terminal = open_chat(workspace)
    terminal.press("\x1b[200~Two lines,\none question\x1b[201~\n")
    terminal.wait_for(PROMPT)
    workspace.configure(more='[models]\ndefault = "sim:alpha"\n')
    assert "protocol: collaborative" in ask(terminal, "/protocol collaborative")
    assert "members: sim:beta" in ask(terminal, "/members sim:beta")
    assert 'unknown protocol "nonsense"' in ask(terminal, "/protocol nonsense")
    sent = len(workspace.provider.log)
    ask(terminal, QUESTIONS[1])
    assert [seen.model for seen in workspace.provider.log[sent:]] == ["beta"] * 7
    assert "members: chosen by the configuration" in ask(terminal, "/members auto")
    terminal.type_lines("/open")
    terminal.wait_for(f"&run={workspace.runs()[-1]}")
    wait_until(lambda: find_server(os.environ), "the page is served")
    terminal.press("\x03")
    terminal.wait_for(PROMPT)
    assert "starts a new conversation" in ask(terminal, "/new")
    terminal.press("\x04")
    assert terminal.wait_for_exit().code == 0
    questions = [row[0] for row in workspace.rows("SELECT json_extract(setup, '$.question.text') FROM runs")]
    assert questions == ["Two lines,\none question", QUESTIONS[1]]


@pytest.mark.behaviour("50-chat-piped")
def test_piped_lines_are_questions_and_a_failed_turn_does_not_end_the_conversation(
    workspace: Workspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = pipe(council, monkeypatch, f"{QUESTIONS[0]}\n\n{QUESTIONS[1]}\n/cost\nquit\nnever asked\n")
    assert (done.code, len(workspace.provider.log)) == (0, 8)
    assert done.out.count(mark("chair", "merge")) == 2
    assert done.out.count("\n\n---\n\nTrust: ") == 2
    assert done.out.count("\n\n") == 5, "a blank line separates the answers"
    assert "2 turns" in done.err and PROMPT not in done.out + done.err
    _, second = workspace.runs()
    workspace.answers.instead = {name: [Reply(status=401)] for name in ("alpha", "beta", "gamma")}
    again = pipe(council, monkeypatch, f"{QUESTIONS[2]}\n/nonsense\n/retry\n", "-c")
    assert f'continues {second}, turn 2: "{QUESTIONS[1]}"' in again.err
    assert 'unknown command "/nonsense"' in again.err
    assert again.code == 2  # of the last turn or command that failed
    assert again.out.count(mark("chair", "merge")) == 1
    assert "4 turns" in again.err
    failed, retried = workspace.runs()[2:]
    assert council("report", "--format", "json", failed).json["status"] == "failed"
    assert council("report", "--format", "json", retried).json["continues"] == second


@pytest.mark.behaviour("50-chat-piped")
def test_a_chat_without_a_question_or_an_earlier_run_is_one_line(
    workspace: Workspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, arguments, error in (
        ("", (), "standard input has no question: write one question per line"),
        ("Why?\n", ("-c",), "this folder has no run to continue"),
        ("Why?\n", ("-c", "r2222z"), 'there is no run "r2222z"'),
        ("Why?\n", ("--detach",), "No such option"),
    ):
        done = pipe(council, monkeypatch, text, *arguments)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
        assert error in done.err
    assert workspace.provider.log == []


@pytest.mark.behaviour("50-chat")
def test_a_chat_can_start_with_a_question_and_pick_up_an_unfinished_turn(
    workspace: Workspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.answers.instead = {name: [Reply(status=401)] for name in ("alpha", "beta", "gamma")}
    failed = pipe(council, monkeypatch, "", QUESTIONS[0])
    assert failed.code == 4
    (run,) = workspace.runs()
    done = pipe(council, monkeypatch, f"/resume\n{QUESTIONS[1]}\n", "-c")
    assert "this turn is not finished: /resume continues it; the next question starts a new conversation" in done.err
    assert (done.code, done.out.count(mark("chair", "merge"))) == (0, 2)
    assert council("report", "--format", "json", workspace.runs()[1]).json["continues"] == run
