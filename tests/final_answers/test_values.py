"""Comparable values: yes/no, dates and numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.final_answers.values import compare_answers, condition_of, parse_answer

AGREE, CONFLICT, UNDECIDED = "agree", "conflict", None


@pytest.mark.behaviour("30-values-decide")
@pytest.mark.parametrize(
    ("a", "b", "relation"),
    [
        # Numbers
        ("about 20k tps", "at most 5k tps", CONFLICT), ("20k tps", "about 20,000 tps", AGREE), ("three", "5", CONFLICT), ("three", "3", AGREE),
        ("1 million", "1,000,000", AGREE), ("5 million users", "5M users", AGREE), ("7B", "7 billion", AGREE), ("12 000", "12,000", AGREE),
        ("1.200", "1,200", UNDECIDED), ("1.234.567", "1,234,567", AGREE), ("3,5 %", "3.5 %", AGREE), ("33%", "33.3 %", AGREE), ("3.1", "3.12", UNDECIDED), ("3.11", "3.12", CONFLICT), ("99.9 %", "99.99 %", CONFLICT),
        ("5 GB [1]", "5 GB", AGREE), ("100", "101", CONFLICT), ("-5 %", "5 %", CONFLICT), ("a dozen", "12", AGREE), ("0", "zero", AGREE),
        # Approximations, bounds and ranges
        ("about 60 %", "about 65 %", AGREE), ("about 60 %", "about 70 %", CONFLICT), ("60 %", "65 %", CONFLICT), ("~100", "108", AGREE),
        ("no more than 5", "8", CONFLICT), ("no more than 5", "3", UNDECIDED), ("under 50 ms", "0.2 s", CONFLICT), ("at least 3", "two", CONFLICT),
        ("at most 5", "at most 5", AGREE), ("at most 5", "at most 9", UNDECIDED), ("at most 5", "at least 9", CONFLICT), ("5k+ users", "3k users", CONFLICT),
        ("5-10 ms", "7 ms", AGREE), ("5–10 ms", "20 ms", CONFLICT), ("between 5 and 10 weeks", "12 weeks", CONFLICT), ("two to three weeks", "2-3 weeks", AGREE),
        ("5-10", "8-12", AGREE), ("1-10", "9-40", UNDECIDED), ("€25,000-30,000", "under €10k", CONFLICT), ("10-20k", "15,000", AGREE), ("5 or more", "4", CONFLICT),
        # Shares
        ("0.6", "about 60 %", AGREE), ("0.6", "70 %", CONFLICT), ("5", "5 %", UNDECIDED), ("a third", "33 %", AGREE), ("half", "20 percent", CONFLICT),
        # Currencies
        ("$1,200", "about 2k dollars", CONFLICT), ("$4.5 billion", "1.2bn USD", CONFLICT), ("1.2 million euros", "€1.2M", AGREE), ("€10", "$10", UNDECIDED),
        ("$5m", "$5 million", AGREE), ("$5 per month", "$60 per year", AGREE), ("$20", "20", AGREE),
        # Units
        ("2 h", "24 hours", CONFLICT), ("90 s", "1.5 minutes", AGREE), ("1.5 h", "2 h", CONFLICT), ("a day", "24 h", AGREE), ("512 MB", "at least 4 GB", CONFLICT),
        ("2 GB", "2048 MB", AGREE), ("12 km", "12,000 m", AGREE), ("5m", "5 minutes", AGREE), ("100 Mb/s", "100 MB/s", UNDECIDED), ("10 mb", "10 MB", AGREE),
        ("100 Mbps", "1 Gbps", CONFLICT), ("3 months", "90 days", AGREE), ("3 months", "6 weeks", CONFLICT), ("5 kg", "5 km", UNDECIDED), ("5", "5 ms", UNDECIDED),
        ("200 requests/s", "12,000 requests per minute", AGREE), ("10x", "twice as fast", CONFLICT), ("200 rps", "200 requests/s", AGREE),
        ("60 % of reads", "70 % of writes", UNDECIDED), ("20 engineers", "20 customers", UNDECIDED), ("4 nodes", "6 nodes", CONFLICT),
        ("$0.023 per GB", "$23 per TB", AGREE), ("-10 °C", "10 °C", CONFLICT), ("30 min to 1 h", "2 h", UNDECIDED), ("2 vCPU, 4 GB", "4 vCPU, 8 GB", UNDECIDED),
        ("10:30", "11:00", UNDECIDED), ("2h30", "2 h", UNDECIDED), ("1e6", "1,000,000", UNDECIDED), ("within 2 weeks", "3 weeks", CONFLICT), ("20k tps on 8 cores", "20k tps", AGREE),
        # Parts, and what may be read in two ways
        ("1 in 10", "10 %", AGREE), ("4 of 5", "3 of 5", CONFLICT), ("3 or 4", "4", AGREE), ("3 or 4", "7", CONFLICT), ("20% to 30%", "25 %", AGREE), ("20% to 30%", "45%", CONFLICT),
        ("2 to 1", "3 to 1", UNDECIDED), ("1 %", "1", UNDECIDED), ("0.5 %", "0.5", UNDECIDED), ("less than half", "60 %", CONFLICT), ("5 ms - 10 ms", "7 ms", AGREE),
        # Dates
        ("November 2024", "2025-11-13", CONFLICT), ("14 November 2024", "2024-11-14", AGREE), ("Nov 14, 2024", "14th of November 2024", AGREE), ("May 2011", "2011", AGREE),
        ("after Q3 2026", "March 2026", CONFLICT), ("by June 2026", "January 2027", CONFLICT), ("by June 2026", "May 2026", UNDECIDED), ("end of 2027", "31 December 2027", AGREE),
        ("Q3 2026", "August 2026", AGREE), ("H1 2026", "2026-Q3", CONFLICT), ("2026-13-45", "2026", UNDECIDED), ("around May 2026", "June 2026", UNDECIDED),
        # Yes and no
        ("yes", "no", CONFLICT), ("Yes.", "yes", AGREE), ("No", "Yes, natively", CONFLICT), ("probably yes", "no", CONFLICT), ("probably not", "no", AGREE),
        ("not yet", "yes", CONFLICT), ("not necessarily", "yes", UNDECIDED), ("true", "no", CONFLICT), ("ja", "nein", CONFLICT), ("はい", "いいえ", CONFLICT),
        # Names, and nothing
        ("Redis", "redis", AGREE), ("the Redis cluster", "Redis cluster", AGREE), ("Redis", "Postgres", UNDECIDED), ("C", "C++", UNDECIDED), ("rises", "falls", UNDECIDED),
        ("it depends", "it depends", UNDECIDED), ("unknown", "unknown", UNDECIDED), ("", "", UNDECIDED), ("yes", "20k tps", UNDECIDED), ("no one", "no", UNDECIDED),
        # Stances of version 0.1 on a neutral topic
        ("supports", "opposes", CONFLICT), ("supports", "supports", UNDECIDED), ("qualifies", "opposes", UNDECIDED),
    ],
)  # fmt: skip
def test_two_answers(a: str, b: str, relation: str | None) -> None:
    assert compare_answers(a, b).relation == relation
    assert compare_answers(b, a).relation == relation


@pytest.mark.behaviour("30-values-decide")
@pytest.mark.parametrize(
    ("question", "a", "b", "relation"),
    [
        ("How many weeks does the rollout take?", "5-10", "7 weeks", AGREE),
        ("How many hours does it take?", "24", "2 days", CONFLICT),
        ("How many tickets arrive per day?", "300", "1,500 tickets", CONFLICT),
        ("When was the rule adopted?", "2019", "2021", CONFLICT),
        ("When was it founded?", "2011", "May 2011", AGREE),
        ("Which version of Python is required?", "3.1", "3.12", UNDECIDED),
        ("Which version is required?", "3.12", "3.12", AGREE),
        ("When does support for version 12 end?", "November 2024", "November 2025", CONFLICT),
    ],
)
def test_the_question_says_what_a_bare_number_means(question: str, a: str, b: str, relation: str | None) -> None:
    assert compare_answers(a, b, (question, question)).relation == relation


@pytest.mark.behaviour("30-values-decide")
def test_shares_that_make_up_the_whole_decide_nothing_if_the_questions_differ() -> None:
    questions = ("What share hits the cache?", "What share misses the cache?")
    assert compare_answers("90 %", "10 %", questions).relation is None
    assert compare_answers("90 %", "10 %", (questions[0], questions[0])).relation == "conflict"


@pytest.mark.behaviour("30-values-decide")
@pytest.mark.parametrize(
    ("answer", "condition"),
    [
        ("yes, if the data fit", "if the data fit"),
        ("yes, natively", ""),
        ("only Redis", ""),
        ("20k tps with SSDs", "with ssds"),
        ("no, unless it grows", "unless it grows"),
        ("yes", ""),
        ("2 h on weekends", "on weekends"),
    ],
)
def test_a_condition_inside_an_answer(answer: str, condition: str) -> None:
    assert condition_of(answer) == condition


PIECES = ("about", "at most", "5", "1,200", ".", "-", "%", "k", "GB", "per", "day", "2026", "March", "Q3", "yes", "no", "$", "€", "to", " ", "x", "٣", "½", "\0", "null")  # fmt: skip
ANSWERS = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES), max_size=8).map(" ".join))


@pytest.mark.behaviour("30-values-decide")
@settings(max_examples=400, deadline=None)
@given(ANSWERS, ANSWERS)
def test_any_two_answers_compare_the_same_in_both_orders(a: str, b: str) -> None:
    assert compare_answers(a, b) == compare_answers(b, a)
    assert compare_answers(a, a).relation in ("agree", None)
    parse_answer(a, b)


@pytest.mark.parametrize("text", ["9" * 100_000, "1," * 100_000, "about " * 100_000, "-" * 100_000, "5 - " * 50_000])
def test_a_long_answer_is_parsed_without_delay(text: str) -> None:
    parse_answer(text)
