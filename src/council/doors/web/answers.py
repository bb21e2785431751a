"""JSON responses and one-line errors."""

from __future__ import annotations

import json
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from council.errors import CouncilError, LedgerMismatch, RunOwned, SearchNotEnabled, StoreError, UnknownRun, UsageError
from council.render.clean import one_line
from council.types import Json

# HTTP status of each error class; the first match counts.
STATUS: dict[type[CouncilError], int] = {
    UnknownRun: 404, RunOwned: 409, LedgerMismatch: 409, UsageError: 400, SearchNotEnabled: 400, StoreError: 503,
}  # fmt: skip
LONGEST = 600  # characters of an internal error


class Answer(Response):
    """JSON response that replaces lone surrogates (from file names), which UTF-8 cannot encode."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return encoded(content).encode("utf-8", "replace")


def encoded(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def error(status: int, line: str, exit_: int = 2) -> Answer:
    return Answer(error_json(line, exit_), status)


def error_json(line: str, exit_: int = 2) -> Json:
    return {"schema": "council.error/1", "error": line, "exit": exit_}


def fault_line(problem: BaseException) -> str:
    """Describe an unexpected exception in one line; only COUNCIL_DEBUG shows the traceback."""
    what = one_line(f"{type(problem).__name__}: {problem}", LONGEST)
    return f"internal error ({what}): set COUNCIL_DEBUG=1 for a traceback, and report it"


async def on_council_error(request: Request, problem: Exception) -> Answer:
    assert isinstance(problem, CouncilError)
    status = next((status for kind, status in STATUS.items() if isinstance(problem, kind)), 500)
    return error(status, str(problem), problem.exit)


async def on_http_error(request: Request, problem: Exception) -> Answer:
    """Answer an unknown path or method."""
    assert isinstance(problem, HTTPException)
    lines = {404: f'unknown path "{request.url.path[:200]}": see /api/openapi.json'}
    lines[405] = f"{request.method} is not allowed for this path: see /api/openapi.json"
    answer = error(problem.status_code, lines.get(problem.status_code, str(problem.detail)))
    answer.headers.update(problem.headers or {})
    return answer


async def on_invalid(request: Request, problem: Exception) -> Answer:
    """Answer with the first validation error."""
    assert isinstance(problem, RequestValidationError)
    first = problem.errors()[0]
    if first["type"] == "json_invalid":
        return error(400, "the body is not valid JSON: send one object, see /api/openapi.json")
    where = ".".join(str(part) for part in first["loc"])
    value = f' "{one_line(str(first["input"]), 80)}"' if isinstance(first.get("input"), str | int | float) else ""
    return error(422, f"invalid {one_line(where, 200)}{value}: {one_line(first['msg'], 200)}")


async def on_fault(request: Request, problem: Exception) -> Answer:
    return error(500, fault_line(problem), 1)
