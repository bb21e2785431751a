"""Limits that the retry loop enforces on every member: the bytes of an answer, the deadline, and valid usage."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from council import events as ev
from council.calling.answer_check import MIN_ANSWER_LIMIT_BYTES, AnswerSize
from council.engine.ledger import Ledger
from council.errors import Fault
from council.members.base import OnDelta
from council.members.wires.http import ByteLimits
from council.types import Answer, Usage
from tests.calling.helpers import answering, call, events_of, step
from tests.fake_clock import skip
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.floods import endless_comments, endless_events, endless_json, endless_line
from tests.fakes.members import seated
from tests.run_session import FunctionMember, make_ask

pytestmark = pytest.mark.anyio
LONG = "".join(f"{n} " for n in range(60_000))  # over the limit, without repetition
HUGE = ByteLimits(body=2**40, stream=2**40, line=2**40)


@pytest.mark.parametrize(("cap", "limit"), [(None, 262_144), (8192, 262_144), (100_000, 400_000)])
def test_an_answer_may_have_four_bytes_per_token_of_its_cap(cap: int | None, limit: int) -> None:
    size = AnswerSize(cap)
    assert size.limit == limit
    size.add("é" * (limit // 2))
    with pytest.raises(Fault, match="the answer is longer than") as caught:
        size.add("e")
    assert caught.value.kind == "flood"


@pytest.mark.behaviour("14-byte-limits")
async def test_an_answer_over_its_limit_is_not_retried_and_the_fallback_answers(ledger: Ledger) -> None:
    one, two = answering("one", LONG), answering("two", "Tabs.")
    outcome = await call(ledger, step("one", "two"), one, two)
    assert (outcome.text, outcome.served_by, len(one.calls)) == ("Tabs.", "two", 1)
    (faulted,) = events_of(ledger, ev.Faulted)
    assert (faulted.kind, faulted.detail) == ("flood", "the answer is longer than 256 KB")
    assert LONG[:1000] not in str(ledger.attempts("draft/alpha")[0].result)  # the text is not stored


@pytest.mark.behaviour("14-byte-limits")
async def test_an_endless_stream_is_stopped_at_the_limit_of_the_answer(ledger: Ledger, provider: FakeProvider) -> None:
    provider.always("m1", endless_events())
    heard: list[ev.Entry] = []
    ledger.on_event = heard.append
    member = seated(provider, "openai", limits=HUGE)
    outcome = await call(ledger, step("openai:m1"), member)
    await member.close()
    assert (outcome.state, outcome.reason) == ("failed(flood)", "the answer is longer than 256 KB")
    assert len(provider.log) == 1
    shown = sum(len(entry.event.text) for entry in heard if isinstance(entry.event, ev.Delta))
    assert shown <= MIN_ANSWER_LIMIT_BYTES


async def test_a_longer_answer_is_allowed_with_a_larger_cap(ledger: Ledger) -> None:
    asked = replace(make_ask("draft/alpha"), max_tokens=200_000)
    assert (await call(ledger, step(ask=asked), answering("one", LONG))).ok


async def test_a_persons_answer_has_no_limit(ledger: Ledger) -> None:
    assert (await call(ledger, step(), answering("one", Answer(LONG, "spoken")))).ok


# Deadline


class Unyielding(FunctionMember):
    """Member whose stream never waits, so that the event loop cannot run its timeouts."""

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        skip(20.0)  # more than its timeout
        for n in range(100):
            on_delta(f"{n} ")
        return Answer("too late")


@pytest.mark.behaviour("14-deadline-with-data")
async def test_a_stream_that_never_yields_to_the_event_loop_ends_at_its_deadline(ledger: Ledger) -> None:
    outcome = await call(ledger, step(), Unyielding("one", str))
    assert (outcome.state, outcome.reason, outcome.attempts) == ("timed_out", "no answer within 10 s", 1)


@pytest.mark.behaviour("14-deadline-with-data")
@pytest.mark.parametrize("reply", [endless_json(), endless_comments(), endless_line()])
async def test_an_endless_response_ends_at_the_deadline_without_other_limits(
    ledger: Ledger, provider: FakeProvider, reply: Reply
) -> None:
    provider.always("m1", reply if reply.raw is None else replace(reply, drip=0.001, flood=reply.flood[:4000]))
    member = seated(provider, "openai", limits=HUGE)
    start = asyncio.get_running_loop().time()
    outcome = await call(ledger, step("openai:m1"), member, timeout=lambda member: 0.3)
    took = asyncio.get_running_loop().time() - start
    await member.close()
    assert (outcome.state, outcome.reason) == ("timed_out", "no answer within 0.3 s")
    assert took < 1.3


# Usage


@pytest.mark.behaviour("14-usage-validated")
@pytest.mark.parametrize("value", [10**19, -5, float("nan"), "12", 3.0, True, None, [3]])
async def test_invalid_usage_of_any_member_is_unknown(ledger: Ledger, value: Any) -> None:
    for usage in (Usage(value, 5), Usage(7, value), Usage(7, 5, value), Usage(7, 5, 0, True, value)):
        checked = usage.validated()
        assert (checked.known, checked.input in (0, 7), checked.output in (0, 5)) == (False, True, True)
    outcome = await call(ledger, step(), answering("one", Answer("Tabs.", usage=Usage(value, 5))))
    assert (outcome.ok, outcome.usage) == (True, Usage(0, 5, known=False))
