"""Rules of the adaptive protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from council.protocols.adaptive.replies import Answer, ArgumentRow, Confirmation
from council.protocols.adaptive.rules import (
    choose_author,
    choose_first_seats,
    choose_reader,
    choose_speakers,
    choose_stand_in,
    choose_supported,
    compare_first_answers,
    count_room,
    join_conclusions,
    judge_check,
    keep_agreeing,
    list_open_points,
    order_seats,
    settle_errors,
)
from council.types import CheckedError, Difference, Outcome, Round, Seat, Side, Statement

SEATS = (
    Seat("alpha", member="a:1", vendor="a"),
    Seat("beta", member="b:1", vendor="b"),
    Seat("gamma", member="c:1", vendor="c"),
)
SAME_VENDOR = (
    Seat("alpha", member="a:1", vendor="a"),
    Seat("beta", member="a:2", vendor="a"),
    Seat("gamma", member="c:1", vendor="c"),
)
PRICES = {"a:1": 3.0, "b:1": 2.0, "c:1": 1.0}


def names(seats: Any) -> list[str]:
    return [seat.name for seat in seats]


def answer(
    seat: Seat, conclusion: str = "408", confidence: str = "HIGH", doubts: list[str] | None = None, served_by: str = ""
) -> Statement[Answer]:
    reply = Answer(
        answer=f"It is {conclusion}.",
        conclusion=conclusion,
        confidence=confidence,
        doubts=doubts if doubts is not None else [],
    )  # type: ignore[arg-type]
    return Statement(seat, f"answer/{seat.name}", "", reply, Outcome("ok", served_by=served_by or seat.member))


def decide(*answers: Statement[Answer]) -> str:
    return compare_first_answers(Round(answers), "What is 17 * 24?").reason


@pytest.mark.behaviour("10-adaptive-first-seats")
def test_the_first_two_seats_are_of_different_vendors_where_there_are_two() -> None:
    assert names(choose_first_seats(SEATS)) == ["alpha", "beta"]
    assert names(choose_first_seats(SAME_VENDOR)) == ["alpha", "gamma"]
    assert names(choose_first_seats(SAME_VENDOR[:2])) == ["alpha", "beta"]


@pytest.mark.behaviour("10-adaptive-cheap-first")
def test_cheap_first_asks_the_cheapest_members_first() -> None:
    assert names(order_seats(SEATS, PRICES, cheap_first=True)) == ["gamma", "beta", "alpha"]
    assert names(order_seats(SEATS, PRICES, cheap_first=False)) == ["alpha", "beta", "gamma"]
    assert names(order_seats(SEATS, {"c:1": 1.0}, cheap_first=True)) == [
        "gamma",
        "alpha",
        "beta",
    ]  # without a price: last
    assert names(order_seats(SEATS, {}, cheap_first=True)) == ["alpha", "beta", "gamma"]
    assert names(
        choose_first_seats(order_seats(SAME_VENDOR, {"a:1": 1.0, "a:2": 2.0, "c:1": 9.0}, cheap_first=True))
    ) == ["alpha", "gamma"]


@pytest.mark.behaviour("10-adaptive-stand-in")
def test_the_next_seat_of_another_vendor_takes_the_place_of_an_absent_one() -> None:
    four = (*SAME_VENDOR, Seat("delta", member="a:3", vendor="a"))
    assert choose_stand_in(SEATS, Round([answer(SEATS[0])]), asked={"alpha", "beta"}) == SEATS[2]
    assert choose_stand_in(SAME_VENDOR, Round([answer(SAME_VENDOR[2])]), asked={"alpha", "gamma"}) == SAME_VENDOR[1]
    assert (
        choose_stand_in(four, Round([answer(four[0])]), asked={"alpha", "gamma"}) is None
    )  # the others are of its vendor
    assert choose_stand_in(SEATS, Round([]), asked={"alpha", "beta"}) == SEATS[2]
    assert choose_stand_in(SEATS, Round([]), asked={"alpha", "beta", "gamma"}) is None


@pytest.mark.behaviour("10-adaptive-may-stop")
def test_two_firm_answers_of_two_vendors_with_one_conclusion_may_stop() -> None:
    alpha, beta, _ = SEATS
    assert decide(answer(alpha), answer(beta, "408.0")) == "agreed"
    assert decide(answer(alpha, "Lima"), answer(beta, "Ciudad de los Reyes")) == "agreed"  # the check compares them
    assert decide(answer(alpha)) == "one_answer"
    assert decide(answer(alpha), answer(beta, "418")) == "different"
    assert decide(answer(alpha), answer(beta, "")) == "no_conclusion"
    assert decide(answer(alpha), answer(beta, confidence="MEDIUM")) == "not_sure"
    assert decide(answer(alpha), answer(beta, confidence="")) == "not_sure"
    assert decide(answer(alpha), answer(beta, doubts=["the unit"])) == "doubts"
    assert decide(answer(SAME_VENDOR[0]), answer(SAME_VENDOR[1])) == "one_vendor"
    assert decide(answer(alpha), answer(beta, served_by="a:1")) == "one_vendor"  # by fallback
    routed = replace(beta, fallback_vendors=(("router:a/1", "a"),))
    assert decide(answer(alpha), answer(routed, served_by="router:a/1")) == "one_vendor"
    assert decide(answer(alpha), answer(routed, served_by="router:c/1")) == "agreed"


@pytest.mark.behaviour("10-adaptive-may-stop")
def test_doubts_that_a_reply_does_not_mention_are_not_the_same_as_none() -> None:
    silent = Statement(
        SEATS[1],
        "answer/beta",
        "",
        Answer(answer="It is 408.", conclusion="408", confidence="HIGH", doubts=None),
        Outcome("ok"),
    )
    assert compare_first_answers(Round([answer(SEATS[0]), silent]), "").reason == "doubts"


@pytest.mark.behaviour("10-adaptive-check")
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"same_conclusion": True, "errors": []}, "confirmed"),
        ({"same_conclusion": None, "errors": []}, "not_confirmed"),
        ({"errors": []}, "not_confirmed"),
        ({"same_conclusion": "perhaps", "errors": []}, "not_confirmed"),
        ({"same_conclusion": False, "errors": []}, "not_confirmed"),
        ({"same_conclusion": True, "errors": [{"severity": "MINOR", "flaw": "a slip"}]}, "confirmed"),
        ({"same_conclusion": True, "errors": [{"severity": "MAJOR", "flaw": "wrong"}]}, "errors"),
        (None, "not_checked"),
    ],
)  # fmt: skip
def test_the_check_confirms_only_what_it_says(reply: dict[str, Any] | None, reason: str) -> None:
    assert judge_check(Confirmation.model_validate(reply) if reply else None) == reason


@pytest.mark.behaviour("10-adaptive-check")
def test_the_cheaper_ones_answer_is_checked_by_the_other() -> None:
    answers = Round([answer(SEATS[0]), answer(SEATS[1])])
    assert choose_author(answers, PRICES).seat.name == "beta"
    assert choose_author(answers, {"a:1": 3.0}).seat.name == "alpha"  # a price is unknown: the first
    alpha, beta, gamma = map(answer, SEATS)
    assert choose_reader(Round([alpha, beta, gamma]), alpha) == beta
    by_fallback = answer(SEATS[1], served_by="a:2")  # of alpha's vendor
    assert choose_reader(Round([alpha, by_fallback, gamma]), alpha) == gamma
    assert choose_reader(Round([alpha, by_fallback]), alpha) == by_fallback


@pytest.mark.behaviour("10-adaptive-nothing-disputed")
def test_the_best_supported_answer_is_the_surest_then_the_cheapest() -> None:
    sure, unsure = answer(SEATS[0]), answer(SEATS[2], confidence="LOW")
    assert choose_supported(Round([unsure, sure, answer(SEATS[1], doubts=["the unit"])]), PRICES).seat.name == "alpha"
    assert choose_supported(Round([sure, answer(SEATS[1]), answer(SEATS[2])]), PRICES).seat.name == "gamma"


def point(*sides: str) -> Difference:
    return Difference("a point", tuple(Side(tuple(side.split()), f"position of {side}") for side in sides))


@pytest.mark.behaviour("10-adaptive-argue")
def test_one_seat_of_each_side_speaks_first_and_never_only_one_side() -> None:
    assert choose_speakers([point("alpha beta", "gamma")], room=3) == ["alpha", "gamma", "beta"]
    assert choose_speakers([point("alpha beta", "gamma")], room=2) == ["alpha", "gamma"]
    assert choose_speakers([point("alpha beta", "gamma")], room=1) == []
    assert choose_speakers([point("alpha", "beta"), point("beta", "gamma")], room=2) == ["alpha", "beta"]
    assert choose_speakers([], room=3) == []
    assert choose_speakers([point("alpha", "beta")], room=1, author="alpha") == ["alpha"]
    assert choose_speakers([point("alpha", "beta")], room=0, author="alpha") == []
    assert choose_speakers([], room=3, author="alpha") == []


@pytest.mark.behaviour("10-adaptive-cost")
@pytest.mark.parametrize("seats", [2, 3, 4, 5, 8])
def test_it_never_makes_more_calls_than_collaborative(seats: int) -> None:
    assert count_room(seats, asked=seats) == seats  # two rounds of all seats, and the chair
    assert count_room(seats, asked=seats + 1) == seats - 1
    assert count_room(seats, asked=2 * seats + 3) == 0


def rows(**stances: str) -> dict[str, list[ArgumentRow]]:
    return {seat: [ArgumentRow(point="p1", stance=stance)] for seat, stance in stances.items()}  # type: ignore[arg-type]


@pytest.mark.behaviour("10-adaptive-own-facts")
@pytest.mark.parametrize(
    ("stances", "is_open"),
    [
        ({"alpha": "holds", "gamma": "concedes"}, False),
        ({"gamma": "concedes"}, False),
        ({"alpha": "holds", "gamma": "holds"}, True),
        ({"alpha": "concedes", "gamma": "concedes"}, True),  # each says that the other is right
        ({"alpha": "concedes", "beta": "holds", "gamma": "holds"}, True),  # its side is not given up
        ({"alpha": "holds"}, True),
        ({}, True),
    ],
)
def test_a_point_is_settled_if_all_sides_but_one_concede(stances: dict[str, str], is_open: bool) -> None:
    points = {"p1": point("alpha beta", "gamma")}
    assert bool(list_open_points(points, rows(**stances))) == is_open


@pytest.mark.behaviour("10-adaptive-own-facts")
def test_a_severe_error_is_corrected_if_its_author_concedes_it_and_dismissed_if_it_holds() -> None:
    errors = [
        CheckedError(f"beta-{n}", severity, "", "", "", "", None, "", "open")
        for n, severity in enumerate(("MINOR", "MAJOR", "FATAL", "MAJOR"), 1)
    ]
    said = [ArgumentRow(point="p1", stance="concedes"), ArgumentRow(point="p2", stance="holds", argument="no")]
    settled = settle_errors(errors, said)
    assert [(error.state, error.landed) for error in settled] == [
        ("open", None),
        ("corrected", True),
        ("dismissed", False),
        ("open", None),
    ]
    assert settled[2].why == "no"


@pytest.mark.behaviour("10-adaptive-own-facts")
@pytest.mark.parametrize(
    ("conclusions", "base", "kept"),
    [
        (("408", "408", "418"), "alpha", ("alpha", "beta")),
        (("408", "408", "418"), "gamma", ("gamma",)),
        (("408", "408", "418"), None, ("alpha", "beta")),  # of most seats
        (("408", "418", "428"), None, None),  # which one the answer has is unknown
        (("408", "", "418"), "beta", None),
        (("408", "408", ""), None, ("alpha", "beta", "gamma")),  # it says nothing else
    ],
)
def test_a_seat_with_another_conclusion_does_not_share_the_answer(
    conclusions: tuple[str, str, str], base: str | None, kept: tuple[str, ...] | None
) -> None:
    seats = ("alpha", "beta", "gamma")
    own = dict(zip(seats, conclusions, strict=True))
    assert keep_agreeing(seats, own, base, "What is 17 * 24?") == kept
    assert keep_agreeing(None, own, base, "What is 17 * 24?") is None


def test_a_conclusion_that_is_not_stated_is_left_out_or_named() -> None:
    said = [answer(Seat("alpha"), "Lima"), answer(Seat("beta"), "Lima"), answer(Seat("gamma"), "")]
    assert [side.seats for side in join_conclusions(said).sides] == [("alpha", "beta")]
    assert [side.position for side in join_conclusions(said, missing="none stated").sides] == ["Lima", "none stated"]
