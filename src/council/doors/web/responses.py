"""JSON responses and one-line errors."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, TypeVar, cast, get_type_hints

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from council.doors.web.models import (
    AbsenceRow,
    ChatErrorBody,
    ErrorBody,
    ErrorDetail,
    MinutesBody,
    NoteRow,
    PhaseRow,
    RunDetail,
    SeatRow,
    StatementRow,
)
from council.doors.web.uploads import UnknownUpload
from council.engine.degraded import format_page_lines
from council.engine.minutes import Minutes, PhaseMinutes
from council.errors import (
    CapTooLow,
    ConfigError,
    CouncilError,
    LedgerMismatch,
    PacketRefused,
    RunConflict,
    RunOwned,
    SearchNotEnabled,
    StoreError,
    TrustRequired,
    UnknownRun,
    UsageError,
    message_for,
)
from council.render.report import read_report
from council.store.interface import RunState
from council.text_cleanup import clean_json, single_line
from council.types import Json

T = TypeVar("T")


class Forbidden(UsageError):
    """The token of the request does not allow this."""


class KeyReused(UsageError):
    """An Idempotency-Key that was used for another request."""


class UnknownEval(UsageError):
    """There is no evaluation with this id."""


class UnknownModel(UsageError):
    """A model of /v1 that does not exist."""


class UnknownResponse(UsageError):
    """There is no response of /v1 with this id, or it is of another user."""


class UnknownPreviousResponse(UnknownResponse):
    """The response that a request continues does not exist."""


# HTTP status and code of each error class; the first match counts. Codes are never renamed.
COUNCIL_ERRORS: dict[type[CouncilError], tuple[int, str]] = {
    Forbidden: (403, "forbidden"),
    UnknownModel: (404, "model_not_found"),
    UnknownPreviousResponse: (404, "previous_response_not_found"),
    UnknownResponse: (404, "response_not_found"),
    UnknownEval: (404, "unknown_eval"),
    UnknownUpload: (404, "unknown_attachment"),
    KeyReused: (422, "idempotency_key_reused"),
    UnknownRun: (404, "unknown_run"),
    RunOwned: (409, "run_owned"),
    RunConflict: (409, "run_conflict"),
    LedgerMismatch: (409, "ledger_mismatch"),
    TrustRequired: (400, "trust_required"),
    ConfigError: (400, "invalid_configuration"),
    CapTooLow: (422, "cap_too_low"),
    PacketRefused: (400, "packet_refused"),
    UsageError: (400, "invalid_request"),
    SearchNotEnabled: (400, "search_not_enabled"),
    StoreError: (503, "store_unavailable"),
    CouncilError: (500, "internal_error"),
}
CHAT_PATH = "/v1/"  # its errors have the format of OpenAI
SETUP_PATH = "/api/setup"  # its requests have keys, which no message repeats
CHAT_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "insufficient_quota"}  # by status
REPEATED = {"idempotency-replayed": "true"}  # header of the response to a repeated request
MAX_ERROR_CHARS = 600  # characters of an internal error


class ApiResponse(Response):
    """JSON response that replaces lone surrogates (from file names), which UTF-8 cannot encode."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return encode_json(content).encode("utf-8", "replace")


def encode_json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def error_response(
    status: int, code: str, line: str, field: str = "", exit_: int = 2, *, path: str = "", details: Json | None = None
) -> ApiResponse:
    """Return an error in the format of the path."""
    headers = {"www-authenticate": "Bearer"} if status == 401 else None
    if path.startswith(CHAT_PATH):
        return ApiResponse(chat_error_json(status, code, line, field), status, headers)
    return ApiResponse(error_json(code, line, field, exit_, details), status, headers)


def chat_error_json(status: int, code: str, line: str, field: str = "") -> ChatErrorBody:
    """Return an error in the format of OpenAI."""
    kind = CHAT_ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"error": {"message": line, "type": kind, "param": field or None, "code": code}}


def error_json(code: str, line: str, field: str = "", exit_: int = 2, details: Json | None = None) -> ErrorBody:
    """Return an error. `field` is the field of the request that is wrong; `exit` is the exit code of older versions."""
    error: ErrorDetail = {"code": code, "message": line, "field": field or None}
    if details:
        error["details"] = details
    return {"schema": "council.error/2", "error": error, "exit": exit_}


