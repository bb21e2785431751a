"""Plugin of `llm`: councils as models, in the process of the command. Only `llm` imports this module."""

from __future__ import annotations

import asyncio
import os
import queue
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import llm
from pydantic import Field

from council.doors.chat_models import CHECK_HELP, EFFORT_HELP, TAIL_HELP, ChatModel, list_models, list_rosters
from council.doors.task_stream import iterate_results
from council.errors import CouncilError, message_for
from council.protocols.seats import PanelContext
from council.settings import load_settings

try:
    from llm.parts import AttachmentPart, StreamEvent, TextPart
except ImportError:  # llm before 0.32: it has no councils, and its other models still work
    StreamEvent = None

if TYPE_CHECKING:
    from council.doors.chat import Piece
    from council.events import Entry


IMAGE_TYPES = {"image/png", "image/jpeg", "image/webp", "image/gif"}
ATTACHMENT_TYPES = {*IMAGE_TYPES, "application/pdf", "text/plain", "text/markdown"}
EVENT_TYPES = {"content": "text", "reasoning": "reasoning"}  # by kind of a piece; any other is an error


class CouncilOptions(llm.Options):
    max_cost: float | None = Field(default=None, ge=0, description="Stop before the council could cost more dollars.")
    effort: Literal["low", "medium", "high"] | None = Field(default=None, description=EFFORT_HELP)
    check: bool | None = Field(default=None, description=CHECK_HELP)
    tail: bool | None = Field(default=None, description=TAIL_HELP)


@llm.hookimpl
def register_models(register: Callable[..., None]) -> None:
    for model in list_models(_find_rosters()) if StreamEvent else ():
        register(CouncilModel(model), AsyncCouncilModel(model))


def _find_rosters() -> list[str]:
    """Return the names of the rosters; none if the settings of the folder have an error, which a run reports."""
    try:
        folder = Path.cwd()
        return list_rosters(PanelContext(load_settings(folder, os.environ), os.environ, folder))
    except CouncilError:
        return []


# A run


class RunError(llm.ModelError, click.ClickException):
    """A council that cannot start, or that failed. The command `llm` shows it as one line, also in a chat."""


def _read_file(attachment: Any, number: int) -> tuple[str, bytes]:
    """Return the name and the bytes of an attachment; `llm` itself reads a file or fetches an address."""
    from council.doors.chat import name_file

    name = Path(attachment.path).name if attachment.path else None
    return name_file(attachment.resolve_type() or "", number, name), attachment.content_bytes()


async def iter_pieces(model: ChatModel, prompt: Any, response: Any, *, stream: bool) -> AsyncGenerator[Piece, None]:
    """Run a council and yield its reasoning and its answer.

    What a run needs is imported now: `llm` has other models.
    """
    from council.doors.chat import ChatFold, ChatMessage, plan_chat, read_messages
    from council.runs.service import Convener

    has_tail = prompt.options.tail is not False and not model.is_title
    fold = ChatFold(has_reasoning=not model.is_title, is_streamed=stream, has_tail=has_tail)
    numbers = count(1)
    messages = [
        ChatMessage(
            one.role,
            "\n\n".join(part.text for part in one.parts if isinstance(part, TextPart)),
            tuple(_read_file(part.attachment, next(numbers)) for part in one.parts if isinstance(part, AttachmentPart)),
        )
        for one in prompt.messages
    ]
    question = read_messages(messages)
    left_out = {"tail", "check"} if model.is_title else {"tail"}
    flags = {name: value for name, value in prompt.options.model_dump(exclude=left_out).items() if value is not None}
    with tempfile.TemporaryDirectory(prefix="council-") as folder:

        async def work(on_event: Callable[[Entry], None]) -> None:
            convener = Convener(flags=flags)
            try:
                await convener.run(await plan_chat(convener, model, question, Path(folder)), on_event)
            finally:
                await convener.close()

        async with aclosing(iterate_results(work)) as entries:
            async for entry in entries:
                for piece in fold.read(entry):
                    yield piece
    response.set_usage(input=fold.usage["prompt_tokens"], output=fold.usage["completion_tokens"])
    response.response_json = {"council": fold.summary}


async def iter_events(
    model: ChatModel, prompt: Any, response: Any, *, stream: bool
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the pieces of a run as events of `llm`, which shows reasoning on standard error. Raise its errors."""
    try:
        async with aclosing(iter_pieces(model, prompt, response, stream=stream)) as pieces:
            async for piece in pieces:
                if piece.kind.value not in EVENT_TYPES:
                    raise RunError(piece.text)
                yield StreamEvent(EVENT_TYPES[piece.kind.value], piece.text)
    except CouncilError as error:
        raise RunError(message_for(error, "cli")) from None


class ModelFields:
    """What both kinds of model have."""

    can_stream = True
    attachment_types = ATTACHMENT_TYPES
    Options = CouncilOptions

    def __init__(self, model: ChatModel) -> None:
        self.model_id, self._model = model.id, model


class CouncilModel(ModelFields, llm.Model):
    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[StreamEvent]:
        """Run the council in another thread, because the caller may have an event loop."""
        events: queue.SimpleQueue[StreamEvent | BaseException | None] = queue.SimpleQueue()
        loop = asyncio.new_event_loop()

        async def work() -> None:
            async for event in iter_events(self._model, prompt, response, stream=stream):
                events.put(event)

        task = loop.create_task(work())

        def run() -> None:
            try:
                loop.run_until_complete(task)
                events.put(None)
            except BaseException as error:  # raised again in the thread of the caller
                events.put(error)
            finally:
                loop.close()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            while (event := events.get()) is not None:
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:  # Ctrl-C ends the run, which can be resumed
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(task.cancel)
            thread.join()


class AsyncCouncilModel(ModelFields, llm.AsyncModel):
    """A council as a model, for programs with an event loop."""

    async def execute(
        self, prompt: Any, stream: bool, response: Any, conversation: Any
    ) -> AsyncGenerator[StreamEvent, None]:
        async for event in iter_events(self._model, prompt, response, stream=stream):
            yield event
