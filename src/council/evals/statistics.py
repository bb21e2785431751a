"""Statistics of graded answers: bootstrap intervals, paired tests, flips, calibration, effective votes.

All functions are deterministic: the same values and the same seed give the same figures.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from council.protocols.judges.rules import effective_votes
from council.runs.eval_object import ComparisonObject, IntervalObject, ReliabilityRow

LEVEL = 0.95  # of intervals
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)  # cumulative probabilities at the ends of an interval
ROUNDING = 1e-12  # by which a sum of probabilities may miss its value
RESAMPLES = 2000
BINS = 5  # of the reliability table
MIN_QUESTIONS = 30  # below, no difference is called decided
Z_LEVEL, Z_POWER = 1.96, 0.8416  # normal quantiles of the 95 % interval and of 80 % power


class Interval(NamedTuple):
    """A mean and its bootstrap interval. `n` is the number of questions."""

    mean: float
    low: float
    high: float
    n: int

    def as_json(self) -> IntervalObject:
        return {"mean": _round(self.mean), "low": _round(self.low), "high": _round(self.high), "n": self.n}


def read_interval(shown: IntervalObject) -> Interval | None:
    """Return an interval; None if it has no questions."""
    mean, low, high = shown["mean"], shown["low"], shown["high"]
    return None if mean is None or low is None or high is None else Interval(mean, low, high, shown["n"])


def _round(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None


# Intervals


def bootstrap_mean(values: Sequence[float], seed: int = 0, bounds: tuple[float, float] = (0.0, 1.0)) -> Interval:
    """Return the mean and its 95 % percentile bootstrap interval over questions.

    If all values are equal, every resample is too, which would look certain. The interval then reaches as far toward
    the bounds as the exact limit of a share that was never observed. For two distinct values, and for the differences
    -1, 0 and 1, the bootstrap distribution is known, so the percentiles are exact. Otherwise they are estimated from
    resamples with the seed.
    """
    n = len(values)
    if not n:
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = math.fsum(values) / n
    levels = sorted(set(values))
    if len(levels) == 1:
        reach = 1 - TAILS[0] ** (1 / n)
        return Interval(mean, mean - (mean - bounds[0]) * reach, mean + (bounds[1] - mean) * reach, n)
    if len(levels) == 2:
        least, most = levels
        low, high = _quantiles(_likely_counts(n, values.count(most) / n))
        span = most - least
        return Interval(mean, least + span * low / n, least + span * high / n, n)
    if levels == [-1, 0, 1]:
        low, high = _quantiles(_likely_differences(n, values.count(1), values.count(-1)))
        return Interval(mean, low / n, high / n, n)
    rng = random.Random(f"bootstrap {seed}")
    means = sorted(math.fsum(rng.choices(values, k=n)) / n for _ in range(RESAMPLES))
    least, most = (means[math.ceil(share * RESAMPLES) - 1] for share in TAILS)
    return Interval(mean, least, most, n)


def _quantiles(chances: Iterable[tuple[int, float]]) -> tuple[int, int]:
    """Return the ends of the interval of a distribution, whose values ascend."""
    found: list[int] = []
    total = 0.0
    for value, chance in chances:
        total += chance
        found += [value for share in TAILS[len(found) :] if total >= share - ROUNDING]
    return found[0], found[1]


def _likely_differences(n: int, better: int, worse: int) -> list[tuple[int, float]]:
    """Return the sums of n resampled differences, of which `better` are 1 and `worse` are -1, with their probabilities.

    The number of differences that are not 0 is binomial; of these, the number of 1 is binomial too.
    """
    chances: dict[int, float] = {}
    share = better / (better + worse)
    for unequal, chance in _likely_counts(n, (better + worse) / n):
        for up, conditional in _likely_counts(unequal, share):
            gain = 2 * up - unequal
            chances[gain] = chances.get(gain, 0.0) + chance * conditional
    return sorted(chances.items())


def _likely_counts(n: int, p: float) -> Iterator[tuple[int, float]]:
    """Yield the counts of a binomial distribution within 8 standard deviations, with their probabilities."""
    reach = 8 * math.sqrt(n * p * (1 - p)) + 1
    log_p, log_q = math.log(p), math.log1p(-p)
    for k in range(max(0, int(n * p - reach)), min(n, math.ceil(n * p + reach)) + 1):
        yield k, math.exp(_log_binomial(n, k) + k * log_p + (n - k) * log_q)


def _log_binomial(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


# Pairs of arms


@dataclass(frozen=True, slots=True)
class Comparison:
    """One arm against another on the same questions."""

    difference: Interval  # accuracy of the arm minus that of the other
    wrong_to_right: int
    right_to_wrong: int
    p_value: float  # exact McNemar test, two-sided

    @property
    def is_decided(self) -> bool:
        return is_decided(self.difference, self.p_value)

    def as_json(self) -> ComparisonObject:
        return {
            "difference": self.difference.as_json(),
            "wrong_to_right": self.wrong_to_right,
            "right_to_wrong": self.right_to_wrong,
            "p_value": round(self.p_value, 6),
            "decided": self.is_decided,
        }


def is_decided(difference: Interval, p_value: float) -> bool:
    """Return whether there are enough questions, the interval leaves zero out, and the test agrees."""
    is_apart = difference.low > 0 or difference.high < 0
    return difference.n >= MIN_QUESTIONS and is_apart and p_value < 1 - LEVEL


def compare(before: Sequence[bool], after: Sequence[bool], seed: int = 0) -> Comparison:
    """Compare the answers of two arms to the same questions; `before` is the arm to beat."""
    pairs = list(zip(before, after, strict=True))
    better, worse = pairs.count((False, True)), pairs.count((True, False))
    difference = bootstrap_mean([new - old for old, new in pairs], seed, (-1.0, 1.0))
    return Comparison(difference, better, worse, sign_test(better, worse))


def sign_test(better: int, worse: int) -> float:
    """Return the two-sided probability of a split at least as uneven, if both directions were equally likely."""
    n, k = better + worse, min(better, worse)
    if not n:
        return 1.0
    tail = math.fsum(math.exp(_log_binomial(n, i) - n * math.log(2)) for i in range(k + 1))
    return min(1.0, 2 * tail)


def format_p(p_value: float) -> str:
    """Return a p-value with its sign, as in a sentence: "= 0.012", "< 0.001"."""
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"


def count_needed_questions(difference: Interval) -> int | None:
    """Return about how many questions decide a difference of this size with 80 % power; None if it is 0.

    The half width of the interval is 1.96 standard errors, which shrink with the root of the number of questions. The
    exact test needs a few questions more than a normal one: two divided by the difference.
    """
    half_width = (difference.high - difference.low) / 2
    if not difference.mean or not half_width:
        return None
    need = difference.n * ((1 + Z_POWER / Z_LEVEL) * half_width / difference.mean) ** 2 + 2 / abs(difference.mean)
    return math.ceil(max(need, difference.n + 1, MIN_QUESTIONS))


def format_power(needed_questions: int | None) -> str:
    """Return the end of a sentence about a difference that is not decided."""
    if needed_questions is None:
        return ""
    return f"; at this rate about {needed_questions:,} questions would decide it with 80 % power"


# Calibration


def brier_score(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """Return the mean squared distance between the confidence and the result; 0 is best, 0.25 is a coin."""
    return math.fsum((c - r) ** 2 for c, r in zip(confidences, right, strict=True)) / len(right)


def reliability(confidences: Sequence[float], right: Sequence[bool]) -> list[ReliabilityRow]:
    """Return for each bin of confidence its mean confidence and its accuracy with an interval.

    Empty bins are left out.
    """
    rows: dict[int, list[tuple[float, bool]]] = {}
    for confidence, is_right in zip(confidences, right, strict=True):
        rows.setdefault(min(BINS - 1, int(confidence * BINS)), []).append((confidence, is_right))
    return [
        {
            "from": n / BINS,
            "to": (n + 1) / BINS,
            "confidence": _round(math.fsum(c for c, _ in rows[n]) / len(rows[n])),
            "accuracy": bootstrap_mean([r for _, r in rows[n]]).as_json(),
        }
        for n in sorted(rows)
    ]


# Effective votes


def error_correlation(errors: Mapping[str, Sequence[bool]]) -> float | None:
    """Return the mean correlation of the errors of two voters; None if no two of them vary.

    `errors` holds for each voter whether it was wrong, by question.
    """
    found = [_correlate(a, b) for a, b in combinations(errors.values(), 2)]
    known = [one for one in found if one is not None]
    return math.fsum(known) / len(known) if known else None


def _correlate(a: Sequence[bool], b: Sequence[bool]) -> float | None:
    n = len(a)
    mean_a, mean_b = sum(a) / n, sum(b) / n
    spread = math.sqrt(mean_a * (1 - mean_a) * mean_b * (1 - mean_b))
    if not spread:
        return None
    return (sum(x and y for x, y in zip(a, b, strict=True)) / n - mean_a * mean_b) / spread


def count_measured_votes(errors: Mapping[str, Sequence[bool]]) -> float | None:
    """Return how many independent votes these voters are worth, by the correlation of their errors."""
    correlation = error_correlation(errors)
    return None if correlation is None else effective_votes(len(errors), max(0.0, correlation))
