"""Questions with one short factual answer."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from council.planning.facts import is_short_fact

WORDS = tomllib.loads((Path(__file__).parents[1] / "data" / "words.toml").read_text(encoding="utf-8"))["rows"]


@pytest.mark.behaviour("00-short-fact")
@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of Mongolia?",
        "what's the capital of mongolia",
        "Please, what is the capital of Mongolia?",
        "How many bytes are in a kibibyte?",
        "How many legs does a spider have?",
        "How many ounces in a pound?",
        "Who wrote Middlemarch?",
        "Who painted The Night Watch?",
        "Who was the first woman in space?",
        "Who is the author of Dune?",
        "When was Ada Lovelace born?",
        "When did the First World War end?",
        "In which year did the Berlin Wall fall?",
        "What year was Python released?",
        "What does HTTP stand for?",
        "What is the chemical symbol for gold?",
        "What is the boiling point of ethanol?",
        "What is the square root of 144?",
        "Which is the largest ocean?",
        "How tall is the Eiffel Tower?",
        "Convert 10 miles to kilometres",
        "What is 5 miles in kilometres?",
        "Which country is Timbuktu in?",
        "Was ist die Hauptstadt der Mongolei?",
        "Quelle est la capitale de la Mongolie ?",
        "¿Cuál es la capital de Mongolia?",
        "Qual è la capitale della Mongolia?",
        "Qual é a capital da Mongólia?",
        "蒙古的首都是哪里？",
        "モンゴルの首都はどこですか？",
    ],
)
def test_a_question_with_one_short_answer_is_a_short_fact(question: str) -> None:
    assert is_short_fact(question)


@pytest.mark.behaviour("00-short-fact")
@pytest.mark.parametrize(
    "question",
    [
        "Which queue fits us?",
        "How many people should we hire?",
        "How many servers are in the ideal cluster?",
        "What is the best capital structure for a start-up?",
        "What is the capital of Mongolia and why was it chosen?",
        "What is the capital of Mongolia? Explain how it grew.",
        "Who wrote this function?",
        "Who is the best author of crime novels?",
        "When should we release?",
        "What is the population of Leeds, and should we open a shop there?",
        "What does our SLA stand for in practice?",
        "How old is too old for a bike?",
        "How high is the risk of a recession?",
        "How deep is our technical debt?",
        "What is the role of the capital in a federation?",
        "Who invented the wheel, and does it matter for our slide?",
        "Why is Ulaanbaatar the capital of Mongolia?",
        "Plan a trip to the capital of Mongolia",
        "What is a monad?",
        "Is a tomato a fruit?",
        "Redis or Postgres?",
        "How do I bake bread?",
        "How many primes are below 1000?",
        "",
        "?",
    ],
)
def test_a_question_that_asks_for_more_is_not_a_short_fact(question: str) -> None:
    assert not is_short_fact(question)


@pytest.mark.behaviour("00-short-fact")
def test_no_question_that_asks_for_a_decision_is_a_short_fact() -> None:
    assert not [row["words"] for row in WORDS if row["protocol"] != "collaborative" and is_short_fact(row["words"])]
