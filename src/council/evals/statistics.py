"""Statistics of graded answers: bootstrap intervals, paired tests, flips, calibration, effective votes.

All functions are deterministic: the same values and the same seed give the same figures.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

from council.protocols.judges.rules import effective_votes
from council.runs.eval_object import CalibrationObject, ComparisonObject, IntervalObject, ReliabilityRow

LEVEL = 0.95  # of intervals
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)  # cumulative probabilities at the ends of an interval
ROUNDING = 1e-12  # by which a sum of probabilities may miss its value
RESAMPLES = 2000
LAST_TAIL = math.ceil(TAILS[1] * RESAMPLES) - 1  # index of the upper end of an interval among sorted resamples
POWER = 0.8  # the probability that an evaluation with the needed questions decides
Z_LEVEL, Z_POWER = NormalDist().inv_cdf(TAILS[1]), NormalDist().inv_cdf(POWER)
MAX_EXACT_COUNT = 200  # unequal questions, up to which the power is summed; above, the normal formula is as good
REACH = 12  # questions below a solution, in which a smaller one is looked for
BINS = 5  # of the reliability table
MAX_CALIBRATION_BINS = 10
MIN_PER_BIN = 50  # answers, with which a share of .8 that is exactly right seems to miss by .045 on average
MIN_CALIBRATED = 2 * MIN_PER_BIN  # answers: with one bin, errors above and below cancel
MIN_QUESTIONS = 30  # below, no difference is called decided


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
        low, high = _quantiles(likely_counts(n, values.count(most) / n))
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
    for unequal, chance in likely_counts(n, (better + worse) / n):
        for up, conditional in likely_counts(unequal, share):
            gain = 2 * up - unequal
            chances[gain] = chances.get(gain, 0.0) + chance * conditional
    return sorted(chances.items())


def likely_counts(n: int, p: float) -> Iterator[tuple[int, float]]:
    """Yield the counts of a binomial distribution within 8 standard deviations, with their probabilities."""
    if p <= 0 or p >= 1:
        yield (n if p >= 1 else 0), 1.0
        return
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
    right: int  # answers of the arm

    @property
    def base_right(self) -> int:
        """The right answers of the other arm."""
        return self.right - self.wrong_to_right + self.right_to_wrong

    @property
    def is_decided(self) -> bool:
        return is_decided(self.difference, self.p_value)

    @property
    def needed(self) -> NeededQuestions:
        equal = self.difference.n - self.wrong_to_right - self.right_to_wrong
        return count_needed_questions([1] * self.wrong_to_right + [-1] * self.right_to_wrong + [0] * equal)

    def as_json(self) -> ComparisonObject:
        return {
            "difference": self.difference.as_json(),
            "wrong_to_right": self.wrong_to_right,
            "right_to_wrong": self.right_to_wrong,
            "p_value": round(self.p_value, 6),
            "decided": self.is_decided,
            "needed_questions": self.needed.observed,
            "least_questions": self.needed.least,
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
    return Comparison(difference, better, worse, sign_test(better, worse), sum(after))


def sign_test(better: int, worse: int) -> float:
    """Return the two-sided probability of a split at least as uneven, if both directions were equally likely."""
    n, k = better + worse, min(better, worse)
    if not n:
        return 1.0
    tail = math.fsum(math.exp(_log_binomial(n, i) - n * math.log(2)) for i in range(k + 1))
    return min(1.0, 2 * tail)


def format_p(p_value: float) -> str:
    """Return a p-value with its sign, as in a sentence: "= .012", "< .001", "> .999"."""
    if p_value < 0.001:
        return "< .001"
    return "> .999" if p_value >= 0.9995 else f"= {p_value:.3f}".replace("0.", ".", 1)


def format_p_cell(p_value: float) -> str:
    """Return a p-value for a column: ".012", "< .001", "> .999"."""
    return format_p(p_value).removeprefix("= ")


# Power


class NeededQuestions(NamedTuple):
    """Questions that decide a difference with 80 % power.

    `observed` is for a difference of the observed size, None if that is 0. `least` is for the larger end of its
    interval.
    """

    observed: int | None = None
    least: int | None = None


def count_needed_questions(differences: Sequence[float]) -> NeededQuestions:
    """Return how many questions decide a difference such as the mean of these, one for each question.

    A difference counts by its sign in the test, and by its size in the interval. The test asks for more questions if
    all differences are -1, 0 or 1; both are met otherwise.
    """
    n = len(differences)
    if not n:
        return NeededQuestions()
    signs = [(one > 0) - (one < 0) for one in differences]
    up, down = signs.count(1) / n, signs.count(-1) / n
    mean = bootstrap_mean(differences, bounds=(-1.0, 1.0))
    low, high = bootstrap_mean(signs, bounds=(-1.0, 1.0))[1:3]
    least = count_for_test(*_shift(up, down, max(low, high, key=abs)))
    if (up - down) * mean.mean <= 0:  # no difference, or most questions say the opposite of the mean
        return NeededQuestions(None, least)
    observed = count_for_test(up, down)
    if observed is not None and set(differences) - {-1, 0, 1}:
        observed = max(observed, _count_for_interval(mean))
    return NeededQuestions(observed, least)


def _shift(up: float, down: float, difference: float) -> tuple[float, float]:
    """Return shares with another difference, and if possible with the same sum."""
    total = max(up + down, abs(difference))
    return (total + difference) / 2, (total - difference) / 2


def count_for_test(up: float, down: float) -> int | None:
    """Return how many questions let the exact test decide, if one arm is better on a share `up` of them and worse on
    `down`; None if these are equal.
    """
    unequal, gap = up + down, abs(up - down)
    if gap < 1e-9:
        return None
    estimate = _estimate_for_test(unequal, gap)
    if estimate * unequal > MAX_EXACT_COUNT:
        return math.ceil(estimate)
    low, high = MIN_QUESTIONS, max(MIN_QUESTIONS, math.ceil(2 * estimate))
    if find_power(low, up, down) >= POWER:
        return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if find_power(middle, up, down) >= POWER else (middle, high)
    # The power of an exact test is not monotonous: a few questions less may have enough.
    return next(n for n in range(max(MIN_QUESTIONS, high - REACH), high + 1) if find_power(n, up, down) >= POWER)


def _estimate_for_test(unequal: float, gap: float) -> float:
    """Return the number of questions by the normal formula for paired shares, with a correction for continuity."""
    deviations = Z_LEVEL * math.sqrt(unequal) + Z_POWER * math.sqrt(unequal - gap**2)
    normal = (deviations / gap) ** 2
    return normal / 4 * (1 + math.sqrt(1 + 4 / (normal * gap))) ** 2


def _count_for_interval(mean: Interval) -> int:
    """Return how many questions let the interval leave 0 out. Its width shrinks with the root of their number."""
    half_width = (mean.high - mean.low) / 2
    return math.ceil(mean.n * ((1 + Z_POWER / Z_LEVEL) * half_width / mean.mean) ** 2)


def find_power(n: int, up: float, down: float) -> float:
    """Return the probability that the exact test on n questions decides for the better arm."""
    share = min(up, down) / (up + down)
    return math.fsum(
        chance * _find_win_chance(unequal, share) for unequal, chance in likely_counts(n, min(1.0, up + down))
    )


@lru_cache(maxsize=4096)
def _find_win_chance(unequal: int, share: float) -> float:
    """Return the probability that the test decides, if each of the unequal questions is lost with this probability."""
    allowed = _count_allowed_losses(unequal)
    return math.fsum(chance for losses, chance in likely_counts(unequal, share) if losses <= allowed)


@lru_cache(maxsize=4096)
def _count_allowed_losses(unequal: int) -> int:
    """Return the most losses with which the test decides for the better arm; -1 if it never does."""
    most = unequal // 2
    while most >= 0 and sign_test(unequal - most, most) >= 1 - LEVEL:
        most -= 1
    return most


def round_count(count: int) -> int:
    """Return a large number with two significant digits, which is exact enough for its power."""
    step = 10 ** (len(str(count)) - 2) if count >= 1000 else 1
    return step * round(count / step)


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


class Calibration(NamedTuple):
    """The expected calibration error (ECE) of confidences, with its interval.

    It is the mean distance between the mean confidence and the share of right answers of bins with about equally many
    answers, weighted by these. Chance alone moves every bin away from its confidence, so the error is never 0 on
    average: `by_chance` is what confidences that are exactly right would show with as many answers.
    """

    error: float
    low: float
    high: float
    by_chance: float
    bins: int
    n: int

    def as_json(self) -> CalibrationObject:
        ece = _round(self.error)
        low, high, by_chance = _round(self.low), _round(self.high), _round(self.by_chance)
        return {"ece": ece, "low": low, "high": high, "by_chance": by_chance, "bins": self.bins, "n": self.n}


def calibrate(confidences: Sequence[float], right: Sequence[bool], seed: int = 0) -> Calibration:
    """Return the calibration error with a 95 % bootstrap interval; no number if there are too few answers.

    The bootstrap draws the results of each bin again, which adds chance and so moves the error up. The lower end of
    the interval is therefore as far below the error as the upper end of the draws is above it. It is 0 if exact
    confidences would show an error of this size in more than 2.5 % of cases.
    """
    n = len(right)
    if n < MIN_CALIBRATED:
        return Calibration(math.nan, math.nan, math.nan, math.nan, 0, n)
    bins = split_evenly(confidences, right)
    stated = [math.fsum(confidence for confidence, _ in rows) for rows in bins]
    counts = [sum(is_right for _, is_right in rows) for rows in bins]
    error = math.fsum(abs(sure - count) for sure, count in zip(stated, counts, strict=True)) / n
    spreads = [math.sqrt(math.fsum(share * (1 - share) for share, _ in rows)) for rows in bins]
    rng = random.Random(f"calibration {seed}")
    exact = sorted(math.fsum(abs(rng.gauss(0, spread)) for spread in spreads) / n for _ in range(RESAMPLES))
    # One half more of both results: a bin in which all are right is not certain to stay so.
    draws = [
        _draw_counts(rng, len(rows), (count + 0.5) / (len(rows) + 1)) for rows, count in zip(bins, counts, strict=True)
    ]
    resampled = sorted(
        math.fsum(abs(sure - count) for sure, count in zip(stated, drawn, strict=True)) / n
        for drawn in zip(*draws, strict=True)
    )
    high = resampled[LAST_TAIL]
    low = 0.0 if error <= exact[LAST_TAIL] else max(0.0, 2 * error - high)
    by_chance = math.sqrt(2 / math.pi) * math.fsum(spreads) / n
    return Calibration(error, low, max(high, error), by_chance, len(bins), n)


def split_evenly(confidences: Sequence[float], right: Sequence[bool]) -> list[list[tuple[float, bool]]]:
    """Return bins with about equally many answers, in the order of confidence.

    Confidences that are equal in two digits stay together. Weights that leave out the question itself move a share by
    less, up if it is wrong and down if it is right, so that finer bins would sort answers by their results.
    """
    rows = sorted(zip(confidences, right, strict=True), key=lambda row: round(row[0], 2))
    count = max(1, min(MAX_CALIBRATION_BINS, len(rows) // MIN_PER_BIN))
    ends = [n for n in range(1, len(rows)) if round(rows[n - 1][0], 2) < round(rows[n][0], 2)]
    wanted = [len(rows) * n / count for n in range(1, count)]
    cuts = sorted({min(ends, key=lambda end: abs(end - at)) for at in wanted}) if ends else []
    return [rows[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


def _draw_counts(rng: random.Random, n: int, p: float) -> list[int]:
    """Return draws from a binomial distribution."""
    counts, chances = zip(*likely_counts(n, p), strict=True)
    return rng.choices(counts, chances, k=RESAMPLES)


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
