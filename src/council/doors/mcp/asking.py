"""Asking the client back: its roots. The older era of the protocol sends it a request, the newer one ends the call with the question
and is called again with the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from council.errors import UsageError

Context = ServerRequestContext[Any, Any]
ROOTS = "roots"
PATIENCE = 10.0  # seconds a client has to name its roots


class Needed(Exception):
    """What the client must answer before the call can go on."""

    def __init__(self, requests: Mapping[str, types.InputRequest]) -> None:
        super().__init__(", ".join(requests))
        self.requests = dict(requests)


async def declared_roots(context: Context, answers: Mapping[str, types.InputResponse]) -> list[str] | None:
    """The addresses of the client's roots; None if it declares none."""
    able = context.session.client_capabilities
    if able is None or able.roots is None:
        return None
    if is_modern(context):
        if ROOTS not in answers:
            raise Needed({ROOTS: types.ListRootsRequest()})
        return _addresses(answers[ROOTS])
    try:
        found = await context.session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, PATIENCE,
            metadata=ServerMessageMetadata(related_request_id=context.request_id),
        )  # fmt: skip
    except (MCPError, ValidationError) as error:
        raise _unnamed(str(error).partition("\n")[0]) from None
    return _addresses(found)


def is_modern(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _addresses(answer: types.InputResponse) -> list[str]:
    if not isinstance(answer, types.ListRootsResult):
        raise _unnamed(f"it answered with {type(answer).__name__}")
    return [str(root.uri) for root in answer.roots]


def _unnamed(why: str) -> UsageError:
    return UsageError(f"this client declares roots and did not name them ({why}), so nothing was done: call again")
