"""HTTP client of the wires: shared connections, proxies, timeouts, and errors as Faults.

aiohttp is imported at the first call, so that importing a wire is fast.
"""

from __future__ import annotations

import asyncio
import codecs
import io
import os
import re
import socket
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from errno import ECONNREFUSED
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit
from weakref import WeakKeyDictionary

from council.errors import Fault
from council.members.base import check_key
from council.members.wires.error_responses import ErrorResponse, classify_error, parse_error_body, parse_retry_after
from council.members.wires.limit_headers import read_limits
from council.settings.network import is_loopback, proxy_for
from council.text_cleanup import redact_line
from council.threads import run_in_daemon_thread
from council.types import Delivery, current_delivery

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, TCPConnector
    from aiohttp.abc import AbstractResolver


T = TypeVar("T")
STALE_CONNECTION_S = 0.5  # a reused connection that fails within this time was already closed by the server
MAX_ERROR_BODY_BYTES = 64 * 1024  # maximum size of an error body
MAX_BATCH_LINES = 1_000  # lines that are parsed before the event loop runs again
MIN_PAUSE_S = 0.001  # a shorter pause takes longer than what it saves
INFLATED_CHUNK_BYTES = 64 * 1024  # a compressed body is inflated in pieces of this size
LOOPBACK_RETRY_S = 0.05  # retry delay for a refused connection to this machine: the server may be starting
PROXY_AUTH_REQUIRED = 407
# OpenSSL reasons for a plain HTTP endpoint.
PLAIN_HTTP_REASONS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
# Configuration advice: fault kind → (text required in the message, advice).
CONFIG_HINTS = {
    "endpoint": ("", ": base_url does not look like a model endpoint; is /v1 missing, or is wire wrong?"),
    "model": ("v1/responses", ' (wire = "openai-responses" in its [providers] table)'),
    "parameter": ("max_completion_tokens", ' (token_field = "max_completion_tokens" in its [providers] table)'),
}
HTML_TYPES = ("text/html", "application/xhtml+xml")
WIRE_PATHS = re.compile(r"/(chat/completions|responses|messages|models(/[^/]*)?)$")  # what the wires append to base_url


@dataclass(frozen=True, slots=True)
class ByteLimits:
    """Limits of one response, after decompression. aiohttp limits the headers."""

    body: int = 8 * 2**20  # a body that is not a stream
    stream: int = 32 * 2**20  # a stream: its events repeat about 300 bytes around each token
    line: int = 2 * 2**20  # a line of a stream, which is one event


class ConnectionPool:
    """Connections to one provider in one event loop."""

    def __init__(self, limit: int, reuse: bool, proxy: str | None) -> None:
        import aiohttp

        self.proxy = proxy

        # A semaphore limits the calls, not the connector, so that waiting does not count against the connect timeout.
        self.semaphore = asyncio.Semaphore(limit)
        connector = _connector_class()(
            limit=0, force_close=not reuse, socket_factory=_open_socket, resolver=_resolver_class()()
        )
        self.session: ClientSession = aiohttp.ClientSession(
            connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
        )
        self.users: set[int] = set()
        self.timeouts: set[asyncio.Timeout] = set()  # of the calls in flight

    def close_spoiled_connections(self) -> None:
        """Close idle connections on which data has arrived: aiohttp would take it for the next answer."""
        idle: Mapping[Any, Iterable[Any]] = getattr(self.session.connector, "_conns", {})
        for protocol, _ in chain.from_iterable(idle.values()):
            if protocol.should_close:
                protocol.close()

    async def close(self) -> None:
        for clock in self.timeouts:  # aiohttp does not cancel a call that waits for its first byte
            clock.reschedule(0.0)
        await self.session.close()


@dataclass(slots=True)
class RequestState:
    sent: float = 0.0
    is_new_connection: bool = False
    has_response: bool = False
    transport: asyncio.Transport | None = None
    delivery: Delivery = field(default_factory=lambda: current_delivery.get() or Delivery())


_current_request: ContextVar[RequestState] = ContextVar("current_request")


def _open_socket(address: tuple[Any, ...]) -> socket.socket:
    """Open the socket of a new connection, and record that the request does not reuse one."""
    if state := _current_request.get(None):
        state.is_new_connection = True
    return socket.socket(*address[:3])


