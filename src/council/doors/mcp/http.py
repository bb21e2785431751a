"""MCP over HTTP: loopback only, a new token at each start, exact Host and Origin checks."""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Iterable

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from council.doors.mcp.desk import CouncilTools
from council.doors.mcp.speaking import make_server
from council.errors import UsageError

LOOPBACK = "127.0.0.1"  # not configurable by any flag or variable
HTTP_PATH = "/mcp"
SHUTDOWN_TIMEOUT_S = 2  # seconds for open calls when the server stops


class HttpGuard:
    """Middleware that refuses a wrong Host, a foreign Origin, or a missing token."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._check_headers(scope["headers"]) if scope["type"] == "http" else None
        await (refusal or self.app)(scope, receive, send)

    def _check_headers(self, raw: Iterable[tuple[bytes, bytes]]) -> JSONResponse | None:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]

        def header_values(name: str) -> list[str]:
            return [value for key, value in headers if key == name]

        if len(header_values("host")) != 1 or header_values("host")[0] not in self.hosts:
            return _error_response(400, f"unknown Host: use {LOOPBACK} or localhost with the port of this server")
        if not set(header_values("origin")) <= self.origins or not set(header_values("sec-fetch-site")) <= {
            "same-origin",
            "none",
        }:
            return _error_response(403, "requests from pages of another origin are not allowed")
        if not self._is_token_valid(header_values("authorization")):
            return _error_response(
                401,
                "missing or wrong token: send the one that `council mcp --http` printed as Authorization: Bearer TOKEN",
            )
        return None

    def _is_token_valid(self, values: list[str]) -> bool:
        kind, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        return kind.lower() == "bearer" and secrets.compare_digest(token.strip().encode(), self.token.encode())


def _error_response(status: int, error: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse({"schema": "council.error/1", "error": error, "exit": 2}, status, headers)


async def run_http(council_tools: CouncilTools, port: int) -> None:
    """Serve until stopped. Print the address and the token once, on standard error."""
    listening = _listen(port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # Guard is stricter
    app = make_server(council_tools).streamable_http_app(streamable_http_path=HTTP_PATH, transport_security=unchecked)
    config = uvicorn.Config(
        HttpGuard(app, port, token), log_config=None, log_level="critical", access_log=False, proxy_headers=False, server_header=False, workers=1,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
    )  # fmt: skip
    print(f"council mcp: http://{LOOPBACK}:{port}{HTTP_PATH}", file=sys.stderr)
    print(f"Authorization: Bearer {token}", file=sys.stderr, flush=True)
    await uvicorn.Server(config).serve(sockets=[listening])


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen()  # clients may connect as soon as the address is printed
    except OSError as error:
        listening.close()
        raise UsageError(f"port {port} cannot be used ({error.strerror}): choose another with --port") from None
    return listening