def format_internal_error(problem: BaseException) -> str:
    """Describe an unexpected exception in one line; only COUNCIL_DEBUG shows the traceback."""
    what = single_line(f"{type(problem).__name__}: {problem}", MAX_ERROR_CHARS)
    return f"internal error ({what}): set COUNCIL_DEBUG=1 for a traceback, and report it"


async def on_council_error(request: Request, problem: Exception) -> ApiResponse:
    assert isinstance(problem, CouncilError)
    status, code = next(found for kind, found in COUNCIL_ERRORS.items() if isinstance(problem, kind))
    line, path = message_for(problem, "http"), request.url.path
    return error_response(status, code, line, problem.field, problem.exit_code, path=path, details=problem.details)


async def on_http_error(request: Request, problem: Exception) -> Response:
    """Answer an unknown path or method, and OPTIONS with the methods of a path."""
    assert isinstance(problem, HTTPException)
    path = request.url.path
    methods = {"allow": ", ".join(request.app.state.find_methods(path))} if problem.status_code == 405 else {}
    if methods and request.method == "OPTIONS":
        return Response(status_code=204, headers=methods)
    code, line = {
        404: ("unknown_path", f'unknown path "{path[:200]}": see /api/openapi.json'),
        405: ("method_not_allowed", f"{request.method} is not allowed for this path: see /api/openapi.json"),
    }.get(problem.status_code, ("invalid_request", str(problem.detail)))
    answer = error_response(problem.status_code, code, line, path=path)
    answer.headers.update({**(problem.headers or {}), **methods})
    return answer


async def on_validation_error(request: Request, problem: Exception) -> ApiResponse:
    """Answer with the first validation error."""
    assert isinstance(problem, RequestValidationError)
    first, path = problem.errors()[0], request.url.path
    if first["type"] == "json_invalid":
        line = "the body is not valid JSON: send one object, see /api/openapi.json"
        return error_response(400, "invalid_json", line, path=path)
    place = ".".join(map(str, first["loc"]))
    field = single_line(place.partition(".")[2], 200)  # without body, query, path or header
    is_shown = isinstance(first.get("input"), str | int | float) and not path.startswith(SETUP_PATH)
    value = f' "{single_line(str(first["input"]), 80)}"' if is_shown else ""
    line = f"invalid {single_line(place, 200)}{value}: {single_line(first['msg'], 200)}"
    status = 400 if path.startswith(CHAT_PATH) else 422
    return error_response(status, "invalid_field", line, field, path=path)


async def on_internal_error(request: Request, problem: Exception) -> ApiResponse:
    return error_response(500, "internal_error", format_internal_error(problem), exit_=1, path=request.url.path)


def run_json(minutes: Minutes, state: RunState) -> RunDetail:
    """Return a run as it is now: report, degradation notices, plan, minutes and cost."""
    summary = read_report(minutes)
    return _select_fields(
        minutes,
        RunDetail,
        id=minutes.run,
        status=state.status,
        running=state.is_running,
        report=summary,
        above=format_page_lines(minutes),
        minutes=clean_json(_minutes_json(minutes)),
        cost=summary["cost"],
    )


def _select_fields(record: object, row: type[T], **made: object) -> T:
    """Return the fields of a record that a row has; `made` are those that differ."""
    names = get_type_hints(row)
    return cast("T", {name: made[name] if name in made else getattr(record, name) for name in names})


def _minutes_json(minutes: Minutes) -> MinutesBody:
    return _select_fields(
        minutes,
        MinutesBody,
        phases=[_phase_json(minutes, phase) for phase in minutes.phases.values()],
        seats=[_select_fields(seat, SeatRow, tokens=seat.usage.as_json()) for seat in minutes.all_seats],
        notes=[_select_fields(note, NoteRow) for note in minutes.notes],
        troubles=[{"type": trouble.type, **asdict(trouble)} for trouble in minutes.troubles],
    )


def _phase_json(minutes: Minutes, phase: PhaseMinutes) -> PhaseRow:
    return _select_fields(
        phase,
        PhaseRow,
        apart=minutes.is_private_phase(phase.name),
        said=[_select_fields(said, StatementRow, tokens=said.tokens.as_json()) for said in phase.said.values()],
        absent=[_select_fields(missed, AbsenceRow) for missed in phase.absent.values()],
    )
