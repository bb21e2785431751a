"""Bare `council` and a bare verb: they print the inferred task, ask at a terminal, and send nothing unasked
elsewhere.
"""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import Terminal
from tests.acceptance.judges.fake_judges import JudgesWorkspace
from tests.acceptance.pseudo_terminal import PseudoTerminal
from tests.packet.conftest import write

CHANGED = {"src/app.py": "import os\n", "src/new.py": "x = 1\n"}


@pytest.mark.behaviour("00-bare-asks")
@pytest.mark.parametrize(
    ("arguments", "inferred"),
    [((), "validate the changes in the work tree (2 files)"), (("brainstorm",), "brainstorm the changes in the work tree (2 files)"),
     (("review",), "validate the changes in the work tree (2 files)")],
)  # fmt: skip
def test_at_a_terminal_it_says_what_it_inferred_and_asks(
    judges: JudgesWorkspace, arguments: tuple[str, ...], inferred: str
) -> None:
    write(judges.folder, CHANGED)
    terminal = PseudoTerminal(judges.folder, *arguments)
    before = terminal.wait_for(" Continue? [y/N]")
    assert f"Nothing was named: this would {inferred}" in before
    assert judges.provider.log == []
    terminal.type_lines("n")
    assert terminal.wait_for_exit().code == 130
    assert judges.provider.log == []


@pytest.mark.behaviour("00-bare-asks")
def test_after_yes_it_runs(judges: JudgesWorkspace) -> None:
    write(judges.folder, CHANGED)
    terminal = PseudoTerminal(judges.folder)
    terminal.wait_for(" Continue? [y/N]")
    terminal.type_lines("y")
    assert terminal.wait_for_exit().code == 0
    assert judges.provider.log


@pytest.mark.behaviour("00-bare-asks", "00-bare-usage")
@pytest.mark.parametrize("flags", [(), ("--no-input",), ("--deep",), ("--detach",)])
def test_elsewhere_bare_council_prints_a_usage_and_sends_nothing(
    judges: JudgesWorkspace, council: Terminal, flags: tuple[str, ...]
) -> None:
    write(judges.folder, CHANGED)
    done = council(*flags)
    assert (done.code, done.out) == (2, "")
    assert "nothing was sent: to review the changes in the work tree (2 files) run council validate" in done.err
    assert done.err.count("\n") == 1
    assert judges.provider.log == []


@pytest.mark.behaviour("00-bare-asks")
@pytest.mark.parametrize("arguments", [("--yes",), ("validate",), ("review", "--no-input")])
def test_elsewhere_yes_or_a_verb_is_enough(
    judges: JudgesWorkspace, council: Terminal, arguments: tuple[str, ...]
) -> None:
    write(judges.folder, CHANGED)
    done = council(*arguments)
    assert done.code == 0, done.err
    assert judges.provider.log
