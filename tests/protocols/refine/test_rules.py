"""Rules of refine: the ring of attackers, and agreement that a seat contradicts."""

from __future__ import annotations

from itertools import product

import pytest

from council.protocols.refine.rules import assign_attackers, is_contradicted
from council.types import Seat

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")


def seat_vendors(vendors: str) -> list[Seat]:
    return [Seat(name, vendor=vendor) for name, vendor in zip(NAMES, vendors, strict=False)]


@pytest.mark.behaviour("10-refine-ring")
@pytest.mark.parametrize("size", range(2, 7))
def test_every_draft_has_one_attacker_of_another_vendor_wherever_that_is_possible(size: int) -> None:
    for vendors in map("".join, product("abc", repeat=size)):
        seats = seat_vendors(vendors)
        vendor = {seat.name: seat.vendor for seat in seats}
        targets = assign_attackers(seats)
        assert sorted(targets) == sorted(targets.values()) == sorted(vendor)
        assert all(attacker != author for attacker, author in targets.items())
        alike = sum(vendor[attacker] == vendor[author] for attacker, author in targets.items())
        largest = max(vendors.count(one) for one in vendors)
        assert alike == max(0, 2 * largest - size)  # the seats of a majority cannot all be paired with others


@pytest.mark.behaviour("10-refine-agreement")
@pytest.mark.parametrize(
    ("shared_by", "opposed", "expected"),
    [
        (None, ["ab"], False),
        ("", ["ab"], False),
        ("abc", [], False),
        ("abc", ["ab"], True),
        ("ac", ["ab", "bc"], False),
        ("ab", ["ac"], False),
        ("ab", ["ab", "ac"], True),
    ],
)
def test_the_chair_is_contradicted_by_a_seat_whose_draft_differs_from_another_one_that_it_counts(
    shared_by: str | None, opposed: list[str], expected: bool
) -> None:
    assert is_contradicted(shared_by, [frozenset(pair) for pair in opposed]) is expected
