"""Adaptive never costs more than collaborative: calls, expected and worst cost, and output tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from council.calling.budget import max_billed_tokens
from council.planning.plan import Plan
from council.planning.rehearsal import RehearsalInput, rehearse_both_ways
from council.runs.service import Convener

pytestmark = pytest.mark.anyio
OPUS, SONNET, HAIKU = "anthropic:claude-opus-4-5", "anthropic:claude-sonnet-4-5", "anthropic:claude-haiku-4-5"
GPT, MINI, NANO = "openai:gpt-5", "openai:gpt-5-mini", "openai:gpt-5-nano"
PRO, FLASH = "google:gemini-2.5-pro", "google:gemini-2.5-flash"
ROSTERS = [
    [OPUS, GPT],
    [NANO, OPUS],
    [HAIKU, FLASH],
    [OPUS, GPT, PRO],
    [NANO, NANO, OPUS],
    [OPUS, NANO, FLASH],
    [OPUS, OPUS, OPUS],
    [SONNET, MINI, FLASH, PRO],
    [OPUS, NANO, NANO, NANO],
    [OPUS, GPT, PRO, SONNET, MINI],
    [HAIKU, NANO, FLASH, NANO, HAIKU],
    [],  # the seats by default
]
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")


async def plan_both(models: Sequence[str], **flags: object) -> tuple[Plan, Plan, list[int]]:
    """Return the plans of adaptive and of collaborative, and the most output tokens of each."""
    convener = Convener(Path.cwd(), flags={**({"models": list(models)} if models else {}), **flags})
    plans, tokens = [], []
    try:
        for protocol in ("adaptive", "collaborative"):
            plan = await convener.plan(["Should we move to Postgres 17 this quarter?"], protocol=protocol)
            given = RehearsalInput(plan.protocol, plan.roster, plan.question, dict(plan.options), plan.packet)
            *_, longest = await rehearse_both_ways(given)
            tokens.append(sum(max_billed_tokens(convener.members(call.chain[0]), call.ask) for call in longest))
            plans.append(plan)
    finally:
        await convener.close()
    return plans[0], plans[1], tokens


@pytest.mark.behaviour("10-adaptive-cost")
@pytest.mark.parametrize("effort", [None, "high"])
@pytest.mark.parametrize(
    "models", ROSTERS, ids=lambda models: "+".join(one.partition(":")[2] for one in models) or "default"
)
async def test_adaptive_is_planned_for_no_more_than_collaborative(
    models: list[str], effort: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in KEYS:
        monkeypatch.setenv(key, "test")
    adaptive, collaborative, tokens = await plan_both(models, **({"effort": effort} if effort else {}))
    assert adaptive.calls[1] <= collaborative.calls[1]
    assert tokens[0] <= tokens[1]
    assert adaptive.cost is not None and collaborative.cost is not None
    for name in ("low", "expected", "worst"):
        assert adaptive.cost[name] <= collaborative.cost[name], name


@pytest.mark.behaviour("10-adaptive-plan")
async def test_a_stop_is_planned_for_less_than_half(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.setenv(key, "test")
    adaptive, collaborative, _ = await plan_both([OPUS, GPT, PRO])
    assert adaptive.calls == (3, 7)
    assert adaptive.cost is not None and collaborative.cost is not None
    assert adaptive.cost["low"] < 0.5 * collaborative.cost["low"]


@pytest.mark.behaviour("10-adaptive-cheap-first")
async def test_a_free_member_is_cheaper_than_a_priced_one_and_the_clerk_is_the_cheapest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key in KEYS:
        monkeypatch.setenv(key, "test")
    adaptive, _, _ = await plan_both([OPUS, NANO, "scripted:"])
    prices = adaptive.options["prices"]
    assert prices["scripted:"] == 0 < prices[NANO] < prices[OPUS]
    (clerk,) = adaptive.roster.helpers
    assert (clerk.member, clerk.fallbacks) == ("scripted:", ())
