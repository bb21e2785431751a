"""HTTP client of the wires: shared connections, proxies, timeouts, and errors as Faults.

aiohttp is imported at the first call, so that importing a wire is fast.
"""

from __future__ import annotations

import asyncio
import io
import math
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from errno import ECONNREFUSED
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit
from weakref import WeakKeyDictionary

from council.errors import Fault
from council.foreign import one_line
from council.members.base import sendable
from council.members.wires.faults import Complaint, complaint, kind_of, retry_after
from council.proxies import is_loopback, proxy_for

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

STALE = 0.5  # a reused connection that fails within this time was already closed by the server
ENOUGH = 64 * 1024  # maximum size of an error body
LONGEST = 16 * 1024 * 1024  # maximum size of one line
SOON = 0.05  # retry delay for a refused connection to this machine: the server may be starting
LOG_IN_AT_PROXY = 407
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")  # OpenSSL reasons for a plain HTTP endpoint
# Configuration advice: fault kind → (text required in the message, advice).
HINTS = {
    "endpoint": ("", ": base_url does not look like a model endpoint; is /v1 missing, or is wire wrong?"),
    "parameter": ("max_completion_tokens", ' (token_field = "max_completion_tokens" in its [providers] table)'),
}
PAGES = ("text/html", "application/xhtml+xml")
PATHS = re.compile(r"/(chat/completions|messages|models(/[^/]*)?)$")  # what the wires append to base_url


class Line:
    """Connections to one provider in one event loop."""

    def __init__(self, limit: int, reuse: bool) -> None:
        import aiohttp

        # A semaphore limits the calls, not the connector, so that waiting does not count against the connect timeout.
        self.turn = asyncio.Semaphore(limit)
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        connector = aiohttp.TCPConnector(limit=0, force_close=not reuse)
        self.session: ClientSession = aiohttp.ClientSession(connector=connector, trace_configs=[trace])
        self.users: set[int] = set()
        self.clocks: set[asyncio.Timeout] = set()  # of the calls in flight

    @asynccontextmanager
    async def clock(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        async with asyncio.timeout(seconds) as clock:
            self.clocks.add(clock)
            try:
                yield clock
            finally:
                self.clocks.discard(clock)

    async def close(self) -> None:
        for clock in self.clocks:  # aiohttp does not cancel a call that waits for its first byte
            clock.reschedule(0.0)
        await self.session.close()


@dataclass(slots=True)
class Call:
    """State of one request."""

    reused: float = -math.inf  # when it was sent on a reused connection
    answered: bool = False

    def was_stale(self) -> bool:
        """Return whether the server had closed the reused connection, so it did not process the request."""
        return not self.answered and time.monotonic() - self.reused < STALE


async def _note_reuse(session: ClientSession, context: SimpleNamespace, params: object) -> None:
    context.trace_request_ctx.reused = time.monotonic()


_lines: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Line]] = WeakKeyDictionary()


