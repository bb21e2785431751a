"""Rules of refine: the ring of attackers, agreement through a chain, and facts of the ballots."""

from __future__ import annotations

from itertools import product

import pytest

from council.protocols.common.tally import Standing
from council.protocols.refine.rules import assign_attackers, find_holders, list_ballot_facts
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
    ("verdicts", "names", "holders"),
    [
        ({}, "a", ("a",)),
        ({("a", "b"): True, ("b", "a"): True}, "ab", ("a", "b")),
        ({("a", "b"): False, ("b", "a"): False}, "ab", ("a",)),
        ({("a", "b"): True, ("b", "a"): False}, "ab", ("a",)),
        ({("a", "b"): False, ("b", "a"): True}, "ab", ("a",)),
        ({("a", "b"): None, ("b", "a"): True}, "ab", ("a", "b")),
        ({("a", "b"): True, ("b", "c"): True, ("c", "d"): True, ("d", "a"): True}, "abcd", ("a", "b", "c", "d")),
        ({("a", "b"): True, ("b", "c"): False, ("c", "d"): True, ("d", "a"): True}, "abcd", None),
        ({("a", "b"): False, ("b", "c"): False, ("c", "d"): False, ("d", "a"): False}, "abcd", None),
        ({("a", "b"): False, ("b", "c"): True, ("c", "d"): True, ("d", "a"): False}, "abcd", ("a",)),
        ({("a", "b"): True, ("b", "c"): True, ("c", "a"): False}, "abc", ("a", "b")),
        ({("a", "b"): True, ("b", "c"): True, ("c", "d"): False, ("d", "a"): False}, "abcd", ("a", "b", "c")),
        ({("a", "b"): None, ("b", "c"): None, ("c", "a"): None}, "abc", None),
        ({("a", "b"): True, ("b", "c"): None, ("c", "a"): False}, "abc", ("a", "b")),
    ],
)
def test_holders_are_those_that_a_chain_of_equal_conclusions_connects(
    verdicts: dict[tuple[str, str], bool | None], names: str, holders: tuple[str, ...] | None
) -> None:
    assert find_holders("a", verdicts, names) == holders


@pytest.mark.parametrize(
    ("firsts", "ballots", "is_unanimous", "kinds"),
    [(2, 2, False, []), (1, 2, False, ["ballots_differ"]), (1, 2, True, []), (0, 0, False, [])],
)
def test_a_split_of_the_ballots_is_a_fact_unless_the_drafts_agree(
    firsts: int, ballots: int, is_unanimous: bool, kinds: list[str]
) -> None:
    standing = Standing("alpha", 1, None, None, ballots, firsts)
    found = list_ballot_facts(standing, is_unanimous=is_unanimous)
    assert [fact.kind for fact in found] == kinds
