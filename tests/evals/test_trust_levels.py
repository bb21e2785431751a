"""Trust levels order accuracy: real protocols and rules, simulated members."""

from __future__ import annotations

import asyncio

import pytest

from council.evals.trust_levels import SIMULATED_PROTOCOLS, LevelMeter, Pattern, find_level, make_grid

SEED = 19
REQUIRED = ("collaborative", "adversarial", "ranking", "advisors", "general")


@pytest.mark.behaviour("evidence-trust-order")
def test_no_lower_trust_level_is_right_more_often_on_the_corners_of_the_grid() -> None:
    assert set(REQUIRED) <= set(SIMULATED_PROTOCOLS)
    asyncio.run(check_grid((0.55, 0.9), (0.0, 0.6), questions=400, protocols=REQUIRED))


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-trust-order")
@pytest.mark.parametrize("conformity", [0.0, 0.3, 0.6])
def test_no_lower_trust_level_is_right_more_often_on_the_whole_grid(conformity: float) -> None:
    grid = (0.55, 0.65, 0.75, 0.9), (0.0, 0.2, 0.4, 0.6)
    asyncio.run(check_grid(*grid, questions=2000, protocols=tuple(SIMULATED_PROTOCOLS), conformity=conformity))


async def check_grid(
    competences: tuple[float, ...], correlations: tuple[float, ...], *, questions: int, protocols: tuple[str, ...], conformity: float = 0.3
) -> None:  # fmt: skip
    meter, compared = LevelMeter(), 0
    for name in protocols:
        for members in make_grid(competences, correlations, conformity=conformity):
            table = await meter.measure(name, members, questions, SEED)
            assert table.find_inversions() == [], table.as_json()
            compared += sum(len(cases) >= 100 for cases in table.right.values()) > 1
    assert compared > len(protocols)  # several levels have enough cases


@pytest.mark.parametrize(("name", "split", "agreeing"), [("collaborative", "LOW", "HIGH"), ("adversarial", "LOW", "HIGH"), ("advisors", "LOW", "HIGH"), ("general", "CONTESTED", "HIGH")])  # fmt: skip
def test_the_level_follows_from_who_agrees_with_whom(name: str, split: str, agreeing: str) -> None:
    protocol, options = SIMULATED_PROTOCOLS[name]
    assert asyncio.run(find_level(protocol, options, Pattern((0, 1, 2), (0, 1, 2), ()))) == split
    assert asyncio.run(find_level(protocol, options, Pattern((0, 0, 0), (0, 0, 0), ()))) == agreeing
