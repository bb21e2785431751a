"""Human members: store their questions until a person answers through any interface, and turn schemas into forms."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NotRequired, TypedDict

from council.errors import UsageError
from council.store.interface import OpenAsk
from council.store.run_store import RunStore
from council.types import Json, JsonSchema

ANSWER_POLL_S = 0.2  # seconds between checks for an answer


@dataclass(frozen=True, slots=True)
class StoredQuestions:
    """Stored questions of one run. An answer given before a crash is reused."""

    store: RunStore
    run: str

    async def ask(self, key: str, seat: str, prompt: str, schema: JsonSchema | None) -> str:
        if (answer := await self.store.get_answer(self.run, key, prompt)) is not None:
            return answer
        await self.store.write(self.run, [("ask", (key, seat, prompt, json.dumps(schema), time.time()))])
        try:
            while True:
                if (answer := await self.store.get_answer(self.run, key, prompt)) is not None:
                    return answer
                await asyncio.sleep(ANSWER_POLL_S)
        finally:
            self.store.post(self.run, [("withdraw", (key,))])


# Forms

MAIN_FIELDS = (
    "answer",
    "response",
    "statement",
    "text",
    "paragraph",
    "view",
    "key_insight",
    "recommendation",
    "reason",
    "case",
)
FieldKind = Literal["text", "boolean", "integer", "number", "choice", "list", "rows", "group"]
# Types of JSON, each with its types in Python, its name in messages, and the kind of a field that has it.
JSON_TYPES: dict[str, tuple[type | tuple[type, ...], str, FieldKind]] = {
    "string": (str, "text", "text"),
    "boolean": (bool, "yes or no", "boolean"),
    "integer": (int, "a whole number", "integer"),
    "number": ((int, float), "a number", "number"),
    "array": (list, "array", "list"),
    "object": (dict, "object", "group"),
    "null": (type(None), "null", "text"),
}
BOUNDS: Final = ("minimum", "maximum", "minItems", "maxItems")
NO_CHOICE = "none"  # the choice that a blank field means


class FormField(TypedDict):
    """A field of a form."""

    name: str
    kind: FieldKind
    help: str
    optional: NotRequired[bool]
    choices: NotRequired[list[Any]]
    minimum: NotRequired[float]
    maximum: NotRequired[float]
    minItems: NotRequired[int]
    maxItems: NotRequired[int]
    fields: NotRequired[list[FormField]]  # of a group, or of each row


class OpenQuestion(OpenAsk):
    """A question to a person that has no answer, with the fields to fill in; free text has none."""

    fields: list[FormField]


def form_fields(schema: JsonSchema | None) -> list[FormField]:
    """Return the fields of a form: none for free text. Those with a single possible value are left out."""
    properties = (schema or {}).get("properties", {})
    return [_form_field(name, of) for name, of in properties.items() if not _fixed_value(of)]


def _form_field(name: str, schema: JsonSchema) -> FormField:
    inner, optional = unwrap_optional(schema)
    field: FormField = {
        "name": name,
        "kind": _field_kind(inner),
        "help": schema.get("description") or inner.get("description") or "",
    }
    if optional:
        field["optional"] = True
    if choices := (inner["items"] if field["kind"] == "list" else inner).get("enum"):
        field["choices"] = list(choices)
    for bound in BOUNDS:
        if bound in inner:
            field[bound] = inner[bound]
    if field["kind"] in ("rows", "group"):
        field["fields"] = form_fields(inner["items"] if field["kind"] == "rows" else inner)
    return field


def _field_kind(schema: JsonSchema) -> FieldKind:
    if schema.get("enum"):
        return "choice"
    if schema.get("type") == "array" and unwrap_optional(schema["items"])[0].get("type") == "object":
        return "rows"
    return JSON_TYPES[schema.get("type", "string")][2]


def unwrap_optional(schema: JsonSchema) -> tuple[JsonSchema, bool]:
    """Return the schema without its null option, and whether it had one."""
    options = schema.get("anyOf")
    if not options:
        return schema, False
    filled_in = [option for option in options if option.get("type") != "null"]
    return filled_in[0], len(filled_in) < len(options)


def main_field(schema: JsonSchema | None) -> str | None:
    """Return the name of the field that free text goes into."""
    return _find_main_field(form_fields(schema))


def _find_main_field(fields: Iterable[FormField]) -> str | None:
    texts = [field["name"] for field in fields if field["kind"] == "text"]
    return next((name for name in MAIN_FIELDS if name in texts), texts[0] if texts else None)


def fill_form(schema: JsonSchema | None, text: str) -> str:
    """Return the answer as JSON: parse JSON, or put free text into the main field and leave optional fields empty."""
    if schema is None or not text.strip():
        return text
    fields = form_fields(schema)
    value = _complete_answer(schema, fields, _parse_object(text) or _fill_from_words(fields, text))
    if missing := [_describe_field(field) for field in fields if field["name"] not in value]:
        raise UsageError(
            f"the answer was not accepted, these fields are missing: {', '.join(missing)}; give JSON with all fields"
        )
    if wrong := find_mismatch(schema, value):
        raise UsageError(f"the answer was not accepted, {wrong}: give JSON with all fields")
    return json.dumps(value, ensure_ascii=False)


def _parse_object(text: str) -> Json | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _fill_from_words(fields: Sequence[FormField], text: str) -> Json:
    """Put free text into the main field, or its lines into the only list, and fill in the choices it names."""
    main = _find_main_field(fields)
    if main is None and [field["kind"] for field in fields] != ["list"]:
        raise UsageError(
            f"the answer was not accepted, free text is not enough: give JSON with {', '.join(map(_describe_field, fields))}"
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    answer: Json = {main: text.strip()} if main else {fields[0]["name"]: lines}
    return answer | {field["name"]: choice for field in fields if (choice := _named_choice(field, text))}


def _named_choice(field: FormField, text: str) -> Any:
    """Return the only choice that the text names, as in `FAIL: the check is gone`."""
    if field["kind"] != "choice":
        return None
    named = [choice for choice in field["choices"] if re.search(rf"(?<!\w){re.escape(str(choice))}(?!\w)", text)]
    return named[0] if len(named) == 1 else None


def _complete_answer(schema: JsonSchema, fields: Sequence[FormField], answer: Json) -> Json:
    """Add fixed values and allowed blanks, in the schema's order, with unknown fields last."""
    fixed = {name: value for name, of in schema["properties"].items() if (value := _fixed_value(of))}
    main = _find_main_field(fields)
    empty = {field["name"]: blank for field in fields if (blank := _blank_value(field, main)) is not ...}
    values = {**empty, **fixed, **_complete_rows(fields, answer)}
    return {name: values[name] for name in (*schema["properties"], *answer) if name in values}


