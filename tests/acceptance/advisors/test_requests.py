"""Requests of the advisors protocol: waves, contents of prompts, and instructions."""

from __future__ import annotations

import pytest

from tests.acceptance.advisors.fake_advisors import ADVISORS, keys, words_in
from tests.acceptance.helpers import QUESTION, Result, Terminal, Workspace, wait_for_exit

# Waves

REFEREE = ["referee/referee"]


def wave(n: int) -> list[str]:
    return [f"r{n}/{name}" for name in ADVISORS]


def in_waves(workspace: Workspace, waves: list[list[str]], *flags: str) -> Result:
    """Run the real command; hold each wave until exactly its requests have arrived."""
    gates = {key: workspace.hold(*key.split("/")) for wave in waves for key in wave}
    process = workspace.process("--json", *flags, QUESTION)
    expected: list[str] = []
    for wave in waves:
        for key in wave:
            gates[key].wait()
        expected += wave
        assert sorted(workspace.asked()) == sorted(expected)
        for key in wave:
            gates[key].release()
    done = wait_for_exit(process)
    assert sorted(workspace.asked()) == sorted(expected)
    assert [len(wave) for wave in workspace.provider.waves()] == [len(wave) for wave in waves]
    return done


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour(
    "001-three-advisors", "001-parallel-single", "001-parallel-multi", "001-sequential-single", "001-debate-rounds",
    "004-parallel-single", "004-parallel-multi", "004-sequential-single", "004-debate-rounds", "issue-4-advisors-waves",
)  # fmt: skip
@pytest.mark.parametrize(
    ("flags", "waves"),
    [
        ("--flow parallel", [wave(1), REFEREE]),
        ("--flow parallel --rounds 3", [wave(1), wave(2), wave(3), REFEREE]),
        ("--flow sequential", [*([key] for key in wave(1)), REFEREE]),
        ("--flow debate", [wave(1), wave(2), wave(3), REFEREE]),
        ("--flow debate --rounds 2", [wave(1), wave(2), REFEREE]),
    ],
)
def test_each_round_is_one_wave_and_a_sequence_is_one_by_one(
    workspace: Workspace, flags: str, waves: list[list[str]]
) -> None:
    done = in_waves(workspace, waves, *flags.split())
    assert (done.code, done.json["status"], done.json["protocol"]) == (0, "complete", "advisors"), done.err
    assert done.json["calls"] == {"made": sum(map(len, waves)), "replayed": 0, "in_doubt": 0}


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("001-parameters", "004-parameters")
@pytest.mark.parametrize(
    ("flags", "flow", "rounds", "calls"),
    [
        ("--protocol advisors", "parallel", 1, 4),
        ("--tier light", "parallel", 1, 4),
        ("--flow sequential", "sequential", 1, 4),
        ("--flow debate", "debate", 3, 10),
        ("--rounds 5", "parallel", 5, 16),
    ],
)
def test_defaults_of_flow_rounds_and_tier(
    workspace: Workspace, council: Terminal, flags: str, flow: str, rounds: int, calls: int
) -> None:
    plan = council("--dry-run", "--json", *flags.split(), QUESTION).json
    assert (plan["options"]["flow"], plan["options"]["rounds"], plan["options"]["tier"]) == (flow, rounds, "light")
    assert plan["calls"] == {"min": calls, "max": calls}
    assert workspace.provider.log == []


