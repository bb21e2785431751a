"""Flags of management commands: what they share with a question, and their limits."""

from __future__ import annotations

from typing import Any

import click
import pytest

from council.doors.cli.batch_command import batch_command, check_limits, read_defaults
from council.doors.cli.management import load_command
from council.doors.cli.params import COMMON_FLAGS, common_options, make_option, split_command
from council.doors.cli.runner import Runner
from council.errors import UsageError


def parse(command: click.Command, *line: str) -> dict[str, Any]:
    return command.make_context("council", list(line)).params


def test_a_zero_is_an_option_of_every_row_and_a_flag_that_is_off_is_none() -> None:
    assert read_defaults(parse(batch_command(), "rows.jsonl", "--grace", "0")) == {"grace": 0.0}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"sample": 0}, '--sample "0" is out of range, nothing was sent: use a whole number from 1 on'),
        ({"concurrency": 0}, '--concurrency "0" is out of range, nothing was sent: use a whole number from 1 to 1000'),
        ({"concurrency": 1001}, '--concurrency "1001" is out of range'),
        ({"max_cost": -0.5}, '--max-cost "-0.5" is out of range, nothing was sent: use 0 or more dollars'),
        ({"max_cost": float("inf")}, '--max-cost "inf" is out of range'),
        ({"max_cost": float("nan")}, '--max-cost "nan" is out of range'),
    ],
)
def test_a_limit_out_of_range_is_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        check_limits(**{"max_cost": None, **limits})
    assert str(error.value).startswith(message)


def test_the_ends_of_a_range_are_accepted() -> None:
    check_limits(0.0, sample=1, concurrency=1)
    check_limits(None, sample=None, concurrency=1000)


def test_a_common_flag_means_the_same_in_every_command() -> None:
    (output, quiet) = common_options("output", "quiet")
    assert (output.opts, output.metavar, output.shell_complete is not None) == (["-o", "--output"], "FILE", True)
    assert (quiet.opts, quiet.is_flag, quiet.hidden) == (["-q", "--quiet"], True, False)


def test_hidden_flags_are_accepted_and_not_listed() -> None:
    hidden = {flag["name"] for flag in COMMON_FLAGS if make_option(flag).hidden}
    assert hidden == {"mode", "members", "show"}


def test_a_flag_that_is_off_is_no_setting_and_a_zero_is_one() -> None:
    runner = Runner.from_flags({"cheap": False, "timeout": 0.0, "max_cost": None, "hedge": True, "profile": "fast"})
    given = {name: value for name, value in runner.flags.items() if value is not None}
    assert given == {"timeout": 0.0, "hedge": True, "profile": "fast", "seats": {}}


def test_answer_only_names_the_flag_that_prints_more() -> None:
    for flags, named in (
        ({"format": "sarif"}, "--format sarif prints the whole run"),
        ({"json": True}, "--json prints the whole run"),
        ({"jsonl": True}, "--jsonl prints the whole run"),
        ({"verbose": True}, "--verbose prints every statement"),
        ({"show": "transcript"}, "--verbose prints every statement"),
    ):
        with pytest.raises(UsageError) as error:
            Runner.from_flags({"answer_only": True, **flags})
        assert f"--answer-only prints the answer alone and {named}, nothing was spent" in str(error.value)
    assert Runner.from_flags({"answer_only": True}).answer_only


@pytest.mark.parametrize("line", [["statsu", "-m", "gpt"], ["-m", "gpt", "statsu"], ["statsu", "--model", "gpt"]])
def test_the_value_of_a_flag_is_no_word_of_a_misspelled_command(line: list[str]) -> None:
    with pytest.raises(UsageError, match=r'council ask "statsu"$'):
        split_command(line)


@pytest.mark.parametrize("flag", ["-o", "-m", "-a", "-c", "--seat", "--rounds"])
def test_the_value_of_a_flag_is_not_the_deciding_word(flag: str) -> None:
    assert split_command([flag, "runs", "Tabs or spaces?"]) == ("Tabs or spaces?", [flag, "runs", "Tabs or spaces?"])


@pytest.mark.parametrize("flag", ["-v", "-q", "--json", "--redact"])
def test_a_flag_without_a_value_leaves_the_next_word(flag: str) -> None:
    assert split_command([flag, "runs"]) == ("runs", ["runs", flag])


@pytest.mark.parametrize("word", ["worker", "tokens", "gate"])
def test_an_old_word_accepts_quiet_in_all_its_commands(word: str) -> None:
    command = load_command(word)
    inner = command.commands.values() if isinstance(command, click.Group) else ()
    for one in (command, *inner):
        assert [parameter.name for parameter in one.params].count("quiet") == 1
