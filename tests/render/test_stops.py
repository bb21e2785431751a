"""Stops in the report: phases that were not needed, and what they saved by the plan."""

from __future__ import annotations

from typing import Any

import pytest

from council import events as ev
from council.engine.layout import format_savings
from council.render.report import build_report, list_stops
from council.render.terminal import format_summary
from council.wording import load_wording
from tests.render.runs import RunBuilder, plan

COST = {
    "low": 0.1,
    "expected": 0.32,
    "worst": 3.0,
    "phases": {"draft": 0.2, "triage": 0.02, "attack": 0.07, "verdict": 0.03},
}


def stopped_run(skipped: list[str], cost: dict[str, Any] | None = COST, **more: Any) -> RunBuilder:
    run = RunBuilder(plan("adversarial", cost=cost))
    run.add(ev.Noted("attack skipped", "consensus detected", skipped, **more))
    return run


@pytest.mark.behaviour("money-stops-saved")
def test_a_skipped_phase_is_listed_with_its_calls_and_its_expected_cost() -> None:
    assert list_stops(stopped_run(["attack"]).minutes) == [
        {"what": "attack skipped", "why": "consensus detected", "skipped": ["attack"], "calls": 2, "saved": 0.07}
    ]
    (stop,) = list_stops(stopped_run(["attack", "verdict"]).minutes)
    assert (stop["skipped"], stop["calls"], stop["saved"]) == (["attack", "verdict"], 3, 0.1)


@pytest.mark.behaviour("money-stops-saved")
def test_short_answers_save_less_and_what_only_the_stop_needed_is_subtracted() -> None:
    run = RunBuilder(plan("adversarial", cost=COST)).phase("draft")
    run.add(ev.Billed("draft/alpha", "alpha", 1, "sim:m1", 0.05))  # of 0.20 expected
    run.answer("alpha", "x").phase("check")
    run.add(ev.Billed("check/beta", "beta", 1, "sim:m1", 0.004))
    run.answer("beta", "y")
    run.add(ev.Noted("stopped after the check", "they agree", ["attack", "verdict"]))
    (stop,) = list_stops(run.minutes)
    assert stop["calls"] == 2
    assert stop["saved"] == pytest.approx((0.07 + 0.03) * 0.25 - 0.004)


@pytest.mark.behaviour("money-stops-saved")
def test_a_phase_that_absent_seats_prevent_saves_nothing() -> None:
    assert list_stops(stopped_run(["attack"], by_absence=True).minutes) == []


@pytest.mark.behaviour("money-stops-saved")
def test_a_phase_that_was_held_or_is_not_in_the_plan_is_no_stop() -> None:
    assert list_stops(stopped_run(["research"]).minutes) == []
    assert list_stops(stopped_run([]).minutes) == []
    held = stopped_run(["attack", "verdict"])
    held.add(ev.PhaseStarted("verdict"))
    (stop,) = list_stops(held.minutes)
    assert (stop["skipped"], stop["saved"]) == (["attack"], 0.07)


@pytest.mark.behaviour("money-stops-saved")
@pytest.mark.parametrize("cost", [None, {"low": 0.1, "expected": 0.32, "worst": 3.0}])
def test_without_prices_and_in_runs_of_earlier_versions_the_saving_is_unknown(cost: dict[str, Any] | None) -> None:
    (stop,) = list_stops(stopped_run(["attack"], cost).minutes)
    assert (stop["calls"], stop["saved"]) == (2, None)
    assert format_savings([stop]) == "2 calls"


@pytest.mark.behaviour("money-stops-saved")
def test_members_without_cost_save_calls_only() -> None:
    (stop,) = list_stops(stopped_run(["attack"], {"low": 0.0, "expected": 0.0, "worst": 0.0}).minutes)
    assert (stop["calls"], stop["saved"]) == (2, 0.0)
    assert format_savings([stop]) == "2 calls"


@pytest.mark.behaviour("money-stops-saved")
def test_the_report_and_its_summary_show_the_saving() -> None:
    report = build_report(stopped_run(["attack"]).minutes)
    assert [stop["saved"] for stop in report["stops"]] == [0.07]
    assert "saved by stops: 2 calls, about $0.070" in "\n".join(format_summary(report))
    assert format_savings(report["stops"], load_wording("de")) == "2 Aufrufe, etwa $0.070"
    plain = build_report(RunBuilder(plan("adversarial", cost=COST)).minutes)
    assert "stops" not in plain
    assert "saved" not in "\n".join(format_summary(plain))
