"""Request bodies, each with an example. Unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from council.doors.chat_models import CHECK_HELP, EFFORT_HELP, TAIL_HELP
from council.doors.web.models import Body, ChatErrorBody, ErrorBody
from council.doors.web.responses import error_json
from council.doors.web.uploads import ID_PATTERN
from council.runs.history import MAX_TITLE_CHARS
from council.store.interface import RunRow, list_fields
from council.types import Json

EXAMPLE_RUN = "r2abcd"
EXAMPLE_RESPONSE_REQUEST: Json = {"model": "council", "input": "Shard or scale up?"}
EXAMPLE_CHAT: Json = {"model": "council", "messages": [{"role": "user", "content": "Shard or scale up?"}]}


def _model_config(example: Json) -> ConfigDict:
    return ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [example]})


class SessionRequest(BaseModel):
    model_config = _model_config({"token": "the value after #token="})

    token: str = ""
    code: str = Field(default="", description="One-time code of the address that `council serve --open` opens.")


class EmptyRequest(BaseModel):
    """Empty object; a POST must be JSON."""

    model_config = _model_config({})


class Attachment(BaseModel):
    """A file that is sent with the question: a text, or the bytes of an image, a PDF or a text.

    It has one of the two.
    """

    model_config = _model_config({"name": "plan.md", "text": "1. Move the archive."})

    name: str = Field(min_length=1, max_length=255, description="Name of the file; members see it as attached/NAME.")
    text: str | None = None
    data: str | None = Field(
        default=None, description="The bytes in base64: PNG, JPEG, WebP, GIF, PDF or text. At most 15 MB in all."
    )


EXAMPLE_UPLOAD = {
    "id": "5b1f0c7de0a94d0c8a5f5b2f3c1d7e90",
    "name": "plan.md",
    "media_type": "text/plain",
    "bytes": 20,
    "expires": 1797507600.0,
}


class RunRequest(BaseModel):
    """Council to plan or start."""

    model_config = _model_config(
        {"question": "Should we shard the database or buy a bigger machine?", "protocol": "adversarial"}
    )

    question: str = Field(
        default="",
        max_length=1 << 20,
        description="The question; it may name files and begin with a task, as on the command line.",
    )
    protocol: str | None = Field(
        default=None, description="Default: chosen from the wording of the question; auto: by advice."
    )
    options: dict[str, Any] = Field(default_factory=dict, description="Options of the protocol, see /api/protocols.")
    targets: list[str] = Field(default_factory=list, max_length=400, description="Files and folders in the root.")
    root: str | None = Field(default=None, description="Name of a root, see /api/roots; default: the first.")
    seats: dict[str, str] = Field(default_factory=dict, description="Configured members by seat.")
    models: list[str] = Field(
        default_factory=list,
        description="One member for all seats, or one for each of 2 to 8 seats, in order.",
        json_schema_extra={"choices": "members"},
    )
    cheap: bool = Field(
        default=False, title="Fast, cheaper models", description="Use the fast models of the available vendors."
    )
    exclude_family: list[str] = Field(
        default_factory=list,
        title="Excluded vendors",
        description="Vendors that no seat, chair, helper or fallback uses, such as anthropic.",
        json_schema_extra={"format": "lines"},
    )
    decisions: list[str] = Field(
        default_factory=list,
        description="Decisions already made, for the packet.",
        json_schema_extra={"format": "lines"},
    )
    attachments: list[Attachment] = Field(
        default_factory=list, max_length=50, description="Images, PDFs and text files that are sent with the question."
    )
    uploads: list[Annotated[str, Field(pattern=ID_PATTERN)]] = Field(
        default_factory=list,
        max_length=50,
        description="Attachments that were uploaded before, by id. The run takes them over: they are removed once it is queued.",
    )
    effort: Literal["low", "medium", "high"] | None = Field(default=None, description=EFFORT_HELP)
    continues: str | None = Field(
        default=None, max_length=200, description="Run whose question and answer this question continues."
    )
    redact: bool = Field(default=False, description="Mask secrets in the packet instead of refusing it.")
    skip_secrets: bool = Field(default=False, description="Leave files with secrets out of the packet.")
    look: bool = Field(
        default=False,
        title="Seats may read the project",
        description="Let each seat read files of the root before it answers.",
    )
    check: bool = Field(default=False, title="Check the answer", description=CHECK_HELP)
    max_cost: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        title="Maximum cost, in dollars",
        description="In dollars; at most the owner's limit.",
    )


class KeyRequest(BaseModel):
    model_config = _model_config({"name": "anthropic", "key": "the API key"})

    name: str = Field(max_length=200, description="Vendor, see /api/setup.")
    key: SecretStr = Field(description="Its API key. It is stored in the system keyring, and part of no response.")


class SearchRequest(BaseModel):
    """A search provider: one that takes a key, or one that takes an address."""

    model_config = _model_config({"name": "searxng", "address": "http://127.0.0.1:8888"})

    name: str = Field(max_length=200, description="Search provider, see /api/setup.")
    key: SecretStr = Field(
        default=SecretStr(""), description="Its API key. It is stored in the system keyring, and part of no response."
    )
    address: str = Field(default="", max_length=2000, description="Its address, if it takes one.")


class ForkRequest(BaseModel):
    model_config = _model_config({"from": "improve", "seats": {"beta": "openai:gpt-5.2"}})

    from_: str | None = Field(default=None, alias="from", description="First phase to run again.")
    seats: dict[str, str] = Field(default_factory=dict, description="Other members for some seats.")


class RunChange(BaseModel):
    model_config = _model_config({"title": "Storage of the archive"})

    title: str = Field(max_length=MAX_TITLE_CHARS, description="Shown instead of the question; empty removes it.")


class OutcomeRequest(BaseModel):
    model_config = _model_config({"label": "wrong", "note": "The disk was full in March."})

    label: str = Field(min_length=1, max_length=2000, description='right, wrong, or the value that was right, as "42".')
    note: str = Field(default="", max_length=2000, description="Kept with the outcome and shown beside it.")


class ChatPart(Body):
    """A part of a message. Text parts are joined."""

    type: str
    text: str | None = None


class ChatMessageBody(Body):
    """A message. The last one is the question; the others are context."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ChatPart] | None = None