class Endpoint:
    """HTTP endpoint of one member. Members of one provider share connections; the last one to close closes them."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        secret: str = "",
        connect: float = 10.0,
        limit: int = 16,
        reuse: bool = True,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", **headers}
        self.secrets = (secret, urlsplit(base_url).password or "")
        self.connect = connect
        self.limit, self.reuse = limit, reuse

    def line(self) -> Line:
        lines = _lines.setdefault(asyncio.get_running_loop(), {})
        if self.base_url not in lines:
            lines[self.base_url] = Line(self.limit, self.reuse)
        lines[self.base_url].users.add(id(self))
        return lines[self.base_url]

    @asynccontextmanager
    async def post(
        self, path: str, body: bytes, first_byte: float, said: Callable[[], str]
    ) -> AsyncIterator[tuple[ClientResponse, asyncio.Timeout]]:
        """Yield the response and its timeout, which is `first_byte` seconds until the reader resets it."""
        # Above 1 MiB, aiohttp needs a file object so that sending does not block the event loop.
        data = body if len(body) < 2**20 else io.BytesIO(body)
        line, call = self.line(), Call()
        async with (
            self.faults(call, said),
            line.turn,
            line.clock(first_byte) as clock,
            self._request(line, call, "POST", path, data) as response,
        ):
            call.answered = True
            yield response, clock

    async def get(self, path: str, within: float) -> bytes:
        line, call = self.line(), Call()
        async with self.faults(call), asyncio.timeout(within), self._request(line, call, "GET", path) as response:
            await self.check(response)
            body: bytes = await response.read()
            return body

    def _request(self, line: Line, call: Call, method: str, path: str, data: bytes | io.BytesIO | None = None) -> Any:
        import aiohttp

        sendable(self.secrets[0])
        # The connect timeout covers DNS and TLS; the reader sets the other timeouts.
        clocks = aiohttp.ClientTimeout(total=None, connect=self.connect)
        url = self.base_url + path
        return line.session.request(method, url, data=data, headers=self.headers, timeout=clocks,
                                    proxy=proxy_for(url), allow_redirects=False, trace_request_ctx=call)  # fmt: skip

    @asynccontextmanager
    async def faults(self, call: Call, said: Callable[[], str] = str) -> AsyncIterator[None]:
        """Convert network errors to Faults."""
        import aiohttp

        try:
            yield
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            delay = SOON if self.is_here() and refused(error) else None
            detail = self.detail(f"no connection to {self.base_url}: {unconnected(error)}")
            raise Fault("net", detail, retry_after=delay) from None
        except aiohttp.ClientHttpProxyError as error:
            kind = "auth" if error.status == LOG_IN_AT_PROXY else "net"
            detail = self.detail(f"the proxy refused to connect to {self.base_url}: {error.status} {error.message}")
            raise Fault(kind, detail) from None
        except TimeoutError:
            raise Fault("stall", "timed out waiting for data", said=said()) from None
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if call.was_stale():
                raise Fault("net", "the provider had closed the idle connection") from None
            raise Fault("cut", self.detail(f"the connection was lost: {error}"), said=said()) from None
        except aiohttp.ClientPayloadError:
            raise Fault("cut", "the connection closed before the answer was complete", said=said()) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            detail = self.detail(f"the answer ended early: {error or type(error).__name__}")
            raise Fault("cut", detail, said=said()) from None

    async def check(self, response: ClientResponse) -> None:
        if not 200 <= response.status < 300:
            raise self.fault(response, await self.complaint(response))

    async def complaint(self, response: ClientResponse) -> Complaint:
        return complaint(await opening(response, self.connect), response.reason or "")

    def fault(self, response: ClientResponse, said: Complaint) -> Fault:
        after = retry_after(response.headers.get("Retry-After"), response.headers.get("retry-after-ms"))
        after = said.waits if after is None else after
        status, kind = response.status, kind_of(response.status, said, after)
        message = elsewhere(response) if status < 400 else said.message.removeprefix(f"{status}: ")
        hint = HINTS.get(kind, ("", ""))
        advice = hint[1] if status >= 400 and hint[0] in message else ""
        return Fault(kind, self.detail(f"{status}: {message}{advice}"), retry_after=after)

    def detail(self, message: str) -> str:
        return one_line(message, self.secrets)

    def is_here(self) -> bool:
        return is_loopback(urlsplit(self.base_url).hostname or "")

    async def close(self) -> None:
        lines = _lines.get(asyncio.get_running_loop(), {})
        line = lines.get(self.base_url)
        if line is None:
            return
        line.users.discard(id(self))
        if not line.users:
            del lines[self.base_url]
            await line.close()


def refused(error: Exception) -> bool:
    """Return whether the connection was refused, also when several addresses were tried."""
    cause = getattr(error, "os_error", None)
    return isinstance(cause, ConnectionRefusedError) or getattr(cause, "errno", None) == ECONNREFUSED


def unconnected(error: Exception) -> str:
    """Describe why the connection failed."""
    import aiohttp

    cause = getattr(error, "os_error", None)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy {error.host}:{error.port} cannot be reached"
    if refused(error):
        return "connection refused"
    if getattr(cause, "reason", "") in NO_TLS:
        return "the server does not use TLS: start base_url with http://"
    return getattr(cause, "strerror", None) or str(error) or type(error).__name__


async def lines_of(response: ClientResponse) -> AsyncIterator[list[bytes]]:
    """Yield the complete lines of a body in batches. Ignore an unfinished last line."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > LONGEST:
            raise ValueError(f"a line is longer than {LONGEST // 2**20} MiB")
        if lines:
            yield lines


def framed(response: ClientResponse) -> bool:
    """Return whether HTTP can distinguish the end of this body from a lost connection."""
    return response.content_length is not None or "Transfer-Encoding" in response.headers


def elsewhere(response: ClientResponse) -> str:
    """Describe a redirect and the base_url it suggests. Redirects are not followed, to keep the key at its address."""
    target = urlsplit(urljoin(str(response.url), response.headers.get("Location", "")))
    if not response.headers.get("Location") or not target.hostname:
        return "the endpoint redirects without a location: check base_url"
    address = f"{target.scheme}://{target.netloc.rpartition('@')[2]}{target.path}"
    address = PATHS.sub("", address)
    return f"the endpoint redirects to {address}: set base_url to it"


def no_model(response: ClientResponse, body: bytes = b"") -> str:
    """Describe a body without events that is not from a model. Return an empty string if it may be cut off."""
    is_whole = framed(response) or response.status == 204
    if is_whole and not response.content.total_bytes:
        return "the endpoint returned an empty response, not a model's answer: check base_url"
    if response.content_type in PAGES or body.lstrip()[:1] == b"<":
        return "the endpoint returned a web page, not a model's answer: check base_url"
    if is_whole and response.content_type not in ("text/event-stream", "application/json"):
        return f"the endpoint returned {response.content_type}, not a model's answer: check base_url"
    return ""


async def opening(response: ClientResponse, within: float) -> bytes:
    """Read the start of an error body. Ignore read errors, because the status is already known."""
    import aiohttp

    body = b""
    try:
        async with asyncio.timeout(within):
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) >= ENOUGH:
                    break
    except (TimeoutError, OSError, aiohttp.ClientError):
        pass
    return body[:ENOUGH]
