"""Imperfect replies, written by hand in the manner of several vendors: their readings, and those that get the repair
turn.

tests/data/imperfect_replies.toml has two tables: `row` is a sample of what models write, `unclear` has replies that
must not be accepted because they can be read in two ways or are not complete.
"""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from council.answer_text import find_refusal
from council.calling.answer_check import find_refusal_in_reply
from council.engine.reply import build_schema, parse_reply
from council.engine.reply_form import match_choice
from council.errors import Fault
from council.members.scripted import example_value
from council.protocols.judges.replies import Opinion
from tests.paths import DATA
from tests.reply_types import REPLY_TYPES

TABLE: dict[str, Any] = tomllib.loads((DATA / "imperfect_replies.toml").read_text(encoding="utf-8"))
ROWS, UNCLEAR = TABLE["row"], TABLE["unclear"]
ADVISORS = ["pragmatist", "visionary", "skeptic"]
CHOICES: dict[str, dict[str, list[str]]] = {
    "Triage": {"leader": ["alpha", "beta", "gamma"]},
    "Ruling": {"issue": ["beta-1", "beta-2", "gamma-1"]},
    "Refereed": {"advisor": ADVISORS},
    "RefereedRounds": {"advisor": ADVISORS},
    "ClaimGroups": {"claims": ["alpha-1", "alpha-2", "beta-1", "gamma-1"]},
    "Ballot": {"label": ["A", "B", "C"]},
    "Synthesis": {"disagreement": ["D1", "D2"]},
    "Reconsidered": {"topic": ["D1", "D2"]},
}
TITLES = {
    "Drafter & Red Teamer": "alpha", "Fact-Checker & Validator": "beta", "Optimizer & Devil's Advocate": "gamma",
    "Pragmatist": "pragmatist", "Visionary": "visionary", "Skeptic": "skeptic",
}  # fmt: skip


def read(row: dict[str, Any]) -> Any:
    """Return the parsed reply, "repair" or "refused", as a run would decide."""
    reply = REPLY_TYPES[row["reply"]]
    choices = CHOICES.get(row["reply"], {})
    try:
        parsed = parse_reply(reply, row["text"], choices, TITLES)
    except Fault:
        return "refused" if find_refusal(row["text"]) else "repair"
    return "refused" if find_refusal_in_reply(parsed, build_schema(reply, choices)) else parsed


def value_at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if part == "#":
            return len(value)
        value = value[int(part)] if part.isdigit() else getattr(value, part)
    return "" if value is None else value


def name_of(row: dict[str, Any]) -> str:
    return f"{row['reply']}: {row['form']}"


@pytest.mark.behaviour("10-replies-never-guessed")
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_an_imperfect_reply_is_read_as_it_was_meant(row: dict[str, Any]) -> None:
    got, expected = read(row), row["expect"]
    if isinstance(expected, str) or isinstance(got, str):
        assert got == expected
    else:
        assert {path: value_at(got, path) for path in expected} == expected


@pytest.mark.behaviour("10-replies-never-guessed")
@pytest.mark.parametrize("row", UNCLEAR, ids=name_of)
def test_an_unclear_reply_gets_the_repair_turn(row: dict[str, Any]) -> None:
    assert read(row) == "repair"


@pytest.mark.behaviour("10-replies-lenient")
def test_at_least_95_percent_are_usable_without_a_repair_turn() -> None:
    repaired = [name_of(row) for row in ROWS if read(row) == "repair"]
    share = 100 * (1 - len(repaired) / len(ROWS))
    assert len(ROWS) >= 150
    assert share >= 95, f"{share:.1f} % of {len(ROWS)} replies are usable without a repair turn; repaired: {repaired}"


# What the repair turn says


@pytest.mark.behaviour("10-repair-names-the-problem")
@pytest.mark.parametrize(
    ("reply", "text", "words"),
    [
        ("Triage", '{"leader": "delta", "reason": "x"}',
         'leader: "delta" is not one of alpha, beta, gamma; agreed, contested, same_conclusion, '
         "no_critical_flag, no_contradiction and mostly_high are missing"),
        ("Opinion", '{"verdict": "MAYBE", "confidence": 7, "key_insight": "x", "findings": [{"severity": "urgent"}]}',
         'verdict: "MAYBE" is not one of PASS, WARN, FAIL; confidence: 7 is not one of HIGH, MEDIUM, LOW; '
         'findings 1, severity: "urgent" is not one of critical, significant, minor; findings 1, description is missing; '
         "recommendation is missing"),
        ("Opinion", "The code is fine.",
         "it has no JSON object with the fields verdict, confidence, key_insight, findings, recommendation"),
        ("Opinion", '{"verdict": "PASS", "confidence"', "the JSON is not closed: it ends in the middle"),
        ("Opinion", '{"verdict": "PASS" "confidence": 1}', "the JSON is not valid: Expecting ',' delimiter at line 1"),
        ("Opinion", '{"verdict": "PASS", "verdict": "FAIL"}', 'the key "verdict" is given twice with different values'),
        ("Triage", '{"leader": "alpha", "reason": ["a", 1], "same_conclusion": "mostly"}',
         'same_conclusion: "mostly" is not true or false; reason: a list is not text; agreed, contested, '
         "no_critical_flag, no_contradiction and mostly_high are missing"),
        ("Queries", '{"queries": ["a"]} or {"queries": ["b"]}', "it has 2 different JSON objects that fit the schema"),
    ],
)  # fmt: skip
def test_the_repair_turn_names_each_problem(reply: str, text: str, words: str) -> None:
    with pytest.raises(Fault) as caught:
        parse_reply(REPLY_TYPES[reply], text, CHOICES.get(reply, {}))
    assert words in caught.value.detail


