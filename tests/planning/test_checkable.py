"""Questions whose answer can be checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.planning.facts import has_checkable_answer

CASES = Path(__file__).parents[1] / "data" / "checkable_questions.jsonl"
CHECKABLE = ("fact", "calculation", "checkable")


@pytest.mark.behaviour("10-adaptive-auto")
@pytest.mark.parametrize(
    "question",
    [
        "Is 1,000,003 prime?",
        "What is 17 * 24?",
        "A train leaves at 14:05 and needs 3 h 20 min. When does it arrive?",
        "How many buses do we need for 130 people at 48 seats?",
        "Does TCP guarantee ordering?",
        "If a shirt costs $40 after a 20% discount, what was the original price?",
        "Ist 91 eine Primzahl?",
        "Solve 2x + 3 = 11.",
        "A car needs 4 h for 320 km. How long will it need for 500 km?",
        "Does a largest prime exist?",
    ],
)
def test_facts_calculations_and_yes_or_no_can_be_checked(question: str) -> None:
    assert has_checkable_answer(question)


@pytest.mark.behaviour("10-adaptive-auto")
@pytest.mark.parametrize(
    "question",
    [
        "",
        "Should we migrate to Kubernetes?",
        "How many people should we hire?",
        "Is our plan realistic?",
        "Write a poem about autumn.",
        "Why did Rome fall?",
        "What is the best database for us?",
        "Is it ethical to eat meat?",
        "Will AI replace programmers?",
        "Lohnt sich eine Wärmepumpe?",
    ],
)
def test_decisions_plans_and_texts_cannot_be_checked(question: str) -> None:
    assert not has_checkable_answer(question)


@pytest.mark.behaviour("10-adaptive-auto")
@pytest.mark.parametrize(
    "question",
    [
        "Does God exist?",
        "Does free will exist?",
        "Is AI dangerous?",
        "Is the market overvalued?",
        "Are cats smarter than dogs?",
        "Is remote work more productive?",
        "When will AGI arrive?",
        "How many people will live in 2100?",
        "How many people will live in 2050 and in 2100?",
        "Is inflation going to fall?",
        "Is Bitcoin a bubble?",
        "Was Napoleon a hero?",
        "Can poverty be ended?",
        "Who is the most influential artist?",
        "When is the next recession?",
        "Wird es bis 2040 fliegende Autos geben?",
    ],
)
def test_judgements_and_forecasts_cannot_be_checked(question: str) -> None:
    assert not has_checkable_answer(question)


@pytest.mark.behaviour("10-adaptive-auto")
def test_questions_in_the_words_of_users() -> None:
    rows = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    others = [row["question"] for row in rows if row["kind"] not in CHECKABLE]
    assert [question for question in others if has_checkable_answer(question)] == []
    checkable = [row["question"] for row in rows if row["kind"] in CHECKABLE]
    assert len([question for question in checkable if not has_checkable_answer(question)]) <= 2


@pytest.mark.behaviour("10-adaptive-auto")
@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read(question: str) -> None:
    assert has_checkable_answer(question) in (True, False)
