"""Words that look like commands, misspelt commands and unknown flags never start a run."""

from __future__ import annotations

import shlex

import pytest

from council.doors.cli import run
from council.doors.cli.params import LONE_WORDS, MANAGEMENT_COMMANDS, split_command
from council.errors import UsageError
from tests.acceptance.helpers import Terminal, Workspace

ACCEPTANCE = ("help", "list", "version", "status", "login", "history", "settings", "")


@pytest.mark.behaviour("00-lone-words")
@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        ("help", ["--help"]),
        ("Help?", ["--help"]),
        ("version", ["--version"]),
        ("list", ["list"]),
        ("List?", ["list"]),
        ("--json list", ["list", "--json"]),
        ("list protocols", ["list", "protocols"]),
        ("list models --price", ["list", "models", "--price"]),
        ("list --json presets", ["list", "presets", "--json"]),
        ("--json list presets --show security-audit", ["list", "presets", "--json", "--show", "security-audit"]),
        ("list rosters", ["list", "rosters"]),
        ("help list", ["list", "--help"]),
        ("help validate", ["validate", "--help"]),
        ("--json serve tokens add ann", ["serve", "tokens", "--json", "add", "ann"]),
        ("--json history", ["runs", "--json"]),
        ("ls", ["runs"]),
        ("usage", ["spend"]),
        ("cost --json", ["spend", "--json"]),
        ("settings --origin", ["config", "--origin"]),
        ("help runs", ["runs", "--help"]),
    ],
)
def test_a_word_that_looks_like_a_command_runs_the_obvious_one(typed: str, arguments: list[str]) -> None:
    assert split_command(shlex.split(typed))[1] == arguments


@pytest.mark.behaviour("00-lone-words")
@pytest.mark.parametrize(
    ("typed", "suggestion"),
    [
        ("login", "council init"),
        ("status", "council runs"),
        ("logs", "council watch RUN"),
        ("show", "council runs show RUN"),
        ("stop", "council cancel RUN"),
        ("setup", "council init"),
        ("auth", "council init"),
        ("delete", "council runs rm RUN"),
        ("rm", "council runs rm RUN"),
        ("info", "council doctor"),
        ("start", "council chat"),
        ("quit", "council cancel RUN"),
        ("exit", "council cancel RUN"),
        ("upgrade", "pip install --upgrade model-council"),
        ("install", "council init"),
        ("show r23456", "council runs show r23456"),
        ("stop r23456", "council cancel r23456"),
        ("status r23456 --json", "council runs show r23456"),
    ],
)
def test_other_such_words_suggest_a_command(typed: str, suggestion: str) -> None:
    with pytest.raises(UsageError, match="nothing was sent") as caught:
        split_command(shlex.split(typed))
    assert suggestion in str(caught.value)
    assert "council ask" in str(caught.value)


@pytest.mark.behaviour("00-lone-words")
@pytest.mark.parametrize(
    "typed",
    [
        "'list three ways to cut costs'",
        "list three ways to cut costs",
        "list three ways to cache",
        "list presets for my team",
        "list models and their prices",
        "list the presets",
        "list colours",
        "'list presets'",
        "-- list presets",
        "list presets -- now",
        "help me decide between Go and Rust",
        "help me",
        "show me the risks",
        "cost of living in Lisbon?",
        "stop smoking?",
        "status quo or change?",
        "ask help",
        "-- help",
        "history of Rome",
        "exit the euro?",
        "start with tests or with types?",
        "--protocol triad show business",
    ],
)
def test_a_sentence_with_such_a_word_is_a_question(typed: str) -> None:
    arguments = shlex.split(typed)
    word, rest = split_command(arguments)
    assert rest == arguments
    assert word not in MANAGEMENT_COMMANDS


@pytest.mark.behaviour("00-misspelt-never-runs")
@pytest.mark.parametrize(
    "typed", ["runz list", "rnus", "hlep", "verison", "histroy", "statsu", "intit", "protocls", "confg path"]
)
def test_a_misspelt_command_is_refused(typed: str) -> None:
    with pytest.raises(UsageError, match="did you mean `council "):
        split_command(typed.split())


@pytest.mark.behaviour("00-misspelt-never-runs")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [("list preset", "council list presets"), ("list roster", "council list rosters"), ("list runs", "council runs")],
)
def test_list_with_a_misspelt_kind_is_refused(typed: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        split_command(typed.split())
    assert f"did you mean `{meant}`?" in str(caught.value) and f'council ask "{typed}"' in str(caught.value)


@pytest.mark.behaviour("00-lone-words", "00-bare-usage")
def test_none_of_them_makes_a_call(workspace: Workspace, council: Terminal) -> None:
    for word in (*ACCEPTANCE, *LONE_WORDS):
        done = council(*([word] if word else []))
        assert done.code in (0, 2), (word, done.err)
        assert "Traceback" not in done.err
    assert workspace.provider.log == []
    assert workspace.runs() == []


@pytest.mark.behaviour("00-unknown-flag-suggests-dashes")
@pytest.mark.parametrize("arguments", [["--foo", "is", "what?"], ["--foo is what?"], ["Explain", "--foo"]])
def test_an_unknown_flag_suggests_two_dashes(arguments: list[str], council: Terminal) -> None:
    done = council(*arguments)
    assert done.code == 2
    assert done.err.count("\n") == 1
    suggested = shlex.split(done.err.partition("council -- ")[2])
    assert suggested == [" ".join(arguments)]
    assert run(["--dry-run", "--seat", "alpha=scripted:", "--", *suggested]) == 0


@pytest.mark.behaviour("00-unknown-flag-suggests-dashes")
def test_an_unknown_flag_of_a_command_does_not(council: Terminal) -> None:
    assert "council -- " not in council("runs", "--foo").err
