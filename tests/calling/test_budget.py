"""Never more than the cap: money is held before a request leaves, shared by all who spend it, and settled by what was used."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from council import events as ev
from council.calling.budget import Budget, Caps
from council.calling.table import TABLE
from council.ledger import Ledger
from council.members.base import UNCAPPED
from council.money import FREE, UNPAID, Price, Rates
from council.store.sqlite import SqliteStore
from council.types import Answer, Ask, Usage
from tests.calling.helpers import KEY, RUN, Hanging, broken_off, call, fault, step, taken_up, telling, told
from tests.calling.spender import OUTPUT, a_dime, spend
from tests.fake_provider import FakeProvider, Reply
from tests.sitting import Double, an_ask

pytestmark = pytest.mark.anyio

DOLLAR = Price(Rates(*[Decimal(1_000_000)] * 4))  # a dollar a token
ASK = an_ask(KEY, max_tokens=50)


def purse(ledger: Ledger, price: Price | None = DOLLAR, **caps: float) -> Budget:
    return Budget(ledger.store, ledger.record, lambda member: price, Caps(**caps))  # type: ignore[arg-type]


def spent(ledger: Ledger) -> float:
    return sum(row.counts for row in ledger.record.spending.values()) / 1e9


def held(ledger: Ledger) -> list[float]:
    return [event.most for event in told(ledger, ev.Attempted)]


async def kept(store: SqliteStore) -> list[tuple[int | None, int | None, bool]]:
    """What the store has: held, charged, estimated."""
    return [(row.reserved, row.charged, row.estimated) for row in (await store.load(RUN)).spending.values()]


# The race


@pytest.mark.behaviour("40-budget-race")
async def test_of_fifty_at_once_with_money_for_ten_exactly_ten_are_sent(provider: FakeProvider, tmp_path: Path) -> None:
    provider.always("m1", Reply(text="Tabs.", usage=[{"prompt_tokens": 9, "completion_tokens": OUTPUT}]))
    outcomes = await spend(tmp_path, provider.base_url, "r2222", 50, Caps(run=1.0))
    assert len(provider.log) == 10
    assert sorted(outcome.state for outcome in outcomes) == ["ok"] * 10 + ["skipped(budget)"] * 40
    assert [outcome.attempts for outcome in outcomes if not outcome.ok] == [0] * 40


@pytest.mark.behaviour("40-budget-race")
async def test_two_processes_share_the_money_of_the_day(provider: FakeProvider, tmp_path: Path) -> None:
    provider.always("m1", Reply(text="Tabs.", usage=[{"prompt_tokens": 9, "completion_tokens": OUTPUT}]))
    SqliteStore(tmp_path / "store").close()
    command = [sys.executable, "-m", "tests.calling.spender", str(tmp_path), provider.base_url]
    root = Path(__file__).parents[2]

    async def spender(run: str) -> int:
        process = await asyncio.create_subprocess_exec(*command, run, "25", "1.0", cwd=root, stdout=PIPE)
        out, _ = await process.communicate()
        return int(out)

    assert sum(await asyncio.gather(spender("r2222"), spender("r3333"))) == 10
    assert len(provider.log) == 10


@pytest.mark.behaviour("40-budget-race")
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(used=st.lists(st.integers(1, OUTPUT), min_size=12, max_size=24), cap=st.integers(0, 12))
async def test_whatever_is_used_the_bill_stays_under_the_cap_and_no_money_is_left_that_would_do(
    tmp_path_factory: pytest.TempPathFactory, used: list[int], cap: int
) -> None:
    store = SqliteStore(tmp_path_factory.mktemp("store"))
    store.post(RUN, [("run", ("a run", "here", 1.0, "seed", "{}"))])
    ledger = await taken_up(store)
    left, bill = list(used), 0

    async def answer(key: str) -> Answer:
        nonlocal bill
        tokens = left.pop()
        bill += tokens
        await asyncio.sleep(0)
        return Answer("Tabs.", usage=Usage(3, tokens))

    member = Double("sim:m1", answer)
    budget = Budget(store, ledger.record, a_dime, Caps(run=cap / 10))
    asked = [step("sim:m1", ask=an_ask(f"draft/{n}", max_tokens=OUTPUT)) for n in range(len(used))]
    await asyncio.gather(*(call(ledger, one, member, purse=budget) for one in asked))
    assert bill <= cap * OUTPUT  # a token is a tenth of a cent
    assert not left or bill > (cap - 1) * OUTPUT  # whoever was turned away would not have fitted
    assert spent(ledger) == pytest.approx(bill / 1000)
    store.close()


# Holding


@pytest.mark.behaviour("40-reserve-worst-case")
async def test_all_that_a_request_can_cost_is_held_before_it_leaves(ledger: Ledger, store: SqliteStore) -> None:
    member = Hanging("sim:m1")
    task = asyncio.ensure_future(call(ledger, step("sim:m1", ask=ASK), member, purse=purse(ledger, run=1000.0)))
    await member.reached.wait()
    tokens = -(-len(member.prepare(ASK)) // 3) + 50
    assert held(ledger) == [tokens]
    assert await kept(store) == [(tokens * 10**9, None, False)]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.behaviour("40-reserve-worst-case")
@pytest.mark.parametrize(
    ("words", "most"), [(None, UNCAPPED), (100, 2048), (1500, 6300), (9000, UNCAPPED)]
)  # three times what is asked for, within reason
async def test_under_a_cap_every_request_says_how_long_its_answer_may_be(
    ledger: Ledger, words: int | None, most: int
) -> None:
    seen: list[Ask] = []

    class Noting(Double):
        def prepare(self, ask: Ask) -> bytes:
            seen.append(ask)
            return super().prepare(ask)

    member = Noting("one", lambda key: "Tabs.")
    await call(ledger, step("one", ask=replace(an_ask(KEY), words=words)), member, purse=purse(ledger, run=10**6))
    assert seen[-1].max_tokens == most


async def test_without_a_cap_nothing_is_asked_in_other_words(ledger: Ledger) -> None:
    assert purse(ledger).bounded(ASK) == ASK
    assert purse(ledger).bounded(an_ask(KEY)) == an_ask(KEY)
    assert purse(ledger, day=1.0).bounded(ASK) == ASK  # its own cap stays


async def test_room_for_thoughts_is_held_too(ledger: Ledger) -> None:
    class Thinking(Double):
        def most(self, ask: Ask, otherwise: int) -> int:
            return (ask.max_tokens or otherwise) + 1000

    member = Thinking("sim:m1", lambda key: Answer("Tabs.", usage=Usage(1, 1)))
    await call(ledger, step("sim:m1", ask=ASK), member, purse=purse(ledger))
    assert held(ledger) == [-(-len(member.prepare(ASK)) // 3) + 50 + 1000]


# Settling


@pytest.mark.behaviour("40-settle-real-usage")
async def test_an_answer_is_charged_by_what_was_used(ledger: Ledger, store: SqliteStore) -> None:
    rates = Price(Rates(Decimal(10), Decimal(1), Decimal(20), Decimal(100)))
    member = telling("sim:m1", Answer("Tabs.", usage=Usage(1000, 20, 300, True, 200)))
    await call(ledger, step("sim:m1", ask=ASK), member, purse=purse(ledger, rates))
    bill = (500 * 10 + 300 * 1 + 200 * 20 + 20 * 100) / 1e6
    (event,) = told(ledger, ev.Billed)
    assert (event.usd, event.estimated, event.member, event.seat) == (bill, False, "sim:m1", "alpha")
    assert (await kept(store))[0][1:] == (round(bill * 1e9), False)


@pytest.mark.behaviour("40-settle-real-usage")
@pytest.mark.parametrize("kind", UNPAID)
async def test_a_request_that_nobody_worked_on_costs_nothing(ledger: Ledger, kind: str) -> None:
    await call(ledger, step("sim:m1", ask=ASK), telling("sim:m1", fault(kind)), purse=purse(ledger))
    assert spent(ledger) == 0
    assert told(ledger, ev.Billed) == []


@pytest.mark.behaviour("40-in-doubt-is-charged")
@pytest.mark.parametrize("kind", ["cut", "stall", "server", "cli:exit"])
async def test_a_request_that_may_have_been_paid_for_keeps_what_was_held(ledger: Ledger, kind: str) -> None:
    await call(ledger, step("sim:m1", ask=ASK), telling("sim:m1", fault(kind)), purse=purse(ledger))
    assert spent(ledger) == sum(held(ledger)) > 0
    assert {event.estimated for event in told(ledger, ev.Billed)} == {True}


def test_every_fault_is_known_to_be_paid_or_not() -> None:
    spec = {"net", "rate", "quota", "overload", "size", "model", "auth", "parameter"}  # "may be paid: no"
    assert spec <= set(UNPAID) <= TABLE.keys()


@pytest.mark.behaviour("40-estimated-where-not-told")
async def test_an_answer_without_a_count_is_charged_by_its_length_and_called_an_estimate(ledger: Ledger) -> None:
    member = telling("sim:m1", Answer("Tabs, always.", usage=Usage(known=False)))
    await call(ledger, step("sim:m1", ask=ASK), member, purse=purse(ledger))
    (event,) = told(ledger, ev.Billed)
    assert event.estimated
    assert event.usd == -(-len(member.prepare(ASK)) // 3) + -(-len("Tabs, always.") // 3)


@pytest.mark.behaviour("40-estimated-where-not-told")
async def test_nobody_guesses_how_long_a_reasoning_member_thought(ledger: Ledger) -> None:
    member = telling("openai:gpt-5.2", Answer("Tabs.", usage=Usage(known=False)))
    await call(ledger, step("openai:gpt-5.2", ask=ASK), member, purse=purse(ledger))
    assert spent(ledger) == sum(held(ledger))


@pytest.mark.behaviour("40-settle-real-usage")
async def test_rejected_answers_and_fallbacks_are_each_billed_to_whoever_gave_them(ledger: Ledger) -> None:
    one = telling("sim:m1", Answer("no", "refused", Usage(1, 2)))
    two = telling("sim:m2", Answer("Tabs.", usage=Usage(3, 4)))
    await call(ledger, step("sim:m1", "sim:m2", ask=ASK), one, two, purse=purse(ledger))
    assert [(event.member, event.usd) for event in told(ledger, ev.Billed)] == [("sim:m1", 3), ("sim:m2", 7)]


async def test_free_members_leave_no_trace_in_the_books(ledger: Ledger, store: SqliteStore) -> None:
    await call(ledger, step("one", ask=ASK), telling("one", "Tabs."), purse=purse(ledger, FREE, run=0.0))
    assert (await kept(store), held(ledger), told(ledger, ev.Billed)) == ([], [0.0], [])


@pytest.mark.behaviour("40-unknown-price-is-unknown")
async def test_a_member_without_a_price_is_counted_and_not_charged(ledger: Ledger, store: SqliteStore) -> None:
    await call(ledger, step("one", ask=ASK), telling("one", "Tabs."), purse=purse(ledger, None, run=1.0))
    assert (await kept(store), held(ledger), told(ledger, ev.Billed)) == ([(None, None, False)], [None], [])


# When it is used up


@pytest.mark.behaviour("40-skipped-budget")
async def test_without_money_nothing_is_sent_and_nothing_is_kept(ledger: Ledger, store: SqliteStore) -> None:
    member = telling("sim:m1", "never")
    outcome = await call(ledger, step("sim:m1", ask=ASK), member, purse=purse(ledger, run=0.01))
    assert (outcome.state, outcome.attempts, member.calls) == ("skipped(budget)", 0, [])
    assert "not enough: $0.00 of $0.010 are spent or held" in outcome.reason
    assert f"council resume {RUN} --max-cost" in outcome.reason
    record = await store.load(RUN)
    assert (record.attempts, record.results, record.spending) == ({}, {}, {})


@pytest.mark.behaviour("40-skipped-budget")
async def test_a_retry_that_would_cost_too_much_is_not_sent(ledger: Ledger) -> None:
    member = telling("sim:m1", fault("server"))
    outcome = await call(ledger, step("sim:m1", ask=ASK), member, purse=purse(ledger, run=150.0))
    assert (outcome.state, len(member.calls)) == ("skipped(budget)", 1)
    assert spent(ledger) <= 150.0


async def test_the_day_that_is_over_says_so(ledger: Ledger) -> None:
    outcome = await call(ledger, step("sim:m1", ask=ASK), telling("sim:m1", "x"), purse=purse(ledger, day=0.5))
    assert outcome.reason.startswith("the budget for today is used up: $0.00 of $0.50 is spent or reserved")
    assert outcome.reason.endswith(f"raise [budget] max_cost_per_day, or run `council resume {RUN}` tomorrow")


async def test_money_that_comes_back_lets_the_next_one_go(ledger: Ledger) -> None:
    """Held for two is more than there is; used by both is not."""
    member = telling("sim:m1", Answer("Tabs.", usage=Usage(1, 1)))
    budget = purse(ledger, run=120.0)
    steps = [step("sim:m1", ask=an_ask(f"draft/{n}", max_tokens=50)) for n in range(4)]
    outcomes = await asyncio.gather(*(call(ledger, one, member, purse=budget) for one in steps))
    assert [outcome.state for outcome in outcomes] == ["ok"] * 4
    assert spent(ledger) == 8.0


async def test_waiting_for_money_takes_no_time_from_the_seat(ledger: Ledger) -> None:
    reached, go = asyncio.Event(), asyncio.Event()

    async def slow(key: str) -> Any:
        reached.set()
        await go.wait()
        return Answer("Tabs.", usage=Usage(1, 1))

    budget = purse(ledger, run=120.0)
    first = asyncio.ensure_future(call(ledger, step("one", ask=ASK), Double("one", slow), purse=budget))
    await reached.wait()
    second = step("two", ask=an_ask("draft/beta", max_tokens=50))
    quick = telling("two", Answer("Tabs.", usage=Usage(1, 1)))
    waiting = asyncio.ensure_future(call(ledger, second, quick, purse=budget, timeout=lambda member: 0.5))
    await asyncio.wait([waiting], timeout=0.6)  # longer than it has to answer, which on a busy machine is not long
    assert not waiting.done()
    go.set()
    assert [(await first).state, (await waiting).state] == ["ok", "ok"]


# Crashes


@pytest.mark.behaviour("40-in-doubt-is-charged")
async def test_what_was_in_flight_stays_charged_and_its_resend_is_charged_too(
    ledger: Ledger, store: SqliteStore
) -> None:
    await broken_off(ledger, step("one", ask=ASK), Hanging("one"), purse=purse(ledger, run=1000.0))
    again = await taken_up(store)
    (most,) = held(ledger)
    assert spent(again) == most
    member = telling("one", Answer("Tabs.", usage=Usage(1, 1)))
    await call(again, step("one", ask=ASK), member, purse=purse(again, run=1000.0))
    assert [(event.n, event.usd, event.estimated) for event in told(again, ev.Billed)] == [(1, most, True), (2, 2.0, False)]  # fmt: skip
    assert spent(await taken_up(store)) == most + 2.0


@pytest.mark.behaviour("40-in-doubt-is-charged")
async def test_what_was_in_flight_leaves_less_for_its_resend(ledger: Ledger, store: SqliteStore) -> None:
    await broken_off(ledger, step("one", ask=ASK), Hanging("one"), purse=purse(ledger, run=120.0))
    again, member = await taken_up(store), telling("one", "never")
    outcome = await call(again, step("one", ask=ASK), member, purse=purse(again, run=120.0))
    assert (outcome.state, member.calls) == ("skipped(budget)", [])
    third = await taken_up(store)
    done = await call(third, step("one", ask=ASK), telling("one", "Tabs."), purse=purse(third, run=500.0))
    assert done.ok
    assert [event.n for event in told(third, ev.Billed) if event.estimated] == [1]  # charged once


@pytest.mark.behaviour("40-in-doubt-is-charged")
async def test_what_may_not_be_sent_again_is_charged_in_doubt(ledger: Ledger, store: SqliteStore) -> None:
    await broken_off(ledger, step("one", ask=ASK), Hanging("one"), purse=purse(ledger))
    again = await taken_up(store)
    outcome = await call(again, step("one", ask=ASK), telling("one", "never"), resend=False, purse=purse(again))
    assert outcome.state == "in_doubt"
    (event,) = told(again, ev.Billed)
    assert (event.n, [event.usd], event.estimated) == (1, held(ledger), True)


async def test_money_held_for_a_request_that_never_left_is_held_once(ledger: Ledger, store: SqliteStore) -> None:
    budget = purse(ledger, run=120.0)
    await budget.reserve(KEY, 1, telling("one"), ASK, b"x" * 90)  # killed here: nothing was intended
    again = await taken_up(store)
    member = telling("one", Answer("Tabs.", usage=Usage(1, 1)))
    assert (await call(again, step("one", ask=ASK), member, purse=purse(again, run=120.0))).ok
    assert spent(await taken_up(store)) == 2.0