@cache
def _connector_class() -> type[TCPConnector]:
    import aiohttp

    class Connector(aiohttp.TCPConnector):
        """Records when a request has its connection: up to then nothing of it was sent."""

        async def connect(self, req: Any, traces: Any, timeout: Any) -> Any:
            connection = await super().connect(req, traces, timeout)
            if state := _current_request.get(None):
                state.delivery.is_connecting, state.delivery.is_sent = False, True
                state.transport = connection.transport
            return connection

    return Connector


@cache
def _resolver_class() -> type[AbstractResolver]:
    from aiohttp.abc import AbstractResolver, ResolveResult

    class Resolver(AbstractResolver):
        """Looks host names up in threads of its own: no other work, and no end of the process, waits for them."""

        async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[ResolveResult]:
            found = await run_in_daemon_thread(partial(_look_up, host, port, family))
            numeric = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
            return [
                ResolveResult(hostname=host, host=address, port=port, family=kind, proto=proto, flags=numeric)
                for kind, proto, address in found
            ]

        async def close(self) -> None:
            pass

    return Resolver


def _look_up(host: str, port: int, family: int) -> list[tuple[int, int, str]]:
    """Return the addresses of a host, each with its family and protocol."""
    found = []
    rows = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    for kind, _, proto, _, address in rows:
        text = str(address[0])
        if kind == socket.AF_INET6 and len(address) == 4 and address[3]:  # a link-local address needs its interface
            text = socket.getnameinfo(address, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)[0]
        found.append((int(kind), proto, text))
    return found


ReadResponse = Callable[["ClientResponse", asyncio.Timeout], Awaitable[T]]
PoolKey = tuple[str, int, bool, str | None]  # base_url, limit, reuse, proxy
Pools = dict[PoolKey, ConnectionPool]
_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Pools] = WeakKeyDictionary()
# Event loops whose connections stay open between runs, each with a generator that it closes at its end.
_kept: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncGenerator[None, None]] = WeakKeyDictionary()
_inherited: list[object] = []  # of the parent process: closing it here would disturb the parent's event loops


def keep_connections() -> None:
    """Keep the connections of this event loop open between runs, until the loop ends or `close_connections`."""
    loop = asyncio.get_running_loop()
    if loop in _kept:
        return
    for other in [one for one in _kept if one.is_closed()]:  # it ended without `shutdown_asyncgens`
        _close_kept(other)
    generator = _close_at_loop_end()
    with suppress(StopIteration):
        generator.asend(None).send(None)  # the loop notes a generator that has started
    _kept[loop] = generator


async def _close_at_loop_end() -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        _kept.pop(asyncio.get_running_loop(), None)
        await _close_idle_pools()


async def _close_idle_pools() -> None:
    pools = _pools.get(asyncio.get_running_loop(), {})
    for key, pool in [(key, pool) for key, pool in pools.items() if not pool.users]:
        del pools[key]
        await pool.close()


def close_connections() -> None:
    """Close the connections that are kept open. Those of running calls are closed when their members are."""
    for loop in list(_kept):
        _close_kept(loop)


def _close_kept(loop: asyncio.AbstractEventLoop) -> None:
    _kept.pop(loop, None)
    if loop.is_closed():
        for pool in _pools.pop(loop, {}).values():
            _run_to_first_wait(pool.session.close())
    elif loop.is_running():
        asyncio.run_coroutine_threadsafe(_close_idle_pools(), loop)
    else:
        work = _close_idle_pools()
        try:
            loop.run_until_complete(work)
        except RuntimeError:  # this thread runs another loop; the garbage collector closes the sockets
            work.close()


