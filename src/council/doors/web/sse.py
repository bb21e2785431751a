"""Server-sent events: one follower per run, and a log that each listener reads at its own pace.

A listener keeps only its position in the log, so a slow one costs no memory. One that does not read is disconnected.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from starlette.responses import Response

from council import events as ev
from council.doors.web.answers import encoded, fault_line
from council.doors.web.guard import Receive, Scope, Send
from council.errors import CouncilError
from council.events import Entry
from council.types import Json

BEAT = 15.0  # seconds without events before a keep-alive comment
PATIENCE = 30.0  # seconds a listener may not read
ROOM = 1 << 18  # characters per write
RETRY = 1000  # milliseconds before a browser reconnects
NAMED = (ev.Convened.type, ev.Resumed.type)  # events that contain the run id
ENDS_STREAM = (
    ev.Stated,
    ev.WasAbsent,
    ev.Faulted,
    ev.Attempted,
)  # these void or complete the streamed text of their key


@dataclass(frozen=True, slots=True)
class Frame:
    """Stored event, encoded once for all listeners."""

    seq: int
    kind: str
    body: str
    hushes: str = ""  # key whose streamed text it ends


@dataclass(slots=True)
class Streaming:
    """Streamed part of a statement: its pieces and their offsets."""

    seat: str
    at: float = 0.0
    pieces: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def add(self, piece: str, at: float) -> None:
        self.starts.append(self.starts[-1] + len(self.pieces[-1]) if self.pieces else 0)
        self.pieces.append(piece)
        self.at = at


class Feed:
    """Log of one run, followed while it has listeners."""

    def __init__(self, run: str, entries: AsyncIterator[Entry]) -> None:
        self.run = run
        self.frames: list[Frame] = []
        self.streaming: dict[str, Streaming] = {}
        self.status = "running"
        self.error = ""
        self.over = False
        self.listeners: set[asyncio.Event] = set()
        self._task = asyncio.create_task(self._follow(entries))

    async def _follow(self, entries: AsyncIterator[Entry]) -> None:
        try:
            async for entry in entries:
                self._take(entry)
                self._wake()
        except Exception as error:  # report it, or listeners would wait forever
            self.error = str(error) if isinstance(error, CouncilError) else fault_line(error)
        finally:
            self.over = True
            self._wake()

    def _take(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, ev.Delta):
            self.streaming.setdefault(event.key, Streaming(event.seat)).add(event.text, entry.at)
            return
        hushes = event.key if isinstance(event, ENDS_STREAM) else ""
        self.streaming.pop(hushes, None)
        if isinstance(event, (ev.Closed, ev.Resumed)):
            self.status = event.status if isinstance(event, ev.Closed) else "running"
        self.frames.append(Frame(entry.seq, event.type, encoded(entry.as_json()), hushes))

    def _wake(self) -> None:
        for listener in self.listeners:
            listener.set()

    def end(self) -> Json:
        """Return the last event. A run that ended without a `closed` event counts as stopped."""
        status = "stopped" if self.status == "running" else self.status
        return {"run": self.run, "status": status, **({"error": self.error} if self.error else {})}

    def stop(self) -> None:
        self._task.cancel()


class Feeds:
    """Feeds of all runs with listeners."""

    def __init__(self, follow: Callable[[str], AsyncIterator[Entry]]) -> None:
        self._follow = follow
        self._feeds: dict[str, Feed] = {}
        self.closed = False

    def join(self, run: str, wake: asyncio.Event) -> Feed:
        feed = self._feeds.get(run)
        if feed is None or feed.over:  # the run may have been resumed since
            feed = self._feeds[run] = Feed(run, self._follow(run))
        feed.listeners.add(wake)
        return feed

    def leave(self, feed: Feed, wake: asyncio.Event) -> None:
        feed.listeners.discard(wake)
        if not feed.listeners:
            if self._feeds.get(feed.run) is feed:
                del self._feeds[feed.run]
            feed.stop()

    def close(self) -> None:
        """End every stream; browsers reconnect when a server is back."""
        self.closed = True
        for feed in self._feeds.values():
            for listener in feed.listeners:
                listener.set()


@dataclass(slots=True)
class Place:
    """Position of one listener in one run."""

    feed: Feed
    seq: int
    at: int = 0  # frames read
    heard: dict[str, int] = field(default_factory=dict)  # streamed pieces sent, by key
    done: bool = False

    def frames(self, room: int) -> Iterator[Frame]:
        while self.at < len(self.feed.frames) and room > 0:
            frame = self.feed.frames[self.at]
            self.at += 1
            self.heard.pop(frame.hushes, None)
            if frame.seq > self.seq:
                self.seq = frame.seq
                room -= len(frame.body)
                yield frame

    def deltas(self) -> Iterator[str]:
        """Yield the new text of each streamed statement as one piece, once all stored events are sent."""
        for key, partial in self.feed.streaming.items() if self.has_all else ():
            sent = self.heard.get(key, 0)
            if sent < len(partial.pieces):
                self.heard[key] = len(partial.pieces)
                delta = Entry(0, partial.at, ev.Delta(key, partial.seat, "".join(partial.pieces[sent:])))
                yield encoded(delta.as_json() | {"from": partial.starts[sent]})

    @property
    def has_all(self) -> bool:
        return self.at == len(self.feed.frames)

    def end(self) -> Iterator[Json]:
        if self.feed.over and self.has_all and not self.done:
            self.done = True
            yield self.feed.end()


@dataclass(slots=True)
class Reading:
    """Stream of one listener: one run, or several with the run id in every event."""

    places: Sequence[Place]
    several: bool

    def news(self) -> str:
        return "".join(text for place in self.places for text in self._of(place))

    @property
    def done(self) -> bool:
        return all(place.done for place in self.places)

    def _of(self, place: Place) -> Iterator[str]:
        for frame in place.frames(ROOM):
            body = frame.body if frame.kind in NAMED else self._named(place, frame.body)
            yield f"id: {self._id(place)}\nevent: {frame.kind}\ndata: {body}\n\n"
        for body in place.deltas():
            yield f"event: delta\ndata: {self._named(place, body)}\n\n"
        for last in place.end():
            yield f"event: end\ndata: {encoded(last)}\n\n"

    def _id(self, place: Place) -> str:
        if not self.several:
            return str(place.seq)
        return ",".join(f"{place.feed.run}:{place.seq}" for place in self.places)

    def _named(self, place: Place, body: str) -> str:
        return f'{{"run":"{place.feed.run}",{body[1:]}' if self.several else body


class EventStream(Response):
    """Response that streams events. `since` is the start position in each run."""

    media_type = "text/event-stream"

    def __init__(self, feeds: Feeds, since: Sequence[tuple[str, int]], *, several: bool = False) -> None:
        super().__init__(None, headers={"x-accel-buffering": "no"})
        del self.headers["content-length"]
        self.feeds, self.since, self.several = feeds, since, several

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        sending = asyncio.ensure_future(self._tell(send))
        disconnect = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({sending, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, disconnect):
                task.cancel()
            problem, _ = await asyncio.gather(sending, disconnect, return_exceptions=True)
        if isinstance(problem, Exception) and not isinstance(
            problem, TimeoutError
        ):  # a listener that does not read is not an error
            raise problem

    async def _tell(self, send: Send) -> None:
        wake = asyncio.Event()
        places = [Place(self.feeds.join(run, wake), seq) for run, seq in self.since]
        try:
            async for text in self._texts(Reading(places, self.several), wake):
                async with asyncio.timeout(PATIENCE):
                    await send(
                        {"type": "http.response.body", "body": text.encode("utf-8", "replace"), "more_body": True}
                    )
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            for place in places:
                self.feeds.leave(place.feed, wake)

    async def _texts(self, reading: Reading, wake: asyncio.Event) -> AsyncIterator[str]:
        yield f"retry: {RETRY}\n\n"
        while not self.feeds.closed:
            wake.clear()
            if text := reading.news():
                yield text
            elif reading.done:
                if self.several:  # without it a browser would reconnect forever
                    yield 'event: end\ndata: {"status":"over"}\n\n'
                return
            elif not await _woken(wake):
                yield ": keep-alive\n\n"


async def _woken(wake: asyncio.Event) -> bool:
    """Whether there was news before the next heartbeat."""
    try:
        async with asyncio.timeout(BEAT):
            return await wake.wait()
    except TimeoutError:
        return False


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
