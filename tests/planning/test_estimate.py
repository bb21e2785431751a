"""Cost estimates, compared with hand-computed values."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from council.calling.budget import ESTIMATED_THINKING_TOKENS, MIN_ANSWER_TOKENS, TOKENS_PER_WORD, max_answer_tokens
from council.engine.plan_object import CostEstimate
from council.errors import ConfigError
from council.members.base import DEFAULT_MAX_TOKENS, Member
from council.members.scripted import Scripted
from council.money import FREE, Price, Rates
from council.planning.estimate import (
    RehearsedCall,
    build_call,
    estimate_cost,
    with_effort,
)
from council.types import Ask, Step, estimate_tokens
from tests.paths import ROOT

IN, OUT = 2, 10  # dollars per million tokens
PLAIN = Price(Rates(Decimal(IN), Decimal(IN), Decimal(IN), Decimal(OUT)))
EXPENSIVE = Price(Rates(Decimal(5), Decimal(1), Decimal(6), Decimal(50)))
QUESTION = "Tabs or spaces, and why?"


def member(name: str) -> Member:
    return Scripted(name, {})


def call(
    key: str, *quotes: str, chain: tuple[str, ...] = ("sim:m1",), words: int = 1000, tokens: int = 400
) -> RehearsedCall:
    return RehearsedCall(key, chain, tokens, frozenset(quotes), words, Ask(key, (), words=words))


def estimated(
    shorter: list[RehearsedCall], longer: list[RehearsedCall], prices: dict[str, Price | None] | None = None
) -> CostEstimate:
    by_name = prices or {"sim:m1": PLAIN}
    cost = estimate_cost(shorter, longer, longer, QUESTION, lambda name: by_name[name], member, cache_points={})
    assert cost is not None
    return cost


@pytest.mark.behaviour("00-plan-cost")
def test_the_estimate_follows_the_formula_and_counts_quotes() -> None:
    draft, ruling = call("aa"), call("bb", "aa")
    cost = estimated([draft], [draft, ruling])
    asked = estimate_tokens(QUESTION)
    low = (400 + asked) * IN + 700 * OUT  # 1,000 words are 1,400 tokens; low is half of that
    expected = (400 + asked) * IN + 1400 * OUT + (400 + asked + 1400) * IN + 1400 * OUT
    room = 4200  # three times the words
    read = [400 + asked, 400 + asked + room]
    worst = sum(2 * tokens * IN + (room + 2 * room) * OUT for tokens in read)
    assert cost == {"low": low / 1e6, "expected": expected / 1e6, "worst": worst / 1e6} | {
        "seats": cost["seats"],
        "phases": cost["phases"],
    }
    assert cost["seats"] == {
        "aa": pytest.approx(((400 + asked) * IN + 1400 * OUT) / 1e6),
        "bb": pytest.approx(cost["expected"] - cost["seats"]["aa"]),
    }


@pytest.mark.behaviour("money-phase-costs")
def test_the_expected_cost_is_split_by_phase_without_the_names_of_seats() -> None:
    calls = [call("judge/judge-1"), call("judge/judge-1/explore/judge-1-e1"), call("judge/judge-2"), call("r2/judge-1")]
    cost = estimated(calls[:1], calls)
    assert list(cost["phases"]) == ["judge", "judge/explore", "r2"]
    assert sum(cost["phases"].values()) == pytest.approx(cost["expected"])
    assert cost["phases"]["judge"] == pytest.approx(2 * cost["phases"]["r2"])


@pytest.mark.behaviour("00-plan-cost")
def test_the_worst_case_uses_the_most_expensive_member_and_input_rate() -> None:
    step = call("aa", chain=("sim:m1", "sim:m2"))
    cost = estimated([step], [step], {"sim:m1": PLAIN, "sim:m2": EXPENSIVE})
    asked = estimate_tokens(QUESTION)
    assert cost["expected"] == ((400 + asked) * IN + 1400 * OUT) / 1e6  # the requested member answers
    assert cost["worst"] == pytest.approx((2 * (400 + asked) * 6 + 3 * 4200 * 50) / 1e6)


@pytest.mark.behaviour("00-plan-cost")
def test_thinking_tokens_are_added_for_a_reasoning_member() -> None:
    plain, thinking = call("aa"), call("aa", chain=("openai:gpt-5.2",))
    costs = [estimated([one], [one], {"sim:m1": PLAIN, "openai:gpt-5.2": PLAIN}) for one in (plain, thinking)]
    assert costs[1]["expected"] - costs[0]["expected"] == pytest.approx(ESTIMATED_THINKING_TOKENS * OUT / 1e6)


@pytest.mark.behaviour("40-unknown-price-is-unknown")
def test_one_unknown_price_makes_the_estimate_unknown() -> None:
    step = call("aa", chain=("sim:m1", "odd:m9"))
    prices = {"sim:m1": PLAIN, "odd:m9": None}
    assert estimate_cost([step], [step], [step], QUESTION, prices.__getitem__, member, cache_points={}) is None


def test_free_members_are_estimated_at_zero() -> None:
    assert estimated([call("aa")], [call("aa")], {"sim:m1": FREE}) == {"low": 0.0, "expected": 0.0, "worst": 0.0}


def test_a_call_counts_its_prompt_schema_and_quotes() -> None:
    text = f"{QUESTION}\n<<<Alpha 0123456789ab\nI say tabs.\n0123456789ab>>>\nnot a fence: <<<< HEAD"
    ask = Ask("draft/beta", ({"role": "user", "content": text},), {"type": "object"}, words=200)
    step = Step(ask, "beta", ("sim:m1",), lambda said: None, lambda said, words: ask)
    measured = build_call(step, {"0123456789ab": "draft/alpha", "another": "draft/gamma"}, QUESTION)
    assert measured.tokens == estimate_tokens(text) + estimate_tokens('{"type": "object"}') - estimate_tokens(QUESTION)
    assert (measured.key, measured.quotes, measured.words) == ("draft/beta", frozenset({"draft/alpha"}), 200)
    assert measured.ask.messages == ()  # a stored plan does not contain the packet


@pytest.mark.parametrize(
    ("ask", "most"),
    [
        (Ask("k", ()), DEFAULT_MAX_TOKENS), (Ask("k", (), max_tokens=600, words=900), 600), (Ask("k", (), words=10), MIN_ANSWER_TOKENS),
        (Ask("k", (), words=1000), 4200), (Ask("k", (), words=100_000), DEFAULT_MAX_TOKENS),
    ],
)  # fmt: skip
def test_the_output_cap_of_an_answer(ask: Ask, most: int) -> None:
    assert max_answer_tokens(ask) == most


def test_docs_money_md_has_the_numbers_of_the_formula() -> None:
    page = (ROOT / "docs" / "money.md").read_text(encoding="utf-8")
    for words in (
        f"thinks {ESTIMATED_THINKING_TOKENS:,} tokens", f"thinks {ESTIMATED_THINKING_TOKENS // 2} tokens", f"A word is {TOKENS_PER_WORD} tokens",
        f"at least {MIN_ANSWER_TOKENS:,} and at most {DEFAULT_MAX_TOKENS:,} tokens",
    ):  # fmt: skip
        assert words in page


def test_another_effort_changes_the_call_and_the_same_one_does_not() -> None:
    plain = call("aa")
    assert with_effort(plain, "high").ask == replace(plain.ask, effort="high")
    assert with_effort(plain, None) is plain


def test_only_the_shared_part_of_a_prompt_is_counted_for_a_warm_start() -> None:
    messages = ({"role": "user", "content": "x" * 900},)
    asks = [Ask("draft/beta", messages, shared=shared) for shared in (300, 0)]
    steps = [Step(ask, "beta", ("sim:m1",), lambda said: None, lambda said, words: asks[0]) for ask in asks]
    assert [build_call(step, {}, QUESTION).shared_tokens for step in steps] == [100, 0]


def test_a_member_that_cannot_be_made_has_the_output_cap_of_the_answer() -> None:
    def refuse(name: str) -> Member:
        raise ConfigError("no such agent")

    price = {"sim:m1": PLAIN}.__getitem__
    refused, known = (
        estimate_cost([call("aa")], [call("aa")], [call("aa")], QUESTION, price, one, cache_points={})
        for one in (refuse, member)
    )
    assert refused == known
