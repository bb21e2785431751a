"""Elicitation forms: turn a question to a person into a flat form, and the filled form into an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from council.render.clean import clean
from council.rules.forms import main_field
from council.types import Json

MAX_PROMPT_CHARS = 6_000  # characters of the prompt shown in a form
ANSWER_FIELD = "answer"
JSON_TYPES = {
    "text": "string",
    "yes or no": "boolean",
    "whole number": "integer",
    "number": "number",
    "choice": "string",
}
JSON_ANSWER_HELP = "Your answer in plain text, or as JSON with the requested fields."


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


def make_question(row: Json, problem: str = "") -> Question:
    """Build the form of an open question; `trouble` says why the last answer was rejected."""
    shown = clean(row["prompt"])
    if len(shown) > MAX_PROMPT_CHARS:
        shown = f"{shown[:MAX_PROMPT_CHARS]}…\n\n(`council watch {row['run']}` shows the full text.)"
    head = f"You sit in a council as {row['seat']} ({row['key']}, run {row['run']}). Decline to abstain."
    return Question(row["key"], "\n\n".join(filter(None, [problem, head, shown])), _form_schema(row))


def format_answer(row: Json, form: Mapping[str, Any]) -> str:
    """Return the filled form as plain text, or as the JSON that the protocol reads."""
    if not _fits_flat_form(row) or row["schema"] is None:
        return str(form.get(ANSWER_FIELD, ""))
    kinds = {field["name"]: field for field in row["fields"]}
    answer = {
        name: _parse_value(kinds[name], value)
        for name, value in form.items()
        if name in kinds and value not in ("", None)
    }
    return json.dumps(answer, ensure_ascii=False) if answer else ""


def _form_schema(row: Json) -> Json:
    if row["schema"] is None or not _fits_flat_form(row):
        about = JSON_ANSWER_HELP if row["schema"] else "Your answer, in plain text."
        return {
            "type": "object",
            "properties": {ANSWER_FIELD: {"type": "string", "description": about}},
            "required": [ANSWER_FIELD],
        }
    shown = [field for field in row["fields"] if field["kind"] not in ("rows", "group")]
    return {
        "type": "object",
        "properties": {field["name"]: _field_schema(field) for field in shown},
        "required": [field["name"] for field in shown if _is_required(field, main_field(row["schema"]))],
    }


def _fits_flat_form(row: Json) -> bool:
    """Whether a form without tables can hold every required field."""
    return not any(_requires_table(field) and not field.get("optional") for field in row["fields"])


def _requires_table(field: Json) -> bool:
    return field["kind"] == "group" or (field["kind"] == "rows" and bool(field.get("minItems")))


def _is_required(field: Json, main: str | None) -> bool:
    if field.get("optional") or field["name"] == "confidence":
        return False
    return field["name"] == main or field["kind"] in ("choice", "yes or no", "whole number", "number")


def _field_schema(field: Json) -> Json:
    about = field["help"] or field["name"].replace("_", " ")
    if field["kind"] == "list":
        return {"type": "string", "description": f"{about} (separate several with semicolons)"}
    shown: Json = {"type": JSON_TYPES[field["kind"]], "description": about}
    if field["kind"] == "choice":
        shown["enum"] = [str(choice) for choice in field["choices"]]
    return shown | {bound: field[bound] for bound in ("minimum", "maximum") if bound in field}


def _parse_value(field: Json, value: Any) -> Any:
    if field["kind"] == "list":
        return [part.strip() for part in str(value).replace("\n", ";").split(";") if part.strip()]
    if field["kind"] == "choice":
        return next((choice for choice in field["choices"] if str(choice) == str(value)), value)
    return value