class ChatStreamOptions(Body):
    include_usage: bool | None = None


class ChatRequest(Body):
    """Chat completion, as for OpenAI. Parameters that are not listed here have no effect."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_CHAT]})

    model: str = Field(max_length=400, description="A name from /v1/models.")
    messages: list[ChatMessageBody] = Field(min_length=1)
    stream: bool | None = None
    stream_options: ChatStreamOptions | None = None
    n: int | None = Field(default=None, description="Only 1.")
    tools: list[Any] | None = Field(
        default=None, description="Ignored, unless tool_choice requires one: that is refused."
    )
    tool_choice: Any = None
    function_call: Any = None
    logprobs: bool | None = Field(default=None, description="Only false: a council has no probabilities of tokens.")
    top_logprobs: int | None = Field(default=None, description="Only 0.")
    modalities: list[str] | None = Field(default=None, description="Only text.")
    audio: dict[str, Any] | None = Field(default=None, description="Not supported.")
    response_format: dict[str, Any] | None = Field(
        default=None,
        description="text, json_object or json_schema. The answer is then written as JSON by one more call, and checked.",
    )
    reasoning_effort: str | None = Field(
        default=None, description="low, medium or high: how long reasoning members think. Other values have no effect."
    )
    cancel_on_disconnect: bool | None = Field(
        default=None, description="Stop the run if the client disconnects before its end. Default: it continues."
    )
    check: bool | None = Field(default=None, description=CHECK_HELP)
    tail: bool | None = Field(default=None, description=TAIL_HELP)


class ResponseText(Body):
    format: dict[str, Any] | None = Field(
        default=None,
        description="text, json_object or json_schema. The answer is then written as JSON by one more call, and checked.",
    )


class ResponseReasoning(Body):
    effort: str | None = Field(default=None, description="low, medium or high. Other values have no effect.")


MetadataValue = Annotated[str, Field(max_length=512)]


class ResponseRequest(Body):
    """Response, as for OpenAI. Parameters that are not listed here have no effect."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_RESPONSE_REQUEST]})

    model: str = Field(max_length=400, description="A name from /v1/models.")
    input: str | list[dict[str, Any]] = Field(description="The question, or items of which the last is the question.")
    instructions: str | None = Field(default=None, description="Context for every seat, as a system message.")
    previous_response_id: str | None = Field(
        default=None, max_length=200, description="The response whose conversation the question continues."
    )
    stream: bool | None = None
    background: bool | None = Field(default=None, description="Answer at once, with the status queued.")
    text: ResponseText | None = None
    reasoning: ResponseReasoning | None = None
    metadata: dict[Annotated[str, Field(max_length=64)], MetadataValue] | None = Field(default=None, max_length=16)
    max_output_tokens: int | None = Field(default=None, description="No effect.")
    store: bool | None = Field(default=None, description="No effect: every run is stored until it is deleted.")
    include: list[str] | None = Field(default=None, description="No effect; probabilities are refused.")
    top_logprobs: int | None = Field(default=None, description="Only 0.")
    tools: list[Any] | None = Field(
        default=None, description="Ignored, unless tool_choice requires one: that is refused."
    )
    tool_choice: Any = None
    conversation: Any = Field(default=None, description="Not supported: use previous_response_id.")
    prompt: Any = Field(default=None, description="Not supported: write the question in input.")
    cancel_on_disconnect: bool | None = Field(
        default=None, description="Stop the run if the client disconnects before its end. Default: it continues."
    )
    check: bool | None = Field(default=None, description=CHECK_HELP)
    tail: bool | None = Field(default=None, description=TAIL_HELP)


