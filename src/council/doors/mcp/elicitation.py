"""Elicitation forms: turn a question to a person into a flat form, and the filled form into an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from council.errors import UsageError
from council.runs.people import FormField, OpenQuestion, main_field
from council.text_cleanup import clean

MAX_PROMPT_CHARS = 6_000  # characters of the prompt shown in a form
ANSWER_FIELD = "answer"
TABLES = ("rows", "group")  # kinds of fields that a flat form cannot hold
JSON_ANSWER_HELP = "Your answer in plain text, or as JSON with the requested fields."


class FormProperty(TypedDict):
    """A field of a form, as JSON schema."""

    type: str
    description: str
    enum: NotRequired[list[str]]
    minimum: NotRequired[float]
    maximum: NotRequired[float]


class FormSchema(TypedDict):
    """The flat form that a client shows, as JSON schema."""

    type: Literal["object"]
    properties: dict[str, FormProperty]
    required: list[str]


def make_question(row: OpenQuestion, problem: str = "") -> types.ElicitRequestFormParams:
    """Build the form of an open question; `problem` says why the last answer was rejected."""
    shown = clean(row["prompt"])
    if len(shown) > MAX_PROMPT_CHARS:
        shown = f"{shown[:MAX_PROMPT_CHARS]}…\n\n(`council watch {row['run']}` shows the full text.)"
    head = f"You sit in a council as {row['seat']} ({row['key']}, run {row['run']}). Decline to abstain."
    message = "\n\n".join(filter(None, [problem, head, shown]))
    return types.ElicitRequestFormParams(message=message, requested_schema=dict(_form_schema(row)))


def format_answer(row: OpenQuestion, form: Mapping[str, Any]) -> str:
    """Return the filled form as plain text, or as the JSON that the protocol reads."""
    if not _has_flat_form(row):
        return str(form.get(ANSWER_FIELD, ""))
    given = {field["name"]: (field, form.get(field["name"])) for field in row["fields"]}
    answer = {name: _parse_value(field, value) for name, (field, value) in given.items() if value not in ("", None)}
    return json.dumps(answer, ensure_ascii=False) if answer else ""


def _form_schema(row: OpenQuestion) -> FormSchema:
    if not _has_flat_form(row):
        about = JSON_ANSWER_HELP if row["schema"] else "Your answer, in plain text."
        return {
            "type": "object",
            "properties": {ANSWER_FIELD: {"type": "string", "description": about}},
            "required": [ANSWER_FIELD],
        }
    shown, main = [field for field in row["fields"] if field["kind"] not in TABLES], main_field(row["schema"])
    return {
        "type": "object",
        "properties": {field["name"]: _field_schema(field) for field in shown},
        "required": [field["name"] for field in shown if _is_required(field, main)],
    }


def _has_flat_form(row: OpenQuestion) -> bool:
    """Whether fields are asked for, and a form without tables can hold every required one."""
    required = [field for field in row["fields"] if field["kind"] in TABLES and not field.get("optional")]
    return row["schema"] is not None and all(
        field["kind"] == "rows" and not field.get("minItems") for field in required
    )


def _is_required(field: FormField, main: str | None) -> bool:
    if field.get("optional") or field["name"] == "confidence":
        return False
    return field["name"] == main or field["kind"] in ("choice", "boolean", "integer", "number")


def _field_schema(field: FormField) -> FormProperty:
    about = field["help"] or field["name"].replace("_", " ")
    if field["kind"] == "list":
        return {"type": "string", "description": f"{about} (separate several with semicolons)"}
    shown: FormProperty = {
        "type": "string" if field["kind"] in ("text", "choice") else field["kind"],
        "description": about,
    }
    if field["kind"] == "choice":
        shown["enum"] = [str(choice) for choice in field["choices"]]
    if "minimum" in field:
        shown["minimum"] = field["minimum"]
    if "maximum" in field:
        shown["maximum"] = field["maximum"]
    return shown


def _parse_value(field: FormField, value: Any) -> Any:
    if field["kind"] == "list":
        return [part.strip() for part in str(value).replace("\n", ";").split(";") if part.strip()]
    if field["kind"] == "choice":
        return next((choice for choice in field["choices"] if str(choice) == str(value)), value)
    return value


Context = ServerRequestContext[Any, Any]
ROOTS_KEY = "roots"
ROOTS_TIMEOUT_S = 10.0  # seconds to wait for the client's roots


class InputRequired(Exception):
    """Requests that the client must answer before the call can continue."""

    def __init__(self, requests: Mapping[str, types.InputRequest]) -> None:
        super().__init__(", ".join(requests))
        self.requests = dict(requests)


class ClientCall:
    """One tool call: the client's capabilities and the answers it sent."""

    def __init__(self, context: Context, answers: Mapping[str, types.InputResponse]) -> None:
        self.context, self.answers = context, dict(answers)
        self.capabilities = context.session.client_capabilities or types.ClientCapabilities()
        self.is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def roots(self) -> list[str] | None:
        """Return the URIs of the client's roots, or None if it declares none."""
        if self.capabilities.roots is None:
            return None
        try:
            result = await self._request(ROOTS_KEY, types.ListRootsRequest(), types.ListRootsResult, ROOTS_TIMEOUT_S)
        except (MCPError, ValidationError) as error:
            why = str(error).partition("\n")[0]
            raise UsageError(f"this client declares roots but did not list them ({why}): call again") from None
        return [str(root.uri) for root in result.roots]

    @property
    def has_forms(self) -> bool:
        """Whether the client can show forms. Before elicitation had modes, an empty capability meant forms."""
        elicitation = self.capabilities.elicitation
        return elicitation is not None and (elicitation.form is not None or elicitation.url is None)

    async def ask(self, key: str, params: types.ElicitRequestFormParams) -> Mapping[str, Any] | None:
        """Return the filled form (an empty one abstains), or None if there is no answer here."""
        try:
            result = await self._request(key, types.ElicitRequest(params=params), types.ElicitResult)
        except (MCPError, ValidationError):
            return None
        return {"accept": result.content or None, "decline": {}}.get(result.action)

    async def _request(self, key: str, request: Any, kind: type[Any], timeout: float | None = None) -> Any:
        if self.is_modern:
            return self._pop_answer(key, request, kind)
        metadata = ServerMessageMetadata(related_request_id=self.context.request_id)
        return await self.context.session.send_request(request, kind, timeout, metadata=metadata)

    def _pop_answer(self, key: str, request: types.InputRequest, kind: type[Any]) -> Any:
        """Return the client's answer once, or raise the request for it.

        Request the roots again with it: a repeated call carries only the answers to the last requests.
        """
        answer = self.answers.pop(key, None)
        if isinstance(answer, kind):
            return answer
        raise InputRequired({key: request} | ({ROOTS_KEY: types.ListRootsRequest()} if self.capabilities.roots else {}))
