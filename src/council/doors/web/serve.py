"""`council serve`: listen on loopback, and run the server."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from council.doors.http_server import LOOPBACK, listen, make_config
from council.doors.web.app import create_app
from council.doors.web.app_state import AppState
from council.doors.web.guard import Guard
from council.errors import UsageError
from council.runs.servers import code_url, load_token, new_token, register_server, run_url
from council.settings.schema import quote_value

DEFAULT_PORT = 8377
DEFAULT_PORTS = {"http": 80, "https": 443}
HEAD_TIMEOUT_S = 10.0  # seconds for the head of a request
MAX_WAITING = 100  # connections that have not sent the head of a request


@dataclass(frozen=True, slots=True)
class Address:
    """Address the server listens on: loopback, or the one given by --unsafe-host."""

    host: str = LOOPBACK
    port: int | None = None  # None: the default, or any free port; 0: any free port
    public_url: str = ""  # of a reverse proxy, without a path

    @property
    def host_names(self) -> tuple[str, ...]:
        if self.host == LOOPBACK or ipaddress.ip_address(self.host).is_unspecified:
            return (LOOPBACK, "localhost")
        return (f"[{self.host}]" if ":" in self.host else self.host,)

    def make_origins(self, port: int) -> dict[str, str]:
        """Return the accepted Host headers, each with the origin of its page: those of this machine, and the public
        one.
        """
        names = [f"{name}:{port}" for name in self.host_names]
        public = {urlsplit(self.public_url).netloc: self.public_url} if self.public_url else {}
        return {name: f"http://{name}" for name in names} | public

    def listen(self) -> socket.socket:
        if self.port is not None:
            return listen(self.host, self.port)
        try:
            return listen(self.host, DEFAULT_PORT)
        except UsageError:
            return listen(self.host, 0)


def parse_address(unsafe_host: str | None, port: int | None, public_url: str | None = None) -> Address:
    public = _parse_public_url(public_url) if public_url is not None else ""
    if unsafe_host is None:
        return Address(LOOPBACK, port, public)
    try:
        host = ipaddress.ip_address(unsafe_host)
    except ValueError:
        raise UsageError(
            f"--unsafe-host {quote_value(unsafe_host)} is not an IP address: pass one of this machine, such as 192.168.1.20"
        ) from None
    if host.is_unspecified and not public:
        raise UsageError(
            f"--unsafe-host {quote_value(unsafe_host)} would listen on every address: pass one address of this machine, "
            "or the address of the proxy in front of it with --public-url"
        )
    return Address(str(host), port, public)


def _parse_public_url(url: str) -> str:
    """Return the origin that browsers write for an address."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except (ValueError, UnicodeError):
        parts, host, port = urlsplit(""), "", None
    is_plain = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username)
    if parts.scheme not in ("http", "https") or not host or not is_plain:
        raise UsageError(
            f"--public-url {quote_value(url)} is not the address of a server: pass one such as https://council.example.com, without a path"
        )
    name = f"[{host}]" if ":" in host else host
    is_usual = port in (None, DEFAULT_PORTS[parts.scheme])
    return f"{parts.scheme}://{name}" if is_usual else f"{parts.scheme}://{name}:{port}"


class TimedConnection(H11Protocol):
    """Connection whose client has a few seconds for the head of a request.

    Of too many that wait, the oldest is closed.
    """

    waiting: ClassVar[dict[TimedConnection, asyncio.TimerHandle]]  # of one server, oldest first

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._wait_for_head()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self in self.waiting:
            return
        self.waiting[self] = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.abort)
        if len(self.waiting) > MAX_WAITING:
            oldest = next(iter(self.waiting))
            oldest._stop_waiting()  # now, because many connections may begin before it is lost
            oldest.transport.abort()

    def _stop_waiting(self) -> None:
        if timer := self.waiting.pop(self, None):
            timer.cancel()


class Server(uvicorn.Server):
    """Server that ends the event streams before it waits for open requests."""

    def __init__(self, config: uvicorn.Config, app_state: AppState, guard: Guard) -> None:
        super().__init__(config)
        self.app_state, self.guard = app_state, guard

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.app_state.feeds.close()
        await super().shutdown(sockets)


def make_server(app_state: AppState, address: Address, listening: socket.socket) -> tuple[Server, str]:
    """Return the server and its URL with the token."""
    is_safe = address.host == LOOPBACK or address.public_url  # else the token, which others may read, ends with it
    token = load_token(app_state.owner.env) if is_safe else new_token()
    port = listening.getsockname()[1]
    app: Any = create_app(app_state, token, address.make_origins(port))
    config = make_config(app, ws="none", lifespan="on", http=type("Connection", (TimedConnection,), {"waiting": {}}))
    return Server(config, app_state, app), f"http://{address.host_names[0]}:{port}/#token={token}"


def serve(
    app_state: AppState, address: Address, *, open_page: bool, print_url: Callable[[str], None], run: str = ""
) -> int:
    """Serve until interrupted. Print one line: the URL, of the run if there is one."""
    listening = address.listen()
    server, url = make_server(app_state, address, listening)
    page = f"{address.public_url}/{url[url.index('#') :]}" if address.public_url else url
    if address.host != LOOPBACK:
        print(_format_public_warning(address), file=sys.stderr)
    with register_server(url, app_state.owner.env), suppress(KeyboardInterrupt):  # the normal way to stop
        print_url(run_url(page, run) if run else page)
        if open_page:
            opened = code_url(page, server.guard.codes.create())  # other users see the arguments of the browser
            start_browser(run_url(opened, run) if run else opened)
        try:
            asyncio.run(server.serve(sockets=[listening]))
        finally:
            if app_state.start_error:
                raise app_state.start_error
    return 0


def start_browser(url: str) -> None:
    """Open the address without waiting: some browsers block until they are closed. Say so if there is none."""

    def work() -> None:
        if not webbrowser.open(url):
            print("council: no browser could be opened: open the address above in one", file=sys.stderr)

    threading.Thread(target=work, daemon=True).start()


def _format_public_warning(address: Address) -> str:
    if address.public_url:
        return f"council: warning: listening on {address.host} without encryption: only the proxy of {address.public_url} should reach this port"
    return (
        f"council: warning: listening on {address.host}, which other machines can reach without encryption: anyone with the token "
        "can read the files in the roots and spend your money"
    )
