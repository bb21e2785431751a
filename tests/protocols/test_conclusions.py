"""Conclusions: how a reply states one, and the comparison of two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.engine.reply import build_schema, parse_reply
from council.final_answers.comparison import compare_all, compare_conclusions
from council.protocols.common.conclusions import ConclusionReply

DATA = Path(__file__).parents[1] / "data"
MODEL_WORDS, ADVERSARIAL = DATA / "conclusions.jsonl", DATA / "conclusions_adversarial.jsonl"
SAME, DIFFERENT, UNCLEAR = "same", "different", "unclear"
CAPITAL = "What is the capital of Peru?"
DATABASE = "Should we use Redis or Postgres for the session store?"
PRIME = "Is 1,000,003 prime?"
MOVE = "Should we migrate to Kubernetes this year?"
TRAIN = "A train leaves at 14:05 and needs 3 h 20 min. When does it arrive?"


@pytest.mark.behaviour("10-conclusions-compared")
@pytest.mark.parametrize(
    ("question", "a", "b", "expected"),
    [
        # Numbers, units, rounding
        ("What is 17 * 24?", "408", "408", SAME), ("What is 17 * 24?", "408", "418", DIFFERENT), ("What is 17 * 24?", "The answer is 408.", "**408**", SAME),
        ("What is 17 * 24?", "17 * 24 = 408", "408", SAME), ("What is pi squared?", "9.87", "9.8696", SAME), ("What is pi squared?", "9.87", "9.86", UNCLEAR),
        ("How much do we pay?", "The total is $45.50", "$45.50", SAME), ("How much do we pay?", "$45.50", "€45.50", UNCLEAR), ("How much do we pay?", "$1,200", "1200 dollars", SAME),
        ("How long is the route?", "5 km", "5000 m", SAME), ("How long is the route?", "5 km", "5 miles", DIFFERENT), ("Solve 2x = 10.", "x = 5", "5", SAME), ("Solve 2x = 10.", "x = 5", "x = -5", DIFFERENT),
        ("What is 2 to the power 10?", "2^10", "1024", SAME), ("What is 7 / 2?", "7/2", "3.5", SAME), ("What is 7 / 2?", "3.5", "3", DIFFERENT), ("What is a third?", "1/3", "0.333", SAME),
        ("How many users?", "about 60", "65", UNCLEAR), ("How many users?", "20 engineers", "20 customers", UNCLEAR), ("How many users fit?", "5-10", "7", UNCLEAR),
        ("How many users fit?", "at least 5", "5", UNCLEAR), ("What is g?", "9.81 m/s^2", "9.81 m/s²", SAME), ("What is g?", "9.81 m/s^2", "8.91 m/s²", DIFFERENT),
        ("How many users fit?", "40 if cached", "40", UNCLEAR), ("How many of the 12 files are broken?", "3", "-3", DIFFERENT), ("How fast?", "100 Mb/s", "100 MB/s", UNCLEAR),
        ("Which version of Python is needed?", "3.1", "3.12", UNCLEAR), ("What is the value?", "1.200", "1200", UNCLEAR), ("How many?", "12,000", "12000", SAME),
        ("What is 10^6 * 3?", "3 × 10^6", "3,000,000", SAME), ("How large is the share?", "0.5", "50 %", SAME), ("How large is the share?", "50", "5", DIFFERENT),
        # Dates and times
        ("When was it signed?", "July 4, 1776", "4 July 1776", SAME), ("When was it signed?", "July 4, 1776", "July 2, 1776", DIFFERENT), ("When was it signed?", "1776", "July 1776", UNCLEAR),
        ("In what year was it signed?", "1776", "July 4, 1776", SAME), ("In what year?", "1789", "1776", DIFFERENT), ("When does it end?", "2026-05-01", "1 May 2026", SAME), ("When is it?", "03/04/2026", "04/03/2026", UNCLEAR),
        (TRAIN, "17:25", "5:25 pm", SAME), (TRAIN, "17:25", "17:35", DIFFERENT), (TRAIN, "5:25", "17:25", UNCLEAR), (TRAIN, "17:25 UTC", "17:25 CET", UNCLEAR),
        # Yes and no
        (PRIME, "Yes", "yes, it is prime", SAME), (PRIME, "Yes", "No", DIFFERENT), (PRIME, "Yes", "1,000,003 is prime", SAME), (PRIME, "1,000,003 is not prime", "Yes", DIFFERENT),
        (PRIME, "No", "It is composite", UNCLEAR), ("Is 91 prime?", "No", "No, 91 = 7 × 13", UNCLEAR), ("Is 91 prime?", "No", "Probably not", UNCLEAR), ("Is it safe?", "Yes", "Yes, if it is dry", UNCLEAR),
        ("Is it safe?", "Yes, if it is dry", "No, unless it is dry", UNCLEAR), ("Is it safe?", "Yes", "It depends", UNCLEAR), ("Is it safe?", "Yes, it is not safe", "Yes", UNCLEAR),
        ("Is lead heavier than iron?", "Lead is heavier than iron", "Yes", SAME), ("Is lead heavier than iron?", "Iron is heavier than lead", "Yes", UNCLEAR),
        (MOVE, "Yes", "Yes, migrate this year", SAME), (MOVE, "Yes, with Nomad", "Yes", UNCLEAR), (MOVE, "Do not migrate to Kubernetes this year", "No", SAME), (MOVE, "Wait", "No", UNCLEAR),
        (MOVE, "Migrate to Kubernetes this year", "Do not migrate to Kubernetes this year", DIFFERENT),
        # Named options
        (DATABASE, "Redis", "Use Redis", SAME), (DATABASE, "Redis", "Postgres", DIFFERENT), (DATABASE, "Use Redis, not Postgres", "Use Postgres, not Redis", DIFFERENT), (DATABASE, "Redis because it is faster", "Redis", SAME),
        (DATABASE, "Redis", "Redis, but only as a cache", UNCLEAR), (DATABASE, "Not Redis", "Redis", DIFFERENT), (DATABASE, "Both", "Redis", UNCLEAR), (DATABASE, "Redis with Sentinel", "Redis", UNCLEAR),
        ("Which is larger: (a) 3/4 or (b) 5/7?", "a", "(b)", DIFFERENT), ("Rewrite it in Rust or keep Java?", "Keep Java", "Rewrite in Rust", DIFFERENT), ("Buy or lease?", "Buy", "Lease", DIFFERENT),
        # Names and words
        (CAPITAL, "Lima", "The capital of Peru is Lima.", SAME), (CAPITAL, "Lima", "Lima is the capital of Peru", SAME), (CAPITAL, "Lima", "Cusco", UNCLEAR), (CAPITAL, "lima", "`Lima`", SAME), (CAPITAL, "Lima", "not Lima", DIFFERENT),
        ("Which gas?", "CO", "Co", UNCLEAR), ("Which language?", "C", "C++", UNCLEAR), ("Which blood type?", "A+", "A-", UNCLEAR), ("Which plan?", "Plan A", "Plan B", UNCLEAR), ("Who won?", "Bob beat Alice", "Alice beat Bob", UNCLEAR),
        ("Who wrote it?", "Shakespeare", "William Shakespeare", UNCLEAR), ("Which are the Baltic states?", "Estonia, Latvia and Lithuania", "Lithuania, Estonia, Latvia", UNCLEAR),
        ("In which order do they finish?", "Ann, Bo", "Bo, Ann", UNCLEAR), ("Who won, and who lost?", "Ann, Bo", "Bo, Ann", UNCLEAR), ("Give the point.", "3, 4", "4, 3", UNCLEAR), ("What are the roots?", "2 and 3", "3, 2", UNCLEAR),
        ("Should we deploy?", "deploy on Friday", "do not deploy on Friday", DIFFERENT), ("What happens?", "It rises", "It falls", DIFFERENT), ("Which database should we use?", "Use Redis", "Redis", SAME),
        # Nothing to compare
        (CAPITAL, "", "Lima", UNCLEAR), (CAPITAL, "", "", UNCLEAR), (CAPITAL, "unknown", "unknown", UNCLEAR), ("Will it rain?", "It depends on the wind", "It depends on the wind", UNCLEAR),
        (CAPITAL, "It cannot be determined", "It cannot be determined", UNCLEAR), (CAPITAL, "Lima " * 80, "Lima " * 80, UNCLEAR),
    ],
)  # fmt: skip
def test_two_conclusions(question: str, a: str, b: str, expected: str) -> None:
    assert compare_conclusions(a, b, question) == expected
    assert compare_conclusions(b, a, question) == expected


@pytest.mark.parametrize(
    ("question", "a", "b", "expected"),
    [
        ("Should we use Redis, Postgres or SQLite?", "Postgres", "SQLite", DIFFERENT),
        ("Should we choose between Redis and Postgres?", "Redis", "Postgres", DIFFERENT),
        ("Choose one: (a) Buy it. (b) Lease it.", "(a)", "(b)", DIFFERENT),
        (DATABASE, "Redis if it is cheap", "Postgres", UNCLEAR),
        (DATABASE, "probably Redis", "Postgres", UNCLEAR),
        (MOVE, "No, without a backup", "Yes", UNCLEAR),
        ("Is it safe?", "Yes, it is not safe", "No", UNCLEAR),
        ("Which backups are kept?", "No backups are kept", "Yes", UNCLEAR),
        ("How many users?", "one hundred and five", "105", SAME),
        ("How many users?", "two thousand three hundred", "2300", SAME),
        ("How many users?", "twenty-one", "21", SAME),
        ("How many users?", "one two three", "6", UNCLEAR),
        ("How many users?", "thirty twenty", "50", UNCLEAR),
        ("How many users?", "eleven two", "13", UNCLEAR),
        ("Solve it.", "x = 2, y = 3", "3", UNCLEAR),
        ("How many files are broken?", "3 of 5", "5", UNCLEAR),
        (TRAIN, "13:00 pm", "13:00", UNCLEAR),
        (TRAIN, "5:25", "5:40 pm", DIFFERENT),
        (TRAIN, "5:25 UTC", "5:25 CET", UNCLEAR),
        ("Which tool?", "I would recommend Redis", "Redis", SAME),
        ("Who was the king?", "The king was Otto", "Otto", SAME),
        ("Who is the king?", "The king was Otto", "Otto", UNCLEAR),
        ("Which name?", "fooBar", "foobar", UNCLEAR),
        ("What is the weight?", "5 kg if dry", "7 kg", UNCLEAR),
        ("What is the weight?", "5.0 kg", "5.1 kg", UNCLEAR),
    ],
)
def test_options_conditions_and_spelled_numbers_decide_whether_conclusions_are_compared(
    question: str, a: str, b: str, expected: str
) -> None:
    assert compare_conclusions(a, b, question) == expected
    assert compare_conclusions(b, a, question) == expected


@pytest.mark.behaviour("10-conclusions-compared")
def test_pairs_in_the_words_of_models_are_never_decided_wrongly() -> None:
    rows = [json.loads(line) for line in MODEL_WORDS.read_text(encoding="utf-8").splitlines()]
    found = [(compare_conclusions(row["a"], row["b"], row["question"]), row) for row in rows]
    assert [row for said, row in found if said not in (UNCLEAR, row["truth"])] == []
    assert sum(said != UNCLEAR for said, _ in found) >= 21  # of 60


@pytest.mark.behaviour("10-conclusions-compared")
def test_conclusions_that_a_mark_a_unit_a_sign_or_a_condition_tells_apart_are_not_the_same() -> None:
    rows = [json.loads(line) for line in ADVERSARIAL.read_text(encoding="utf-8").splitlines()]
    found = [(compare_conclusions(row["a"], row["b"], row["question"]), row) for row in rows]
    assert [row for said, row in found if said not in (UNCLEAR, row["truth"])] == []
    assert [row for said, row in found if said != compare_conclusions(row["b"], row["a"], row["question"])] == []
    assert sum(said == SAME for said, _ in found) >= 51  # of 98 that are the same


@pytest.mark.behaviour("10-conclusions-compared")
@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_compared_in_both_directions_alike(a: str, b: str, question: str) -> None:
    found = compare_conclusions(a, b, question)
    assert found in (SAME, DIFFERENT, UNCLEAR)
    assert compare_conclusions(b, a, question) == found


@pytest.mark.behaviour("10-conclusions-compared")
@settings(max_examples=200, deadline=None)
@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
def test_different_integers_are_never_the_same_conclusion(a: int, b: int) -> None:
    assert compare_conclusions(str(a), str(b), "What is it?") == (SAME if a == b else DIFFERENT)


@pytest.mark.behaviour("10-conclusions-compared")
def test_conclusions_of_several_seats_are_the_same_if_each_pair_is() -> None:
    assert compare_all(["408", "408.0", "**408**"], "What is 17 * 24?") == SAME
    assert compare_all(["408", "418", "Lima"], "What is 17 * 24?") == DIFFERENT
    assert compare_all(["Lima", "Lima", "Shakespeare"], "") == UNCLEAR
    assert compare_all(["408"], "") == UNCLEAR


class Answer(ConclusionReply):
    answer_field = "answer"
    answer: str

    def prose(self) -> str:
        return self.answer


@pytest.mark.behaviour("10-conclusions-read")
@pytest.mark.parametrize(
    ("said", "level"),
    [
        ("HIGH", "HIGH"), ("very high", "HIGH"), ("**High** confidence", "HIGH"), (0.9, "HIGH"), ("90 %", "HIGH"), ("9/10", "HIGH"), (95, "HIGH"), ("medium", "MEDIUM"),
        (0.6, "MEDIUM"), ("low", "LOW"), (0.1, "LOW"), ("300%", ""), (300, ""), ("300 %", ""), (-1, ""), ("15/10", ""), ("HIGH (20%)", ""), ("absolutely", ""),
        ("", ""), (None, ""), ([], ""), (True, ""), (7, ""), ("nan", ""),
    ],
)  # fmt: skip
def test_a_confidence_that_says_nothing_is_not_high(said: Any, level: str) -> None:
    reply = Answer.model_validate({"answer": "a", "conclusion": "5", "confidence": said, "doubts": []})
    assert reply.confidence == level
    assert reply.is_firm == (level == "HIGH")


@pytest.mark.behaviour("10-conclusions-read")
@pytest.mark.parametrize(
    ("said", "doubts"),
    [
        ([], []), (["none"], []), ("None.", []), ("n/a", []), ("the unit", ["the unit"]), (["a", "none", "b"], ["a", "b"]), ([{"doubt": "the unit"}], ["the unit"]), (None, None),
    ],
)  # fmt: skip
def test_doubts_are_a_list_and_missing_ones_are_not_none(said: Any, doubts: list[str] | None) -> None:
    reply = Answer.model_validate({"answer": "a", "conclusion": "5", "confidence": "HIGH", "doubts": said})
    assert reply.doubts == doubts
    assert reply.is_firm == (doubts == [])


@pytest.mark.behaviour("10-conclusions-read")
def test_a_reply_in_prose_without_doubts_is_read_and_is_not_firm() -> None:
    said = 'Here it is:\n```json\n{"answer": "It is Lima.", "final_answer": "Lima\\nin Peru", "confidence": "very high",}\n```'
    reply = parse_reply(Answer, said, {})
    assert (reply.conclusion, reply.confidence, reply.doubts) == ("Lima", "HIGH", None)
    assert not reply.is_firm
    assert build_schema(Answer, {})["required"] == ["conclusion", "confidence", "doubts", "answer"]
