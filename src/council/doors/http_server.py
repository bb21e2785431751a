"""The socket and the settings of an HTTP server, for `council serve` and `council mcp --http`."""

from __future__ import annotations

import errno
import socket
from typing import Any

import uvicorn

from council.errors import UsageError

LOOPBACK = "127.0.0.1"
SHUTDOWN_TIMEOUT_S = 2  # seconds for open requests when the server stops


def listen(host: str, port: int) -> socket.socket:
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
    fix = "pass another --port" if host == LOOPBACK else "pass another --port or --unsafe-host"
    return f'{host} port "{port}" cannot be used ({error.strerror}): {fix}'


def make_config(app: Any, **own: Any) -> uvicorn.Config:
    """Return the settings of a server that logs nothing and trusts no proxy."""
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        workers=1,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
        **own,
    )
