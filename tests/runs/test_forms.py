"""Questions to a person: while they are open, the fields of their forms, and parsing of answers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from council.engine.reply import Reply, build_schema, parse_reply
from council.errors import UsageError
from council.members.scripted import example_value
from council.protocols.adversarial.replies import Attack, Triage
from council.protocols.general.replies import Position, Queries, Reconsidered
from council.protocols.judges.replies import Lookups, Opinion, SecondOpinion
from council.protocols.ranking.replies import Ballot
from council.runs.people import StoredQuestions, fill_form, find_mismatch, form_fields, main_field
from council.store.sqlite import SqliteStore
from council.types import Json, JsonSchema
from tests.reply_types import REPLY_TYPES


def schema(reply: type[Reply], **choices: Any) -> JsonSchema:
    return build_schema(reply, choices)


def read(reply: type[Reply], text: str) -> Any:
    return parse_reply(reply, fill_form(schema(reply), text), {})


@pytest.mark.anyio
@pytest.mark.parametrize("is_answered", [True, False])
async def test_a_question_is_open_while_its_seat_waits(is_answered: bool, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    await store.write("r2345", [("run", ("a run", "here", 1.0, "42", "{}"))])
    asking = asyncio.ensure_future(StoredQuestions(store, "r2345").ask("draft/ann", "ann", "Tabs or spaces?", None))
    while not (rows := await store.list_open_asks("r2345")):  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert [row["key"] for row in rows] == ["draft/ann"]
    if is_answered:
        assert await store.save_answer("r2345", "draft/ann", "Tabs.")
        assert await asking == "Tabs."
    else:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert await store.list_open_asks("r2345") == []
    assert not await store.save_answer("r2345", "draft/ann", "Too late.")
    store.close()


# Fields


@pytest.mark.behaviour("50-human-typed")
def test_a_field_has_name_kind_help_and_choices() -> None:
    issues, case, concedes, verdict = form_fields(schema(Attack))
    assert concedes["name"] == "concedes"
    assert (verdict["name"], verdict["kind"], verdict["choices"]) == (
        "verdict",
        "choice",
        ["STAND", "MODIFIED", "REJECTED"],
    )
    assert verdict["help"] == "your judgement of the leading draft as a whole"
    assert (case["name"], case["kind"]) == ("case", "text")
    assert issues["kind"] == "rows"
    assert [one["name"] for one in issues["fields"]] == ["severity", "hits", "flaw", "correction"]


def test_a_field_with_one_possible_value_is_left_out() -> None:
    assert "schema_version" in schema(Opinion)["properties"]
    assert "schema_version" not in [field["name"] for field in form_fields(schema(Opinion))]


def test_a_group_has_nested_fields_and_optional_ones_are_marked() -> None:
    notes = next(field for field in form_fields(schema(SecondOpinion)) if field["name"] == "debate_notes")
    assert notes["kind"] == "group" and {one["name"] for one in notes["fields"]} >= {"steel_man", "revised_from"}
    exploration = next(field for field in form_fields(schema(Lookups)) if field["name"] == "exploration")
    assert exploration["optional"] is True


def test_a_question_without_a_form_has_no_fields() -> None:
    assert form_fields(None) == []


def test_a_complete_list_has_item_counts_and_choices() -> None:
    reasons, order = form_fields(schema(Ballot, label=["A", "B"]))[1:]
    assert (order["kind"], order["choices"], order["minItems"], order["maxItems"]) == ("list", ["A", "B"], 2, 2)
    assert reasons["fields"][0]["choices"] == ["A", "B"]


# Parsing


@pytest.mark.parametrize("reply", list(REPLY_TYPES.values()))
def test_json_that_fits_the_reply_is_accepted_unchanged(reply: type[Reply]) -> None:
    whole = example_value(schema(reply), False)
    assert find_mismatch(schema(reply), whole) == ""
    assert json.loads(fill_form(schema(reply), json.dumps(whole))) == whole


@pytest.mark.behaviour("50-human-words")
def test_free_text_fills_the_main_field_and_optional_fields_stay_empty() -> None:
    said = read(Position, "It depends on the restores.")
    assert (said.response, said.claims, said.confidence) == ("It depends on the restores.", [], 0.5)


@pytest.mark.behaviour("50-human-words")
def test_a_verdict_named_in_the_text_is_used_and_never_invented() -> None:
    said = read(Opinion, "FAIL: the check is gone.")
    assert (said.verdict, said.confidence, said.key_insight) == ("FAIL", "MEDIUM", "FAIL: the check is gone.")
    for words in ("I do not like it.", "Neither PASS nor FAIL.", "FAILURE is not an option"):
        with pytest.raises(UsageError, match=r"missing: verdict \(PASS, WARN, FAIL\)"):
            fill_form(schema(Opinion), words)


@pytest.mark.behaviour("50-human-words")
def test_yes_or_no_is_never_guessed() -> None:
    with pytest.raises(UsageError, match="same_conclusion, no_critical_flag"):
        fill_form(schema(Triage), "alpha leads")


def test_lines_fill_the_only_list() -> None:
    assert read(Queries, "cold storage price\n\nrestore time\n").queries == ["cold storage price", "restore time"]


def test_free_text_without_a_main_field_is_rejected() -> None:
    with pytest.raises(UsageError, match="free text is not enough: give JSON with answers"):
        fill_form(schema(Reconsidered), "I maintain it.")


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"verdict": "MAYBE", "case": ""}, "verdict must be one of STAND, MODIFIED, REJECTED"),
        ({"verdict": "STAND", "case": 3}, "case must be text"),
        ({"verdict": "STAND", "case": "", "mood": "good"}, "mood is not a field of this form"),
        ({"verdict": "STAND", "case": "", "issues": "none"}, "issues must be array"),
        ({"verdict": "STAND", "case": "", "issues": [{"severity": "MAJOR"}]}, "issues[1].hits is missing"),
        ({"case": "only that"}, "missing: verdict (STAND, MODIFIED, REJECTED)"),
    ],
)
def test_json_that_does_not_fit_is_rejected_with_the_reason(said: Json, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        fill_form(schema(Attack), json.dumps(said))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_keep_to_their_bounds() -> None:
    whole = example_value(schema(Position), False)
    assert find_mismatch(schema(Position), whole | {"confidence": 2}) == "confidence must be 1 or less"
    assert find_mismatch(schema(Position), whole | {"confidence": -1}) == "confidence must be 0 or more"
    assert find_mismatch(schema(Position), whole | {"confidence": True}) == "confidence must be a number"


@pytest.mark.parametrize("nothing", ["", "  \n"])
def test_an_empty_answer_is_an_abstention(nothing: str) -> None:
    assert fill_form(schema(Opinion), nothing) == fill_form(None, nothing) == nothing


def test_free_text_stays_unchanged() -> None:
    assert fill_form(None, '{"a": 1}') == '{"a": 1}'
    assert main_field(schema(Attack)) == "case"
