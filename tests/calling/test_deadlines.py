"""Deadlines: an open request may still answer, so a member has its whole time; each fallback has its own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from council import events as ev
from council.calling.retry import Caller
from council.engine.ledger import Ledger
from council.store.sqlite import SqliteStore
from council.types import Answer, FixedSeconds, SeatWatch
from tests.calling.helpers import (
    KEY,
    Hanging,
    answering,
    call,
    events_of,
    fault,
    interrupt,
    reload_ledger,
    step,
    unpriced,
)
from tests.fake_clock import settle, skip
from tests.run_session import FunctionMember

pytestmark = pytest.mark.anyio


class Silent(FunctionMember):
    """Member that says nothing for `seconds`, then answers. Without an answer it hangs."""

    def __init__(self, name: str, seconds: float, text: str = "") -> None:
        super().__init__(name, self.wait)
        self.seconds, self.text = seconds, text

    async def wait(self, key: str) -> str:
        skip(self.seconds)
        await settle()
        if not self.text:
            await asyncio.Event().wait()
        return self.text


class Slow(FunctionMember):
    """Member that sends a piece every 50 s and finishes after `pieces` of them."""

    def __init__(self, name: str, piece: str, pieces: int) -> None:
        super().__init__(name, lambda key: "Tabs.")
        self.piece, self.pieces = piece, pieces

    async def send(self, body: bytes, hear: Any) -> Answer:
        for _ in range(self.pieces):
            skip(50)
            await settle()
            hear(self.piece)
        return await super().send(body, hear)


@pytest.mark.behaviour("40-silence-is-not-a-failure")
async def test_a_silent_member_has_its_whole_deadline_before_its_fallbacks_are_asked(ledger: Ledger) -> None:
    one, two = Silent("one", 390, "Tabs."), answering("two", "never")
    outcome = await call(ledger, step("one", "two", "three"), one, two, timeout=lambda name: 400.0)
    assert (outcome.ok, outcome.served_by, outcome.attempts, two.calls) == (True, "one", 1, [])
    assert events_of(ledger, ev.Faulted) == []


@pytest.mark.behaviour("40-silence-is-not-a-failure", "00-timeout-for-a-phase")
async def test_after_the_deadline_each_fallback_has_its_own_time(ledger: Ledger) -> None:
    members = (Silent("one", 400), Silent("two", 700), Silent("three", 90, "Tabs."))
    seconds = {"one": 400.0, "two": 700.0, "three": 100.0}
    outcome = await call(ledger, step("one", "two", "three"), *members, timeout=seconds.__getitem__)
    assert (outcome.served_by, outcome.attempts) == ("three", 3)
    assert 1190 <= outcome.seconds < 1300
    assert [(event.kind, event.detail, event.wait) for event in events_of(ledger, ev.Faulted)] == [
        ("stall", "no answer within 400 s", None),
        ("stall", "no answer within 700 s", None),
    ]
    assert events_of(ledger, ev.Attempted)[-1].why == "fallback: one timed_out"


async def test_the_seat_is_absent_when_all_its_members_used_up_their_time(ledger: Ledger) -> None:
    outcome = await call(ledger, step("one", "two"), Silent("one", 400), Silent("two", 400), timeout=lambda name: 400.0)
    reason = "no answer within 400 s; then two: no answer within 400 s"
    assert (outcome.state, outcome.reason, outcome.attempts) == ("timed_out", reason, 2)
    first, last = ledger.attempts(KEY)
    assert first.result and last.result
    assert (first.result["passed_on"], last.result["given_up"]) == (True, True)


@pytest.mark.behaviour("40-silence-is-not-a-failure")
@pytest.mark.parametrize("kind", ["auth", "quota", "model", "refused"])
async def test_a_member_that_fails_at_once_gives_way_at_once(ledger: Ledger, kind: str) -> None:
    one, two = answering("one", fault(kind)), answering("two", "Tabs.")
    outcome = await call(ledger, step("one", "two"), one, two, timeout=lambda name: 400.0)
    assert (outcome.served_by, outcome.attempts, len(one.calls)) == ("two", 2, 1)
    assert outcome.seconds < 5


@pytest.mark.behaviour("40-silence-is-not-a-failure")
async def test_a_member_that_closes_the_connection_is_retried_once_and_then_replaced(ledger: Ledger) -> None:
    one, two = answering("one", fault("cut")), answering("two", "Tabs.")
    outcome = await call(ledger, step("one", "two"), one, two, timeout=lambda name: 400.0)
    assert (outcome.served_by, outcome.attempts, len(one.calls)) == ("two", 3, 2)
    assert [event.kind for event in events_of(ledger, ev.Faulted)] == ["cut", "cut"]
    assert outcome.seconds < 5


async def test_retries_share_the_time_of_their_member(ledger: Ledger) -> None:
    class Broken(FunctionMember):
        async def send(self, body: bytes, hear: Any) -> Answer:
            self.calls.append({})
            skip(250)
            await settle()
            raise fault("cut")

    one, two = Broken("one", str), answering("two", "Tabs.")
    outcome = await call(ledger, step("one", "two"), one, two, timeout=lambda name: 400.0)
    assert (outcome.served_by, outcome.attempts, len(one.calls)) == ("two", 3, 2)
    assert [event.kind for event in events_of(ledger, ev.Faulted)] == ["cut", "stall"]


@pytest.mark.parametrize("piece", ["word ", ""])  # an empty piece is thinking
async def test_a_member_that_streams_or_thinks_keeps_the_seat(ledger: Ledger, piece: str) -> None:
    one, two = Slow("one", piece, 8), answering("two", "never")
    outcome = await call(ledger, step("one", "two"), one, two, timeout=lambda name: 700.0)
    assert (outcome.ok, outcome.served_by, two.calls) == (True, "one", [])


async def test_an_endless_stream_ends_at_the_deadline(ledger: Ledger) -> None:
    outcome = await call(ledger, step(), Slow("one", "on and on ", 1000), timeout=lambda name: 400.0)
    assert (outcome.state, outcome.reason) == ("timed_out", "no answer within 400 s")
    assert outcome.seconds < 800


async def test_a_timeout_raised_by_a_member_is_a_stall(ledger: Ledger) -> None:
    one, two = answering("one", TimeoutError()), answering("two", "Tabs.")
    outcome = await call(ledger, step("one", "two"), one, two)
    assert (outcome.served_by, len(one.calls)) == ("two", 2)


# Members that think


@pytest.mark.behaviour("40-thinking-members-have-300-seconds")
async def test_a_member_that_streams_thinking_has_at_least_300_seconds(ledger: Ledger) -> None:
    one = Slow("one", "", 5)  # it thinks for 250 s
    assert (await call(ledger, step(), one, timeout=lambda name: 120.0)).ok


@pytest.mark.behaviour("40-thinking-members-have-300-seconds")
async def test_a_member_seen_thinking_has_300_seconds_in_later_phases(ledger: Ledger) -> None:
    one = Slow("one", "", 1)
    carry_out = Caller({"one": one}.__getitem__, ledger, unpriced(ledger), lambda name: 120.0)
    assert (await carry_out(step())).ok
    assert carry_out.member_timeout(replace(step(), timeout=90.0), "one") == 300.0
    assert carry_out.member_timeout(replace(step(), timeout=FixedSeconds(90.0)), "one") == 90.0
    assert carry_out.member_timeout(replace(step(), timeout=90.0), "two") == 90.0


@pytest.mark.behaviour("40-thinking-members-have-300-seconds")
async def test_a_timeout_of_the_user_is_not_extended(ledger: Ledger) -> None:
    outcome = await call(ledger, step(), Slow("one", "", 5), timeout=lambda name: FixedSeconds(120.0))
    assert (outcome.state, outcome.reason) == ("timed_out", "no answer within 120 s")


@pytest.mark.behaviour("40-thinking-members-have-300-seconds")
async def test_a_known_reasoning_member_has_300_seconds_in_a_phase_with_a_shorter_timeout(ledger: Ledger) -> None:
    carry_out = Caller(
        lambda name: answering(name, ""), ledger, unpriced(ledger), is_thinking=lambda name: name == "deep"
    )
    short = replace(step(), timeout=90.0)
    assert [carry_out.member_timeout(short, name) for name in ("deep", "plain")] == [300.0, 90.0]


@pytest.mark.behaviour("40-grace")
async def test_a_member_that_thinks_is_not_dropped_by_the_grace_period(ledger: Ledger) -> None:
    watch = SeatWatch()
    assert (await call(ledger, replace(step(), watch=watch), Slow("one", "", 1), timeout=lambda name: 120.0)).ok
    assert watch.has_output


# Waits


@pytest.mark.behaviour("40-wait-longer-than-the-time-left")
@pytest.mark.parametrize(("kind", "state"), [("rate", "failed(rate)"), ("overload", "failed(overload)")])
async def test_a_wait_longer_than_the_remaining_time_ends_at_once_with_its_own_state(
    ledger: Ledger, kind: str, state: str
) -> None:
    member = answering("one", fault(kind, retry_after=60.0))
    outcome = await call(ledger, step(), member, timeout=lambda name: 20.0)
    assert (outcome.state, outcome.attempts) == (state, 1)
    assert outcome.seconds < 10.0


@pytest.mark.behaviour("40-wait-longer-than-the-time-left")
async def test_a_wait_longer_than_the_remaining_time_leads_to_the_fallback_at_once(ledger: Ledger) -> None:
    one, two = answering("one", fault("rate", retry_after=25.0)), answering("two", "Tabs.")
    outcome = await call(ledger, step("one", "two"), one, two, timeout=lambda name: 20.0)
    assert (outcome.served_by, outcome.attempts, len(one.calls)) == ("two", 2, 1)
    assert outcome.seconds < 10.0
    assert events_of(ledger, ev.Attempted)[-1].why == "fallback: one failed(rate)"


async def test_a_backoff_longer_than_the_remaining_time_leads_to_the_fallback(ledger: Ledger) -> None:
    one, two = answering("one", fault("overload")), answering("two", "Tabs.")
    one.backoff = 60.0
    assert (await call(ledger, step("one", "two"), one, two)).served_by == "two"


@pytest.mark.parametrize("first", ["hangs", "waits"])
async def test_a_recorded_timeout_decision_is_replayed_on_resume(
    ledger: Ledger, store: SqliteStore, first: str
) -> None:
    one = Silent("one", 400) if first == "hangs" else answering("one", fault("rate", retry_after=25.0))
    await interrupt(
        ledger, step("one", "two"), Hanging("two"), one, timeout=lambda name: 400.0 if first == "hangs" else 20.0
    )
    reloaded = await reload_ledger(store)
    one, two = answering("one", "never"), answering("two", "Tabs.")
    outcome = await call(reloaded, step("one", "two"), one, two, timeout=lambda name: 600.0)
    assert (outcome.served_by, one.calls, len(two.calls)) == ("two", [], 1)
    assert reloaded.attempts(KEY)[0].result is not None
    assert reloaded.calls == {"made": 3, "replayed": 0, "in_doubt": 1}
