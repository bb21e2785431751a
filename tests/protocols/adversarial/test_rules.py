"""Computed confidence: all combinations, by enumeration."""

from __future__ import annotations

from itertools import chain, combinations

import pytest

from council.protocols.adversarial.rules import compute_confidence

OUTCOMES = ("SURVIVED", "MODIFIED", "OVERTURNED")
SEVERITIES = ("FATAL", "MAJOR", "MINOR")
STANCES = ("STAND", "MODIFIED", "REJECTED")


def subsets(items: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(items, n) for n in range(len(items) + 1)))


def expected(outcome: str, landed: tuple[str, ...], stances: tuple[str, ...]) -> str:
    """The rule as specified."""
    rows = (
        (outcome == "OVERTURNED", "CONTESTED"),
        ("FATAL" in landed and "REJECTED" in stances, "CONTESTED"),
        (outcome == "MODIFIED", "MEDIUM"),
        (bool({"FATAL", "MAJOR"} & set(landed)), "MEDIUM"),
        (True, "HIGH"),
    )
    return next(level for holds, level in rows if holds)


@pytest.mark.behaviour("000-computed-confidence")
@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("landed", subsets(SEVERITIES), ids="+".join)
@pytest.mark.parametrize("stances", subsets(STANCES), ids="+".join)
def test_the_first_matching_rule_decides(outcome: str, landed: tuple[str, ...], stances: tuple[str, ...]) -> None:
    assert compute_confidence(outcome, landed, stances) == expected(outcome, landed, stances)


@pytest.mark.behaviour("000-computed-confidence")
@pytest.mark.parametrize(
    ("outcome", "landed", "stances", "level"),
    [
        ("SURVIVED", [], [], "HIGH"),  # attack skipped by consensus
        ("SURVIVED", ["MINOR"], ["STAND", "REJECTED"], "HIGH"),
        ("SURVIVED", ["MAJOR"], ["STAND"], "MEDIUM"),
        ("SURVIVED", ["FATAL"], ["STAND", "MODIFIED"], "MEDIUM"),
        ("SURVIVED", ["FATAL"], ["STAND", "REJECTED"], "CONTESTED"),
        ("MODIFIED", [], [], "MEDIUM"),
        ("MODIFIED", ["FATAL"], ["REJECTED"], "CONTESTED"),
        ("OVERTURNED", ["MINOR"], ["STAND"], "CONTESTED"),
    ],
)
def test_confidence_by_example(outcome: str, landed: list[str], stances: list[str], level: str) -> None:
    assert compute_confidence(outcome, landed, stances) == level