# Statements in prompts


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("10-independent-first-statements", "001-opening-prompt")
def test_openings_are_independent_and_have_their_own_lens(workspace: Workspace, council: Terminal) -> None:
    council("--flow", "debate", QUESTION)
    lenses = {"pragmatist": "feasibility, cost", "visionary": "cost of inaction", "skeptic": "unintended consequences"}
    for name in ADVISORS:
        prompt = workspace.prompt(f"r1/{name}")
        assert words_in(prompt) == set()
        assert QUESTION in prompt and "the opening" in prompt
        assert [lens in prompt for lens in lenses.values()] == [name == other for other in lenses]


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("001-rebuttal-inputs", "004-parallel-multi", "issue-4-advisors-prompts", "10-advisors-rebuttal")
@pytest.mark.parametrize("flow", ["parallel", "debate"])
def test_a_rebuttal_has_all_own_positions_and_only_the_others_last_round(
    workspace: Workspace, council: Terminal, flow: str
) -> None:
    council("--flow", flow, "--rounds", "4", QUESTION)
    for name in ADVISORS:
        others = tuple(other for other in ADVISORS if other != name)
        assert words_in(workspace.prompt(f"r2/{name}")) == keys("r1")
        third = workspace.prompt(f"r3/{name}")
        assert words_in(third) == keys("r1", "r2", seats=(name,)) | keys("r2", seats=others)
        assert (
            third.index("You, round 1") < third.index("You, round 2") < third.index("# The other advisors in round 2")
        )


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("004-final-transcript", "001-round-instructions", "issue-4-advisors-prompts")
@pytest.mark.parametrize("flow", ["parallel", "debate", "sequential"])
def test_the_final_prompt_has_the_whole_transcript(workspace: Workspace, council: Terminal, flow: str) -> None:
    council("--flow", flow, "--rounds", "4", QUESTION)
    for n, name in enumerate(ADVISORS):
        before = keys("r4", seats=ADVISORS[:n]) if flow == "sequential" else set()
        prompt = workspace.prompt(f"r4/{name}")
        assert words_in(prompt) == keys("r1", "r2", "r3") | before
        assert prompt.index("## Round 1") < prompt.index("## Round 2") < prompt.index("## Round 3")
        assert "round 4 of 4, the last" in prompt


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("001-sequential-single", "004-sequential-single", "issue-4-advisors-prompts")
def test_in_a_sequence_each_prompt_has_exactly_the_earlier_outputs(workspace: Workspace, council: Terminal) -> None:
    council("--flow", "sequential", QUESTION)
    for n, name in enumerate(ADVISORS):
        assert words_in(workspace.prompt(f"r1/{name}")) == keys("r1", seats=ADVISORS[:n])
    assert words_in(workspace.prompt("referee/referee")) == keys("r1")


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("001-sequential-multi", "004-sequential-multi", "10-advisors-sequential-earlier-rounds")
def test_in_a_sequence_of_rounds_each_prompt_has_all_earlier_statements(
    workspace: Workspace, council: Terminal
) -> None:
    council("--flow", "sequential", "--rounds", "3", QUESTION)
    for n, name in enumerate(ADVISORS):
        assert words_in(workspace.prompt(f"r2/{name}")) == keys("r1") | keys("r2", seats=ADVISORS[:n])
        assert words_in(workspace.prompt(f"r3/{name}")) == keys("r1", "r2") | keys("r3", seats=ADVISORS[:n])
    assert words_in(workspace.prompt("referee/referee")) == keys("r1", "r2", "r3")


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("001-referee-transcript", "004-referee-transcript", "issue-4-advisors-prompts")
@pytest.mark.parametrize("flow", ["parallel", "sequential", "debate"])
def test_the_referee_gets_everything_by_round(workspace: Workspace, council: Terminal, flow: str) -> None:
    council("--flow", flow, "--rounds", "3", QUESTION)
    prompt = workspace.prompt("referee/referee")
    assert words_in(prompt) == keys("r1", "r2", "r3")
    for n in (1, 2, 3):
        start, end = prompt.index(f"## Round {n}\n"), prompt.find(f"## Round {n + 1}\n")
        assert words_in(prompt[start : end if end > 0 else None]) == keys(f"r{n}")


# Instructions of each round


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour(
    "001-words-fall", "001-middle-questions", "001-final-questions", "004-word-counts", "10-advisors-recommends"
)
def test_each_round_asks_its_own_questions_in_fewer_words(workspace: Workspace, council: Terminal) -> None:
    council("--rounds", "3", QUESTION)
    opening, rebuttal, final = (workspace.prompt(f"r{n}/skeptic") for n in (1, 2, 3))
    assert "200 to 400 words" in opening and "End with your key recommendation" in opening
    assert "200 to 300 words" in rebuttal
    assert all(part in rebuttal for part in ("Where do you agree", "Where do you push back", "Has anything changed"))
    assert "150 to 250 words" in final
    assert all(
        part in final for part in ("What changed", "What held", "Your final recommendation, in two or three sentences")
    )


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("10-advisors-one-round-opens", "001-round-templates")
def test_a_single_round_is_an_opening_and_says_that_it_is_the_only_one(workspace: Workspace, council: Terminal) -> None:
    council("--flow", "parallel", QUESTION)
    for name in ADVISORS:
        assert "your only statement" in workspace.prompt(f"r1/{name}")
        assert "200 to 400 words" in workspace.prompt(f"r1/{name}")


@pytest.mark.usefixtures("answers")
@pytest.mark.behaviour("001-debate-cross", "10-advisors-debate-by-role")
def test_only_a_debate_asks_to_address_the_others_by_role(workspace: Workspace, council: Terminal) -> None:
    council("--flow", "debate", QUESTION)
    prompt = workspace.prompt("r2/skeptic")
    assert "Address each of the other advisors in turn, by role" in prompt
    assert "<<<Pragmatist " in prompt and "<<<Visionary " in prompt
    workspace.provider.forget()
    council("--flow", "parallel", "--rounds", "3", QUESTION)
    assert "by role" not in workspace.prompt("r2/skeptic")