def _run_to_first_wait(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine without an event loop as far as it goes: a session of a closed loop is closed without waiting."""
    try:
        work.send(None)
    except (StopIteration, RuntimeError):
        return
    work.close()


def _forget_inherited() -> None:
    """After a fork: leave the parent's connections alone."""
    _inherited.append((dict(_pools), dict(_kept)))
    _pools.clear()
    _kept.clear()


os.register_at_fork(after_in_child=_forget_inherited)


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
        limits: ByteLimits | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", **headers}
        self.secrets = (secret, urlsplit(base_url).password or "")
        self.connect = connect
        self.limit, self.reuse = limit, reuse
        self.limits = limits or ByteLimits()
        self.key_name = ""  # variable of the key, for messages
        self._key: PoolKey | None = None

    def join_pool(self) -> ConnectionPool:
        if self._key is None:
            self._key = (self.base_url, self.limit, self.reuse, proxy_for(self.base_url))
        pools = _pools.setdefault(asyncio.get_running_loop(), {})
        if self._key not in pools:
            pools[self._key] = ConnectionPool(self.limit, self.reuse, self._key[-1])
        pools[self._key].users.add(id(self))
        return pools[self._key]

    async def post(
        self, path: str, body: bytes, first_byte: float | None, read: ReadResponse[T], partial_text: Callable[[], str]
    ) -> T:
        """Read the response with `read`, which gets it and its timeout: `first_byte` seconds until the reader resets
        it.

        Without `first_byte` an open connection may stay silent: the caller's deadline ends the wait.
        """
        # Above 1 MiB, aiohttp needs a file object so that sending does not block the event loop.
        data = body if len(body) < 2**20 else io.BytesIO(body)
        pool, state = self.join_pool(), RequestState()
        state.delivery.is_connecting, state.delivery.is_sent = True, False
        try:
            async with pool.semaphore, asyncio.timeout(first_byte) as clock:
                pool.timeouts.add(clock)
                try:
                    async with self._request(pool, state, "POST", path, data) as response:
                        state.has_response = True
                        if state.delivery.on_limits and (stated := read_limits(response.headers)):
                            state.delivery.on_limits(stated)
                        return await read(response, clock)
                finally:
                    pool.timeouts.discard(clock)
        except network_errors() as error:
            raise self._make_network_fault(error, state, partial_text) from None
        finally:
            # asyncio would keep a connection that is given up until the endpoint has read the request.
            if state.transport is not None and state.transport.is_closing():
                state.transport.abort()

    async def get(self, path: str, within: float) -> bytes:
        return await self.exchange("GET", path, within)

    async def exchange(
        self, method: str, path: str, within: float, data: bytes | None = None, content_type: str = ""
    ) -> bytes:
        """Send a request that is no call of a model, and return the body of its response."""
        pool, state = self.join_pool(), RequestState()
        body = None if data is None else io.BytesIO(data)
        try:
            async with (
                asyncio.timeout(within),
                self._request(pool, state, method, path, body, content_type) as response,
            ):
                await self.check_status(response)
                return await read_body(response, self.limits.body)
        except network_errors() as error:
            raise self._make_network_fault(error, state) from None

    def _request(
        self,
        pool: ConnectionPool,
        state: RequestState,
        method: str,
        path: str,
        data: bytes | io.BytesIO | None = None,
        content_type: str = "",
    ) -> Any:
        import aiohttp

        check_key(self.secrets[0])
        state.sent = time.monotonic()
        _current_request.set(state)
        # The connect timeout covers DNS and TLS; the reader sets the other timeouts.
        clocks = aiohttp.ClientTimeout(total=None, connect=self.connect)
        pool.close_spoiled_connections()
        return pool.session.request(
            method,
            self.base_url + path,
            data=data,
            headers={**self.headers, "Content-Type": content_type} if content_type else self.headers,
            timeout=clocks,
            proxy=pool.proxy,
            allow_redirects=False,
        )

    def _make_network_fault(
        self, error: Exception, state: RequestState, partial_text: Callable[[], str] = str
    ) -> Fault:
        import aiohttp

        is_invalid_host = isinstance(error, UnicodeError) and not state.has_response  # before anything is sent
        kinds = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
        if is_invalid_host or isinstance(error, kinds):
            why = "the host name is not valid" if is_invalid_host else describe_connection_error(error)
            delay = LOOPBACK_RETRY_S if self.is_local() and is_connection_refused(error) else None
            return Fault("net", self.format_detail(f"no connection to {self.base_url}: {why}"), retry_after=delay)
        if isinstance(error, aiohttp.ClientHttpProxyError):
            kind = "auth" if error.status == PROXY_AUTH_REQUIRED else "net"
            detail = f"the proxy refused to connect to {self.base_url}: {error.status} {error.message}"
            return Fault(kind, self.format_detail(detail))
        if isinstance(error, TimeoutError):
            return Fault("stall", "timed out waiting for data", said=partial_text())
        if isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)):
            is_reused = not state.is_new_connection and not state.has_response
            if is_reused and time.monotonic() - state.sent < STALE_CONNECTION_S:
                return Fault("net", "the provider had closed the idle connection")
            return Fault("cut", self.format_detail(f"the connection was lost: {error}"), said=partial_text())
        if isinstance(error, aiohttp.ClientPayloadError):
            if is_header_flood(error):
                return Fault("flood", "a header of the response is too long")
            return Fault("cut", "the connection closed before the answer was complete", said=partial_text())
        if is_header_flood(error):
            return Fault("flood", "the headers of the response are too long")
        detail = self.format_detail(f"the answer ended early: {error or type(error).__name__}")
        return Fault("cut", detail, said=partial_text())

    async def check_status(self, response: ClientResponse) -> None:
        if not 200 <= response.status < 300:
            raise self.make_fault(response, await self.read_error(response))

    async def read_error(self, response: ClientResponse) -> ErrorResponse:
        return parse_error_body(await read_error_body(response, self.connect), response.reason or "")

    def make_fault(self, response: ClientResponse, error: ErrorResponse) -> Fault:
        after = parse_retry_after(response.headers.get("Retry-After"), response.headers.get("retry-after-ms"))
        after = error.retry_after if after is None else after
        status, kind = response.status, classify_error(response.status, error, after)
        message = describe_redirect(response) if status < 400 else error.message.removeprefix(f"{status}: ")
        hint = CONFIG_HINTS.get(kind, ("", ""))
        advice = hint[1] if status >= 400 and hint[0] in message else ""
        check = f"; check {self.key_name}" if kind == "auth" and self.key_name else ""
        return Fault(
            kind, self.format_detail(f"{status}: {message}{advice}") + check, retry_after=after, has_status=True
        )

    def format_detail(self, message: str) -> str:
        return redact_line(message, self.secrets)

    def is_local(self) -> bool:
        return is_loopback(urlsplit(self.base_url).hostname or "")

    async def close(self) -> None:
        loop, key = asyncio.get_running_loop(), self._key
        pools = _pools.get(loop, {})
        if key is None or key not in pools:
            return
        pool = pools[key]
        pool.users.discard(id(self))
        if not pool.users and loop not in _kept:
            del pools[key]
            await pool.close()


