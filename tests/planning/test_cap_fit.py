"""Output limits with which a run fits its cap."""

from __future__ import annotations

from decimal import Decimal

from council.calling.budget import SpendingPlan
from council.members.scripted import Scripted
from council.money import Price, Rates
from council.planning.cap_fit import Cap, CostModel, Shortfall, fit_calls
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
