"""Requests to the client for its roots and for a person's answer.

Older protocol versions send the client a request during the call. Newer ones end the call with the requests, and the client
repeats the call with the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from council.doors.mcp.people import Question
from council.errors import UsageError

Context = ServerRequestContext[Any, Any]
ROOTS_KEY = "roots"
ROOTS_TIMEOUT_S = 10.0  # seconds to wait for the client's roots


class InputRequired(Exception):
    """Requests that the client must answer before the call can continue."""

    def __init__(self, requests: Mapping[str, types.InputRequest]) -> None:
        super().__init__(", ".join(requests))
        self.requests = dict(requests)


class ClientCall:
    """One tool call: the client's capabilities and the answers it sent."""

    def __init__(self, context: Context, answers: Mapping[str, types.InputResponse]) -> None:
        self.context, self.answers = context, dict(answers)
        self.capabilities = context.session.client_capabilities or types.ClientCapabilities()
        self.is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def roots(self) -> list[str] | None:
        """Return the URIs of the client's roots, or None if it declares none."""
        if self.capabilities.roots is None:
            return None
        try:
            result = await self._request(ROOTS_KEY, types.ListRootsRequest(), types.ListRootsResult, ROOTS_TIMEOUT_S)
        except (MCPError, ValidationError) as error:
            why = str(error).partition("\n")[0]
            raise UsageError(f"this client declares roots but did not list them ({why}): call again") from None
        return [str(root.uri) for root in result.roots]

    @property
    def has_forms(self) -> bool:
        """Whether the client can show forms. Before elicitation had modes, an empty capability meant forms."""
        elicitation = self.capabilities.elicitation
        return elicitation is not None and (elicitation.form is not None or elicitation.url is None)

    async def ask(self, question: Question) -> Mapping[str, Any] | None:
        params = types.ElicitRequestFormParams(message=question.message, requested_schema=question.schema)
        try:
            result = await self._request(question.key, types.ElicitRequest(params=params), types.ElicitResult)
        except (MCPError, ValidationError):
            return None
        return {"accept": result.content or None, "decline": {}}.get(result.action)

    async def _request(self, key: str, request: Any, kind: type[Any], timeout: float | None = None) -> Any:
        if self.is_modern:
            return self._pop_answer(key, request, kind)
        metadata = ServerMessageMetadata(related_request_id=self.context.request_id)
        return await self.context.session.send_request(request, kind, timeout, metadata=metadata)

    def _pop_answer(self, key: str, request: types.InputRequest, kind: type[Any]) -> Any:
        """Return the client's answer once, or raise the request for it.

        Request the roots again with it: a repeated call carries only the answers to the last requests.
        """
        answer = self.answers.pop(key, None)
        if isinstance(answer, kind):
            return answer
        raise InputRequired({key: request} | ({ROOTS_KEY: types.ListRootsRequest()} if self.capabilities.roots else {}))
