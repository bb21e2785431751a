"""`--protocol auto` and `council advise`: which questions get the adaptive protocol."""

from __future__ import annotations

import pytest

from tests.acceptance.adaptive.fake_solvers import QUESTION, Solvers, seat_vendors
from tests.acceptance.helpers import Terminal, Workspace

FACT = "What is the capital of Mongolia?"
OPEN = "Should the archive move to cold storage?"


@pytest.mark.behaviour("10-adaptive-auto")
@pytest.mark.parametrize("question", [FACT, QUESTION, "Is 1,000,003 prime?"])
def test_auto_uses_adaptive_for_what_can_be_checked(
    workspace: Workspace, council: Terminal, answers: Solvers, question: str
) -> None:
    plan = council("--protocol", "auto", question, "--dry-run", "--json").json
    assert (plan["protocol"], plan["calls"]) == ("adaptive", {"min": 3, "max": 7})
    assert "the answer can be checked" in plan["why"]
    assert council("advise", question, "--json").json["protocol"] == "adaptive"
    assert workspace.asked() == []


@pytest.mark.behaviour("10-adaptive-auto")
def test_auto_keeps_other_protocols_for_decisions_and_for_one_vendor(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    assert council("--protocol", "auto", OPEN, "--dry-run", "--json").json["protocol"] != "adaptive"
    seat_vendors(workspace, {"alpha": "north", "beta": "north", "gamma": "north"})
    assert council("--protocol", "auto", FACT, "--dry-run", "--json").json["protocol"] == "quick"
