"""Topic alignment, consensus points and the claim ledger."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.protocols.general.claims import (
    Claim,
    Dispute,
    Move,
    SeatAnswer,
    align_topics,
    claim_ledger,
    find_consensus,
    resolve_disputes,
)
from council.protocols.general.disputes import find_disputes
from council.types import Json

STANCES = {"+": "supports", "-": "opposes", "~": "qualifies"}


def seat_answer(seat: str, *claims: tuple[Any, ...]) -> SeatAnswer:
    """Claims as ("+topic", "text", confidence, *sources)."""
    made = [
        Claim(seat, topic[1:], STANCES[topic[0]], text, sure, tuple(numbers)) for topic, text, sure, *numbers in claims
    ]
    return SeatAnswer(seat, "", tuple(made))


def topics(voices: list[SeatAnswer]) -> list[str]:
    return [claim.topic for one in voices for claim in one.claims]


# Aligning


@pytest.mark.behaviour("30-topics-aligned")
@pytest.mark.parametrize(
    ("written", "same", "named"),
    [
        (["The Cost", "costs!"], [], ["The Cost", "The Cost"]),
        (["cost", "price"], [], ["cost", "price"]),
        (["cost", "price"], [("price", "cost")], ["cost", "cost"]),
        (["a1", "b1", "c1", "d1"], [("c1", "d1"), ("b1", "c1")], ["a1", "b1", "b1", "b1"]),
        (["a1", "b1", "c1", "d1"], [("d1", "c1"), ("b1", "a1"), ("a1", "d1")], ["a1", "a1", "a1", "a1"]),
        (["cost", "price"], [("price", "value"), ("value", "cost")], ["cost", "price"]),
        (["cost", "price"], [("Price.", "the COST")], ["cost", "cost"]),
        (["", "cost"], [("", "cost")], ["", "cost"]),
        (["R&D", "R and D"], [], ["R&D", "R&D"]),
        (["`Redis`", "**redis**", "# Redis"], [], ["`Redis`"] * 3),
        (["p < 5", "p > 5"], [], ["p < 5", "p > 5"]),
    ],
)
def test_topics_are_named_as_first_written(written: list[str], same: list[tuple[str, str]], named: list[str]) -> None:
    voices = [seat_answer(f"seat{n}", (f"+{topic}", "x", 0.5)) for n, topic in enumerate(written)]
    assert topics(align_topics(voices, same)) == named


@pytest.mark.behaviour("30-topics-aligned")
def test_aligning_changes_nothing_but_topics() -> None:
    voices = [
        seat_answer("a", ("+cost", "Low.", 0.9, 1)),
        SeatAnswer("b", "Hm.", (), 0.3),
        seat_answer("c", ("-Costs", "High.", 0.2)),
    ]
    assert align_topics(voices, []) == [*voices[:2], seat_answer("c", ("-cost", "High.", 0.2))]


# Consensus


@pytest.mark.behaviour("30-consensus-points")
@pytest.mark.parametrize(
    ("sure", "members", "weight"),
    [
        ([0.9, 0.9], 3, 0.6),
        ([0.6, 0.6, 0.6], 3, 0.6),
        ([0.9, 0.89], 3, None),
        ([1.0, 1.0], 3, 0.667),
        ([1.0], 1, None),
        ([0.6, 0.6], 2, 0.6),
        ([9.0, float("nan")], 2, None),
        ([9.0, 0.5], 2, 0.75),
        ([1.0, 1.0], 0, 2.0),
    ],
)
def test_two_seats_with_enough_of_the_total_confidence_are_a_consensus(sure: list[float], members: int, weight: float | None) -> None:  # fmt: skip
    found = find_consensus([seat_answer(f"s{n}", ("+cost", "Low.", one)) for n, one in enumerate(sure)], members)
    assert [one["weight"] for one in found] == ([] if weight is None else [weight])


@pytest.mark.behaviour("30-consensus-points")
def test_a_point_has_the_best_evidenced_claim_of_its_seats() -> None:
    voices = [
        seat_answer("generalist", ("+cost", "Low.", 1.0), ("+cost", "Low by far.", 0.2, 3)),
        seat_answer("skeptic", ("+cost", "It halves.", 0.8, 1, 2)),
        seat_answer("domain_expert", ("-cost", "High.", 1.0)),
    ]
    assert find_consensus(voices, 3) == [
        {
            "topic": "cost",
            "stance": "supports",
            "claim": "It halves.",
            "seats": ["generalist", "skeptic"],
            "weight": 0.6,
            "sources": [1, 2, 3],
        }
    ]


@pytest.mark.behaviour("30-consensus-points", "003-consensus-leads")
def test_evidence_comes_before_confidence() -> None:
    claims = [("+sure", "x", 1.0), ("+thin", "x", 1.0, 7), ("+rich", "x", 0.7, 1, 2), ("+poor", "x", 0.7)]
    found = find_consensus([seat_answer("a", *claims), seat_answer("b", *claims)], 2)
    assert [one["topic"] for one in found] == ["rich", "thin", "sure", "poor"]


@pytest.mark.behaviour("30-consensus-points")
def test_the_same_source_twice_is_one() -> None:
    claims = [("+twice", "x", 0.9, 4, 4), ("+two", "x", 0.8, 4, 5)]
    found = find_consensus([seat_answer("a", *claims), seat_answer("b", *claims)], 2)
    assert [one["topic"] for one in found] == ["two", "twice"]


@pytest.mark.behaviour("30-consensus-points")
@pytest.mark.parametrize(
    "others",
    [
        [("-cost", "High.", 1.0)],
        [("~cost", "At night.", 1.0)],
        [("+price", "Low.", 1.0)],
        [("+cost", "Low.", 1.0), ("-cost", "High.", 1.0)],
        [("+", "Low.", 1.0)],
    ],
    ids=["opposes", "qualifies", "another topic", "is on both sides", "no topic"],
)
def test_a_claim_of_one_seat_is_not_a_consensus(others: list[tuple[Any, ...]]) -> None:
    assert find_consensus([seat_answer("a", ("+cost", "Low.", 1.0)), seat_answer("b", *others)], 2) == []


# The ledger


def ledger(voices: list[SeatAnswer], *moves: Move) -> dict[str, Json]:
    disputes = find_disputes(voices)
    resolved, _ = resolve_disputes(disputes, moves)
    return {row["claim"]: row for row in claim_ledger(voices, disputes, [one.topic for one in resolved], moves)}


@pytest.mark.behaviour("30-claim-ledger")
@pytest.mark.parametrize(
    ("voices", "status"),
    [
        ([seat_answer("a", ("+cost", "Low.", 0.9))], "unverified"),
        ([seat_answer("a", ("+cost", "Low.", 0.9, 1))], "supported"),
        ([seat_answer("a", ("+cost", "Low.", 0.9)), seat_answer("b", ("+cost", "Lower.", 0.8))], "supported"),
        ([seat_answer("a", ("+cost", "Low.", 0.9), ("+cost", "Lower.", 0.8))], "unverified"),
        ([seat_answer("a", ("+cost", "Low.", 0.9, 1)), seat_answer("b", ("-cost", "High.", 0.8))], "contradicted"),
        ([seat_answer("a", ("+cost", "Low.", 0.9, 1)), seat_answer("b", ("~cost", "At night.", 0.8))], "qualified"),
        ([seat_answer("a", ("+cost", "Low.", 0.9)), seat_answer("b", ("~cost", "x", 0.8)), seat_answer("c", ("-cost", "y", 0.8))], "contradicted"),
        ([seat_answer("a", ("+cost", "Low.", 0.9)), SeatAnswer("b", "I disagree with the low cost.")], "contradicted"),
        ([seat_answer("a", ("~cost", "Low.", 0.9)), seat_answer("b", ("+cost", "x", 0.8)), seat_answer("c", ("-cost", "y", 0.8))], "unverified"),
        ([seat_answer("a", ("~cost", "Low.", 0.9)), seat_answer("b", ("~cost", "x", 0.8))], "supported"),
        ([seat_answer("a", ("+cost", "Low.", 0.9)), seat_answer("b", ("-speed", "Low too.", 0.9))], "unverified"),
        ([seat_answer("a", ("+", "Low.", 0.9)), seat_answer("b", ("+", "Something else.", 0.9))], "unverified"),
    ],
)  # fmt: skip
def test_the_status_of_a_claim(voices: list[SeatAnswer], status: str) -> None:
    assert ledger(voices)["Low."]["status"] == status


@pytest.mark.behaviour("30-claim-ledger")
def test_a_row_says_who_holds_a_claim_who_is_against_it_and_by_which_sources() -> None:
    voices = [
        seat_answer("generalist", ("+cost", "Low.", 0.9, 2), ("+cost", "Lower.", 0.5, 1)),
        seat_answer("skeptic", ("-cost", "High.", 0.9)),
        seat_answer("domain_expert", ("+cost", "Low, as measured.", 0.6, 5, 4)),
    ]
    disputes = find_disputes(voices)
    assert claim_ledger(voices, disputes, []) == [
        {
            "claim": "Low, as measured.", "topic": "cost", "status": "contradicted", "by": ["generalist", "domain_expert"],
            "against": ["skeptic"], "sources": [1, 2, 4, 5], "conceded": [],
        },
        {
            "claim": "High.", "topic": "cost", "status": "contradicted", "by": ["skeptic"],
            "against": ["generalist", "domain_expert"], "sources": [], "conceded": [],
        },
    ]  # fmt: skip


TWO = [seat_answer("a", ("+cost", "Low.", 0.9, 1)), seat_answer("b", ("-cost", "High.", 0.8, 2))]


@pytest.mark.behaviour("30-claim-ledger")
def test_a_claim_whose_seat_conceded_says_so() -> None:
    rows = ledger(TWO, Move("b", "cost", "CONCEDE", ""))
    assert (rows["High."]["status"], rows["High."]["conceded"], rows["High."]["against"]) == (
        "contradicted",
        ["b"],
        ["a"],
    )
    assert (rows["Low."]["status"], rows["Low."]["conceded"], rows["Low."]["against"]) == ("supported", [], [])


@pytest.mark.behaviour("30-claim-ledger")
def test_a_concession_that_does_not_resolve_the_dispute_is_recorded() -> None:
    voices = [*TWO, seat_answer("c", ("-cost", "Higher.", 0.7, 2, 3))]
    rows = ledger(voices, Move("b", "cost", "CONCEDE", ""))
    assert (rows["Higher."]["by"], rows["Higher."]["conceded"]) == (["b", "c"], ["b"])
    assert (rows["Low."]["status"], rows["Low."]["against"]) == ("contradicted", ["c"])


@pytest.mark.behaviour("30-claim-ledger")
def test_claims_that_both_sides_narrowed_are_qualified() -> None:
    rows = ledger(TWO, Move("a", "cost", "NUANCE", ""), Move("b", "cost", "NUANCE", ""))
    assert {row["status"] for row in rows.values()} == {"qualified"}
    assert [row["against"] for row in rows.values()] == [[], []]


@pytest.mark.behaviour("30-claim-ledger")
def test_when_both_concede_both_claims_are_contradicted() -> None:
    rows = ledger(TWO, Move("a", "cost", "CONCEDE", ""), Move("b", "cost", "CONCEDE", ""))
    assert [(row["status"], row["conceded"], row["against"]) for row in rows.values()] == [
        ("contradicted", ["a"], ["b"]),
        ("contradicted", ["b"], ["a"]),
    ]


@pytest.mark.behaviour("30-claim-ledger")
def test_one_side_maintaining_against_a_nuance_keeps_both_contradicted() -> None:
    rows = ledger(TWO, Move("a", "cost", "NUANCE", ""), Move("b", "cost", "MAINTAIN", ""))
    assert {row["status"] for row in rows.values()} == {"contradicted"}


@pytest.mark.behaviour("30-disputes-possible")
def test_a_possible_dispute_contradicts_no_claim() -> None:
    possible = Dispute("cost", (), "possible")
    assert claim_ledger(TWO[:1], [possible], [])[0]["status"] == "supported"


# Properties

TEXT = st.text(max_size=12)
CLAIM = st.builds(
    Claim,
    st.sampled_from("abc"), st.one_of(TEXT, st.sampled_from(["cost", "Costs", "price"])),
    st.sampled_from([*STANCES.values(), ""]), TEXT, st.floats(), st.lists(st.integers(), max_size=3).map(tuple),
)  # fmt: skip
VOICES = st.lists(
    st.builds(SeatAnswer, st.sampled_from("abc"), TEXT, st.lists(CLAIM, max_size=6).map(tuple)), max_size=4
)
MOVES = st.lists(st.builds(Move, st.sampled_from("abc"), st.sampled_from(["cost", "price"]), TEXT, TEXT), max_size=4)


@pytest.mark.behaviour("30-claim-ledger")
@settings(max_examples=200, deadline=None)
@given(VOICES, st.lists(st.tuples(TEXT, TEXT), max_size=3), MOVES, st.integers(-1, 5))
def test_no_claim_is_lost_or_listed_twice(voices: list[SeatAnswer], same: list[tuple[str, str]], moves: list[Move], members: int) -> None:  # fmt: skip
    voices = align_topics(voices, same)
    disputes = find_disputes(voices)
    resolved, persisting = resolve_disputes(disputes, moves)
    assert len(resolved) + len(persisting) == len(disputes)
    rows = claim_ledger(voices, disputes, [one.topic for one in resolved], moves)
    said = {(claim.seat, claim.topic) for one in voices for claim in one.claims}
    assert {(seat, row["topic"]) for row in rows for seat in row["by"]} == said
    assert all(len(row["by"]) == len(set(row["by"])) for row in rows)
    assert all(row["against"] for row in rows if row["status"] == "contradicted")
    assert all(len(point["seats"]) > 1 and point["weight"] >= 0.6 for point in find_consensus(voices, members))


@pytest.mark.behaviour("30-topics-aligned")
@settings(max_examples=100, deadline=None)
@given(VOICES, st.lists(st.tuples(TEXT, TEXT), max_size=3))
def test_alignment_is_idempotent_and_adds_no_topic(voices: list[SeatAnswer], same: list[tuple[str, str]]) -> None:
    once = align_topics(voices, same)
    assert align_topics(once, same) == once or any(
        claim.confidence != claim.confidence for one in once for claim in one.claims
    )
    assert set(topics(once)) <= set(topics(voices))
