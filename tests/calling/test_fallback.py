"""Fallback policy."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from council import events as ev
from council.calling.fallback import FallbackPolicy
from council.calling.retry import Caller
from council.engine.ledger import Ledger
from council.store.sqlite import SqliteStore
from council.types import Outcome, Step
from tests.calling.helpers import Hanging, answering, call, events_of, fault, interrupt, reload_ledger, step, unpriced
from tests.fake_clock import skip
from tests.run_session import FunctionMember, make_ask

pytestmark = pytest.mark.anyio
VOTERS = {"alpha": "a", "beta": "b", "gamma": "c"}


def of(vendor: str, *answers: Any, name: str = "") -> FunctionMember:
    member = answering(name or f"{vendor}:m", *answers)
    member.vendor = vendor
    return member


def asked(seat: str, *vendors: str, phase: str = "draft") -> Step:
    names = [vendor if ":" in vendor else f"{vendor}:m" for vendor in vendors]
    return replace(step(*names, ask=make_ask(f"{phase}/{seat}")), seat=seat)


def caller(ledger: Ledger, *members: FunctionMember) -> Caller:
    by_name = {member.name: member for member in members}
    return Caller(by_name.__getitem__, ledger, unpriced(ledger), lambda name: 10.0, fallbacks=FallbackPolicy(VOTERS))


async def all_at_once(carry_out: Caller, *steps: Step) -> dict[str, Outcome]:
    outcomes = await asyncio.gather(*map(carry_out, steps))
    return {one.seat: outcome for one, outcome in zip(steps, outcomes, strict=True)}


def served(outcomes: dict[str, Outcome]) -> dict[str, str]:
    return {seat: outcome.served_by.partition(":")[0] for seat, outcome in outcomes.items()}


@pytest.mark.behaviour("40-fallback-families")
async def test_a_fallback_of_an_unused_vendor_is_preferred(ledger: Ledger) -> None:
    carry_out = caller(ledger, of("a", fault("auth")), of("b", "B."), of("c", "C."), of("d", "D."))
    outcomes = await all_at_once(carry_out, asked("alpha", "a", "b", "c", "d"), asked("beta", "b"), asked("gamma", "c"))
    assert served(outcomes) == {"alpha": "d", "beta": "b", "gamma": "c"}


@pytest.mark.behaviour("40-fallback-families")
async def test_two_failed_seats_get_fallbacks_of_different_vendors(ledger: Ledger) -> None:
    down = (of("a", fault("quota")), of("b", fault("quota")))
    carry_out = caller(ledger, *down, of("c", "C."), of("d", "D."), of("e", "E."))
    outcomes = await all_at_once(
        carry_out, asked("alpha", "a", "d", "e", "c", "b"), asked("beta", "b", "d", "e", "c", "a"), asked("gamma", "c")
    )
    assert served(outcomes) == {"alpha": "d", "beta": "e", "gamma": "c"}


@pytest.mark.behaviour("40-fallback-families")
async def test_without_an_unused_vendor_seats_share_one_that_answers(ledger: Ledger) -> None:
    down = (of("a", fault("quota")), of("b", fault("quota")))
    carry_out = caller(ledger, *down, of("c", "C."))
    outcomes = await all_at_once(
        carry_out, asked("alpha", "a", "b", "c"), asked("beta", "b", "a", "c"), asked("gamma", "c")
    )
    assert served(outcomes) == {"alpha": "c", "beta": "c", "gamma": "c"}


@pytest.mark.behaviour("40-fallback-families")
async def test_a_vendor_that_is_down_is_tried_last(ledger: Ledger) -> None:
    one, two = of("a", fault("quota")), of("b", fault("quota"))
    carry_out = caller(ledger, one, two, of("c", "C."), of("d", "D."))
    await carry_out(asked("alpha", "a", "d"))
    outcome = await carry_out(asked("beta", "b", "a", "d", "c"))
    assert (outcome.served_by, len(one.calls)) == ("d:m", 1)  # alpha released a, but a is down


@pytest.mark.behaviour("40-fallback-families")
async def test_the_chair_does_not_occupy_a_vendor(ledger: Ledger) -> None:
    carry_out = caller(ledger, of("a", fault("quota")), of("b", "B."), of("c", "C."), of("d", "D."))
    chair = await carry_out(asked("chair", "a", "b", "d", phase="triage"))
    outcome = await carry_out(asked("alpha", "a", "b", "d"))
    assert (chair.served_by, outcome.served_by) == ("d:m", "d:m")


async def test_a_fault_of_the_answer_does_not_mark_the_vendor_as_down(ledger: Ledger) -> None:
    carry_out = caller(ledger, of("a", fault("refused"), "A."), of("b", "B."), of("d", "D."))
    await carry_out(asked("alpha", "a", "d"))
    assert carry_out.fallbacks.down_vendors == set()


async def test_a_vendor_that_answers_is_no_longer_down(ledger: Ledger) -> None:
    carry_out = caller(ledger, of("a", *[fault("server")] * 3, "A."), of("d", "D."))
    await carry_out(asked("alpha", "a", "d"))
    assert carry_out.fallbacks.down_vendors == {"a"}
    await carry_out(asked("alpha", "a", "d", phase="improve"))
    assert carry_out.fallbacks.down_vendors == set()


@pytest.mark.behaviour("18-retired-models")
async def test_a_model_that_does_not_exist_is_not_asked_by_another_seat(ledger: Ledger) -> None:
    gone, other = of("a", fault("model")), of("b", "B.")
    carry_out = caller(ledger, gone, other)
    await carry_out(asked("alpha", "a", "b"))
    outcome = await carry_out(asked("beta", "a", "b"))
    assert (outcome.served_by, len(gone.calls), len(other.calls)) == ("b:m", 1, 2)


@pytest.mark.behaviour("40-hung-seat-costs-its-clock-once")
@pytest.mark.parametrize("kind", ["auth", "quota", "model", "endpoint"])
async def test_an_excluded_member_is_not_asked_again_by_its_seat(ledger: Ledger, kind: str) -> None:
    one = of("a", fault(kind))
    carry_out = caller(ledger, one, of("d", "D."))
    await carry_out(asked("alpha", "a", "d"))
    later = await carry_out(asked("alpha", "a", "d", phase="improve"))
    assert (later.served_by, later.attempts, len(one.calls)) == ("d:m", 1, 1)
    assert events_of(ledger, ev.Attempted)[-1].why == f"fallback: a:m failed({kind})"


@pytest.mark.behaviour("40-hung-seat-costs-its-clock-once")
async def test_a_hung_member_is_not_asked_again_in_later_phases(ledger: Ledger) -> None:
    async def hang(key: str) -> None:
        skip(200)
        await asyncio.Event().wait()

    one = FunctionMember("a:m", hang)
    carry_out = caller(ledger, one, of("d", "D."))
    carry_out.timeout = lambda name: 200.0
    first = await carry_out(asked("alpha", "a", "d"))
    later = await carry_out(asked("alpha", "a", "d", phase="improve"))
    assert (first.served_by, later.served_by, len(one.calls)) == ("d:m", "d:m", 1)


async def test_a_seat_without_members_fails_without_a_call(ledger: Ledger) -> None:
    one = of("a", fault("auth"))
    carry_out = caller(ledger, one)
    await carry_out(asked("alpha", "a"))
    later = await carry_out(asked("alpha", "a", phase="improve"))
    assert (later.state, later.attempts, len(one.calls)) == ("failed(auth)", 0, 1)
    assert later.reason == "excluded from this run after failed(auth)"


@pytest.mark.behaviour("40-fallback-families")
async def test_a_resumed_step_continues_with_the_member_asked_before(ledger: Ledger, store: SqliteStore) -> None:
    chain = step("a:m", "b:m", "d:m")
    last = Hanging("d:m")
    last.vendor = "d"
    families = FallbackPolicy({"alpha": "a", "beta": "b"})
    await interrupt(ledger, chain, last, of("a", fault("auth")), of("b", "never"), fallbacks=families)
    one, two, three = of("a", "never"), of("b", "never"), of("d", "D.")
    outcome = await call(await reload_ledger(store), chain, one, two, three)  # a new policy without history
    assert (outcome.served_by, one.calls, two.calls, len(three.calls)) == ("d:m", [], [], 1)


@pytest.mark.behaviour("40-fallback-families")
async def test_a_fallback_keeps_its_seat_in_later_phases(ledger: Ledger) -> None:
    one = of("a", *[fault("server")] * 3, "A.", *[fault("server")] * 3)
    carry_out = caller(ledger, one, of("d", "D."), of("e", "E."))
    carry_out.fallbacks.serving_vendors["beta"] = "d"  # beta uses d for now
    first = await carry_out(asked("alpha", "a", "d", "e"))
    carry_out.fallbacks.serving_vendors["beta"] = "b"
    one.answer = lambda key: fault("server")
    later = await carry_out(asked("alpha", "a", "d", "e", phase="improve"))
    assert (first.served_by, later.served_by) == ("e:m", "e:m")


@pytest.mark.behaviour("40-fallback-families", "40-hung-seat-costs-its-clock-once")
async def test_a_resumed_run_remembers_fallbacks_and_excluded_members(ledger: Ledger, store: SqliteStore) -> None:
    carry_out = caller(ledger, of("a", fault("quota")), of("d", "D."))
    drafted = asked("alpha", "a", "d")
    outcome = await carry_out(drafted)
    ledger.begin_step(drafted.ask.key, "print")
    ledger.accept_result(drafted.ask.key, outcome, ev.Noted("said", "alpha"))
    reloaded = await reload_ledger(store)
    families = FallbackPolicy.from_record(VOTERS, reloaded.record)
    assert families.exclusion_state("alpha", "a:m") == "failed(quota)"
    one, fallback = of("a", "never"), of("d", "D.")
    by_name = {"a:m": one, "d:m": fallback}
    resumed = Caller(by_name.__getitem__, reloaded, unpriced(reloaded), fallbacks=families)
    later = await resumed(asked("alpha", "a", "d", phase="improve"))
    assert (later.served_by, one.calls) == ("d:m", [])


async def test_an_absent_seat_is_asked_again_when_the_run_resumes(ledger: Ledger, store: SqliteStore) -> None:
    await caller(ledger, of("a", fault("auth")), of("d", fault("auth")))(asked("alpha", "a", "d"))
    families = FallbackPolicy.from_record(VOTERS, (await reload_ledger(store)).record)
    assert (families.excluded, families.last_member) == ({}, {})


async def test_a_member_that_answered_after_a_timeout_is_not_excluded_on_resume(
    ledger: Ledger, store: SqliteStore
) -> None:
    drafted = asked("alpha", "a", "d")
    outcome = await caller(ledger, of("a", fault("stall"), "A."))(drafted)
    ledger.begin_step(drafted.ask.key, "print")
    ledger.accept_result(drafted.ask.key, outcome, ev.Noted("said", "alpha"))
    families = FallbackPolicy.from_record(VOTERS, (await reload_ledger(store)).record)
    assert (families.excluded, families.last_member) == ({}, {"alpha": "a:m"})


def test_the_vendor_of_a_seat_whose_members_failed_is_free_for_other_seats() -> None:
    policy = FallbackPolicy(VOTERS)
    members = [of("a", "A."), of("d", "D.")]
    assert policy.choose("beta", members).name == "d:m"
    policy.release("alpha")
    assert policy.choose("beta", members).name == "a:m"


def test_a_seat_does_not_avoid_its_own_vendor() -> None:
    members = [of("b", "B."), of("a", "A.", name="a:other")]
    assert FallbackPolicy(VOTERS).choose("alpha", members).name == "a:other"


def test_a_model_that_answered_a_seat_is_not_missing_for_another() -> None:
    policy = FallbackPolicy(VOTERS)
    policy.exclude("alpha", "a:m", "failed(model)")
    assert policy.exclusion_state("beta", "a:m") == "failed(model)"
    policy.record_answer("gamma", of("a", "A."))
    assert policy.exclusion_state("beta", "a:m") is None
