"""Over HTTP: on this machine alone, with a token of this start, for an exact Host and Origin."""

from __future__ import annotations

import secrets
import socket
import sys
from collections.abc import Iterable

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from council.doors.mcp.desk import Desk
from council.doors.mcp.speaking import server_of
from council.errors import UsageError

LOOPBACK = "127.0.0.1"  # nothing widens this: no flag, no variable
PATH = "/mcp"
GOODBYE = 2  # seconds that calls under way have when the server is stopped


class Guard:
    """Refuses whatever is not a client of this start: another page, another host's name, no token."""

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(scope["headers"]) if scope["type"] == "http" else None
        await (refused or self.app)(scope, receive, send)

    def _refusal(self, raw: Iterable[tuple[bytes, bytes]]) -> JSONResponse | None:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]

        def said(name: str) -> list[str]:
            return [value for key, value in headers if key == name]

        if len(said("host")) != 1 or said("host")[0] not in self.hosts:
            return _refused(400, f"the Host of this server is {LOOPBACK} with its port, and no other name")
        if not set(said("origin")) <= self.origins or not set(said("sec-fetch-site")) <= {"same-origin", "none"}:
            return _refused(403, "a page of another origin may not call this server")
        if not self._knows(said("authorization")):
            return _refused(401, "say the token that `council mcp --http` printed: Authorization: Bearer TOKEN")
        return None

    def _knows(self, said: list[str]) -> bool:
        kind, _, token = said[0].partition(" ") if len(said) == 1 else ("", "", "")
        return kind.lower() == "bearer" and secrets.compare_digest(token.strip().encode(), self.token.encode())


def _refused(status: int, error: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse({"schema": "council.error/1", "error": error, "exit": 2}, status, headers)


async def over_http(desk: Desk, port: int) -> None:
    """Until it is stopped. The address and the token are said once, on standard error."""
    listening = _bound(port)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the guard is stricter
    app = server_of(desk).streamable_http_app(streamable_http_path=PATH, transport_security=unchecked)
    config = uvicorn.Config(
        Guard(app, port, token), log_config=None, log_level="critical", access_log=False, proxy_headers=False, server_header=False, workers=1,
        timeout_graceful_shutdown=GOODBYE,
    )  # fmt: skip
    print(f"council mcp: http://{LOOPBACK}:{port}{PATH}", file=sys.stderr)
    print(f"Authorization: Bearer {token}", file=sys.stderr, flush=True)
    await uvicorn.Server(config).serve(sockets=[listening])


def _bound(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
        listening.listen()  # whoever reads the address may call at once
    except OSError as error:
        listening.close()
        raise UsageError(f"port {port} cannot be used ({error.strerror}): choose another with --port") from None
    return listening
