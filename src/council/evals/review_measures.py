"""Measures of reviews with known bugs: what findings report them, by the number of judges that support a finding."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from council.engine.records import FindingRow, ReportObject
from council.evals.statistics import RESAMPLES, TAILS, Interval, bootstrap_mean, read_interval
from council.runs.eval_object import IntervalObject

NEAR_LINES = 1  # a finding this close to a line of the bug counts as a hit


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A review of material with a bug, or without one: for each finding, how many judges support it, and whether it
    reports the bug.
    """

    has_bug: bool
    findings: tuple[tuple[int, bool], ...]
    judges: int
    has_unnamed_hit: bool = False  # one of the findings reports the bug, and it is not known which

    def hits(self, support: int) -> list[bool]:
        """Return whether each finding of at least so many judges reports the bug.

        A hit that names no finding is only known to have one judge. Which finding gets it then does not matter.
        """
        found = [hit for holders, hit in self.findings if holders >= support]
        return [True, *found[1:]] if self.has_unnamed_hit and support == 1 else found

    def is_found(self, support: int) -> bool:
        return any(self.hits(support))


def count_support(finding: FindingRow) -> int:
    """Return how many judges found a problem."""
    return max(1, len(finding["found_by"]))


def read_judges(report: ReportObject) -> int:
    """Return how many judges a review had."""
    return max([1, *(int(one["of"]) for one in report["findings"])])


class SupportObject(TypedDict):
    """The measures of the findings that at least `support` judges hold."""

    support: int
    recall: IntervalObject  # the share of bugs that they report
    precision: IntervalObject  # the share of them that report a bug
    f1: float | None


def measure_support(reviews: Sequence[Reviewed]) -> list[SupportObject]:
    """Return recall and precision by the number of judges that hold a finding, with intervals."""
    rows: list[SupportObject] = []
    for support in range(1, count_judges(reviews) + 1):
        recall = bootstrap_mean([one.is_found(support) for one in reviews if one.has_bug])
        precision = bootstrap_share([one.hits(support) for one in reviews])
        p, r = precision.mean, recall.mean
        f1 = None if math.isnan(p) or math.isnan(r) else 2 * p * r / (p + r) if p + r else 0.0
        rows.append({"support": support, "recall": recall.as_json(), "precision": precision.as_json(), "f1": f1})
    return rows


def bootstrap_share(groups: Sequence[Sequence[bool]], seed: int = 0) -> Interval:
    """Return the share of true values in all groups, with an interval over groups: findings of one review are alike."""
    filled = [group for group in groups if group]
    values = [value for group in filled for value in group]
    if len(set(values)) < 2 or max(map(len, filled)) == 1:
        alike = bootstrap_mean(values[: len(filled)], seed)  # as many as there are independent reviews
        return alike._replace(n=len(values))
    rng = random.Random(f"bootstrap {seed}")
    pairs = [(sum(group), len(group)) for group in filled]
    shares = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(pairs, k=len(pairs))
        shares.append(sum(hits for hits, _ in drawn) / sum(count for _, count in drawn))
    shares.sort()
    low, high = (shares[math.ceil(tail * RESAMPLES) - 1] for tail in TAILS)
    return Interval(sum(values) / len(values), low, high, len(values))


def count_judges(reviews: Sequence[Reviewed]) -> int:
    return max((one.judges for one in reviews), default=0)


def count_split(reviews: Sequence[Reviewed]) -> int:
    """Return how many bugs are reported as several findings."""
    return sum(sum(hit for _, hit in one.findings) > 1 for one in reviews if one.has_bug)


def format_share(shown: IntervalObject) -> str:
    """Return a share with its interval."""
    interval = read_interval(shown)
    if interval is None:
        return "no case"
    return f"{100 * interval.mean:.0f} % ({100 * interval.low:.0f}-{100 * interval.high:.0f})"
