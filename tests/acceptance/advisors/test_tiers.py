"""Tiers and rosters, and their precedence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.advisors.fake_advisors import ADVISORS, take_seats
from tests.acceptance.helpers import QUESTION, Terminal, Workspace

TIERS = '[models]\ndefault = "sim:plain"\nstrong = "sim:strong"\n'
BOARD = """
[rosters.board]
seats = [{name = "cfo", lens = "cash", stance = "Who pays?", style = "dry", model = "sim:cfo"}, {name = "coo", lens = "people", stance = "Who does it?", model = "sim:coo"}]
"""


# Tiers


def models(workspace: Workspace) -> dict[str, str]:
    return {key: seen.model for key, seen in zip(workspace.asked(), workspace.provider.log, strict=True)}


@pytest.mark.behaviour("001-tiers", "004-tiers", "issue-4-advisors-tiers")
@pytest.mark.parametrize(
    ("tier", "advisors", "referee"),
    [("light", "plain", "plain"), ("medium", "plain", "strong"), ("heavy", "strong", "strong"), ("HEAVY", "strong", "strong")],
)  # fmt: skip
def test_a_tier_assigns_the_strong_model(
    workspace: Workspace, council: Terminal, tier: str, advisors: str, referee: str
) -> None:
    take_seats(workspace, TIERS)  # with a [chair], which the tier overrides
    assert council("--tier", tier, QUESTION).code == 0
    assert models(workspace) == {f"r1/{name}": advisors for name in ADVISORS} | {"referee/referee": referee}


@pytest.mark.behaviour("10-advisors-tier-precedence")
def test_without_a_tier_the_configured_chair_is_the_referee(workspace: Workspace, council: Terminal) -> None:
    take_seats(workspace, TIERS)
    assert council("--flow", "parallel", QUESTION).code == 0
    assert models(workspace) == {f"r1/{name}": "plain" for name in ADVISORS} | {"referee/referee": "chair"}


@pytest.mark.behaviour("10-advisors-tier-precedence")
def test_settings_of_single_seats_override_a_tier(workspace: Workspace, council: Terminal) -> None:
    take_seats(workspace, TIERS + '[seats.skeptic]\nmodel = "sim:own"\n')
    done = council("--tier", "heavy", "--seat", "chair=sim:hand", "--seat", "visionary=sim:flag", QUESTION)
    assert done.code == 0
    assert models(workspace) == {
        "r1/pragmatist": "strong", "r1/visionary": "flag", "r1/skeptic": "own", "referee/referee": "hand",
    }  # fmt: skip


@pytest.mark.behaviour("10-advisors-tier-precedence")
def test_the_members_of_a_roster_override_a_tier(workspace: Workspace, council: Terminal) -> None:
    take_seats(workspace, TIERS + BOARD)
    assert council("--tier", "heavy", "--roster", "board", QUESTION).code == 0
    assert models(workspace) == {"r1/cfo": "cfo", "r1/coo": "coo", "referee/referee": "strong"}


# Rosters


@pytest.mark.behaviour("001-roster-override", "10-advisors-roster")
def test_a_configured_roster_replaces_the_default_three(workspace: Workspace, council: Terminal) -> None:
    take_seats(workspace, BOARD)
    report = council("--json", "--roster", "board", QUESTION).json
    assert [(seat["name"], seat["role"], seat["perspective"]) for seat in report["seats"]] == [
        ("cfo", "Cfo", "cash"),
        ("coo", "Coo", "people"),
    ]
    prompt = workspace.prompt("r1/cfo")
    assert "You are the Cfo, an advisor. Your lens: cash. Your stance: Who pays? Your manner: dry" in prompt
    assert "Your manner" not in workspace.prompt("r1/coo")
    assert "- **Cfo:** the view of cfo" in report["answer"]


@pytest.mark.behaviour("001-roster-override", "10-advisors-roster")
@pytest.mark.parametrize("count", [2, 9])
def test_a_file_with_two_to_nine_seats_is_a_roster(workspace: Workspace, council: Terminal, count: int) -> None:
    take_seats(workspace, TIERS)
    names = [f"voice {chr(97 + n)}" for n in range(count)]
    Path("mine.toml").write_text("\n".join(f'[[seats]]\nname = "{name}"\nlens = "{name}"' for name in names))
    done = council("--json", "--roster", "mine.toml", "--rounds", "2", QUESTION)
    assert (done.code, done.json["calls"]["made"]) == (0, 2 * count + 1)
    assert [seat["name"] for seat in done.json["seats"]] == [name.replace(" ", "-") for name in names]


@pytest.mark.behaviour("10-advisors-by-role", "10-advisors-roster")
def test_prompts_and_answer_use_the_advisors_roles(workspace: Workspace, council: Terminal) -> None:
    take_seats(workspace, TIERS)
    seats = [
        'name = "cfo"\nrole = "Head of Finance"\nlens = "cash."\nstance = "Who pays"\nstyle = "dry."',
        'name = "COO"',
    ]
    Path("mine.toml").write_text("\n".join(f"[[seats]]\n{seat}" for seat in seats))
    answer = council("--json", "--roster", "mine.toml", "--rounds", "2", QUESTION).json["answer"]
    opening = next(seen.prompt for seen in workspace.provider.log if "You are the Head of Finance" in seen.prompt)
    assert (
        "You are the Head of Finance, an advisor. Your lens: cash. Your stance: Who pays. Your manner: dry.\n"
        in opening
    )
    assert (
        "Name advisors in `advisor`, `shared_by` and `joined` as: cfo (the Head of Finance), coo."
        in workspace.provider.log[-1].prompt
    )
    assert "- **Head of Finance:** the view of cfo\n- **COO:** the view of coo" in answer
    assert "| Head of Finance | cfo opens |" in answer


@pytest.mark.behaviour("10-advisors-by-role")
def test_two_seats_with_one_role_are_distinguished_by_name(workspace: Workspace, council: Terminal) -> None:
    take_seats(workspace, TIERS)
    Path("mine.toml").write_text("\n".join(f'[[seats]]\nname = "{name}"\nrole = "Engineer"' for name in ("ann", "bob")))
    report = council("--json", "--roster", "mine.toml", QUESTION).json
    assert [seat["role"] for seat in report["seats"]] == ["Engineer (ann)", "Engineer (bob)"]
    referee = workspace.provider.log[-1].prompt
    assert "<<<Engineer (ann) " in referee and "<<<Engineer (bob) " in referee
