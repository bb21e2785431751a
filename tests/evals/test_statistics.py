"""The statistics of an evaluation: power, p-values and calibration. The sweep checks them against SciPy."""

from __future__ import annotations

import random
import re
from itertools import pairwise
from pathlib import Path

import pytest

import error_rates
import make_error_rates
from council.evals import statistics as stats

PAGE = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text(encoding="utf-8")
EFFECTS = [(0.3, 0.1), (0.2, 0.1), (0.1, 0.0), (0.5, 0.3), (0.6, 0.4), (0.62, 0.38), (0.25, 0.2), (0.05, 0.02)]


# p-values


@pytest.mark.behaviour("evidence-p-values")
@pytest.mark.parametrize(
    ("p_value", "sentence", "cell"),
    [
        (0.0, "< .001", "< .001"),
        (0.00099, "< .001", "< .001"),
        (0.001, "= .001", ".001"),
        (0.042, "= .042", ".042"),
        (0.5, "= .500", ".500"),
        (0.9994, "= .999", ".999"),
        (1.0, "> .999", "> .999"),
    ],
)
def test_a_p_value_has_no_leading_zero_and_is_never_zero_or_one(p_value: float, sentence: str, cell: str) -> None:
    assert (stats.format_p(p_value), stats.format_p_cell(p_value)) == (sentence, cell)


# Power


@pytest.mark.behaviour("evidence-power")
@pytest.mark.parametrize(("up", "down"), [effect for effect in EFFECTS if effect != (0.25, 0.2)])
def test_the_needed_questions_are_the_fewest_with_eighty_percent_power(up: float, down: float) -> None:
    needed = error_rates.find_needed(up, down)
    assert error_rates.find_needed(down, up) == needed  # also for a worse arm
    assert 0.79 <= stats.find_power(needed, up, down) <= 0.83
    assert stats.find_power(needed - 2, up, down) < 0.805


@pytest.mark.behaviour("evidence-power")
@pytest.mark.parametrize(
    ("up", "down", "equal", "observed", "least"),
    [
        (15, 5, 80, 168, 43),
        (5, 15, 80, 168, 43),
        (10, 10, 30, None, 102),
        (0, 0, 40, None, 89),
        (9, 0, 3, 30, 30),
    ],
)
def test_the_observed_difference_is_uncertain_so_the_least_number_is_told_too(
    up: int, down: int, equal: int, observed: int | None, least: int
) -> None:
    found = stats.count_needed_questions([1] * up + [-1] * down + [0] * equal)
    assert found == (observed, least)
    assert stats.count_needed_questions([]) == (None, None)


def test_judges_that_contradict_the_mean_have_no_number_of_questions() -> None:
    many_small_gains_and_few_large_losses = [1 / 3] * 12 + [-1.0] * 6
    assert stats.count_needed_questions(many_small_gains_and_few_large_losses).observed is None


@pytest.mark.parametrize(("count", "shown"), [(30, 30), (104, 104), (999, 999), (1451, 1500), (16680, 17000)])
def test_a_large_number_of_questions_has_two_digits(count: int, shown: int) -> None:
    assert stats.round_count(count) == shown


# Calibration


def draw_answers(n: int, error: float, seed: int = 1) -> tuple[list[float], list[bool]]:
    rng = random.Random(seed)
    shares = [rng.choice((1 / 3, 0.5, 2 / 3, 0.8, 1.0)) for _ in range(n)]
    return shares, [rng.random() < share - error for share in shares]


@pytest.mark.behaviour("evidence-calibration")
@pytest.mark.parametrize(("n", "bins"), [(100, 2), (240, 4), (1000, 5)])
def test_the_calibration_error_is_that_of_its_definition(n: int, bins: int) -> None:
    shares, right = draw_answers(n, 0.1)
    found = stats.calibrate(shares, right)
    assert found.error == pytest.approx(error_rates.compute_ece(shares, right))
    assert (found.bins, found.n) == (bins, n) and found.low <= found.error <= found.high
    assert found == stats.calibrate(shares, right)
    parts = stats.split_evenly(shares, right)
    assert sum(map(len, parts)) == n
    for before, after in pairwise(parts):
        assert before[-1][0] < after[0][0]  # equal shares stay together


@pytest.mark.behaviour("evidence-calibration")
def test_with_few_answers_there_is_no_calibration_error() -> None:
    few = stats.calibrate(*draw_answers(99, 0.1)).as_json()
    assert few == {"ece": None, "low": None, "high": None, "by_chance": None, "bins": 0, "n": 99}


@pytest.mark.behaviour("evidence-calibration")
def test_the_interval_of_exact_shares_reaches_zero_and_that_of_wrong_ones_does_not() -> None:
    exact, wrong = stats.calibrate(*draw_answers(400, 0.0)), stats.calibrate(*draw_answers(400, 0.3))
    assert exact.low == 0 and exact.error < 2 * exact.by_chance < 0.1
    assert wrong.low > 0.2 and wrong.error == pytest.approx(0.3, abs=0.05)
    certain = stats.calibrate([1.0] * 200, [True] * 200)
    assert (certain.error, certain.low) == (0, 0) and 0 < certain.high < 0.03


# The page


