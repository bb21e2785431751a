"""Simulated reviewers: what the support of a finding and the grouping rule are worth."""

from __future__ import annotations

import pytest

from council.evals.review_bench import make_cases
from council.runs.eval_object import IntervalObject
from reviewers import Reviewers, run_simulation


def _mean(interval: IntervalObject) -> float:
    assert interval["mean"] is not None
    return interval["mean"]


@pytest.mark.behaviour("evidence-review-bench")
def test_with_simulated_reviewers_support_raises_precision_and_the_grouping_rule_joins_the_same_bug() -> None:
    result = run_simulation(make_cases(seed=1) * 4, Reviewers(), seed=2)
    rows, grouping = result["by_support"], result["grouping"]
    recall, precision = [_mean(row["recall"]) for row in rows], [_mean(row["precision"]) for row in rows]
    assert recall == sorted(recall, reverse=True) and precision[0] < precision[1] <= precision[2]
    low_precision, low_recall = (grouping["precision"]["low"], grouping["recall"]["low"]) if grouping else (None, None)
    assert low_precision is not None and low_precision > 0.9
    assert low_recall is not None and low_recall > 0.7
    assert run_simulation(make_cases(seed=1) * 4, Reviewers(), seed=2) == result
