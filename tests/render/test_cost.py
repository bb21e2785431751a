"""What a run cost, in figures and in words, at every moment of it."""

from __future__ import annotations

from typing import Any

import pytest

from council import events as ev
from council.render.report import report
from council.render.terminal import before, cost_words

from .entries import Story, plan, seat
from .test_live import drawn, row

PAID = "openai:gpt-5.2"


def paid_plan(**more: Any) -> dict[str, Any]:
    return plan(seats=[seat("alpha", model=PAID), seat("beta", model=PAID)], **more)


def asked(story: Story, name: str, n: int = 1, most: float | None = 0.5) -> Story:
    return story.tell(ev.Attempted(story.key(name), name, n, PAID, "", most))


def billed(story: Story, name: str, usd: float, n: int = 1, estimated: bool = False) -> Story:
    return story.tell(ev.Billed(story.key(name), name, n, PAID, usd, estimated))


@pytest.mark.behaviour("00-report-cost")
def test_bills_are_summed_by_seat_and_in_all() -> None:
    story = Story(paid_plan()).phase("draft")
    for name, usd in (("alpha", 0.1), ("beta", 0.2)):
        billed(asked(story, name), name, usd).said(name, "x", served_by=PAID)
    billed(asked(story.phase("improve"), "alpha"), "alpha", 0.1).said("alpha", "y", served_by=PAID)
    value = report(story.closed().minutes)
    assert value["cost"] == {"usd": 0.4, "estimated": False, "unpriced": []}
    assert [one["cost"] for one in value["seats"]] == [0.2, 0.2]


@pytest.mark.behaviour("40-in-doubt-is-charged")
def test_a_request_under_way_counts_with_all_it_can_cost_until_it_comes_back() -> None:
    story = asked(Story(paid_plan()).phase("draft"), "alpha")
    assert report(story.minutes)["cost"] == {"usd": 0.5, "estimated": True, "unpriced": []}
    billed(story, "alpha", 0.1)
    assert report(story.minutes)["cost"] == {"usd": 0.1, "estimated": False, "unpriced": []}


def test_a_request_that_failed_unpaid_counts_no_more() -> None:
    story = asked(Story(paid_plan()).phase("draft"), "alpha").faulted("alpha", "rate", "429", member=PAID)
    assert report(story.minutes)["cost"]["usd"] == 0.0


@pytest.mark.behaviour("40-estimated-where-not-told")
def test_one_estimate_makes_the_sum_an_estimate() -> None:
    story = Story(paid_plan()).phase("draft")
    billed(asked(story, "alpha"), "alpha", 0.1)
    billed(asked(story, "beta"), "beta", 0.2, estimated=True)
    assert report(story.minutes)["cost"]["estimated"]


@pytest.mark.behaviour("40-unknown-price-is-unknown")
def test_one_member_without_a_price_leaves_the_sum_unknown_and_the_other_seat_known() -> None:
    story = Story(plan(seats=[seat("alpha", model=PAID), seat("beta", model="sim:m1")])).phase("draft")
    billed(asked(story, "alpha"), "alpha", 0.1).said("alpha", "x", served_by=PAID)
    story.said("beta", "y", served_by="sim:m1")
    value = report(story.closed().minutes)
    assert value["cost"] == {"usd": None, "estimated": False, "unpriced": ["sim:m1"]}
    assert [one["cost"] for one in value["seats"]] == [0.1, None]


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        ({"usd": 0.0, "estimated": False, "unpriced": []}, "no cost"),
        ({"usd": 0.2912, "estimated": False, "unpriced": []}, "cost $0.29"),
        ({"usd": 0.29, "estimated": True, "unpriced": [], "cap": 0.6}, "cost $0.29 (of $0.60, partly estimated)"),
        ({"usd": 0.0031, "estimated": False, "unpriced": []}, "cost $0.0031"),
        ({"usd": None, "estimated": False, "unpriced": ["sim:m1"]}, "cost unknown (sim:m1 unpriced)"),
    ],
)
def test_the_cost_in_words(cost: dict[str, Any], said: str) -> None:
    assert cost_words(cost) == said


@pytest.mark.behaviour("00-plan-cost")
@pytest.mark.parametrize(
    ("told", "line"),
    [
        ({"cost": {"low": 0.14, "expected": 0.31, "worst": 0.52}, "cap": 0.6}, "cost low $0.14 · expected $0.31 · worst $0.52 · cap $0.60"),
        ({"cost": None, "unpriced": ["sim:m1"], "cap": None}, "cost unknown (sim:m1 unpriced)"),
        ({"cost": {"low": 0.0, "expected": 0.0, "worst": 0.0}, "unpriced": [], "cap": 1.0}, "cost cap $1.00"),
    ],
)  # fmt: skip
def test_the_plan_says_what_it_will_cost(told: dict[str, Any], line: str) -> None:
    assert line in before(plan(**told))


def test_a_plan_of_members_that_cost_nothing_says_nothing_of_cost() -> None:
    free = plan(cost={"low": 0.0, "expected": 0.0, "worst": 0.0}, unpriced=[], cap=None)
    assert not [line for line in before(free) if line.startswith("cost")]


@pytest.mark.behaviour("50-live-cost")
def test_the_head_of_the_live_table_shows_the_money_as_it_goes() -> None:
    story = Story(paid_plan(cap=0.6)).phase("draft")
    assert " · run r7k2 · $0.00 of $0.60 · " in drawn(story)[0]
    billed(asked(story, "alpha"), "alpha", 0.12)
    assert " · run r7k2 · $0.12 of $0.60 · " in drawn(story)[0]
    uncapped = billed(asked(Story(paid_plan()).phase("draft"), "alpha"), "alpha", 0.12)
    assert " · run r7k2 · $0.12 · " in drawn(uncapped)[0]


@pytest.mark.behaviour("50-live-cost")
def test_each_seat_has_its_bill_beside_its_time_and_one_without_a_price_has_none() -> None:
    story = Story(plan(seats=[seat("alpha", model=PAID), seat("beta", model="cli:codex")])).phase("draft")
    billed(asked(story, "alpha"), "alpha", 0.05).said("alpha", "x", served_by=PAID)
    story.said("beta", "y", served_by="cli:codex")
    lines = drawn(story)
    assert row(lines, "alpha").endswith("0:03 $0.050 in draft")
    assert row(lines, "beta").endswith("0:03 n/a in draft")
    assert "$" not in row(drawn(story, width=60), "alpha")


def test_a_resumed_run_has_the_cap_it_was_given_last() -> None:
    story = Story(paid_plan(cap=0.6)).tell(ev.Resumed("r7k2", 2.0))
    assert report(story.minutes)["cost"]["cap"] == 2.0
