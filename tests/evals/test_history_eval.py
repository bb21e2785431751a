"""`council eval history:PATH`: reviewers measured on bugs that a repository really had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from council.runs.history import list_run_titles
from tests.acceptance.helpers import Json, Terminal, Workspace, kill, wait_until
from tests.evals.made_history import LATER, finds, make_history, make_reviewer

ARMS = "quick:models=sim:alpha,quick:models=sim:beta"
RECALL = {"alpha": 0.6, "beta": 0.3}


def run_known_reviewers(
    workspace: Workspace, council: Terminal, tmp_path: Path, bugs: int, controls: int
) -> dict[str, Json]:
    made = make_history(tmp_path / "project", bugs, controls)
    made.write_cases(workspace.folder / "project.eval")
    workspace.provider.answer = make_reviewer(RECALL)
    found = council("eval", f"history:{made.root}", "--arms", ARMS, "--json")
    assert found.code == 0, found.err
    assert (found.json["bugs"], found.json["controls"]) == (bugs, controls)
    return {arm["options"]["models"].removeprefix("sim:"): arm for arm in found.json["arms"]}


def check_recall(arms: dict[str, Json], bugs: int) -> None:
    for model, recall in RECALL.items():
        measured = arms[model]["by_support"][0]["recall"]
        assert measured["mean"] == pytest.approx(sum(finds(model, n, RECALL) for n in range(1, bugs + 1)) / bugs, abs=1e-6)
        assert measured["low"] <= recall <= measured["high"]


@pytest.mark.behaviour("evidence-history-recall")
def test_two_reviewers_of_known_recall_get_that_recall(workspace: Workspace, council: Terminal, tmp_path: Path) -> None:
    arms = run_known_reviewers(workspace, council, tmp_path, 20, 4)
    check_recall(arms, 20)
