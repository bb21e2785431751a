"""Custom rosters: thirty seats from a file, a roster in the settings, and invalid rosters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace
from tests.acceptance.test_machine_readable import fits

RANKING = ("--json", "--protocol", "ranking")
MANY = [f"reader-{n}" for n in range(1, 31)]


def roster(path: str, names: list[str]) -> str:
    rows = "\n".join(f'[[seats]]\nname = "{name}"\nmodel = "scripted:"' for name in names)
    Path(path).write_text(f'[chair]\nmodel = "scripted:"\n{rows}\n')
    return path


@pytest.mark.behaviour("10-ranking-roster", "10-ranking-shuffled", "10-ranking-labels", "10-ranking-calls")
def test_thirty_seats_answer_and_rank_each_other_in_sixty_one_calls(workspace: Workspace, council: Terminal) -> None:
    done = council(*RANKING, "--roster", roster("many.toml", MANY), QUESTION)
    report = done.json
    fits(report, "report")
    assert (done.code, report["status"], report["calls"]["made"]) == (0, "complete", 61)
    assert len(report["ranking"]["table"]) == 30
    assert {row["ballots"] for row in report["ranking"]["table"]} == {29}
    assert len(report["ranking"]["agreement"]) == 30 * 29 // 2
    told = [json.loads(line) for line in council("runs", "replay", "--jsonl").out.splitlines()]
    labels = {event["reader"]: event["labels"] for event in told if event["type"] == "labels"}
    assert len({tuple(shown.values()) for shown in labels.values()}) == 31
    assert all(list(labels[name])[25:] == ["Z", "AA", "AB", "AC"] for name in MANY)
    assert all(name not in labels[name].values() and len(labels[name]) == 29 for name in MANY)
    assert "shown are the 5 most divided pairs of 435" in Path(report["report_path"]).read_text(encoding="utf-8")
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("10-ranking-roster")
def test_a_roster_in_the_settings_is_used_by_name(workspace: Workspace, council: Terminal) -> None:
    workspace.configure(
        more='[rosters.board]\nseats = [{name = "cfo", model = "scripted:"}, {name = "coo"}, {name = "cto"}]\n'
    )
    plan = council("--dry-run", *RANKING, "--roster", "board", QUESTION).json
    assert [(seat["name"], seat["model"]) for seat in plan["seats"]] == [
        ("cfo", "scripted:"), ("coo", "sim:beta"), ("cto", "sim:gamma"),
    ]  # fmt: skip
    assert (plan["calls"], plan["options"]["roster"]) == ({"min": 7, "max": 7}, "board")


@pytest.mark.behaviour("10-ranking-roster")
@pytest.mark.parametrize(
    ("seats", "words"),
    [
        (["alone"], "at least 2 are needed"),
        ([f"s{n}" for n in range(61)], "at most 60"),
        (["twin", "twin"], '"twin" twice'),
        (["chair", "other"], '"chair"'),
    ],
)
def test_an_invalid_roster_gives_a_one_line_error(
    workspace: Workspace, council: Terminal, seats: list[str], words: str
) -> None:
    done = council("--protocol", "ranking", "--roster", roster("own.toml", seats), QUESTION)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert words in done.err and "own.toml" in done.err
    assert workspace.runs() == []


@pytest.mark.behaviour("10-ranking-roster")
def test_two_seats_review_each_other_and_nothing_is_ranked(workspace: Workspace, council: Terminal) -> None:
    done = council(*RANKING, "--roster", roster("two.toml", ["one", "two"]), QUESTION)
    report = done.json
    assert (done.code, report["calls"]["made"], report["confidence"]) == (0, 5, "LOW")
    assert "with two seats each reads only one answer, so nothing can be ranked" in done.err
    assert [row["ballots"] for row in report["ranking"]["table"]] == [0, 0]
    assert "No reader compared two answers" in [row["reason"] for row in report["degraded"]][-1]
