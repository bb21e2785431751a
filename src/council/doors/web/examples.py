"""Response examples for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from council.doors.web.bodies import EXAMPLE_RUN
from council.types import Json

Responses = dict[int | str, dict[str, Any]]
COMMON_ERRORS = {
    400: "wrong Host, or the request cannot be done",
    401: "the token is missing or wrong",
    403: "the request came from another page or site",
    422: "the request does not fit this description",
}
EXAMPLE_SEAT = {
    "name": "alpha", "role": "Drafter & Red Teamer", "perspective": None, "model": "anthropic:claude-opus-4.6",
    "vendor": "anthropic", "fallbacks": ["openai:gpt-5.2"],
}  # fmt: skip
EXAMPLE_PLAN = {
    "schema": "council.plan/1", "task": "ask", "protocol": "adversarial", "why": "--protocol", "question": "Shard or scale up?",
    "target": None, "options": {}, "seats": [EXAMPLE_SEAT], "chair": {**EXAMPLE_SEAT, "name": "chair", "role": "Orchestrator"},
    "phases": [{"name": "draft", "calls": 3, "parallel": True}], "calls": {"min": 5, "max": 7}, "agents": 3,
    "packet": {"files": [], "bytes": 0, "tokens": 0, "skipped": []}, "cost": {"low": 0.05, "expected": 0.11, "worst": 0.42},
    "warnings": [], "cap": 1.0,
}  # fmt: skip
EXAMPLE_REPORT = {
    "schema": "council.report/1", "run": EXAMPLE_RUN, "status": "complete", "task": "ask", "protocol": "adversarial",
    "verdict": None, "outcome": "MODIFIED", "confidence": "MEDIUM", "answer": "Buy the bigger machine first.",
}  # fmt: skip
EXAMPLE_RUN_ROW = {
    "id": EXAMPLE_RUN, "name": "council-20261115-shard-or-scale-up", "folder": "/srv/shop", "question": "Shard or scale up?",
    "protocol": "adversarial", "task": "ask", "status": "complete", "running": False, "unfinished": False, "verdict": None,
    "outcome": "MODIFIED", "confidence": "MEDIUM", "created": 1794742800.0, "seconds": 71.9, "cost": 0.29,
}  # fmt: skip
EXAMPLE_STATEMENT = {
    "key": "draft/alpha", "seat": "alpha", "state": "ok", "said": "Scale up.", "reply": None, "attempts": 1, "seconds": 12.4,
    "served_by": "anthropic:claude-opus-4.6", "tokens": {"in": 812, "out": 240, "cached": 0},
}  # fmt: skip
EXAMPLE_PHASE = {
    "name": "draft",
    "started": 1794742800.0,
    "ended": 1794742841.2,
    "asked": ["alpha"],
    "said": [EXAMPLE_STATEMENT],
    "absent": [],
}
EXAMPLE_RUN_DETAIL = {
    "run": EXAMPLE_RUN, "status": "complete", "running": False, "report": EXAMPLE_REPORT, "plan": EXAMPLE_PLAN,
    "minutes": {"phases": [EXAMPLE_PHASE], "notes": [], "labels": {}}, "cap": 1.0, "cost": {"usd": 0.29, "estimated": False, "unpriced": []},
}  # fmt: skip
EXAMPLE_ATTEMPT = {
    "key": "draft/alpha", "n": 1, "member": "anthropic:claude-opus-4.6", "seat": "alpha", "why": "", "request": "{…}",
    "result": {"text": "Scale up."},
}  # fmt: skip
EXAMPLE_STREAM = 'id: 2\nevent: phase\ndata: {"seq":2,"at":1794742800.1,"type":"phase","phase":"draft"}\n\n'


def example_responses(example: Any, *errors: int, status: int = 200, description: str = "OK.") -> Responses:
    """Return the response with its example, the common errors, and the given errors of this route."""
    lines = COMMON_ERRORS | {code: ROUTE_ERRORS[code] for code in errors}
    responses: Responses = {
        code: {"description": line, **_json_content(_error_example(line))} for code, line in lines.items()
    }
    return {status: {"description": description, **_json_content(example)}} | responses


def stream_responses(*errors: int) -> Responses:
    content = {"schema": {"type": "string"}, "example": EXAMPLE_STREAM}
    return example_responses(None, *errors) | {
        200: {"description": "Events until the run ends.", "content": {"text/event-stream": content}}
    }


ROUTE_ERRORS = {
    404: "unknown run",
    409: "the run is owned by another process, or cannot continue",
    415: "the body is not JSON",
}


def _json_content(example: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"example": example}}}


def _error_example(line: str) -> Json:
    return {"schema": "council.error/1", "error": line, "exit": 2}
