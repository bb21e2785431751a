"""Fake seats that answer a question, and a clerk that compares the answers by their content."""

from __future__ import annotations

import json
import re

from tests.acceptance.helpers import FixedAnswers, Json, Workspace, mark
from tests.fake_provider import Seen

RESPONSE = re.compile(r"<<<Response ([A-Z]+) (\w+)\n.*?\bmark-(\w+)-answer-mark\b.*?\n\2>>>", re.DOTALL)
CLERK_CONFIG = '[seats.clerk]\nmodel = "sim:clerk"\nfallback = []\n'


def write_answer(seat: str) -> str:
    return f"Take the train: {mark(seat, 'answer')}.\n\nConclusion: Take the train.\nConfidence: HIGH"


class PanelAnswers(FixedAnswers):
    """Fake endpoint: all seats conclude the same, the first two differ from the others on one point."""

    def who(self, seen: Seen) -> tuple[str, str]:
        seat = self.seat_of.get(seen.model, seen.model)
        return seat, "compare" if seen.schema else "answer"

    def words(self, seat: str, phase: str, seen: Seen) -> str:
        return json.dumps(self.compare(seen.prompt)) if phase == "compare" else write_answer(seat)

    def compare(self, prompt: str) -> Json:
        labels = [label for label, _, _ in sorted(RESPONSE.findall(prompt), key=lambda found: found[2])]
        sides = [
            {"answers": labels[:2], "position": "book early", "assumes": "prices rise"},
            {"answers": labels[2:], "position": "book late", "assumes": ""},
        ]
        return {
            "agreed": [{"point": "Take the train.", "answers": labels}],
            "disputed": [{"point": "when to book", "sides": sides}] if labels[2:] else [],
            "unique": [{"answer": labels[0], "point": "Seats are scarce."}],
            "shared_conclusion": labels,
        }


def take_seats(workspace: Workspace) -> PanelAnswers:
    """Seat these answers, and a clerk with a model of its own."""
    workspace.configure(more=CLERK_CONFIG)
    answers = PanelAnswers()
    workspace.answers = answers
    workspace.provider.answer = answers
    return answers
