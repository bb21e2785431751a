"""Cleaning of queries, and detection of time-sensitive questions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.search.queries import clean_queries, extract_keywords, is_time_sensitive, required_freshness

PLAIN = "How do B-trees work?"
NOW = "What is the latest on B-trees?"


@pytest.mark.behaviour("30-queries")
def test_queries_are_trimmed_deduplicated_and_at_most_three() -> None:
    said = ["  b-tree\n\tfanout ", "", "   ", "B-Tree Fanout", "page\u200b splits", "lsm", "fourth"]
    assert clean_queries(said, PLAIN, 2026) == ["b-tree fanout", "page splits", "lsm"]


@pytest.mark.behaviour("30-queries")
def test_long_query_is_truncated_at_a_word() -> None:
    [query] = clean_queries(["splitting " * 80], PLAIN, 2026)
    assert len(query) <= 500 and query.endswith("splitting") and len(query) > 480
    assert clean_queries(["x" * 900], PLAIN, 2026) == ["x" * 500]


@pytest.mark.behaviour("30-stale-year")
@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("python release 2023", "python release"), ("2024 python release", "python release"), ("python (2024) release", "python release"),
        ("best of 2024 python", "best python"), ("python 2024, release", "python, release"), ("python 2025 2026", "python 2026"),
        ("python release 2027", "python release 2027"), ("2023", "2023"),
    ],
)  # fmt: skip
def test_stale_year_is_dropped_from_queries_about_current_facts(query: str, kept: str) -> None:
    assert clean_queries([query], NOW, 2026) == [kept]
    assert clean_queries([f"{query} latest"], PLAIN, 2026) == [f"{kept} latest" if query != "2023" else "latest"]
    assert clean_queries([query], PLAIN, 2026) == [query], "the question does not ask for current facts"


@pytest.mark.behaviour("30-stale-year")
@pytest.mark.parametrize(
    "query",
    [
        "python history 2019", "python releases in 2023", "changes from 2021", "since 2020 python", "archive python 2018", "as of 2022 python",
        "during 2020 outages", "for 2021 taxes", "CVE-2021-44228", "2023-05-01 outage", "Windows Server 2019 updates", "SQL Server 2019",
        "ISO 9001:2015", "python 3.2019", "port 20231", "2019/2020 season", "2023-2024 budget",
    ],
)  # fmt: skip
def test_year_in_a_name_or_date_is_kept(query: str) -> None:
    assert clean_queries([query], NOW, 2026) == [query]


@pytest.mark.behaviour("30-stale-year")
def test_a_question_about_the_past_keeps_its_years() -> None:
    assert clean_queries(["python 2019"], "How did the latest Python of its time look in 2019?", 2026) == [
        "python 2019"
    ]


@pytest.mark.behaviour("30-keywords")
@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("How do I deploy node.js and C++ with Kubernetes?", "deploy node.js C++ Kubernetes"), ("What is it?", "What is it"), ("???", "???"),
        ("如何安装程序", "如何安装程序"), ("   ", ""), ("Should we use Postgres or Postgres?", "Postgres"), ("It's Rust's async/await", "It's Rust's async/await"),
    ],
)  # fmt: skip
def test_keywords_of_a_question_make_a_query(question: str, query: str) -> None:
    assert extract_keywords(question) == query


@pytest.mark.behaviour("30-keywords")
@given(st.text())
def test_nonempty_question_always_makes_a_query(question: str) -> None:
    query = extract_keywords(question)
    assert len(query) <= 500 and query == " ".join(query.split())
    if any(char.isalnum() for char in question):
        assert 0 < len(query.split()) <= 12
    assert len(extract_keywords(question * 300)) <= 500


@given(st.lists(st.text()), st.text())
def test_cleaned_queries_are_few_short_and_distinct(queries: list[str], question: str) -> None:
    kept = clean_queries(queries, question, 2026)
    assert len(kept) <= 3 and len({query.casefold() for query in kept}) == len(kept)
    assert all(0 < len(query) <= 500 and query == " ".join(query.split()) for query in kept)


@pytest.mark.parametrize(
    ("question", "age"),
    [
        ("What is the price of copper today?", "day"), ("Is npm down right now?", "day"), ("As of now, who leads?", "day"),
        ("What happened this week?", "week"), ("Any recent outages?", "month"), ("What changed this month?", "month"),
        ("What is the latest Python?", "year"), ("Which is the newest model this year?", "year"), ("up-to-date advice on keys", "year"),
        ("How do B-trees work?", "none"), ("The history of the latest Python", "none"), ("What was current in 2019?", "none"),
        ("Now that we have tests, should we refactor?", "none"), ("How does alternating current work?", "none"), ("Do you know?", "none"),
    ],
)  # fmt: skip
def test_freshness_is_detected_from_the_question(question: str, age: str) -> None:
    assert required_freshness(question) == age


@pytest.mark.behaviour("30-timely")
@pytest.mark.parametrize(
    ("question", "timely"),
    [
        ("What is the latest Python?", True), ("What does GPT-5 pricing look like?", True), ("Is there a CVE for log4j?", True),
        ("Which regulation covers drones?", True), ("When is the next Debian release?", True), ("Which version of Node has fetch?", True),
        ("What is the exchange rate of the euro?", True), ("Who is the CEO of Acme?", True), ("Is it legal to fly drones at night?", True),
        ("How do B-trees work?", False), ("Should I use tabs or spaces?", False), ("What was the price of bread in 1950?", False),
        ("Which version control is easiest to learn?", False), ("How does direct current differ?", False),
    ],
)  # fmt: skip
def test_time_sensitive_questions_are_detected(question: str, timely: bool) -> None:
    assert is_time_sensitive(question) is timely
