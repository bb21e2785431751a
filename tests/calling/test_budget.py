"""Budget: reservations before requests, caps shared between processes, charges by usage."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from council import events as ev
from council.calling.budget import Budget, Caps, SpendingPlan, local_date
from council.calling.fault_table import FAULT_TABLE
from council.engine.ledger import Ledger
from council.errors import Fault
from council.members.base import DEFAULT_MAX_TOKENS
from council.money import FREE, UNBILLED_FAULTS, Price, Rates
from council.store.interface import Record, StoreAddress
from council.store.shared import open_store
from council.store.sqlite import SqliteStore
from council.types import Answer, Ask, Usage, current_delivery
from tests.calling.budget_process import OUTPUT, a_dime, spend
from tests.calling.helpers import KEY, RUN, Hanging, answering, call, events_of, fault, interrupt, reload_ledger, step
from tests.fake_clock import settle, skip
from tests.fake_provider import FakeProvider, Reply
from tests.paths import ROOT
from tests.run_session import FunctionMember, make_ask

pytestmark = pytest.mark.anyio

DOLLAR = Price(Rates(*[Decimal(1_000_000)] * 4))  # one dollar per token
ASK = make_ask(KEY, max_tokens=50)


def make_budget(ledger: Ledger, price: Price | None = DOLLAR, **caps: float) -> Budget:
    return Budget(ledger.store, ledger.record, lambda member: price, Caps(**caps))  # type: ignore[arg-type]


def spent(ledger: Ledger) -> float:
    return sum(row.amount for row in ledger.record.spending.values()) / 1e9


def reserved(ledger: Ledger) -> list[Any]:
    return [event.most for event in events_of(ledger, ev.Attempted)]


async def stored_rows(store: SqliteStore) -> list[tuple[int | None, int | None, bool]]:
    """Return (reserved, charged, estimated) of each spending row in the store."""
    return [(row.reserved, row.charged, row.estimated) for row in (await store.load(RUN)).spending.values()]


# Concurrent requests


@pytest.mark.behaviour("40-budget-race")
async def test_fifty_concurrent_calls_with_budget_for_ten_send_exactly_ten(
    provider: FakeProvider, tmp_path: Path
) -> None:
    provider.always("m1", Reply(text="Tabs.", usage=[{"prompt_tokens": 9, "completion_tokens": OUTPUT}]))
    outcomes = await spend(tmp_path, provider.base_url, "r2222", 50, Caps(run=1.0))
    assert len(provider.log) == 10
    assert sorted(outcome.state for outcome in outcomes) == ["ok"] * 10 + ["skipped(budget)"] * 40
    assert [outcome.attempts for outcome in outcomes if not outcome.ok] == [0] * 40


@pytest.mark.behaviour("40-budget-race", "16-budget-over-processes")
async def test_two_processes_share_the_daily_budget(
    provider: FakeProvider, tmp_path: Path, store_address: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNCIL_DATABASE", store_address.url)
    provider.always("m1", Reply(text="Tabs.", usage=[{"prompt_tokens": 9, "completion_tokens": OUTPUT}]))
    open_store(store_address).close()
    command = [sys.executable, "-m", "tests.calling.budget_process", str(tmp_path), provider.base_url]

    async def spender(run: str) -> int:
        process = await asyncio.create_subprocess_exec(*command, run, "25", "1.0", cwd=ROOT, stdout=PIPE)
        out, _ = await process.communicate()
        return int(out)

    assert sum(await asyncio.gather(spender("r2222"), spender("r3333"))) == 10
    assert len(provider.log) == 10


@pytest.mark.behaviour("40-budget-race")
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(used=st.lists(st.integers(1, OUTPUT), min_size=12, max_size=24), cap=st.integers(0, 12))
async def test_the_bill_stays_under_the_cap_and_no_affordable_request_is_skipped(
    tmp_path_factory: pytest.TempPathFactory, used: list[int], cap: int
) -> None:
    store = SqliteStore(tmp_path_factory.mktemp("store"))
    store.post(RUN, [("run", ("a run", "here", 1.0, "s1", "{}"))])
    ledger = await reload_ledger(store)
    left, bill = list(used), 0

    async def answer(key: str) -> Answer:
        nonlocal bill
        tokens = left.pop()
        bill += tokens
        await asyncio.sleep(0)
        return Answer("Tabs.", usage=Usage(3, tokens))

    member = FunctionMember("sim:m1", answer)
    budget = Budget(store, ledger.record, a_dime, Caps(run=cap / 10))
    asked = [step("sim:m1", ask=make_ask(f"draft/{n}", max_tokens=OUTPUT)) for n in range(len(used))]
    await asyncio.gather(*(call(ledger, one, member, budget=budget) for one in asked))
    assert bill <= cap * OUTPUT  # one token costs a tenth of a cent
    assert not left or bill > (cap - 1) * OUTPUT  # a skipped request would have exceeded the cap
    assert spent(ledger) == pytest.approx(bill / 1000)
    store.close()


# Reservations


@pytest.mark.behaviour("40-reserve-worst-case")
async def test_the_maximum_cost_is_reserved_before_a_request_is_sent(ledger: Ledger, store: SqliteStore) -> None:
    member = Hanging("sim:m1")
    task = asyncio.ensure_future(call(ledger, step("sim:m1", ask=ASK), member, budget=make_budget(ledger, run=1000.0)))
    await member.reached.wait()
    tokens = -(-len(member.prepare(ASK)) // 3) + 50
    assert reserved(ledger) == [tokens]
    assert await stored_rows(store) == [(tokens * 10**9, None, False)]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.behaviour("40-reserve-worst-case")
@pytest.mark.parametrize(
    ("words", "most"), [(None, DEFAULT_MAX_TOKENS), (100, 2048), (1500, 6300), (9000, DEFAULT_MAX_TOKENS)]
)  # three times the requested words, within limits
async def test_under_a_cap_every_request_sets_max_tokens(ledger: Ledger, words: int | None, most: int) -> None:
    seen: list[Ask] = []

    class Noting(FunctionMember):
        def prepare(self, ask: Ask) -> bytes:
            seen.append(ask)
            return super().prepare(ask)

    member = Noting("one", lambda key: "Tabs.")
    await call(
        ledger, step("one", ask=replace(make_ask(KEY), words=words)), member, budget=make_budget(ledger, run=10**6)
    )
    assert seen[-1].max_tokens == most


async def test_without_a_cap_the_ask_is_unchanged(ledger: Ledger) -> None:
    member = answering("sim:m1", "Tabs.")
    assert make_budget(ledger).cap_output(ASK, member) == ASK
    assert make_budget(ledger).cap_output(make_ask(KEY), member) == make_ask(KEY)
    assert make_budget(ledger, day=1.0).cap_output(ASK, member) == ASK  # keeps its own cap


async def test_the_reservation_includes_thinking_tokens(ledger: Ledger) -> None:
    class Thinking(FunctionMember):
        def max_output_tokens(self, ask: Ask, otherwise: int) -> int:
            return (ask.max_tokens or otherwise) + 1000

    member = Thinking("sim:m1", lambda key: Answer("Tabs.", usage=Usage(1, 1)))
    await call(ledger, step("sim:m1", ask=ASK), member, budget=make_budget(ledger))
    assert reserved(ledger) == [-(-len(member.prepare(ASK)) // 3) + 50 + 1000]


# Charges


@pytest.mark.behaviour("40-settle-real-usage")
async def test_an_answer_is_charged_by_its_usage(ledger: Ledger, store: SqliteStore) -> None:
    rates = Price(Rates(Decimal(10), Decimal(1), Decimal(20), Decimal(100)))
    member = answering("sim:m1", Answer("Tabs.", usage=Usage(1000, 20, 300, True, 200)))
    await call(ledger, step("sim:m1", ask=ASK), member, budget=make_budget(ledger, rates))
    bill = (500 * 10 + 300 * 1 + 200 * 20 + 20 * 100) / 1e6
    (event,) = events_of(ledger, ev.Billed)
    assert (event.usd, event.estimated, event.member, event.seat) == (bill, False, "sim:m1", "alpha")
    assert (await stored_rows(store))[0][1:] == (round(bill * 1e9), False)


LIES = {
    "a million output tokens": Usage(100, 1_000_000),
    "a million input tokens": Usage(1_000_000, 5),
    "more cached than sent": Usage(10, 5, 1_000_000),
    "more written than sent": Usage(10, 5, 0, True, 1_000_000),
    "everything": Usage(999_999_999, 999_999_999, 999_999_999, True, 999_999_999),
    "without a final count": Usage(100, 1_000_000, known=False),
}


@pytest.mark.behaviour("40-implausible-usage")
@pytest.mark.parametrize("usage", LIES.values(), ids=LIES)
async def test_under_a_cap_no_reported_usage_costs_more_than_the_request_could(ledger: Ledger, usage: Usage) -> None:
    budget = make_budget(ledger, run=1_000.0)
    await call(ledger, step("sim:m1", ask=ASK), answering("sim:m1", Answer("Tabs.", usage=usage)), budget=budget)
    assert 0 < spent(ledger) <= sum(reserved(ledger)) <= 1_000
    assert {event.estimated for event in events_of(ledger, ev.Billed)} == {True}


@pytest.mark.behaviour("40-implausible-usage")
async def test_also_without_a_cap_no_more_cached_tokens_are_charged_than_were_sent(ledger: Ledger) -> None:
    member = answering("sim:m1", Answer("Tabs.", usage=Usage(10, 5, 1_000_000)))
    await call(ledger, step("sim:m1", ask=ASK), member, budget=make_budget(ledger))
    assert spent(ledger) == 15


@pytest.mark.behaviour("40-implausible-usage")
async def test_an_estimate_has_no_more_cached_tokens_than_were_sent(ledger: Ledger) -> None:
    member = answering("sim:m1", Answer("Tabs.", usage=Usage(0, 0, 1_000_000, known=False)))
    await call(ledger, step("sim:m1", ask=ASK), member, budget=make_budget(ledger))
    assert spent(ledger) == -(-len(member.prepare(ASK)) // 3) + -(-len("Tabs.") // 3)


@pytest.mark.behaviour("40-settle-real-usage")
@pytest.mark.parametrize("kind", UNBILLED_FAULTS)
async def test_an_unbilled_fault_costs_nothing(ledger: Ledger, kind: str) -> None:
    await call(ledger, step("sim:m1", ask=ASK), answering("sim:m1", fault(kind)), budget=make_budget(ledger))
    assert spent(ledger) == 0
    assert events_of(ledger, ev.Billed) == []


@pytest.mark.behaviour("40-errors-unbilled")
@pytest.mark.parametrize("kind", ["server", "cut"])
async def test_an_error_status_costs_nothing_at_an_endpoint_that_does_not_bill_it(ledger: Ledger, kind: str) -> None:
    failed = Fault(kind, "500: internal error", has_status=True)
    for bills_errors in (False, True):
        asked = step("sim:m1", ask=make_ask(f"draft/{bills_errors}", max_tokens=50))
        budget = replace(make_budget(ledger), bills_errors={"sim:m1": bills_errors}.__getitem__)
        await call(ledger, asked, answering("sim:m1", failed), budget=budget)
        bills = events_of(ledger, ev.Billed)
        assert bool(bills) is bills_errors
        assert all(event.in_doubt for event in bills)


@pytest.mark.behaviour("40-errors-after-output")
async def test_an_error_after_output_is_charged_whatever_its_kind(ledger: Ledger) -> None:
    """An endpoint that rejects what its own model wrote reports a bad request, after it has sent a part of the
    answer.
    """

    class Rejecting(FunctionMember):
        async def send(self, body: bytes, on_delta: Callable[[str], None]) -> Answer:
            on_delta("Tabs are")
            raise Fault("parameter", "the answer does not match the schema")

    await call(ledger, step("sim:m1", ask=ASK), Rejecting("sim:m1", lambda key: ""), budget=make_budget(ledger))
    assert spent(ledger) == sum(reserved(ledger)) > 0
    assert {event.in_doubt for event in events_of(ledger, ev.Billed)} == {True}


@pytest.mark.behaviour("40-unsent-costs-nothing")
@pytest.mark.parametrize("end", ["timeout", "interrupt"])
async def test_a_request_that_ends_while_it_connects_costs_nothing(ledger: Ledger, end: str) -> None:
    member = Connecting("sim:m1", lambda key: "never")
    work = call(
        ledger, step("sim:m1", ask=ASK), member, budget=make_budget(ledger, run=1e6), timeout=lambda member: 60.0
    )
    task = asyncio.ensure_future(work)
    await member.started.wait()
    if end == "interrupt":
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    else:
        skip(61)
        outcome = await task
        assert (outcome.state, outcome.reason) == ("timed_out", "no connection within 60 s")
    assert spent(ledger) == 0
    assert [row.is_in_doubt for row in ledger.record.spending.values()] == [False]


@pytest.mark.behaviour("40-dropped-request-in-doubt")
async def test_a_request_whose_connection_closes_at_once_is_in_doubt_for_its_input_and_a_margin(ledger: Ledger) -> None:
    """The connection was idle too long, or the endpoint read the request and dropped it: both look the same."""

    class Dropping(FunctionMember):
        async def send(self, body: bytes, on_delta: Callable[[str], None]) -> Answer:
            delivery = current_delivery.get()
            assert delivery
            delivery.is_sent = True
            raise Fault("net", "the provider had closed the idle connection")

    member, asked = Dropping("sim:m1", lambda key: ""), step("sim:m1", ask=make_ask(KEY, max_tokens=5000))
    await call(ledger, asked, member, budget=make_budget(ledger))
    bills = events_of(ledger, ev.Billed)
    assert {event.usd for event in bills} == {-(-len(member.prepare(asked.ask)) // 3) + 200}
    assert len(bills) == 5 and all(event.in_doubt for event in bills)


class Connecting(FunctionMember):
    """A member whose connection is never there."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.started = asyncio.Event()

    async def send(self, body: bytes, on_delta: Callable[[str], None]) -> Answer:
        delivery = current_delivery.get()
        assert delivery
        delivery.is_connecting = True
        self.started.set()
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.behaviour("40-cancelled-by-stream")
async def test_a_cancelled_request_is_charged_by_what_was_streamed_plus_a_margin(ledger: Ledger) -> None:
    streamed, stay = asyncio.Event(), asyncio.Event()

    class Streaming(FunctionMember):
        async def send(self, body: bytes, on_delta: Callable[[str], None]) -> Answer:
            on_delta("Tabs are wide. " * 20)
            streamed.set()
            await stay.wait()
            raise AssertionError

    member = Streaming("sim:m1", lambda key: "never")
    asked = step("sim:m1", ask=make_ask(KEY, max_tokens=5000))
    task = asyncio.ensure_future(call(ledger, asked, member, budget=make_budget(ledger)))
    await streamed.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    (event,) = events_of(ledger, ev.Billed)
    sent = -(-len(member.prepare(asked.ask)) // 3)
    assert event.usd == sent + math.ceil(300 / 3 * 1.2) + 200  # a token costs a dollar
    assert (event.estimated, event.in_doubt) == (True, False)
    assert event.usd < reserved(ledger)[0]


@pytest.mark.behaviour("40-in-doubt-is-charged")
@pytest.mark.parametrize("kind", ["cut", "stall", "server", "cli:exit"])
async def test_a_request_that_may_be_billed_is_charged_its_reservation(ledger: Ledger, kind: str) -> None:
    await call(ledger, step("sim:m1", ask=ASK), answering("sim:m1", fault(kind)), budget=make_budget(ledger))
    assert spent(ledger) == sum(reserved(ledger)) > 0
    assert {event.in_doubt for event in events_of(ledger, ev.Billed)} == {True}


def test_unbilled_faults_are_in_the_fault_table() -> None:
    spec = {"net", "rate", "quota", "overload", "size", "model", "auth", "parameter"}  # "may be paid: no"
    assert spec <= set(UNBILLED_FAULTS) <= FAULT_TABLE.keys()


@pytest.mark.behaviour("40-estimated-where-not-told")
async def test_an_answer_without_usage_is_charged_by_its_length_as_an_estimate(ledger: Ledger) -> None:
    member = answering("sim:m1", Answer("Tabs, always.", usage=Usage(known=False)))
    await call(ledger, step("sim:m1", ask=ASK), member, budget=make_budget(ledger))
    (event,) = events_of(ledger, ev.Billed)
    assert event.estimated
    assert event.usd == -(-len(member.prepare(ASK)) // 3) + -(-len("Tabs, always.") // 3)


@pytest.mark.behaviour("40-estimated-where-not-told")
async def test_a_reasoning_member_without_usage_is_charged_its_reservation(ledger: Ledger) -> None:
    member = answering("openai:gpt-5.2", Answer("Tabs.", usage=Usage(known=False)))
    await call(ledger, step("openai:gpt-5.2", ask=ASK), member, budget=make_budget(ledger))
    assert spent(ledger) == sum(reserved(ledger))


@pytest.mark.behaviour("40-settle-real-usage")
async def test_rejected_answers_and_fallbacks_are_billed_to_their_member(ledger: Ledger) -> None:
    one = answering("sim:m1", Answer("no", "refused", Usage(1, 2)))
    two = answering("sim:m2", Answer("Tabs.", usage=Usage(3, 4)))
    await call(ledger, step("sim:m1", "sim:m2", ask=ASK), one, two, budget=make_budget(ledger))
    assert [(event.member, event.usd) for event in events_of(ledger, ev.Billed)] == [("sim:m1", 3), ("sim:m2", 7)]


async def test_free_members_add_no_spending_rows(ledger: Ledger, store: SqliteStore) -> None:
    await call(ledger, step("one", ask=ASK), answering("one", "Tabs."), budget=make_budget(ledger, FREE, run=0.0))
    assert (await stored_rows(store), reserved(ledger), events_of(ledger, ev.Billed)) == ([], [0.0], [])


@pytest.mark.behaviour("40-unknown-price-is-unknown")
async def test_an_unpriced_member_is_counted_but_not_charged(ledger: Ledger, store: SqliteStore) -> None:
    await call(ledger, step("one", ask=ASK), answering("one", "Tabs."), budget=make_budget(ledger, None, run=1.0))
    assert (await stored_rows(store), reserved(ledger), events_of(ledger, ev.Billed)) == (
        [(None, None, False)],
        [None],
        [],
    )


# Exceeded caps


@pytest.mark.behaviour("40-skipped-budget")
async def test_without_budget_nothing_is_sent_or_stored(ledger: Ledger, store: SqliteStore) -> None:
    member = answering("sim:m1", "never")
    outcome = await call(ledger, step("sim:m1", ask=ASK), member, budget=make_budget(ledger, run=0.01))
    assert (outcome.state, outcome.attempts, member.calls) == ("skipped(budget)", 0, [])
    assert "used up: $0.00 of $0.010 is spent or reserved" in outcome.reason
    assert f"council resume {RUN} --max-cost" in outcome.reason
    record = await store.load(RUN)
    assert (record.attempts, record.results, record.spending) == ({}, {}, {})


@pytest.mark.behaviour("40-skipped-budget", "40-cap-finishes-or-refuses")
async def test_a_retry_that_exceeds_the_cap_is_not_sent_and_the_seat_is_absent(ledger: Ledger) -> None:
    member = answering("sim:m1", fault("server"))
    outcome = await call(ledger, step("sim:m1", ask=ASK), member, budget=make_budget(ledger, run=150.0))
    assert (outcome.state, len(member.calls)) == ("failed(server)", 1)
    assert "not asked again: the budget for this run is used up" in outcome.reason
    assert spent(ledger) <= 150.0


@pytest.mark.behaviour("40-skipped-budget")
async def test_a_retry_of_the_chair_that_exceeds_the_cap_stops_the_run(ledger: Ledger) -> None:
    member = answering("sim:m1", fault("server"))
    asked = replace(step("sim:m1", ask=ASK), is_chair=True)
    outcome = await call(ledger, asked, member, budget=make_budget(ledger, run=150.0))
    assert (outcome.state, len(member.calls)) == ("skipped(budget)", 1)


HALF = SpendingPlan(phases=(("draft", 100 * 10**9), ("merge", 100 * 10**9)))


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
async def test_a_retry_leaves_the_money_that_later_phases_need(ledger: Ledger) -> None:
    """The cap covers a retry of the draft, but then not the merge."""
    member = answering("sim:m1", fault("server"))
    budget = replace(make_budget(ledger, run=250.0), plan=HALF)
    outcome = await call(ledger, step("sim:m1", ask=ASK), member, budget=budget)
    assert (outcome.state, len(member.calls)) == ("failed(server)", 1)
    merge = step("sim:m2", ask=make_ask("merge/chair", max_tokens=50))
    done = await call(ledger, merge, answering("sim:m2", Answer("Tabs.", usage=Usage(1, 1))), budget=budget)
    assert done.state == "ok"


@pytest.mark.behaviour("40-cap-finishes-or-refuses")
async def test_a_run_holds_the_money_of_its_whole_plan(ledger: Ledger, store: SqliteStore) -> None:
    first = replace(make_budget(ledger, day=250.0), plan=HALF)
    assert await first.hold_run() is None
    today = local_date(time.time())
    assert await store.sum_day(today) == 200 * 10**9
    record = Record("rother", "", "", 0.0, "s", {})
    refused = await replace(make_budget(ledger, day=250.0), plan=HALF, record=record).hold_run()
    assert refused and (refused.scope, refused.spent) == ("day", 200 * 10**9)
    await call(ledger, step("sim:m1", ask=ASK), answering("sim:m1", Answer("x", usage=Usage(1, 1))), budget=first)
    assert await store.sum_day(today) <= 200 * 10**9  # the request is paid from what the run holds


async def test_an_exceeded_daily_cap_is_named_in_the_reason(ledger: Ledger) -> None:
    outcome = await call(ledger, step("sim:m1", ask=ASK), answering("sim:m1", "x"), budget=make_budget(ledger, day=0.5))
    assert outcome.reason.startswith("the budget for today is used up: $0.00 of $0.50 is spent or reserved")
    assert outcome.reason.endswith(f"raise [budget] max_cost_per_day, or run `council resume {RUN}` tomorrow")


async def test_released_reservations_let_waiting_requests_continue(ledger: Ledger) -> None:
    """Two reservations exceed the cap, but the usage of both does not."""
    member = answering("sim:m1", Answer("Tabs.", usage=Usage(1, 1)))
    budget = make_budget(ledger, run=120.0)
    steps = [step("sim:m1", ask=make_ask(f"draft/{n}", max_tokens=50)) for n in range(4)]
    outcomes = await asyncio.gather(*(call(ledger, one, member, budget=budget) for one in steps))
    assert [outcome.state for outcome in outcomes] == ["ok"] * 4
    assert spent(ledger) == 8.0


async def test_waiting_for_budget_does_not_count_against_the_timeout(ledger: Ledger) -> None:
    reached, go = asyncio.Event(), asyncio.Event()

    async def slow(key: str) -> Any:
        reached.set()
        await go.wait()
        return Answer("Tabs.", usage=Usage(1, 1))

    budget = make_budget(ledger, run=120.0)
    first = asyncio.ensure_future(
        call(ledger, step("one", ask=ASK), FunctionMember("one", slow), budget=budget, timeout=lambda name: 10_000.0)
    )
    await reached.wait()
    second = step("two", ask=make_ask("draft/beta", max_tokens=50))
    quick = answering("two", Answer("Tabs.", usage=Usage(1, 1)))
    waiting = asyncio.ensure_future(call(ledger, second, quick, budget=budget, timeout=lambda member: 500.0))
    await settle()
    skip(600)  # longer than its timeout
    await settle()
    assert not waiting.done()
    go.set()
    assert [(await first).state, (await waiting).state] == ["ok", "ok"]


# Crashes


@pytest.mark.behaviour("40-in-doubt-is-charged")
async def test_an_in_flight_request_and_its_resend_are_both_charged(ledger: Ledger, store: SqliteStore) -> None:
    await interrupt(ledger, step("one", ask=ASK), Hanging("one"), budget=make_budget(ledger, run=1000.0))
    reloaded = await reload_ledger(store)
    (most,) = reserved(ledger)
    assert spent(reloaded) == most
    member = answering("one", Answer("Tabs.", usage=Usage(1, 1)))
    await call(reloaded, step("one", ask=ASK), member, budget=make_budget(reloaded, run=1000.0))
    assert [(event.n, event.usd, event.estimated) for event in events_of(reloaded, ev.Billed)] == [(1, most, True), (2, 2.0, False)]  # fmt: skip
    assert spent(await reload_ledger(store)) == most + 2.0


@pytest.mark.behaviour("40-in-doubt-is-charged")
async def test_an_in_flight_request_reduces_the_budget_for_its_resend(ledger: Ledger, store: SqliteStore) -> None:
    await interrupt(ledger, step("one", ask=ASK), Hanging("one"), budget=make_budget(ledger, run=120.0))
    reloaded, member = await reload_ledger(store), answering("one", "never")
    outcome = await call(reloaded, step("one", ask=ASK), member, budget=make_budget(reloaded, run=120.0))
    assert (outcome.state, member.calls) == ("skipped(budget)", [])
    third = await reload_ledger(store)
    done = await call(third, step("one", ask=ASK), answering("one", "Tabs."), budget=make_budget(third, run=500.0))
    assert done.ok
    assert [event.n for event in events_of(third, ev.Billed) if event.estimated] == [1]  # charged once


@pytest.mark.behaviour("40-in-doubt-is-charged")
async def test_with_no_resend_the_request_in_doubt_is_charged(ledger: Ledger, store: SqliteStore) -> None:
    await interrupt(ledger, step("one", ask=ASK), Hanging("one"), budget=make_budget(ledger))
    reloaded = await reload_ledger(store)
    outcome = await call(
        reloaded, step("one", ask=ASK), answering("one", "never"), resend=False, budget=make_budget(reloaded)
    )
    assert outcome.state == "in_doubt"
    (event,) = events_of(reloaded, ev.Billed)
    assert (event.n, [event.usd], event.estimated) == (1, reserved(ledger), True)


async def test_a_reservation_for_an_unsent_request_is_counted_once(ledger: Ledger, store: SqliteStore) -> None:
    budget = make_budget(ledger, run=120.0)
    await budget.reserve(KEY, 1, answering("one"), ASK, b"x" * 90)  # killed here, before the attempt was recorded
    reloaded = await reload_ledger(store)
    member = answering("one", Answer("Tabs.", usage=Usage(1, 1)))
    assert (await call(reloaded, step("one", ask=ASK), member, budget=make_budget(reloaded, run=120.0))).ok
    assert spent(await reload_ledger(store)) == 2.0
