"""Schemas of callers: which are refused, and which values fit the others. The library `jsonschema` is the oracle."""

from __future__ import annotations

import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.json_schema import SchemaError, check_schema, find_problems, make_strict
from council.types import Json

PERSON: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 3},
        "parent": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.behaviour("50-v1-schema-check")
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"name": "Ann", "age": 3, "tags": ["a", "b"], "parent": {"name": "Bo", "parent": None}}, ""),
        ({"name": "Ann", "age": 3.0}, ""),
        ({}, "name is missing"),
        ({"name": ""}, "name has 0 characters, not at least 1"),
        ({"name": "Ann", "age": True}, "age is true, not integer"),
        ({"name": "Ann", "age": -1}, "age is -1, not at least 0"),
        ({"name": "Ann", "tags": ["a", 2]}, "tags[1] is 2, not string"),
        ({"name": "Ann", "tags": ["a", "a"]}, "tags has the same item twice"),
        ({"name": "Ann", "more": 1}, "more is no field of the schema"),
        ({"name": "Ann", "parent": {"name": 4}}, "parent fits none of its alternatives (parent.name is 4, not string)"),
        ([], "it is [], not object"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(value: Any, problem: str) -> None:
    check_schema(PERSON)
    assert find_problems(value, PERSON)[:1] == ([problem] if problem else [])


@pytest.mark.parametrize(
    ("part", "good", "bad"),
    [
        ({"format": "date-time"}, ["2026-02-28T10:00:00Z", "2026-02-28t10:00:00.123456789+01:00"], ["2026-02-30T10:00:00Z", "2026-02-28 10:00"]),
        ({"format": "date"}, ["2024-02-29"], ["2026-02-29", "20260228"]),
        ({"format": "time"}, ["10:00:00Z"], ["10:00", "25:00:00Z"]),
        ({"format": "duration"}, ["P3D", "PT1H30M", "P2W"], ["P", "PT", "3D"]),
        ({"format": "email"}, ["ann@example.com"], ["ann", "a b@example.com", "@example.com"]),
        ({"format": "hostname"}, ["example.com"], ["-a.com", "a..b"]),
        ({"format": "ipv4"}, ["10.0.0.1"], ["10.0.0.256"]),
        ({"format": "ipv6"}, ["::1"], ["10.0.0.1"]),
        ({"format": "uuid"}, ["3F2504E0-4F89-11D3-9A0C-0305E82C3301"], ["3F2504E04F8911D39A0C0305E82C3301"]),
        ({"format": "uri"}, ["https://example.com/a"], ["example.com", "https://a b"]),
        ({"format": "colour"}, ["anything"], []),
        ({"pattern": r"^[\w.-]+@\d{2}$"}, ["a.b@12"], ["é@12", "a@١٢"]),
        ({"pattern": r"[[(]x"}, ["[x"], ["x"]),
        ({"multipleOf": 0.1}, [0.3, 1, 1e-1], [0.35]),
        ({"exclusiveMinimum": 1, "exclusiveMaximum": 2}, [1.5], [1, 2]),
        ({"enum": [1, "a", None]}, [1.0, "a", None], [True, "1"]),
        ({"const": {"a": 1}}, [{"a": 1.0}], [{"a": 2}, {}]),
        ({"oneOf": [{"type": "integer"}, {"minimum": 5}]}, [1, 5.5], [6]),
        ({"not": {"type": "string"}}, [1], ["a"]),
        ({"if": {"type": "string"}, "then": {"maxLength": 1}, "else": {"maximum": 1}}, ["a", 1], ["ab", 2]),
        ({"prefixItems": [{"type": "string"}], "items": False}, [["a"], []], [["a", 1], [1]]),
        ({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}}, [["a", 1]], [["a", "b"]]),
        ({"contains": {"const": 1}, "maxContains": 1}, [[1, 2]], [[2], [1, 1]]),
        ({"patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": False}, [{"x-a": 1}], [{"x-a": "b"}, {"y": 1}]),
        ({"propertyNames": {"maxLength": 2}, "maxProperties": 1}, [{"ab": 1}], [{"abc": 1}, {"a": 1, "b": 2}]),
        ({"dependentRequired": {"a": ["b"]}}, [{"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
        ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, [{"c": 1, "d": 1}], [{"a": 1}, {"c": 1}]),
        ({"type": ["string", "null"]}, ["a", None], [1]),
        (True, [1, "a"], []),
        ({}, [1, None], [float("inf")]),
    ],
)  # fmt: skip
def test_each_keyword_decides(part: Any, good: list[Any], bad: list[Any]) -> None:
    check_schema(part)
    assert [value for value in good if find_problems(value, part)] == []
    assert [value for value in bad if not find_problems(value, part)] == []


def nest(depth: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


DOUBLING = {"$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(40)} | {"d40": {"type": "string"}}, "$ref": "#/$defs/d0"}  # fmt: skip


@pytest.mark.behaviour("50-v1-schema-limits")
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ([], "not a schema"),
        ({"type": "text"}, 'type is "text": use object'),
        ({"properties": {"a": 4}}, "properties.a is 4, not a schema"),
        ({"required": "a"}, 'required is "a": use a list of names'),
        ({"minLength": -1}, "minLength is -1: use a whole number from 0"),
        ({"$ref": "https://example.com/schema.json"}, "is not fetched: use #/$defs/NAME"),
        ({"$ref": "file:///etc/passwd"}, "is not fetched"),
        ({"$ref": "#/$defs/missing"}, "names nothing in the schema"),
        ({"enum": [{"a": 1}], "$ref": "#/enum/0"}, "names no schema"),
        ({"$ref": "#"}, "refers to itself"),
        ({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}, "refers to itself"),
        ({"properties": {"a": {"pattern": "^(?=x)y"}}}, "properties.a.pattern \"^(?=x)y\" cannot be checked: look-around"),
        ({"pattern": r"(a)\1"}, "cannot be checked: backreferences are not supported"),
        ({"pattern": r"(x{1,1000}){1,1000}"}, "repetitions are too many"),
        ({"pattern": "("}, "cannot be checked: unclosed group"),
        ({"patternProperties": {"(": {}}}, "cannot be checked"),
        ({"pattern": "a" * 1001}, "more than 1,000 characters"),
        ({"properties": {f"p{n}": {"pattern": f"a{n}"} for n in range(31)}}, "more than 30 patterns"),
        ({"unevaluatedProperties": False}, "unevaluatedProperties is not supported"),
        ({"properties": {"a": {"$id": "https://example.com/a"}}}, "properties.a.$id is not supported"),
        (nest(70), "nested deeper than 60 levels"),
        ({"enum": ["a" * 130_000]}, "characters, and at most 120,000 are checked"),
        ({"anyOf": [{}] * 5001}, "more than 5,000 parts"),
        (DOUBLING, "more than 10,000 alternatives for one value"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_checked_is_refused_with_its_place(schema: Any, said: str) -> None:
    with pytest.raises(SchemaError) as refused:
        check_schema(schema)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.behaviour("50-v1-schema-limits")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 9000 + "!"),
        ({"pattern": "^(a|a?)+$"}, "a" * 9000 + "!"),
        ({"items": {"pattern": "(x{1,900}){1,9}"}}, ["x" * 9000] * 25),
        ({"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}, None),
        ({"uniqueItems": True}, [{"a": n} for n in range(20_000)]),
        ({"items": {"enum": [f"{n}" for n in range(9000)]}}, ["1"] * 20_000),
        ({"items": {"required": [f"{n}" for n in range(9000)]}}, [{}] * 20_000),
    ],
)
def test_no_schema_makes_a_check_slow(schema: Any, value: Any) -> None:
    if value is None:
        value = {}
        for _ in range(60):
            value = {"a": value}
    check_schema(schema)
    started = time.process_time()
    find_problems(value, schema)
    assert time.process_time() - started < 5


def test_a_check_with_too_many_steps_does_not_say_that_the_value_fits() -> None:
    schema = {"items": {"required": [f"{n}" for n in range(9000)]}}
    assert find_problems([{}] * 20_000, schema) == [
        "it is too large or too deeply nested to be checked against the schema"
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2).map(lambda x: round(x, 1)) | st.sampled_from(["", "a", "ab", "b1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
PLAIN = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"]) | st.lists(st.sampled_from(["object", "string", "null"]), min_size=1, max_size=2, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "minimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "pattern": st.sampled_from(["^a", "b$", r"\d"]),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "uniqueItems": st.booleans(),
        "required": st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
        "minProperties": st.integers(0, 2),
        "dependentRequired": st.dictionaries(st.sampled_from(["a", "b"]), st.just(["c"]), max_size=1),
    },
)  # fmt: skip
SCHEMAS: Any = st.recursive(
    PLAIN | st.booleans() | st.just({"$ref": "#/$defs/leaf"}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=1),
            "additionalProperties": inner,
            "propertyNames": inner,
            "dependentSchemas": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=1),
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "contains": inner,
            "minContains": st.integers(0, 2),
            "maxContains": st.integers(0, 2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
        },
    ),
    max_leaves=5,
)


@pytest.mark.behaviour("50-v1-schema-check")
@settings(max_examples=150, derandomize=True, database=None, deadline=None)
@given(schema=SCHEMAS, value=VALUES)
def test_the_library_jsonschema_accepts_the_same_values(schema: Any, value: Any) -> None:
    root = {"$defs": {"leaf": {"type": "string"}}, "allOf": [schema]}
    check_schema(root)
    problems = find_problems(value, root)
    assert (problems == []) == jsonschema.Draft202012Validator(root).is_valid(value), problems


@pytest.mark.parametrize(
    ("schema", "is_strict"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, True),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "required": ["a"], "$defs": {"b": {"enum": ["x"]}}}, True),
        ({"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}, True),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, False),  # optional
        ({"type": "object"}, False),
        ({"type": "array", "items": {"type": "string"}}, False),
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, False),
        ({"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}]}}, "required": ["a"]}, False),
        ({"type": "object", "properties": {"a": True}, "required": ["a"]}, False),
        ({"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}, "required": ["a"]}, False),
        (True, False),
    ],
)  # fmt: skip
def test_only_a_schema_that_vendors_accept_is_sent_as_a_parameter(schema: Any, is_strict: bool) -> None:
    check_schema(schema)
    strict = make_strict(schema)
    assert (strict is not None) == is_strict
    if strict is not None:
        assert strict["additionalProperties"] is False and "$ref" not in str(strict)
