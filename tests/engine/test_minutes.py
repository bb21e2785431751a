"""Minutes: the order of phases and seats does not depend on the order of arrival."""

from __future__ import annotations

import itertools
import random

import pytest

from council.engine.minutes import Minutes
from tests.engine.seat_events import PLAN, SEATED, ask, fold, list_steps, merge_randomly


def order_of(minutes: Minutes) -> list[tuple[str, list[str], list[str], list[str]]]:
    return [(phase.name, phase.asked, list(phase.said), list(phase.absent)) for phase in minutes.phases.values()]


@pytest.mark.behaviour("40-statements-in-seating-order")
@pytest.mark.parametrize("seed", range(20))
def test_phases_and_seats_are_in_seating_order_however_they_arrive(seed: int) -> None:
    minutes = fold(merge_randomly(list_steps(), random.Random(seed)))
    assert order_of(minutes) == [
        ("draft", ["alpha", "beta", "gamma"], ["alpha", "gamma"], ["beta"]),
        ("draft/alpha/look-1", ["alpha"], ["alpha"], []),
        ("draft/alpha/look-2", ["alpha"], ["alpha"], []),
        ("draft/beta/look-1", ["beta"], [], ["beta"]),
        ("draft/gamma/explore", ["gamma-explorer-2", "gamma-explorer-10"], ["gamma-explorer-2", "gamma-explorer-10"], []),
        ("merge", ["chair"], ["chair"], []),
    ]  # fmt: skip
    assert [said.seat for said in minutes.statements] == [
        "alpha", "gamma", "alpha", "alpha", "gamma-explorer-2", "gamma-explorer-10", "chair",
    ]  # fmt: skip


@pytest.mark.behaviour("40-statements-in-seating-order")
def test_other_phases_keep_the_order_in_which_they_started() -> None:
    for names in itertools.permutations(("zeta", "draft", "attack")):
        started = [{"type": "phase", "phase": name} for name in names]
        assert list(fold([SEATED, *started]).phases) == list(names)


@pytest.mark.behaviour("40-statements-in-seating-order")
def test_a_seat_whose_name_begins_like_that_of_another_seat_has_its_own_place() -> None:
    names = ["data", "api", "data-flow"]
    plan = PLAN | {"seats": [PLAN["seats"][0] | {"name": name} for name in names]}
    steps = [step for name in reversed(names) for step in ask("judge", name)]
    minutes = fold([SEATED | {"plan": plan}, {"type": "phase", "phase": "judge"}, *steps])
    assert list(minutes.phases["judge"].said) == names