@pytest.mark.behaviour("evidence-error-rates")
def test_the_error_rates_of_the_page_are_what_the_code_gives() -> None:
    rows = [*make_error_rates.format_shares()[2:], f"| {' | '.join(make_error_rates.pair_row(30))} |"]
    rows.append(f"| {' | '.join(make_error_rates.power_row(0.1, 0.0))} |")
    for row in rows:
        assert row in PAGE, f"{row} is not in docs/evidence.md: run python benchmarks/simulated/make_error_rates.py"


# Against SciPy


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-scipy")
def test_the_exact_tests_equal_those_of_scipy() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    rng = random.Random(2)
    pairs = [(b, w) for b in range(41) for w in range(41) if b + w] + [
        (rng.randrange(2000), rng.randrange(2000)) for _ in range(200)
    ]
    differences = [abs(stats.sign_test(b, w) - scipy_stats.binomtest(b, b + w, 0.5).pvalue) for b, w in pairs]
    assert max(differences) < 1e-9  # McNemar's exact test is this test on the unequal pairs


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-scipy")
@pytest.mark.parametrize(("n", "count"), [(10, 8), (37, 5), (100, 50), (300, 290), (1000, 700)])
def test_the_interval_of_a_share_has_the_percentiles_of_scipy(n: int, count: int) -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    values = [1.0] * count + [0.0] * (n - count)
    found = stats.bootstrap_mean(values)
    exact = scipy_stats.binom.ppf((0.025, 0.975), n, count / n) / n
    assert (found.low, found.high) == pytest.approx(tuple(exact))
    drawn = scipy_stats.bootstrap(
        (values,), lambda sample, axis: sample.mean(axis=axis), n_resamples=20_000, method="percentile", rng=5
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx(tuple(drawn), abs=1.5 / n)


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-scipy")
@pytest.mark.parametrize(("n", "up", "down"), [(60, 12, 5), (200, 30, 28), (90, 40, 20)])
def test_the_interval_of_paired_differences_has_the_percentiles_of_scipy(n: int, up: int, down: int) -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    values = [1] * up + [-1] * down + [0] * (n - up - down)
    found = stats.bootstrap_mean(values, bounds=(-1.0, 1.0))
    drawn = scipy_stats.bootstrap(
        (values,), lambda sample, axis: sample.mean(axis=axis), n_resamples=20_000, method="percentile", rng=5
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx(tuple(drawn), abs=2 / n)


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-scipy", "evidence-power")
@pytest.mark.parametrize(("up", "down"), EFFECTS)
def test_the_power_equals_a_simulation_with_the_test_of_scipy(up: float, down: float) -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    needed = error_rates.find_needed(up, down)
    shown = stats.round_count(needed)
    for n, low, high in ((needed, 0.785, 0.825), (shown, 0.775, 0.83)):
        draws = scipy_stats.multinomial(n, (up, down, max(0.0, 1 - up - down))).rvs(20_000, random_state=3)
        known: dict[tuple[int, int], bool] = {}
        decided = 0
        for better, worse, _ in draws.tolist():
            if (pair := (better, worse)) not in known:
                known[pair] = better + worse > 0 and scipy_stats.binomtest(better, better + worse, 0.5).pvalue < 0.05
            decided += known[pair]
        assert low <= decided / 20_000 <= high, (n, decided / 20_000)


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-error-rates")
@pytest.mark.parametrize("n", [30, 100, 200])
@pytest.mark.parametrize("unequal", [0.1, 0.3, 0.6])
def test_intervals_cover_and_equal_arms_are_seldom_decided(n: int, unequal: float) -> None:
    rates = error_rates.simulate_pairs(n, unequal / 2, unequal / 2, 2000, seed=8)
    assert 0.92 <= rates.covered <= 0.98
    assert rates.decided <= 0.05 + 0.015  # three standard errors of 2,000 repeats


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-error-rates")
def test_the_interval_of_a_share_covers_it() -> None:
    for n in (30, 100, 300, 1000):
        for share in (0.5, 0.6, 0.7, 0.8):
            assert 0.92 <= error_rates.cover_share(n, share) <= 0.98
        for share in (0.9, 0.95):  # with few wrong answers it is wider
            assert error_rates.cover_share(n, share) >= 0.92


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-power", "evidence-blind-summary")
def test_the_needed_questions_of_several_judges_decide_in_about_eighty_percent() -> None:
    rng = random.Random(6)
    sample = [error_rates.draw_difference(rng, 3, 0.62, 0.2) for _ in range(4000)]
    needed = stats.count_needed_questions(sample).observed
    assert needed is not None
    rates = error_rates.simulate_judges(needed, 3, 0.62, 0.2, 500, seed=4)
    assert 0.72 <= rates.decided <= 0.88 and 0.92 <= rates.covered <= 0.98


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-calibration")
@pytest.mark.parametrize(("n", "error"), [(100, 0.0), (200, 0.05), (500, 0.05), (500, 0.1)])
def test_the_interval_of_the_calibration_error_covers_it(n: int, error: float) -> None:
    rates = error_rates.cover_calibration(n, error, 400, seed=9)
    assert rates.covered >= 0.92
    if not error:
        assert rates.decided <= 0.05


def test_the_page_prints_no_p_value_as_zero() -> None:
    assert not re.search(r"\bp [=<] 0", PAGE)
