"""Asking the client back, for its roots and for a person's answer. In the older era of the protocol it is sent a request while the
call goes on; in the newer one the call ends with the questions, and comes again with the answers."""

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
ROOTS = "roots"
PATIENCE = 10.0  # seconds a client has to name its roots


class Needed(Exception):
    """What the client must answer before the call can go on."""

    def __init__(self, requests: Mapping[str, types.InputRequest]) -> None:
        super().__init__(", ".join(requests))
        self.requests = dict(requests)


class Caller:
    """The client's end of one call: what it can be asked, and what it has answered."""

    def __init__(self, context: Context, answers: Mapping[str, types.InputResponse]) -> None:
        self.context, self.answers = context, dict(answers)
        self.able = context.session.client_capabilities or types.ClientCapabilities()
        self.is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def roots(self) -> list[str] | None:
        """The addresses of its roots; None if it declares none."""
        if self.able.roots is None:
            return None
        try:
            found = await self._asked(ROOTS, types.ListRootsRequest(), types.ListRootsResult, PATIENCE)
        except (MCPError, ValidationError) as error:
            why = str(error).partition("\n")[0]
            raise UsageError(
                f"this client declares roots and did not name them ({why}), so nothing was done: call again"
            ) from None
        return [str(root.uri) for root in found.roots]

    @property
    def has_forms(self) -> bool:
        """Whether it can show a form to a person. Before there were modes of it, saying nothing meant forms."""
        able = self.able.elicitation
        return able is not None and (able.form is not None or able.url is None)

    async def ask(self, question: Question) -> Mapping[str, Any] | None:
        shown = types.ElicitRequestFormParams(message=question.message, requested_schema=question.schema)
        try:
            result = await self._asked(question.key, types.ElicitRequest(params=shown), types.ElicitResult)
        except (MCPError, ValidationError):
            return None
        return {"accept": result.content or None, "decline": {}}.get(result.action)

    async def _asked(self, key: str, request: Any, kind: type[Any], patience: float | None = None) -> Any:
        if self.is_modern:
            return self._answered(key, request, kind)
        own = ServerMessageMetadata(related_request_id=self.context.request_id)
        return await self.context.session.send_request(request, kind, patience, metadata=own)

    def _answered(self, key: str, request: types.InputRequest, kind: type[Any]) -> Any:
        """An answer counts once. Whatever else is asked, the roots are asked again: each call comes without the last one's answers."""
        answer = self.answers.pop(key, None)
        if isinstance(answer, kind):
            return answer
        raise Needed({key: request} | ({ROOTS: types.ListRootsRequest()} if self.able.roots else {}))
