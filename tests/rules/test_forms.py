"""A typed question put to a person: what is to be filled in, and what their words come to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from council import replies
from council.errors import UsageError
from council.members.scripted import instance
from council.replies import (
    Attack,
    Ballot,
    Lookups,
    Opinion,
    Position,
    Queries,
    Reconsidered,
    Reply,
    SecondOpinion,
    Triage,
)
from council.rules.forms import fields, filled, main_field, problem
from council.types import Json

EVERY = [one for one in vars(replies).values() if isinstance(one, type) and issubclass(one, Reply) and one is not Reply]


def schema(reply: type[Reply], **choices: Any) -> Json:
    return replies.schema_of(reply, choices)


def read(reply: type[Reply], text: str) -> Any:
    return replies.read(reply, filled(schema(reply), text), {})


# What is shown


@pytest.mark.behaviour("50-human-typed")
def test_a_field_has_a_name_a_kind_words_about_it_and_its_choices() -> None:
    issues, case, verdict = fields(schema(Attack))
    assert (verdict["name"], verdict["kind"], verdict["choices"]) == (
        "verdict",
        "choice",
        ["STAND", "MODIFIED", "REJECTED"],
    )
    assert verdict["help"] == "your judgement of the leading draft as a whole"
    assert (case["name"], case["kind"]) == ("case", "text")
    assert issues["kind"] == "rows"
    assert [one["name"] for one in issues["fields"]] == ["severity", "hits", "flaw", "correction"]


def test_what_leaves_no_choice_is_not_asked() -> None:
    assert "schema_version" in schema(Opinion)["properties"]
    assert "schema_version" not in [field["name"] for field in fields(schema(Opinion))]


def test_a_group_has_fields_of_its_own_and_what_may_stay_empty_says_so() -> None:
    notes = next(field for field in fields(schema(SecondOpinion)) if field["name"] == "debate_notes")
    assert notes["kind"] == "group" and {one["name"] for one in notes["fields"]} >= {"steel_man", "revised_from"}
    exploration = next(field for field in fields(schema(Lookups)) if field["name"] == "exploration")
    assert exploration["optional"] is True


def test_a_question_without_a_form_has_no_fields() -> None:
    assert fields(None) == []


def test_a_list_that_must_be_whole_says_how_many_and_of_what() -> None:
    reasons, order = fields(schema(Ballot, label=["A", "B"]))[1:]
    assert (order["kind"], order["choices"], order["minItems"], order["maxItems"]) == ("list", ["A", "B"], 2, 2)
    assert reasons["fields"][0]["choices"] == ["A", "B"]


# What words come to


@pytest.mark.parametrize("reply", EVERY)
def test_whatever_fits_a_reply_of_ours_is_taken_as_it_is(reply: type[Reply]) -> None:
    whole = instance(schema(reply), False)
    assert problem(schema(reply), whole) == ""
    assert json.loads(filled(schema(reply), json.dumps(whole))) == whole


@pytest.mark.behaviour("50-human-words")
def test_words_go_into_the_main_field_and_what_need_not_be_decided_stays_empty() -> None:
    said = read(Position, "It depends on the restores.")
    assert (said.response, said.claims, said.confidence) == ("It depends on the restores.", [], 0.5)


@pytest.mark.behaviour("50-human-words")
def test_a_verdict_that_the_words_name_is_taken_and_none_is_ever_invented() -> None:
    said = read(Opinion, "FAIL: the check is gone.")
    assert (said.verdict, said.confidence, said.key_insight) == ("FAIL", "MEDIUM", "FAIL: the check is gone.")
    for words in ("I do not like it.", "Neither PASS nor FAIL.", "FAILURE is not an option"):
        with pytest.raises(UsageError, match=r"it leaves open verdict \(PASS, WARN, FAIL\)"):
            filled(schema(Opinion), words)


@pytest.mark.behaviour("50-human-words")
def test_yes_or_no_is_never_guessed() -> None:
    with pytest.raises(UsageError, match="same_conclusion, no_critical_flag"):
        filled(schema(Triage), "alpha leads")


def test_lines_fill_the_only_list_there_is() -> None:
    assert read(Queries, "cold storage price\n\nrestore time\n").queries == ["cold storage price", "restore time"]


def test_words_that_have_no_place_are_refused_and_not_lost() -> None:
    with pytest.raises(UsageError, match="words alone do not answer this, nothing was taken: give JSON with answers"):
        filled(schema(Reconsidered), "I maintain it.")


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"verdict": "MAYBE", "case": ""}, "verdict must be one of STAND, MODIFIED, REJECTED"),
        ({"verdict": "STAND", "case": 3}, "case must be text"),
        ({"verdict": "STAND", "case": "", "mood": "good"}, "mood is not asked for"),
        ({"verdict": "STAND", "case": "", "issues": "none"}, "issues must be array"),
        ({"verdict": "STAND", "case": "", "issues": [{"severity": "MAJOR"}]}, "issues[1].hits is missing"),
        ({"case": "only that"}, "it leaves open verdict (STAND, MODIFIED, REJECTED)"),
    ],
)
def test_json_that_does_not_fit_is_refused_in_a_few_words(said: Json, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        filled(schema(Attack), json.dumps(said))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_keep_to_their_bounds() -> None:
    whole = instance(schema(Position), False)
    assert problem(schema(Position), whole | {"confidence": 2}) == "confidence must be 1 or less"
    assert problem(schema(Position), whole | {"confidence": -1}) == "confidence must be 0 or more"
    assert problem(schema(Position), whole | {"confidence": True}) == "confidence must be number"


@pytest.mark.parametrize("nothing", ["", "  \n"])
def test_nothing_is_an_abstention_whatever_was_asked(nothing: str) -> None:
    assert filled(schema(Opinion), nothing) == filled(None, nothing) == nothing


def test_free_words_stay_as_they_are() -> None:
    assert filled(None, '{"a": 1}') == '{"a": 1}'
    assert main_field(schema(Attack)) == "case"
