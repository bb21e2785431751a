"""Hedging: a fallback is asked too when the requested member is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from council import events as ev
from council.calling.budget import Budget, Caps
from council.calling.hedge import MIN_SAMPLES, HedgedLoop, HedgePolicy, usual_seconds
from council.calling.retry import Caller
from council.engine.ledger import Ledger
from council.members.base import Member
from council.money import Price, Rates
from council.store.interface import AttemptResult, Row
from council.store.sqlite import SqliteStore
from council.types import Outcome, Step
from tests.calling.helpers import KEY, RUN, Hanging, answering, call, events_of, fault, reload_ledger, step, unpriced
from tests.fake_clock import settle, skip
from tests.run_session import FunctionMember, make_ask

pytestmark = pytest.mark.anyio
FAST = [0.01] * MIN_SAMPLES  # the requested member is slow at once


class Answers(FunctionMember):
    """Member that answers when its event is set."""

    def __init__(self, name: str) -> None:
        self.reached, self.told = asyncio.Event(), asyncio.Event()
        self.cancelled = False
        super().__init__(name, lambda key: self.speak())

    async def speak(self) -> str:
        self.reached.set()
        try:
            await self.told.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return f"The answer of {self.name}."


async def hedged(
    ledger: Ledger,
    the_step: Step,
    *members: Member,
    past: Sequence[float] = FAST,
    resend: bool = True,
    budget: Budget | None = None,
    **more: Any,
) -> Outcome:
    async def past_seconds(member: str) -> Sequence[float]:
        return past

    by_name = {member.name: member for member in members}
    caller = Caller(
        by_name.__getitem__,
        ledger,
        budget or unpriced(ledger),
        lambda member: 60.0,
        resend,
        make_loop=partial(HedgedLoop, policy=HedgePolicy(past_seconds)),
        **more,
    )
    return await caller(the_step)


def results_of(ledger: Ledger) -> list[tuple[str, str]]:
    """Return the member of each attempt, and whether it answered."""
    return [(attempt.member, _describe(attempt.result)) for attempt in ledger.attempts(KEY)]


def _describe(result: AttemptResult | None) -> str:
    if result is None:
        return "open"
    return str(result.get("fault", "answer"))


@pytest.mark.behaviour("15-hedge")
async def test_the_faster_fallback_counts_and_the_slow_request_is_cancelled(ledger: Ledger) -> None:
    slow = Answers("one")
    outcome = await hedged(ledger, step("one", "two"), slow, answering("two", "Spaces."))
    assert (outcome.state, outcome.text, outcome.served_by, outcome.attempts) == ("ok", "Spaces.", "two", 2)
    assert slow.cancelled
    assert results_of(ledger) == [("one", "hedge"), ("two", "answer")]
    (hedge,) = events_of(ledger, ev.Hedged)
    assert (hedge.key, hedge.seat, hedge.member, hedge.by, hedge.after) == (KEY, "alpha", "one", "two", 0.01)
    (told,) = events_of(ledger, ev.Faulted)
    assert (told.member, told.kind, told.detail, told.wait) == ("one", "hedge", "two answered first", None)


@pytest.mark.behaviour("15-hedge")
async def test_the_requested_member_counts_if_it_answers_first(ledger: Ledger) -> None:
    slow, other = Answers("one"), Answers("two")
    task = asyncio.ensure_future(hedged(ledger, step("one", "two"), slow, other))
    await other.reached.wait()
    slow.told.set()
    outcome = await task
    assert (outcome.state, outcome.served_by, other.cancelled) == ("ok", "one", True)
    assert results_of(ledger) == [("one", "answer"), ("two", "hedge")]


@pytest.mark.behaviour("15-hedge")
async def test_a_member_in_its_usual_time_is_asked_alone(ledger: Ledger) -> None:
    one, two = answering("one", "Tabs."), answering("two", "Spaces.")
    outcome = await hedged(ledger, step("one", "two"), one, two, past=[10.0] * MIN_SAMPLES)
    assert (outcome.served_by, len(two.calls)) == ("one", 0)
    assert events_of(ledger, ev.Hedged) == []


@pytest.mark.behaviour("15-hedge")
def test_usual_time_is_that_of_95_percent_of_at_least_20_answers() -> None:
    assert usual_seconds([1.0] * 19) is None
    assert usual_seconds([9.0, *[1.0] * 19]) == 1.0
    assert usual_seconds([float(n) for n in range(1, 101)]) == 95.0


@pytest.mark.behaviour("15-hedge")
async def test_without_enough_past_answers_half_of_the_members_time_counts(ledger: Ledger) -> None:
    slow = Answers("one")
    task = asyncio.ensure_future(hedged(ledger, step("one", "two"), slow, answering("two", "Spaces."), past=[0.1] * 19))
    await slow.reached.wait()
    await settle()
    assert events_of(ledger, ev.Hedged) == []
    skip(31.0)  # of 60
    assert (await task).served_by == "two"
    assert events_of(ledger, ev.Hedged)[0].after == 30.0


@pytest.mark.behaviour("15-hedge")
@pytest.mark.parametrize("how", ["no fallback", "no resend", "a person"])
async def test_no_second_member_is_asked_where_it_is_not_possible(ledger: Ledger, how: str) -> None:
    slow, other = Answers("one"), answering("two", "Spaces.")
    ways: dict[str, dict[str, Any]] = {"a person": {"no_phase_timeout": ("one",)}, "no resend": {"resend": False}}
    more = ways.get(how, {})
    chain = ("one",) if how == "no fallback" else ("one", "two")
    task = asyncio.ensure_future(hedged(ledger, step(*chain), slow, other, **more))
    await slow.reached.wait()
    skip(5.0)
    slow.told.set()
    assert ((await task).served_by, len(other.calls)) == ("one", 0)


@pytest.mark.behaviour("15-hedge")
@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (("Late.", fault("auth")), ("ok", "one")),
        ((fault("auth"), "Spaces."), ("ok", "two")),
        ((fault("auth"), fault("model")), ("failed(auth)", "")),
    ],
)
async def test_a_failure_of_one_member_leaves_the_other_at_work(
    ledger: Ledger, answers: tuple[Any, Any], expected: tuple[str, str]
) -> None:
    gates = asyncio.Event(), asyncio.Event()

    def make(n: int, name: str) -> FunctionMember:
        async def answer() -> Any:
            gates[n].set()
            await gates[1].wait()  # both are at work
            if isinstance(answers[n], Exception):
                raise answers[n]
            await settle()  # the other has failed
            return answers[n]

        return FunctionMember(name, lambda key: answer())

    outcome = await hedged(ledger, step("one", "two"), make(0, "one"), make(1, "two"))
    assert (outcome.state, outcome.served_by) == expected
    given_up = [bool(attempt.result and attempt.result.get("given_up")) for attempt in ledger.attempts(KEY)]
    assert any(given_up) is (not outcome.ok)  # a resumed run asks again only if no member is left


async def test_requests_of_both_members_are_numbered_without_a_gap(ledger: Ledger) -> None:
    slow = Answers("one")
    left = [fault("server"), fault("server"), "Spaces."]
    outcome = await hedged(ledger, step("one", "two"), slow, FunctionMember("two", lambda key: left.pop(0)))
    assert (outcome.served_by, outcome.attempts) == ("two", 4)
    assert [attempt.n for attempt in ledger.attempts(KEY)] == [1, 2, 3, 4]


# Money


def priced(ledger: Ledger, store: SqliteStore, cap: float | None, on_price: Callable[[str], object] = str) -> Budget:
    def price(member: Member) -> Price:
        on_price(member.name)
        return Price(Rates(Decimal(1), Decimal(1), Decimal(1), Decimal(1)))

    return Budget(store, ledger.record, price, Caps(cap))


@pytest.mark.behaviour("15-hedge")
async def test_the_cancelled_request_is_charged_by_what_it_had_streamed(ledger: Ledger, store: SqliteStore) -> None:
    await hedged(
        ledger, step("one", "two"), Answers("one"), answering("two", "Spaces."), budget=priced(ledger, store, None)
    )
    bills = {bill.member: bill for bill in events_of(ledger, ev.Billed)}
    assert (bills["one"].estimated, bills["one"].in_doubt) == (True, False)
    assert 0 < bills["one"].usd < events_of(ledger, ev.Attempted)[0].most / 10  # it had streamed nothing


@pytest.mark.behaviour("15-hedge")
async def test_no_second_member_is_asked_without_room_in_the_budget(ledger: Ledger, store: SqliteStore) -> None:
    slow, other = Answers("one"), answering("two", "Spaces.")
    one_request, refused = make_ask(KEY, max_tokens=1000), asyncio.Event()
    budget = priced(ledger, store, 0.0015, lambda name: refused.set() if name == "two" else None)
    task = asyncio.ensure_future(hedged(ledger, step("one", "two", ask=one_request), slow, other, budget=budget))
    await refused.wait()
    slow.told.set()
    assert ((await task).served_by, len(other.calls)) == ("one", 0)
    assert events_of(ledger, ev.Hedged) == []
    assert results_of(ledger) == [("one", "answer")]


# Crashes


@pytest.mark.behaviour("15-hedge")
async def test_a_stored_attempt_of_the_second_member_has_its_hedge(
    ledger: Ledger, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stops when the attempt is stored, and writes nothing after it, has stored the hedge too."""
    slow, other = Answers("one"), Answers("two")
    task = asyncio.ensure_future(hedged(ledger, step("one", "two"), slow, other))
    write, post = store.write, store.post

    async def write_until_the_second_attempt(run: str, rows: Sequence[Row]) -> None:
        await write(run, rows)
        if any(table == "intent" and values[2] == "two" for table, values in rows):
            monkeypatch.setattr(store, "post", lambda *given, **more: None)

    monkeypatch.setattr(store, "write", write_until_the_second_attempt)
    await other.reached.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    monkeypatch.setattr(store, "post", post)
    again = await reload_ledger(store)
    assert [attempt.member for attempt in again.attempts(KEY)] == ["one", "two"]
    (hedge,) = events_of(again, ev.Hedged)
    assert (hedge.key, hedge.member, hedge.by) == (KEY, "one", "two")


