"""Cost confirmation, at a real terminal and off it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from council.doors.cli.terminal_input import confirmation_reason
from council.settings import load_settings
from tests.acceptance.helpers import QUESTION, Workspace
from tests.acceptance.pseudo_terminal import PseudoTerminal
from tests.doors.cli.terminal import TerminalProcess
from tests.fake_provider import FakeProvider
from tests.trusted_project import write_user_file

PRICES = '[prices."sim:*"]\ninput = 3.0\noutput = 15.0\n'
PROMPT = "Continue? [y/N]"


@pytest.fixture
def workspace(workspace: Workspace) -> Workspace:
    """A council whose estimate is above confirm_above."""
    write_user_file(PRICES)
    workspace.configure(more="[budget]\nconfirm_above = 0.01\n")
    return workspace


@pytest.mark.behaviour("50-confirm-above")
def test_a_fork_above_the_limit_asks_before_it_sends_anything(workspace: Workspace) -> None:
    run = workspace.council("--protocol", "triad", "--json", QUESTION).json["run"]
    sent = len(workspace.provider.log)
    fork = ("fork", run, "--seat", "beta=sim:m1")
    terminal = TerminalProcess(*fork)
    assert "Estimated $0." in terminal.until(PROMPT)
    terminal.type("n\n")
    assert terminal.end() == 130
    assert len(workspace.provider.log) == sent
    assert TerminalProcess(*fork, "--yes").end() == 0
    assert len(workspace.provider.log) > sent


@pytest.mark.behaviour("50-confirm-above")
def test_above_the_limit_it_asks_and_continues_after_yes(workspace: Workspace) -> None:
    terminal = TerminalProcess("--protocol", "triad", QUESTION)
    before = terminal.until(PROMPT)
    assert "Estimated $0." in before
    assert "(at most $" in before
    assert workspace.provider.log == []
    terminal.type("y\n")
    assert terminal.end() == 0
    assert len(workspace.provider.log) == 4


@pytest.mark.behaviour("50-confirm-above")
@pytest.mark.parametrize("keys", ["n\n", "\n", "\x03", "\x04"], ids=["no", "nothing", "Ctrl-C", "Ctrl-D"])
def test_anything_but_a_yes_spends_nothing(workspace: Workspace, keys: str) -> None:
    terminal = TerminalProcess("--protocol", "triad", QUESTION)
    terminal.until(PROMPT)
    terminal.type(keys)
    assert terminal.end() == 130
    assert workspace.provider.log == []
    assert workspace.runs() == []


@pytest.mark.behaviour("50-confirm-above")
@pytest.mark.parametrize("flag", ["--yes", "--no-input"])
def test_a_flag_skips_the_confirmation(workspace: Workspace, flag: str) -> None:
    terminal = TerminalProcess("--protocol", "triad", flag, QUESTION)
    assert terminal.end() == 0
    assert PROMPT not in terminal.shown
    assert len(workspace.provider.log) == 4


@pytest.mark.behaviour("50-confirm-above")
def test_off_a_terminal_there_is_no_prompt_and_only_the_cap_applies(workspace: Workspace) -> None:
    done = workspace.council("--protocol", "triad", QUESTION)
    assert (done.code, len(workspace.provider.log)) == (0, 4)
    stopped = workspace.council("--protocol", "triad", "--max-cost", "0.0001", QUESTION)
    assert (stopped.code, len(workspace.provider.log)) == (2, 4)
    assert PROMPT not in done.err + stopped.err


@pytest.mark.behaviour("50-confirm-default")
@pytest.mark.parametrize(
    ("budget", "asks"),
    [("", True), ("confirm_above = 100", False), ("confirm_above = false", False), ("confirm_above = 0", True)],
    ids=["default", "higher", "never", "always"],
)
def test_the_default_limit_is_half_a_dollar(workspace: Workspace, budget: str, asks: bool) -> None:
    write_user_file(f"[budget]\n{budget}\n")  # a project cannot raise the limit
    workspace.configure(more=PRICES.replace("15.0", "300.0"))
    terminal = PseudoTerminal(workspace.folder, "--protocol", "triad", QUESTION)
    if asks:
        terminal.wait_for(PROMPT)
        terminal.type_lines("n")
    done = terminal.wait_for_exit()
    assert (done.code, len(workspace.provider.log)) == ((130, 0) if asks else (0, 4))


@pytest.mark.behaviour("50-confirm-default")
def test_an_unknown_price_is_confirmed_only_if_the_user_set_the_limit(provider: FakeProvider) -> None:
    plan: dict[str, Any] = {"cost": None, "unpriced": ["sim:m1"]}
    assert confirmation_reason(plan, 0.5, unpriced=False) == ""
    assert "No price for sim:m1" in confirmation_reason(plan, 0.5)
    settings = load_settings(Path.cwd(), {})
    assert settings.budget["confirm_above"] == 0.5
    assert not settings.is_set("budget.confirm_above")


@pytest.mark.behaviour("50-confirm-above")
@pytest.mark.parametrize(
    ("cost", "unpriced", "limit", "asks"),
    [
        ({"low": 0.1, "expected": 0.3, "worst": 0.9}, [], 0.3, False),
        ({"low": 0.1, "expected": 0.31, "worst": 0.9}, [], 0.3, True),
        ({"low": 0.0, "expected": 0.0, "worst": 0.0}, [], 0, False),
        (None, ["sim:m1"], 5.0, True),
        (None, ["sim:m1"], None, False),
        (None, [], 0, False),
    ],
    ids=["at the limit", "above it", "free", "unknown price", "no limit", "nothing to pay"],
)
def test_confirmation_is_required_above_the_limit_or_without_a_price(
    cost: dict[str, float] | None, unpriced: list[str], limit: float | None, asks: bool
) -> None:
    assert bool(confirmation_reason({"cost": cost, "unpriced": unpriced}, limit)) is asks
