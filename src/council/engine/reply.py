"""Typed replies: the JSON schema sent with a request, and the parser of the answer."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from council.errors import Fault
from council.types import Json

R = TypeVar("R", bound="Reply")
Choices = Mapping[str, Collection[str]]  # field name → allowed values in this request
SMALL_STRING = 400
SMALL_ROWS = 2  # rows in a list of objects
SMALL_CELL = 120
SMALL_LIST = 3
LOW_CONFIDENCE = 0.3  # numeric confidence that counts as LOW


class Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    takes_a_position: ClassVar[bool] = True  # the reply states a position that a digest can show
    open_choices: ClassVar[frozenset[str]] = frozenset()  # fields whose unknown values the protocol handles itself

    def prose(self) -> str:
        """Render the reply as Markdown."""
        raise NotImplementedError

    def check_choices(self, choices: Choices) -> None:
        """Raise ValueError, worded for the model, if a well-formed reply is not acceptable."""

    def with_low_confidence(self) -> Self:
        """Return a copy with low confidence, for a reply that was truncated after its end."""
        confidence = getattr(self, "confidence", None)
        if confidence is None:
            return self
        low = "LOW" if isinstance(confidence, str) else min(confidence, LOW_CONFIDENCE)
        return self.model_copy(update={"confidence": low})

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        """Return the rehearsal answer of the n-th request (from 0); `plain` is a valid one, `options` those of the protocol."""
        return plain if agree else cls.vary(plain, n)

    @classmethod
    def vary(cls, plain: Json, n: int) -> Json:
        """Return the rehearsal answer of the n-th seat (from 0) for a run in which seats disagree."""
        return plain


def one_row_per(field: str) -> Any:
    """Mark a list field that needs one row per allowed value of the rows' field `of` (or per value, for a list of strings)."""
    return {"each": field}


def build_schema(reply: type[Reply], choices: Choices, *, small: bool = False) -> Json:
    """Return the strict JSON schema of a reply: no extra fields, all required, values limited to `choices`."""
    schema = reply.model_json_schema()
    definitions = schema.pop("$defs", {})
    strict: Json = _make_strict(schema, definitions, choices)
    return _limit_lengths(strict) if small else strict


def _make_strict(node: Any, definitions: Json, choices: Choices) -> Any:
    if isinstance(node, list):
        return [_make_strict(item, definitions, choices) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _make_strict(definitions[node["$ref"].rsplit("/", 1)[1]], definitions, choices)
    many = str(node.get("each"))
    tight = {
        key: _make_strict(value, definitions, choices)
        for key, value in node.items()
        if key not in ("title", "default", "each", "properties")
    }
    if tight.get("type") == "object":
        fields = node.get("properties", {}).items()  # kept apart: a field may be named "title"
        properties = {name: _limit_values(name, _make_strict(of, definitions, choices), choices) for name, of in fields}
        tight |= {"properties": properties, "required": list(properties), "additionalProperties": False}
    return tight | _limit_rows(tight["items"], choices[many]) if many in choices else tight


def _limit_rows(items: Json, values: Collection[str]) -> Json:
    row = {"type": "string", "enum": list(values)} if items.get("type") == "string" else items
    return {"items": row, "minItems": len(values), "maxItems": len(values)}


def _limit_values(name: str, schema: Json, choices: Choices) -> Json:
    return schema | {"enum": list(choices[name])} if name in choices else schema


def _limit_lengths(schema: Json, max_length: int = SMALL_STRING) -> Json:
    """Limit lengths: a small model under a grammar would otherwise write until it is truncated."""
    kind = schema.get("type")
    if kind == "string" and "enum" not in schema:
        return {**schema, "maxLength": max_length}
    if kind == "array":
        rows = schema["items"].get("type") == "object"
        most, inside = (SMALL_ROWS, SMALL_CELL) if rows else (SMALL_LIST, max_length)
        return {"maxItems": most, **schema, "items": _limit_lengths(schema["items"], inside)}
    if kind == "object":
        return {
            **schema,
            "properties": {name: _limit_lengths(of, max_length) for name, of in schema["properties"].items()},
        }
    return schema


def parse_reply(reply: type[R], text: str, choices: Choices) -> R:
    """Parse a reply, or raise Fault("schema") worded for the model."""
    bare = strip_code_fence(text)
    try:
        value = reply.model_validate_json(bare)
        _check_choices(json.loads(bare), {name: choices[name] for name in choices if name not in reply.open_choices})
        value.check_choices(choices)
    except ValidationError as error:
        raise Fault(
            "schema", "; ".join(_format_problem(problem) for problem in error.errors()[:5]), said=text
        ) from error
    except ValueError as error:
        raise Fault("schema", str(error), said=text) from error
    return value


def strip_code_fence(text: str) -> str:
    """Strip a code fence that encloses the whole message."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and "\n" in bare:
        bare = bare[bare.index("\n") + 1 : -3].strip()
    return bare


def _format_problem(problem: Any) -> str:
    place = ".".join(str(part) for part in problem["loc"])
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def _check_choices(value: Any, choices: Choices) -> None:
    if isinstance(value, list):
        for item in value:
            _check_choices(item, choices)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in choices and item not in choices[name]:
                raise ValueError(f'{name}: "{item}" is not one of {", ".join(choices[name])}')
            _check_choices(item, choices)