@pytest.mark.behaviour("15-hedge")
async def test_a_hedge_that_goes_on_after_a_crash_is_told_once(ledger: Ledger, store: SqliteStore) -> None:
    """one has failed and waits for its retry, and two is at work, when the process stops."""
    first, other = answering("one", fault("server")), Answers("two")
    first.backoff = 5.0
    await stop_race(ledger, first, other)
    again = await reload_ledger(store)
    outcome = await hedged(again, step("one", "two"), Answers("one"), answering("two", "Spaces."))
    assert (outcome.served_by, len(events_of(again, ev.Hedged))) == ("two", 1)


async def stop_race(ledger: Ledger, *members: Answers | FunctionMember) -> None:
    task = asyncio.ensure_future(hedged(ledger, step("one", "two"), *members))
    for member in members:
        if isinstance(member, Answers):
            await member.reached.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.behaviour("15-hedge")
async def test_after_a_crash_with_both_open_one_is_sent_again(ledger: Ledger, store: SqliteStore) -> None:
    await stop_race(ledger, Answers("one"), Answers("two"))
    again = await reload_ledger(store)
    one, two = answering("one", "Tabs."), answering("two", "Spaces.")
    outcome = await hedged(again, step("one", "two"), one, two, past=[10.0] * MIN_SAMPLES)
    assert (outcome.state, outcome.served_by) == ("ok", "two")
    assert (len(one.calls), len(two.calls)) == (0, 1)
    assert again.calls == {"made": 3, "replayed": 0, "in_doubt": 2}


