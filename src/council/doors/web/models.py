"""Response bodies of the HTTP API, for its OpenAPI description.

Later versions add fields, and never remove or rename one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Annotated, Any, Literal, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema, create_model, with_config
from typing_extensions import TypedDict

from council import events as ev
from council.doors import chat, limits
from council.doors.web import uploads
from council.engine import plan_object
from council.engine.plan_object import PacketReceipt, PlanObject
from council.engine.records import CostRow, ReportObject
from council.render.report_object import Cost, PositionRow, Report, Tokens
from council.runs import doctor, history, spending, track_record
from council.runs.people import OpenQuestion
from council.store import interface
from council.store.interface import RunStatus, list_fields
from council.types import FinalState, Json, SeatState, UsageCounts


class Body(BaseModel):
    """An object that may get more fields in later versions."""

    model_config = ConfigDict(extra="allow", frozen=True)


def _described_as(model: type[BaseModel]) -> GetPydanticSchema:
    """Describe a value, which is plain data, as this model."""
    return GetPydanticSchema(lambda _, handler: handler.generate_schema(model))


TokenCounts = Annotated[UsageCounts, _described_as(Tokens)]
NO_HELP: Mapping[str, str] = MappingProxyType({})
MORE_FIELDS = ConfigDict(extra="allow")  # later versions may add some


@with_config(MORE_FIELDS)
class ErrorDetail(TypedDict):
    """Cause of an error."""

    code: Annotated[str, Field(description="Stable name of the cause, for programs.")]
    message: Annotated[str, Field(description="The problem and the fix, in one line, for people.")]
    field: Annotated[
        str | None, Field(description="The field of the request that is wrong; null if it is not one field.")
    ]
    details: NotRequired[
        Annotated[
            dict[str, Any] | None,
            Field(
                description="What a program needs to know, such as the councils that fit a cap; absent if there is nothing.",
                json_schema_extra={"default": None},
            ),
        ]
    ]


@with_config(MORE_FIELDS)
class ErrorBody(TypedDict):
    """Every response with a status of 400 or more."""

    schema: Literal["council.error/2"]
    error: ErrorDetail
    exit: Annotated[int, Field(description="The exit code that the command would have.")]


@with_config(MORE_FIELDS)
class ChatError(TypedDict):
    """Cause of an error of /v1, in the format of OpenAI."""

    message: str
    type: str
    param: str | None
    code: str | None


@with_config(MORE_FIELDS)
class ChatErrorBody(TypedDict):
    """Every response of /v1 with a status of 400 or more."""

    error: ChatError


class Session(Body):
    """A token that is valid."""

    session: Literal["open"]
    user: Annotated[str | None, Field(description="Name of the user; null for the owner of the server.")]
    scope: Literal["chat", "runs", "admin"]
    token: Annotated[str, Field(description="The token; only in exchange for a code.")] = ""


class SessionCode(Body):
    """A code that gives the token of the server once."""

    code: str


def make_body_model(row: Any, about: Mapping[str, str] = NO_HELP, name: str = "", **parts: Any) -> type[BaseModel]:
    """Return the model of an object that is declared elsewhere, and of the objects in it.

    `about` describes fields, also those of inner objects. `parts` are the types of single fields.
    """
    named: dict[str, Any] = {}
    known = vars(plan_object)  # some modules import these only for the types
    hints, marked = get_type_hints(row, localns=known), get_type_hints(row, localns=known, include_extras=True)
    for field, kind in hints.items():
        how: dict[str, Any] = {"description": about.get(field), "alias": "schema" if field == "schema" else None}
        if get_origin(marked[field]) is NotRequired:
            how |= {"default": None, "json_schema_extra": _drop_default}
        made = Field(**how)
        shown = parts[field] if field in parts else _find_body_type(kind, about)
        named["schema_name" if field == "schema" else field] = (shown, made)
    model: type[BaseModel] = create_model(name or row.__name__, __base__=Body, __doc__=row.__doc__, **named)
    return model


def _drop_default(schema: Json) -> None:
    """Describe a field that may be absent by its type alone."""
    del schema["default"]


def _find_body_type(kind: Any, about: Mapping[str, str]) -> Any:
    if kind is UsageCounts:
        return Tokens
    if is_typeddict(kind) and not hasattr(kind, "__pydantic_config__"):
        return make_body_model(kind, about)
    if get_origin(kind) is list:
        (item,) = get_args(kind)
        return list[_find_body_type(item, about)]  # type: ignore[misc]
    return kind


class SetupItem(Body):
    """A vendor or a search provider that can be set up."""

    name: str
    variable: Annotated[str | None, Field(description="The variable of its key; null if it takes an address.")]
    takes: Literal["key", "address"]
    found: Annotated[
        Literal["environment", "keyring", "settings", ""],
        Field(description="Where its key or address is; empty: nowhere."),
    ]


class Setup(Body):
    """What the owner can set up from the page."""

    refused: Annotated[str | None, Field(description="Why nothing can be set up with this request; null if it can.")]
    storage_problem: Annotated[
        str | None, Field(description="Why no key can be stored on this system; null if it can.")
    ]
    vendors: list[SetupItem]
    search: list[SetupItem]


class SetupResult(Body):
    """A key or an address that was stored."""

    name: str
    variable: str | None
    tested: Annotated[bool, Field(description="Whether it answered a request that costs nothing.")]
    detail: str


# Start


UPLOAD_HELP = {
    "media_type": "Recognised from the content.",
    "expires": "Unix time at which it is removed, if no run has taken it.",
}
Upload: Any = make_body_model(uploads.Upload, UPLOAD_HELP)


class UploadContent(Upload):  # type: ignore[misc]
    """An uploaded attachment with its content."""

    data: Annotated[str, Field(description="The bytes in base64.")]


ProtocolInfo: Any = make_body_model(
    doctor.ProtocolRow,
    {
        "package": "The package that adds it; empty for a built-in one.",
        "use": 'One word for its main use, such as "Decide"; may be empty.',
        "options": "The options as JSON Schema.",
        "note": "Why it cannot run now; empty if it can.",
    },
    "ProtocolInfo",
    options=Json,
)
Retirement: Any = make_body_model(
    doctor.Retirement, {"is_over": "Whether the date is over, or the vendor no longer lists it."}
)


class MemberInfo(Body):
    """A model, a command-line agent or the embedded model."""

    member: str
    vendor: str
    available: bool
    needs: Annotated[str, Field(description="Missing key, program or package; empty if it is available.")]
    context: Annotated[int | None, Field(description="Context window in tokens; null if it is unknown.")]
    price: Annotated[Json | None, Field(description="Dollars per million tokens; null if they are unknown.")]
    line: Annotated[
        str | None, Field(description="The line of models that it is the newest of, such as opus; null if of none.")
    ]
    retired: Annotated[Retirement | None, Field(description="Null if it is not retired, and no date is known.")]


class SeatedMember(Body):
    seat: str
    member: str
    vendor: str
    fallbacks: list[str]


@with_config(MORE_FIELDS)
class PresetInfo(TypedDict):
    """A named set of perspectives."""

    name: str
    about: str


class RosterInfo(PresetInfo):
    """A named roster of the advisors protocol."""

    seats: list[str]
    error: Annotated[str | None, Field(description="Why it cannot be used.")]


class Members(Body):
    """The members, the default seating, and the named rosters and presets."""

    members: list[MemberInfo]
    protocol: Annotated[str | None, Field(description="Protocol of the seats; null if there are none.")]
    seats: list[SeatedMember]
    families: int
    notices: list[str]
    warnings: list[str]
    rosters: list[RosterInfo]
    presets: list[PresetInfo]


class Root(Body):
    """A folder whose files may be named."""

    name: str
    path: str


FileEntry: Any = make_body_model(limits.FileEntry)
FoundFiles = make_body_model(limits.FoundFiles, {"more": "Whether other files match too."}, files=list[FileEntry])
FilePreview = make_body_model(
    limits.FilePreview,
    {
        "tokens": "Estimated tokens of the whole file.",
        "cut": "Whether the file is longer than the text.",
        "secrets": "Where the packet gate finds secrets: file, line and kind. It refuses such a file.",
    },
)


class OptionSchema(Body):
    """The options of every run as JSON Schema; `choices` of an option names a list of the members response."""

    type: Literal["object"]
    properties: dict[str, Any]


class NamedRun(Body):
    run: Annotated[str, Field(description="The id of the run.")]
    id: Annotated[str, Field(description="The same as `run`, for older clients.")]


class StartedRun(NamedRun):
    """A run that is queued."""

    plan: PlanObject


# History


RUN_FIELDS = {
    one.name: (one.type, Field(description=one.column.about or None)) for one in list_fields(interface.RunRow)
}
RunRow: Any = create_model("RunRow", __base__=NamedRun, __doc__="A run in a list.", **RUN_FIELDS)  # type: ignore[call-overload]


OutcomeBody = make_body_model(
    track_record.OutcomeObject,
    {
        "at": "When it was recorded, in seconds since 1970.",
        "label": "Whether the answer turned out right or wrong.",
        "value": "The value that was right, if it was named; else empty.",
        "seats": "The seats that are known to have been right or wrong.",
        "confidence": "The probability behind the confidence that the seat stated; null if it stated none.",
        "earlier": "The outcomes that this one has replaced, oldest first.",
    },
    "Outcome",
)


class RunList(Body):
    """A page of runs: unfinished ones first, then the newest."""

    runs: list[RunRow]
    more: Annotated[bool, Field(description="Whether there are more runs after these.")]
    next: Annotated[str | None, Field(description="Value of `before` for the next page; null on the last one.")]


@with_config(MORE_FIELDS)
class StatementRow(TypedDict):
    """A complete statement of a seat."""

    key: str
    seat: str
    state: FinalState
    said: str
    reply: Json | None
    served_by: str
    attempts: int
    seconds: float
    cut: Annotated[list[str], Field(description="Parts that were left out of the request to fit the context window.")]
    dropped: Annotated[list[str], Field(description="Parameters that the member rejected.")]
    cut_material: Annotated[list[str], Field(description="Those of `cut` that are material.")]
    missing: Annotated[list[str], Field(description="Parts of the typed reply that an answer in prose lacks.")]
    words: int
    unread: Annotated[list[str], Field(description="Places of values in the typed reply that could not be read.")]
    unanswered: Annotated[list[str], Field(description="Parts of the material that a joined statement lacks.")]
    tokens: TokenCounts


@with_config(MORE_FIELDS)
class AbsenceRow(TypedDict):
    """A seat that did not answer in a phase."""

    key: str
    seat: str
    state: FinalState
    reason: str
    attempts: int
    since: Annotated[str, Field(description="The phase of an earlier absence that this one repeats; may be empty.")]


@with_config(MORE_FIELDS)
class PhaseRow(TypedDict):
    """A phase with its statements."""

    name: str
    started: float
    ended: float | None
    asked: list[str]
    apart: Annotated[bool, Field(description="Whether the seats do not see each other's statements.")]
    labels: Annotated[dict[str, dict[str, str]], Field(description="By reader: the seats behind its labels.")]
    said: list[StatementRow]
    absent: list[AbsenceRow]


@with_config(MORE_FIELDS)
class SeatRow(TypedDict):
    """A seat now."""

    name: str
    role: str
    perspective: str
    model: str
    vendor: str
    state: SeatState
    phase: str
    since: Annotated[float, Field(description="When it was last asked, in seconds since 1970.")]
    words: int
    served_by: str
    trouble: Annotated[str, Field(description="The last retry, fallback or repair; may be empty.")]
    reason: str
    usd: float
    estimated: bool
    attempts: int
    seconds: float
    tokens: TokenCounts


@with_config(MORE_FIELDS)
class NoteRow(TypedDict):
    what: str
    why: str


@with_config(MORE_FIELDS)
class MinutesBody(TypedDict):
    """The course of a run."""

    started: float
    seconds: float
    seq: Annotated[int, Field(description="Number of the last event.")]
    stopped: Annotated[str, Field(description="Why the run stopped before its end; empty if it did not.")]
    reason: str
    phases: list[PhaseRow]
    seats: list[SeatRow]
    notes: list[NoteRow]
    labels: Annotated[dict[str, dict[str, str]], Field(description="By reader: the seats behind its labels.")]
    files: Annotated[dict[str, str], Field(description="Paths of the analysis files, by phase and seat.")]
    troubles: Annotated[list[Json], Field(description="The events of retries, fallbacks and repairs.")]


@with_config(MORE_FIELDS)
class RunDetail(TypedDict):
    """A run as it is now."""

    run: Annotated[str, Field(description="The id of the run.")]
    id: Annotated[str, Field(description="The same as `run`, for older clients.")]
    name: str
    folder: str
    status: RunStatus
    running: bool
    report: Annotated[
        ReportObject,
        _described_as(Report),
        Field(description="The report; its status and its trust level are null until the run has ended."),
    ]
    above: Annotated[list[str], Field(description="Lines that belong above the answer: missing and limited parts.")]
    plan: PlanObject
    minutes: MinutesBody
    cap: Annotated[float | None, Field(description="Maximum cost in dollars; null without a cap.")]
    cost: Annotated[CostRow, _described_as(Cost)]


class PositionsAt(Body):
    """The positions of the seats after a phase, or now."""

    seq: Annotated[int, Field(description="The last event that the rows cover.")]
    rows: list[PositionRow]


AttemptRow: Any = make_body_model(
    history.AttemptRow,
    {
        "why": "Why it was sent again; empty for a first request.",
        "most": "Its maximum cost in dollars; null if the price is unknown.",
        "result": "Null if the result is unknown.",
    },
    result=Json | None,
)


class PacketBody(Body):
    """The material that was sent."""

    receipt: PacketReceipt
    dossier: Json


SPENDING_HELP = {
    "usd": "In dollars; null if no price is known.",
    "cached_saving": "In dollars: what the vendors' prompt caches saved.",
    "mean": "Mean cost of the complete runs in dollars; null if no price is known.",
    "stops": "How often phases were not needed.",
    "saved": "Expected cost of these phases in dollars, by the plans; null if no price is known.",
}
TODAY_HELP = {"usd": "In dollars, with `reserved` and `in_doubt`."}
SpendingToday = make_body_model(spending.TodaySpending, TODAY_HELP, "SpendingToday")
Spending = make_body_model(spending.SpendingObject, SPENDING_HELP, "Spending", today=SpendingToday)


# Actions


class RunStatusBody(NamedRun):
    status: RunStatus


class ForkedRun(NamedRun):
    """The new run."""


AskRow: Any = make_body_model(
    OpenQuestion,
    {"schema": "The fields to fill in; null for free text."},
    "AskRow",
    schema=Json | None,
    fields=list[Json],
)


class AnswerTaken(Body):
    run: str
    key: str
    taken: Annotated[bool, Field(description="Whether the answer was in time; the first one counts.")]


# Events


def _make_event_model(kind: type[Any]) -> type[BaseModel]:
    """Return the model of an event as it is sent: its number, its time, its tag and its fields."""
    hints = get_type_hints(kind)
    named: dict[str, Any] = {"seq": (int, ...), "at": (float, ...), "type": (Literal[kind.type], ...)}
    for field in fields(kind):
        default = ... if field.default is MISSING else field.default
        made = Field(default_factory=field.default_factory) if field.default_factory is not MISSING else default
        named[field.name] = (hints[field.name], made)
    if kind is ev.Delta:
        named["from"] = (int, ...)
    model: type[BaseModel] = create_model(f"{kind.__name__}Event", __base__=Body, __doc__=kind.__doc__, **named)
    return model


class StreamEnd(Body):
    """The last event of a stream, `end`."""

    run: str = ""
    status: str
    error: str = ""


EVENT_BY_TAG = {kind.type: _make_event_model(kind) for kind in get_args(ev.Event) if kind is not ev.Fetching}


# Chat completions


@with_config(MORE_FIELDS)
class ChatModelInfo(TypedDict):
    """A council under the name of a model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ChatModelList(Body):
    object: Literal["list"]
    data: list[ChatModelInfo]


