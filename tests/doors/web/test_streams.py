"""Listening: what is kept and what happens, once and in order, for as many as like, whoever holds the run."""

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


def kept(heard: list[Json]) -> list[Json]:
    return [event["data"] for event in heard if "id" in event]


# What is kept


@pytest.fixture(scope="module")
def run(shared_server: WebServer) -> str:
    return shared_server.convened()


@pytest.mark.behaviour("50-web-events")
def test_a_finished_run_is_told_from_its_first_event_to_its_end(shared_server: WebServer, run: str) -> None:
    heard = shared_server.heard(f"/api/runs/{run}/events")
    assert kept(heard) == shared_server.ledger(run)
    assert all(
        event["id"] == str(event["data"]["seq"]) and event["event"] == event["data"]["type"] for event in heard[:-1]
    )
    assert heard[-1] == {"event": "end", "data": {"run": run, "status": "complete"}}


@pytest.mark.behaviour("50-web-events")
def test_a_listener_takes_up_where_it_was(shared_server: WebServer, run: str) -> None:
    ledger = shared_server.ledger(run)
    assert kept(shared_server.heard(f"/api/runs/{run}/events?since=5")) == ledger[5:]
    assert kept(shared_server.heard(f"/api/runs/{run[:4]}/events?since=2", {"Last-Event-ID": "7"})) == ledger[7:]
    assert kept(shared_server.heard(f"/api/runs/{run}/events?since=99999")) == []


@pytest.mark.behaviour("50-web-events")
def test_several_runs_come_in_one_stream_with_their_names(shared_server: WebServer, run: str) -> None:
    other = shared_server.convened("Which of the two?")
    heard = shared_server.heard(f"/api/stream?run={run}&run={other}&since={run}:4")
    for name, since in ((run, 4), (other, 0)):
        own = [event for event in kept(heard) if event["run"] == name]
        assert [event | {"run": None} for event in own] == [
            event | {"run": None} for event in shared_server.ledger(name)[since:]
        ]
    ends = [event["data"] for event in heard if event["event"] == "end"]
    assert ends == [{"run": run, "status": "complete"}, {"run": other, "status": "complete"}, {"status": "over"}]
    middle = next(event["id"] for event in heard if "id" in event and event["data"].get("seq") == 9)
    resumed = shared_server.heard(f"/api/stream?run={run}&run={other}&since={run}:4", {"Last-Event-ID": middle})
    places = dict(part.split(":") for part in middle.split(","))
    for name in (run, other):
        told = [event["seq"] for event in kept(resumed) if event["run"] == name]
        assert told == [event["seq"] for event in shared_server.ledger(name)[int(places[name]) :]]


@pytest.mark.behaviour("50-web-errors")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/runs/nothing/events", 404), ("/api/stream?run=nothing", 404), ("/api/stream", 422), ("/api/runs/{run}/events?since=-1", 422),
        ("/api/runs/{run}/events?since=x", 422), ("/api/stream?run={run}&since={run}:x", 400), ("/api/stream?run={run}&since=x", 400),
        ("/api/runs/%00/events", 404), ("/api/runs/%F0%9F%92%A9/events", 404), ("/api/runs/{run}/events?since=99999999999999999999", 422),
    ],
)  # fmt: skip
def test_a_place_that_there_is_not_is_refused(shared_server: WebServer, run: str, path: str, status: int) -> None:
    assert shared_server.refused(path.format(run=run), status=status)


def test_a_last_event_that_is_no_number_is_refused(shared_server: WebServer, run: str) -> None:
    told = shared_server.ask("GET", f"/api/runs/{run}/events", headers={"Last-Event-ID": "x"})
    assert (told.status, told.headers["content-type"]) == (400, "application/json")


# What happens


class Speaking(FunctionMember):
    """A member that says a piece whenever the test lets it."""

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
def speaking(server: WebServer) -> Iterator[tuple[Speaking, Callable[[], str]]]:
    """A run held in a thread of its own, as in another process; and the run's name, once there is one."""
    member, named = Speaking(), threading.Event()
    names: list[str] = []

    def listen(entry: Entry) -> None:
        if isinstance(entry.event, ev.Convened):
            names.append(entry.event.run)
            named.set()

    async def work() -> None:
        convener = Convener(server.folder, server.env, members=[member])
        await convener.run(await convener.plan([QUESTION], protocol="collaborative"), listen)
        await convener.close()

    def name() -> str:
        assert named.wait(60)
        return names[0]

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(asyncio.run, work())
        yield member, name
        member.go.set()
        held.result(30)


