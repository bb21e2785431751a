"""Output limits with which a run fits its cap."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from council.calling.budget import OutputLimits, SpendingPlan
from council.errors import word_for
from council.members.scripted import Scripted
from council.money import Price, Rates
from council.planning.cap_fit import Alternative, Cap, CostModel, Shortfall, describe_fit, fit_calls
from council.planning.estimate import RehearsedCall
from council.types import Ask, Roster, Seat

PRICE = Price(Rates(Decimal(2), Decimal(2), Decimal(2), Decimal(10)))
MODEL = CostModel(
    Roster((Seat("alpha", member="sim:m1"),)), 100, lambda name: PRICE, lambda name: Scripted("sim:m1", {})
)
CALLS = [RehearsedCall(f"{phase}/alpha", ("sim:m1",), 400, frozenset(), 1000, Ask(phase, (), words=1000)) for phase in ("draft", "improve")]  # fmt: skip


def test_more_money_gives_calls_with_fixed_prompts_longer_answers_in_small_steps() -> None:
    fits = [(mills, fit_calls(MODEL, CALLS, 1.0, Cap(mills / 1000))) for mills in range(120)]
    refused = [fit for _, fit in fits if isinstance(fit, Shortfall)]
    plans = [(mills, fit) for mills, fit in fits if isinstance(fit, SpendingPlan)]
    assert refused and plans and all(fit.needed <= plans[0][0] / 1000 for fit in refused)
    assert all(plan.total <= mills * 1e6 for mills, plan in plans)
    shares = [plan.limits.share for _, plan in plans]
    assert shares == sorted(shares) and (shares[0], shares[-1]) == (0.0, 1.0) and len(set(shares)) == 21


def test_an_alternative_names_its_protocol_and_its_models_and_its_price() -> None:
    one = [Alternative(protocol, cheap, 0.05) for protocol, cheap in (("triad", False), (None, True), ("triad", True))]
    assert [word_for(each.describe(), "cli") for each in one] == [
        "--protocol triad (about $0.050)",
        "--cheap (about $0.050)",
        "--protocol triad --cheap (about $0.050)",
    ]


def test_the_line_about_a_cap_names_only_what_it_changes() -> None:
    cap, low = Cap(0.05), MODEL.plan_spending(CALLS, OutputLimits(0.0, 1.0, 2048, low_effort=True))
    line = describe_fit(MODEL, low, CALLS, CALLS, cap)
    assert line.startswith("to fit the cap of $0.050, reasoning effort is low; ")
    short = [replace(call, words=words) for call, words in zip(CALLS, (500, 250), strict=True)]
    changes = "answers have at most about 500 words instead of 1,000 and reasoning effort is low"
    assert describe_fit(MODEL, low, short, CALLS, cap).startswith(f"to fit the cap of $0.050, {changes}; ")
    assert describe_fit(MODEL, MODEL.plan_spending(CALLS, OutputLimits()), CALLS, CALLS, cap) == ""
