"""Event streams: stored and new events, once and in order, for any number of listeners."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import pytest

from council import events as ev
from council.doors.web import sse
from council.doors.web.sse import RunFeed, RunFeeds, StreamCursor, StreamReader
from council.events import Entry
from council.members.base import OnDelta
from council.runs.service import Convener
from council.types import Answer
from tests.acceptance.helpers import wait_until
from tests.doors.web.server import QUESTION, Json, WebServer, events
from tests.run_session import FunctionMember

CLIENTS = 50


def stored_events(received: list[Json]) -> list[Json]:
    return [event["data"] for event in received if "id" in event]


# Stored events


@pytest.fixture(scope="module")
def run(shared_site: WebServer) -> str:
    return shared_site.run_council()


@pytest.mark.behaviour("50-web-events")
def test_a_finished_run_is_streamed_from_its_first_event_to_its_end(shared_site: WebServer, run: str) -> None:
    received = shared_site.read_stream(f"/api/runs/{run}/events")
    assert stored_events(received) == shared_site.ledger(run)
    assert all(
        event["id"] == str(event["data"]["seq"]) and event["event"] == event["data"]["type"] for event in received[:-1]
    )
    assert received[-1] == {"event": "end", "data": {"run": run, "status": "complete"}}


@pytest.mark.behaviour("50-web-events")
def test_a_listener_continues_from_its_position(shared_site: WebServer, run: str) -> None:
    ledger = shared_site.ledger(run)
    assert stored_events(shared_site.read_stream(f"/api/runs/{run}/events?since=5")) == ledger[5:]
    assert (
        stored_events(shared_site.read_stream(f"/api/runs/{run[:4]}/events?since=2", {"Last-Event-ID": "7"}))
        == ledger[7:]
    )
    assert stored_events(shared_site.read_stream(f"/api/runs/{run}/events?since=99999")) == []


@pytest.mark.behaviour("50-web-events")
def test_one_stream_can_carry_several_runs(shared_site: WebServer, run: str) -> None:
    other = shared_site.run_council("Which of the two?")
    received = shared_site.read_stream(f"/api/stream?run={run}&run={other}&since={run}:4")
    for name, since in ((run, 4), (other, 0)):
        own = [event for event in stored_events(received) if event["run"] == name]
        assert [event | {"run": None} for event in own] == [
            event | {"run": None} for event in shared_site.ledger(name)[since:]
        ]
    ends = [event["data"] for event in received if event["event"] == "end"]
    assert ends == [{"run": run, "status": "complete"}, {"run": other, "status": "complete"}, {"status": "over"}]
    middle = next(event["id"] for event in received if "id" in event and event["data"].get("seq") == 9)
    again = shared_site.read_stream(f"/api/stream?run={run}&run={other}&since={run}:4", {"Last-Event-ID": middle})
    positions = dict(part.split(":") for part in middle.split(","))
    for name in (run, other):
        seqs = [event["seq"] for event in stored_events(again) if event["run"] == name]
        assert seqs == [event["seq"] for event in shared_site.ledger(name)[int(positions[name]) :]]


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/runs/nothing/events", 404), ("/api/stream?run=nothing", 404), ("/api/stream", 422), ("/api/runs/{run}/events?since=-1", 422),
        ("/api/runs/{run}/events?since=x", 422), ("/api/stream?run={run}&since={run}:x", 400), ("/api/stream?run={run}&since=x", 400),
        ("/api/runs/%00/events", 404), ("/api/runs/%F0%9F%92%A9/events", 404), ("/api/runs/{run}/events?since=99999999999999999999", 422),
    ],
)  # fmt: skip
def test_an_invalid_position_is_refused(shared_site: WebServer, run: str, path: str, status: int) -> None:
    assert shared_site.refused(path.format(run=run), status=status)


def test_a_last_event_id_that_is_not_a_number_is_refused(shared_site: WebServer, run: str) -> None:
    response = shared_site.ask("GET", f"/api/runs/{run}/events", headers={"Last-Event-ID": "x"})
    assert (response.status, response.headers["content-type"]) == (400, "application/json")


# New events


class StreamingMember(FunctionMember):
    """Member that streams a piece when the test allows it."""

    def __init__(self) -> None:
        super().__init__("scripted:", lambda key: "")
        self.pieces: dict[str, list[str]] = {}
        self.go = threading.Event()

    async def send(self, body: bytes, hear: OnDelta) -> Answer:
        key = json.loads(body)["key"]
        if key != "draft/alpha":
            return Answer(f"Said in {key}.")
        hear("One ")
        hear("two ")
        await asyncio.to_thread(self.go.wait, 20)
        hear("three.")
        return Answer("One two three.")


@pytest.fixture
def streaming_run(site: WebServer) -> Iterator[tuple[StreamingMember, Callable[[], str]]]:
    """Run a council in another thread; yield the member and a function that waits until the run is stored, and
    returns its id.
    """
    member, named = StreamingMember(), threading.Event()
    names: list[str] = []

    def listen(entry: Entry) -> None:
        if isinstance(entry.event, ev.Convened):
            names.append(entry.event.run)
            named.set()

    async def work() -> None:
        convener = Convener(site.folder, site.env, members=[member])
        await convener.run(await convener.plan([QUESTION], protocol="collaborative"), listen)
        await convener.close()

    def name() -> str:
        assert named.wait(60)
        wait_until(lambda: site.ask("GET", f"/api/runs/{names[0]}").status == 200, "the run is stored")
        return names[0]

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(asyncio.run, work())
        yield member, name
        member.go.set()
        held.result(30)


@pytest.mark.behaviour("50-web-deltas")
def test_text_is_streamed_and_sent_again_after_a_reconnect(
    site: WebServer, streaming_run: tuple[StreamingMember, Callable[[], str]]
) -> None:
    member, name = streaming_run
    path = f"/api/runs/{name()}/events"
    texts: list[str] = []
    with site.open_request("GET", path) as response:
        texts.append(next(event["data"]["text"] for event in events(response) if event["event"] == "delta"))
    assert texts[0].startswith("One ")
    with site.open_request("GET", path, headers={"Last-Event-ID": "3"}) as response:
        coming = events(response)
        delta = next(event for event in coming if event["event"] == "delta")
        assert "id" not in delta
        assert delta["data"].items() >= {"type": "delta", "key": "draft/alpha", "seat": "alpha", "from": 0}.items()
        member.go.set()
        text = delta["data"]["text"]
        for event in coming:
            if event["event"] == "delta" and event["data"]["key"] == "draft/alpha":
                text = text[: event["data"]["from"]] + event["data"]["text"]
            if event["event"] == "statement" and event["data"]["key"] == "draft/alpha":
                assert event["data"]["said"].startswith(text)
                break
        assert [event["event"] for event in coming][-1] == "end"


@pytest.mark.behaviour("50-web-one-follower")
def test_a_run_is_followed_once_for_all_listeners(
    site: WebServer, streaming_run: tuple[StreamingMember, Callable[[], str]]
) -> None:
    member, name = streaming_run
    run = name()
    with ThreadPoolExecutor(20) as pool:
        listening = [pool.submit(site.read_stream, f"/api/runs/{run}/events") for _ in range(20)]
        feeds = site.app_state.feeds._feeds
        wait_until(lambda: sum(len(feed.listeners) for feed in feeds.values()) == 20, "all listeners are connected")
        assert len(feeds) == 1
        member.go.set()
        received = [stored_events(one.result(30)) for one in listening]
    assert all(one == site.ledger(run) for one in received)
    wait_until(lambda: not feeds, "a run without listeners is not followed")


@pytest.mark.behaviour("007-eight-tabs")
def test_requests_are_answered_with_eight_streams_open(
    site: WebServer, streaming_run: tuple[StreamingMember, Callable[[], str]]
) -> None:
    member, name = streaming_run
    run = name()

    async def tab(session: aiohttp.ClientSession) -> int:
        async with session.get(f"/api/stream?run={run}") as stream:
            await stream.content.readline()
            answers = [
                await (await session.get(path)).json() for path in ("/api/runs", f"/api/runs/{run}", "/api/roots")
            ]
            assert answers[1]["running"] is True
            member.go.set()
            return len(stored_events(list(events(iter((await stream.content.read()).splitlines(keepends=True))))))

    async def tabs() -> list[int]:
        async with authorised_session(site) as session:
            return await asyncio.gather(*(tab(session) for _ in range(8)))

    assert asyncio.run(tabs()) == [len(site.ledger(run))] * 8


def authorised_session(site: WebServer) -> aiohttp.ClientSession:
    headers = {"Authorization": f"Bearer {site.token}"}
    unlimited = aiohttp.TCPConnector(limit=0)
    return aiohttp.ClientSession(f"http://{site.host}", headers=headers, connector=unlimited)


# Fifty listeners that reconnect


class Listener:
    """Listener that disconnects at random and reconnects with the last event id."""

    def __init__(self, number: int) -> None:
        self.chance = random.Random(number)
        self.last: str | None = None
        self.seen: list[Json] = []
        self.drops = 0
        self.over = False

    async def listen_to_end(self, session: aiohttp.ClientSession, run: str) -> None:
        while not self.over:
            await self._listen(session, run, self.chance.randint(1, 12))

    async def _listen(self, session: aiohttp.ClientSession, run: str, limit: int) -> None:
        headers = {"Last-Event-ID": self.last} if self.last else {}
        async with session.get(f"/api/runs/{run}/events", headers=headers) as response:
            async for event in parse_stream(response.content):
                self._add(event)
                limit -= 1
                if limit == 0 and not self.over:
                    self.drops += 1
                    response.close()
                    return

    def _add(self, event: Json) -> None:
        self.over = event["event"] == "end"
        if "id" in event:
            self.last = event["id"]
            self.seen.append(event["data"])


async def parse_stream(content: aiohttp.StreamReader) -> AsyncIterator[Json]:
    lines: list[bytes] = []
    async for line in content:
        lines.append(line)
        if line == b"\n":
            for event in events(iter(lines)):
                yield event
            lines = []


@pytest.mark.behaviour("40-fifty-clients", "50-web-other-process")
def test_fifty_clients_that_reconnect_at_random_see_every_event_once(site: WebServer) -> None:
    run = site.post("/api/runs", {"question": QUESTION, "protocol": "collaborative"}, 201)["run"]
    listeners = [Listener(number) for number in range(CLIENTS)]

    async def all_of_them() -> None:
        async with authorised_session(site) as session:
            await asyncio.gather(*(listener.listen_to_end(session, run) for listener in listeners))

    asyncio.run(all_of_them())
    ledger = site.ledger(run)
    assert ledger[-1]["type"] == "closed"
    assert ledger[-1]["status"] == "complete"
    assert [listener.seen == ledger for listener in listeners] == [True] * CLIENTS
    assert sum(listener.drops for listener in listeners) > CLIENTS
    assert site.get(f"/api/runs/{run}")["status"] == "complete"


# Slow listeners


@pytest.mark.behaviour("50-web-slow")
def test_a_listener_that_does_not_read_is_disconnected(site: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "SEND_TIMEOUT_S", 0.2)
    run = site.run_council()
    many = 400

    async def endless(name: str) -> AsyncIterator[Entry]:
        for seq in range(1, many + 1):
            yield Entry(seq, 0.0, ev.Noted("x" * 100_000, ""))
        await asyncio.Event().wait()

    site.app_state.feeds = RunFeeds(endless)
    with socket.create_connection(("127.0.0.1", int(site.host.rpartition(":")[2]))) as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = f"GET /api/runs/{run}/events HTTP/1.1\r\nHost: {site.host}\r\nAuthorization: Bearer {site.token}\r\n\r\n"
        stalled.sendall(head.encode())
        wait_until(lambda: site.app_state.feeds._feeds, "the listener is connected")
        with site.open_request("GET", f"/api/runs/{run}/events") as response:
            coming = events(response)
            assert [next(coming)["id"] for _ in range(many)] == [str(n) for n in range(1, many + 1)]
            (feed,) = site.app_state.feeds._feeds.values()
            wait_until(lambda: len(feed.listeners) == 1, "the stalled listener is disconnected")
    wait_until(lambda: not site.app_state.feeds._feeds, "the other listener is gone")


# Streamed text


@pytest.mark.anyio
@pytest.mark.behaviour("50-web-deltas")
async def test_pieces_between_two_reads_are_one_event_per_seat() -> None:
    more = asyncio.Event()

    async def entries() -> AsyncIterator[Entry]:
        for n in range(1000):
            for seat in ("alpha", "beta"):
                yield Entry(0, n, ev.Delta(f"draft/{seat}", seat, f"{n} "))
        await more.wait()
        yield Entry(0, 1000, ev.Delta("draft/alpha", "alpha", "last"))
        yield Entry(1, 1001, ev.Faulted("draft/beta", "beta", 1, "m", "net", "gone"))
        yield Entry(0, 1002, ev.Delta("draft/beta", "beta", "again"))

    feed = RunFeed("r", entries())
    reading = StreamReader([StreamCursor(feed, 0)], several=False)
    await asyncio.sleep(0)
    first = list(events(iter(reading.read_new().splitlines(keepends=True))))
    whole = "".join(f"{n} " for n in range(1000))
    assert [(event["data"]["seat"], event["data"]["from"], event["data"]["text"]) for event in first] == [("alpha", 0, whole), ("beta", 0, whole)]  # fmt: skip
    more.set()
    await feed.task
    second = list(events(iter(reading.read_new().splitlines(keepends=True))))
    assert [(event["event"], event["data"].get("from"), event["data"].get("text")) for event in second] == [
        ("fault", None, None), ("delta", len(whole), "last"), ("delta", 0, "again"), ("end", None, None),
    ]  # fmt: skip


@pytest.mark.behaviour("50-web-events")
def test_a_killed_run_is_streamed_to_its_last_event_and_ends_as_stopped(site: WebServer) -> None:
    run = site.run_council()
    with site.database() as db:
        db.execute("DELETE FROM events WHERE run = ? AND type = 'closed'", (run,))
        db.execute("UPDATE runs SET status = 'running', report = '' WHERE id = ?", (run,))
    received = site.read_stream(f"/api/runs/{run}/events")
    assert stored_events(received) == site.ledger(run)
    assert received[-1]["data"] == {"run": run, "status": "stopped"}
    assert site.get(f"/api/runs/{run}")["status"] == "stopped"


@pytest.mark.behaviour("50-web-start")
def test_listening_starts_a_worker_for_an_orphaned_run(site: WebServer) -> None:
    async def queued() -> str:
        convener = Convener(site.folder, site.env)
        run = await convener.enqueue(await convener.plan([QUESTION], protocol="triad"))
        await convener.close()
        return run

    assert site.read_stream(f"/api/runs/{asyncio.run(queued())}/events")[-1]["data"]["status"] == "complete"


@pytest.mark.behaviour("50-web-events")
def test_an_idle_stream_sends_keep_alive_comments(site: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.01)

    async def silent(name: str) -> AsyncIterator[Entry]:
        await asyncio.Event().wait()
        yield Entry(1, 0.0, ev.Noted("", ""))

    run = site.run_council()
    site.app_state.feeds = RunFeeds(silent)
    with site.open_request("GET", f"/api/runs/{run}/events") as response:
        lines = [response.readline() for _ in range(6)]
    assert lines == [b"retry: 1000\n", b"\n", b": keep-alive\n", b"\n", b": keep-alive\n", b"\n"]