@pytest.mark.behaviour("50-web-deltas")
def test_words_are_heard_as_they_are_said_and_again_by_whoever_comes_back(
    server: WebServer, speaking: tuple[Speaking, Callable[[], str]]
) -> None:
    member, name = speaking
    path = f"/api/runs/{name()}/events"
    texts: list[str] = []
    with server.asked("GET", path) as response:
        texts.append(next(event["data"]["text"] for event in events(response) if event["event"] == "delta"))
    assert texts[0].startswith("One ")
    with server.asked("GET", path, headers={"Last-Event-ID": "3"}) as response:
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
def test_however_many_listen_a_run_is_followed_once(
    server: WebServer, speaking: tuple[Speaking, Callable[[], str]]
) -> None:
    member, name = speaking
    run = name()
    with ThreadPoolExecutor(20) as pool:
        listening = [pool.submit(server.heard, f"/api/runs/{run}/events") for _ in range(20)]
        feeds = server.state.feeds._feeds
        wait_until(lambda: sum(len(feed.listeners) for feed in feeds.values()) == 20, "all of them listen")
        assert len(feeds) == 1
        member.go.set()
        heard = [kept(one.result(30)) for one in listening]
    assert all(one == server.ledger(run) for one in heard)
    wait_until(lambda: not feeds, "nobody follows a run that nobody listens to")


@pytest.mark.behaviour("007-eight-tabs")
def test_with_eight_streams_open_every_tab_is_still_answered(
    server: WebServer, speaking: tuple[Speaking, Callable[[], str]]
) -> None:
    member, name = speaking
    run = name()

    async def tab(session: aiohttp.ClientSession) -> int:
        async with session.get(f"/api/stream?run={run}") as stream:
            await stream.content.readline()
            answers = [
                await (await session.get(path)).json() for path in ("/api/runs", f"/api/runs/{run}", "/api/roots")
            ]
            assert answers[1]["running"] is True
            member.go.set()
            return len(kept(list(events(iter((await stream.content.read()).splitlines(keepends=True))))))

    async def tabs() -> list[int]:
        async with signed_in(server) as session:
            return await asyncio.gather(*(tab(session) for _ in range(8)))

    assert asyncio.run(tabs()) == [len(server.ledger(run))] * 8


def signed_in(server: WebServer) -> aiohttp.ClientSession:
    headers = {"Authorization": f"Bearer {server.token}"}
    unlimited = aiohttp.TCPConnector(limit=0)
    return aiohttp.ClientSession(f"http://{server.host}", headers=headers, connector=unlimited)


# Fifty who come and go


