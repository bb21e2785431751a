"""The clerk's points: what its reply counts for, and a clerk that is absent, writes prose or names unknown answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from council.engine.reply import parse_reply, read_partial
from council.errors import Fault
from council.protocols.common.points import MAX_DISPUTED, Points, assess_points, read_points
from council.types import Difference, Round, Seat, Side, Statement

LABELS = {"A": "gamma", "B": "alpha", "C": "beta"}
SEATS = ("alpha", "beta", "gamma")
CHOICES = {"answers": list(LABELS), "answer": list(LABELS), "shared_conclusion": list(LABELS)}


def read(**fields: Any) -> Any:
    reply = {"agreed": [], "disputed": [], "unique": [], "shared_conclusion": []} | fields
    return read_points(parse_reply(Points, json.dumps(reply), CHOICES), LABELS, SEATS)


def side(*answers: str, position: str = "Go.", assumes: str = "") -> dict[str, Any]:
    return {"answers": list(answers), "position": position, "assumes": assumes}


def test_labels_become_seats_in_seating_order() -> None:
    found = read(
        agreed=[{"point": "The sea is near.", "answers": ["A", "B"]}],
        disputed=[
            {"point": "When", "sides": [side("A", "C", position="May"), side("B", position="June", assumes="sun")]}
        ],
        unique=[{"answer": "C", "point": "Trains are full."}],
        shared_conclusion=["C", "A"],
    )
    assert [(one.point, one.seats) for one in found.agreed] == [("The sea is near.", ("alpha", "gamma"))]
    assert found.disputed == (Difference("When", (Side(("beta", "gamma"), "May"), Side(("alpha",), "June", "sun"))),)
    assert [(one.seat, one.point) for one in found.unique] == [("beta", "Trains are full.")]
    assert found.shared_by == ("beta", "gamma")
    assert found.state == "answered"


@pytest.mark.behaviour("10-points-checked")
def test_unknown_labels_are_dropped_and_reported() -> None:
    found = read(
        agreed=[{"point": "One.", "answers": ["A", "Z"]}, {"point": "Two.", "answers": ["A", "B", "Q"]}],
        unique=[{"answer": "X", "point": "Lost."}],
        shared_conclusion=["A", "B", "Y"],
    )
    assert [one.point for one in found.agreed] == ["Two."]
    assert found.unique == ()
    assert found.shared_by == ("alpha", "gamma")
    assert set(found.unknown) == {"Z", "Q", "X", "Y"}


@pytest.mark.behaviour("10-points-checked")
def test_a_dispute_needs_two_sides_of_different_answers() -> None:
    found = read(
        disputed=[
            {"point": "one side", "sides": [side("A", "B")]},
            {"point": "unknown side", "sides": [side("A"), side("Z")]},
            {"point": "both sides", "sides": [side("A", "B", position="x"), side("B", position="y")]},
            {"point": "only both", "sides": [side("B", position="x"), side("B", position="y")]},
            {"point": "no position", "sides": [side("A", position="x"), side("B", position=" ")]},
        ]
    )
    assert [one.point for one in found.disputed] == []


@pytest.mark.behaviour("10-points-checked")
def test_an_answer_on_two_sides_counts_for_neither() -> None:
    found = read(disputed=[{"point": "p", "sides": [side("A", "B", position="x"), side("B", "C", position="y")]}])
    assert found.disputed == (Difference("p", (Side(("gamma",), "x"), Side(("beta",), "y"))),)


@pytest.mark.behaviour("10-points-checked")
def test_a_point_that_one_answer_makes_is_not_agreed() -> None:
    assert read(agreed=[{"point": "p", "answers": ["A", "A"]}, {"point": "", "answers": ["A", "B"]}]).agreed == ()


@pytest.mark.behaviour("10-points-checked")
def test_a_point_that_is_disputed_is_not_agreed() -> None:
    disputed = [{"point": "Go in May.", "sides": [side("A", position="yes"), side("B", position="no")]}]
    assert read(agreed=[{"point": "go in May", "answers": ["A", "B"]}], disputed=disputed).agreed == ()


def test_two_sides_with_the_same_position_are_one() -> None:
    assert (
        read(disputed=[{"point": "p", "sides": [side("A", position="May."), side("B", position="may")]}]).disputed == ()
    )


def test_at_most_six_disputes_are_used() -> None:
    rows = [{"point": f"p{n}", "sides": [side("A", position="x"), side("B", position="y")]} for n in range(9)]
    assert [one.point for one in read(disputed=rows).disputed] == [f"p{n}" for n in range(MAX_DISPUTED)]


@pytest.mark.parametrize("shared", [["A"], [], ["A", "A"], "none"])
def test_one_answer_shares_its_conclusion_with_none(shared: Any) -> None:
    assert read(shared_conclusion=shared).shared_by == ()


@pytest.mark.parametrize("shared", ["A and C", "Response A, Response C", "Answers A and C", ["Response A", "answer C"]])
def test_labels_in_words_are_read(shared: Any) -> None:
    assert read(shared_conclusion=shared).shared_by == ("beta", "gamma")


def test_all_names_every_answer() -> None:
    found = read(agreed=[{"point": "p", "answers": "all"}], shared_conclusion=["all three answers"])
    assert found.agreed[0].seats == found.shared_by == ("alpha", "beta", "gamma")


def test_labels_in_the_sentences_become_seats() -> None:
    found = read(unique=[{"answer": "C", "point": "Response C warns of rain."}])
    assert found.unique[0].point == "Beta warns of rain."


@pytest.mark.behaviour("10-points-checked")
@pytest.mark.parametrize("words", ["both", "both answers", "all two answers"])
def test_both_of_three_answers_names_none(words: str) -> None:
    found = read(agreed=[{"point": "p", "answers": words}], shared_conclusion=words)
    assert (found.agreed, found.shared_by) == ((), None)


@pytest.mark.behaviour("10-points-checked")
@pytest.mark.parametrize("lost", ["disputed", "shared_conclusion"])
def test_nothing_is_assessed_if_the_disputes_or_the_conclusion_cannot_be_read(lost: str) -> None:
    reply: dict[str, Any] = {"agreed": [], "disputed": [], "unique": [], "shared_conclusion": ["A", "B", "C"]}
    del reply[lost]
    part = read_partial(Points, json.dumps(reply), CHOICES)
    assert part is not None
    assert read_points(part.reply, LABELS, SEATS).shared_by is None


@pytest.mark.behaviour("10-points-checked")
@pytest.mark.parametrize("shared", [["Z"], ["A", "Z"], ["all of them, more or less"], {"text": "the same"}])
def test_a_group_that_does_not_exist_is_not_assessed(shared: Any) -> None:
    assert read(shared_conclusion=shared).shared_by is None


@pytest.mark.parametrize("lost", [None, True, [["A", "B"], ["C"]]])
def test_a_conclusion_without_labels_is_not_assessed(lost: Any) -> None:
    reply = {"agreed": [], "disputed": [], "unique": [], "shared_conclusion": lost}
    with pytest.raises(Fault):  # it gets a repair turn
        parse_reply(Points, json.dumps(reply), CHOICES)
    part = read_partial(Points, json.dumps(reply), CHOICES)
    assert part is not None
    assert read_points(part.reply, LABELS, SEATS).shared_by is None


@pytest.mark.parametrize(
    "sides",
    [
        {"A": "May", "B": "June"},
        {"A": {"position": "May"}, "B": {"position": "June", "assumes": None}},
        ["A: May", "Response B – June"],
        [{"answer": "A", "view": "May"}, {"response": "B", "says": "June"}],
    ],
)
def test_sides_in_other_forms_are_read(sides: Any) -> None:
    found = read(disputed=[{"point": "When", "sides": sides}])
    assert found.disputed == (Difference("When", (Side(("gamma",), "May"), Side(("alpha",), "June"))),)


@pytest.mark.parametrize("unique", [{"A": "Rain."}, ["A: Rain."], [{"answers": ["A"], "point": "Rain."}]])
def test_unique_points_in_other_forms_are_read(unique: Any) -> None:
    assert [(one.seat, one.point) for one in read(unique=unique).unique] == [("gamma", "Rain.")]


def test_json_in_prose_and_in_a_wrapper_is_read() -> None:
    reply = {"points": {"agreed": [], "disputed": [], "unique": [], "shared_conclusion": ["A", "B"]}}
    text = f"Here is my comparison:\n```json\n{json.dumps(reply)}\n```\nI hope this helps."
    assert read_points(parse_reply(Points, text, CHOICES), LABELS, SEATS).shared_by == ("alpha", "gamma")


@pytest.mark.behaviour("10-points-checked")
def test_a_dispute_that_was_dropped_leaves_agreement_not_assessed() -> None:
    statements = [Statement(Seat(name, member=f"{name}:m"), name, "Go.", None) for name in SEATS]
    whole = read(shared_conclusion=list(LABELS))
    lost = read(shared_conclusion=list(LABELS), disputed=[{"point": "When", "sides": [side("A"), side("Z")]}])
    assert assess_points(whole, Round(statements)).agreement == "full"
    assert (lost.dropped, assess_points(lost, Round(statements)).agreement) == (1, "")
