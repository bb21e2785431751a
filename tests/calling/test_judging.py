"""What an answer is taken for: a placeholder, half a reply, a whole one."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from council import events as ev
from council.calling.judging import is_stub
from council.errors import Fault
from council.ledger import Ledger
from council.store.sqlite import SqliteStore
from council.types import Answer, Outcome, Usage
from tests.calling.helpers import KEY, Hanging, broken_off, call, fault, step, taken_up, telling, told
from tests.sitting import Double, an_ask

pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object", "properties": {"verdict": {"enum": ["PASS", "FAIL"]}, "why": {"type": "string"}}}


def typed(ask: Any = None) -> Any:
    def read(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            raise Fault("schema", "no JSON", said=text) from None

    return step(read=read, ask=ask or an_ask(KEY, schema=SCHEMA))


# Stubs


@pytest.mark.behaviour("40-stub-answer")
@pytest.mark.parametrize(
    "text", ["...", "…", "TODO", "[TBD]", "N/A", "<your answer here>", "Insert answer here.", "---\n***", "!" * 5000]
)
def test_a_placeholder_is_no_answer(text: str) -> None:
    assert is_stub(text)


@pytest.mark.parametrize(
    "text",
    ["No.", "42", "Tabs", "The answer is no.", "Your answer rests on a wrong premise.", "None of them.", "好", "🙂",
     "TODO lists are overrated, and here is why.", "x" * 5000],
)  # fmt: skip
def test_a_short_or_blunt_answer_is_one(text: str) -> None:
    assert not is_stub(text)


@pytest.mark.behaviour("40-stub-answer")
def test_a_typed_reply_is_a_stub_when_all_that_was_to_be_worded_is_a_placeholder() -> None:
    assert is_stub('{"verdict": "PASS", "why": "string", "fix": "..."}', SCHEMA)
    assert not is_stub('{"verdict": "PASS", "why": "it holds", "fix": ""}', SCHEMA)
    assert not is_stub('{"verdict": "PASS", "why": ""}', SCHEMA)  # one blank is no proof
    assert not is_stub('{"verdict": "PASS"}', SCHEMA)


@pytest.mark.behaviour("40-stub-answer")
async def test_a_stub_is_asked_for_once_more_with_other_settings_and_is_then_degenerate(ledger: Ledger) -> None:
    outcome = await call(ledger, step(), telling("one", "TODO"))
    assert (outcome.state, outcome.attempts) == ("degenerate", 2)
    assert [event.kind for event in told(ledger, ev.Faulted)] == ["stub", "stub"]
    assert told(ledger, ev.Attempted)[-1].why == "retry: the answer is a placeholder"


# Loops


class Looping(Double):
    """Streams the same words without end, and notes how far it came."""

    heard = 0

    async def send(self, body: bytes, hear: Any) -> Answer:
        self.calls.append({"body": body})
        while True:
            hear("and again ")
            self.heard += 1
            await asyncio.sleep(0)


@pytest.mark.behaviour("40-repetition-loop")
async def test_a_stream_without_end_is_broken_off_and_asked_for_once_more(ledger: Ledger) -> None:
    member = Looping("one", lambda key: "never")
    outcome = await call(ledger, step(), member)
    assert (outcome.state, outcome.attempts) == ("degenerate", 2)
    assert outcome.reason == 'the answer repeats itself: "and again"'
    assert member.heard < 2000


@pytest.mark.behaviour("40-repetition-loop")
async def test_a_loop_gives_way_to_the_fallback(ledger: Ledger) -> None:
    outcome = await call(ledger, step("one", "two"), Looping("one", lambda key: ""), telling("two", "Tabs."))
    assert (outcome.served_by, outcome.attempts) == ("two", 3)


@pytest.mark.behaviour("40-repetition-loop")
@pytest.mark.parametrize("finish", ["stop", "length"])
async def test_a_loop_that_came_all_at_once_is_one_too(ledger: Ledger, finish: str) -> None:
    outcome = await call(ledger, step(), telling("one", Answer("again and " * 900, finish), "Tabs."))
    assert (outcome.text, outcome.attempts) == ("Tabs.", 2)
    assert told(ledger, ev.Faulted)[0].kind == "loop"


# Cut at the length limit


WHOLE = '{"verdict": "PASS", "why": "it holds"}'


@pytest.mark.behaviour("40-truncated-counts-if-whole")
async def test_a_typed_reply_that_is_whole_counts_as_truncated_after_one_more_try(ledger: Ledger) -> None:
    member = telling("one", Answer(WHOLE, "length", Usage(10, 5)))
    outcome = await call(ledger, typed(), member)
    assert (outcome.state, outcome.ok, outcome.text) == ("truncated", True, WHOLE)
    assert (outcome.served_by, outcome.attempts, outcome.usage) == ("one", 2, Usage(20, 10))


@pytest.mark.behaviour("40-truncated-counts-if-whole")
@pytest.mark.parametrize("second", [fault("server"), fault("refused"), Answer('{"verd', "length")])
async def test_a_whole_reply_is_not_thrown_away_because_the_next_try_failed(ledger: Ledger, second: Any) -> None:
    member = telling("one", Answer(WHOLE, "length"), second)
    outcome = await call(ledger, typed(), member)
    assert (outcome.state, outcome.text) == ("truncated", WHOLE)


@pytest.mark.behaviour("40-truncated-counts-if-whole")
async def test_a_whole_reply_is_taken_when_the_next_try_hangs(ledger: Ledger, store: SqliteStore) -> None:
    hanging = Hanging("one", Answer(WHOLE, "length"))
    outcome = await call(ledger, typed(), hanging, timeout=lambda name: 0.2)
    assert (outcome.state, outcome.text) == ("truncated", WHOLE)
    never = telling("one", "never")
    assert (await call(await taken_up(store), typed(), never)).text == WHOLE
    assert never.calls == []


@pytest.mark.behaviour("40-truncated-counts-if-whole")
async def test_half_a_typed_reply_does_not_count(ledger: Ledger) -> None:
    outcome = await call(ledger, typed(), telling("one", Answer('{"verdict": "PA', "length")))
    assert (outcome.state, outcome.ok, outcome.text) == ("truncated", False, "")


async def test_a_second_try_that_ends_well_is_simply_ok(ledger: Ledger) -> None:
    outcome = await call(ledger, typed(), telling("one", Answer(WHOLE, "length"), Answer(WHOLE)))
    assert (outcome.state, outcome.attempts) == ("ok", 2)


@pytest.mark.behaviour("40-truncated-counts-if-whole")
async def test_a_truncated_answer_that_was_kept_but_not_accepted_is_not_bought_again(
    ledger: Ledger, store: SqliteStore
) -> None:
    first = await call(ledger, typed(), telling("one", Answer(WHOLE, "length")))
    never = telling("one", "never")
    again = await call(await taken_up(store), typed(), never)
    assert (again.state, again.text, never.calls) == (first.state, first.text, [])


def test_the_receipts_of_an_outcome_survive_the_ledger() -> None:
    outcome = Outcome("ok", "Tabs.", cut=("big.py",), dropped=("temperature",))
    assert Outcome.from_json(json.loads(json.dumps(outcome.as_json()))) == outcome
    assert not {"cut", "dropped"} & Outcome("ok").as_json().keys()


# What did not fit


@pytest.mark.behaviour("40-context-too-long")
async def test_what_does_not_fit_is_cut_once_and_the_cut_is_told(ledger: Ledger) -> None:
    member = telling("one", fault("size"), "Tabs.")
    outcome = await call(ledger, step(), member)
    assert (outcome.state, outcome.cut, outcome.attempts) == ("ok", ("big.py",), 2)
    assert json.loads(member.calls[1]["body"])["messages"][0]["content"] == "50%"
    assert told(ledger, ev.Attempted)[-1].why == "retry: truncated to 50% to fit: big.py"


@pytest.mark.behaviour("40-context-too-long")
async def test_what_cannot_be_cut_is_not_sent_again(ledger: Ledger) -> None:
    alone = replace(step(), shrink=lambda ask, share: None)
    outcome = await call(ledger, alone, telling("one", fault("size")))
    assert (outcome.state, outcome.attempts, outcome.cut) == ("failed(size)", 1, ())


@pytest.mark.behaviour("40-context-too-long")
async def test_a_cut_request_is_taken_up_with_its_cut(ledger: Ledger, store: SqliteStore) -> None:
    await broken_off(ledger, step(), hanging := Hanging("one", fault("size")))
    member = telling("one", "Tabs.")
    outcome = await call(await taken_up(store), step(), member)
    assert (outcome.cut, member.calls[0]["body"]) == (("big.py",), hanging.calls[1]["body"])


async def test_a_fallback_is_asked_in_full(ledger: Ledger) -> None:
    outcome = await call(ledger, step("one", "two"), telling("one", fault("size")), telling("two", "Tabs."))
    assert (outcome.served_by, outcome.cut, outcome.attempts) == ("two", (), 3)


# Repairs go on from what was asked last


async def test_a_repair_after_a_cut_goes_on_from_the_cut_request(ledger: Ledger) -> None:
    member = telling("one", fault("size"), "no JSON", WHOLE)
    outcome = await call(ledger, typed(), member)
    asked, repair = json.loads(member.calls[2]["body"])["messages"]
    assert (outcome.state, outcome.cut) == ("ok_repaired", ("big.py",))
    assert (asked["content"], repair["content"]) == ("50%", "no JSON → no JSON")
