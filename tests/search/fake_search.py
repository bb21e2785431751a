"""Fake search server on a real socket: three API dialects, a request log, and misbehaviour on request.

async with FakeSearch() as fake:
    fake.results = [page("Title", "https://a.example", "text")]
    fake.behave("tabs", Status(500), Page("<html>"))        # next answers to queries with this word, in order
    fake.seen                                               # received requests: path, query, headers, body
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

Json = dict[str, Any]


def page(title: str, url: str, text: str = "") -> Json:
    """One result with the text under the field name of each dialect."""
    return {"title": title, "url": url, "content": text, "description": text}


@dataclass(frozen=True)
class Answer:
    """One response. `hang` never ends, `cut` closes the connection after the headers, `reset` before them."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    reset: bool = False
    cut: bool = False


@dataclass(frozen=True)
class Seen:
    path: str
    query: str
    asked: Json
    headers: Mapping[str, str]


HANG, RESET, CUT = Answer(hang=True), Answer(reset=True), Answer(cut=True)


class FakeSearch:
    def __init__(self) -> None:
        self.results: list[Json] = []
        self.by_word: dict[str, list[Json]] = {}  # results of queries that contain a word
        self.seen: list[Seen] = []
        self.port = 0
        self._next: list[tuple[str, Answer]] = []
        self._always: Answer | None = None
        self.arrived = asyncio.Event()  # a request arrived
        self._quit = asyncio.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def queries(self) -> list[str]:
        return [seen.query for seen in self.seen]

    @property
    def connections(self) -> int:
        """Number of open connections."""
        server = self._runner.server
        return len(server.connections) if server else 0

    def behave(self, word: str, *answers: Answer) -> None:
        self._next += [(word, answer) for answer in answers]

    def always(self, answer: Answer) -> None:
        self._always = answer

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *what: object) -> None:
        self._quit.set()
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json() if request.method == "POST" else dict(request.query)
        query = asked.get("query") or asked.get("q") or ""
        self.seen.append(Seen(request.path, query, asked, dict(request.headers)))
        self.arrived.set()
        answer = self._taken(query)
        if answer is None:
            found = next((rows for word, rows in self.by_word.items() if word in query), self.results)
            rows = found[: int(asked.get("max_results") or asked.get("count") or 20)]
            return web.json_response({"web": {"results": rows}} if "brave" in _dialect(request) else {"results": rows})
        return await self._misbehave(request, answer)

    def _taken(self, query: str) -> Answer | None:
        for n, (word, answer) in enumerate(self._next):
            if word in query:
                del self._next[n]
                return answer
        return self._always

    async def _misbehave(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        if answer.hang:
            await self._quit.wait()
        if answer.reset:
            assert request.transport
            request.transport.abort()
        headers = {"Content-Type": answer.kind, **answer.headers}
        if not answer.cut:
            return web.Response(status=answer.status, body=answer.body, headers=headers)
        response = web.StreamResponse(headers={**headers, "Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"results": [')
        assert request.transport
        request.transport.close()
        return response


def _dialect(request: web.Request) -> str:
    return {"/res/v1/web/search": "brave"}.get(request.path, "")


def said(value: Any) -> Answer:
    """Return a JSON response with an unexpected shape."""
    return Answer(body=json.dumps(value).encode())
