"""Server-sent events: one follower per run, and a log that each listener reads at its own pace.

A listener keeps only its position in the log, so a slow one costs no memory. One that does not read is disconnected.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from fastapi.sse import format_sse_event
from starlette.responses import Response

from council import events as ev
from council.doors.web.guard import Receive, Scope, Send
from council.doors.web.responses import encode_json, format_internal_error
from council.engine.patches import PatchFold
from council.errors import CouncilError, message_for
from council.events import Entry
from council.store.interface import RunStatus
from council.types import Json, repair_surrogates

HEARTBEAT_S = 15.0  # seconds without events before a keep-alive comment
SEND_TIMEOUT_S = 30.0  # seconds a listener may not read
MAX_CHUNK_CHARS = 1 << 18  # characters per write
REVOCATION_CHECK_S = 1.0  # seconds between checks that the token of a stream is still valid
RETRY_MS = 1000  # milliseconds before a browser reconnects
EVENTS_WITH_RUN = (ev.Convened.type, ev.Resumed.type)  # events that contain the run id
# These void or complete the streamed text of their key.
EVENTS_ENDING_DELTAS = (ev.Stated, ev.WasAbsent, ev.Faulted, ev.Attempted)


class StreamEnd(TypedDict):
    """The last event of a stream."""

    run: str
    status: str
    error: NotRequired[str]


def _encode_body(value: Json | StreamEnd) -> str:
    return repair_surrogates(encode_json(value))


@dataclass(frozen=True, slots=True)
class Frame:
    """Stored event, encoded once for all listeners."""

    entry: Entry
    body: str
    ended_key: str = ""  # key whose streamed text it ends
    patch: str = "{}"  # of the minutes, for the page; its `live` is the streamed text by key


@dataclass(slots=True)
class PartialStatement:
    """Streamed part of a statement: its pieces and their offsets."""

    seat: str
    at: float = 0.0
    pieces: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def add(self, piece: str, at: float) -> None:
        self.starts.append(self.starts[-1] + len(self.pieces[-1]) if self.pieces else 0)
        self.pieces.append(piece)
        self.at = at


class RunFeed:
    """Log of one run, followed while it has listeners."""

    def __init__(self, run: str, entries: AsyncIterator[Entry]) -> None:
        self.run = run
        self.frames: list[Frame] = []
        self.partial_statements: dict[str, PartialStatement] = {}
        self.status: str = RunStatus.RUNNING
        self.error = ""
        self.is_over = False
        self.listeners: set[asyncio.Event] = set()
        self._fold = PatchFold()
        self.task = asyncio.create_task(self._follow(entries))

    async def _follow(self, entries: AsyncIterator[Entry]) -> None:
        try:
            async for entry in entries:
                self._add_entry(entry)
                self.notify()
        except Exception as error:  # report it, or listeners would wait forever
            self.error = message_for(error, "http") if isinstance(error, CouncilError) else format_internal_error(error)
        finally:
            self.is_over = True
            self.notify()

    def _add_entry(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, ev.Delta):
            self.partial_statements.setdefault(event.key, PartialStatement(event.seat)).add(event.text, entry.at)
            return
        ended_key = event.key if isinstance(event, EVENTS_ENDING_DELTAS) else ""
        self.partial_statements.pop(ended_key, None)
        if isinstance(event, (ev.Closed, ev.Resumed)):
            self.status = event.status if isinstance(event, ev.Closed) else RunStatus.RUNNING
        patch: Json = self._fold.apply(entry) | ({"live": {ended_key: None}} if ended_key else {})
        self.frames.append(Frame(entry, _encode_body(entry.as_json()), ended_key, _encode_body(patch)))

    def notify(self) -> None:
        for listener in self.listeners:
            listener.set()

    def end_event(self) -> StreamEnd:
        """Return the last event. A run that ended without a `closed` event counts as stopped."""
        status = RunStatus.STOPPED if self.status == RunStatus.RUNNING else self.status
        end: StreamEnd = {"run": self.run, "status": status}
        if self.error:
            end["error"] = self.error
        return end


class RunFeeds:
    """Feeds of all runs with listeners."""

    def __init__(self, follow: Callable[[str], AsyncIterator[Entry]]) -> None:
        self._follow = follow
        self._feeds: dict[str, RunFeed] = {}
        self.is_closed = False

    def subscribe(self, run: str, wake: asyncio.Event) -> RunFeed:
        feed = self._feeds.get(run)
        if feed is None or feed.is_over:  # the run may have been resumed since
            feed = self._feeds[run] = RunFeed(run, self._follow(run))
        feed.listeners.add(wake)
        return feed

    def unsubscribe(self, feed: RunFeed, wake: asyncio.Event) -> None:
        feed.listeners.discard(wake)
        if not feed.listeners:
            if self._feeds.get(feed.run) is feed:
                del self._feeds[feed.run]
            feed.task.cancel()

    def close(self) -> None:
        """End every stream; browsers reconnect when a server is back."""
        self.is_closed = True
        for feed in self._feeds.values():
            feed.notify()


@dataclass(slots=True)
class StreamCursor:
    """Position of one listener in one run."""

    feed: RunFeed
    seq: int
    frame_index: int = 0  # frames read
    sent_pieces: dict[str, int] = field(default_factory=dict)  # streamed pieces sent, by key
    is_done: bool = False

    def read_frames(self, max_chars: int) -> Iterator[Frame]:
        while self.frame_index < len(self.feed.frames) and max_chars > 0:
            frame = self.feed.frames[self.frame_index]
            self.frame_index += 1
            self.sent_pieces.pop(frame.ended_key, None)
            if frame.entry.seq > self.seq:
                self.seq = frame.entry.seq
                max_chars -= len(frame.body)
                yield frame

    def read_deltas(self) -> Iterator[tuple[Entry, int]]:
        """Yield the new text of each streamed statement as one piece, and where it begins, once all stored events are
        sent.
        """
        for key, partial in self.feed.partial_statements.items() if self.has_all_frames else ():
            sent = self.sent_pieces.get(key, 0)
            if sent < len(partial.pieces):
                self.sent_pieces[key] = len(partial.pieces)
                delta = ev.Delta(key, partial.seat, "".join(partial.pieces[sent:]))
                yield Entry(0, partial.at, delta), partial.starts[sent]

    def read_entries(self) -> Iterator[Entry]:
        """Yield the new events, then the new text of unfinished statements."""
        for frame in self.read_frames(MAX_CHUNK_CHARS):
            yield frame.entry
        for entry, _ in self.read_deltas():
            yield entry

    @property
    def has_all_frames(self) -> bool:
        return self.frame_index == len(self.feed.frames)

    def read_end(self) -> Iterator[StreamEnd]:
        if self.feed.is_over and self.has_all_frames and not self.is_done:
            self.is_done = True
            yield self.feed.end_event()


@dataclass(slots=True)
class StreamReader:
    """Stream of one listener: one run, or several with the run id in every event; with the patches of the minutes
    for the page.
    """

    cursors: Sequence[StreamCursor]
    several: bool
    has_patches: bool = False

    def read_new(self) -> bytes:
        return b"".join(text for place in self.cursors for text in self._format_new(place))

    @property
    def is_done(self) -> bool:
        return all(place.is_done for place in self.cursors)

    def _format_new(self, cursor: StreamCursor) -> Iterator[bytes]:
        for frame in cursor.read_frames(MAX_CHUNK_CHARS):
            body = f'{frame.body[:-1]},"patch":{frame.patch}}}' if self.has_patches else frame.body
            kind = frame.entry.event.type
            body = body if kind in EVENTS_WITH_RUN else self._add_run(cursor, body)
            places = ",".join(f"{place.feed.run}:{place.seq}" for place in self.cursors)
            yield format_sse_event(id=places if self.several else str(cursor.seq), event=kind, data_str=body)
        for entry, start in cursor.read_deltas():
            body = _encode_body(entry.as_json() | {"from": start})
            yield format_sse_event(event="delta", data_str=self._add_run(cursor, body))
        for last in cursor.read_end():
            yield format_sse_event(event="end", data_str=_encode_body(last))

    def _add_run(self, cursor: StreamCursor, body: str) -> str:
        return f'{{"run":"{cursor.feed.run}",{body[1:]}' if self.several else body


class RunResponse(Response):
    """Response that follows runs. It ends when the client disconnects, or when the token of the request is revoked."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__(None, headers=headers)
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self.send_content(send))
        ends = [asyncio.ensure_future(wait_for_disconnect(receive))]
        if is_revoked := scope["state"].get("is_revoked"):
            ends.append(asyncio.ensure_future(wait_for_revocation(is_revoked)))
        try:
            await asyncio.wait({sending, *ends}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, *ends):
                task.cancel()
            problem, *ended = await asyncio.gather(sending, *ends, return_exceptions=True)
        if ended[0] is None and isinstance(problem, asyncio.CancelledError):
            await self.on_disconnect()
        if ended[1:] == [None]:  # revoked
            await self.send_revoked(send)
        if isinstance(problem, Exception) and not isinstance(problem, TimeoutError):  # of a listener that does not read
            raise problem

    async def send_content(self, send: Send) -> None:
        """Send the head and the body."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self.iter_chunks()) as chunks:
            async for chunk in chunks:
                async with asyncio.timeout(SEND_TIMEOUT_S):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def iter_chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the parts of the body."""
        raise NotImplementedError

    async def on_disconnect(self) -> None:
        """Act on a client that disconnected before the end."""

    async def send_revoked(self, send: Send) -> None:
        """End the response after the token was revoked."""
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class EventStream(RunResponse):
    """Response that streams events.

    `since` is the start position in each run; with `patches` each event has its patch.
    """

    media_type = "text/event-stream"

    def __init__(
        self, feeds: RunFeeds, since: Sequence[tuple[str, int]], *, several: bool = False, patches: bool = False
    ) -> None:
        super().__init__({"x-accel-buffering": "no"})
        self.feeds, self.since, self.several, self.patches = feeds, since, several, patches

    async def iter_chunks(self) -> AsyncGenerator[bytes, None]:
        wake = asyncio.Event()
        places = [StreamCursor(self.feeds.subscribe(run, wake), seq) for run, seq in self.since]
        reader = StreamReader(places, self.several, self.patches)
        try:
            yield format_sse_event(retry=RETRY_MS)
            while not self.feeds.is_closed:
                wake.clear()
                if chunk := reader.read_new():
                    yield chunk
                elif reader.is_done:
                    if self.several:  # without it a browser would reconnect forever
                        yield format_sse_event(event="end", data_str='{"status":"over"}')
                    return
                elif not await wait_for_news(wake):
                    yield format_sse_event(comment="keep-alive")
        finally:
            for place in places:
                self.feeds.unsubscribe(place.feed, wake)


async def wait_for_news(wake: asyncio.Event) -> bool:
    """Whether there was news before the next heartbeat."""
    try:
        async with asyncio.timeout(HEARTBEAT_S):
            return await wake.wait()
    except TimeoutError:
        return False


async def wait_for_revocation(is_revoked: Callable[[], Awaitable[bool]]) -> None:
    """Return when the token of the stream has been revoked."""
    while True:
        await asyncio.sleep(REVOCATION_CHECK_S)
        with suppress(CouncilError):  # a busy store: the next check decides
            if await is_revoked():
                return


async def wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
