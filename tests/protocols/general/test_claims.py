"""Second-round moves, points of consensus and the claim ledger."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.protocols.general.claims import (
    Claim,
    Dispute,
    Move,
    SeatAnswer,
    Side,
    claim_ledger,
    find_consensus,
    is_resolved,
    words_by_seat,
)
from council.protocols.general.comparison import ClerkGroup, Comparison, compare_claims
from council.protocols.general.replies import DisputeAnswer, Position, Reconsidered
from council.protocols.general.research import Research
from council.types import Json, Outcome, Round, Seat, Statement

QUESTION = "What does it cost?"


def answers(*rows: tuple[object, ...]) -> list[SeatAnswer]:
    """One claim per row of seat, answer, confidence and sources; a row may end with another question."""
    found: dict[str, list[Claim]] = {}
    for n, (seat, answer, sure, *numbers) in enumerate(rows, 1):
        question = numbers.pop() if numbers and isinstance(numbers[-1], str) else QUESTION
        claim = Claim(
            f"c{n}", str(seat), str(question), str(answer), f"It is {answer}, says {seat}.", "", sure, tuple(numbers)
        )  # type: ignore[arg-type]
        found.setdefault(str(seat), []).append(claim)
    return [SeatAnswer(seat, "", tuple(claims)) for seat, claims in found.items()]


def words_of(found: Comparison, moves: dict[str, str]) -> dict[str, str]:
    return {side.id: moves[side.seat] for one in found.disputes for side in one.positions if side.seat in moves}


# Second round

TWO = answers(("a", "low", 0.9, 1), ("b", "high", 0.8, 2))
CONFLICT = [ClerkGroup(QUESTION, ("c1", "c2"), "conflict")]
THREE = answers(("a", "5", 0.9), ("b", "9", 0.8), ("c", "9", 0.7))


@pytest.mark.behaviour("30-settled-by-words")
@pytest.mark.parametrize(
    ("words", "resolved"),
    [
        ({}, False),
        ({"a": "MAINTAIN", "b": "MAINTAIN"}, False),
        ({"a": "CONCEDE"}, True),
        ({"a": "CONCEDE", "b": "CONCEDE"}, True),
        ({"a": "NUANCE"}, False),
        ({"a": "NUANCE", "b": "MAINTAIN"}, False),
        ({"a": "NUANCE", "b": "NUANCE"}, True),
        ({"a": "NUANCE", "b": "CONCEDE"}, True),
    ],
)
def test_two_seats(words: dict[str, str], resolved: bool) -> None:
    (dispute,) = compare_claims(TWO, CONFLICT).disputes
    assert is_resolved(dispute, words) == resolved


@pytest.mark.behaviour("30-settled-by-words")
@pytest.mark.parametrize(
    ("words", "resolved"),
    [
        ({"a": "CONCEDE"}, True),
        ({"b": "CONCEDE"}, False),
        ({"b": "CONCEDE", "c": "CONCEDE"}, True),
        ({"a": "NUANCE", "b": "NUANCE"}, False),
        ({"a": "NUANCE", "b": "NUANCE", "c": "NUANCE"}, True),
    ],
)
def test_one_seat_against_two(words: dict[str, str], resolved: bool) -> None:
    (dispute,) = compare_claims(THREE).disputes
    assert is_resolved(dispute, words) == resolved


@pytest.mark.behaviour("30-disputes-possible")
def test_a_possible_dispute_stays_open() -> None:
    assert not is_resolved(Dispute("Q?", (), "possible"), {})
    assert not is_resolved(Dispute("Q?", (), "chair"), {})


@pytest.mark.behaviour("30-settled-by-words")
def test_the_most_persistent_of_several_words_counts_and_unknown_ones_maintain() -> None:
    moves = [Move("a", "D1", "CONCEDE", ""), Move("a", "D1", "NUANCE", ""), Move("b", "D1", "Hm", ""), Move("b", "D2", "CONCEDE", "")]  # fmt: skip
    assert words_by_seat(moves, "D1") == {"a": "NUANCE", "b": "MAINTAIN"}


@pytest.mark.behaviour("30-will-not-concede")
@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("CONCEDE: yes", True),
        ("**Concede**, yes", True),
        ("I will not concede", False),
        ("Conceded", False),
        ("", False),
    ],
)
def test_only_the_first_word_counts(text: str, starts: bool) -> None:
    answer = DisputeAnswer(topic="D1", word="CONCEDE", paragraph=text, confidence=0.5)
    assert Reconsidered(answers=[answer]).prose() == f"**D1** {text if starts else f'CONCEDE: {text}'}"


# Consensus


@pytest.mark.behaviour("30-consensus-points")
def test_a_point_has_each_seats_own_sentence() -> None:
    found = compare_claims(answers(("a", "5k", 1.0, 3), ("b", "5,000", 0.8, 1, 2)))
    (point,) = find_consensus(found.groups, {})
    assert (point["question"], point["seats"], point["weight"], point["sources"]) == (
        QUESTION,
        ["a", "b"],
        1.8,
        [1, 2, 3],
    )
    assert [(one["seat"], one["answer"], one["text"]) for one in point["statements"]] == [
        ("a", "5k", "It is 5k, says a."),
        ("b", "5,000", "It is 5,000, says b."),
    ]
    assert point["claim"] == "a: It is 5k, says a.; b: It is 5,000, says b."


@pytest.mark.behaviour("30-consensus-points", "003-consensus-leads")
def test_sources_come_before_confidence() -> None:
    rows = [(seat, "5", sure, *numbers, f"What does {name} cost?") for seat in "ab" for name, sure, numbers in (("sure", 1.0, ()), ("thin", 1.0, (7,)), ("rich", 0.7, (1, 2)), ("poor", 0.7, ()), ("twice", 0.9, (4, 4)))]  # fmt: skip
    points = find_consensus(compare_claims(answers(*rows)).groups, {})
    assert [one["question"].split()[2] for one in points] == ["rich", "thin", "twice", "sure", "poor"]


@pytest.mark.behaviour("30-consensus-points")
def test_one_seat_is_no_consensus() -> None:
    assert find_consensus(compare_claims(answers(("a", "5", 0.9), ("a", "5", 0.9))).groups, {}) == []


@pytest.mark.behaviour("30-consensus-points")
@pytest.mark.parametrize(
    ("moves", "seats"),
    [
        ({}, []),
        ({"a": "CONCEDE"}, [["b", "c"]]),
        ({"a": "CONCEDE", "c": "NUANCE"}, []),
        ({"b": "CONCEDE"}, []),
        ({"a": "NUANCE", "b": "NUANCE", "c": "NUANCE"}, []),
    ],
)
def test_a_concession_may_leave_a_consensus(moves: dict[str, str], seats: list[list[str]]) -> None:
    found = compare_claims(THREE)
    assert [one["seats"] for one in find_consensus(found.groups, words_of(found, moves))] == seats


# The ledger


def ledger(voices: list[SeatAnswer], clerk: list[ClerkGroup] | None = None, moves: dict[str, str] | None = None) -> dict[str, Json]:  # fmt: skip
    found, said = compare_claims(voices, clerk or []), moves or {}
    resolved = [one for one in found.disputes if is_resolved(one, said)]
    return {row["by"][0]: row for row in claim_ledger(voices, found.groups, words_of(found, said), resolved)}


@pytest.mark.behaviour("30-claim-ledger")
@pytest.mark.parametrize(
    ("voices", "status"),
    [
        (answers(("a", "5", 0.9)), "unverified"),
        (answers(("a", "5", 0.9, 1)), "supported"),
        (answers(("a", "5", 0.9), ("b", "5", 0.9)), "supported"),
        (answers(("a", "5", 0.9), ("b", "5", 0.9, "What is it?")), "unverified"),
        (answers(("a", "5", 0.9, 1), ("b", "9", 0.9)), "contradicted"),
        (answers(("a", "5 in May", 0.9, 1), ("b", "9 in June", 0.9)), "qualified"),
        (answers(("a", "5 in May", 0.9, 1), ("b", "9", 0.9)), "supported"),
    ],
)
def test_the_status_of_a_claim(voices: list[SeatAnswer], status: str) -> None:
    assert ledger(voices)["a"]["status"] == status


@pytest.mark.behaviour("30-claim-ledger")
def test_a_row_is_one_claim_with_its_seat_and_who_agrees_or_is_against_it() -> None:
    row = ledger(answers(("a", "5", 0.9, 2, 1), ("b", "9", 0.9), ("c", "about 5", 0.5)))["a"]
    assert row == {
        "id": "c1", "topic": QUESTION, "question": QUESTION, "answer": "5", "claim": "It is 5, says a.", "holds_when": "", "by": ["a"],
        "agrees": ["c"], "against": ["b"], "conceded": [], "sources": [1, 2], "status": "contradicted",
    }  # fmt: skip


@pytest.mark.behaviour("30-claim-ledger")
def test_a_claim_whose_seat_conceded_is_contradicted_and_the_other_is_not() -> None:
    rows = ledger(TWO, CONFLICT, {"b": "CONCEDE"})
    assert (rows["b"]["status"], rows["b"]["conceded"], rows["b"]["against"]) == ("contradicted", ["b"], ["a"])
    assert (rows["a"]["status"], rows["a"]["conceded"], rows["a"]["against"]) == ("supported", [], [])


@pytest.mark.behaviour("30-claim-ledger")
def test_a_concession_that_does_not_resolve_the_dispute_is_recorded() -> None:
    rows = ledger(THREE, moves={"b": "CONCEDE"})
    assert (rows["b"]["conceded"], rows["a"]["status"], rows["a"]["against"]) == (["b"], "contradicted", ["c"])


@pytest.mark.behaviour("30-claim-ledger")
def test_claims_that_both_sides_narrowed_are_qualified() -> None:
    rows = ledger(TWO, CONFLICT, {"a": "NUANCE", "b": "NUANCE"})
    assert [(row["status"], row["against"]) for row in rows.values()] == [("qualified", [])] * 2


@pytest.mark.behaviour("30-claim-ledger")
def test_when_both_concede_both_claims_are_contradicted() -> None:
    rows = ledger(TWO, CONFLICT, {"a": "CONCEDE", "b": "CONCEDE"})
    assert [(row["status"], row["conceded"]) for row in rows.values()] == [
        ("contradicted", ["a"]),
        ("contradicted", ["b"]),
    ]


@pytest.mark.behaviour("30-claim-ledger")
def test_one_side_maintaining_against_a_nuance_keeps_both_contradicted() -> None:
    rows = ledger(TWO, CONFLICT, {"a": "NUANCE", "b": "MAINTAIN"})
    assert {row["status"] for row in rows.values()} == {"contradicted"}


ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(("5", "9", "about 5", "yes", "")), st.floats(0, 1)), max_size=9
)
MOVES = st.dictionaries(st.sampled_from("abc"), st.sampled_from(("CONCEDE", "NUANCE", "MAINTAIN", "")))


@pytest.mark.behaviour("30-claim-ledger")
@settings(max_examples=200, deadline=None)
@given(ROWS, MOVES)
def test_no_claim_is_lost_or_listed_twice(rows: list[tuple[str, str, float]], moves: dict[str, str]) -> None:
    voices = answers(*rows)
    found = compare_claims(voices)
    words = words_of(found, moves)
    resolved = [one for one in found.disputes if is_resolved(one, moves)]
    listed = claim_ledger(voices, found.groups, words, resolved)
    assert sorted(row["id"] for row in listed) == sorted(f"c{n}" for n in range(1, len(rows) + 1))
    status = {row["id"]: row["status"] for row in listed}
    for point in find_consensus(found.groups, words, found.contested):
        assert {status[one["id"]] for one in point["statements"]} == {"supported"}
        assert len(point["seats"]) > 1


def test_the_opponents_of_a_side_hold_a_conflicting_claim_or_without_a_comparison_any_other_one() -> None:
    sides = (Side("a", "x", id="c1"), Side("b", "x", id="c2"), Side("c", "y", id="c3"))
    compared = Dispute("Q?", sides, "values", frozenset({frozenset({"c1", "c2"})}))
    assert compared.list_opponents(sides[0]) == ["b"]
    assert Dispute("Q?", sides, "chair").list_opponents(sides[0]) == ["c"]


def test_claims_without_a_question_or_a_text_and_those_over_the_limit_are_left_out() -> None:
    rows = [{"question": " ", "text": "x"}, {"question": "Q?"}, {"question": "Q?", "answer": "yes", "sources": [7]}]
    reply = Position.model_validate({"response": "Go.", "claims": [*rows, *[{"question": "Q?", "text": "t"}] * 9]})
    said = Round([Statement(Seat("a"), "r1/a", "", reply, Outcome("ok"))])
    (answer,) = Research().seat_answers(said)
    assert [(claim.id, claim.text, claim.sources) for claim in answer.claims] == [
        ("c1", "yes", ()),
        ("c2", "t", ()),
        ("c3", "t", ()),
        ("c4", "t", ()),
    ]