def _complete_rows(fields: Iterable[FormField], answer: Json) -> Json:
    """Fill in the choice `none` where a row leaves that field out."""
    filled = dict(answer)
    for field in fields:
        rows = answer.get(field["name"])
        if field["kind"] == "rows" and isinstance(rows, list):
            blank = {one["name"]: NO_CHOICE for one in field["fields"] if NO_CHOICE in one.get("choices", ())}
            filled[field["name"]] = [blank | row if isinstance(row, dict) else row for row in rows]
    return filled


def _fixed_value(schema: JsonSchema) -> Any:
    """Return the only possible value, if there is just one."""
    choices = schema.get("enum") or ()
    return schema.get("const") or (choices[0] if len(choices) == 1 else None)


def _blank_value(field: FormField, main: str | None) -> Any:
    """Return the blank value of a field, or `...` if it is required."""
    if field["name"] == "confidence":
        return "MEDIUM" if "MEDIUM" in field.get("choices", ()) else 0.5 if field["kind"] == "number" else ...
    if field.get("optional"):
        return None
    if NO_CHOICE in field.get("choices", ()):
        return NO_CHOICE
    if field["kind"] in ("list", "rows"):
        return ... if field.get("minItems") else []
    return "" if field["kind"] == "text" and field["name"] != main else ...


def _describe_field(field: FormField) -> str:
    return f"{field['name']} ({', '.join(map(str, field['choices']))})" if "choices" in field else field["name"]


def find_mismatch(schema: JsonSchema, value: Any, where: str = "") -> str:
    """Return the first mismatch between value and schema, or an empty string."""
    options = schema.get("anyOf") or [schema]
    mismatches = [_check_value(option, value, where) for option in options]
    return "" if "" in mismatches else mismatches[0]


def _check_value(schema: JsonSchema, value: Any, where: str) -> str:
    kind = schema.get("type", "")
    at = where or "it"
    if "const" in schema:
        return "" if value == schema["const"] else f"{at} must be {schema['const']}"
    if kind:
        types, label, _ = JSON_TYPES[kind]
        if not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean"):
            return f"{at} must be {label}"
    if schema.get("enum") and value not in schema["enum"]:
        return f"{at} must be one of {', '.join(map(str, schema['enum']))}"
    if "minimum" in schema and value < schema["minimum"]:
        return f"{at} must be {schema['minimum']:g} or more"
    if "maximum" in schema and value > schema["maximum"]:
        return f"{at} must be {schema['maximum']:g} or less"
    if kind not in ("object", "array"):
        return ""
    check = _check_object if kind == "object" else _check_array
    return next(filter(None, check(schema, value, where)), "")


def _check_array(schema: JsonSchema, value: Any, where: str) -> Iterator[str]:
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    if len(value) < least:
        yield f"{where or 'it'} needs {least}{'' if most == least else ' or more'}"
    if most is not None and len(value) > most:
        yield f"{where or 'it'} takes {most} at most"
    yield from (find_mismatch(schema["items"], item, f"{where}[{n}]") for n, item in enumerate(value, 1))


def _check_object(schema: JsonSchema, value: Any, where: str) -> Iterator[str]:
    properties, prefix = schema.get("properties", {}), f"{where}." if where else ""
    names = schema.get("required") or properties
    yield from (f"{prefix}{name} is missing" for name in names if name not in value)
    yield from (f"{prefix}{name} is not a field of this form" for name in value if name not in properties)
    yield from (find_mismatch(properties[name], item, f"{prefix}{name}") for name, item in value.items())
