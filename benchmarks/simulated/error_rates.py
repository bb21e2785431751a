"""Error rates of the statistics of an evaluation: coverage of intervals, false positives, power.

The true figures of simulated answers are known, so it can be counted how often an interval holds the true figure, how
often equal arms are called different, and how often the needed number of questions decides.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from council.evals.statistics import (
    ROUNDING,
    Interval,
    bootstrap_mean,
    calibrate,
    count_for_test,
    is_decided,
    likely_counts,
    sign_test,
    split_evenly,
)

Judge = Callable[[random.Random], float]


class Rates(NamedTuple):
    """Shares of the repeats in which the interval holds the true figure, and in which the difference is decided."""

    covered: float
    decided: float


def cover_share(n: int, p: float) -> float:
    """Return the exact coverage of the interval of a share: the sum over all numbers of right answers."""
    return math.fsum(chance for count, chance in likely_counts(n, p) if _holds(_interval_of_count(n, count), p))


@cache
def _interval_of_count(n: int, count: int) -> Interval:
    return bootstrap_mean([1.0] * count + [0.0] * (n - count))


def _holds(interval: Interval, value: float) -> bool:
    return interval.low - ROUNDING <= value <= interval.high + ROUNDING


def simulate_pairs(n: int, up: float, down: float, repeats: int, seed: int) -> Rates:
    """Return the rates of evaluations in which an arm is better on a share `up` of the questions, and worse on
    `down`.
    """
    rng = random.Random(f"pairs {n} {up} {down} {seed}")
    counts = [_draw_pair(rng, n, up, down) for _ in range(repeats)]
    judged = [_judge_pair(n, *pair) for pair in counts]
    covered = sum(_holds(interval, up - down) for interval, _ in judged)
    return Rates(covered / repeats, sum(decided for _, decided in judged) / repeats)


def _draw_pair(rng: random.Random, n: int, up: float, down: float) -> tuple[int, int]:
    draws = [rng.random() for _ in range(n)]
    better = sum(draw < up for draw in draws)
    return better, sum(draw < up + down for draw in draws) - better


@cache
def _judge_pair(n: int, better: int, worse: int) -> tuple[Interval, bool]:
    """Return the interval and the decision of an evaluation, as the table of `council eval` has them."""
    differences = [1] * better + [-1] * worse + [0] * (n - better - worse)
    interval = bootstrap_mean(differences, bounds=(-1.0, 1.0))
    return interval, is_decided(interval, sign_test(better, worse))


def simulate_judges(n: int, judges: int, lean: float, tie: float, repeats: int, seed: int) -> Rates:
    """Return the rates of blind comparisons by several judges, who agree on some questions more than on others."""
    rng = random.Random(f"judges {n} {judges} {lean} {seed}")
    covered = decided = 0
    for repeat in range(repeats):
        differences = [draw_difference(rng, judges, lean, tie) for _ in range(n)]
        interval = bootstrap_mean(differences, repeat, (-1.0, 1.0))
        better, worse = sum(one > 0 for one in differences), sum(one < 0 for one in differences)
        covered += _holds(interval, (1 - tie) * (2 * lean - 1))
        decided += is_decided(interval, sign_test(better, worse))
    return Rates(covered / repeats, decided / repeats)


def draw_difference(rng: random.Random, judges: int, lean: float, tie: float) -> float:
    """Return the mean of what the judges say about one question: 1, 0 or -1 each."""
    of_question = rng.betavariate(4 * lean, 4 * (1 - lean))
    said = [0 if rng.random() < tie else 1 if rng.random() < of_question else -1 for _ in range(judges)]
    return sum(said) / judges


def cover_calibration(n: int, error: float, repeats: int, seed: int) -> Rates:
    """Return how often the interval holds the true error of shares between .4 and 1 that are too high by `error`.

    "Decided" is the share of the intervals without 0.
    """
    rng = random.Random(f"calibration {n} {error} {seed}")
    covered = decided = 0
    for repeat in range(repeats):
        shares = [rng.uniform(0.4, 1.0) for _ in range(n)]
        found = calibrate(shares, [rng.random() < share - error for share in shares], repeat)
        covered += found.low - ROUNDING <= error <= found.high + ROUNDING
        decided += found.low > 0
    return Rates(covered / repeats, decided / repeats)


def compute_ece(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """Return the calibration error by its definition, from the bins."""
    bins = split_evenly(confidences, right)
    gaps = [abs(sum(share for share, _ in rows) / len(rows) - sum(r for _, r in rows) / len(rows)) for rows in bins]
    return sum(len(rows) / len(right) * gap for rows, gap in zip(bins, gaps, strict=True))


def find_needed(up: float, down: float) -> int:
    needed = count_for_test(up, down)
    assert needed is not None
    return needed
