"""The Responses API under /v1: a council as a model whose answers can be fetched, continued and cancelled."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from fastapi import APIRouter, Query
from starlette.requests import Request

from council.doors.chat import (
    FAILED,
    MESSAGE_FILE,
    NOT_FORMATTED,
    STOPPED_MIDWAY,
    ChatFold,
    ChatMessage,
    ChatQuestion,
    Piece,
    PieceKind,
    read_messages,
)
from council.doors.chat_models import TITLE_MODEL
from council.doors.web import models
from council.doors.web.access import AppStateDep, KeyHeader, UserDep
from council.doors.web.app_state import AppState
from council.doors.web.chat_routes import (
    TEXT_TYPES,
    AnswerResponse,
    CouncilRequest,
    RetryCount,
    digest_request,
    drop_resumed_ends,
    find_model,
    is_retry,
    make_error,
    read_data_url,
    refuse_probabilities,
    refuse_required_tools,
    start_run,
)
from council.doors.web.guard import Send
from council.doors.web.models import ResponseStatus
from council.doors.web.responses import ApiResponse, UnknownPreviousResponse, UnknownResponse, encode_json
from council.doors.web.schemas import NEEDS_BODY, EmptyRequest, ResponseRequest, chat_responses
from council.doors.web.sse import RunResponse
from council.engine.response_format import ResponseFormat
from council.errors import RunConflict, UnknownRun, UsageError
from council.planning.setup import RunSetup
from council.runs.continuation import has_answer
from council.runs.tokens import User
from council.settings.schema import quote_value
from council.store.interface import OPEN_STATUSES, Record, RunStatus
from council.types import Json

response_router = APIRouter(prefix="/v1/responses", tags=["chat"])
ID_PREFIX = "resp_"
ATTACHED = "attached/"  # begins the name of an attached file in the packet
IGNORED_ITEMS = ("reasoning", "function_call")  # of an earlier response
FINAL_ERRORS = (FAILED, NOT_FORMATTED, STOPPED_MIDWAY)  # after which the run does not go on by itself


@response_router.post(
    "",
    response_model=models.ResponseBody,
    responses=chat_responses(
        models.EXAMPLE_RESPONSE, 404, 409, 422, 429, 502, has_body=True, stream=models.EXAMPLE_RESPONSE_STREAM
    ),
)
async def create_response(
    body: ResponseRequest,
    request: Request,
    app_state: AppStateDep,
    user: UserDep,
    idempotency_key: KeyHeader = None,
    retry_count: RetryCount = None,
) -> ApiResponse | RunResponse:
    """Ask a council. The run continues if the client disconnects; its response can be fetched by its id."""
    _check_request(body)
    response_format = ResponseFormat.read((body.text and body.text.format) or {}, "text.format")
    model = await find_model(app_state, body.model)
    previous = await _find_previous(app_state, user, body.previous_response_id)
    asked = CouncilRequest(
        model,
        _read_question(body, _list_attached(previous) if previous else []),
        body.reasoning.effort if body.reasoning else None,
        bool(body.check),
        response_format,
        previous.run if previous else None,
        _store_request(body),
    )
    joins = is_retry(retry_count) and not body.cancel_on_disconnect
    digest = await digest_request("responses", request)
    run = await start_run(app_state, user, asked, digest, idempotency_key, joins=joins)
    record = await app_state.store.load(run)
    if body.background and not body.stream:
        return ApiResponse(build_response(record, make_fold(record)), headers={"x-council-run": run})
    make = ResponseStream if body.stream else ResponseAnswer
    response = make(app_state, record, cancels=bool(body.cancel_on_disconnect))
    response.fold.minutes.outcomes = await app_state.store.load_outcomes(run)  # a repeated request may have some
    return response


@response_router.get(
    "/{response}", response_model=models.ResponseBody, responses=chat_responses(models.EXAMPLE_RESPONSE, 404)
)
async def get_response(
    response: str,
    app_state: AppStateDep,
    user: UserDep,
    stream: bool = Query(
        default=False,
        json_schema_extra={"enum": [False]},
        description="Only false: fetch the response again until it has ended.",
    ),
) -> ApiResponse:
    """Return a response, also while its run goes on."""
    if stream:
        raise UsageError("a stored response is not streamed: fetch it again until its status changes", field="stream")
    return await _return_response(app_state, user, response)


@response_router.post(
    "/{response}/cancel",
    response_model=models.ResponseBody,
    responses=chat_responses(models.EXAMPLE_RESPONSE, 404, has_body=True),
    openapi_extra=NEEDS_BODY,
)
async def cancel_response(
    response: str, app_state: AppStateDep, user: UserDep, body: EmptyRequest | None = None
) -> ApiResponse:
    """Stop the run of a response. Its statements are kept. A response that has ended stays as it is."""
    record = await _load_response(app_state, user, response)
    async with app_state.open_convener() as convener:
        await convener.cancel(record.run)
    return await _return_response(app_state, user, response)


@response_router.delete(
    "/{response}",
    response_model=models.DeletedResponse,
    responses=chat_responses({"id": "resp_r2abcd", "object": "response", "deleted": True}, 404, 409),
)
async def delete_response(response: str, app_state: AppStateDep, user: UserDep) -> ApiResponse:
    """Delete a response with its run. Its spending stays in the totals."""
    record = await _load_response(app_state, user, response)
    async with app_state.open_convener() as convener:
        removal = await convener.remove_all([record.run], may_rewrite=False)
    if removal.kept:
        raise removal.kept[record.run]
    return ApiResponse({"id": response, "object": "response", "deleted": True})


# Requests


def _check_request(body: ResponseRequest) -> None:
    """Raise UsageError for what a council cannot do."""
    refuse_required_tools(tool_choice=body.tool_choice)
    refuse_probabilities(
        top_logprobs=body.top_logprobs, include=[one for one in body.include or () if "logprobs" in one]
    )
    if body.conversation is not None:
        line = "conversation is not supported: continue a response by previous_response_id"
        raise UsageError(line, field="conversation")
    if body.prompt is not None:
        raise UsageError("prompt names a stored template, and this server has none: write input", field="prompt")


def _store_request(body: ResponseRequest) -> Json:
    """Return the fields of a request that its response repeats."""
    return {
        "model": body.model,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "metadata": body.metadata or {},
        "previous_response_id": body.previous_response_id,
        "effort": body.reasoning.effort if body.reasoning else None,
        "background": bool(body.background),
        "tail": body.tail is not False,
    }


def _read_question(body: ResponseRequest, earlier: list[tuple[str, str | bytes]]) -> ChatQuestion:
    """Return the question of a request. `earlier` are the files of the response that it continues."""
    items: list[Json] = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    numbers = count(1 + len(earlier))
    messages = [message for item in items if (message := _read_item(item, numbers))]
    if body.instructions and body.instructions.strip():
        messages.insert(0, ChatMessage("system", body.instructions))
    if earlier:
        messages.insert(0, ChatMessage("system", "", tuple(earlier)))
    return read_messages(messages, "input")


def _read_item(item: Json, numbers: Iterator[int]) -> ChatMessage | None:
    """Return the message of an item; None for one that says nothing to a council."""
    kind = item.get("type") or "message"
    if kind in IGNORED_ITEMS:
        return None
    if kind == "function_call_output":
        output = item.get("output")
        said = output if isinstance(output, list) else [{"type": "input_text", "text": output}]
        return ChatMessage("tool", *_read_parts(said, numbers))
    role = item.get("role")
    if kind != "message" or role not in ("user", "assistant", "system", "developer"):
        shown = f"items of the type {quote_value(str(kind)[:40])}" if kind != "message" else f"role {quote_value(role)}"
        raise UsageError(f"{shown} is not supported in input: send messages", field="input")
    content = item.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    return ChatMessage(str(role), *_read_parts(parts, numbers))


def _read_parts(parts: Any, numbers: Iterator[int]) -> tuple[str, tuple[tuple[str, bytes], ...]]:
    """Return the text of an item, and its files."""
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise UsageError("the content of an item is neither a text nor a list of parts: write one", field="input")
    texts = [_read_text(part.get("text", part.get("refusal"))) for part in parts if part.get("type") in TEXT_TYPES]
    files = [_read_part(part, next(numbers)) for part in parts if part.get("type") not in TEXT_TYPES]
    return "\n\n".join(texts), tuple(files)


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"a text in input is {quote_value(value)}: write one", field="input")
    return value


def _read_part(part: Mapping[str, Any], number: int) -> tuple[str, bytes]:
    """Return the name and the bytes of an image or a file."""
    kind = str(part.get("type"))
    if kind == "input_image":
        return read_data_url(kind, part.get("image_url"), number, None, "input")
    if kind == "input_file":
        url = part.get("file_data") or part.get("file_url")
        return read_data_url(kind, url, number, part.get("filename"), "input")
    shown = quote_value(kind[:40])
    raise UsageError(f"parts of the type {shown} are not supported in input: send text, images or files", field="input")


# Earlier responses


async def _load_response(app_state: AppState, user: User, response: str) -> Record:
    """Return the run of a response. One of another user, and a run that is no response, are unknown."""
    unknown = UnknownResponse(f"no response with the id {quote_value(response[:80])}", field="response")
    name = response.removeprefix(ID_PREFIX)
    if name == response:
        raise unknown
    try:
        run = await app_state.resolve_run(name, user)
    except (UnknownRun, UsageError):
        raise unknown from None
    if run != name:  # a prefix of the id
        raise unknown
    record = await app_state.store.load(run)
    if RunSetup.of(record).request is None:
        raise unknown
    return record


async def _find_previous(app_state: AppState, user: User, response: str | None) -> Record | None:
    """Return the run that a request continues. Raise unless it has an answer."""
    if response is None:
        return None
    field = "previous_response_id"
    try:
        record = await _load_response(app_state, user, response)
    except UnknownResponse as error:
        raise UnknownPreviousResponse(error.template, field=field) from None
    if record.status in OPEN_STATUSES:
        raise RunConflict(f"response {quote_value(response)} has not ended: fetch it until its status changes")
    if not has_answer((await app_state.shared_convener.conversation(record.run))[0]):
        raise UsageError(f"response {quote_value(response)} has no answer to continue from", field=field)
    return record


def _list_attached(record: Record) -> list[tuple[str, str | bytes]]:
    """Return the files that were attached to a run, also those of the runs before it."""
    packet = RunSetup.of(record).packet
    sent = {one.path: base64.b64decode(one.data) for one in packet.attachments}
    texts = {one.path: one.content for one in packet.files if one.path.startswith(ATTACHED)}
    found: dict[str, str | bytes] = {**texts, **sent}
    return [(path.rpartition("/")[2], content) for path, content in found.items() if path != ATTACHED + MESSAGE_FILE]


# Responses


def make_fold(record: Record, *, is_streamed: bool = False) -> ChatFold:
    """Return the fold of the run of a response."""
    setup = RunSetup.of(record)
    request = setup.request or {}
    is_title = request.get("model") == TITLE_MODEL
    return ChatFold(
        has_reasoning=not is_title,
        is_streamed=is_streamed,
        has_tail=bool(request.get("tail")) and not is_title,
        response_format=setup.load_response_format(),
    )


async def _return_response(app_state: AppState, user: User, response: str) -> ApiResponse:
    record = await _load_response(app_state, user, response)
    fold = make_fold(record)
    fold.minutes.outcomes = await app_state.store.load_outcomes(record.run)
    output, error = OutputItems(record.run), None
    for piece in (piece for entry in drop_resumed_ends(record.entries) for piece in fold.read(entry)):
        if piece.kind is PieceKind.ERROR:
            error = {"code": piece.code, "message": piece.text}
        else:
            output.append(piece)
    output.end()
    state = await app_state.shared_convener.run_state(record.run)
    return ApiResponse(build_response(record, fold, output.items, error, is_queued=state.status is RunStatus.QUEUED))


def build_response(
    record: Record,
    fold: ChatFold,
    output: Sequence[Json] = (),
    error: Mapping[str, str] | None = None,
    *,
    is_queued: bool = False,
) -> Json:
    """Return the response of a run as it is now."""
    setup = RunSetup.of(record)
    request, minutes = setup.request or {}, fold.minutes
    has_ended = fold.is_over
    status = _find_status(fold, is_queued=is_queued or not minutes.phases, has_error=error is not None)
    written = setup.response_format
    used = fold.minutes.usage
    return {
        "id": f"{ID_PREFIX}{record.run}",
        "object": "response",
        "created_at": int(record.created),
        "status": status,
        "background": bool(request.get("background")),
        "error": error if status == "failed" else None,
        "incomplete_details": {"reason": minutes.stopped or "incomplete"} if status == "incomplete" else None,
        "instructions": request.get("instructions"),
        "max_output_tokens": request.get("max_output_tokens"),
        "metadata": request.get("metadata") or {},
        "model": request.get("model"),
        "output": list(output),
        "parallel_tool_calls": False,
        "previous_response_id": request.get("previous_response_id"),
        "reasoning": {"effort": request.get("effort"), "summary": None},
        "store": True,
        "temperature": None,
        "text": {"format": written or {"type": "text"}},
        "tool_choice": "none",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": {
            "input_tokens": used.input,
            "input_tokens_details": {"cached_tokens": used.cached, "cache_write_tokens": used.written},
            "output_tokens": used.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used.input + used.output,
        }
        if has_ended
        else None,
        "council": fold.summary if has_ended else None,
    }


def _find_status(fold: ChatFold, *, is_queued: bool, has_error: bool) -> ResponseStatus:
    minutes = fold.minutes
    if not fold.is_over:
        return "queued" if is_queued else "in_progress"
    if minutes.stopped == "cancelled":
        return "cancelled"
    if has_error:
        return "failed"
    return "completed" if minutes.status == "complete" else "incomplete"


class OutputItems:
    """The output of a response, and the events of its stream: a reasoning item, then the message."""

    def __init__(self, run: str) -> None:
        self.items: list[Json] = []
        self._run = run
        self._kind: PieceKind | None = None
        self._text = ""

    def add(self, piece: Piece) -> Iterator[Json]:
        """Add a piece, and yield its events."""
        if piece.kind is not self._kind:
            yield from self.close()
            self._kind, self._text = piece.kind, ""
            yield {
                "type": "response.output_item.added",
                "output_index": len(self.items),
                "item": self._make_item(False),
            }
            yield self._locate(f"{self._part_event}.added", part=self._make_part(""))
        self._text += piece.text
        yield self._locate(f"{self._text_event}.delta", delta=piece.text, **self._logprobs)

    def close(self) -> Iterator[Json]:
        """End the item that is open, and yield its events."""
        if self._kind is None:
            return
        name = "refusal" if self._kind is PieceKind.REFUSAL else "text"
        yield self._locate(f"{self._text_event}.done", **{name: self._text}, **self._logprobs)
        yield self._locate(f"{self._part_event}.done", part=self._make_part(self._text))
        item = self._make_item(True)
        yield {"type": "response.output_item.done", "output_index": len(self.items), "item": item}
        self.items.append(item)
        self._kind = None

    def append(self, piece: Piece) -> None:
        """Add a piece without events."""
        for _ in self.add(piece):
            pass

    def end(self) -> None:
        """End the item that is open without events."""
        for _ in self.close():
            pass

    @property
    def _is_reasoning(self) -> bool:
        return self._kind is PieceKind.REASONING

    @property
    def _id(self) -> str:
        return f"{'rs' if self._is_reasoning else 'msg'}_{self._run}"

    @property
    def _part_event(self) -> str:
        return "response.reasoning_summary_part" if self._is_reasoning else "response.content_part"

    @property
    def _text_event(self) -> str:
        if self._is_reasoning:
            return "response.reasoning_summary_text"
        return "response.refusal" if self._kind is PieceKind.REFUSAL else "response.output_text"

    @property
    def _logprobs(self) -> Json:
        return {"logprobs": []} if self._kind is PieceKind.CONTENT else {}

    def _locate(self, kind: str, **more: Any) -> Json:
        place = "summary_index" if self._is_reasoning else "content_index"
        return {"type": kind, "item_id": self._id, "output_index": len(self.items), place: 0, **more}

    def _make_part(self, text: str) -> Json:
        if self._is_reasoning:
            return {"type": "summary_text", "text": text}
        if self._kind is PieceKind.REFUSAL:
            return {"type": "refusal", "refusal": text}
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def _make_item(self, is_done: bool) -> Json:
        parts = [self._make_part(self._text)] if is_done else []
        if self._is_reasoning:
            return {"id": self._id, "type": "reasoning", "summary": parts}
        status = "completed" if is_done else "in_progress"
        return {"id": self._id, "type": "message", "status": status, "role": "assistant", "content": parts}


class ResponseAnswer(AnswerResponse):
    """The response as one object, when the run has ended."""

    media_type = "application/json"

    def __init__(self, app_state: AppState, record: Record, *, cancels: bool) -> None:
        super().__init__(app_state, record.run, make_fold(record), cancels=cancels)
        self.record = record

    async def send_content(self, send: Send) -> None:
        output = OutputItems(self.run)
        async for pieces in self.iter_pieces():
            for piece in pieces:
                if piece.kind is PieceKind.ERROR:
                    await self.send_problem(send, self.find_problem(piece))
                    return
                output.append(piece)
        output.end()
        await self.send_json(send, 200, build_response(self.record, self.fold, output.items))


class ResponseStream(AnswerResponse):
    """The events of a response as server-sent events."""

    media_type = "text/event-stream"

    def __init__(self, app_state: AppState, record: Record, *, cancels: bool) -> None:
        super().__init__(app_state, record.run, make_fold(record, is_streamed=True), cancels=cancels)
        self.headers["x-accel-buffering"] = "no"
        self.record, self._numbers = record, count()

    async def iter_chunks(self) -> AsyncGenerator[bytes, None]:
        output = OutputItems(self.run)
        for kind in ("response.created", "response.in_progress"):
            response = build_response(self.record, self.fold) | {"status": "in_progress"}
            yield self._format_event({"type": kind, "response": response})
        async for pieces in self.iter_pieces():
            if not pieces:
                yield b": keep-alive\n\n"
            for piece in pieces:
                if piece.kind is PieceKind.ERROR:
                    yield self._format_error(piece, output)
                    return
                for event in output.add(piece):
                    yield self._format_event(event)
        for event in output.close():
            yield self._format_event(event)
        response = build_response(self.record, self.fold, output.items)
        kind = "response.completed" if response["status"] == "completed" else "response.incomplete"
        yield self._format_event({"type": kind, "response": response})

    def _format_error(self, piece: Piece, output: OutputItems) -> bytes:
        """Return the last event of a stream without an answer: the run failed, or goes on without the stream."""
        problem = make_error(self.find_problem(piece))["error"]
        code, message = str(problem["code"]), problem["message"]
        if piece.code not in FINAL_ERRORS:
            return self._format_event({"type": "error", "code": code, "message": message, "param": None})
        error = {"code": code, "message": message}
        response = build_response(self.record, self.fold, output.items, error)
        return self._format_event({"type": "response.failed", "response": response})

    def _format_event(self, event: Json) -> bytes:
        numbered = event | {"sequence_number": next(self._numbers)}
        text = f"event: {event['type']}\ndata: {encode_json(numbered)}\n\n"
        return text.encode("utf-8", "replace")
