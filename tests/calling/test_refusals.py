"""Refusals of members: in prose, inside typed replies, and texts that only look like one."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from council.answer_text import find_refusal
from council.calling.answer_check import find_refusal_in_reply
from council.engine.ledger import Ledger
from council.engine.reply import build_schema, parse_reply
from council.protocols.advisors.replies import Refereed
from council.protocols.judges.replies import Opinion
from tests.calling.helpers import KEY, answering, call, step
from tests.paths import DATA
from tests.run_session import make_ask

CASES: dict[str, Any] = tomllib.loads((DATA / "refusals.toml").read_text(encoding="utf-8"))
LONG_ANSWER = "The index on orders.customer is missing, so every page reads the whole table. " * 12


@pytest.mark.behaviour("10-refusal-recognised")
@pytest.mark.parametrize("text", CASES["refused"])
def test_a_refusal_is_recognised(text: str) -> None:
    assert find_refusal(text)


@pytest.mark.behaviour("10-refusal-recognised")
@pytest.mark.parametrize("text", CASES["answered"])
def test_an_answer_that_looks_like_a_refusal_is_none(text: str) -> None:
    assert find_refusal(text) == ""


@pytest.mark.behaviour("10-refusal-recognised")
@pytest.mark.parametrize("case", CASES["json"], ids=lambda case: case["text"][:60])
def test_a_typed_reply_is_a_refusal_if_its_free_text_is(case: dict[str, Any]) -> None:
    reply = parse_reply(Opinion, case["text"], {})
    assert bool(find_refusal_in_reply(reply, build_schema(Opinion, {}))) is case["refused"]


def test_a_long_answer_with_a_cautious_sentence_is_no_refusal() -> None:
    assert find_refusal(f"I can't help with the legal part. {LONG_ANSWER}") == ""
    assert find_refusal(f"{LONG_ANSWER} I can't help with the legal part.") == ""


@pytest.mark.behaviour("10-refusal-recognised")
def test_a_typed_reply_is_a_refusal_if_its_answer_is() -> None:
    decision = "I'm sorry, but I can't help with that."
    views = [{"advisor": "skeptic", "view": "The migration is risky, because the old tables have no keys."}]
    told = {"perspectives": views, "tensions": [], "shared_by": [], "next_steps": ["Ask a lawyer."], "wrong_if": ""}
    for answer, refused in ((decision, True), ("Keep the old tables until every row has a key.", False)):
        reply = parse_reply(Refereed, json.dumps(told | {"decision": answer}), {})
        assert bool(find_refusal_in_reply(reply, build_schema(Refereed, {}))) is refused


@pytest.mark.anyio
@pytest.mark.behaviour("10-refusal-recognised")
@pytest.mark.parametrize("typed", [False, True])
async def test_a_refusal_in_prose_ends_in_refused_with_its_wording_and_without_a_repair_turn(
    ledger: Ledger, typed: bool
) -> None:
    wording = "I'm sorry, but I can't help with that."
    asked = step(
        read=lambda text: parse_reply(Opinion, text, {}) if typed else None,
        ask=make_ask(KEY, schema=build_schema(Opinion, {}) if typed else None),
    )
    outcome = await call(ledger, asked, answering("one", wording))
    assert (outcome.state, outcome.attempts) == ("refused", 1)
    assert outcome.reason == f'the member declined to answer: "{wording}"'


@pytest.mark.anyio
async def test_a_refusal_leads_to_the_fallback(ledger: Ledger) -> None:
    refusing, other = answering("one", "I can't assist with that request."), answering("two", "Tabs.")
    outcome = await call(ledger, step("one", "two"), refusing, other)
    assert (outcome.served_by, outcome.text, outcome.attempts) == ("two", "Tabs.", 2)
