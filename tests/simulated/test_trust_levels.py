"""Trust levels order accuracy: real protocols and rules, simulated members."""

from __future__ import annotations

import asyncio

import pytest

from council.wording import HIGH_ACCURACY_PERCENT
from simulation import Members
from trust_levels import (
    SIMULATED_PROTOCOLS,
    STRONG_CORRELATION,
    LevelMeter,
    Pattern,
    find_level,
    make_grid,
)

SEED = 19
COMPETENCES = (0.55, 0.7, 0.9)
CORRELATIONS = (0.0, 0.2, 0.4, 0.6)


@pytest.mark.behaviour("evidence-trust-order")
@pytest.mark.parametrize("name", SIMULATED_PROTOCOLS)
def test_higher_trust_levels_are_right_more_often(name: str) -> None:
    asyncio.run(check_grid(name, COMPETENCES, CORRELATIONS, questions=1000))


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-trust-order")
@pytest.mark.parametrize("conformity", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("name", SIMULATED_PROTOCOLS)
def test_no_lower_trust_level_is_right_more_often_on_the_whole_grid(name: str, conformity: float) -> None:
    grid = (0.55, 0.65, 0.75, 0.9), (*CORRELATIONS, 0.8, 0.95)
    asyncio.run(check_grid(name, *grid, questions=2000, conformity=conformity))


async def check_grid(
    name: str,
    competences: tuple[float, ...],
    correlations: tuple[float, ...],
    *,
    questions: int,
    conformity: float = 0.3,
) -> None:
    meter, compared = LevelMeter(), 0
    for members in make_grid(competences, correlations, conformity=conformity):
        table = await meter.measure(name, members, questions, SEED)
        assert sum(map(len, table.right.values())) == questions
        assert table.find_inversions() == [], table.as_json()
        compared += sum(len(cases) >= 100 for cases in table.right.values()) > 1
    assert compared > 1  # several levels have enough cases


@pytest.mark.behaviour("evidence-high-limit")
def test_the_limit_of_high_trust_is_the_measured_figure() -> None:
    members = Members((0.7, 0.7, 0.7), STRONG_CORRELATION, conformity=0.3)
    table = asyncio.run(LevelMeter().measure("collaborative", members, 2000, SEED))
    right = table.right["HIGH"]
    assert round(100 * sum(right) / len(right)) == HIGH_ACCURACY_PERCENT


@pytest.mark.parametrize(("name", "split", "agreeing"), [("collaborative", "LOW", "HIGH"), ("adversarial", "LOW", "HIGH"), ("advisors", "LOW", "HIGH"), ("general", "CONTESTED", "HIGH")])  # fmt: skip
def test_the_level_follows_from_who_agrees_with_whom(name: str, split: str, agreeing: str) -> None:
    protocol, options = SIMULATED_PROTOCOLS[name]
    assert asyncio.run(find_level(protocol, options, Pattern((0, 1, 2), (0, 1, 2), ()))) == split
    assert asyncio.run(find_level(protocol, options, Pattern((0, 0, 0), (0, 0, 0), ()))) == agreeing
