"""The trust line of every protocol: it is where the answer is, at a terminal, in a pipe or in a file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from council.doors.cli import run


def seats(*names: str) -> list[str]:
    return [word for name in names for word in ("--seat", f"{name}=scripted:")]


SEATS = seats("alpha", "beta", "gamma", "chair")
QUESTION = "Tabs or spaces?"
COMMANDS = {
    "collaborative": ["--protocol", "collaborative", *SEATS, QUESTION],
    "adversarial": ["--protocol", "adversarial", *SEATS, QUESTION],
    "triad": ["--protocol", "triad", *SEATS, QUESTION],
    "ranking": ["--protocol", "ranking", *SEATS, QUESTION],
    "advisors": ["--protocol", "advisors", *seats("pragmatist", "visionary", "skeptic", "chair"), QUESTION],
    "judges": [*seats("judge-1", "judge-2"), "validate", "plan.md"],
    "quick": ["--quick", *seats("judge-1"), "validate", "plan.md"],
}


@pytest.fixture(autouse=True)
def plan_file() -> None:
    Path("plan.md").write_text("# Plan\n\nShip it.\n")


@pytest.mark.behaviour("10-trust-line")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_piped_answer_ends_with_its_trust_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(COMMANDS[name])
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1].startswith("Trust: ")
    assert sum(line.startswith("Trust: ") for line in printed.out.splitlines()) == 1
    assert "Trust:" not in printed.err


@pytest.mark.behaviour("10-trust-line")
@pytest.mark.parametrize("more", [[], ["--verbose"], ["--quiet"]])
def test_a_saved_answer_ends_with_its_trust_line(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run([*more, "-o", "answer.md", *COMMANDS["triad"]])
    printed = capsys.readouterr()
    assert Path("answer.md").read_text().splitlines()[-1].startswith("Trust: ")
    assert "Trust:" not in printed.out + printed.err


@pytest.mark.behaviour("10-trust-line")
@pytest.mark.parametrize("more", [[], ["--verbose"], ["--quiet"]])
def test_at_a_terminal_the_answer_ends_with_the_trust_line(
    more: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    run([*more, *COMMANDS["collaborative"]])
    printed = capsys.readouterr()
    *_, rule, blank, last = re.sub(r"\x1b\[[0-9;]*m", "", printed.out).splitlines()
    assert (set(rule), blank) == ({"─"}, "")
    assert last == "Trust: MEDIUM — all answers are from one vendor (scripted); agreement was not assessed"
    assert "Trust:" not in printed.err


@pytest.mark.parametrize("more", [["--json"], ["--jsonl"]])
def test_machine_readable_output_has_no_extra_line(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run([*more, *COMMANDS["triad"]])
    printed = capsys.readouterr()
    assert not [line for line in (printed.out + printed.err).splitlines() if line.startswith("Trust: ")]


@pytest.mark.behaviour("10-trust-line")
def test_a_past_run_is_shown_with_its_trust_line(capsys: pytest.CaptureFixture[str]) -> None:
    run(COMMANDS["triad"])
    capsys.readouterr()
    run(["runs", "show"])
    assert "\nTrust: MEDIUM — " in capsys.readouterr().out
    run(["report"])
    assert "| Trust | MEDIUM — " in capsys.readouterr().out
