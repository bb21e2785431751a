"""Units, and the unit that a question asks for."""

from __future__ import annotations

import pytest

from council.final_answers.units import find_asked_unit
from council.final_answers.values import compare_answers


@pytest.mark.parametrize(
    ("question", "unit"),
    [
        ("How many weeks does it take?", ("time", 604800.0)),
        ("How long is it in km?", ("length", 1e3)),
        ("What is the share in %?", ("share", 0.01)),
        ("What percent of reads fail?", ("share", 0.01)),
        ("What percentage of reads fail?", ("share", 0.01)),
        ("How many months does it take?", ("time~", 2629800.0)),
        ("How many users are there?", ("", 1.0)),
        ("How much does it cost in euro?", ("", 1.0)),
        ("Which tool?", ("", 1.0)),
    ],
)
def test_a_question_asks_for_a_unit_that_can_be_measured(question: str, unit: tuple[str, float]) -> None:
    assert find_asked_unit(question) == unit


@pytest.mark.parametrize("word", ["percent", "percentage"])
def test_a_bare_number_is_in_the_unit_that_the_question_asks_for(word: str) -> None:
    questions = (f"What {word} of reads fail?", f"What {word} of reads fail?")
    assert compare_answers("12", "30 %", questions).relation == "conflict"
    assert compare_answers("12", "12 %", questions).relation == "agree"
