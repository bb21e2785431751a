"""Fake readers that rank by content, independent of the labels."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from tests.acceptance.helpers import SEATS, FixedAnswers, Json, Workspace
from tests.fake_provider import Seen

STONES = {"alpha": "quartz", "beta": "basalt", "gamma": "marble"}  # marks an answer without naming its author
RESPONSE = re.compile(r"<<<Response ([A-Z]+) (\w+)\n.*?\b(quartz|basalt|marble)\b.*?\n\2>>>", re.DOTALL)
SAME_ORDER = {"alpha": ("beta", "gamma"), "beta": ("alpha", "gamma"), "gamma": ("alpha", "beta")}


def shown(prompt: str) -> dict[str, str]:
    """Return label → the seat that wrote the answer."""
    author = {stone: seat for seat, stone in STONES.items()}
    return {label: author[stone] for label, _, stone in RESPONSE.findall(prompt)}


@dataclass
class Readers(FixedAnswers):
    """Fake endpoint; `orders` maps each seat to its ranking of the others."""

    orders: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(SAME_ORDER))

    def who(self, seen: Seen) -> tuple[str, str]:
        seat = self.seat_of.get(seen.model, seen.model)
        if seat == "chair":
            return seat, "synthesise"
        return seat, "rank" if seen.schema else "answer"

    def words(self, seat: str, phase: str, seen: Seen) -> str:
        if phase == "rank":
            return json.dumps(self.ballot(seat, seen.prompt))
        return f"The last word: {seen.marker[:2]}." if seat == "chair" else f"Build it of {STONES[seat]}."

    def ballot(self, seat: str, prompt: str) -> Json:
        label = {author: label for label, author in shown(prompt).items()}
        order = [label[author] for author in self.orders[seat] if author in label]
        reasons = [{"label": one, "why": f"Response {one} came in as number {n}."} for n, one in enumerate(order, 1)]
        return {"dispute": "", "reasons": reasons, "order": order}


def take_seats(workspace: Workspace) -> Readers:
    answers = Readers()
    workspace.answers = answers
    workspace.provider.answer = answers
    return answers


def keys(phase: str) -> list[str]:
    return [f"{phase}/{seat}" for seat in (SEATS if phase != "synthesise" else ("chair",))]
