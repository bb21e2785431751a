"""Chat completions under /v1: a council as a model, for every client of the OpenAI API."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from fastapi import APIRouter, Header
from starlette.requests import Request

from council import events as ev
from council.doors import limits
from council.doors.chat import (
    BROKE_OFF,
    FAILED,
    NOT_FORMATTED,
    STOPPED_MIDWAY,
    ChatFold,
    ChatMessage,
    ChatQuestion,
    ChatSummary,
    ChatUsage,
    Piece,
    PieceKind,
    name_file,
    plan_chat,
    read_messages,
    without_agents,
)
from council.doors.chat_models import ChatModel, list_rosters
from council.doors.chat_models import list_models as list_chat_models
from council.doors.limits import BudgetCaps
from council.doors.web import access, models
from council.doors.web.access import AppStateDep, KeyHeader, UserDep
from council.doors.web.app_state import AppState
from council.doors.web.guard import Refusal, Send
from council.doors.web.responses import ApiResponse, UnknownModel, chat_error_json, encode_json
from council.doors.web.schemas import ChatMessageBody, ChatPart, ChatRequest, chat_responses
from council.doors.web.sse import RunResponse, StreamCursor, wait_for_news
from council.engine.response_format import ResponseFormat
from council.errors import CouncilError, UsageError
from council.events import Entry
from council.planning.plan import Plan
from council.protocols.seats import PanelContext
from council.runs.service import Convener
from council.runs.tokens import User
from council.settings import SettingFlags
from council.settings.schema import quote_value
from council.store.interface import RequestKey
from council.types import Json

chat_router = APIRouter(prefix="/v1", tags=["chat"])
OWNED_BY = "council"
TEXT_TYPES = ("text", "input_text", "output_text", "refusal")  # parts of a message
EFFORTS = ("low", "medium", "high")
# How the answer is sent, not what is asked.
TRANSPORT_FIELDS = ("stream", "stream_options", "cancel_on_disconnect", "tail", "background")
OWN_KEY = "\x01"  # begins the key of a request without one; a client cannot send it
STOPPED, STOPPING = "run_stopped", "server_stopping"
# Clients repeat a request after a status of 500 or more, and another run would have the same schema.
ERROR_STATUS = {FAILED: 502, BROKE_OFF: 502, STOPPED_MIDWAY: 502, STOPPED: 502, STOPPING: 503, NOT_FORMATTED: 422}
MAX_RESTARTS = 3  # of the process of a run, while a client waits for its answer
EXAMPLE_MODEL: models.ChatModelInfo = {
    "id": "council/adversarial",
    "object": "model",
    "created": 0,
    "owned_by": OWNED_BY,
}
RetryCount = Annotated[
    str | None, Header(alias="x-stainless-retry-count", description="Of the openai SDK: over 0 joins the earlier run.")
]


# Models


@chat_router.get(
    "/models",
    response_model=models.ChatModelList,
    responses=chat_responses({"object": "list", "data": [EXAMPLE_MODEL]}),
)
async def list_models(app_state: AppStateDep) -> ApiResponse:
    """List the models: `council`, one for each protocol and roster, and `council/title`."""
    return ApiResponse({"object": "list", "data": [_model_json(model) for model in await _load_models(app_state)]})


@chat_router.get(
    "/models/{model:path}", response_model=models.ChatModelInfo, responses=chat_responses(EXAMPLE_MODEL, 404)
)
async def get_model(model: str, app_state: AppStateDep) -> ApiResponse:
    """Return one model."""
    return ApiResponse(_model_json(await find_model(app_state, model)))


async def _load_models(app_state: AppState) -> list[ChatModel]:
    async with app_state.open_convener() as convener:
        where = PanelContext(convener.settings, convener.env, convener.folder)
        return list_chat_models(list_rosters(where))


async def find_model(app_state: AppState, name: str) -> ChatModel:
    found = {model.id: model for model in await _load_models(app_state)}
    if name not in found:
        raise UnknownModel(f"no model {quote_value(name[:200])}: GET /v1/models lists them", field="model")
    return found[name]


def _model_json(model: ChatModel) -> models.ChatModelInfo:
    return {**EXAMPLE_MODEL, "id": model.id}


# Requests


@chat_router.post(
    "/chat/completions",
    response_model=models.ChatCompletion,
    responses=chat_responses(
        models.EXAMPLE_COMPLETION, 404, 422, 429, 502, has_body=True, stream=models.EXAMPLE_CHAT_STREAM
    ),
)
async def create_chat_completion(
    body: ChatRequest,
    request: Request,
    app_state: AppStateDep,
    user: UserDep,
    idempotency_key: KeyHeader = None,
    retry_count: RetryCount = None,
) -> RunResponse:
    """Ask a council. The run continues if the client disconnects; the same Idempotency-Key returns it again."""
    _check_request(body)
    response_format = _read_response_format(body)
    model = await find_model(app_state, body.model)
    question = read_messages(_read_messages(body.messages))
    asked = CouncilRequest(model, question, body.reasoning_effort, bool(body.check), response_format)
    joins = is_retry(retry_count) and not body.cancel_on_disconnect
    run = await start_run(app_state, user, asked, await digest_request("chat", request), idempotency_key, joins=joins)
    answer = (ChatAnswer if not body.stream else ChatStream)(app_state, run, body, model, response_format)
    answer.fold.minutes.outcomes = await app_state.store.load_outcomes(run)  # a repeated request may have some
    return answer


@dataclass(frozen=True, slots=True)
class CouncilRequest:
    """What a request asks of which council."""

    model: ChatModel
    question: ChatQuestion
    effort: str | None = None
    check: bool = False
    response_format: ResponseFormat | None = None
    after: str | None = None  # the run whose conversation it continues
    stored: Json | None = None  # what /v1/responses returns of the request


async def start_run(
    app_state: AppState, user: User, asked: CouncilRequest, digest: str, idempotency_key: str | None, *, joins: bool
) -> str:
    """Return the run of a request: a new one, or that of an equal request with its key or that it repeats."""
    key = RequestKey(user.name, idempotency_key or OWN_KEY + secrets.token_hex(16), digest)

    async def start() -> str:
        async with _plan(app_state, user, asked) as (convener, plan):
            return await convener.enqueue(plan, key)

    if idempotency_key:
        run, _ = await app_state.run_once(key, start)
    else:
        run, _ = await app_state.join_or_start(key, joins, start)
    await app_state.ensure_worker(run)
    return run


def is_retry(retry_count: str | None) -> bool:
    """Return whether a request repeats an earlier one, by the header of the openai SDK."""
    return (retry_count or "0").isdecimal() and int(retry_count or "0") > 0


def _check_request(body: ChatRequest) -> None:
    """Raise UsageError for what a council cannot do."""
    if body.n not in (None, 1):
        raise UsageError(f'n "{body.n}" is not supported: a council gives one answer, omit n', field="n")
    refuse_required_tools(tool_choice=body.tool_choice, function_call=body.function_call)
    refuse_probabilities(logprobs=body.logprobs, top_logprobs=body.top_logprobs)
    if body.audio or "audio" in (body.modalities or ()):
        name = "audio" if body.audio else "modalities"
        raise UsageError(f"{name} asks for sound, and a council answers in text: omit it", field=name)


def refuse_required_tools(**choices: Any) -> None:
    """Raise UsageError for a choice that leaves none but a call of a tool."""
    for name, choice in choices.items():
        mode = choice.get("mode") if isinstance(choice, dict) else choice  # of allowed_tools
        if mode not in (None, "none", "auto") or (isinstance(choice, dict) and mode is None):
            raise UsageError(f"{name} requires a tool, and a council calls none: omit it", field=name)


def refuse_probabilities(**wanted: Any) -> None:
    for name, value in wanted.items():
        if value:
            raise UsageError(f"{name} is not supported: a council has no probabilities of tokens, omit it", field=name)


def _read_response_format(body: ChatRequest) -> ResponseFormat | None:
    """Return the JSON that a request asks for; None for text."""
    given, field = body.response_format or {}, "response_format"
    if given.get("type") == "json_schema":
        inner = given.get("json_schema")
        if not isinstance(inner, dict):
            raise UsageError("response_format.json_schema is missing: send its name and its schema", field=field)
        given, field = {**inner, "type": "json_schema"}, "response_format.json_schema"
    return ResponseFormat.read(given, field)


def _read_messages(bodies: Sequence[ChatMessageBody]) -> list[ChatMessage]:
    """Return the messages. Text parts are joined; images and files are numbered through the conversation."""
    messages, numbers = list[ChatMessage](), count(1)
    for body in bodies:
        parts = body.content if isinstance(body.content, list) else [ChatPart(type="text", text=body.content)]
        texts = [part.text or "" for part in parts if part.type in TEXT_TYPES]
        files = [_read_file(part, next(numbers)) for part in parts if part.type not in TEXT_TYPES]
        messages.append(ChatMessage(body.role, "\n\n".join(texts), tuple(files)))
    return messages


def _read_file(part: ChatPart, number: int) -> tuple[str, bytes]:
    """Return the name and the bytes of an image or a file. Raise UsageError unless it is a data URL."""
    fields: Json = part.model_dump()
    if part.type == "image_url":
        name, url = None, fields.get("image_url")
        url = url.get("url") if isinstance(url, dict) else url
    elif part.type == "file" and isinstance(fields.get("file"), dict):
        name, url = fields["file"].get("filename"), fields["file"].get("file_data")
    else:
        line = f"message parts of the type {quote_value(part.type[:40])} are not supported: send text or images"
        raise UsageError(line, field="messages")
    return read_data_url(part.type, url, number, name, "messages")


def read_data_url(kind: str, url: Any, number: int, name: Any, field: str) -> tuple[str, bytes]:
    """Return the name and the bytes of an image or a file. Raise UsageError unless it is a data URL."""
    if not isinstance(url, str) or not url.startswith("data:"):
        shown = f" {quote_value(url[:80])}" if isinstance(url, str) else " without its content"
        raise UsageError(f"{kind}{shown} is not fetched: send the content as a data URL", field=field)
    shown = name_file(url[5:].partition(",")[0], number, str(name)[:255] if name else None)
    content = limits.read_inline(shown, None, url)
    assert isinstance(content, bytes)
    return shown, content


async def digest_request(kind: str, request: Request) -> str:
    """Return the digest of what is asked. Equal JSON has the same digest."""
    fields = {name: value for name, value in (await request.json()).items() if name not in TRANSPORT_FIELDS}
    return hashlib.sha256(json.dumps([kind, fields], sort_keys=True).encode()).hexdigest()


@asynccontextmanager
async def _plan(app_state: AppState, user: User, asked: CouncilRequest) -> AsyncIterator[tuple[Convener, Plan]]:
    """Yield the convener and the plan. Nothing of this machine is read, and no command-line agent is started."""
    settings = app_state.owner.settings(app_state.owner.folder)
    settings.require_trust()
    flags: SettingFlags = {"effort": asked.effort} if asked.effort in EFFORTS else {}
    if asked.check and not asked.model.is_title:
        flags["check"] = True
    cap = app_state.caps.effective_cap(BudgetCaps.from_settings(settings), None)
    async with app_state.open_convener(None, user, max_cost=cap, **flags) as convener:
        plan = without_agents(
            await plan_chat(
                convener,
                asked.model,
                asked.question,
                app_state.empty_folder,
                response_format=asked.response_format,
                after=asked.after,
            )
        )
        plan = replace(plan, request=asked.stored)
        limits.check_members(plan.roster.member_names, settings)
        if not user.sees_all:
            access.check_plan(plan)
        yield convener, plan


# Responses


class CompletionMessage(TypedDict, total=False):
    """The answer, or the next part of it."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    reasoning_content: str


