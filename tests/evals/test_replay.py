"""Statistics and replay arms over recorded answers, against figures computed by hand."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from council.errors import UsageError
from council.evals import statistics as stats
from council.evals.matrix import Matrix, read_csv, read_matrix
from council.evals.replay import format_replay, replay
from council.evals.votes import Vote, elect_by_families, elect_by_plurality
from council.runs.track_record import weigh_record

# Ten questions, three models. By hand: a is right on 7, b and c on 5; the plurality is right on 7.
TABLE = """question,truth,a,b,c
1,x,x,x,x
2,x,x,x,y
3,x,x,y,x
4,x,y,x,x
5,x,x,y,z
6,x,y,y,x
7,x,x,x,y
8,x,x,x,x
9,x,y,y,y
10,x,X. ,y,y
"""


@pytest.mark.behaviour("evidence-replay")
def test_a_replay_reproduces_the_plurality_and_its_flips_computed_by_hand() -> None:
    found = replay(read_csv(TABLE.splitlines(keepends=True)))
    report = found.as_json()
    assert [row["accuracy"]["mean"] for row in report["models"]] == [0.7, 0.5, 0.5]
    plurality = found.arms["plurality"]
    # 5 is a three-way tie that a, the first voter, wins; 6, 9 and 10 are wrong.
    assert plurality.right == (True, True, True, True, True, False, True, True, False, False)
    assert [one.is_tied for one in plurality.elections].count(True) == 1
    assert plurality.in_dissent == (False,) * 5 + (True, False, False, False, True)
    # a alone is wrong on 4, 6 and 9: the plurality wins 4 and loses 10.
    best = next(row for row in report["arms"] if row["arm"] == "plurality")["against_best"]
    assert best is not None
    assert (best["wrong_to_right"], best["right_to_wrong"], best["p_value"], best["decided"]) == (1, 1, 1.0, False)
    assert [(row["agreement"], row["accuracy"]["mean"], row["accuracy"]["n"]) for row in report["agreement"]] == [
        ("full", pytest.approx(2 / 3), 3), ("partial", pytest.approx(4 / 6), 6), ("none", 1.0, 1),
    ]  # fmt: skip
    shown = format_replay(found)
    for words in ("all models agree: 66.7 %", "some models agree: 66.7 %", "no two models agree: 100.0 %"):
        assert words in shown


def test_a_rule_is_not_called_better_or_worse_than_models_that_only_chance_orders() -> None:
    # Two of three models are right on each question, and each has 40 of 60: on the other questions, the wrong one is
    # best.
    rows = [["x" if n % 3 != at else "y" for at in range(3)] for n in range(60)]
    matrix = Matrix(tuple(map(str, range(60))), ("a", "b", "c"), ("x",) * 60, tuple(map(tuple, rows)))
    best, plurality = replay(matrix, ["best", "plurality"]).as_json()["arms"]
    assert best["accuracy"]["mean"] == pytest.approx(2 / 3) and plurality["accuracy"]["mean"] == 1.0
    beside = plurality["against_best"]
    assert beside is not None and beside["difference"]["mean"] == pytest.approx(1 / 3) and beside["decided"]
    # Forty models that guess: the best afterwards looks better than the plurality of them, by chance.
    rng = random.Random(3)
    guesses = tuple(tuple(rng.choice("xy") for _ in range(40)) for _ in range(60))
    names = tuple(f"m{n}" for n in range(40))
    rows_of_all = replay(Matrix(tuple(map(str, range(60))), names, ("x",) * 60, guesses)).as_json()["arms"]
    assert not any(row["against_best"]["decided"] for row in rows_of_all if row["against_best"])


def test_effective_votes_follow_from_the_correlation_of_errors() -> None:
    copies = Matrix(("1", "2", "3", "4"), ("a", "b", "c"), ("x",) * 4, (("x",) * 3, ("y",) * 3, ("x",) * 3, ("z",) * 3))
    assert replay(copies).measured_votes == pytest.approx(1.0)
    errors = {"a": [True, True, False, False], "b": [True, False, True, False], "c": [True, False, False, True]}
    assert stats.error_correlation(errors) == pytest.approx(0.0)
    assert stats.count_measured_votes(errors) == pytest.approx(3.0)
    # One pair in common of two errors each: (1/4 - 1/4 · 1/2) / sqrt(3/16 · 1/4) = 0.577; 2 / 1.577 = 1.268.
    pair = {"a": [True, False, False, False], "b": [True, True, False, False]}
    assert stats.count_measured_votes(pair) == pytest.approx(2 / (1 + 0.125 / (0.75 * 0.25 * 0.5 * 0.5) ** 0.5))
    families = replay(Matrix(("1",), ("a", "b", "c"), ("x",), (("x", "x", "x"),), {"a": "f", "b": "f", "c": "g"}))
    assert families.assumed_votes == 2.25  # the live rule: 2 of one family count 2 / 1.6, plus 1


def test_intervals_are_the_percentiles_of_the_bootstrap() -> None:
    # 8 of 10 right: a bootstrap sample is binomial(10, .8), with P(≤ 5) = .033 and P(≤ 4) = .006, P(≤ 9) = .893.
    assert stats.bootstrap_mean([1.0] * 8 + [0.0] * 2) == stats.Interval(0.8, 0.5, 1.0, 10)
    # 50 of 100: the 2.5 % and 97.5 % points of binomial(100, .5) are 40 and 60.
    assert stats.bootstrap_mean([1.0, 0.0] * 50) == stats.Interval(0.5, 0.4, 0.6, 100)
    # All equal: the exact limit of a share of 0 of 5 is p = .5218, because (1 - p)^5 = .025.
    assert stats.bootstrap_mean([1.0] * 5).low == pytest.approx(1 - 0.52182, abs=1e-5)
    assert stats.bootstrap_mean([0.0] * 5).high == pytest.approx(0.52182, abs=1e-5)
    same = stats.compare([True] * 5, [True] * 5).difference
    assert [same.low, same.high] == pytest.approx([-0.52182, 0.52182], abs=1e-5)
    differences = [1.0] * 20 + [-1.0] * 5 + [0.0] * 75  # mean .15, standard error sqrt(.2275 / 100) = .0477
    found = stats.bootstrap_mean(differences, seed=1)
    assert found == stats.bootstrap_mean(differences, seed=1)
    assert found.mean == pytest.approx(0.15)
    assert [found.low, found.high] == pytest.approx([0.057, 0.243], abs=0.015)


def test_the_paired_test_and_the_calibration_match_hand_figures() -> None:
    assert stats.sign_test(8, 1) == pytest.approx(2 * (1 + 9) / 2**9)
    assert stats.sign_test(3, 3) == stats.sign_test(0, 0) == 1.0
    few = stats.compare([False] * 8 + [True], [True] * 8 + [False])
    assert (few.wrong_to_right, few.right_to_wrong, few.is_decided) == (8, 1, False)  # fewer than 30 questions
    found = stats.compare([False] * 8 + [True] * 22, [True] * 8 + [False] + [True] * 21)
    assert (found.wrong_to_right, found.right_to_wrong, found.is_decided) == (8, 1, True)
    assert stats.brier_score([1.0, 0.5, 0.0], [True, False, True]) == pytest.approx((0 + 0.25 + 1) / 3)
    rows = stats.reliability([0.9, 1.0, 0.1], [True, False, False])
    assert [(row["from"], row["confidence"], row["accuracy"]["mean"]) for row in rows] == [(0.0, 0.1, 0.0), (0.8, 0.95, 0.5)]  # fmt: skip


def test_families_vote_before_seats_and_weights_come_from_thirty_outcomes() -> None:
    votes = [Vote("a1", "x", "f"), Vote("a2", "x", "f"), Vote("a3", "x", "f"), Vote("b", "y", "g"), Vote("c", "y", "h")]
    assert elect_by_plurality(votes).answer == "x"
    found = elect_by_families(votes)
    assert (found.answer, found.dissent, found.holders) == ("y", ("x",), ("b", "c"))
    assert elect_by_plurality(votes, {"a1": 0.1, "a2": 0.1, "a3": 0.1, "b": 2.0, "c": 0.5}).answer == "y"
    assert weigh_record(29, 29) == 1.0
    assert weigh_record(29, 30) > weigh_record(20, 30) > weigh_record(10, 30) == 0.0
    assert elect_by_plurality([Vote("a", ""), Vote("b", "")]).answer == ""


def test_weights_from_labelled_outcomes_beat_the_plurality_if_one_model_is_far_better() -> None:
    rng = random.Random(7)
    rows = [tuple("x" if rng.random() < skill else rng.choice("yz") for skill in (0.95, 0.4, 0.4)) for _ in range(300)]
    matrix = Matrix(tuple(map(str, range(300))), ("a", "b", "c"), ("x",) * 300, tuple(rows))
    arms = replay(matrix).arms
    assert sum(arms["weighted"].right) > sum(arms["plurality"].right) + 30
    assert sum(arms["weighted"].right) >= sum(arms["best"].right)


def test_verdicts_are_replayed_by_the_live_rules_of_judges() -> None:
    rows = ["question,truth,openai/a,openai/b,google/c\n", "1,FAIL,PASS,PASS,FAIL\n", "2,PASS,PASS,PASS,PASS\n", "3,WARN,FAIL,WARN,PASS\n"]  # fmt: skip
    found = replay(read_csv(rows))
    assert [one.answer for one in found.arms["consensus"].elections] == ["disagree", "pass", "disagree"]
    assert [one.answer for one in found.arms["corroborated"].elections] == ["warn", "pass", "warn"]
    with pytest.raises(UsageError, match='the arm "consensus" combines PASS, WARN and FAIL'):
        replay(read_csv(TABLE.splitlines(keepends=True)), ["consensus"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("q,a\n1,x\n", 'has no column "question"'),
        ("question,a\n1,x\n", 'has no column "truth"'),
        ("question,truth\n1,x\n", "no column holds the answers"),
        ("question,truth,a\n1,x\n", "row 2 has 2 cells"),
        ("question,truth,a\n1,x,x\n1,x,x\n", "occurs twice"),
        ("question,truth,a,a\n1,x,x,y\n", 'the column "a" occurs twice'),
        ("question,truth,a\n1,x,x\n2, ,x\n", "row 3 has no truth"),
        ("question,truth,a\n", "there is no question"),
    ],
)
def test_a_bad_matrix_is_refused_in_one_line(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=problem) as error:
        read_matrix([path])
    assert "\n" not in str(error.value)


def test_an_unknown_arm_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r'unknown arm "duel": known are .*plurality'):
        replay(read_csv(TABLE.splitlines(keepends=True)), ["plurality", "duel"])


def test_the_best_model_answers_with_its_share_on_the_other_questions() -> None:
    best = replay(read_csv(TABLE.splitlines(keepends=True)), ["best"]).arms["best"]
    # a is right on 7 of 10. Question 1 is right, so it has 6 of the other 9; question 4 is wrong, so it has 7 of 9.
    assert [best.elections[at].share for at in (0, 3)] == [pytest.approx(7 / 11), pytest.approx(8 / 11)]
    assert [best.elections[at].dissent for at in (0, 3, 4)] == [(), ("x",), ("y", "z")]


def test_an_answer_is_right_by_the_best_score_that_came_with_it() -> None:
    answers = (("x", "y", "y"), ("x", "y", "y"), ("x", "y", "y"))
    scores = ((1.0, 0.5, None), (0.0, 0.5, 1.0), (1.0, None, None))
    matrix = Matrix(("1", "2", "3"), ("a", "b", "c"), ("x", "x", "x"), answers, {}, scores)
    assert replay(matrix, ["plurality"]).arms["plurality"].right == (False, True, False)


def test_a_judge_that_abstains_leaves_the_rules_of_judges_in_use() -> None:
    rows = ["question,truth,a,b,c\n", "1,PASS,PASS,,FAIL\n", "2,PASS,,,\n"]
    consensus = replay(read_csv(rows)).arms["consensus"]
    assert consensus.elections[0].dissent == ("pass", "fail")
    assert consensus.elections[1].share == 0.0 and not consensus.right[1]


def test_paired_differences_have_an_exact_interval_that_needs_no_seed() -> None:
    differences = [1] * 5 + [-1] * 2 + [0] * 13
    assert len({stats.bootstrap_mean(differences, seed) for seed in range(9)}) == 1
    shares = [n / 37 for n in range(37)]
    assert len({stats.bootstrap_mean(shares, seed) for seed in range(9)}) > 1


def test_weights_that_are_all_zero_count_as_equal() -> None:
    votes = [Vote("a", "x"), Vote("b", "y"), Vote("c", "y")]
    found = elect_by_plurality(votes, {"a": 0.0, "b": 0.0, "c": 0.0})
    assert found.answer == "y" and found.share == pytest.approx(2 / 3)


@pytest.mark.behaviour("evidence-oracle")
def test_any_model_right_is_a_limit_and_no_rule() -> None:
    found = replay(read_csv(TABLE.splitlines(keepends=True)))
    report = found.as_json()
    # a is right on all but 4, 6 and 9; b or c is right on 4 and 6, and none on 9.
    assert (report["oracle"]["mean"], report["oracle"]["n"]) == (0.9, 10)
    assert "oracle" not in found.arms and all(row["arm"] != "oracle" for row in report["arms"])
    (row,) = (line for line in format_replay(found).splitlines() if line.startswith("any model right"))
    assert row.split() == ["any", "model", "right", "(a", "limit,", "not", "a", "rule)", "90.0", "%", "70.0-100.0"]
    with pytest.raises(UsageError, match='unknown arm "oracle"'):
        replay(found.matrix, ["oracle"])


def make_matrix(skills: tuple[float, ...], count: int) -> Matrix:
    rng = random.Random(7)
    rows = [tuple("x" if rng.random() < skill else rng.choice("yz") for skill in skills) for _ in range(count)]
    names = tuple(f"m{n}" for n in range(len(skills)))
    return Matrix(tuple(map(str, range(count))), names, ("x",) * count, tuple(rows))


@pytest.mark.behaviour("evidence-calibration")
def test_each_rule_with_a_share_of_votes_has_a_calibration_error() -> None:
    arms = {row["arm"]: row for row in replay(make_matrix((0.7, 0.6, 0.65), 300)).as_json()["arms"]}
    assert arms["best"]["calibration"] is None  # one model has no share of votes
    for rule in ("plurality", "weighted", "families"):
        found = arms[rule]["calibration"]
        assert (
            found and found["ece"] and found["low"] is not None and found["low"] <= found["ece"] and found["bins"] > 1
        )
    shown = format_replay(replay(make_matrix((0.7, 0.6, 0.65), 99)))
    assert "too few" in shown and "ECE of plurality, weighted, families: with fewer than 100 answers" in shown


@pytest.mark.behaviour("evidence-conclusion")
@pytest.mark.parametrize(
    ("skills", "count", "advice"),
    [
        (
            (0.6, 0.6, 0.6, 0.6, 0.6),
            300,
            "Combine these 5 models by plurality: it is right more often than m0, the best of them alone.",
        ),
        (
            (0.6, 0.6, 0.6),
            60,
            "Not decided: no rule over these 3 models is shown to be right more often than m",
        ),
        ((0.95, 0.3, 0.3), 300, "Ask m0 alone: no rule over these 3 models is right as often."),
        ((0.6, 0.6, 0.6), 20, "Decide nothing yet. 20 questions: too few."),
    ],
)
def test_a_replay_ends_with_what_to_do(skills: tuple[float, ...], count: int, advice: str) -> None:
    arms = ["best", "plurality", "families"] if skills[0] > 0.9 else []
    shown = " ".join(format_replay(replay(make_matrix(skills, count), arms)).split())
    conclusion = shown.partition(" what to do ")[2]
    assert conclusion.startswith(advice)
    for words in ("how sure", "Recorded answers have no price.", "what would change it"):
        assert words in conclusion
