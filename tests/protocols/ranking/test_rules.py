"""Ranking rules: places and ties, absences, agreement and confidence."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations, product
from types import SimpleNamespace
from typing import Any

import pytest

from council.engine.council import make_labels
from council.protocols.ranking.report import RankingView
from council.protocols.ranking.rules import (
    find_split_answers,
    ranking_confidence,
    reader_agreement,
    readers_who_put,
    tally,
)

ABC = ("alpha", "beta", "gamma")
MANY = tuple(f"s{n:02}" for n in range(30))


def identical_ballots(seats: tuple[str, ...]) -> dict[str, list[str]]:
    """Return ballots on which every reader ranks the others in seating order."""
    return {reader: [seat for seat in seats if seat != reader] for reader in seats}


def rows(ballots: Any, seats: tuple[str, ...] = ABC) -> list[tuple[str, int | None, float | None, int, int]]:
    told = [row.as_json() for row in tally(ballots, seats).standings]
    return [(row["seat"], row["place"], row["mean_rank"], row["ballots"], row["firsts"]) for row in told]


@pytest.mark.behaviour("10-ranking-labels")
@pytest.mark.parametrize(
    ("n", "label"), [(1, "A"), (26, "Z"), (27, "AA"), (28, "AB"), (52, "AZ"), (53, "BA"), (60, "BH"), (703, "AAA")]
)
def test_labels_continue_after_z(n: int, label: str) -> None:
    assert make_labels(n)[-1] == label
    assert len(set(make_labels(n))) == n


@pytest.mark.behaviour("10-ranking-table")
@pytest.mark.parametrize(
    ("ballots", "told"),
    [
        pytest.param(
            identical_ballots(ABC),
            [("alpha", 1, 1.0, 2, 2), ("beta", 2, 1.5, 2, 1), ("gamma", 3, 2.0, 2, 0)],
            id="of one mind",
        ),
        pytest.param(
            {"alpha": ["beta", "gamma"], "beta": ["gamma", "alpha"], "gamma": ["alpha", "beta"]},
            [("alpha", 1, 1.5, 2, 1), ("beta", 1, 1.5, 2, 1), ("gamma", 1, 1.5, 2, 1)],
            id="a circle: all share the first place",
        ),
        pytest.param(
            {"beta": ["alpha", "gamma"], "gamma": ["alpha", "beta"]},
            [("alpha", 1, 1.0, 2, 2), ("beta", 2, 2.0, 1, 0), ("gamma", 2, 2.0, 1, 0)],
            id="alpha's ballot is absent: no ballot compares the other two, which share a place",
        ),
        pytest.param(
            {"alpha": ["gamma", "beta"]},
            [("gamma", 1, 1.0, 1, 1), ("beta", 2, 2.0, 1, 0), ("alpha", None, None, 0, 0)],
            id="one ballot: its reader is on no ballot",
        ),
        pytest.param({}, [(seat, None, None, 0, 0) for seat in ABC], id="no ballot"),
    ],
)
def test_the_table_has_mean_rank_ballots_and_first_places(ballots: Any, told: Any) -> None:
    assert rows(ballots) == told


@pytest.mark.behaviour("10-ranking-table")
def test_a_ballot_with_a_single_answer_is_not_counted() -> None:
    two = ("alpha", "beta")
    assert rows({"alpha": ["beta"], "beta": ["alpha"]}, two) == [
        ("alpha", None, None, 0, 0),
        ("beta", None, None, 0, 0),
    ]
    heard = {"alpha": ["beta"], "beta": ["alpha"], "gamma": ["beta", "alpha"]}
    assert rows(heard, two) == [("beta", 1, 1.0, 1, 1), ("alpha", 2, 2.0, 1, 0)]


@pytest.mark.behaviour("10-ranking-winner")
@pytest.mark.parametrize(
    ("ballots", "winner"),
    [
        (identical_ballots(ABC), "alpha"),
        ({"alpha": ["beta", "gamma"], "beta": ["gamma", "alpha"], "gamma": ["alpha", "beta"]}, None),
        ({"beta": ["alpha", "gamma"], "gamma": ["alpha", "beta"]}, "alpha"),
        ({"alpha": ["gamma", "beta"]}, None),
        ({}, None),
    ],
)
def test_there_is_a_winner_only_if_one_answer_is_first_and_all_were_ranked(ballots: Any, winner: str | None) -> None:
    assert tally(ballots, ABC).winner == winner


@pytest.mark.behaviour("10-ranking-borda")
def test_borda_is_the_share_of_comparisons_won_and_does_not_penalise_fewer_ballots() -> None:
    shares = {row.seat: row.borda for row in tally({"beta": ["alpha", "gamma"]}, ABC).standings}
    assert shares == {"alpha": 1, "beta": None, "gamma": 0}
    everyone = {row.seat: row.borda for row in tally(identical_ballots(ABC), ABC).standings}
    assert everyone == {"alpha": 1, "beta": Fraction(1, 2), "gamma": 0}


@pytest.mark.behaviour("10-ranking-borda")
def test_with_equal_ballot_lengths_borda_and_mean_rank_agree() -> None:
    orders = [list(permutations([seat for seat in ABC if seat != reader])) for reader in ABC]
    for cast in product(*orders):
        ballots = dict(zip(ABC, cast, strict=True))
        for absent in (None, *ABC):
            assert not tally({r: order for r, order in ballots.items() if r != absent}, ABC).differ


@pytest.mark.behaviour("10-ranking-borda")
def test_a_difference_between_mean_rank_and_borda_is_flagged() -> None:
    # The ballot of a is absent; d gave no answer, so that its ballot is longer than the others'.
    table = tally({"b": ["a", "c"], "c": ["b", "a"], "d": ["b", "c", "a"]}, ("a", "b", "c"))
    assert [(row.seat, row.place, row.mean_rank) for row in table.standings] == [("b", 1, 1), ("a", 2, 2), ("c", 2, 2)]
    assert [row.borda for row in table.standings] == [1, Fraction(1, 4), Fraction(1, 3)]
    assert table.differ


@pytest.mark.behaviour("10-ranking-agreement")
@pytest.mark.parametrize(
    ("one", "other", "same", "compared"),
    [
        (["x", "y", "z"], ["x", "y", "z"], 3, 3),
        (["x", "y", "z"], ["z", "y", "x"], 0, 3),
        (["x", "y", "z"], ["x", "z", "y"], 2, 3),
        (["x", "y", "v"], ["w", "y", "x"], 0, 1),
        (["x", "v"], ["w", "x"], 0, 0),
    ],
)
def test_agreement_covers_the_answers_both_ranked(one: list[str], other: list[str], same: int, compared: int) -> None:
    (pair,) = reader_agreement({"a": one, "b": other})
    assert pair == {"readers": ["a", "b"], "same": same, "compared": compared}


@pytest.mark.behaviour("10-ranking-agreement")
def test_agreement_equals_a_naive_count() -> None:
    for other in permutations("vwxyz"):
        (pair,) = reader_agreement({"a": list("vwxyz"), "b": list(other)})
        assert pair["same"] == sum(other.index(p) < other.index(q) for p, q in combinations("vwxyz", 2))


@pytest.mark.behaviour("10-ranking-dissent")
def test_readers_against_the_winner_and_split_answers_are_named() -> None:
    four = ("a", "b", "c", "d")
    ballots = {"a": ["b", "c", "d"], "b": ["a", "c", "d"], "c": ["a", "b", "d"], "d": ["c", "b", "a"]}
    assert find_split_answers(ballots, four) == {"a": (["b", "c"], ["d"])}
    assert readers_who_put(ballots, "a", -1) == ["d"]
    assert readers_who_put(ballots, "a", 0) == ["b", "c"]
    assert readers_who_put({}, None, -1) == []


@pytest.mark.behaviour("10-ranking-dissent")
@pytest.mark.parametrize("seats", [ABC, ("a", "b", "c", "d"), MANY])
def test_identical_ballots_have_no_split_answers(seats: tuple[str, ...]) -> None:
    assert find_split_answers(identical_ballots(seats), seats) == {}


@pytest.mark.behaviour("10-ranking-confidence")
@pytest.mark.parametrize(
    ("ballots", "seats", "level"),
    [
        pytest.param(identical_ballots(("a", "b", "c", "d")), ("a", "b", "c", "d"), "HIGH", id="first on all three"),
        pytest.param(identical_ballots(ABC), ABC, "MEDIUM", id="first on both, and two are few"),
        pytest.param(identical_ballots(MANY), MANY, "HIGH", id="thirty of one mind"),
        pytest.param(
            {"b": ["a", "c", "d"], "c": ["a", "b", "d"], "d": ["b", "a", "c"]},
            ("a", "b", "c", "d"),
            "MEDIUM",
            id="first on two of three",
        ),
        pytest.param({"alpha": ["beta", "gamma"], "gamma": ["alpha", "beta"]}, ABC, "LOW", id="one ballot for the first"),
        pytest.param({}, ABC, "LOW", id="no ballot"),
        pytest.param(
            {"alpha": ["beta", "gamma"], "beta": ["gamma", "alpha"], "gamma": ["alpha", "beta"]}, ABC, "LOW", id="a circle"
        ),
    ],
)  # fmt: skip
def test_confidence_is_computed_from_the_ballots(ballots: Any, seats: tuple[str, ...], level: str) -> None:
    assert ranking_confidence(tally(ballots, seats)) == level


@pytest.mark.behaviour("10-ranking-confidence")
def test_two_ballots_are_not_enough_for_high() -> None:
    orders = [list(permutations([seat for seat in ABC if seat != reader])) for reader in ABC]
    tables = [tally(dict(zip(ABC, cast, strict=True)), ABC) for cast in product(*orders)]
    assert [bool(table.winner) for table in tables].count(True) == 6 and len(tables) == 8
    assert {ranking_confidence(table) for table in tables} == {"MEDIUM", "LOW"}


@pytest.mark.behaviour("10-ranking-table")
def test_thirty_identical_ballots_keep_their_order_without_disagreement() -> None:
    table = tally(identical_ballots(MANY), MANY)
    assert [row.seat for row in table.standings] == list(MANY)
    assert [row.place for row in table.standings] == list(range(1, 31))
    assert {row.ballots for row in table.standings} == {29}
    pairs = reader_agreement(identical_ballots(MANY))
    assert {(pair["same"], pair["compared"]) for pair in pairs} == {(28 * 27 // 2, 28 * 27 // 2)}


def test_a_report_has_the_ranking_without_the_labels_of_the_readers() -> None:
    ranking = {"table": [], "winner": None, "differ": False, "agreement": [], "ballots": {}}
    minutes: Any = SimpleNamespace(verdict={"details": {**ranking, "labels": {"alpha": {"A": "beta"}}}})
    assert RankingView().report_fields(minutes) == {"ranking": ranking}
    minutes.verdict = {}
    assert RankingView().report_fields(minutes) == {}
