"""Fake seats whose drafts have a typed conclusion, as `--early-stop` asks for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.acceptance.helpers import SEATS, FixedAnswers, Json, Workspace, mark
from tests.fake_provider import Seen

FIRM: Json = {"conclusion": "Yes", "confidence": "HIGH", "doubts": []}


@dataclass
class FakeDrafts(FixedAnswers):
    """Fake endpoint: all drafts agree. `said` has the fields or the whole text of a seat's draft instead."""

    said: dict[str, Any] = field(default_factory=dict)

    def who(self, seen: Seen) -> tuple[str, str]:
        seat = self.seat_of.get(seen.model, seen.model)
        if (seen.body.get("response_format") or {}).get("json_schema", {}).get("name", "") == "Draft":
            return seat, "draft"
        if seat == "chair" or any(mark(name, "improve") in seen.prompt for name in SEATS):
            return seat, "synthesise"
        return super().who(seen)

    def words(self, seat: str, phase: str, seen: Seen) -> str:
        if phase != "draft" or seen.schema is None:
            return super().words(seat, phase, seen)
        said = self.said.get(seat, {})
        return said if isinstance(said, str) else json.dumps({"draft": draft_text(seat), **FIRM, **said})


def draft_text(seat: str) -> str:
    return f"The draft of {seat}: {mark(seat, 'draft')}. " + "It has its reasons and its steps. " * 5


def take_seats(workspace: Workspace) -> FakeDrafts:
    answers = FakeDrafts()
    workspace.answers = answers
    workspace.provider.answer = answers
    return answers
