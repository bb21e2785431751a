"""Whether drafts agree, so that no seat needs to improve its own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.engine.reply import build_schema
from council.final_answers.comparison import compare_all
from council.protocols.collaborative.replies import Draft
from council.protocols.collaborative.rules import explain_stop
from council.protocols.common.stances import REHEARSED_CHOICE
from council.types import Outcome, Round, Seat, Statement

QUESTION = "What is 17 * 24?"


def statement(name: str, member: str, *, served_by: str = "", **fields: Any) -> Statement[Draft]:
    seat = Seat(name, member=member, vendor=member.partition(":")[0])
    reply = Draft.model_validate({"draft": "…", "conclusion": "408", "confidence": "HIGH", "doubts": []} | fields)
    return Statement(seat, f"draft/{name}", "", reply, Outcome("ok", served_by=served_by or member))


@pytest.mark.behaviour("10-early-stop-collaborative")
def test_the_reason_names_the_conclusion_and_one_vendor() -> None:
    agreeing = [statement("alpha", "a:m1"), statement("beta", "b:m1", conclusion="The answer is **408**.")]
    why = 'both drafts conclude "408" with HIGH confidence and without a doubt'
    assert explain_stop(Round(agreeing), QUESTION) == why
    sharing = [statement("alpha", "a:m1"), statement("beta", "a:m2")]
    assert explain_stop(Round(sharing), QUESTION) == f"{why}, all of one vendor"


@pytest.mark.behaviour("10-early-stop-voices")
def test_one_member_is_one_voice_also_by_fallback() -> None:
    alone = [statement("alpha", "a:m1"), statement("beta", "a:m1")]
    assert explain_stop(Round(alone), QUESTION) == ""
    replaced = [statement("alpha", "a:m1"), statement("beta", "b:m1", served_by="a:m1")]
    assert explain_stop(Round(replaced), QUESTION) == ""
    other = [statement("alpha", "a:m1"), statement("beta", "b:m1", served_by="a:m2")]
    assert explain_stop(Round(other), QUESTION).endswith(", all of one vendor")


@pytest.mark.behaviour("10-early-stop-collaborative")
@pytest.mark.parametrize(
    "fields",
    [{"conclusion": "418"}, {"conclusion": ""}, {"confidence": "LOW"}, {"doubts": ["the carry"]}, {"doubts": None}],
)
def test_a_draft_that_is_not_firm_or_differs_is_no_agreement(fields: dict[str, Any]) -> None:
    said = [statement("alpha", "a:m1"), statement("beta", "b:m1"), statement("gamma", "c:m1", **fields)]
    assert explain_stop(Round(said), QUESTION) == ""
    assert explain_stop(Round(said[:1]), QUESTION) == ""
    assert explain_stop(Round(), QUESTION) == ""


def test_the_schema_asks_for_the_draft_before_its_conclusion() -> None:
    assert build_schema(Draft, {})["required"] == ["draft", "conclusion", "confidence", "doubts"]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_rehearsed_conclusions_agree_for_every_question(question: str) -> None:
    """The plan of a question is reused for others, so that it must not depend on the words."""
    assert compare_all([REHEARSED_CHOICE] * 3, question) == "same"