class ChatCompletionMessage(Body):
    role: Literal["assistant"]
    content: Annotated[str | None, Field(description="Null with a refusal.")]
    refusal: Annotated[str | None, Field(description="Why the members declined to write the JSON.")] = None
    reasoning_content: Annotated[str, Field(description="Progress and statements.")] = ""


class ChatChoice(Body):
    index: int
    message: ChatCompletionMessage
    finish_reason: Literal["stop", "length"]


ChatUsage: Any = make_body_model(chat.ChatUsage)
ChatCouncil: Any = make_body_model(chat.ChatSummary, name="ChatCouncil", trust=Json, cost=Cost, degraded=list[Json])


class ChatCompletion(Body):
    """An answer. With `stream`, chunks of it as server-sent events; the last one has `usage` and `council`."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage
    council: ChatCouncil


class ResponseUsage(Body):
    """Tokens of all members."""

    input_tokens: int
    input_tokens_details: dict[str, int]
    output_tokens: int
    output_tokens_details: dict[str, int]
    total_tokens: int


ResponseStatus = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class ResponseBody(Body):
    """A response. With `stream`, events as server-sent events; the last one has the response."""

    id: str
    object: Literal["response"]
    created_at: int
    status: ResponseStatus
    background: bool
    error: Annotated[dict[str, str] | None, Field(description="The code and the message of a response that failed.")]
    incomplete_details: Annotated[dict[str, str] | None, Field(description="Why the run ended early.")]
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    output: Annotated[list[dict[str, Any]], Field(description="Progress and statements as reasoning, then the answer.")]
    parallel_tool_calls: bool
    previous_response_id: str | None
    reasoning: dict[str, str | None]
    store: bool
    temperature: float | None
    text: dict[str, Any]
    tool_choice: str
    tools: list[Any]
    top_p: float | None
    truncation: str
    usage: Annotated[ResponseUsage | None, Field(description="Null until the run has ended.")]
    council: Annotated[ChatCouncil | None, Field(description="The run; null until it has ended.")]


class DeletedResponse(Body):
    id: str
    object: Literal["response"]
    deleted: bool


EXAMPLE_RESPONSE: Json = {
    "id": "resp_r2abcd",
    "object": "response",
    "created_at": 1794742800,
    "status": "completed",
    "background": False,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "model": "council",
    "output": [
        {
            "id": "msg_r2abcd",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Scale up.", "annotations": [], "logprobs": []}],
        }
    ],
    "parallel_tool_calls": False,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "none",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "usage": None,
    "council": None,
}
EXAMPLE_RESPONSE_STREAM = (
    "event: response.output_text.delta\n"
    'data: {"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_r2abcd","output_index":0,'
    '"content_index":0,"delta":"Scale","logprobs":[]}\n\n'
)
EXAMPLE_CHAT_STREAM = (
    'data: {"id":"chatcmpl-r2abcd","object":"chat.completion.chunk","created":1794742800,"model":"council",'
    '"choices":[{"index":0,"delta":{"content":"Scale"},"finish_reason":null}]}\n\ndata: [DONE]\n\n'
)
EXAMPLE_COMPLETION: Json = {
    "id": "chatcmpl-r2abcd",
    "object": "chat.completion",
    "created": 1794742800,
    "model": "council",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Scale up."}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 812,
        "completion_tokens": 240,
        "total_tokens": 1052,
        "prompt_tokens_details": {"cached_tokens": 0},
    },
    "council": {
        "run": "r2abcd",
        "status": "complete",
        "trust": {"level": "medium"},
        "cost": {"usd": 0.29, "estimated": False, "unpriced": []},
        "degraded": [],
        "tail": ["Trust: MEDIUM — one seat did not answer"],
    },
}
