"""Answer checks: placeholders, loops, truncated and oversized replies."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from council import events as ev
from council.calling.answer_check import is_stub
from council.engine.ledger import Ledger
from council.errors import Fault
from council.store.sqlite import SqliteStore
from council.types import Answer, Outcome, Usage
from tests.calling.helpers import KEY, Hanging, answering, call, events_of, fault, interrupt, reload_ledger, step
from tests.run_session import FunctionMember, make_ask

pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object", "properties": {"verdict": {"enum": ["PASS", "FAIL"]}, "why": {"type": "string"}}}


def typed(ask: Any = None) -> Any:
    def read(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            raise Fault("schema", "no JSON", said=text) from None

    return step(read=read, ask=ask or make_ask(KEY, schema=SCHEMA))


# Stubs


@pytest.mark.behaviour("40-stub-answer")
@pytest.mark.parametrize(
    "text", ["...", "…", "TODO", "[TBD]", "N/A", "<your answer here>", "Insert answer here.", "---\n***", "!" * 5000]
)
def test_a_placeholder_is_a_stub(text: str) -> None:
    assert is_stub(text)


@pytest.mark.parametrize(
    "text",
    ["No.", "42", "Tabs", "The answer is no.", "Your answer rests on a wrong premise.", "None of them.", "好", "🙂",
     "TODO lists are overrated, and here is why.", "x" * 5000],
)  # fmt: skip
def test_a_short_answer_is_not_a_stub(text: str) -> None:
    assert not is_stub(text)


@pytest.mark.behaviour("40-stub-answer")
def test_a_typed_reply_is_a_stub_if_all_its_free_text_is() -> None:
    assert is_stub(json.loads('{"verdict": "PASS", "why": "string", "fix": "..."}'), SCHEMA)
    assert not is_stub(json.loads('{"verdict": "PASS", "why": "it holds", "fix": ""}'), SCHEMA)
    assert not is_stub(json.loads('{"verdict": "PASS", "why": ""}'), SCHEMA)  # one blank string is not enough
    assert not is_stub(json.loads('{"verdict": "PASS"}'), SCHEMA)


@pytest.mark.behaviour("40-stub-answer")
async def test_a_stub_is_retried_once_and_is_then_degenerate(ledger: Ledger) -> None:
    outcome = await call(ledger, step(), answering("one", "TODO"))
    assert (outcome.state, outcome.attempts) == ("degenerate", 2)
    assert [event.kind for event in events_of(ledger, ev.Faulted)] == ["stub", "stub"]
    assert events_of(ledger, ev.Attempted)[-1].why == "retry: the answer is a placeholder"


# Loops


class Looping(FunctionMember):
    """Member that streams the same words forever and counts them."""

    heard = 0

    async def send(self, body: bytes, hear: Any) -> Answer:
        self.calls.append({"body": body})
        while True:
            hear("and again ")
            self.heard += 1
            await asyncio.sleep(0)


@pytest.mark.behaviour("40-repetition-loop")
async def test_a_looping_stream_is_stopped_and_retried_once(ledger: Ledger) -> None:
    member = Looping("one", lambda key: "never")
    outcome = await call(ledger, step(), member)
    assert (outcome.state, outcome.attempts) == ("degenerate", 2)
    assert outcome.reason == 'the answer repeats itself: "and again"'
    assert member.heard < 2000


@pytest.mark.behaviour("40-repetition-loop")
async def test_a_loop_leads_to_the_fallback(ledger: Ledger) -> None:
    outcome = await call(ledger, step("one", "two"), Looping("one", lambda key: ""), answering("two", "Tabs."))
    assert (outcome.served_by, outcome.attempts) == ("two", 3)


@pytest.mark.behaviour("40-repetition-loop")
@pytest.mark.parametrize("finish", ["stop", "length"])
async def test_a_loop_in_an_unstreamed_answer_is_detected(ledger: Ledger, finish: str) -> None:
    outcome = await call(ledger, step(), answering("one", Answer("again and " * 900, finish), "Tabs."))
    assert (outcome.text, outcome.attempts) == ("Tabs.", 2)
    assert events_of(ledger, ev.Faulted)[0].kind == "loop"


# Cut at the length limit


WHOLE = '{"verdict": "PASS", "why": "it holds"}'


@pytest.mark.behaviour("40-truncated-counts-if-whole")
async def test_a_complete_truncated_reply_counts_after_one_retry(ledger: Ledger) -> None:
    member = answering("one", Answer(WHOLE, "length", Usage(10, 5)))
    outcome = await call(ledger, typed(), member)
    assert (outcome.state, outcome.ok, outcome.text) == ("truncated", True, WHOLE)
    assert (outcome.served_by, outcome.attempts, outcome.usage) == ("one", 2, Usage(20, 10))


@pytest.mark.behaviour("40-truncated-counts-if-whole")
@pytest.mark.parametrize("second", [fault("server"), fault("refused"), Answer('{"verd', "length")])
async def test_a_complete_reply_is_used_if_the_retry_fails(ledger: Ledger, second: Any) -> None:
    member = answering("one", Answer(WHOLE, "length"), second)
    outcome = await call(ledger, typed(), member)
    assert (outcome.state, outcome.text) == ("truncated", WHOLE)


@pytest.mark.behaviour("40-truncated-counts-if-whole")
async def test_a_complete_reply_is_used_if_the_retry_hangs(ledger: Ledger, store: SqliteStore) -> None:
    hanging = Hanging("one", Answer(WHOLE, "length"), skips=200)
    outcome = await call(ledger, typed(), hanging, timeout=lambda name: 200.0)
    assert (outcome.state, outcome.text) == ("truncated", WHOLE)
    never = answering("one", "never")
    assert (await call(await reload_ledger(store), typed(), never)).text == WHOLE
    assert never.calls == []


@pytest.mark.behaviour("40-truncated-counts-if-whole")
async def test_an_incomplete_typed_reply_does_not_count(ledger: Ledger) -> None:
    outcome = await call(ledger, typed(), answering("one", Answer('{"verdict": "PA', "length")))
    assert (outcome.state, outcome.ok, outcome.text) == ("truncated", False, "")


async def test_a_successful_retry_is_ok(ledger: Ledger) -> None:
    outcome = await call(ledger, typed(), answering("one", Answer(WHOLE, "length"), Answer(WHOLE)))
    assert (outcome.state, outcome.attempts) == ("ok", 2)


@pytest.mark.behaviour("40-truncated-counts-if-whole")
async def test_a_stored_truncated_answer_is_not_requested_again(ledger: Ledger, store: SqliteStore) -> None:
    first = await call(ledger, typed(), answering("one", Answer(WHOLE, "length")))
    never = answering("one", "never")
    reloaded = await call(await reload_ledger(store), typed(), never)
    assert (reloaded.state, reloaded.text, never.calls) == (first.state, first.text, [])


# Contradictions in a readable reply


def reviewed() -> Any:
    return replace(typed(), review=lambda text: "" if "FAIL" in text else "the verdict contradicts the findings")


@pytest.mark.behaviour("10-contradiction-repaired")
async def test_a_contradictory_reply_gets_one_repair_turn(ledger: Ledger) -> None:
    mended = '{"verdict": "FAIL", "why": "it breaks"}'
    outcome = await call(ledger, reviewed(), answering("one", WHOLE, mended))
    assert (outcome.state, outcome.text, outcome.attempts) == ("ok_repaired", mended, 2)
    assert [event.detail for event in events_of(ledger, ev.Faulted)] == ["the verdict contradicts the findings"]


@pytest.mark.behaviour("10-contradiction-repaired")
@pytest.mark.parametrize("chain", [("one",), ("one", "two")])
async def test_a_reply_that_is_still_contradictory_is_used(ledger: Ledger, chain: tuple[str, ...]) -> None:
    second = answering("two", "never")
    outcome = await call(ledger, replace(reviewed(), chain=chain), answering("one", WHOLE), second)
    assert (outcome.state, outcome.text, outcome.attempts, second.calls) == ("ok_repaired", WHOLE, 2, [])


@pytest.mark.behaviour("10-contradiction-repaired")
@pytest.mark.parametrize("second", [fault("refused"), fault("auth"), "no JSON"], ids=str)
async def test_a_contradictory_reply_is_used_if_its_repair_fails(ledger: Ledger, second: Any) -> None:
    outcome = await call(ledger, reviewed(), answering("one", WHOLE, second))
    assert (outcome.ok, outcome.text, outcome.attempts) == (True, WHOLE, 2)


def test_cut_and_dropped_survive_json() -> None:
    outcome = Outcome("ok", "Tabs.", cut=("big.py",), dropped=("temperature",))
    assert Outcome.from_json(json.loads(json.dumps(outcome.as_json()))) == outcome
    assert not {"cut", "dropped"} & Outcome("ok").as_json().keys()


# Oversized requests


@pytest.mark.behaviour("40-context-too-long")
async def test_an_oversized_request_is_truncated_once_and_recorded(ledger: Ledger) -> None:
    member = answering("one", fault("size"), "Tabs.")
    outcome = await call(ledger, step(), member)
    assert (outcome.state, outcome.cut, outcome.attempts) == ("ok", ("big.py",), 2)
    assert json.loads(member.calls[1]["body"])["messages"][0]["content"] == "50%"
    assert events_of(ledger, ev.Attempted)[-1].why == "retry: truncated to 50% to fit: big.py"


@pytest.mark.behaviour("40-context-too-long")
async def test_a_request_that_cannot_be_truncated_is_not_retried(ledger: Ledger) -> None:
    alone = replace(step(), shrink=lambda ask, share: None)
    outcome = await call(ledger, alone, answering("one", fault("size")))
    assert (outcome.state, outcome.attempts, outcome.cut) == ("failed(size)", 1, ())


@pytest.mark.behaviour("40-context-too-long")
async def test_a_truncated_request_is_resumed_with_its_cuts(ledger: Ledger, store: SqliteStore) -> None:
    await interrupt(ledger, step(), hanging := Hanging("one", fault("size")))
    member = answering("one", "Tabs.")
    outcome = await call(await reload_ledger(store), step(), member)
    assert (outcome.cut, member.calls[0]["body"]) == (("big.py",), hanging.calls[1]["body"])


async def test_a_fallback_gets_the_full_request(ledger: Ledger) -> None:
    outcome = await call(ledger, step("one", "two"), answering("one", fault("size")), answering("two", "Tabs."))
    assert (outcome.served_by, outcome.cut, outcome.attempts) == ("two", (), 3)


# Repairs


async def test_a_repair_turn_follows_the_truncated_request(ledger: Ledger) -> None:
    member = answering("one", fault("size"), "no JSON", WHOLE)
    outcome = await call(ledger, typed(), member)
    asked, repair = json.loads(member.calls[2]["body"])["messages"]
    assert (outcome.state, outcome.cut) == ("ok_repaired", ("big.py",))
    assert (asked["content"], repair["content"]) == ("50%", "no JSON → no JSON")


# Notes after an answer


@pytest.mark.behaviour("10-notes-no-extra-call")
async def test_an_answer_that_is_cut_inside_its_notes_is_complete(ledger: Ledger) -> None:
    outcome = await call(ledger, step(), answering("one", Answer('Tabs.\n```council-notes\n{"agreed": ["a', "length")))
    assert (outcome.state, outcome.attempts) == ("ok", 1)


async def test_notes_without_an_answer_are_an_empty_answer(ledger: Ledger) -> None:
    outcome = await call(ledger, step(), answering("one", "```council-notes\n{}\n```", "Tabs."))
    assert (outcome.text, outcome.attempts) == ("Tabs.", 2)
    assert events_of(ledger, ev.Faulted)[0].kind == "empty"
