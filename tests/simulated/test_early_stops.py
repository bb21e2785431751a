"""Adaptive in the simulation and on recorded answers: its paths, its tokens, and the tables of docs/evidence.md."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import early_stops
import make_answer_matrix
import make_early_stops
import simulation
from council.errors import UsageError
from council.evals.matrix import Matrix, read_csv, read_matrix
from council.planning.estimate import estimate_path_tokens
from council.planning.rehearsal import RehearsalInput, rehearse_both_ways
from council.protocols import CHAIR, get_protocol
from council.types import Question, Roster, Seat
from early_stops import ArmTokens
from simulation import TRUTH, Members
from tests.paths import ROOT

TOKENS = ArmTokens(
    {"stopped": 10, "objected": 40, "shared": 30, "shared_objected": 60, "disputed": 50},
    triad=35,
    collaborative=100,
    sample=3,
)
PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
PATTERNS = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)]
# The phases of each path.
PHASES = {
    ("answer", "check"): "stopped",
    ("answer", "check", "draft", "argue", "write"): "objected",
    ("answer", "draft", "points", "check"): "shared",
    ("answer", "draft", "points", "check", "argue", "write"): "shared_objected",
    ("answer", "draft", "points", "argue", "write"): "disputed",
}


@pytest.mark.behaviour("evidence-early-stops")
@pytest.mark.parametrize("answers", PATTERNS)
def test_the_model_takes_the_path_of_the_real_protocol(answers: simulation.Answers) -> None:
    async def follow() -> None:
        for *is_firm, objects in itertools.product((True, False), repeat=4):
            calls = await early_stops.rehearse_adaptive(answers, is_firm, objects=objects)
            phases = tuple(dict.fromkeys(call.key.split("/")[0] for call in calls))
            position = 3 if objects else None

            def read(author: int, reader: int, position: int | None = position) -> int | None:
                return position

            run = simulation.run_adaptive(answers, is_firm, read, lambda said, speakers: said)
            assert PHASES[phases] == run.path, (is_firm, objects)

    asyncio.run(follow())


def test_perfect_members_always_stop_after_three_calls_and_are_right() -> None:
    members = Members((1.0,) * 3, firm_if_right=1.0, false_alarm=0.0)
    table = early_stops.simulate_stops(members, 200, TOKENS, with_samples=False)
    assert table.share("stopped") == 1.0
    assert all(table.right["adaptive"])
    assert table.token_share == pytest.approx(0.1)
    assert table.holds
    assert len(asyncio.run(early_stops.rehearse_path("stopped"))) == 3


def test_members_that_share_the_tempting_error_stop_on_it() -> None:
    members = Members((0.0,) * 3, correlation=1.0, firm_if_wrong=1.0, catch=0.0)
    table = early_stops.simulate_stops(members, 200, TOKENS, with_samples=False)
    assert table.share("stopped") == 1.0
    assert table.wrong_stops.mean == 1.0
    assert not any(table.right["adaptive"])


def test_members_without_confidence_never_stop_after_three_calls() -> None:
    members = Members((0.8,) * 3, firm_if_right=0.0, firm_if_wrong=0.0)
    table = early_stops.simulate_stops(members, 500, TOKENS, with_samples=False)
    assert table.share("stopped", "objected") == 0.0
    assert table.share("shared") > 0.3  # all three agree, and the check confirms it


def test_a_reader_that_finds_every_error_prevents_wrong_stops_and_false_alarms_prevent_right_ones() -> None:
    careful = Members((0.6,) * 3, correlation=0.6, catch=1.0, false_alarm=0.0)
    table = early_stops.simulate_stops(careful, 500, TOKENS, with_samples=False)
    assert table.wrong_stops.mean == 0.0
    assert table.share("objected") > 0.05
    nervous = Members((0.9,) * 3, catch=0.0, false_alarm=1.0)
    table = early_stops.simulate_stops(nervous, 500, TOKENS, with_samples=False)
    assert not any(run.path in simulation.STOPS and run.answer == TRUTH for run in table.runs)


def test_without_objections_and_arguments_adaptive_says_what_the_vote_says() -> None:
    members = Members((0.6,) * 3, correlation=0.4, catch=0.0, false_alarm=0.0)
    table = early_stops.simulate_stops(members, 500, TOKENS, with_samples=False)
    assert table.right["adaptive"] == table.right["triad"]
    assert table.is_accurate


def test_an_objection_is_a_position_of_its_own() -> None:
    rng = random.Random(0)
    sure = Members(catch=1.0, false_alarm=1.0)
    assert simulation.object_to(sure, TRUTH, 2, 0.7, rng) == 2
    assert {simulation.object_to(sure, 1, 1, 0.0, rng) for _ in range(50)} == {2, 3}
    assert simulation.object_to(sure, 1, 1, 1.0, rng) == TRUTH
    assert simulation.object_to(replace(sure, options=2), 1, 1, 0.0, rng) == TRUTH
    assert simulation.object_to(Members(catch=0.0), 1, 1, 1.0, rng) is None


def test_one_member_of_each_side_argues() -> None:
    assert simulation.choose_speakers((0, 0, 1)) == (0, 2)
    assert simulation.choose_speakers((0, 1, 1)) == (0, 1)
    assert simulation.choose_speakers((0, 1, 2)) == (0, 1)
    assert simulation.choose_speakers((0, 1)) == (0, 1)
    assert simulation.choose_speakers((0, simulation.NO_ANSWER, simulation.NO_ANSWER)) == ()


def test_unreadable_answers_are_no_agreement() -> None:
    silent = (simulation.NO_ANSWER,) * 3
    run = simulation.run_adaptive(silent, (True,) * 3, lambda author, reader: None, lambda said, speakers: said)
    assert (run.answer, run.path) == (simulation.NO_ANSWER, "disputed")


@pytest.mark.behaviour("evidence-early-stops-tokens")
def test_the_tokens_of_the_shortest_and_of_the_longest_path_are_those_of_the_plan() -> None:
    protocol = get_protocol("adaptive")
    seats = tuple(replace(seat, member=f"sim{n}:m", vendor=f"sim{n}") for n, seat in enumerate(protocol.seats))
    clerk = Seat("clerk", "Clerk", member="sim0:small", vendor="sim0")
    roster = Roster(seats, replace(CHAIR, member="sim0:m", vendor="sim0"), (clerk,))

    async def measure() -> None:
        question = Question(early_stops.QUESTION)
        _, _, shorter, longer, _ = await rehearse_both_ways(RehearsalInput(protocol, roster, question))
        tokens = await early_stops.estimate_arm_tokens()
        stop, dispute = (estimate_path_tokens(calls, question.text) for calls in (shorter, longer))
        assert tokens.paths["stopped"] == stop.input + stop.output
        # The conclusions in the prompts differ by a few characters.
        assert tokens.paths["disputed"] == pytest.approx(dispute.input + dispute.output, rel=0.02)
        short = await early_stops.estimate_arm_tokens(max_words=100)
        assert short.collaborative < tokens.collaborative
        assert short.paths["stopped"] < tokens.paths["stopped"]

    asyncio.run(measure())


def test_equal_tokens_are_the_number_of_samples_nearest_to_the_budget() -> None:
    assert [early_stops.count_samples(budget, 10) for budget in (1, 10, 14, 16, 100)] == [1, 1, 1, 2, 10]


def test_tokens_are_those_of_three_seats() -> None:
    with pytest.raises(UsageError, match="the tokens are those of 3 seats, not of 2"):
        early_stops.simulate_stops(Members((0.7, 0.7)), 1, TOKENS)


RECORDED = """question,truth,x/a,y/b,z/c
1,A,A,A,B
2,A,B,B,A
3,A,A,B,A
4,A,,,A
5,A,B,C,D
6,A,B,A,A
"""


@pytest.mark.behaviour("evidence-early-stops-replay")
def test_a_replay_stops_on_equal_answers_and_takes_the_plurality_of_the_others() -> None:
    table = early_stops.replay_stops(read_matrix_of(RECORDED), ("x/a", "y/b", "z/c"), TOKENS)
    assert [run.path for run in table.runs] == ["stopped", "stopped", *["disputed"] * 4]
    assert table.right["adaptive"] == table.right["triad"] == [True, False, True, True, False, True]
    assert table.right["x/a"] == [True, False, True, False, False, False]
    assert table.wrong_stops.mean == 0.5
    assert table.token_share == pytest.approx((2 * 10 + 4 * 50) / 6 / 100)
    assert table.saves_enough and not table.saves_on_triad  # 37 of 50 and of 35


def test_a_false_alarm_of_a_replay_agrees_with_a_third_model_that_is_wrong() -> None:
    nervous = Members((0.7,) * 3, firm_if_right=1.0, firm_if_wrong=1.0, catch=0.0, false_alarm=1.0)
    table = early_stops.replay_stops(read_matrix_of(RECORDED), ("x/a", "y/b", "z/c"), TOKENS, nervous)
    assert [run.path for run in table.runs][:2] == ["objected", "stopped"]
    assert not table.right["adaptive"][0] and table.right["triad"][0]


def test_councils_of_a_replay_have_the_best_model_of_each_vendor() -> None:
    rows = ["question,truth,x/a,x/b,y/c,z/d\n", "1,A,A,B,A,A\n", "2,A,A,A,B,A\n", "3,A,A,A,A,B\n", "4,A,A,B,B,B\n"]
    councils = list(early_stops.list_councils(read_csv(rows)))
    assert councils == [("x/a", "y/c", "z/d"), ("x/a", "z/d", "y/c"), ("y/c", "z/d", "x/a")]
    assert list(early_stops.list_councils(read_csv(rows), min_accuracy=0.6)) == []


def read_matrix_of(text: str) -> Matrix:
    return read_csv(text.splitlines(keepends=True))


def test_recorded_answers_of_a_data_set_become_a_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_answer_matrix, "MIN_ROWS", 2)
    folder = tmp_path / "eval_results"
    (folder / "gpt4o").mkdir(parents=True)
    rows = [
        {"question_id": 7, "options": ["x", "y", "N/A"], "answer": "A", "pred": "A"},
        {"question_id": 3, "options": ["x", "y"], "answer": "B", "pred": None},
    ]
    with zipfile.ZipFile(folder / "model_outputs_gemini-1.5-pro-002_5shots.zip", "w") as archive:
        archive.writestr("answers.json", json.dumps(rows))
    with zipfile.ZipFile(folder / "model_outputs_Yi-6B_5shots.zip", "w") as archive:
        archive.writestr("answers.json", json.dumps(rows[:1]))  # incomplete
    other = [{**rows[0], "options": ["x", "y"], "pred": "B"}, {**rows[1], "answer": "A", "pred": "B"}]
    (folder / "gpt4o" / "law_result.json").write_text(json.dumps(other))
    make_answer_matrix.main(tmp_path, tmp_path / "answers.csv")
    matrix = read_matrix([tmp_path / "answers.csv"])
    assert matrix.models == ("google/gemini-1.5-pro-002", "openai/gpt4o")
    assert (matrix.questions, matrix.truth) == (("3", "7"), ("b", "a"))
    assert matrix.answers == (("", ""), ("a", "b"))  # question 3 has another right answer in the second record


# Tables


@pytest.mark.behaviour("evidence-early-stops-table")
def test_the_tables_of_the_page_are_what_the_code_gives() -> None:
    tokens = asyncio.run(make_early_stops.estimate_lengths())
    for competence, correlation in ((0.55, 0.6), (0.9, 0.0)):
        members = replace(early_stops.BASE, competence=(competence,) * 3, correlation=correlation)
        table = early_stops.simulate_stops(members, make_early_stops.QUESTIONS, tokens[None], make_early_stops.SEED)
        row = make_early_stops.format_grid({(competence, correlation): table})[2]
        check_row(row, estimated=(5, 8))
    for row in make_early_stops.format_lengths({(0.9, 0.0): table}, tokens)[2:]:
        check_row(row.rsplit(" | ", 3)[0], estimated=(1, 2, 3))  # the last three columns are about all cells


def check_row(row: str, estimated: tuple[int, ...]) -> None:
    """Check that the page has a row. Cells that follow from the estimate of tokens may be off by 2: prompts change."""
    cells = row.strip("| ").split(" | ")
    known = [line for line in PAGE.splitlines() if line.startswith(f"| {cells[0]} | ") and " | " in line]
    if 1 not in estimated:
        known = [line for line in known if line.startswith(f"| {cells[0]} | {cells[1]} | ")]
    (shown,) = (line.strip("| ").split(" | ") for line in known)
    for n, cell in enumerate(cells):
        pairs = zip(cell.split(" / "), shown[n].split(" / "), strict=True)
        is_equal = (
            all(abs(float(one) - float(other)) <= 2 for one, other in pairs) if n in estimated else cell == shown[n]
        )
        assert is_equal, f"{shown[n]} should be {cell} in {row}: run python benchmarks/simulated/make_early_stops.py"
