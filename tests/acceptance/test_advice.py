"""`council --dry-run`, `--protocol auto` and the old word `advise`: a protocol that is worth its price, by
evaluations and by rule, without a model.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from council.runs.advice import list_results, save_result
from tests.acceptance.helpers import Terminal, Workspace

OPEN = "Should the archive move to cold storage?"
COUNT = "How many primes are below 1000?"
CHOICE = "Redis or Postgres for our sessions?"
MEMBERS = ["sim:alpha", "sim:beta", "sim:gamma"]


def measure(folder: Path, protocol: str, mean: float, *, decided: bool = True, members: list[str] = MEMBERS, **options: Any) -> None:  # fmt: skip
    """Keep the result of an evaluation with one council."""
    name = ":".join([protocol, *(f"{key}={value}" for key, value in options.items())])
    against = {"arm": f"self-consistency={name}", "difference": {"mean": mean}, "decided": decided}
    arm = {"arm": name, "protocol": protocol, "options": options, "against": against}
    result = {"schema": "council.eval/1", "dataset": "set.jsonl", "questions": 200, "equal": "tokens", "members": members, "arms": [arm]}  # fmt: skip
    save_result(os.environ, result, folder / name, time.time())


@pytest.mark.behaviour("evidence-advice")
def test_advice_follows_the_rules_and_asks_no_model(workspace: Workspace, council: Terminal) -> None:
    found = {question: council("advise", question, "--json").json for question in (OPEN, COUNT, CHOICE)}
    assert {question: row["protocol"] for question, row in found.items()} == {OPEN: "collaborative", COUNT: "triad", CHOICE: "adversarial"}  # fmt: skip
    assert "one short right answer" in found[COUNT]["why"] and found[COUNT]["calls"] < found[COUNT]["default"]["calls"]
    assert 'the choice "' in found[CHOICE]["why"] and all(row["rounds"] == 1 for row in found.values())
    for decision in ("How many people should we hire?", "Do 2-3 servers carry the load?", "Is support 24/7 worth it?"):
        assert council("advise", decision, "--json").json["protocol"] == "collaborative", decision
    copies = council("advise", OPEN, "-m", "sim:alpha")
    assert "protocol solo: all seats have one member" in copies.out and "no model was asked" in copies.out
    refused = council("advise")
    assert refused.code == 2 and "no question was given" in refused.err
    assert not workspace.provider.log and not workspace.runs()


@pytest.mark.behaviour("evidence-advice")
def test_a_dry_run_names_the_advised_protocol_where_it_is_another(workspace: Workspace, council: Terminal) -> None:
    advised = council("advise", COUNT, "--json").json
    plan = council("--dry-run", "--json", COUNT).json
    assert plan["protocol"] == "collaborative"
    assert plan["advice"] == {name: advised[name] for name in ("protocol", "rounds", "options", "calls", "cost", "why")}
    lines = council("--dry-run", COUNT).out.splitlines()
    (first,) = (number for number, line in enumerate(lines) if line.startswith("advice: "))
    assert lines[first] == f"advice: protocol triad: {advised['why']}"
    assert "at most 4 calls" in lines[first + 1] and "--protocol auto" in lines[first + 1]
    assert "advice" not in council("--dry-run", "--json", "--protocol", "auto", COUNT).json
    assert "advice" not in council("--dry-run", "--json", OPEN).json
    assert "advice" not in council("--dry-run", "--json", "--protocol", "advisors", "--rounds", "2", COUNT).json
    assert "advice" not in council("--dry-run", "--json", "brainstorm", COUNT).json
    assert council("--dry-run", "--json", "--protocol", "adversarial", COUNT).json["advice"]["protocol"] == "triad"
    assert not workspace.provider.log and not workspace.runs()


@pytest.mark.behaviour("evidence-advice-refine")
def test_an_open_question_to_several_vendors_is_refined_and_copies_answer_alone(
    workspace: Workspace, council: Terminal
) -> None:
    url = workspace.provider.base_url
    workspace.configure(more=f'[providers.other]\nwire = "openai"\nbase_url = "{url}"\nvendor = "other"\n')
    seat = ("--seat", "beta=other:beta")
    advised = council("advise", OPEN, *seat, "--json").json
    assert (advised["protocol"], "several vendors" in advised["why"]) == ("refine", True)
    assert council("--protocol", "auto", OPEN, *seat, "--dry-run", "--json").json["protocol"] == "refine"
    assert council("advise", CHOICE, *seat, "--json").json["protocol"] == "adversarial"
    assert council("--protocol", "auto", OPEN, "-m", "sim:alpha", "--dry-run", "--json").json["protocol"] == "solo"
    copies = ("-m", "sim:alpha", "-m", "sim:alpha")
    unfit = council("--protocol", "auto", OPEN, *copies, "--dry-run", "--json").json
    assert (unfit["protocol"], "does not fit the flags" in unfit["why"]) == ("collaborative", True)
    assert not workspace.provider.log


@pytest.mark.behaviour("evidence-advice")
def test_advice_follows_decided_evaluations_and_never_costs_more(workspace: Workspace, council: Terminal) -> None:
    measure(workspace.folder, "triad", 0.1, decided=False)
    measure(workspace.folder, "triad", 0.2, members=["sim:other"])
    assert council("advise", OPEN, "--json").json["protocol"] == "collaborative"  # neither decides
    measure(workspace.folder, "collaborative", -0.08)
    worse = council("advise", OPEN, "--json").json
    assert (
        worse["protocol"] == "triad"
        and "was right 8 points less often than one model with equal tokens" in worse["why"]
    )
    measure(workspace.folder, "triad", 0.07)
    better = council("advise", OPEN).out
    assert "on set.jsonl (200 questions) triad with these members was right 7 points more often" in better
    # The best one needs more calls than the usual one, so it is named, not used.
    measure(workspace.folder, "advisors", 0.12, rounds=3)
    dear = council("--protocol", "auto", OPEN, "--dry-run", "--json").json
    assert (
        dear["protocol"] == "collaborative"
        and "advisors:rounds=3 is advised" in dear["why"]
        and "costs more" in dear["why"]
    )
    assert not workspace.provider.log
    result = council("--protocol", "auto", COUNT, "--json")
    assert result.code == 0 and result.json["protocol"] == "collaborative", result.err
    (Path(os.environ["COUNCIL_DATA"]) / "evals" / "broken.json").write_text("{", encoding="utf-8")
    assert len(list_results(os.environ)) == 3


@pytest.mark.behaviour("evidence-advice")
def test_a_measured_solo_and_a_measured_refine_are_used(workspace: Workspace, council: Terminal) -> None:
    measure(workspace.folder, "solo", 0.06)
    cheap = council("advise", OPEN, "--json").json
    assert (cheap["protocol"], cheap["calls"]) == ("solo", 5)
    assert "solo with these members was right 6 points more often" in cheap["why"]
    measure(workspace.folder, "refine", 0.15)
    dear = council("--protocol", "auto", OPEN, "--dry-run", "--json").json
    assert (dear["protocol"], "refine with these members" in dear["why"]) == ("refine", True)
