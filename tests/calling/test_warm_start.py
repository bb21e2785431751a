"""Warm start: one of several requests with a long common prefix fills the vendor's cache for the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from council.calling.concurrency import MAX_WARM_WAIT_S, WarmStart
from council.calling.retry import Caller
from council.engine.ledger import Ledger
from council.members.wires.wire import WireMember
from council.types import Ask, Outcome, Step
from tests.calling.helpers import step, unpriced
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.members import seated

pytestmark = pytest.mark.anyio
PACKET = "The packet: " + "line after line, " * 400  # about 2,270 tokens
SEATS = ("alpha", "beta", "gamma")
FIRST_EVENTS = 1500  # bytes of a stream with its start and at least one piece of text


def ask_of(seat: str, packet: str = PACKET, member: str = "anthropic:m1") -> Step:
    messages = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": f"{packet}You are {seat}."})
    return replace(step(member, ask=Ask(f"draft/{seat}", messages, shared=len(packet), cache_points=(0,))), seat=seat)


class Wave:
    """Three seats that ask one member at the same time."""

    def __init__(self, ledger: Ledger, member: WireMember, warm: WarmStart | None, packet: str = PACKET) -> None:
        caller = Caller(lambda name: member, ledger, unpriced(ledger), lambda name: 30.0, warm_start=warm)
        self.tasks = [asyncio.ensure_future(caller(ask_of(seat, packet, member.name))) for seat in SEATS]

    async def states(self) -> list[str]:
        done: list[Outcome] = await asyncio.gather(*self.tasks)
        return [outcome.state for outcome in done]

    def cancel(self) -> None:
        for task in self.tasks:
            task.cancel()


@pytest.fixture
async def member(provider: FakeProvider) -> AsyncIterator[WireMember]:
    member = seated(provider, "anthropic", prompt_cache=True)
    yield member
    await member.close()


@pytest.mark.behaviour("15-warm-start")
async def test_the_other_seats_follow_at_the_first_output_of_the_first(
    ledger: Ledger, provider: FakeProvider, member: WireMember
) -> None:
    provider.script("m1", Reply("word " * 100, stall=FIRST_EVENTS))
    gate = provider.hold(nth=1)
    wave = Wave(ledger, member, WarmStart(max_wait=60.0))
    await asyncio.to_thread(gate.wait)
    assert len(provider.log) == 1
    gate.release()
    done, _ = await asyncio.wait(wave.tasks[1:], timeout=20.0)
    assert {task.result().state for task in done} == {"ok"}
    assert not wave.tasks[0].done()  # it has only begun
    first, *others = provider.log
    assert ["written" in (seen.tokens or {}) for seen in (first, *others)] == [True, False, False]
    assert all((seen.tokens or {})["cached"] > 1500 for seen in others)
    wave.cancel()
    await asyncio.wait(wave.tasks)


@pytest.mark.behaviour("15-warm-start")
async def test_a_stuck_first_seat_does_not_hold_the_others(
    ledger: Ledger, provider: FakeProvider, member: WireMember
) -> None:
    provider.script("m1", Reply(hang=True))
    wave = Wave(ledger, member, WarmStart(max_wait=0.01))
    done, _ = await asyncio.wait(wave.tasks[1:], timeout=20.0)
    assert {task.result().state for task in done} == {"ok"}
    wave.cancel()
    await asyncio.wait(wave.tasks)
    assert 0 < MAX_WARM_WAIT_S <= 5


@pytest.mark.behaviour("15-warm-start")
@pytest.mark.parametrize("reply", [Reply(status=401), Reply(status=529), Reply(cut=0)])
async def test_the_others_start_when_the_first_request_fails(
    ledger: Ledger, provider: FakeProvider, member: WireMember, reply: Reply
) -> None:
    provider.script("m1", reply)
    states = await Wave(ledger, member, WarmStart(max_wait=60.0)).states()
    assert states[1:] == ["ok", "ok"]


@pytest.mark.behaviour("15-warm-start")
async def test_a_later_phase_with_a_known_prefix_starts_at_once(
    ledger: Ledger, provider: FakeProvider, member: WireMember
) -> None:
    warm = WarmStart(max_wait=60.0)
    assert await Wave(ledger, member, warm).states() == ["ok"] * 3
    gate = provider.hold()
    caller = Caller(lambda name: member, ledger, unpriced(ledger), lambda name: 30.0, warm_start=warm)
    steps = [replace(ask_of(seat), ask=replace(ask_of(seat).ask, key=f"r2/{seat}")) for seat in SEATS]
    tasks = [asyncio.ensure_future(caller(one)) for one in steps]
    assert len(await asyncio.to_thread(gate.wait, 20.0, 3)) == 3
    gate.release()
    await asyncio.gather(*tasks)


@pytest.mark.behaviour("15-warm-start")
@pytest.mark.parametrize(
    ("wire", "packet", "warm"),
    [
        ("anthropic", PACKET, None),  # --no-warm
        ("anthropic", "Short. ", WarmStart(max_wait=60.0)),
        ("openai", PACKET, WarmStart(max_wait=60.0)),  # an old model caches by itself, without a promise
        ("google", PACKET, WarmStart(max_wait=60.0)),
    ],
)
async def test_otherwise_all_seats_start_at_once(
    ledger: Ledger, provider: FakeProvider, wire: str, packet: str, warm: WarmStart | None
) -> None:
    member, gate = seated(provider, wire, prompt_cache=True), provider.hold()
    wave = Wave(ledger, member, warm, packet)
    assert len(await asyncio.to_thread(gate.wait, 20.0, 3)) == 3
    gate.release()
    assert await wave.states() == ["ok"] * 3
    await member.close()
