"""The form of an answer that a program reads: one JSON object, or JSON of the caller's schema."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NotRequired, Self, TypedDict, get_args

from council.engine.reply import strip_code_fence
from council.errors import Fault, UsageError
from council.json_schema import SchemaError, check_schema, find_problems, make_strict
from council.json_text import Ambiguous, clean_text, find_json, load_json
from council.text_cleanup import single_line
from council.types import Json, JsonSchema

DEFAULT_NAME = "response"
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
JSON_OBJECT: Json = {"type": "object"}

FormatKind = Literal["json_object", "json_schema"]
KINDS: tuple[FormatKind, ...] = get_args(FormatKind)


class StoredFormat(TypedDict):
    """A response format as it is stored with a run."""

    type: FormatKind
    name: NotRequired[str]
    description: NotRequired[str]
    schema: NotRequired[Any]


@dataclass(frozen=True)
class ResponseFormat:
    """JSON that the answer of a run is written in, after the council has answered."""

    kind: FormatKind
    name: str = DEFAULT_NAME
    description: str = ""
    schema: Any = None  # JSON Schema; None: any object
    is_checked: bool = True  # a rehearsal makes up replies, which fit no schema

    @classmethod
    def load(cls, stored: StoredFormat | Mapping[str, Any]) -> Self:
        """Return a stored format."""
        kind: FormatKind = stored["type"]
        return cls(kind, stored.get("name", DEFAULT_NAME), stored.get("description", ""), stored.get("schema"))

    @classmethod
    def read(cls, given: Mapping[str, Any], field: str) -> Self | None:
        """Return the format that a request asks for; None for text. Raise UsageError if it cannot be checked.

        `given` is the object of /v1/responses. `field` is its name in the request.
        """
        kind = given.get("type", "text")
        if kind == "text":
            return None
        if kind not in KINDS:
            shown = single_line(json.dumps(kind, default=str), 80)
            raise UsageError(f"{field}.type {shown} is not supported: use text, {' or '.join(KINDS)}", field=field)
        if kind == "json_object":
            return cls(kind)
        name, description = given.get("name") or DEFAULT_NAME, given.get("description") or ""
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise UsageError(f"{field}.name is not valid: use 1 to 64 letters, digits, _ and -", field=field)
        if not isinstance(description, str):
            raise UsageError(f"{field}.description is not a text: write one, or omit it", field=field)
        if given.get("schema") is None:
            raise UsageError(f'{field}.schema is missing: send a JSON Schema, or the type "json_object"', field=field)
        try:
            check_schema(given["schema"])
        except SchemaError as error:
            line = f"{field}.schema cannot be used, nothing was sent: {error}"
            raise UsageError(single_line(line, 400), field=field) from None
        return cls(kind, name, description, given["schema"])

    def as_json(self) -> StoredFormat:
        """Return the form in which it is stored."""
        stored: StoredFormat = {"type": self.kind}
        if self.kind == "json_schema":
            stored |= {"name": self.name, "schema": self.schema}
        if self.description:
            stored["description"] = self.description
        return stored

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()

    @cached_property
    def native_schema(self) -> JsonSchema | None:
        """The schema that is sent as a parameter of the request; None: the prompt has it."""
        return make_strict(self.schema)

    @property
    def schema_text(self) -> str:
        """The schema for the prompt; empty if it is a parameter, or if there is none."""
        if self.kind == "json_object" or self.native_schema is not None:
            return ""
        return json.dumps(self.schema, ensure_ascii=False, indent=1)

    def parse(self, text: str) -> str:
        """Return the JSON of a reply in compact form. Raise Fault("schema"), worded for the model."""
        if not self.is_checked:
            return text
        values, problem = _find_values(text)
        problems: list[str] = []
        fitting: dict[str, None] = {}
        for value in values:
            wrong = self.find_problems(value)
            problems = problems or wrong
            if not wrong:
                fitting[_encode(value)] = None
        if len(fitting) == 1:
            return next(iter(fitting))
        if fitting:
            detail = f"it has {len(fitting)} different JSON values that fit: send one"
        else:
            detail = "; ".join(problems) or problem or "it has no JSON"
        raise Fault("schema", detail, said=text)

    def find_problems(self, value: Any) -> list[str]:
        """Return why a value does not fit."""
        try:
            json.dumps(value, allow_nan=False)
        except (ValueError, RecursionError):
            return ["it is nested too deeply, or has a number that is too large"]
        return find_problems(value, JSON_OBJECT if self.schema is None else self.schema)

    def find_answer(self, text: str) -> str | None:
        """Return the JSON of an answer that is nothing else, and fits; None for any other."""
        if not self.is_checked:
            return None
        try:
            value = load_json(strip_code_fence(clean_text(text)))
        except (Ambiguous, ValueError):
            return None
        return None if self.find_problems(value) else _encode(value)


def _find_values(text: str) -> tuple[list[Any], str]:
    bare = strip_code_fence(clean_text(text))
    try:
        return [load_json(bare)], ""
    except (Ambiguous, ValueError):
        return find_json(bare)


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
