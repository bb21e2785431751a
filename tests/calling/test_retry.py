"""Retry loop: the fault table, fallbacks, deadlines and resumed steps."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from council import events as ev
from council.calling.fault_table import FAULT_TABLE
from council.engine.ledger import Ledger
from council.errors import Fault
from council.store.sqlite import SqliteStore
from council.types import Answer, Ask, Usage
from tests.calling.helpers import KEY, RUN, Hanging, answering, call, events_of, fault, interrupt, reload_ledger, step
from tests.fake_provider import FakeProvider
from tests.fakes.members import KINDS, seated
from tests.run_session import FunctionMember, make_ask

pytestmark = pytest.mark.anyio


def read_tabs(text: str) -> str:
    """Read a reply that has to be "Tabs."."""
    if text != "Tabs.":
        raise Fault("schema", "it is not Tabs.", said=text)
    return text


# The table


@pytest.mark.behaviour("40-retry-table")
@pytest.mark.parametrize("kind", [kind for kind in FAULT_TABLE if kind != "doubt"])
async def test_a_failing_member_is_retried_as_the_table_prescribes(ledger: Ledger, kind: str) -> None:
    member = answering("one", fault(kind))
    outcome = await call(ledger, step(), member)
    row = FAULT_TABLE[kind]
    assert len(member.calls) == 1 + row.retries
    assert (outcome.state, outcome.ok, outcome.attempts) == (row.state, False, 1 + row.retries)
    assert outcome.reason == f"a {kind} fault"
    assert [event.kind for event in events_of(ledger, ev.Faulted)] == [kind] * (1 + row.retries)


@pytest.mark.behaviour("40-retry-table")
def test_the_table_matches_the_specification() -> None:
    spec = {
        "net": (4, "failed(net)"), "rate": (6, "failed(rate)"), "quota": (0, "failed(quota)"),
        "overload": (6, "failed(overload)"), "server": (2, "failed(server)"), "cut": (1, "in_doubt"),
        "stall": (1, "timed_out"), "empty": (1, "degenerate"), "length": (1, "truncated"), "refused": (0, "refused"),
        "schema": (1, "failed(schema)"), "model": (0, "failed(model)"), "auth": (0, "failed(auth)"),
        "parameter": (1, "failed(parameter)"), "endpoint": (0, "failed(endpoint)"),
        "flood": (0, "failed(flood)"),
    }  # fmt: skip
    assert {kind: (FAULT_TABLE[kind].retries, FAULT_TABLE[kind].state) for kind in spec} == spec


@pytest.mark.parametrize("kind", [kind for kind in FAULT_TABLE if FAULT_TABLE[kind].retries])
async def test_a_member_that_recovers_on_its_last_retry_is_ok(ledger: Ledger, kind: str) -> None:
    member = answering("one", *[fault(kind)] * FAULT_TABLE[kind].retries, "Tabs.")
    outcome = await call(ledger, step(), member)
    assert (outcome.ok, outcome.text, outcome.served_by) == (True, "Tabs.", "one")
    assert outcome.attempts == 1 + FAULT_TABLE[kind].retries


async def test_retries_are_counted_per_kind_of_fault(ledger: Ledger) -> None:
    member = answering("one", fault("server"), fault("net"), fault("server"), fault("net"), "Tabs.")
    assert (await call(ledger, step(), member)).attempts == 5


@pytest.mark.parametrize(("kind", "finish"), [("refused", "refused"), ("length", "length")])
async def test_a_bad_finish_reason_is_a_fault(ledger: Ledger, kind: str, finish: str) -> None:
    outcome = await call(ledger, step(), answering("one", Answer("so far", finish)))
    assert (outcome.state, outcome.text) == (FAULT_TABLE[kind].state, "")


@pytest.mark.parametrize("text", ["", "  \n"])
async def test_an_empty_answer_is_retried_at_another_temperature(ledger: Ledger, text: str) -> None:
    seen: list[Ask] = []

    class Noting(FunctionMember):
        def prepare(self, ask: Ask) -> bytes:
            seen.append(ask)
            return super().prepare(ask)

    assert (await call(ledger, step(), Noting("one", lambda key: text))).state == "degenerate"
    assert [ask.temperature for ask in seen] == [None, 0.7]


@pytest.mark.parametrize(("cap", "doubled"), [(None, 16384), (600, 1200)])
async def test_a_truncated_typed_answer_is_retried_at_twice_the_length(
    ledger: Ledger, cap: int | None, doubled: int
) -> None:
    seen: list[int | None] = []

    class Noting(FunctionMember):
        def prepare(self, ask: Ask) -> bytes:
            seen.append(ask.max_tokens)
            return super().prepare(ask)

    ask = make_ask(KEY, schema={"type": "object"}, max_tokens=cap)
    outcome = await call(ledger, step(ask=ask), Noting("one", lambda key: Answer('{"half', "length")))
    assert (outcome.state, seen) == ("truncated", [cap, doubled])


async def test_free_text_at_its_intended_cap_counts(ledger: Ledger) -> None:
    outcome = await call(ledger, step(ask=make_ask(KEY, max_tokens=200)), answering("one", Answer("So far", "length")))
    assert (outcome.state, outcome.text) == ("ok", "So far")


@pytest.mark.behaviour("40-optional-parameters-are-dropped")
async def test_a_refused_parameter_is_retried_without_optional_parameters(ledger: Ledger) -> None:
    seen: list[Ask] = []

    class Noting(FunctionMember):
        def prepare(self, ask: Ask) -> bytes:
            seen.append(ask)
            return super().prepare(ask)

    left = [fault("parameter"), "Tabs."]
    full = make_ask(KEY, temperature=0.2, max_tokens=600, effort="high")
    outcome = await call(ledger, step(ask=full), Noting("one", lambda key: left.pop(0)))
    assert (outcome.state, seen[0]) == ("ok", full)
    assert seen[-1] == replace(full, temperature=None, max_tokens=None, effort=None, bare=True)
    assert events_of(ledger, ev.Attempted)[-1].why == "retry: without optional parameters"


@pytest.mark.behaviour("40-repair-turn")
async def test_a_reply_that_fails_its_schema_gets_one_repair_turn(ledger: Ledger) -> None:
    def read(text: str) -> None:
        if text != "good":
            raise Fault("schema", "it is bad", said=text)

    member = answering("one", "bad", "good")
    outcome = await call(ledger, step(read=read), member)
    assert (outcome.state, outcome.text, outcome.attempts) == ("ok_repaired", "good", 2)
    asked, repair = json.loads(member.calls[1]["body"])["messages"]
    assert (asked, repair["content"]) == (make_ask(KEY).messages[0], "bad → it is bad")
    assert [event.why for event in events_of(ledger, ev.Attempted)] == [
        "",
        "repair: the reply did not match its schema",
    ]
    twice = await call(ledger, replace(step(read=read), ask=make_ask("improve/alpha")), answering("one", "bad"))
    assert (twice.state, twice.reason) == ("failed(schema)", "it is bad")


async def test_usage_of_rejected_answers_is_counted(ledger: Ledger) -> None:
    member = answering("one", Answer("", usage=Usage(10, 1)), Answer("Tabs.", usage=Usage(10, 5, 2)))
    assert (await call(ledger, step(), member)).usage == Usage(20, 6, 2)


# Waiting


@pytest.mark.parametrize(
    ("kind", "retry_after", "waits"),
    [("server", None, True), ("rate", 0.0, False), ("cut", None, False), ("stall", None, False)],
)
async def test_some_faults_back_off_before_the_next_attempt(
    ledger: Ledger, kind: str, retry_after: float | None, waits: bool
) -> None:
    member = answering("one", fault(kind, retry_after=retry_after), "Tabs.")
    member.backoff = 0.002
    await call(ledger, step(), member)
    (event,) = events_of(ledger, ev.Faulted)
    assert event.wait is not None
    assert (event.wait > 0) is waits
    assert event.wait <= 0.002


async def test_retry_after_is_followed_up_to_the_maximum_wait(ledger: Ledger) -> None:
    member = answering("one", fault("rate", retry_after=3600.0))
    faulted = asyncio.Event()
    ledger.on_event = lambda entry: faulted.set() if isinstance(entry.event, ev.Faulted) else None
    task = asyncio.ensure_future(call(ledger, step(), member, timeout=lambda name: 7200.0))
    await faulted.wait()
    task.cancel()
    (event,) = events_of(ledger, ev.Faulted)
    assert event.wait == 30.0


# Fallbacks


@pytest.mark.behaviour("000-model-fallback")
async def test_a_fallback_is_asked_when_the_requested_member_fails(ledger: Ledger) -> None:
    one, two = answering("one", fault("server")), answering("two", "Tabs.")
    outcome = await call(ledger, step("one", "two"), one, two)
    assert (outcome.ok, outcome.served_by, outcome.attempts) == (True, "two", 4)
    assert events_of(ledger, ev.Attempted)[-1].why == "fallback: one failed(server)"


async def test_the_seat_keeps_the_state_of_the_requested_member(ledger: Ledger) -> None:
    members = (answering("one", fault("quota")), answering("two", fault("net")), answering("three", fault("auth")))
    outcome = await call(ledger, step("one", "two", "three"), *members)
    assert outcome.state == "failed(quota)"
    assert outcome.reason == "a quota fault; then two: a net fault; then three: a auth fault"


@pytest.mark.behaviour("000-model-fallback")
async def test_a_refusal_leads_to_the_fallback(ledger: Ledger) -> None:
    outcome = await call(
        ledger, step("one", "two"), answering("one", Answer("no", "refused")), answering("two", "Tabs.")
    )
    assert (outcome.state, outcome.served_by) == ("ok", "two")


# Streams


async def test_streamed_text_of_a_failed_attempt_is_discarded(ledger: Ledger, store: SqliteStore) -> None:
    class Streaming(FunctionMember):
        async def send(self, body: bytes, hear: Any) -> Answer:
            hear("half an ans")
            return await super().send(body, hear)

    await call(ledger, step(), Streaming("one", lambda key: fault("cut")))
    await store.list_runs()
    assert store._db.execute("SELECT * FROM live_parts").fetchall() == []


@pytest.mark.parametrize("text", ["a\ud83d", "\ud83d\ude42"])
async def test_lone_surrogates_are_stored_safely(ledger: Ledger, store: SqliteStore, text: str) -> None:
    outcome = await call(ledger, step(), answering("one", Fault("server", text, said=text), text))
    assert outcome.text.encode()
    kept = (await store.load(RUN)).attempts[KEY]
    assert kept[-1].result == ledger.attempts(KEY)[-1].result
    await store.write(RUN, [])  # no queued write has failed


# Resuming in another process


@pytest.mark.behaviour("40-committed-never-bought-again")
async def test_a_stored_answer_is_not_requested_again(ledger: Ledger, store: SqliteStore) -> None:
    first = await call(ledger, step(), answering("one", fault("server"), Answer("Tabs.", usage=Usage(5, 1))))
    reloaded = await reload_ledger(store)
    never = answering("one", "never")
    second = await call(reloaded, step(), never)
    assert never.calls == []
    assert replace(second, seconds=0) == replace(first, seconds=0)
    assert reloaded.calls == {"made": 2, "replayed": 0, "in_doubt": 0}


@pytest.mark.behaviour("40-resume-byte-identical")
async def test_a_request_in_doubt_is_resent_byte_for_byte(ledger: Ledger, store: SqliteStore) -> None:
    dead = Hanging("one", fault("server"))
    await interrupt(ledger, step(), dead)
    reloaded = await reload_ledger(store)
    changed = replace(step(), ask=replace(make_ask(KEY), messages=({"role": "user", "content": "other bytes"},)))
    member = answering("one", "Tabs.")
    outcome = await call(reloaded, changed, member)
    assert member.calls[0]["body"] == dead.calls[-1]["body"]
    assert (outcome.text, outcome.attempts) == ("Tabs.", 3)
    assert reloaded.calls == {"made": 3, "replayed": 0, "in_doubt": 1}
    (attempted,) = [event for event in events_of(reloaded, ev.Attempted) if event.n == 3]
    assert attempted.why == "resent: the process stopped before the answer was stored"


@pytest.mark.behaviour("18-responses-wire")
async def test_a_request_stored_for_the_chat_wire_is_resent_to_it_after_the_wire_has_changed(
    provider: FakeProvider, ledger: Ledger, store: SqliteStore
) -> None:
    gate, chat = provider.hold(nth=1), seated(provider, "openai")
    task = asyncio.ensure_future(call(ledger, step("openai:m1"), chat))
    await asyncio.to_thread(gate.wait)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await chat.close()
    gate.release()
    responses = KINDS["openai-responses"](
        "openai:m1", base_url=provider.base_url, model="m1", api_key=None, vendor="sim"
    )
    outcome = await call(await reload_ledger(store), step("openai:m1"), responses)
    await responses.close()
    first, second = provider.log
    assert (outcome.state, first.raw == second.raw, second.path) == ("ok", True, "/v1/chat/completions")


async def test_an_interrupted_step_continues_where_it_stopped(ledger: Ledger, store: SqliteStore) -> None:
    await interrupt(ledger, step(), Hanging("one", fault("server"), fault("server")))
    reloaded = await reload_ledger(store)
    member = answering("one", fault("server"))
    assert (await call(reloaded, step(), member)).state == "failed(server)"
    assert len(member.calls) == 1  # two of the three attempts were used before


async def test_a_fallback_is_replayed_as_the_fallbacks_answer(ledger: Ledger, store: SqliteStore) -> None:
    first = await call(ledger, step("one", "two"), answering("one", fault("auth")), answering("two", "Tabs."))
    reloaded = await reload_ledger(store)
    one, two = answering("one", "never"), answering("two", "never")
    second = await call(reloaded, step("one", "two"), one, two)
    assert (one.calls, two.calls) == ([], [])
    assert (second.text, second.served_by) == (first.text, first.served_by) == ("Tabs.", "two")


async def test_a_request_in_doubt_after_a_fallback_goes_to_the_fallback(ledger: Ledger, store: SqliteStore) -> None:
    await interrupt(ledger, step("one", "two"), Hanging("two"), answering("one", fault("auth")))
    reloaded = await reload_ledger(store)
    one, two = answering("one", "never"), answering("two", "Tabs.")
    assert (await call(reloaded, step("one", "two"), one, two)).served_by == "two"
    assert (len(one.calls), len(two.calls)) == (0, 1)


async def test_replaying_known_faults_does_not_wait_again(ledger: Ledger, store: SqliteStore) -> None:
    await interrupt(ledger, step(), Hanging("one", fault("server"), fault("server")))
    reloaded = await reload_ledger(store)
    member = answering("one", "Tabs.")
    member.backoff = 60.0
    outcome = await call(reloaded, step(), member, timeout=lambda name: 5.0)
    assert outcome.state == "ok"


async def test_a_step_that_was_given_up_starts_again(ledger: Ledger, store: SqliteStore) -> None:
    await call(ledger, step("one", "two"), answering("one", fault("server")), answering("two", fault("auth")))
    reloaded = await reload_ledger(store)
    one, two = answering("one", fault("server"), fault("server"), "Tabs."), answering("two", "never")
    outcome = await call(reloaded, step("one", "two"), one, two)
    assert (outcome.state, outcome.served_by, outcome.attempts) == ("ok", "one", 7)
    assert reloaded.calls == {"made": 7, "replayed": 0, "in_doubt": 0}


@pytest.mark.behaviour("40-rejected-answer-never-bought-again")
async def test_a_step_that_starts_again_sends_only_what_got_no_answer(ledger: Ledger, store: SqliteStore) -> None:
    """The answer was unreadable, and its repair turn failed without an answer."""
    fits = make_ask(KEY, schema={"type": "object"})
    first = answering("one", "not that", fault("auth"))
    assert (await call(ledger, step(read=read_tabs, ask=fits), first)).state == "failed(auth)"
    again = answering("one", "Tabs.")
    outcome = await call(await reload_ledger(store), step(read=read_tabs, ask=fits), again)
    assert (outcome.state, outcome.text) == ("ok_repaired", "Tabs.")
    assert [sent["body"] for sent in again.calls] == [first.calls[1]["body"]]


@pytest.mark.behaviour("40-rejected-answer-never-bought-again")
async def test_a_fallback_that_refused_is_not_asked_again_when_the_step_starts_again(
    ledger: Ledger, store: SqliteStore
) -> None:
    refusing = answering("two", Answer("no", "refused"))
    assert (await call(ledger, step("one", "two"), answering("one", fault("auth")), refusing)).state == "failed(auth)"
    down, never = answering("one", fault("auth")), answering("two", "never")
    assert (await call(await reload_ledger(store), step("one", "two"), down, never)).state == "failed(auth)"
    outcome = await call(await reload_ledger(store), step("one", "two"), answering("one", "Tabs."), never)
    assert (outcome.text, outcome.served_by, len(down.calls), never.calls) == ("Tabs.", "one", 1, [])


@pytest.mark.behaviour("40-rejected-answer-never-bought-again")
async def test_answers_of_several_resumes_are_used_in_their_order(ledger: Ledger, store: SqliteStore) -> None:
    """Each process gets one step further: an unreadable answer, failures, an unreadable repair turn of a fallback."""
    fits = make_ask(KEY, schema={"type": "object"})
    asked = partial(step, "one", "two", read=read_tabs, ask=fits)
    await call(ledger, asked(), answering("one", "not that", fault("auth")), answering("two", fault("quota")))
    down = [answering(name, fault("auth")) for name in ("one", "two")]
    await call(await reload_ledger(store), asked(), *down)
    await call(await reload_ledger(store), asked(), answering("one", "nor that"), answering("two", fault("auth")))
    one, two = answering("one", "never"), answering("two", "Tabs.")
    outcome = await call(await reload_ledger(store), asked(), one, two)
    assert (outcome.text, outcome.served_by, one.calls, len(two.calls)) == ("Tabs.", "two", [], 1)


@pytest.mark.behaviour("40-no-resend")
async def test_no_resend_leaves_a_seat_in_doubt_also_when_it_is_resumed_again(
    ledger: Ledger, store: SqliteStore
) -> None:
    await call(ledger, step(), answering("one", fault("cut")), resend=False)
    again = answering("one", "never")
    outcome = await call(await reload_ledger(store), step(), again, resend=False)
    assert (outcome.state, again.calls) == ("in_doubt", [])


async def test_a_timed_out_seat_is_asked_again(ledger: Ledger, store: SqliteStore) -> None:
    hanging = FunctionMember("one", lambda key: asyncio.Event().wait())
    await call(ledger, step(), hanging, timeout=lambda name: 0.4)
    reloaded = await reload_ledger(store)
    assert (await call(reloaded, step(), answering("one", "Tabs."))).text == "Tabs."
    assert reloaded.calls["in_doubt"] == 0


@pytest.mark.behaviour("40-no-resend")
async def test_no_resend_leaves_the_seat_in_doubt_and_sends_nothing(ledger: Ledger, store: SqliteStore) -> None:
    await interrupt(ledger, step("one", "two"), Hanging("one"))
    reloaded = await reload_ledger(store)
    one, two = answering("one", "never"), answering("two", "never")
    outcome = await call(reloaded, step("one", "two"), one, two, resend=False)
    assert (outcome.state, one.calls, two.calls) == ("in_doubt", [], [])
    assert "--no-resend is set" in outcome.reason
    assert reloaded.calls == {"made": 1, "replayed": 0, "in_doubt": 1}


@pytest.mark.behaviour("40-no-resend")
@pytest.mark.parametrize("chain", [("one",), ("one", "two")])
async def test_a_seat_left_in_doubt_can_be_asked_later(
    ledger: Ledger, store: SqliteStore, chain: tuple[str, ...]
) -> None:
    await interrupt(ledger, step(*chain), Hanging("one"))
    await call(
        await reload_ledger(store), step(*chain), answering("one", "never"), answering("two", "never"), resend=False
    )
    one, two = answering("one", "Tabs."), answering("two", "never")
    outcome = await call(await reload_ledger(store), step(*chain), one, two)
    assert (outcome.text, outcome.served_by, len(one.calls), two.calls) == ("Tabs.", "one", 1, [])


@pytest.mark.behaviour("40-no-resend")
async def test_no_resend_also_applies_within_a_run_to_requests_that_may_be_billed(ledger: Ledger) -> None:
    member = answering("one", fault("cut"), "never")
    outcome = await call(ledger, step(), member, resend=False)
    assert (outcome.state, len(member.calls)) == ("in_doubt", 1)
