"""Cost of a run in the report, the plan and the live table."""

from __future__ import annotations

from typing import Any

import pytest

from council import events as ev
from council.engine.layout import format_cost
from council.engine.records import CostRow
from council.render.report import build_report
from council.render.terminal import format_plan
from tests.render.runs import RunBuilder, plan, seat
from tests.render.test_live import draw, row

PAID = "openai:gpt-5.2"


def paid_plan(**more: Any) -> Any:
    return plan(seats=[seat("alpha", model=PAID), seat("beta", model=PAID)], **more)


def asked(builder: RunBuilder, name: str, n: int = 1, most: float | None = 0.5) -> RunBuilder:
    return builder.add(ev.Attempted(builder.key(name), name, n, PAID, "", most))


def billed(builder: RunBuilder, name: str, usd: float, n: int = 1, estimated: bool = False) -> RunBuilder:
    return builder.add(ev.Billed(builder.key(name), name, n, PAID, usd, estimated))


@pytest.mark.behaviour("00-report-cost")
def test_bills_are_summed_by_seat_and_in_all() -> None:
    builder = RunBuilder(paid_plan()).phase("draft")
    for name, usd in (("alpha", 0.1), ("beta", 0.2)):
        billed(asked(builder, name), name, usd).answer(name, "x", served_by=PAID)
    billed(asked(builder.phase("improve"), "alpha"), "alpha", 0.1).answer("alpha", "y", served_by=PAID)
    value = build_report(builder.close().minutes)
    assert value["cost"] == {"usd": 0.4, "estimated": False, "unpriced": []}
    assert [one["cost"] for one in value["seats"]] == [0.2, 0.2]


@pytest.mark.behaviour("40-in-doubt-is-charged")
def test_an_open_request_is_in_doubt_with_its_maximum_cost_until_it_is_billed() -> None:
    builder = asked(RunBuilder(paid_plan()).phase("draft"), "alpha")
    assert build_report(builder.minutes)["cost"] == {"usd": 0.0, "estimated": False, "unpriced": [], "in_doubt": 0.5}
    billed(builder, "alpha", 0.1)
    assert build_report(builder.minutes)["cost"] == {"usd": 0.1, "estimated": False, "unpriced": []}


@pytest.mark.behaviour("40-unknown-price-is-unknown")
def test_a_seat_whose_request_was_not_sent_yet_leaves_the_sum_known() -> None:
    other = "openai:gpt-5.2-mini"
    builder = RunBuilder(plan(seats=[seat("alpha", model=PAID), seat("beta", model=other)])).phase("draft")
    builder.add(ev.Asked(builder.key("beta"), "draft", "beta", other))
    asked(builder, "alpha")
    assert build_report(builder.minutes)["cost"] == {"usd": 0.0, "estimated": False, "unpriced": [], "in_doubt": 0.5}


@pytest.mark.behaviour("40-in-doubt-apart")
def test_what_is_in_doubt_is_not_part_of_what_was_spent() -> None:
    builder = RunBuilder(paid_plan()).phase("draft")
    builder.add(ev.Billed(asked(builder, "alpha").key("alpha"), "alpha", 1, PAID, 0.5, True, True))
    billed(asked(builder, "alpha", 2), "alpha", 0.1, 2).answer("alpha", "x", served_by=PAID)
    value = build_report(builder.close().minutes)
    assert value["cost"] == {"usd": 0.1, "estimated": False, "unpriced": [], "in_doubt": 0.5}
    assert value["seats"][0]["cost"] == 0.1
    assert format_cost(value["cost"]) == "cost $0.10 (at most $0.50 more in doubt)"


def test_request_that_failed_without_a_bill_is_not_counted() -> None:
    builder = asked(RunBuilder(paid_plan()).phase("draft"), "alpha").fault("alpha", "rate", "429", member=PAID)
    assert build_report(builder.minutes)["cost"]["usd"] == 0.0


@pytest.mark.behaviour("40-estimated-where-not-told")
def test_one_estimate_makes_the_sum_an_estimate() -> None:
    builder = RunBuilder(paid_plan()).phase("draft")
    billed(asked(builder, "alpha"), "alpha", 0.1)
    billed(asked(builder, "beta"), "beta", 0.2, estimated=True)
    assert build_report(builder.minutes)["cost"]["estimated"]


