"""Middleware that checks Host, Origin, token and content type before any route."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from secrets import compare_digest
from typing import Any

from starlette.datastructures import Headers

from council.doors.web.responses import error_response, format_internal_error
from council.errors import StoreError, message_for
from council.runs.metrics import HEALTH_PATH, METRICS_PATH, READY_PATH, TOKEN_VARIABLE, may_read_metrics
from council.runs.tokens import ANONYMOUS, OWNER, User

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

SESSION_PATH = "/api/session"
METHODS_WITH_BODY = ("POST", "PATCH")
MAX_BODY_BYTES = 1 << 20  # bytes
# By path, for attachments.
BODY_LIMITS = dict.fromkeys(
    ("/api/runs", "/api/estimate", "/api/attachments", "/v1/chat/completions", "/v1/responses"), 24 << 20
)
CODE_BYTES, CODE_TIMEOUT_S = 24, 300.0  # of a one-time code
BODY_TIMEOUT_S = 30.0  # seconds for the whole body
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
    """Why there is no response, or no complete one."""

    status: int
    code: str
    line: str


BODY_TOO_SLOW = Refusal(408, "body_too_slow", f"the body did not arrive within {BODY_TIMEOUT_S:g} s: send it at once")
NO_TOKEN = Refusal(
    401, "unauthorized", "missing or wrong token: send Authorization: Bearer TOKEN, or open the address with #token="
)
NO_METRICS_TOKEN = Refusal(
    401,
    "unauthorized",
    f"metrics are for this machine, or need the token in {TOKEN_VARIABLE}: send Authorization: Bearer TOKEN",
)
NOT_JSON = Refusal(415, "not_json", "the body must be JSON: send it with Content-Type: application/json")
OTHER_PAGE = Refusal(403, "wrong_origin", "requests from another page are not allowed: use the page of this server")
OTHER_SITE = Refusal(403, "wrong_site", "requests from another site are not allowed: use the page of this server")


class RequestHead:
    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers = Headers(scope=scope)

    def header(self, name: str) -> str | None:
        """Return the value; a repeated header gives both joined, which no check accepts."""
        return ", ".join(values) if (values := self.headers.getlist(name)) else None

    @property
    def is_json(self) -> bool:
        return (self.header("content-type") or "").partition(";")[0].strip().lower() == "application/json"

    @property
    def is_page_file(self) -> bool:
        """Whether this is a static file of the page, which needs no token."""
        return self.method in ("GET", "HEAD") and (self.path in ("/", "/docs") or self.path.startswith("/page/"))

    @property
    def tokens(self) -> list[str]:
        """The bearer tokens. A cookie is never one: browsers send cookies to every port of a host."""
        headers = (header.partition(" ") for header in self.headers.getlist("authorization"))
        return [value.strip() for scheme, _, value in headers if scheme.lower() == "bearer"]


class OneTimeCodes:
    """Codes that give the token of the server once, so that the token is in no argument of a process."""

    def __init__(self) -> None:
        self._codes: dict[str, float] = {}  # with the time at which each ends

    def create(self) -> str:
        code = secrets.token_urlsafe(CODE_BYTES)
        self._codes[code] = time.monotonic() + CODE_TIMEOUT_S
        return code

    def redeem(self, code: str) -> bool:
        """Return whether the code is valid, and void it."""
        return time.monotonic() < self._codes.pop(code, 0.0)


@dataclass(frozen=True, slots=True)
class Guard:
    app: App
    token: str
    origins: Mapping[str, str]  # by Host, with its port, as a browser writes them
    find_user: Callable[[str], Awaitable[User | None]]  # of a token
    find_methods: Callable[[str], Sequence[str]]  # of a path
    codes: OneTimeCodes = field(default_factory=OneTimeCodes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        asked = RequestHead(scope)
        send = _add_headers(send, asked.path)
        state = scope.setdefault("state", {})
        state["user"] = ANONYMOUS
        if refusal := await self._check(asked, scope, state):
            return await _send_refusal(scope, receive, send, refusal)
        if asked.method in METHODS_WITH_BODY:
            limit = BODY_LIMITS.get(asked.path, MAX_BODY_BYTES)
            try:
                async with asyncio.timeout(BODY_TIMEOUT_S):
                    body = await _read_body(receive, limit)
            except TimeoutError:
                return await _send_refusal(scope, receive, send, BODY_TOO_SLOW)
            if body is None:
                too_large = Refusal(413, "body_too_large", f"the body is over {limit >> 20} MB: send less")
                return await _send_refusal(scope, receive, send, too_large)
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

    async def _check(self, asked: RequestHead, scope: Scope, state: dict[str, Any]) -> Refusal | None:
        if asked.method in ("GET", "HEAD") and asked.path in (HEALTH_PATH, READY_PATH):
            return None
        if asked.path == METRICS_PATH:
            peer = scope.get("client") or ("",)
            return None if may_read_metrics(asked.headers, peer[0], os.environ) else NO_METRICS_TOKEN
        return self._check_origin(asked) or (None if asked.is_page_file else await self._check_token(asked, state))

    def _check_origin(self, asked: RequestHead) -> Refusal | None:
        """Refuse a wrong Host and requests of other pages and sites."""
        host = asked.header("host")
        if host is None or host not in self.origins:
            return Refusal(400, "wrong_host", f'unknown Host "{(host or "")[:200]}": use the address of the server')
        if asked.header("origin") not in (None, self.origins[host]):
            return OTHER_PAGE
        if asked.header("sec-fetch-site") not in (None, "same-origin", "none"):
            return OTHER_SITE
        return None

    async def _check_token(self, asked: RequestHead, state: dict[str, Any]) -> Refusal | None:
        """Refuse a missing token, and form posts, which any page could send. Keep the user for the routes."""
        has_body = asked.method in METHODS_WITH_BODY and asked.method in self.find_methods(asked.path)
        if has_body and not asked.is_json:
            return NOT_JSON
        try:
            found = [user for token in asked.tokens if (user := await self.identify(token))]
        except StoreError as error:
            return Refusal(503, "store_unavailable", message_for(error, "http"))
        if asked.path != SESSION_PATH and not found:
            return NO_TOKEN
        if found:
            state["user"] = found[0]
            state["is_revoked"] = partial(self._is_revoked, asked.tokens) if found[0].name else None
        return None

    async def identify(self, token: str) -> User | None:
        """Return the sender of a token: the owner of the server, a user, or None."""
        return OWNER if compare_digest(token.encode(), self.token.encode()) else await self.find_user(token)

    async def _is_revoked(self, tokens: Sequence[str]) -> bool:
        """Return whether the tokens of a request have been revoked since."""
        return not any([await self.find_user(token) for token in tokens])


async def _send_refusal(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    response = error_response(refusal.status, refusal.code, refusal.line, path=scope["path"])
    await response(scope, receive, send)


def _add_headers(send: Send, path: str) -> Send:
    caching = b"no-store" if path.startswith(("/api/", "/v1/")) else b"no-cache"

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


async def _read_body(receive: Receive, limit: int) -> bytes | None:
    """Return the whole body, or None if it is too large; a disconnect ends it."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > limit:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_body() -> Message:
        return messages.pop() if messages else await receive()

    return receive_body