@pytest.mark.behaviour("15-hedge")
@pytest.mark.parametrize("winner", ["one", "two"])
@pytest.mark.parametrize("with_hedge", [True, False])
async def test_a_stored_answer_is_not_bought_again(
    ledger: Ledger, store: SqliteStore, winner: str, with_hedge: bool
) -> None:
    """The process stops after the answer is stored and before the step has its result."""
    slow, other = Answers("one"), Answers("two")
    task = asyncio.ensure_future(hedged(ledger, step("one", "two"), slow, other))
    await other.reached.wait()
    (slow if winner == "one" else other).told.set()
    await task
    again = await reload_ledger(store)
    members = answering("one", "Bought again."), answering("two", "Bought again.")
    run: Callable[..., Any] = hedged if with_hedge else call_plainly
    outcome = await run(again, step("one", "two"), *members)
    assert (outcome.text, outcome.served_by) == (f"The answer of {winner}.", winner)
    assert [member.calls for member in members] == [[], []]


async def call_plainly(ledger: Ledger, the_step: Step, *members: Member) -> Outcome:
    return await call(ledger, the_step, *members, timeout=lambda member: 60.0)


@pytest.mark.behaviour("15-hedge")
async def test_attempts_of_two_members_are_replayed_to_their_own_member(ledger: Ledger, store: SqliteStore) -> None:
    """one fails and is retried while two is at work: the attempts are those of one, two, one."""
    first, rival = Hanging("one", fault("server")), Answers("two")

    async def past_seconds(member: str) -> Sequence[float]:
        return FAST

    first.backoff = 5.0  # the second member is asked before the retry
    by_name: dict[str, Member] = {"one": first, "two": rival}
    caller = Caller(
        by_name.__getitem__,
        ledger,
        unpriced(ledger),
        lambda member: 60.0,
        make_loop=partial(HedgedLoop, policy=HedgePolicy(past_seconds)),
    )
    task = asyncio.ensure_future(caller(step("one", "two")))
    await rival.reached.wait()
    skip(10.0)
    await first.reached.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    again = await reload_ledger(store)
    assert [attempt.member for attempt in again.attempts(KEY)] == ["one", "two", "one"]
    one, two = answering("one", "Tabs."), answering("two", "Spaces.")
    outcome = await hedged(again, step("one", "two"), one, two, past=[10.0] * MIN_SAMPLES)
    assert (outcome.text, outcome.served_by, len(two.calls)) == ("Tabs.", "one", 0)
    assert again.run == RUN