# Wrapping a valid reply changes nothing

WRAPS = {
    "prose": "Sure! Here is {it} as asked:\n\n%s\n\nI hope this helps.",
    "fence": "```json\n%s\n```",
    "fence in prose": 'The reply, with "quotes":\n```\n%s\n```\nDone.',
    "wrapper": '{"result": %s}',
    "list of one": "[%s]",
    "comment": "%s // done",
    "mark": "\ufeff\x00%s\x00",
}


@st.composite
def valid_replies(draw: Any) -> tuple[str, str]:
    """Return the name of a reply type, and a valid reply as JSON."""
    name = draw(st.sampled_from(sorted(REPLY_TYPES)))
    value = example_value(build_schema(REPLY_TYPES[name], CHOICES.get(name, {})), draw(st.booleans()))
    words = draw(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40))
    return name, json.dumps(value).replace("\\u2026", json.dumps(f"w{words}")[1:-1])


@pytest.mark.behaviour("10-replies-never-guessed")
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(valid_replies(), st.sampled_from(sorted(WRAPS)))
def test_wrapping_a_valid_reply_gives_the_same_reply(made: tuple[str, str], wrap: str) -> None:
    (name, text), wrapped = made, WRAPS[wrap]
    reply, choices = REPLY_TYPES[name], CHOICES.get(name, {})
    expected = parse_reply(reply, text, choices)
    assert expected == reply.model_validate_json(text)
    assert parse_reply(reply, wrapped.replace("%s", text), choices) == expected
    assert parse_reply(reply, wrapped.replace("%s", f"{text[:-1]}, }}"), choices) == expected


# Bad input

FULL = {"verdict": "PASS", "confidence": "HIGH", "key_insight": "x", "findings": [], "recommendation": "y"}


def test_a_reply_of_2_mb_is_read() -> None:
    text = json.dumps(FULL | {"recommendation": "word " * 400_000})
    assert len(parse_reply(Opinion, f"Here: {text}\nDone.", {}).recommendation) == 2_000_000


@pytest.mark.parametrize(
    "text",
    ["{" * 1_000_000, '{"a":' * 400_000, '{"a":"' + '\\"' * 500_000, "[" * 2_000_000, '[{"a":' * 300_000, "{a: " * 300_000,
     '["' * 500_000, '{"a": 1}' * 200_000, "{ /*" * 300_000, "{“" * 300_000, "{ // x\n" * 100_000, "{'" * 300_000,
     '{"a": ' + "1" * 100_000 + "}", '{"verdict": NaN}', '{"verdict": "\\ud800"}', "\x00" * 1000],
    ids=lambda text: text[:8],
)  # fmt: skip
def test_hostile_text_is_a_fault_and_takes_no_long_time(text: str) -> None:
    with pytest.raises(Fault):
        parse_reply(Opinion, text, {})


def test_an_object_nested_too_deeply_is_a_fault() -> None:
    deep = json.dumps(FULL)[:-1] + ', "more": ' + "[" * 5000 + "]" * 5000 + "}"
    with pytest.raises(Fault):
        parse_reply(Opinion, deep, {})


def test_characters_that_cannot_be_stored_are_removed() -> None:
    text = json.dumps(FULL).replace('"x"', '"a\\u0000b\\ud83d\\ude00c\\udc00"')
    assert parse_reply(Opinion, text, {}).key_insight == "ab😀c\ufffd"


# Names


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("alpha", "alpha"), ("Alpha", "alpha"), ("**alpha**", "alpha"), ("`Alpha`", "alpha"), ("Seat Alpha", "alpha"),
        ("seat: alpha", "alpha"), ("The Alpha draft", "alpha"), ("Alpha (Drafter & Red Teamer)", "alpha"),
        ("Alpha — Drafter", "alpha"), ("alpha.", "alpha"), ("Drafter & Red Teamer", "alpha"), ("beta-1", None),
        ("alpha or beta", None), ("alpha/beta", None), ("not alpha", None), ("anyone but alpha", None), ("", None),
        ("alpha (rather than beta)", None), ("alphabet", None), ("the draft", None),
        ("Deep Explorer (alpha)", "alpha"), ("Deep Explorer (delta)", None), ("beta (alpha)", None),
    ],
)  # fmt: skip
def test_a_name_of_a_seat_is_matched_or_left(value: str, expected: str | None) -> None:
    assert match_choice(value, ["alpha", "beta", "gamma"], TITLES) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("beta-1", "beta-1"), ("Beta-1", "beta-1"), ("beta-1:", "beta-1"), ("issue beta-1", "beta-1"), ("beta 1", "beta-1"),
     ("beta-12", "beta-12"), ("beta-1 and beta-12", None), ("beta", None), ("1", None), ("beta-1, beta-12", None)],
)  # fmt: skip
def test_an_id_of_an_issue_is_matched_or_left(value: str, expected: str | None) -> None:
    assert match_choice(value, ["beta-1", "beta-12"]) == expected
