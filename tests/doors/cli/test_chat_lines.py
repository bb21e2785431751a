"""Lines of `council chat`, the words after -c, and the sum of costs."""

from __future__ import annotations

import io
from typing import Any

import pytest

from council.doors.cli.chat import PipedLines, format_total, parse_command, reject_lone_word
from council.doors.cli.params import place_continued_run
from council.errors import UsageError

RUNS = ("r7k2m9", "rabcde")


def is_run(word: str) -> bool:
    return sum(run.startswith(word) for run in RUNS) == 1


@pytest.mark.behaviour("50-continue-last")
@pytest.mark.parametrize(
    ("arguments", "placed"),
    [
        (["-c", "and the cost?"], ["--continue=", "and the cost?"]),
        (["--continue", "r7k2m9", "why?"], ["--continue=r7k2m9", "why?"]),
        (["-c", "r7k", "why?"], ["--continue=r7k", "why?"]),
        (["-c", "rabc", "why?"], ["--continue=rabc", "why?"]),
        (["-c", "rab", "why?"], ["--continue=", "rab", "why?"]),
        (["-c", "rust", "or", "go?"], ["--continue=", "rust", "or", "go?"]),
        (["--continue=rab", "why?"], ["--continue=rab", "why?"]),
        (["why?", "-c"], ["why?", "--continue="]),
        (["-c", "--dry-run", "why?"], ["--continue=", "--dry-run", "why?"]),
        (["--decision", "-c", "why?"], ["--decision", "-c", "why?"]),
        (["chat", "-c", "r7k2m9"], ["chat", "--continue=r7k2m9"]),
        (["--", "-c", "r7k2m9"], ["--", "-c", "r7k2m9"]),
        (["why?"], ["why?"]),
    ],
)
def test_the_next_word_is_the_run_only_if_it_exists(arguments: list[str], placed: list[str]) -> None:
    assert place_continued_run(arguments, is_run) == placed


@pytest.mark.behaviour("50-continue-last")
def test_a_mistyped_run_is_not_taken_for_a_question() -> None:
    with pytest.raises(UsageError, match='there is no run "r7k2m8"'):
        place_continued_run(["-c", "r7k2m8", "why?"], is_run)


@pytest.mark.behaviour("50-chat-commands")
@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("/help", ("help", "")),
        (" /Protocol  triad ", ("protocol", "triad")),
        ("/members a, b,c", ("members", "a, b,c")),
        ("/nonsense", ("nonsense", "")),
        ("/", ("", "")),
        ("quit", ("quit", "")),
        ("EXIT", ("quit", "")),
        ("help", ("help", "")),
        ("undo", ("undo", "")),
        ("?", ("help", "")),
        ("help me choose a database", None),
        ("/etc/hosts has two entries, why?", None),
        ("/usr", ("usr", "")),
        ("and 1/2?", None),
        ("quit smoking or not?", None),
    ],
)
def test_a_slash_and_a_word_is_a_command_and_a_path_is_not(line: str, command: tuple[str, str] | None) -> None:
    assert parse_command(line) == command


@pytest.mark.behaviour("50-chat-commands")
def test_a_lone_word_that_looks_like_a_command_of_council_is_not_sent() -> None:
    for word in ("status", "Runs?", "login", "doctor"):
        with pytest.raises(UsageError, match="alone is not a question, nothing was sent"):
            reject_lone_word(word)
    for line in ("validate", "why?", "list three ways to save money"):
        reject_lone_word(line)


@pytest.mark.behaviour("50-chat-piped")
def test_piped_lines_are_one_question_each_and_a_backslash_continues_one() -> None:
    source = PipedLines(io.StringIO("one\n\n  \ntwo \\\nlines\r\n/cost\nlast"))
    assert [source.read() for _ in range(5)] == ["one", "two \nlines", "/cost", "last", None]


@pytest.mark.parametrize(
    ("costs", "text"),
    [
        ([], "no cost"),
        ([0.0, 0.0], "no cost"),
        ([0.01, 0.25], "cost $0.26"),
        ([0.25, None], "cost at least $0.25 (sim:m1 unpriced)"),
        ([None, None], "cost unknown (sim:m1 unpriced)"),
    ],
)
def test_a_sum_of_costs_never_hides_an_unknown_price(costs: list[float | None], text: str) -> None:
    rows: list[dict[str, Any]] = [{"usd": usd, "unpriced": [] if usd is not None else ["sim:m1"]} for usd in costs]
    assert format_total(rows) == text