@pytest.mark.behaviour("40-unknown-price-is-unknown")
def test_a_request_without_a_price_that_a_crash_left_open_leaves_the_sum_unknown() -> None:
    """alpha and its fallback were in flight when the process stopped, and only the fallback was asked again."""
    builder = asked(RunBuilder(paid_plan()).phase("draft"), "alpha", 2)
    builder.add(ev.Attempted(builder.key("alpha"), "alpha", 1, "sim:m1"))
    builder.add(ev.Resumed(builder.minutes.run))
    billed(asked(builder, "alpha", 3), "alpha", 0.1, 3).answer("alpha", "x", served_by=PAID)
    value = build_report(builder.close().minutes)
    assert (value["cost"]["usd"], value["cost"]["unpriced"]) == (None, ["sim:m1"])
    assert [one["cost"] for one in value["seats"]] == [None, 0.0]


@pytest.mark.behaviour("40-unknown-price-is-unknown")
def test_one_member_without_a_price_leaves_the_sum_unknown_and_the_other_seat_known() -> None:
    builder = RunBuilder(plan(seats=[seat("alpha", model=PAID), seat("beta", model="sim:m1")])).phase("draft")
    billed(asked(builder, "alpha"), "alpha", 0.1).answer("alpha", "x", served_by=PAID)
    builder.answer("beta", "y", served_by="sim:m1")
    value = build_report(builder.close().minutes)
    assert value["cost"] == {"usd": None, "estimated": False, "unpriced": ["sim:m1"]}
    assert [one["cost"] for one in value["seats"]] == [0.1, None]


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        ({"usd": 0.0, "estimated": False, "unpriced": []}, "no cost"),
        ({"usd": 0.2912, "estimated": False, "unpriced": []}, "cost $0.29"),
        ({"usd": 0.29, "estimated": True, "unpriced": [], "cap": 0.6}, "cost $0.29 (of $0.60, partly estimated)"),
        ({"usd": 0.0031, "estimated": False, "unpriced": []}, "cost $0.0031"),
        ({"usd": None, "estimated": False, "unpriced": ["sim:m1"]}, "cost unknown (sim:m1 unpriced)"),
    ],
)
def test_cost_is_formatted(cost: CostRow, expected: str) -> None:
    assert format_cost(cost) == expected


@pytest.mark.behaviour("00-plan-cost")
@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"cost": {"low": 0.14, "expected": 0.31, "worst": 0.52}, "cap": 0.6}, "cost low $0.14 · expected $0.31 · worst $0.52 · cap $0.60"),
        ({"cost": None, "unpriced": ["sim:m1"], "cap": None}, "cost unknown (sim:m1 unpriced)"),
        ({"cost": {"low": 0.0, "expected": 0.0, "worst": 0.0}, "unpriced": [], "cap": 1.0}, "cost cap $1.00"),
    ],
)  # fmt: skip
def test_plan_shows_its_cost(fields: dict[str, Any], line: str) -> None:
    assert line in format_plan(plan(**fields))


def test_plan_of_free_members_has_no_cost_line() -> None:
    free = plan(cost={"low": 0.0, "expected": 0.0, "worst": 0.0}, unpriced=[], cap=None)
    assert not [line for line in format_plan(free) if line.startswith("cost")]


@pytest.mark.behaviour("50-live-cost")
def test_header_of_the_live_table_shows_the_current_cost() -> None:
    builder = RunBuilder(paid_plan(cap=0.6)).phase("draft")
    assert " · $0.00 of $0.60 spent · run r7k2 · " in draw(builder)[0]
    billed(asked(builder, "alpha"), "alpha", 0.12)
    assert " · $0.12 of $0.60 spent · run r7k2 · " in draw(builder)[0]
    uncapped = billed(asked(RunBuilder(paid_plan()).phase("draft"), "alpha"), "alpha", 0.12)
    assert " · $0.12 spent · run r7k2 · " in draw(uncapped)[0]


@pytest.mark.behaviour("50-live-cost")
def test_live_row_shows_the_cost_of_its_seat_or_n_a_without_a_price() -> None:
    builder = RunBuilder(plan(seats=[seat("alpha", model=PAID), seat("beta", model="cli:codex")])).phase("draft")
    billed(asked(builder, "alpha"), "alpha", 0.05).answer("alpha", "x", served_by=PAID)
    builder.answer("beta", "y", served_by="cli:codex")
    lines = draw(builder)
    assert row(lines, "alpha").endswith("0:03 $0.050 in draft")
    assert row(lines, "beta").endswith("0:03 n/a in draft")
    assert "$" not in row(draw(builder, width=60), "alpha")


def test_resumed_run_has_the_latest_cap() -> None:
    builder = RunBuilder(paid_plan(cap=0.6)).add(ev.Resumed("r7k2", 2.0))
    assert build_report(builder.minutes)["cost"]["cap"] == 2.0
