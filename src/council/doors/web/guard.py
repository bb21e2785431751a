"""Middleware that checks Host, Origin, token and content type before any route."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from dataclasses import dataclass
from secrets import compare_digest
from typing import Any

from council.doors.web.answers import encoded, error_json, fault_line

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SESSION = "/api/session"
LARGEST = 1 << 20  # bytes
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ALWAYS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    line: str


class Asked:
    """Method, path and headers of a request."""

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._headers: list[tuple[bytes, bytes]] = list(scope["headers"])

    def every(self, name: str) -> list[str]:
        return [value.decode("latin-1") for key, value in self._headers if key == name.encode()]

    def one(self, name: str) -> str | None:
        """Return the value; a repeated header gives both joined, which no check accepts."""
        return ", ".join(values) if (values := self.every(name)) else None

    @property
    def is_json(self) -> bool:
        return (self.one("content-type") or "").partition(";")[0].strip().lower() == "application/json"

    @property
    def of_page(self) -> bool:
        """Whether this is a static file of the page, which needs no token."""
        return self.method in ("GET", "HEAD") and (self.path == "/" or self.path.startswith("/page/"))

    def tokens(self, cookie: str) -> Iterator[str]:
        for header in self.every("authorization"):
            scheme, _, value = header.partition(" ")
            if scheme.lower() == "bearer":
                yield value.strip()
        for pair in "; ".join(self.every("cookie")).split(";"):
            name, _, value = pair.strip().partition("=")
            if name == cookie:
                yield value


@dataclass(frozen=True, slots=True)
class Guard:
    app: App
    token: str
    hosts: tuple[str, ...]  # with their port, as a browser writes them
    cookie: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        asked = Asked(scope)
        send = _with_headers(send, asked.path)
        if refusal := self.refusal(asked):
            return await _refuse(send, refusal)
        if asked.method == "POST":
            body = await _body(receive)
            if body is None:
                return await _refuse(send, Refusal(413, f"the body is over {LARGEST >> 20} MB: send less"))
            receive = _again(body, receive)
        try:
            await self.app(scope, receive, send)
        except Exception as problem:  # the response has been sent as far as possible
            if "COUNCIL_DEBUG" in os.environ:
                raise
            print(f"council: {fault_line(problem)}", file=sys.stderr)
        return None

    def refusal(self, asked: Asked) -> Refusal | None:
        return self._stranger(asked) or (None if asked.of_page else self._unknown(asked))

    def _stranger(self, asked: Asked) -> Refusal | None:
        """Refuse a wrong Host and requests of other pages and sites."""
        host = asked.one("host")
        if host not in self.hosts:
            return Refusal(400, f'unknown Host "{(host or "")[:200]}": open the address that `council serve` printed')
        if asked.one("origin") not in (None, f"http://{host}"):
            return Refusal(
                403, "requests from another page are not allowed: open the address that `council serve` printed"
            )
        if asked.one("sec-fetch-site") not in (None, "same-origin", "none"):
            return Refusal(
                403, "requests from another site are not allowed: open the address that `council serve` printed"
            )
        return None

    def _unknown(self, asked: Asked) -> Refusal | None:
        """Refuse a missing token, and form posts, which any page could send."""
        form = Refusal(415, "a POST must be JSON: send it with Content-Type: application/json")
        if asked.method == "POST" and asked.one("content-type") and not asked.is_json:
            return form
        if asked.path != SESSION and not any(self.knows(token) for token in asked.tokens(self.cookie)):
            return Refusal(
                401, "missing or wrong token: send Authorization: Bearer TOKEN, or open the address with #token="
            )
        return form if asked.method == "POST" and not asked.is_json else None

    def knows(self, token: str) -> bool:
        return compare_digest(token.encode(), self.token.encode())


async def _refuse(send: Send, refusal: Refusal) -> None:
    body = encoded(error_json(refusal.line)).encode("utf-8", "replace")
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Send, path: str) -> Send:
    caching = b"no-store" if path.startswith("/api/") else b"no-cache"

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *ALWAYS, (b"cache-control", caching)]
        await send(message)

    return sending


async def _body(receive: Receive) -> bytes | None:
    """Return the whole body, or None if it is too large; a disconnect ends it."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > LARGEST:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Message:
        return messages.pop() if messages else await receive()

    return receiving
