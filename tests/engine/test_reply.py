"""Typed replies: schema, parsing and faults."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.engine.reply import SMALL_LIST, SMALL_STRING, Reply, build_schema, parse_reply, strip_code_fence
from council.errors import Fault
from council.protocols.adversarial.replies import Attack, Ruling, Triage

ALL = (Triage, Attack, Ruling)
TRIAGE: dict[str, Any] = {
    "leader": "beta", "reason": "It is tested.", "agreed": ["a"], "contested": [], "same_conclusion": True,
    "no_critical_flag": True, "no_contradiction": True, "mostly_high": True,
}  # fmt: skip
RULING: dict[str, Any] = {"points": [], "outcome": "SURVIVED", "answer": "Tabs.", "assessment": "Little contested."}


def objects(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, list):
        return [found for item in node for found in objects(item)]
    if not isinstance(node, dict):
        return []
    own = [node] if node.get("type") == "object" else []
    return own + [found for value in node.values() for found in objects(value)]


# Schema


@pytest.mark.behaviour("house-strict-schemas")
@pytest.mark.parametrize("reply", ALL)
@pytest.mark.parametrize("small", [False, True])
def test_a_schema_is_strict_all_the_way_down(reply: type[Reply], small: bool) -> None:
    schema = build_schema(reply, {}, small=small)
    for node in objects(schema):
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])
    assert not {"$ref", "$defs", "default"} & set(json.dumps(schema).replace('"', " ").split())


def test_choices_limit_values_at_any_depth() -> None:
    assert build_schema(Triage, {"leader": ["alpha", "gamma"]})["properties"]["leader"]["enum"] == ["alpha", "gamma"]
    points = build_schema(Ruling, {"issue": ["beta-1"]})["properties"]["points"]
    assert points["items"]["properties"]["issue"]["enum"] == ["beta-1"]


def test_the_schema_of_a_small_member_limits_strings_and_lists() -> None:
    properties = build_schema(Triage, {"leader": ["alpha"]}, small=True)["properties"]
    assert properties["reason"]["maxLength"] == SMALL_STRING
    assert (properties["agreed"]["maxItems"], properties["agreed"]["items"]["maxLength"]) == (SMALL_LIST, SMALL_STRING)
    assert "maxLength" not in build_schema(Triage, {})["properties"]["reason"]


@pytest.mark.behaviour("000-attack-severity", "000-attack-stance", "000-verdict-outcome")
def test_enums_of_replies_match_the_specification() -> None:
    attack = build_schema(Attack, {})["properties"]
    assert attack["issues"]["items"]["properties"]["severity"]["enum"] == ["FATAL", "MAJOR", "MINOR"]
    assert attack["verdict"]["enum"] == ["STAND", "MODIFIED", "REJECTED"]
    assert build_schema(Ruling, {})["properties"]["outcome"]["enum"] == ["SURVIVED", "MODIFIED", "OVERTURNED"]


# Parsing


@pytest.mark.parametrize(
    "around",
    ["{}", "```json\n{}\n```", "```\n{}\n```", "  \n```JSON\n{}\n```\n "],
    ids=["bare", "json", "plain", "spaced"],
)
def test_a_code_fence_around_the_whole_message_is_stripped(around: str) -> None:
    assert parse_reply(Triage, around.replace("{}", json.dumps(TRIAGE)), {}).leader == "beta"


@pytest.mark.parametrize("around", ["Here you are: {}", "{} I hope this helps", "Sure!\n```json\n{}\n```"])
def test_text_around_the_object_is_ignored(around: str) -> None:
    assert parse_reply(Triage, around.replace("{}", json.dumps(TRIAGE)), {}).leader == "beta"


def test_a_fault_names_the_field_and_keeps_the_raw_reply() -> None:
    said = json.dumps({key: value for key, value in TRIAGE.items() if key != "leader"})
    with pytest.raises(Fault) as caught:
        parse_reply(Triage, said, {})
    assert (caught.value.kind, caught.value.detail, caught.value.said) == ("schema", "leader is missing", said)


def test_extra_fields_in_a_reply_are_ignored() -> None:
    assert parse_reply(Triage, json.dumps(TRIAGE | {"thoughts": "hm"}), {}).leader == "beta"


@pytest.mark.behaviour("10-chair-names-absent-seat")
@pytest.mark.parametrize(
    ("reply", "value", "choices", "words"),
    [
        (Triage, TRIAGE, {"leader": ["alpha", "gamma"]}, 'leader: "beta" is not one of alpha, gamma'),
    ],
)  # fmt: skip
def test_a_value_outside_the_choices_is_a_fault(
    reply: type[Reply], value: Any, choices: dict[str, list[str]], words: str
) -> None:
    with pytest.raises(Fault, match=words):
        parse_reply(reply, json.dumps(value), choices)


Span = Enum("Span", {"SHORT": [1, 10], "LONG": [10, 100]})


class Growth(Reply):
    span: Span
    why: str


def test_an_example_is_told_from_the_reply_where_choices_are_no_texts() -> None:
    example, reply = '{"span": [1, 10], "why": "…"}', '{"span": [10, 100], "why": "The data grows."}'
    found = parse_reply(Growth, f"In the form {example}:\n\n{reply}", {})
    assert (found.span, found.why) == (Span.LONG, "The data grows.")


@pytest.mark.behaviour("10-rulings-by-id")
def test_a_field_with_open_choices_keeps_an_unknown_value() -> None:
    points = [{"issue": "delta-9", "landed": True, "why": "x"}]
    assert (
        parse_reply(Ruling, json.dumps(RULING | {"points": points}), {"issue": ["beta-1"]}).points[0].issue == "delta-9"
    )


def test_overturned_on_a_landed_point_is_read() -> None:
    points = [{"issue": "beta-1", "landed": True, "why": "yes"}]
    assert (
        parse_reply(Ruling, json.dumps(RULING | {"outcome": "OVERTURNED", "points": points}), {}).outcome
        == "OVERTURNED"
    )


@given(st.text(max_size=300))
def test_any_text_is_a_reply_or_a_fault(text: str) -> None:
    for reply in ALL:
        try:
            parse_reply(reply, text, {"leader": ["alpha"]})
        except Fault as fault:
            assert fault.kind == "schema"


@given(st.text(max_size=100))
def test_stripping_a_code_fence_never_fails_and_never_adds_text(text: str) -> None:
    assert strip_code_fence(text) in text


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"a":' * 100_000, "1" * 100_000])
def test_a_hostile_reply_is_a_fault_and_no_crash(deep: str) -> None:
    with pytest.raises(Fault):
        parse_reply(Triage, deep, {"leader": ["alpha"]})


# Rendering


def test_a_triage_reads_as_leader_reason_and_points() -> None:
    assert Triage(**TRIAGE).prose() == "Leading position: Beta\nReason: It is tested.\nAgreed: a"


def test_an_attack_numbers_its_issues_and_ends_in_its_verdict() -> None:
    issue = {"severity": "MAJOR", "hits": "claim 1", "flaw": "wrong.", "correction": "right."}
    attack = Attack(issues=[issue], case="Mine is tested.", verdict="MODIFIED")  # type: ignore[list-item]
    lines = attack.prose().split("\n\n")
    assert "**MAJOR** claim 1: wrong. Correction: right." in lines[0]
    assert lines[1:] == ["Mine is tested.", "Verdict: MODIFIED"]


def test_an_attack_that_found_nothing_says_so() -> None:
    assert Attack(issues=[], case="", verdict="STAND").prose() == "No issue found.\n\nVerdict: STAND"


def test_a_ruling_reads_as_its_answer() -> None:
    assert Ruling(**RULING).prose() == "Tabs."


def test_numbers_as_keys_in_the_notation_of_python_are_read() -> None:
    written = str(RULING | {"note": "it's", "extra": {1: "one"}})
    assert parse_reply(Ruling, written, {}).answer == "Tabs."


def test_a_key_that_is_given_twice_with_different_values_is_a_fault() -> None:
    with pytest.raises(Fault, match="given twice"):
        parse_reply(Ruling, json.dumps(RULING)[:-1] + ', "answer": "Spaces."}', {})


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"points": 7}, "points: 7 is not a list"),
        ({"answer": {"a": {"b": 1}}}, "answer: an object is not text"),
        ({"points": [7]}, "points 1: 7 is not an object"),
    ],
)
def test_a_value_of_another_type_is_named_with_what_was_expected(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(Fault) as caught:
        parse_reply(Ruling, json.dumps(RULING | given), {})
    assert problem in caught.value.detail
