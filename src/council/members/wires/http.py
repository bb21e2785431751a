"""The line to one endpoint: shared connections, proxies, clocks, and every failure told as a Fault.

aiohttp is imported at the first call, so that importing a wire stays cheap.
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

STALE = 0.5  # seconds in which a connection that had been closed shows it
ENOUGH = 64 * 1024  # bytes of an error body
LONGEST = 16 * 1024 * 1024  # bytes of one line
SOON = 0.05  # seconds until a refused connection to this machine is tried again: nobody is there, or will be at once
LOG_IN_AT_PROXY = 407
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")  # what OpenSSL says of a plain endpoint
# What a configuration can do about a status: the fault's kind → words of the message, and the advice.
HINTS = {
    "endpoint": ("", ": check base_url and wire"),
    "parameter": ("max_completion_tokens", ' (token_field = "max_completion_tokens" in its [providers] table)'),
}
PAGES = ("text/html", "application/xhtml+xml")
PATHS = re.compile(r"/(chat/completions|messages|models(/[^/]*)?)$")  # what the wires add to a base_url


class Line:
    """The connections to one provider in one event loop."""

    def __init__(self, limit: int, reuse: bool) -> None:
        import aiohttp

        # The semaphore counts, not the connector: waiting for a turn must not run down the clock for connecting.
        self.turn = asyncio.Semaphore(limit)
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        connector = aiohttp.TCPConnector(limit=0, force_close=not reuse)
        self.session: ClientSession = aiohttp.ClientSession(connector=connector, trace_configs=[trace])
        self.users: set[int] = set()
        self.clocks: set[asyncio.Timeout] = set()  # of the calls under way

    @asynccontextmanager
    async def clock(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        async with asyncio.timeout(seconds) as clock:
            self.clocks.add(clock)
            try:
                yield clock
            finally:
                self.clocks.discard(clock)

    async def close(self) -> None:
        for clock in self.clocks:  # aiohttp would leave a call that waits for its first byte waiting
            clock.reschedule(0.0)
        await self.session.close()


@dataclass(slots=True)
class Call:
    """How far one request has come."""

    reused: float = -math.inf  # when it was put on a connection that had served before
    answered: bool = False

    def was_stale(self) -> bool:
        """The other side had hung up before it could read the request, so nobody has worked on it."""
        return not self.answered and time.monotonic() - self.reused < STALE


async def _note_reuse(session: ClientSession, context: SimpleNamespace, params: object) -> None:
    context.trace_request_ctx.reused = time.monotonic()


_lines: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Line]] = WeakKeyDictionary()


class Endpoint:
    """One member's end of the line. Members of one provider share the connections; the last to leave closes them."""

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
        """The response and the clock, which stands at `first_byte` until the reader moves it."""
        # Above 1 MiB aiohttp wants a file, so that writing it does not hold up the loop.
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
        # The timeout for connecting covers DNS and TLS; the other clocks are the reader's.
        clocks = aiohttp.ClientTimeout(total=None, connect=self.connect)
        url = self.base_url + path
        return line.session.request(method, url, data=data, headers=self.headers, timeout=clocks,
                                    proxy=proxy_for(url), allow_redirects=False, trace_request_ctx=call)  # fmt: skip

    @asynccontextmanager
    async def faults(self, call: Call, said: Callable[[], str] = str) -> AsyncIterator[None]:
        """Turn whatever the network does into the fault that the retry table knows."""
        import aiohttp

        try:
            yield
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            soon = SOON if self.is_here() and refused(error) else None
            detail = self.detail(f"no connection to {self.base_url}: {unconnected(error)}")
            raise Fault("net", detail, retry_after=soon) from None
        except aiohttp.ClientHttpProxyError as error:
            kind = "auth" if error.status == LOG_IN_AT_PROXY else "net"
            detail = self.detail(f"the proxy let nobody through to {self.base_url}: {error.status} {error.message}")
            raise Fault(kind, detail) from None
        except TimeoutError:
            raise Fault("stall", "nothing more was said in time", said=said()) from None
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if call.was_stale():
                raise Fault("net", "the provider had closed the idle connection") from None
            raise Fault("cut", self.detail(f"the connection was lost: {error}"), said=said()) from None
        except aiohttp.ClientPayloadError:
            raise Fault("cut", "the connection closed before the answer was whole", said=said()) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            detail = self.detail(f"the answer broke off: {error or type(error).__name__}")
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
    """Also where several addresses were tried and each refused."""
    cause = getattr(error, "os_error", None)
    return isinstance(cause, ConnectionRefusedError) or getattr(cause, "errno", None) == ECONNREFUSED


def unconnected(error: Exception) -> str:
    """Why nobody was reached, in words for whoever wrote the address."""
    import aiohttp

    cause = getattr(error, "os_error", None)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy {error.host}:{error.port} cannot be reached"
    if refused(error):
        return "nobody listens there"
    if getattr(cause, "reason", "") in NO_TLS:
        return "it does not speak TLS, so base_url should begin with http://"
    return getattr(cause, "strerror", None) or str(error) or type(error).__name__


async def lines_of(response: ClientResponse) -> AsyncIterator[list[bytes]]:
    """The whole lines of a body, as many at a time as have come in; an unfinished last line is not one."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > LONGEST:
            raise ValueError("a line without end")
        if lines:
            yield lines


def framed(response: ClientResponse) -> bool:
    """Whether HTTP itself can tell the end of this body from a cut."""
    return response.content_length is not None or "Transfer-Encoding" in response.headers


def elsewhere(response: ClientResponse) -> str:
    """Where a redirect points, as a base_url. It is not followed: the request and its key were meant for this address."""
    there = urlsplit(urljoin(str(response.url), response.headers.get("Location", "")))
    if not response.headers.get("Location") or not there.hostname:
        return "the endpoint redirects, but does not say where: check base_url"
    address = f"{there.scheme}://{there.netloc.rpartition('@')[2]}{there.path}"
    address = PATHS.sub("", address)
    return f"the endpoint redirects to {address}: set base_url to that"


def no_model(response: ClientResponse, body: bytes = b"") -> str:
    """Why a body that holds no event was never a model's; nothing if it may have been cut off."""
    whole = framed(response) or response.status == 204
    if whole and not response.content.total_bytes:
        return "the endpoint answered with nothing, so no model is there: check base_url"
    if response.content_type in PAGES or body.lstrip()[:1] == b"<":
        return "the endpoint answered with a web page, not a model: check base_url"
    if whole and response.content_type not in ("text/event-stream", "application/json"):
        return f"the endpoint answered with {response.content_type}, not a model: check base_url"
    return ""


async def opening(response: ClientResponse, within: float) -> bytes:
    """The start of an error body. The status is known already, so a body that does not come is no new fault."""
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
