"""Simulated reviewers: what the support of a finding and the grouping rule are worth."""

from __future__ import annotations

import pytest

from council.evals.review_bench import make_cases
from reviewers import Reviewers, run_simulation


@pytest.mark.behaviour("evidence-review-bench")
def test_with_simulated_reviewers_support_raises_precision_and_the_grouping_rule_joins_the_same_bug() -> None:
    result = run_simulation(make_cases(seed=1) * 4, Reviewers(), seed=2)
    recall, precision = ([row[name]["mean"] for row in result["by_support"]] for name in ("recall", "precision"))
    assert recall == sorted(recall, reverse=True) and precision[0] < precision[1] <= precision[2]
    assert result["grouping"]["precision"]["low"] > 0.9 and result["grouping"]["recall"]["low"] > 0.7
    assert run_simulation(make_cases(seed=1) * 4, Reviewers(), seed=2) == result
