"""Simulated members: what their parameters do, and that debate without truth-pull is no better than a vote."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from statistics import fmean

import pytest

import simulation as sim
from council.errors import UsageError
from council.evals.statistics import error_correlation

DEBATES = ("collaborative", "advisors:rounds=2", "advisors:rounds=3", "adversarial", "ranking")


def test_members_have_the_competence_and_the_error_correlation_they_are_given() -> None:
    members = sim.Members((0.9, 0.6, 0.6), correlation=0.5)
    draws = list(sim.draw_questions(members, 4000, seed=1))
    for n, share in enumerate(members.competence):
        assert fmean(draw.answers[n] == sim.TRUTH for draw in draws) == pytest.approx(share, abs=0.03)
    wrong = {str(n): [draw.answers[n] != sim.TRUTH for draw in draws] for n in (1, 2)}
    assert error_correlation(wrong) == pytest.approx(
        0.33, abs=0.05
    )  # that of the right/wrong values: (2/π) asin .5 at .5
    apart = list(sim.draw_questions(sim.Members((0.6, 0.6)), 4000, seed=1))
    independent = {str(n): [draw.answers[n] != sim.TRUTH for draw in apart] for n in (0, 1)}
    assert error_correlation(independent) == pytest.approx(0.0, abs=0.05)
    both = [draw for draw in draws if sim.TRUTH not in draw.answers[1:]]
    assert fmean(draw.answers[1] == draw.answers[2] for draw in both) > 0.4  # a third without the shared option


@pytest.mark.behaviour("evidence-simulation")
@pytest.mark.parametrize("correlation", [0.0, 0.4])
def test_debate_beats_the_vote_only_with_truth_pull(correlation: float) -> None:
    members = sim.Members((0.65,) * 3, correlation, conformity=0.4)
    found = {row["protocol"]: row for row in sim.simulate(members, 1000, seed=3).as_json()}
    for name in DEBATES:
        assert found[name]["against_vote"]["difference"]["low"] <= 0, name
    pulled = sim.Members((0.65,) * 3, correlation, conformity=0.4, truth_pull=0.3)
    found = {row["protocol"]: row for row in sim.simulate(pulled, 1000, seed=3).as_json()}
    for name in DEBATES:
        assert found[name]["against_vote"]["difference"]["low"] > 0, name
        assert found[name]["against_vote"]["decided"], name


def test_the_same_seed_gives_the_same_answers_and_conformity_makes_seats_agree() -> None:
    members = sim.Members(conformity=1.0)
    assert sim.simulate(members, 50, seed=5) == sim.simulate(members, 50, seed=5)
    assert sim.simulate(members, 50, seed=5) != sim.simulate(members, 50, seed=6)
    draw = next(sim.draw_questions(members, 1, seed=0))
    draw = replace(draw, answers=(2, 2, 0), own=(9.0, 9.0, -9.0), wrong=(2, 2, 1))
    assert sim.exchange(members, draw, draw.answers, random.Random(0)) == (2, 2, 2)
    rows = sim.sweep(sim.Members(), "truth_pull", (0.0, 1.0), 300, seed=2)
    assert [row["value"] for row in rows] == [0.0, 1.0]


def test_inflated_confidence_gets_worse_with_every_round() -> None:
    scores = sim.measure_inflation(sim.Members((0.7,) * 3, inflation=0.4), 500, rounds=3)
    assert scores == sorted(scores)
    assert scores[-1] > scores[0] + 0.03
    assert sim.measure_inflation(sim.Members((0.7,) * 3), 500, rounds=1)[1] == pytest.approx(0.21, abs=0.02)


@pytest.mark.behaviour("evidence-martingale")
def test_without_truth_pull_the_mean_belief_of_a_debate_is_a_martingale() -> None:
    half, one = Fraction(1, 2), Fraction(1)
    panels: list[list[tuple[Fraction, ...]]] = [
        [(one, one), (Fraction(3), one)],
        [(Fraction(2), one, one), (one, Fraction(2), one), (half, half, Fraction(3))],
        [(one, Fraction(5), one, one)] * 3,
    ]
    for beliefs in panels:
        before = sim.mean_belief(beliefs)
        if len({sum(belief) for belief in beliefs}) == 1:  # equal weight of the priors
            assert sim.expected_belief(beliefs) == before
            after = sim.hear_answers(beliefs, [0] * len(beliefs))
            assert sim.expected_belief(after) == sim.mean_belief(after)  # also in the next round
        assert sim.expected_belief(beliefs, Fraction(3, 10)) > sim.expected_belief(beliefs)


def test_a_share_out_of_range_is_refused() -> None:
    with pytest.raises(UsageError, match=r'truth_pull "1\.5" is out of range'):
        sim.Members(truth_pull=1.5)
    with pytest.raises(UsageError, match='unknown protocol "duel"'):
        sim.simulate(sim.Members(), 1, protocols=("duel",))
