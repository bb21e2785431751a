"""Human member: asked like any other member, answered in the terminal, the web page or an MCP client."""

from __future__ import annotations

import json
from typing import Protocol

from council.errors import Fault
from council.members.base import Member, MemberContext, OnDelta, StepRequest
from council.types import Answer, Ask, JsonSchema, encode_json

HUMAN = "human"


class HumanInput(Protocol):
    """Source of a person's answers."""

    async def ask(self, key: str, seat: str, prompt: str, schema: JsonSchema | None) -> str:
        """Return the person's answer, or "" if they abstain."""
        ...


class HumanMember(Member):
    name = HUMAN
    vendor = "human"
    free = True
    backoff = 0.0

    def __init__(self, human_input: HumanInput | None = None) -> None:
        self.human_input = human_input  # None outside a run

    def prepare(self, ask: Ask) -> bytes:
        request: StepRequest = {"key": ask.key, "messages": ask.messages, "schema": ask.schema}
        return encode_json(request)

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        if self.human_input is None:
            raise Fault("model", "a person can only be asked in a run")
        request: StepRequest = json.loads(body)
        on_delta("")  # counts as activity, so the seat is not dropped as silent
        prompt = "\n\n".join(message["content"] for message in request["messages"] if message["role"] != "system")
        text = await self.human_input.ask(request["key"], request["key"].rpartition("/")[2], prompt, request["schema"])
        if not text.strip():
            raise Fault("refused", "the person abstained")
        return Answer(text, finish="spoken", model=HUMAN)

    async def probe(self) -> str:
        return "asked during the run"


def make_human_member(name: str, context: MemberContext) -> HumanMember:
    return HumanMember()
