"""Middleware that checks Host, Origin, token and content type before any route."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import dataclass
from secrets import compare_digest
from typing import Any

from council.doors.web.responses import encode_json, error_json, format_internal_error

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SESSION_PATH = "/api/session"
MAX_BODY_BYTES = 1 << 20  # bytes
BODY_METHODS = ("POST", "PATCH")  # requests with a body
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    line: str


class RequestHead:
    """Method, path and headers of a request."""

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._headers: list[tuple[bytes, bytes]] = list(scope["headers"])

    def header_values(self, name: str) -> list[str]:
        return [value.decode("latin-1") for key, value in self._headers if key == name.encode()]

    def header(self, name: str) -> str | None:
        """Return the value; a repeated header gives both joined, which no check accepts."""
        return ", ".join(values) if (values := self.header_values(name)) else None

    @property
    def is_json(self) -> bool:
        return (self.header("content-type") or "").partition(";")[0].strip().lower() == "application/json"

    @property
    def is_page_file(self) -> bool:
        """Whether this is a static file of the page, which needs no token."""
        return self.method in ("GET", "HEAD") and (self.path == "/" or self.path.startswith("/page/"))

    def iter_tokens(self) -> Iterator[str]:
        """Yield the bearer tokens. A cookie is never one: browsers send cookies to every port of a host."""
        for header in self.header_values("authorization"):
            scheme, _, value = header.partition(" ")
            if scheme.lower() == "bearer":
                yield value.strip()


@dataclass(frozen=True, slots=True)
class Guard:
    app: App
    token: str
    hosts: tuple[str, ...]  # with their port, as a browser writes them

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        asked = RequestHead(scope)
        send = _add_headers(send, asked.path)
        if refusal := self.check(asked):
            return await _send_refusal(send, refusal)
        if asked.method in BODY_METHODS:
            body = await _read_body(receive)
            if body is None:
                return await _send_refusal(send, Refusal(413, f"the body is over {MAX_BODY_BYTES >> 20} MB: send less"))
            receive = _replay_body(body, receive)
        if asked.method == "HEAD":
            scope, receive, send = {**scope, "method": "GET"}, *_drop_body(receive, send)
        try:
            await self.app(scope, receive, send)
        except Exception as problem:  # the response has been sent as far as possible
            if "COUNCIL_DEBUG" in os.environ:
                raise
            print(f"council: {format_internal_error(problem)}", file=sys.stderr)
        return None

    def check(self, asked: RequestHead) -> Refusal | None:
        return self._check_origin(asked) or (None if asked.is_page_file else self._check_token(asked))

    def _check_origin(self, asked: RequestHead) -> Refusal | None:
        """Refuse a wrong Host and requests of other pages and sites."""
        host = asked.header("host")
        if host not in self.hosts:
            return Refusal(400, f'unknown Host "{(host or "")[:200]}": open the address that `council serve` printed')
        if asked.header("origin") not in (None, f"http://{host}"):
            return Refusal(
                403, "requests from another page are not allowed: open the address that `council serve` printed"
            )
        if asked.header("sec-fetch-site") not in (None, "same-origin", "none"):
            return Refusal(
                403, "requests from another site are not allowed: open the address that `council serve` printed"
            )
        return None

    def _check_token(self, asked: RequestHead) -> Refusal | None:
        """Refuse a missing token, and form posts, which any page could send."""
        form = Refusal(415, f"a {asked.method} must be JSON: send it with Content-Type: application/json")
        if asked.method in BODY_METHODS and asked.header("content-type") and not asked.is_json:
            return form
        if asked.path != SESSION_PATH and not any(map(self.is_token_valid, asked.iter_tokens())):
            return Refusal(
                401, "missing or wrong token: send Authorization: Bearer TOKEN, or open the address with #token="
            )
        return form if asked.method in BODY_METHODS and not asked.is_json else None

    def is_token_valid(self, token: str) -> bool:
        return compare_digest(token.encode(), self.token.encode())


async def _send_refusal(send: Send, refusal: Refusal) -> None:
    body = encode_json(error_json(refusal.line)).encode("utf-8", "replace")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _add_headers(send: Send, path: str) -> Send:
    caching = b"no-store" if path.startswith("/api/") else b"no-cache"

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS, (b"cache-control", caching)]
        await send(message)

    return send_with_headers


def _drop_body(receive: Receive, send: Send) -> tuple[Receive, Send]:
    """Send only the head of the response to a GET; an event stream ends after it."""
    has_ended = asyncio.Event()

    async def receive_until_sent() -> Message:
        await has_ended.wait()
        return {"type": "http.disconnect"}

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            has_ended.set()

    return receive_until_sent, send_head


async def _read_body(receive: Receive) -> bytes | None:
    """Return the whole body, or None if it is too large; a disconnect ends it."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_body() -> Message:
        return messages.pop() if messages else await receive()

    return receive_body