@cache
def network_errors() -> tuple[type[Exception], ...]:
    import aiohttp

    return (aiohttp.ClientError, OSError, ValueError)


def is_connection_refused(error: Exception) -> bool:
    """Return whether the connection was refused, also when several addresses were tried."""
    cause = getattr(error, "os_error", None)
    return isinstance(cause, ConnectionRefusedError) or getattr(cause, "errno", None) == ECONNREFUSED


def describe_connection_error(error: Exception) -> str:
    import aiohttp

    cause = getattr(error, "os_error", None)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return f"the proxy {error.host}:{error.port} cannot be reached"
    if is_connection_refused(error):
        return "connection refused"
    if getattr(cause, "reason", "") in PLAIN_HTTP_REASONS:
        return "the server does not use TLS: start base_url with http://"
    return getattr(cause, "strerror", None) or str(error) or type(error).__name__


def is_header_flood(error: BaseException | None) -> bool:
    """Return whether the HTTP parser stopped at a header that is too long, or at too many headers."""
    from aiohttp.http_exceptions import LineTooLong

    while error is not None and not isinstance(error, LineTooLong):
        if "too many headers" in str(error).lower():
            return True
        error = error.__cause__ or error.__context__
    return error is not None


# Bodies


def make_flood(what: str, limit: int) -> Fault:
    size = f"{limit / 2**20:g} MB" if limit >= 2**20 else f"{limit / 1024:g} KB"
    return Fault("flood", f"{what} is larger than {size}")


def iter_chunks(response: ClientResponse, limit: int) -> AsyncIterator[bytes]:
    """Return the chunks of a body. The caller counts them; `limit` is for the compressed bytes of a compressed body."""
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return response.content.iter_any()
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise Fault("endpoint", redact_line(f'the endpoint sent a body compressed with "{encoding}": turn it off'))
    return _iter_inflated(response, limit)


async def _iter_inflated(response: ClientResponse, limit: int) -> AsyncIterator[bytes]:
    """Yield a compressed body in small pieces, so that the caller can stop at its limit."""
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, by its header
    try:
        async for chunk in response.content.iter_any():
            if response.content.total_bytes > limit:
                raise make_flood("the compressed response", limit)
            while chunk and not inflater.eof:
                yield inflater.decompress(chunk, INFLATED_CHUNK_BYTES)
                chunk = inflater.unconsumed_tail
        if rest := inflater.flush():
            yield rest
    except zlib.error as error:
        raise ValueError(f"the compressed body is damaged: {error}") from None