class CompletionChoice(TypedDict):
    """The only choice of an answer, with `message`, or of a chunk, with `delta`."""

    index: int
    message: NotRequired[CompletionMessage]
    delta: NotRequired[CompletionMessage]
    logprobs: None
    finish_reason: str | None


CompletionKind = Literal["chat.completion", "chat.completion.chunk"]


class Completion(TypedDict):
    """An answer, or a chunk of it. The last chunk has the usage and the council."""

    id: str
    object: CompletionKind
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: NotRequired[ChatUsage]
    council: NotRequired[ChatSummary]


class AnswerResponse(RunResponse):
    """Response with the answer of a run."""

    def __init__(self, app_state: AppState, run: str, fold: ChatFold, *, cancels: bool = False) -> None:
        super().__init__({"x-council-run": run})
        self.app_state, self.run, self.fold, self.cancels = app_state, run, fold, cancels

    async def on_disconnect(self) -> None:
        if self.cancels:
            with suppress(CouncilError):  # it has ended since
                async with self.app_state.open_convener() as convener:
                    await convener.cancel(self.run)

    async def iter_pieces(self) -> AsyncIterator[list[Piece]]:
        """Yield the pieces of the run as they come; an empty list after some seconds without one."""
        wake, feeds, restarts = asyncio.Event(), self.app_state.feeds, 0
        cursor = StreamCursor(feeds.subscribe(self.run, wake), 0)
        try:
            while not feeds.is_closed:
                wake.clear()
                entries = drop_resumed_ends(list(cursor.read_entries()))
                if pieces := [piece for entry in entries for piece in self.fold.read(entry)]:
                    yield pieces
                if self.fold.is_over:
                    return
                if cursor.has_all_frames and cursor.feed.is_over:
                    is_left = restarts < MAX_RESTARTS and not cursor.feed.error
                    if is_left and await self.app_state.restart_worker(self.run):
                        feeds.unsubscribe(cursor.feed, wake)
                        cursor, restarts = StreamCursor(feeds.subscribe(self.run, wake), cursor.seq), restarts + 1
                        continue
                    why = cursor.feed.error or "the process that executed it has ended"
                    yield [Piece(PieceKind.ERROR, f"run {self.run} stopped before its end: {why}", STOPPED)]
                    return
                if cursor.has_all_frames and not pieces and not await wait_for_news(wake):
                    yield []
            yield [Piece(PieceKind.ERROR, "the server stops", STOPPING)]
        finally:
            feeds.unsubscribe(cursor.feed, wake)

    def find_problem(self, piece: Piece) -> Refusal:
        status = 429 if self.fold.minutes.stopped == "budget" else ERROR_STATUS[piece.code]
        line = f"{piece.text.rstrip('.')}; run {self.run}"
        if piece.code in (BROKE_OFF, STOPPING):
            line += " continues: repeat the request with its Idempotency-Key, or see the run on the page"
        return Refusal(status, piece.code, line)

    async def send_revoked(self, send: Send) -> None:
        if self.media_type == "application/json":
            await self.send_problem(send, Refusal(401, "unauthorized", "the token was revoked"))
        else:
            await super().send_revoked(send)

    async def send_problem(self, send: Send, problem: Refusal) -> None:
        # A repeated request would get the same answer, unless another server continues.
        header = (b"x-should-retry", b"true" if problem.code == STOPPING else b"false")
        await self.send_json(send, problem.status, make_error(problem), header)

    async def send_json(
        self, send: Send, status: int, content: Mapping[str, Any], *headers: tuple[bytes, bytes]
    ) -> None:
        body = encode_json(content).encode("utf-8", "replace")
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*self.raw_headers, length, *headers]})
        await send({"type": "http.response.body", "body": body})


