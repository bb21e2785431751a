"""`--exclude-family` in later runs: a fork and a continued conversation keep the vendor out."""

from __future__ import annotations

import pytest

from tests.acceptance.adaptive.fake_solvers import seat_vendors
from tests.acceptance.helpers import QUESTION, Terminal, Workspace
from tests.acceptance.panel.fake_clerk import PanelAnswers

NEXT = "And what about the restores?"
pytestmark = pytest.mark.behaviour("00-exclude-family-later")


@pytest.fixture
def first(workspace: Workspace, council: Terminal) -> str:
    """Finish a panel without the vendor of alpha, and clear the request log."""
    answers = PanelAnswers()
    answers.seat_of["clerk"] = "clerk"
    workspace.answers = answers
    workspace.provider.answer = answers
    seat_vendors(workspace)
    done = council("--json", "--protocol", "panel", "--exclude-family", "north", QUESTION)
    assert done.code == 0, done.err
    assert "alpha" not in {seen.model for seen in workspace.provider.log}
    workspace.provider.forget()
    return str(done.json["run"])


def test_a_fork_refuses_a_member_of_the_excluded_vendor(workspace: Workspace, council: Terminal, first: str) -> None:
    done = council("fork", first, "--seat", "beta=north:alpha", "--json")
    assert (done.code, workspace.provider.log) == (2, [])
    assert (
        '--seat names "north:alpha", and --exclude-family excludes its vendor "north": drop one of the two'
        in done.json["error"]
    )


def test_a_fork_accepts_a_member_of_another_vendor(workspace: Workspace, council: Terminal, first: str) -> None:
    done = council("fork", first, "--seat", "beta=south:gamma", "--json")
    assert done.code == 0, done.err
    assert {seen.model for seen in workspace.provider.log} == {"gamma", "clerk"}


def test_a_continued_conversation_keeps_the_vendor_out(workspace: Workspace, council: Terminal, first: str) -> None:
    second = council("-c", "--json", NEXT)
    assert second.code == 0, second.err
    third = council("-c", "--json", NEXT)
    assert third.code == 0, third.err
    assert third.json["continues"] == second.json["run"]
    assert "alpha" not in {seen.model for seen in workspace.provider.log}
    assert council("-c", "--dry-run", "--json", NEXT).json["exclude_family"] == ["north"]


def test_an_exclusion_given_now_replaces_the_earlier_one(council: Terminal, first: str) -> None:
    plan = council("-c", "--dry-run", "--json", "--exclude-family", "east", NEXT).json
    assert plan["exclude_family"] == ["east"]
    assert "north:alpha" in [seat["model"] for seat in plan["seats"]]


def test_a_member_of_the_excluded_vendor_contradicts_the_conversation(council: Terminal, first: str) -> None:
    done = council("-c", "--dry-run", "--json", "--seat", "beta=north:alpha", NEXT)
    assert done.code == 2
    assert '--seat names "north:alpha", and --exclude-family excludes its vendor "north"' in done.json["error"]
