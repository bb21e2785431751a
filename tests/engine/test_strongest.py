"""The strongest seat: by the price of equal work, or not at all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from council.engine.degraded import format_missing_lines
from council.engine.records import StrongestRow
from council.engine.strongest import compare_strongest, find_absent_strongest, find_strongest
from council.engine.trust import compute_trust
from council.money import FREE, Price, Rates, equal_work_cost
from tests.render.runs import RunBuilder, plan, seat

MEMBERS = {"alpha": "anthropic:opus", "beta": "openai:gpt", "gamma": "google:gemini"}


@pytest.mark.behaviour("evidence-strongest")
@pytest.mark.parametrize(
    ("prices", "strongest"),
    [
        ((0.030, 0.011, 0.012), "alpha"),
        ((0.010, 0.011, 0.030), "gamma"),
        ((0.030, 0.030, 0.010), None),  # equal
        ((0.030, 0.028, 0.010), None),  # within a tenth
        ((0.030, 0.027, 0.010), None),
        ((0.030, 0.026, 0.010), "alpha"),
        ((0.030, None, 0.010), None),  # unknown, or without a price: a local model, a command-line agent
        ((None, None, None), None),
    ],
)
def test_the_strongest_seat_clearly_has_the_highest_price(
    prices: tuple[float | None, ...], strongest: str | None
) -> None:
    known = {member: price for member, price in zip(MEMBERS.values(), prices, strict=True) if price}
    assert find_strongest(MEMBERS, known) == strongest


def test_two_seats_of_one_member_are_equal() -> None:
    prices = {"anthropic:opus": 0.03, "openai:gpt": 0.01}
    assert find_strongest({"alpha": "anthropic:opus", "beta": "anthropic:opus"}, prices) is None
    assert find_strongest({"alpha": "anthropic:opus", "beta": "openai:gpt", "gamma": "anthropic:opus"}, prices) is None
    assert find_strongest({"alpha": "anthropic:opus"}, prices) is None
    assert find_strongest({}, prices) is None


@pytest.mark.behaviour("evidence-strongest")
def test_prices_are_compared_for_the_same_tokens() -> None:
    def price(rate_in: str, rate_out: str) -> Price:
        return Price(Rates(Decimal(rate_in), Decimal(rate_in), Decimal(rate_in), Decimal(rate_out)))

    assert equal_work_cost(price("5", "25")) == pytest.approx(0.03)
    assert equal_work_cost(price("2", "12")) == pytest.approx(0.014)
    assert equal_work_cost(FREE) == equal_work_cost(None) == 0


@pytest.mark.behaviour("10-strongest-absent")
@pytest.mark.parametrize(
    ("prices", "absent", "named"),
    [
        ((0.03, 0.01, 0.01), ("alpha",), "alpha"),
        ((0.01, 0.01, 0.03), ("beta", "gamma"), "gamma"),
        ((0.03, 0.01, 0.01), ("beta",), None),
        ((0.03, 0.01, 0.01), (), None),
        ((0.03, 0.03, 0.01), ("alpha",), None),
        ((0.03, 0.029, 0.01), ("alpha",), None),
        ((0.03, None, 0.01), ("alpha",), None),
        ((None, None, None), ("alpha",), None),  # a run of an older version
    ],
)
def test_an_absent_strongest_seat_is_a_fact_of_trust(
    prices: tuple[float | None, ...], absent: tuple[str, ...], named: str | None
) -> None:
    known = {member: price for member, price in zip(MEMBERS.values(), prices, strict=True) if price}
    seats = [seat(name, model=member) for name, member in MEMBERS.items()]
    more: dict[str, Any] = {"prices": known} if known else {}
    builder = RunBuilder(plan(seats=seats, **more)).phase("draft")
    for name, member in MEMBERS.items():
        if name in absent:
            builder.mark_absent(name, "timed_out", "no answer within 600 s", 1)
        else:
            builder.answer(name, "x", served_by=member)
    minutes = builder.end_phase().close("Wait.").minutes
    assert find_absent_strongest(minutes) == named
    facts = {fact.kind: fact.seats for fact in compute_trust(minutes).limits}
    assert facts.get("strongest_absent") == ((named,) if named else None)
    above = "\n".join(format_missing_lines(minutes))
    assert (f"; {named} is the strongest." in above) is bool(named)


def compare(
    phases: int = 1, reply: dict[str, Any] | None = None, draft: str = "x", **ending: Any
) -> StrongestRow | None:
    """Return the comparison of a run in which alpha has the highest price."""
    prices = dict(zip(MEMBERS.values(), (0.03, 0.01, 0.01), strict=True))
    builder = RunBuilder(plan(seats=[seat(name, model=member) for name, member in MEMBERS.items()], prices=prices))
    for n in range(phases):
        builder.phase(f"r{n + 1}")
        for name, member in MEMBERS.items():
            builder.answer(name, draft, served_by=member, reply=reply)
        builder.end_phase()
    return compare_strongest(builder.close(**ending).minutes)


@pytest.mark.behaviour("evidence-strongest")
@pytest.mark.parametrize(
    ("ending", "changed", "unknown"),
    [
        ({"shared_by": ["alpha", "beta"]}, False, ""),
        ({"shared_by": ["beta"]}, True, ""),
        ({"shared_by": None}, None, "not_recorded"),
        ({"notes": {"recommendation_shared_by": ["alpha"]}}, False, ""),  # of an earlier version
        ({"notes": {"recommendation_shared_by": None}}, None, "not_recorded"),
        ({"details": {"leader": "alpha"}, "outcome": "OVERTURNED"}, True, ""),
        ({"details": {"leader": "alpha"}, "outcome": "SURVIVED"}, False, ""),
        ({"details": {"leader": "beta"}, "outcome": "SURVIVED", "shared_by": ["beta"]}, True, ""),
        ({"details": {"leader": "alpha"}, "shared_by": ["beta"]}, True, ""),
        ({"phases": 2, "details": {"referee": True}, "shared_by": ["alpha"]}, None, "not_recorded"),
        ({"phases": 2, "shared_by": ["alpha"]}, False, ""),
        ({"details": {"referee": True}, "shared_by": ["alpha"]}, False, ""),
        ({"reply": {"verdict": "PASS"}, "verdict": "PASS"}, False, ""),
        ({"reply": {"verdict": "PASS"}, "verdict": "FAIL"}, True, ""),
        ({"reply": {"verdict": "PASS"}, "verdict": "DISAGREE"}, None, "disagree"),
        ({"verdict": "PASS"}, None, "not_recorded"),
    ],
)
def test_a_report_says_whether_the_council_changed_the_answer_of_its_strongest_seat(
    ending: dict[str, Any], changed: bool | None, unknown: str
) -> None:
    row = compare(**ending)
    assert row and (row["seat"], row["changed"], row["unknown"], row["tokens"]) == ("alpha", changed, unknown, 120)


@pytest.mark.behaviour("evidence-strongest")
@pytest.mark.parametrize(
    ("draft", "answer", "changed"),
    [
        ("So it is 408.\n\nAnswer: 408", "Both agree.\n\n**Answer:** 408", False),
        ("Answer: 418", "Answer: 408", True),
        ("Answer: $1,200", "The answer is 1200 dollars.", False),
        ("It is 418.", "Answer: 408", None),  # one states no final answer
        ("Answer: about 400", "Answer: 408", None),  # code cannot tell
    ],
)
def test_final_answers_tell_whether_the_council_kept_the_answer_of_its_strongest_seat(
    draft: str, answer: str, changed: bool | None
) -> None:
    row = compare(draft=draft, answer=answer, shared_by=None)
    assert row and row["changed"] is changed
    by_notes = compare(draft=draft, answer=answer, shared_by=["beta"])
    assert by_notes and by_notes["changed"] is (True if changed is None else changed)


@pytest.mark.behaviour("evidence-strongest")
@pytest.mark.parametrize("ending", [{"status": "incomplete"}, {"answer": ""}, {"agreement_on": "conclusions"}])
def test_a_run_without_an_answer_of_its_own_has_no_comparison(ending: dict[str, Any]) -> None:
    assert compare(shared_by=["alpha"]) is not None
    assert compare(shared_by=["alpha"], **ending) is None
