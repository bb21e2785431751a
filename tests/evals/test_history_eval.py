"""`council eval history:PATH`: reviewers measured on bugs that a repository really had."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from council.runs.history import list_run_titles
from tests.acceptance.helpers import Json, Terminal, Workspace, kill, wait_until
from tests.evals.made_history import BUG_LINE, LATER, finds, make_history, make_reviewer
from tests.fake_provider import Reply, Seen
from tests.packet.conftest import git

ARMS = "quick:models=sim:alpha,quick:models=sim:beta"
SCHEMAS = files("council") / "data" / "schemas"
PASSPHRASE = "passphrase1"
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
    arms = run_known_reviewers(workspace, council, tmp_path, 14, 2)
    check_recall(arms, 14)


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
    made = make_history(tmp_path / "project", 5, 1)
    made.write_cases(workspace.folder / "project.eval")
    workspace.provider.answer = make_reviewer(RECALL)
    command = ("eval", f"history:{made.root}", "--arms", ARMS, "--json", "--concurrency", "2")
    process = workspace.process(*command)
    wait_until(lambda: len(workspace.provider.log) > 4, "some requests")
    kill(process)
    found = council(*command)
    assert found.code == 0, found.err
    assert [arm["reviews"] for arm in found.json["arms"]] == [6, 6]
    # Only requests that were open at the kill may be sent again; one that was recorded may not have been sent at all.
    assert 12 - 2 <= len(workspace.provider.log) <= 12 + 2
    assert len(workspace.runs()) == 12 and not list(list_run_titles({}, "r"))
    assert council("runs").out == "no other runs\n" and len(council("runs", "--all", "--json").json) == 12
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


# The command


@pytest.mark.behaviour("evidence-history-plan")
def test_a_dry_run_lists_the_cases_of_a_repository_with_their_price_and_writes_nothing(
    workspace: Workspace, council: Terminal, tmp_path: Path
) -> None:
    workspace.configure(more='[prices."sim:*"]\ninput = 1\noutput = 1\n')
    made = make_history(tmp_path / "project", 2, 3)
    command = ("eval", f"history:{made.root}", "--since", "2026-01-01", "--arms", "judges:count=2,quick", "--dry-run")
    found = council(*command, "--json")
    assert found.code == 0, found.err
    known = {case.id: case for case in made.cases}
    fixes = {case["id"]: [fix["commit"] for fix in case["fixes"]] for case in found.json["cases"]}
    bugs = {name: [fix.commit for fix in case.fixes] for name, case in known.items() if case.fixes}
    assert {name: listed for name, listed in fixes.items() if listed} == bugs  # the search has found both
    assert found.json["left"] == 2 * len(fixes) and found.json["cost"]["expected"] > 0
    text = council(*command)
    for name, (fix,) in bugs.items():
        assert f"{name} {known[name].subject} (" in text.out
        assert f"fixed by {fix[:10]} {known[name].fixes[0].subject}" in text.out
        assert f"{known[name].fixes[0].lines[0].path}:{BUG_LINE}" in text.out
    assert "cost: $" in text.out and "expected" in text.out
    assert workspace.provider.log == [] and not (workspace.folder / "project.eval").exists()


@pytest.mark.behaviour("evidence-history-council", "evidence-history-page")
def test_a_council_is_measured_beside_what_one_judge_found(
    workspace: Workspace, council: Terminal, tmp_path: Path
) -> None:
    made = make_history(tmp_path / "project", 4, 1)
    made.write_cases(workspace.folder / "project.eval")
    git(made.root, "remote", "add", "origin", f"https://me:{PASSPHRASE}@github.com/acme/project.git")
    workspace.provider.answer = make_reviewer({"alpha": 1.0, "beta": 0.0})
    arms = "judges:models=sim:alpha+sim:beta:no-clerk,quick:models=sim:beta"
    found = council("eval", f"history:{made.root}", "--arms", arms)
    assert found.code == 0, found.err
    folder = workspace.folder / "project.eval"
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    both, one = result["arms"]
    assert (both["judges"], one["judges"]) == (2, 1)
    assert [row["recall"]["mean"] for row in both["by_support"]] == [1.0, 0.0]
    assert sorted(seat["recall"]["mean"] for seat in both["seats"]) == [0.0, 1.0]
    assert (both["against"]["arm"], both["against"]["wrong_to_right"]) == (one["arm"], 4)
    assert "4 bugs are too few" in found.out and "judge-2 alone" in found.out
    page = (folder / "cases.html").read_text(encoding="utf-8")
    assert "https://github.com/acme/project/commit/" in page and PASSPHRASE not in page
    asked = len(workspace.provider.log)
    labels = folder / "labels.toml"
    text = labels.read_text(encoding="utf-8")
    labels.write_text(text.replace('= "bug"', '= "unclear"', 1), encoding="utf-8")
    again = council("eval", f"history:{made.root}", "--arms", arms, "--json")
    assert (again.json["bugs"], again.json["without_bug"]) == (3, 1) and len(workspace.provider.log) == asked
    labels.write_text(text.replace('= "bug"', '= "bad"', 1), encoding="utf-8")
    refused = council("eval", f"history:{made.root}", "--arms", arms)
    assert refused.code == 2 and 'the label "bad"' in refused.err


@pytest.mark.behaviour("evidence-history-bad-input")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("history:",), "history: names no repository, nothing was sent"),
        (("history:missing",), "is no git repository, nothing was sent"),
        (("history:.", "--arms", "triad"), 'the arm "triad" returns no findings'),
        (("history:.", "--arms", "quick,quick"), 'the arm "quick" is named twice'),
        (("history:.", "--arms", ","), "no arm is named"),
        (("history:.", "--against", "triad"), '--against "triad" is none of the arms'),
        (("history:.", "--limit", "0"), '--limit "0" is out of range'),
        (("history:.", "--since", "soon"), '"soon" is no date'),
        (("history:.", "--arms", "judges:cuont=2"), '"cuont" is not an option'),
        (("set.jsonl", "--since", "1y"), '--since "1y" belongs to history:PATH'),
    ],
)
def test_bad_input_of_an_evaluation_on_a_history_is_one_clear_line(
    workspace: Workspace, council: Terminal, arguments: tuple[str, ...], problem: str
) -> None:
    if arguments[0] == "history:.":
        made = make_history(workspace.folder / "project", 1, 0)
        arguments = (f"history:{made.root}", *arguments[1:])
        if "cuont" in problem:
            made.write_cases(workspace.folder / "project.eval")
    found = council("eval", *arguments)
    assert found.code == 2 and problem in found.err, found.err
    assert len(found.err.strip().splitlines()) == 1 and workspace.provider.log == []
