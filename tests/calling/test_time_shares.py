"""Time shares of a seat's members: a silent member is replaced, a streaming one is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from council import events as ev
from council.engine.ledger import Ledger
from council.store.sqlite import SqliteStore
from council.types import Answer
from tests.calling.helpers import KEY, Hanging, answering, call, events_of, fault, interrupt, reload_ledger, step
from tests.fake_clock import settle, skip
from tests.run_session import FunctionMember

pytestmark = pytest.mark.anyio


def silent(name: str, share: float) -> FunctionMember:
    """Member that says nothing while the clock advances by its share of the time."""

    async def hang(key: str) -> None:
        skip(share)
        await asyncio.Event().wait()

    return FunctionMember(name, hang)


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


@pytest.mark.behaviour("40-silence-gives-way-to-the-fallback")
async def test_a_hung_member_is_replaced_by_its_fallback_at_half_time(ledger: Ledger) -> None:
    outcome = await call(
        ledger, step("one", "two"), silent("one", 200), answering("two", "Tabs."), timeout=lambda name: 400.0
    )
    assert (outcome.ok, outcome.served_by, outcome.attempts) == (True, "two", 2)
    assert 200 <= outcome.seconds < 400
    (event,) = events_of(ledger, ev.Faulted)
    assert (event.kind, event.detail, event.wait) == ("stall", "no output within 200 s", None)
    assert events_of(ledger, ev.Attempted)[-1].why == "fallback: one timed_out"


@pytest.mark.behaviour("40-silence-gives-way-to-the-fallback")
async def test_the_requested_member_has_half_of_the_time_and_fallbacks_share_the_rest(ledger: Ledger) -> None:
    members = (silent("one", 400), silent("two", 200), answering("three", "Tabs."))
    outcome = await call(ledger, step("one", "two", "three"), *members, timeout=lambda name: 800.0)
    assert outcome.served_by == "three"
    details = [event.detail for event in events_of(ledger, ev.Faulted)]
    assert details == ["no output within 400 s", "no output within 200 s"]


@pytest.mark.parametrize("piece", ["word ", ""])  # an empty piece is thinking
async def test_a_member_that_streams_or_thinks_keeps_the_seat_beyond_its_share(ledger: Ledger, piece: str) -> None:
    one, two = Slow("one", piece, 8), answering("two", "never")
    outcome = await call(ledger, step("one", "two"), one, two, timeout=lambda name: 700.0)
    assert (outcome.ok, outcome.served_by, two.calls) == (True, "one", [])


async def test_an_endless_stream_ends_at_the_seat_deadline(ledger: Ledger) -> None:
    one, two = Slow("one", "on and on ", 1000), answering("two", "never")
    outcome = await call(ledger, step("one", "two"), one, two, timeout=lambda name: 400.0)
    assert (outcome.state, two.calls) == ("timed_out", [])
    assert outcome.seconds < 800


async def test_a_member_without_a_fallback_has_all_the_time(ledger: Ledger) -> None:
    outcome = await call(ledger, step(), silent("one", 400), timeout=lambda name: 400.0)
    assert (outcome.state, outcome.reason) == ("timed_out", "no answer within 400 s")


async def test_a_member_that_streamed_and_failed_gets_a_new_share(ledger: Ledger) -> None:
    class Broken(Slow):
        async def send(self, body: bytes, hear: Any) -> Answer:
            self.pieces, is_second = 0, self.pieces == 0
            if is_second:
                skip(200)
                await asyncio.Event().wait()
            hear("half an ans")
            raise fault("cut")

    outcome = await call(
        ledger, step("one", "two"), Broken("one", "", 3), answering("two", "Tabs."), timeout=lambda name: 400.0
    )
    assert (outcome.served_by, outcome.attempts) == ("two", 3)
    assert [event.kind for event in events_of(ledger, ev.Faulted)] == ["cut", "stall"]


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
async def test_a_wait_longer_than_the_share_leads_to_the_fallback_at_once(ledger: Ledger) -> None:
    one, two = answering("one", fault("rate", retry_after=15.0)), answering("two", "Tabs.")
    outcome = await call(ledger, step("one", "two"), one, two, timeout=lambda name: 20.0)
    assert (outcome.served_by, outcome.attempts, len(one.calls)) == ("two", 2, 1)
    assert outcome.seconds < 10.0
    assert events_of(ledger, ev.Attempted)[-1].why == "fallback: one failed(rate)"


async def test_a_backoff_longer_than_the_share_leads_to_the_fallback(ledger: Ledger) -> None:
    one, two = answering("one", fault("overload")), answering("two", "Tabs.")
    one.backoff = 60.0
    assert (await call(ledger, step("one", "two"), one, two)).served_by == "two"


@pytest.mark.behaviour("40-silence-gives-way-to-the-fallback")
@pytest.mark.parametrize("first", ["hangs", "waits"])
async def test_a_recorded_timeout_decision_is_replayed_on_resume(
    ledger: Ledger, store: SqliteStore, first: str
) -> None:
    one = silent("one", 200) if first == "hangs" else answering("one", fault("rate", retry_after=15.0))
    await interrupt(
        ledger, step("one", "two"), Hanging("two"), one, timeout=lambda name: 400.0 if first == "hangs" else 20.0
    )
    reloaded = await reload_ledger(store)
    one, two = answering("one", "never"), answering("two", "Tabs.")
    outcome = await call(reloaded, step("one", "two"), one, two, timeout=lambda name: 600.0)
    assert (outcome.served_by, one.calls, len(two.calls)) == ("two", [], 1)
    assert reloaded.attempts(KEY)[0].result is not None
    assert reloaded.calls == {"made": 1, "replayed": 0, "in_doubt": 1}
