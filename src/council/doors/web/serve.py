"""`council serve`: listen on loopback, and run the server."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import uvicorn

from council.doors.web.app import create_app
from council.doors.web.app_state import AppState
from council.errors import UsageError
from council.runs.servers import load_token, new_token, register_server, run_url
from council.settings.schema import quote_value

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8377
SHUTDOWN_TIMEOUT_S = 2  # seconds for open requests when the server stops


@dataclass(frozen=True, slots=True)
class Address:
    """Address the server listens on: loopback, or the one given by --unsafe-host."""

    host: str = LOOPBACK
    port: int | None = None  # None: the default, or any free port; 0: any free port

    @property
    def host_names(self) -> tuple[str, ...]:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return (name, "localhost") if self.host == LOOPBACK else (name,)

    def listen(self) -> socket.socket:
        if self.port is not None:
            return _listen(self.host, self.port)
        try:
            return _listen(self.host, DEFAULT_PORT)
        except UsageError:
            return _listen(self.host, 0)


def parse_address(unsafe_host: str | None, port: int | None) -> Address:
    if unsafe_host is None:
        return Address(LOOPBACK, port)
    try:
        host = ipaddress.ip_address(unsafe_host)
    except ValueError:
        raise UsageError(
            f"--unsafe-host {quote_value(unsafe_host)} is not an IP address: pass one of this machine, such as 192.168.1.20"
        ) from None
    if host.is_unspecified:
        raise UsageError(
            f"--unsafe-host {quote_value(unsafe_host)} would listen on every address: pass one address of this machine"
        )
    return Address(str(host), port)


def _listen(host: str, port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()  # clients may connect as soon as the line is printed
    except OSError as error:
        listening.close()
        raise UsageError(_format_bind_error(error, host, port)) from None
    return listening


def _format_bind_error(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f'port "{port}" is already in use: pass another --port, or --port 0 for any free port'
    return f'{host} port "{port}" cannot be used ({error.strerror}): pass another --port or --unsafe-host'


class Server(uvicorn.Server):
    """Server that ends the event streams before it waits for open requests."""

    def __init__(self, config: uvicorn.Config, app_state: AppState) -> None:
        super().__init__(config)
        self.app_state = app_state

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.app_state.feeds.close()
        await super().shutdown(sockets)


def make_server(app_state: AppState, address: Address, listening: socket.socket) -> tuple[Server, str]:
    """Return the server and its URL with the token."""
    is_local = address.host == LOOPBACK  # elsewhere others may read the token, so it ends with the server
    token = load_token(app_state.owner.env) if is_local else new_token()
    port = listening.getsockname()[1]
    app: Any = create_app(app_state, token, address.host_names, port)
    config = uvicorn.Config(
        app, log_config=None, log_level="critical", access_log=False, proxy_headers=False, server_header=False,
        ws="none", workers=1, timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S, lifespan="on",
    )  # fmt: skip
    return Server(config, app_state), f"http://{address.host_names[0]}:{port}/#token={token}"


def serve(
    app_state: AppState, address: Address, *, open_page: bool, print_url: Callable[[str], None], run: str = ""
) -> int:
    """Serve until interrupted. Print one line: the URL, of the run if there is one."""
    listening = address.listen()
    server, url = make_server(app_state, address, listening)
    shown = run_url(url, run) if run else url
    if address.host != LOOPBACK:
        print(_format_public_warning(address), file=sys.stderr)
    with register_server(url, app_state.owner.env), suppress(KeyboardInterrupt):  # the normal way to stop
        print_url(shown)
        if open_page:
            start_browser(shown)
        asyncio.run(server.serve(sockets=[listening]))
    return 0


def start_browser(url: str) -> None:
    """Open the address without waiting: some browsers block until they are closed. Say so if there is none."""

    def work() -> None:
        if not webbrowser.open(url):
            print("council: no browser could be opened: open the address above in one", file=sys.stderr)

    threading.Thread(target=work, daemon=True).start()


def _format_public_warning(address: Address) -> str:
    return (
        f"council: warning: listening on {address.host}, which other machines can reach without encryption: anyone with the token "
        "can read the files in the roots and spend your money"
    )