class AskAnswer(BaseModel):
    model_config = _model_config({"answer": "Cold storage, if it can be read within a day."})

    answer: str


Responses = dict[int | str, dict[str, Any]]
NEEDS_BODY: Json = {"requestBody": {"required": True}}  # of an EmptyRequest, which may be null but not missing
# Code and meaning of errors by status: those of every route, and those of some.
COMMON_ERRORS = {
    400: ("invalid_request", "wrong Host, or the request cannot be done"),
    401: ("unauthorized", "the token is missing or wrong"),
    403: ("wrong_origin", "the request came from another page or site"),
    422: ("invalid_field", "the request does not fit this description"),
    500: ("internal_error", "an error of the server"),
    503: ("store_unavailable", "the store cannot be reached, or the server stops"),
}
BODY_ERRORS = {
    408: ("body_too_slow", "the body did not arrive in time"),
    413: ("body_too_large", "the body is too large"),
    415: ("not_json", "the body is not JSON"),
}
CHAT_ROUTE_ERRORS = {
    404: "unknown model or response",
    409: "the state of the run does not allow this",
    422: "the answer could not be written in the requested form",
    429: "the budget is spent",
    502: "the council has no answer",
}
ROUTE_ERRORS = {
    404: ("unknown_run", "unknown run"),
    409: ("run_conflict", "the run is executed by another process, or its state does not allow this"),
}
TOKEN_HEADER: Json = {"WWW-Authenticate": {"description": "Bearer.", "required": True, "schema": {"type": "string"}}}
REPLAYED_HEADER: Json = {
    "Idempotency-Replayed": {
        "description": "true, if an earlier request with the same Idempotency-Key gave this response.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}
EXAMPLE_SEAT = {
    "name": "alpha",
    "role": "Drafter & Red Teamer",
    "perspective": None,
    "model": "anthropic:claude-opus-4.6",
    "vendor": "anthropic",
    "fallbacks": ["openai:gpt-5.2"],
}
EXAMPLE_PLAN = {
    "schema": "council.plan/1",
    "task": "ask",
    "protocol": "adversarial",
    "why": "chosen by name",
    "question": "Shard or scale up?",
    "target": None,
    "options": {},
    "seats": [EXAMPLE_SEAT],
    "chair": {**EXAMPLE_SEAT, "name": "chair", "role": "Orchestrator"},
    "phases": [{"name": "draft", "calls": 3, "parallel": True}],
    "calls": {"min": 5, "max": 7},
    "agents": 3,
    "packet": {"files": [], "bytes": 0, "tokens": 0, "skipped": []},
    "cost": {"low": 0.05, "expected": 0.11, "worst": 0.42},
    "warnings": [],
    "cap": 1.0,
}
EXAMPLE_TOKENS = {"in": 812, "out": 240, "cached": 0}
EXAMPLE_COST = {"usd": 0.29, "estimated": False, "unpriced": []}
EXAMPLE_REPORT_SEAT = {
    "name": "alpha",
    "label": "Alpha",
    "role": "Drafter & Red Teamer",
    "perspective": None,
    "model": "anthropic:claude-opus-4.6",
    "served_by": "anthropic:claude-opus-4.6",
    "vendor": "anthropic",
    "state": "ok",
    "verdict": None,
    "confidence": "MEDIUM",
    "file": None,
    "tokens": EXAMPLE_TOKENS,
    "cost": 0.09,
    "attempts": 1,
    "seconds": 12.4,
}
EXAMPLE_REPORT: Json = {
    "schema": "council.report/1",
    "run": EXAMPLE_RUN,
    "name": "council-20261115-shard-or-scale-up",
    "status": "complete",
    "task": "ask",
    "protocol": "adversarial",
    "question": "Shard or scale up?",
    "target": None,
    "verdict": None,
    "outcome": "MODIFIED",
    "confidence": "MEDIUM",
    "trust": {"level": "MEDIUM", "because": ["the attack changed the answer"], "in_favour": [], "facts": []},
    "answer": "Buy the bigger machine first.",
    "tail": ["Trust: MEDIUM — the attack changed the answer"],
    "seats": [EXAMPLE_REPORT_SEAT],
    "chair": None,
    **{name: [] for name in ("consensus", "disagreements", "insights", "blind_spots", "findings", "dissent")},
    **{name: [] for name in ("shifts", "sources", "degraded")},
    "quorum": {"needed": 2, "ok": 3, "asked": 3},
    "calls": {"made": 7, "replayed": 0, "in_doubt": 0},
    "tokens": EXAMPLE_TOKENS,
    "cost": EXAMPLE_COST,
    "seconds": 71.9,
    "report_path": None,
}
EXAMPLE_OUTCOME = {
    "schema": "council.outcome/1",
    "run": EXAMPLE_RUN,
    "at": 1797421200.0,
    "label": "wrong",
    "value": "",
    "note": "The disk was full in March.",
    "seats": [
        {
            "seat": "alpha",
            "perspective": "",
            "member": "anthropic:claude-opus-4.6",
            "right": False,
            "confidence": 0.9,
        }
    ],
    "earlier": [],
}
EXAMPLE_RUN_ROW = {"id": EXAMPLE_RUN, **{one.name: one.column.example for one in list_fields(RunRow)}}
EXAMPLE_STATEMENT: Json = {
    "key": "draft/alpha",
    "seat": "alpha",
    "state": "ok",
    "said": "Scale up.",
    "reply": None,
    "attempts": 1,
    "seconds": 12.4,
    "served_by": "anthropic:claude-opus-4.6",
    "words": 2,
    "tokens": EXAMPLE_TOKENS,
    **{name: [] for name in ("cut", "dropped", "cut_material", "missing", "unread", "unanswered")},
}
EXAMPLE_PHASE = {
    "name": "draft",
    "started": 1794742800.0,
    "ended": 1794742841.2,
    "asked": ["alpha"],
    "apart": True,
    "labels": {},
    "said": [EXAMPLE_STATEMENT],
    "absent": [],
}
EXAMPLE_RUN_DETAIL = {
    "run": EXAMPLE_RUN,
    "id": EXAMPLE_RUN,
    "name": "council-20261115-shard-or-scale-up",
    "folder": "/srv/shop",
    "status": "complete",
    "running": False,
    "report": EXAMPLE_REPORT,
    "plan": EXAMPLE_PLAN,
    "above": [],
    "minutes": {
        "started": 1794742800.0,
        "seconds": 71.9,
        "seq": 42,
        "stopped": "",
        "reason": "",
        "phases": [EXAMPLE_PHASE],
        "seats": [],
        "notes": [],
        "labels": {},
        "files": {},
        "troubles": [],
    },
    "cap": 1.0,
    "cost": EXAMPLE_COST,
}
EXAMPLE_ATTEMPT = {
    "key": "draft/alpha",
    "n": 1,
    "member": "anthropic:claude-opus-4.6",
    "seat": "alpha",
    "why": "",
    "most": 0.12,
    "request": "{…}",
    "result": {"text": "Scale up."},
}
EXAMPLE_STREAM = 'id: 2\nevent: phase\ndata: {"seq":2,"at":1794742800.1,"type":"phase","phase":"draft"}\n\n'


def example_responses(
    example: Any, *errors: int, status: int = 200, headers: Json | None = None, has_body: bool = False
) -> Responses:
    """Return the response with its example, the common errors, and the given errors of this route."""
    known = COMMON_ERRORS | {status: ROUTE_ERRORS[status] for status in errors} | (BODY_ERRORS if has_body else {})
    responses: Responses = {
        status: {
            "model": ErrorBody,
            "description": _as_sentence(line),
            **({"headers": TOKEN_HEADER} if status == 401 else {}),
            **_json_content(error_json(code, line, "question" if code == "invalid_field" else "")),
        }
        for status, (code, line) in sorted(known.items())
    }
    success: dict[str, Any] = {"description": "OK.", **({"headers": headers} if headers else {})}
    return {status: success | ({} if example is None else _json_content(example))} | responses


def chat_responses(example: Any, *errors: int, has_body: bool = False, stream: str | None = None) -> Responses:
    """Return the responses of a route of /v1, whose errors have the format of OpenAI.

    `stream` is an example of its events, if it streams on request.
    """
    known = COMMON_ERRORS | (BODY_ERRORS if has_body else {})
    lines = {status: line for status, (_, line) in known.items() if status != 422}
    lines |= {status: line for status, line in CHAT_ROUTE_ERRORS.items() if status in errors}
    responses: Responses = {
        status: {
            "model": ChatErrorBody,
            "description": _as_sentence(line),
            **({"headers": TOKEN_HEADER} if status == 401 else {}),
        }
        for status, line in sorted(lines.items())
    }
    success = _json_content(example)
    if stream is not None:
        success["content"] |= _stream_content({"type": "string"}, stream)
    return {200: {"description": "OK.", **success}} | responses


def stream_responses(*errors: int) -> Responses:
    description = "Server-sent events until the run ends. The data of each is a RunEvent, that of the last one, `end`, a StreamEnd."
    return example_responses(None, *errors) | {
        200: {"description": description, "content": _stream_content(EVENT_DATA, EXAMPLE_STREAM)}
    }


EVENT_DATA = {
    "type": "string",
    "contentMediaType": "application/json",
    "contentSchema": {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("RunEvent", "StreamEnd")]},
}


def _stream_content(data: Json, example: str) -> Json:
    """Return server-sent events, described one by one as in OpenAPI 3.2."""
    event = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": data},
        "required": ["data"],
    }
    return {"text/event-stream": {"itemSchema": event, "example": example}}


def _json_content(example: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"example": example}}}


def _as_sentence(line: str) -> str:
    return f"{line[:1].upper()}{line[1:]}."
