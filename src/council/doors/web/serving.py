"""`council serve`: a socket on this machine alone, a token for this start, and the server on it."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import uvicorn

from council.doors.web.app import application
from council.doors.web.hall import Hall
from council.errors import UsageError
from council.settings import quoted

LOOPBACK = "127.0.0.1"
USUAL_PORT = 8377
GRACE = 2  # seconds open requests have when the server is told to stop


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens. Another address than this machine's own is named by a flag that says what it is."""

    host: str = LOOPBACK
    port: int | None = None  # None: the usual one, or any that is free; 0: any that is free

    @property
    def names(self) -> tuple[str, ...]:
        own = f"[{self.host}]" if ":" in self.host else self.host
        return (own, "localhost") if self.host == LOOPBACK else (own,)

    def bound(self) -> socket.socket:
        if self.port is not None:
            return _bound(self.host, self.port)
        try:
            return _bound(self.host, USUAL_PORT)
        except UsageError:
            return _bound(self.host, 0)


def address(unsafe_host: str | None, port: int | None) -> Address:
    if unsafe_host is None:
        return Address(LOOPBACK, port)
    try:
        host = ipaddress.ip_address(unsafe_host)
    except ValueError:
        raise UsageError(
            f"--unsafe-host {quoted(unsafe_host)} is no address: name one of this machine's, such as 192.168.1.20"
        ) from None
    if host.is_unspecified:
        raise UsageError(
            f"--unsafe-host {quoted(unsafe_host)} would listen on every address: name the one that others reach this machine by"
        )
    return Address(str(host), port)


def _bound(host: str, port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()  # whoever reads the line may come at once
    except OSError as error:
        listening.close()
        raise UsageError(_why(error, host, port)) from None
    return listening


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f'port "{port}" is taken by another program, nothing was started: name another with --port, or any that is free with --port 0'
    return (
        f'{host} port "{port}" cannot be listened on ({error.strerror}), nothing was started: name another with --port'
    )


class Server(uvicorn.Server):
    """Streams never end by themselves: they are ended before the server waits for what is open."""

    def __init__(self, config: uvicorn.Config, hall: Hall) -> None:
        super().__init__(config)
        self.hall = hall

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.hall.feeds.close()
        await super().shutdown(sockets)


def made(hall: Hall, where: Address, listening: socket.socket) -> tuple[Server, str]:
    """The server, and the address to open, which is all that is needed to get in."""
    token, port = secrets.token_urlsafe(32), listening.getsockname()[1]
    app: Any = application(hall, token, where.names, port)
    config = uvicorn.Config(
        app, log_config=None, log_level="critical", access_log=False, proxy_headers=False, server_header=False,
        ws="none", workers=1, timeout_graceful_shutdown=GRACE, lifespan="on",
    )  # fmt: skip
    return Server(config, hall), f"http://{where.names[0]}:{port}/#token={token}"


def serve(hall: Hall, where: Address, *, open_page: bool, say: Callable[[str], None]) -> int:
    """Serve until somebody says stop. Prints one line: the address."""
    listening = where.bound()
    server, url = made(hall, where, listening)
    if where.host != LOOPBACK:
        print(_warning(where), file=sys.stderr)
    say(url)
    if open_page:
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()  # some wait until they are closed
    with suppress(KeyboardInterrupt):  # that is how it is stopped
        asyncio.run(server.serve(sockets=[listening]))
    return 0


def _warning(where: Address) -> str:
    return (
        f"council: this listens on {where.host}, not on this machine alone: whoever can reach it and learns the token can read "
        "the files of the roots and spend your money, and nothing on the way is encrypted"
    )
