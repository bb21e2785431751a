"""Commands of a conversation that ask no model."""

from __future__ import annotations

import pytest

from council.doors.cli.ask import build_request
from council.doors.cli.chat import OTHER_FLAGS, Chat, EndOfChat, chat_command, parse_command
from council.doors.cli.runner import Runner
from council.errors import UsageError


@pytest.fixture
def chat() -> Chat:
    given = chat_command().make_context("chat", ["--protocol", "advisors", "--rounds", "2"]).params
    params = dict.fromkeys(OTHER_FLAGS) | given | {"no_stdin": True}
    params.pop("words")
    return Chat(Runner.from_flags(params), build_request((), params))


def run(chat: Chat, line: str) -> None:
    command = parse_command(line)
    assert command
    chat.run_command(*command)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/undo", "there is no turn to undo"),
        ("/retry", "there is no question to ask again in this conversation"),
        ("/resume", "there is no unfinished turn to resume"),
        ("/open", "there is no turn to open"),
        ("/undu", 'unknown command "/undu": did you mean /undo? /help lists the commands'),
        ("/zzzzz", 'unknown command "/zzzzz": /help lists the commands'),
        ("/cost now", '/cost takes no argument, but it got "now"'),
        ("/protocol advisor", "advisors"),
    ],
)
def test_a_command_that_cannot_run_says_why(chat: Chat, line: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        run(chat, line)
    assert message in str(error.value)


def test_another_protocol_keeps_only_the_options_that_it_has(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    run(chat, "/protocol")
    assert (chat.request.protocol, chat.request.options) == ("advisors", {"rounds": 2})
    run(chat, "/protocol advisors")
    assert chat.request.options == {"rounds": 2}
    run(chat, "/protocol triad")
    assert (chat.request.protocol, chat.request.options) == ("triad", {})
    run(chat, "/protocol auto")
    assert chat.request.protocol is None
    assert capsys.readouterr().err.splitlines() == [
        "protocol: advisors",
        "protocol: advisors",
        "protocol: triad",
        "protocol: chosen by the words, else that of the turn before",
    ]


def test_members_are_shown_and_returned_to_the_configuration(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    chat.runner.flags |= {"cheap": True}
    run(chat, "/members")
    assert chat.runner.flags["cheap"]
    run(chat, "/members scripted:, scripted:")
    assert (chat.runner.flags["models"], chat.runner.flags["cheap"]) == (["scripted:", "scripted:"], None)
    run(chat, "/members auto")
    assert chat.runner.flags["models"] is None
    assert capsys.readouterr().err.splitlines() == [
        "members: chosen by the configuration",
        "members: scripted:, scripted:",
        "members: chosen by the configuration",
    ]


def test_an_unknown_member_is_refused_and_changes_nothing(chat: Chat) -> None:
    with pytest.raises(Exception, match="nobody"):
        run(chat, "/members nobody")
    assert chat.runner.flags["models"] is None


def test_help_lists_every_command_with_its_argument(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    run(chat, "?")
    lines = capsys.readouterr().err.splitlines()
    assert "  /protocol NAME  Use this protocol from now on; auto: let the words choose." in lines
    assert "  /cost           Show the cost of the last turn and of this conversation." in lines
    assert lines[-1] == "A line that ends with \\ continues on the next line. Ctrl-C stops a turn."


def test_a_conversation_without_a_turn_has_no_cost_and_no_goodbye(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    run(chat, "/cost")
    assert capsys.readouterr().err == "last turn: no cost · 0 turns, no cost\n"
    run(chat, "/new")
    assert capsys.readouterr().err == "the next question starts a new conversation\n"
    chat._say_goodbye()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("line", ["/quit", "exit", ":q"])
def test_quit_ends_the_conversation(chat: Chat, line: str) -> None:
    with pytest.raises(EndOfChat):
        run(chat, line)
