"""Command grammar: how argv is split."""

from __future__ import annotations

import json

import pytest

from council.doors.cli import run
from council.doors.cli.params import COMMAND_HELP, MANAGEMENT_COMMANDS, split_command
from council.errors import UsageError

SCRIPTED = [flag for seat in ("alpha", "beta", "gamma", "chair") for flag in ("--seat", f"{seat}=scripted:")]


@pytest.mark.behaviour("00-flags-anywhere")
@pytest.mark.parametrize(
    "arguments",
    [
        ["--dry-run", "--json", "Tabs", "or", "spaces?"],
        ["Tabs", "--dry-run", "or", "--json", "spaces?"],
        ["Tabs or spaces?", "--json", "--dry-run"],
        ["--timeout", "5", "--dry-run", "Tabs or spaces?", "--json"],
    ],
)
def test_flags_may_be_anywhere_and_words_need_no_quotes(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*SCRIPTED, *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["question"] == "Tabs or spaces?"


@pytest.mark.behaviour("00-flags-anywhere")
def test_everything_after_two_dashes_is_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SCRIPTED, "--dry-run", "--json", "--", "--json", "or", "runs?"]) == 0
    assert json.loads(capsys.readouterr().out)["question"] == "--json or runs?"


@pytest.mark.behaviour("00-mode-alias")
def test_mode_is_an_alias_of_protocol(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SCRIPTED, "--dry-run", "--json", "--mode", "triad", "Tabs?"]) == 0
    assert json.loads(capsys.readouterr().out)["protocol"] == "triad"
    assert run([*SCRIPTED, "--dry-run", "--mode", "triad", "--protocol", "adversarial", "Tabs?"]) == 2
    assert "--mode is an alias of --protocol" in capsys.readouterr().err


@pytest.mark.behaviour("00-management-words")
@pytest.mark.parametrize("word", MANAGEMENT_COMMANDS)
def test_a_management_word_is_that_command_with_flags_before_or_after(word: str) -> None:
    assert split_command([word, "--json"]) == (word, [word, "--json"])
    assert split_command(["--json", word]) == (word, [word, "--json"])


@pytest.mark.behaviour("00-management-words")
@pytest.mark.parametrize("word", COMMAND_HELP)
def test_an_invalid_flag_of_a_command_is_a_usage_error_that_shows_how_to_ask(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([word, "--no-such-flag"]) == 2
    assert f'council ask "{word}"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["runs", "rm", "--before", "soon"], '--before "soon" is not a day: use a date such as --before 2026-01-31'),
        (["runs", "rm", "--before", "2026-02-30"], '--before "2026-02-30" is not a day'),
        (
            ["resume", "--timeout", "long"],
            '--timeout "long" is not a number, nothing was spent: use for example --timeout',
        ),
        (["--max-cost", "cheap", "Tabs?"], '--max-cost "cheap" is not a number'),
    ],
)
def test_an_invalid_number_or_day_is_named_with_an_example(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1


def test_the_value_of_a_flag_is_never_the_command() -> None:
    assert split_command(["--protocol", "runs", "Tabs?"]) == ("Tabs?", ["--protocol", "runs", "Tabs?"])
    assert split_command(["-o", "report", "Tabs?"])[0] == "Tabs?"


@pytest.mark.behaviour("00-misspelt-never-runs")
@pytest.mark.parametrize("words", [["resme"], ["rusn", "list"], ["doctr"], ["confg"], ["confg", "x"], ["modles", "x"]])
def test_a_misspelled_command_is_not_a_question(words: list[str]) -> None:
    with pytest.raises(UsageError, match="did you mean `council "):
        split_command(words)


@pytest.mark.parametrize("words", [["game", "design"], ["tabs", "spaces"], ["models?"]])
def test_a_short_question_is_not_a_command(words: list[str]) -> None:
    assert split_command(words) == (words[0], words)