class ChatResponse(AnswerResponse):
    """Response with the answer of a run in the format of chat completions."""

    def __init__(
        self,
        app_state: AppState,
        run: str,
        body: ChatRequest,
        model: ChatModel,
        response_format: ResponseFormat | None,
    ) -> None:
        fold = ChatFold(
            has_reasoning=not model.is_title,
            is_streamed=bool(body.stream),
            has_tail=body.tail is not False and not model.is_title,
            response_format=response_format,
        )
        super().__init__(app_state, run, fold, cancels=bool(body.cancel_on_disconnect))
        self.request, self.created = body, int(time.time())

    def make_body(
        self, kind: CompletionKind, choices: list[CompletionChoice], *, has_totals: bool = False
    ) -> Completion:
        body: Completion = {
            "id": f"chatcmpl-{self.run}",
            "object": kind,
            "created": self.created,
            "model": self.request.model,
            "choices": choices,
        }
        if has_totals:
            body["usage"], body["council"] = self.fold.usage, self.fold.summary
        return body


class ChatStream(ChatResponse):
    """Chunks of the answer as server-sent events."""

    media_type = "text/event-stream"

    def __init__(
        self,
        app_state: AppState,
        run: str,
        body: ChatRequest,
        model: ChatModel,
        response_format: ResponseFormat | None,
    ) -> None:
        super().__init__(app_state, run, body, model, response_format)
        self.headers["x-accel-buffering"] = "no"

    async def iter_chunks(self) -> AsyncGenerator[bytes, None]:
        yield self._format_chunk([_make_delta({"role": "assistant", "content": ""})])
        async for pieces in self.iter_pieces():
            if not pieces:
                yield b": keep-alive\n\n"
            for piece in pieces:
                if piece.kind is PieceKind.ERROR:
                    yield _format_data(make_error(self.find_problem(piece)))
                    return
                yield self._format_chunk([_make_delta(_make_part(piece))])
        last = _make_delta({}, self.fold.finish_reason)
        if self.request.stream_options and self.request.stream_options.include_usage:
            yield self._format_chunk([last])  # the usage has its own chunk then, without choices
            yield self._format_chunk([], has_totals=True)
        else:
            yield self._format_chunk([last], has_totals=True)
        yield b"data: [DONE]\n\n"

    def _format_chunk(self, choices: list[CompletionChoice], *, has_totals: bool = False) -> bytes:
        return _format_data(self.make_body("chat.completion.chunk", choices, has_totals=has_totals))


