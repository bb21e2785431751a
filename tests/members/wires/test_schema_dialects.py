"""JSON Schema dialects of the vendors."""

from __future__ import annotations

from typing import Any

import pytest

from council.members.wires.schema_dialects import ANTHROPIC, GOOGLE, OPENAI, SchemaDialect, convert_schema
from council.types import Ask
from tests.fakes.members import member_at

WIDE: Any = {
    "type": "object",
    "title": "Ballot",
    "properties": {
        "rows": {"type": "array", "minItems": 3, "maxItems": 3, "items": {"type": "string", "maxLength": 40}},
        "some": {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1, "maximum": 9}},
        "verdict": {"type": "string", "enum": ["PASS", "FAIL"], "description": "What you think."},
        "kind": {"const": "ballot"},
        "why": {"oneOf": [{"type": "string", "format": "uri"}, {"type": "null"}], "default": None},
        "default": {"type": "string"},
    },
    "required": ["rows"],
    "additionalProperties": False,
}


def part(grammar: SchemaDialect, name: str) -> Any:
    return convert_schema(WIDE, grammar)["properties"][name]


@pytest.mark.behaviour("issue-5-native-structured-output")
def test_unsupported_keywords_move_to_the_description() -> None:
    assert part(ANTHROPIC, "rows") == {
        "type": "array",
        "items": {"type": "string", "description": "(maxLength: 40)"},
        "description": "(minItems: 3, maxItems: 3)",
    }
    assert part(OPENAI, "rows") == {
        "type": "array", "minItems": 3, "maxItems": 3, "items": {"type": "string", "description": "(maxLength: 40)"},
    }  # fmt: skip


def test_supported_keywords_are_kept() -> None:
    assert part(ANTHROPIC, "some")["minItems"] == 1
    assert part(GOOGLE, "some") == part(OPENAI, "some") == WIDE["properties"]["some"]


def test_enum_and_const_follow_each_dialect() -> None:
    assert part(ANTHROPIC, "verdict") == {"enum": ["PASS", "FAIL"], "description": "What you think."}
    assert part(OPENAI, "verdict") == WIDE["properties"]["verdict"]
    assert (part(OPENAI, "kind"), part(GOOGLE, "kind")) == ({"const": "ballot"}, {"enum": ["ballot"]})


@pytest.mark.parametrize("grammar", [OPENAI, ANTHROPIC, GOOGLE])
def test_one_of_becomes_any_of_and_defaults_are_dropped(grammar: SchemaDialect) -> None:
    why = part(grammar, "why")
    assert [choice["type"] for choice in why["anyOf"]] == ["string", "null"]
    assert "default" not in why
    assert part(grammar, "default") == {"type": "string"}  # a property may have any name
    assert convert_schema(WIDE, grammar)["additionalProperties"] is False


def test_a_supported_schema_is_unchanged() -> None:
    plain = {
        "type": "object",
        "properties": {"yes": {"type": "boolean"}},
        "required": ["yes"],
        "additionalProperties": False,
    }
    assert convert_schema(plain, OPENAI) == convert_schema(plain, ANTHROPIC) == convert_schema(plain, GOOGLE) == plain


def test_a_small_model_gets_the_unconverted_schema() -> None:
    ask = Ask("k", ({"role": "user", "content": "?"},), WIDE, "Ballot")
    assert b'"maxLength":40' in member_at("http://x", "openai", small=True).prepare(ask)
    assert b'"maxLength":40' not in member_at("http://x", "openai").prepare(ask)