class Listener:
    """Listens, drops out at random, and comes back with the last event it saw."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.last: str | None = None
        self.seen: list[Json] = []
        self.drops = 0
        self.over = False

    async def hear_out(self, session: aiohttp.ClientSession, run: str) -> None:
        while not self.over:
            await self._listen(session, run, self.chance.randint(1, 12))

    async def _listen(self, session: aiohttp.ClientSession, run: str, patience: int) -> None:
        headers = {"Last-Event-ID": self.last} if self.last else {}
        async with session.get(f"/api/runs/{run}/events", headers=headers) as response:
            async for event in told(response.content):
                self._take(event)
                patience -= 1
                if patience == 0 and not self.over:
                    self.drops += 1
                    response.close()
                    return

    def _take(self, event: Json) -> None:
        self.over = event["event"] == "end"
        if "id" in event:
            self.last = event["id"]
            self.seen.append(event["data"])


async def told(content: aiohttp.StreamReader) -> AsyncIterator[Json]:
    lines: list[bytes] = []
    async for line in content:
        lines.append(line)
        if line == b"\n":
            for event in events(iter(lines)):
                yield event
            lines = []


@pytest.mark.behaviour("40-fifty-clients", "50-web-other-process")
def test_fifty_clients_that_drop_out_at_random_end_in_the_ledgers_state(server: WebServer) -> None:
    run = server.post("/api/runs", {"question": QUESTION, "protocol": "collaborative"}, 201)["run"]
    listeners = [Listener(seed) for seed in range(CLIENTS)]

    async def all_of_them() -> None:
        async with signed_in(server) as session:
            await asyncio.gather(*(listener.hear_out(session, run) for listener in listeners))

    asyncio.run(all_of_them())
    ledger = server.ledger(run)
    assert ledger[-1]["type"] == "closed"
    assert ledger[-1]["status"] == "complete"
    assert [listener.seen == ledger for listener in listeners] == [True] * CLIENTS
    assert sum(listener.drops for listener in listeners) > CLIENTS
    assert server.get(f"/api/runs/{run}")["status"] == "complete"


# Who reads slowly


@pytest.mark.behaviour("50-web-slow")
def test_a_listener_that_takes_nothing_is_let_go_and_holds_nobody_up(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "SEND_TIMEOUT_S", 0.2)
    run = server.convened()
    many = 400

    async def endless(name: str) -> AsyncIterator[Entry]:
        for seq in range(1, many + 1):
            yield Entry(seq, 0.0, ev.Noted("x" * 100_000, ""))
        await asyncio.Event().wait()

    server.state.feeds = RunFeeds(endless)
    with socket.create_connection(("127.0.0.1", int(server.host.rpartition(":")[2]))) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = f"GET /api/runs/{run}/events HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        deaf.sendall(head.encode())
        wait_until(lambda: server.state.feeds._feeds, "it listens")
        with server.asked("GET", f"/api/runs/{run}/events") as response:
            coming = events(response)
            assert [next(coming)["id"] for _ in range(many)] == [str(n) for n in range(1, many + 1)]
            (feed,) = server.state.feeds._feeds.values()
            wait_until(lambda: len(feed.listeners) == 1, "the deaf one is let go")
    wait_until(lambda: not server.state.feeds._feeds, "the other has gone")


# The pace of words


@pytest.mark.anyio
@pytest.mark.behaviour("50-web-deltas")
async def test_pieces_that_came_between_two_looks_are_one_event_for_each_seat() -> None:
    more = asyncio.Event()

    async def entries() -> AsyncIterator[Entry]:
        for n in range(1000):
            for seat in ("alpha", "beta"):
                yield Entry(0, n, ev.Delta(f"draft/{seat}", seat, f"{n} "))
        await more.wait()
        yield Entry(0, 1000, ev.Delta("draft/alpha", "alpha", "last"))
        yield Entry(1, 1001, ev.Faulted("draft/beta", "beta", 1, "m", "net", "gone"))
        yield Entry(0, 1002, ev.Delta("draft/beta", "beta", "anew"))

    feed = RunFeed("r", entries())
    reading = StreamReader([StreamCursor(feed, 0)], several=False)
    await asyncio.sleep(0)
    first = list(events(line.encode() + b"\n" for line in reading.read_new().split("\n")))
    whole = "".join(f"{n} " for n in range(1000))
    assert [(event["data"]["seat"], event["data"]["from"], event["data"]["text"]) for event in first] == [("alpha", 0, whole), ("beta", 0, whole)]  # fmt: skip
    more.set()
    await feed._task
    second = list(events(line.encode() + b"\n" for line in reading.read_new().split("\n")))
    assert [(event["event"], event["data"].get("from"), event["data"].get("text")) for event in second] == [
        ("fault", None, None), ("delta", len(whole), "last"), ("delta", 0, "anew"), ("end", None, None),
    ]  # fmt: skip


@pytest.mark.behaviour("50-web-events")
def test_a_run_that_was_killed_is_told_to_its_last_event_and_as_stopped(server: WebServer) -> None:
    run = server.convened()
    with server.database() as db:
        db.execute("DELETE FROM events WHERE run = ? AND type = 'closed'", (run,))
        db.execute("UPDATE runs SET status = 'running', report = '' WHERE id = ?", (run,))
    heard = server.heard(f"/api/runs/{run}/events")
    assert kept(heard) == server.ledger(run)
    assert heard[-1]["data"] == {"run": run, "status": "stopped"}
    assert server.get(f"/api/runs/{run}")["status"] == "stopped"


@pytest.mark.behaviour("50-web-start")
def test_a_run_that_nobody_took_up_is_taken_up_when_somebody_listens(server: WebServer) -> None:
    async def queued() -> str:
        convener = Convener(server.folder, server.env)
        run = await convener.enqueue(await convener.plan([QUESTION], protocol="triad"))
        await convener.close()
        return run

    assert server.heard(f"/api/runs/{asyncio.run(queued())}/events")[-1]["data"]["status"] == "complete"


@pytest.mark.behaviour("50-web-events")
def test_a_stream_on_which_nothing_happens_says_that_it_is_there(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_S", 0.01)

    async def silent(name: str) -> AsyncIterator[Entry]:
        await asyncio.Event().wait()
        yield Entry(1, 0.0, ev.Noted("", ""))

    run = server.convened()
    server.state.feeds = RunFeeds(silent)
    with server.asked("GET", f"/api/runs/{run}/events") as response:
        lines = [response.readline() for _ in range(6)]
    assert lines == [b"retry: 1000\n", b"\n", b": keep-alive\n", b"\n", b": keep-alive\n", b"\n"]
