"""`council eval history:PATH`: reviewers measured on bugs that a repository really had."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from council.runs.history import list_run_titles
from tests.acceptance.helpers import Json, Terminal, Workspace, kill, wait_until
from tests.evals.made_history import LATER, finds, make_history, make_reviewer
from tests.fake_provider import Reply, Seen
from tests.packet.conftest import git

ARMS = "quick:models=sim:alpha,quick:models=sim:beta"
SCHEMAS = files("council") / "data" / "schemas"
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
        assert measured["mean"] == pytest.approx(
            sum(finds(model, n, RECALL) for n in range(1, bugs + 1)) / bugs, abs=1e-6
        )
        assert measured["low"] <= recall <= measured["high"]


@pytest.mark.behaviour("evidence-history-recall")
def test_two_reviewers_of_known_recall_get_that_recall(workspace: Workspace, council: Terminal, tmp_path: Path) -> None:
    arms = run_known_reviewers(workspace, council, tmp_path, 20, 4)
    check_recall(arms, 20)


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-history-recall")
def test_two_reviewers_of_known_recall_get_that_recall_on_many_bugs(
    workspace: Workspace, council: Terminal, tmp_path: Path
) -> None:
    arms = run_known_reviewers(workspace, council, tmp_path, 300, 100)
    check_recall(arms, 300)
    beta = arms["beta"]
    assert beta["against"]["decided"] and beta["against"]["difference"]["high"] < -0.15
    for arm in arms.values():
        # A control has one finding always, and a critical one as often as a bug is found.
        assert arm["controls_with_findings"]["mean"] == 1.0
        assert arm["controls_with_critical"]["low"] <= RECALL[arm["options"]["models"].removeprefix("sim:")]


@pytest.mark.behaviour("evidence-history-resume", "evidence-eval-apart")
def test_an_evaluation_on_a_history_that_is_killed_continues_and_asks_nothing_twice(
    workspace: Workspace, council: Terminal, tmp_path: Path
) -> None:
    made = make_history(tmp_path / "project", 7, 2)
    made.write_cases(workspace.folder / "project.eval")
    workspace.provider.answer = make_reviewer(RECALL)
    command = ("eval", f"history:{made.root}", "--arms", ARMS, "--json", "--concurrency", "2")
    process = workspace.process(*command)
    wait_until(lambda: len(workspace.provider.log) > 6, "some requests")
    kill(process)
    found = council(*command)
    assert found.code == 0, found.err
    assert [arm["reviews"] for arm in found.json["arms"]] == [9, 9]
    # Only requests that were open at the kill may be sent again; one that was recorded may not have been sent at all.
    assert 18 - 2 <= len(workspace.provider.log) <= 18 + 2
    assert len(workspace.runs()) == 18 and not list(list_run_titles({}, "r"))
    assert council("runs", "--json").json == [] and len(council("runs", "--all", "--json").json) == 18
    git(made.root, "commit", "-q", "--allow-empty", "-m", "Later")  # the repository moves on
    asked = len(workspace.provider.log)
    assert council(*command).json == found.json and len(workspace.provider.log) == asked
    folder = workspace.folder / "project.eval"
    assert {path.name for path in folder.iterdir()} >= {"cases.json", "cases.html", "labels.toml", "result.json"}
    jsonschema.validate(found.json, json.loads((SCHEMAS / "history-eval.json").read_text(encoding="utf-8")))


# Nothing of later commits is shown


HIDDEN = "MARK_OF_LATER_COMMIT[S]"  # a pattern that finds the mark and does not contain it


def look_around(seen: Seen) -> Reply:
    """Look for the rules, the helper and the mark, then review."""
    if "SeatLookups" in json.dumps(seen.body.get("response_format", {})):
        wanted = {"files": ["AGENTS.md", "helper.py"], "names": ["AGENTS"], "patterns": [HIDDEN, "return value"]}
        return Reply(text=json.dumps(wanted))
    return make_reviewer(dict.fromkeys(("alpha", "beta", "gamma", "chair"), 1.0))(seen)


@pytest.mark.behaviour("evidence-history-leak")
@pytest.mark.parametrize("bare", [False, True], ids=["work tree", "bare"])
def test_a_review_sees_nothing_of_later_commits(
    workspace: Workspace, council: Terminal, tmp_path: Path, bare: bool
) -> None:
    made = make_history(tmp_path / "project.git", 2, 1, bare=bare)
    if not bare:  # also files that are in no commit
        (made.root / "CLAUDE.md").write_text(f"# {LATER}\n", encoding="utf-8")
        (made.root / "parts" / "caller.py").write_text(f"part_1([])  # {LATER}\n", encoding="utf-8")
    made.write_cases(workspace.folder / "project.eval")
    workspace.provider.answer = look_around
    found = council("eval", f"history:{made.root}", "--arms", "judges:count=1:look,quick", "--json")
    assert found.code == 0, found.err
    prompts = [seen.raw.decode() for seen in workspace.provider.log]
    assert any("parts/part_1.py" in text for text in prompts)
    looked = [text for text in prompts if "File helper.py" in text]
    assert looked and all("return value" in text for text in looked)
    fixes = [fix.commit[:7] for case in made.cases for fix in case.fixes]
    for word in (LATER, "project.git", str(made.root), "2026-02-01", "2026-01-01", "1770000", *fixes):
        assert not [text for text in prompts if word in text], word
    quick = found.json["arms"][1]
    assert quick["by_support"][0]["recall"]["mean"] == 1.0
