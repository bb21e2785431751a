"""Elicitation forms: turn a question to a person into a flat form, and the filled form into an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from council.render.clean import clean
from council.rules.forms import main_field
from council.types import Json

LONGEST = 6_000  # characters of the prompt shown in a form
ANSWER = "answer"
SCALARS = {"text": "string", "yes or no": "boolean", "whole number": "integer", "number": "number", "choice": "string"}
IN_JSON = "Your answer in plain text, or as JSON with the requested fields."


@dataclass(frozen=True, slots=True)
class Question:
    """Question to a person, with the schema of its form."""

    key: str
    message: str
    schema: Json


class Person(Protocol):
    """Person at the client."""

    async def ask(self, question: Question) -> Mapping[str, Any] | None:
        """Return the filled form (an empty one abstains), or None if there is no answer here."""
        ...


def question_from(row: Json, trouble: str = "") -> Question:
    """Build the form of an open question; `trouble` says why the last answer was rejected."""
    shown = clean(row["prompt"])
    if len(shown) > LONGEST:
        shown = f"{shown[:LONGEST]}…\n\n(`council watch {row['run']}` shows the full text.)"
    head = f"You sit in a council as {row['seat']} ({row['key']}, run {row['run']}). Decline to abstain."
    return Question(row["key"], "\n\n".join(filter(None, [trouble, head, shown])), _form(row))


def words_from(row: Json, given: Mapping[str, Any]) -> str:
    """Return the filled form as plain text, or as the JSON that the protocol reads."""
    if not _is_simple(row) or row["schema"] is None:
        return str(given.get(ANSWER, ""))
    kinds = {field["name"]: field for field in row["fields"]}
    answer = {
        name: _value(kinds[name], value) for name, value in given.items() if name in kinds and value not in ("", None)
    }
    return json.dumps(answer, ensure_ascii=False) if answer else ""


def _form(row: Json) -> Json:
    if row["schema"] is None or not _is_simple(row):
        about = IN_JSON if row["schema"] else "Your answer, in plain text."
        return {
            "type": "object",
            "properties": {ANSWER: {"type": "string", "description": about}},
            "required": [ANSWER],
        }
    shown = [field for field in row["fields"] if field["kind"] not in ("rows", "group")]
    return {
        "type": "object",
        "properties": {field["name"]: _property(field) for field in shown},
        "required": [field["name"] for field in shown if _must(field, main_field(row["schema"]))],
    }


def _is_simple(row: Json) -> bool:
    """Whether a form without tables can hold every required field."""
    return not any(_is_table(field) and not field.get("optional") for field in row["fields"])


def _is_table(field: Json) -> bool:
    return field["kind"] == "group" or (field["kind"] == "rows" and bool(field.get("minItems")))


def _must(field: Json, main: str | None) -> bool:
    if field.get("optional") or field["name"] == "confidence":
        return False
    return field["name"] == main or field["kind"] in ("choice", "yes or no", "whole number", "number")


def _property(field: Json) -> Json:
    about = field["help"] or field["name"].replace("_", " ")
    if field["kind"] == "list":
        return {"type": "string", "description": f"{about} (separate several with semicolons)"}
    shown: Json = {"type": SCALARS[field["kind"]], "description": about}
    if field["kind"] == "choice":
        shown["enum"] = [str(choice) for choice in field["choices"]]
    return shown | {bound: field[bound] for bound in ("minimum", "maximum") if bound in field}


def _value(field: Json, value: Any) -> Any:
    if field["kind"] == "list":
        return [part.strip() for part in str(value).replace("\n", ";").split(";") if part.strip()]
    if field["kind"] == "choice":
        return next((choice for choice in field["choices"] if str(choice) == str(value)), value)
    return value
