"""A typed reply: the schema that is sent for it, and how a member's words are read."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from council.errors import Fault
from council.types import Json

R = TypeVar("R", bound="Reply")
Choices = Mapping[str, Collection[str]]  # a field's name → the only values it may have in this ask
SMALL_STRING = 400
SMALL_ROWS = 2  # rows of several fields
SMALL_CELL = 120
SMALL_LIST = 3
DOUBTFUL = 0.3  # a confidence in numbers that reads as LOW


class Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    takes_a_position: ClassVar[bool] = (
        True  # whether it says where the seat stands on the question, as a digest would show it
    )

    def prose(self) -> str:
        raise NotImplementedError

    def fits(self, choices: Choices) -> None:
        """Raise ValueError, in words a model can act on, where a reply that has the right form cannot be right."""

    def doubted(self) -> Self:
        """The same with little confidence, where it claims any: for a reply that was cut off behind its end."""
        sure = getattr(self, "confidence", None)
        if sure is None:
            return self
        return self.model_copy(update={"confidence": "LOW" if isinstance(sure, str) else min(sure, DOUBTFUL)})

    @classmethod
    def differing(cls, plain: Json, n: int) -> Json:
        """What the n-th seat (from 0) answers in rehearsal when the council is not of one mind."""
        return plain


def each(of: str) -> Any:
    """Mark a list field: one row for each value that the rows' field `of` may have in an ask; a list of texts has those values."""
    return {"each": of}


def schema_of(reply: type[Reply], choices: Choices, *, small: bool = False) -> Json:
    """The strict JSON schema of a reply: nothing extra, everything required, names limited to those present."""
    schema = reply.model_json_schema()
    definitions = schema.pop("$defs", {})
    strict: Json = _strict(schema, definitions, choices)
    return _short(strict) if small else strict


def _strict(node: Any, definitions: Json, choices: Choices) -> Any:
    if isinstance(node, list):
        return [_strict(item, definitions, choices) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _strict(definitions[node["$ref"].rsplit("/", 1)[1]], definitions, choices)
    many = str(node.get("each"))
    tight = {
        key: _strict(value, definitions, choices)
        for key, value in node.items()
        if key not in ("title", "default", "each", "properties")
    }
    if tight.get("type") == "object":
        fields = node.get("properties", {}).items()  # whatever they are called: a field may be named "title"
        properties = {name: _limited(name, _strict(of, definitions, choices), choices) for name, of in fields}
        tight |= {"properties": properties, "required": list(properties), "additionalProperties": False}
    return tight | _one_for_each(tight["items"], choices[many]) if many in choices else tight


def _one_for_each(items: Json, values: Collection[str]) -> Json:
    row = {"type": "string", "enum": list(values)} if items.get("type") == "string" else items
    return {"items": row, "minItems": len(values), "maxItems": len(values)}


def _limited(name: str, schema: Json, choices: Choices) -> Json:
    return schema | {"enum": list(choices[name])} if name in choices else schema


def _short(schema: Json, longest: int = SMALL_STRING) -> Json:
    """A small model under a grammar would otherwise write until it is cut; the rows of a list are shorter still."""
    kind = schema.get("type")
    if kind == "string" and "enum" not in schema:
        return {**schema, "maxLength": longest}
    if kind == "array":
        rows = schema["items"].get("type") == "object"
        most, inside = (SMALL_ROWS, SMALL_CELL) if rows else (SMALL_LIST, longest)
        return {"maxItems": most, **schema, "items": _short(schema["items"], inside)}
    if kind == "object":
        return {**schema, "properties": {name: _short(of, longest) for name, of in schema["properties"].items()}}
    return schema


def read(reply: type[R], text: str, choices: Choices) -> R:
    """The typed reply in a member's words, or Fault("schema") in words a model can act on."""
    bare = unfence(text)
    try:
        value = reply.model_validate_json(bare)
        _check_choices(json.loads(bare), choices)
        value.fits(choices)
    except ValidationError as error:
        raise Fault("schema", "; ".join(_words(problem) for problem in error.errors()[:5]), said=text) from error
    except ValueError as error:
        raise Fault("schema", str(error), said=text) from error
    return value


def unfence(text: str) -> str:
    """Without a code fence that encloses the whole message."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and "\n" in bare:
        bare = bare[bare.index("\n") + 1 : -3].strip()
    return bare


def _words(problem: Any) -> str:
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