def _make_part(piece: Piece) -> CompletionMessage:
    match piece.kind:
        case PieceKind.CONTENT:
            return {"content": piece.text}
        case PieceKind.REFUSAL:
            return {"refusal": piece.text}
    return {"reasoning_content": piece.text}


def _make_delta(delta: CompletionMessage, reason: str | None = None) -> CompletionChoice:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


class ChatAnswer(ChatResponse):
    """The whole answer as one object."""

    media_type = "application/json"

    async def send_content(self, send: Send) -> None:
        texts: dict[PieceKind, list[str]] = {kind: [] for kind in PieceKind}
        async for pieces in self.iter_pieces():
            for piece in pieces:
                if piece.kind is PieceKind.ERROR:
                    await self.send_problem(send, self.find_problem(piece))
                    return
                texts[piece.kind].append(piece.text)
        parts = (PieceKind.REASONING, PieceKind.CONTENT, PieceKind.REFUSAL)
        reasoning, content, refusal = ("".join(texts[kind]) for kind in parts)
        message: CompletionMessage = {"role": "assistant", "content": content, "refusal": None}
        if refusal:
            message |= {"content": None, "refusal": refusal}
        if reasoning:
            message["reasoning_content"] = reasoning.strip()
        reason = self.fold.finish_reason
        choice: CompletionChoice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
        await self.send_json(send, 200, self.make_body("chat.completion", [choice], has_totals=True))


def make_error(problem: Refusal) -> models.ChatErrorBody:
    return chat_error_json(problem.status, problem.code, problem.line)


def _format_data(value: Completion | models.ChatErrorBody) -> bytes:
    return f"data: {encode_json(value)}\n\n".encode("utf-8", "replace")


def drop_resumed_ends(entries: list[Entry]) -> list[Entry]:
    """Return the events without the ends after which the run was resumed."""
    last = max((n for n, entry in enumerate(entries) if isinstance(entry.event, ev.Resumed)), default=-1)
    return [entry for n, entry in enumerate(entries) if n > last or not isinstance(entry.event, ev.Closed)]
