"""How everything is answered: JSON that every client can read, and errors of one line."""

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

# Which status an error has, by the first class it belongs to.
STATUS: dict[type[CouncilError], int] = {
    UnknownRun: 404, RunOwned: 409, LedgerMismatch: 409, UsageError: 400, SearchNotEnabled: 400, StoreError: 503,
}  # fmt: skip
LONGEST = 600  # characters of one line


class Answer(Response):
    """Half a character, as a file's name can hold, is replaced: nobody could read the answer otherwise."""

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
    """What is said of what nobody foresaw; the traceback is for COUNCIL_DEBUG alone."""
    what = one_line(f"{type(problem).__name__}: {problem}", LONGEST)
    return f"this is a fault of council itself ({what}): set COUNCIL_DEBUG=1 to see where, and report it"


async def on_council_error(request: Request, problem: Exception) -> Answer:
    assert isinstance(problem, CouncilError)
    status = next((status for kind, status in STATUS.items() if isinstance(problem, kind)), 500)
    return error(status, str(problem), problem.exit)


async def on_http_error(request: Request, problem: Exception) -> Answer:
    """A path or a method that there is not."""
    assert isinstance(problem, HTTPException)
    said = {404: f'there is no "{request.url.path[:200]}" here: /api/openapi.json lists what there is'}
    said[405] = f"{request.method} is not for this path: /api/openapi.json lists what is"
    answer = error(problem.status_code, said.get(problem.status_code, str(problem.detail)))
    answer.headers.update(problem.headers or {})
    return answer


async def on_invalid(request: Request, problem: Exception) -> Answer:
    """What does not fit the description of a request, as one line about the first thing that does not."""
    assert isinstance(problem, RequestValidationError)
    first = problem.errors()[0]
    if first["type"] == "json_invalid":
        return error(400, "the body is no JSON, nothing was done: send one object, as /api/openapi.json shows")
    where = ".".join(str(part) for part in first["loc"])
    given = f' "{one_line(str(first["input"]), 80)}"' if isinstance(first.get("input"), str | int | float) else ""
    return error(422, f"{one_line(where, 200)}{given} cannot be used, nothing was done: {one_line(first['msg'], 200)}")


async def on_fault(request: Request, problem: Exception) -> Answer:
    return error(500, fault_line(problem), 1)