async def read_body(response: ClientResponse, limit: int) -> bytes:
    """Return the whole body, or raise Fault if it is larger than its limit."""
    if (response.content_length or 0) > limit:
        raise make_flood("the response", limit)
    chunks, size = [], 0
    async for chunk in iter_chunks(response, limit):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise make_flood("the response", limit)
    return b"".join(chunks)


async def iter_lines(response: ClientResponse, limits: ByteLimits) -> AsyncIterator[list[bytes]]:
    """Yield the complete lines of a body in batches. They end with LF, CR or both. Ignore an unfinished last line."""
    unfinished, size, received, is_first = list[bytes](), 0, 0, True
    is_after_cr = False
    async for chunk in iter_chunks(response, limits.stream):
        received += len(chunk)
        if received > limits.stream:
            raise make_flood("the response", limits.stream)
        if is_after_cr:  # the line has ended with the last chunk
            chunk = chunk.removeprefix(b"\n")
            is_after_cr = False
        if b"\r" in chunk:
            is_after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        size += len(chunk)
        unfinished.append(chunk)
        if b"\n" in chunk:
            *lines, rest = b"".join(unfinished).split(b"\n")
            unfinished, size = [rest], len(rest)
            if is_first:
                lines[0], is_first = lines[0].removeprefix(codecs.BOM_UTF8), False
            for at in range(0, len(lines), MAX_BATCH_LINES):
                if at:
                    await asyncio.sleep(0)  # for the timeouts, and for the other seats
                yield lines[at : at + MAX_BATCH_LINES]
        if size > limits.line:
            raise make_flood("a line of the response", limits.line)


def pause_reading(response: ClientResponse, seconds: float) -> None:
    """Leave what arrives in these seconds to the operating system, so that one read gets all of it."""
    connection = response.connection  # None at the end of the body
    if seconds >= MIN_PAUSE_S and connection and (transport := connection.transport):
        transport.pause_reading()
        asyncio.get_running_loop().call_later(seconds, transport.resume_reading)


def is_framed(response: ClientResponse) -> bool:
    """Return whether HTTP can distinguish the end of this body from a lost connection."""
    return response.content_length is not None or "Transfer-Encoding" in response.headers


def describe_redirect(response: ClientResponse) -> str:
    """Describe a redirect and the base_url it suggests. Redirects are not followed, to keep the key at its address."""
    if response.status < 300:
        return "the endpoint asks for another protocol than HTTP/1.1: check base_url"
    try:
        target = urlsplit(urljoin(str(response.url), response.headers.get("Location", "")))
    except ValueError:  # for example "http://[::1"
        target = urlsplit("")
    if not response.headers.get("Location") or not target.hostname:
        return "the endpoint redirects without a location: check base_url"
    address = f"{target.scheme}://{target.netloc.rpartition('@')[2]}{target.path}"
    address = WIRE_PATHS.sub("", address)
    return f"the endpoint redirects to {address}: set base_url to it"


def describe_non_model_response(response: ClientResponse, body: bytes = b"") -> str:
    """Describe a body without events that is not from a model. Return an empty string if it may be cut off."""
    is_whole = is_framed(response) or response.status == 204
    if is_whole and not response.content.total_bytes:
        return "the endpoint returned an empty response, not a model's answer: check base_url"
    if response.content_type in HTML_TYPES or body.lstrip()[:1] == b"<":
        return "the endpoint returned a web page, not a model's answer: check base_url"
    if is_whole and response.content_type not in ("text/event-stream", "application/json"):
        return f"the endpoint returned {response.content_type}, not a model's answer: check base_url"
    return ""


async def read_error_body(response: ClientResponse, within: float) -> bytes:
    """Read the start of an error body. Ignore read errors, because the status is already known."""
    body = b""
    with suppress(*network_errors(), Fault):
        async with asyncio.timeout(within):
            async for chunk in iter_chunks(response, MAX_ERROR_BODY_BYTES):
                body += chunk
                if len(body) >= MAX_ERROR_BODY_BYTES:
                    break
    return body[:MAX_ERROR_BODY_BYTES]
