"""Readers to try rankings with: each ranks by the words it is shown, whatever their labels are."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from tests.acceptance.helpers import SEATS, Cast, Json, Table
from tests.fake_provider import Seen

STONES = {"alpha": "quartz", "beta": "basalt", "gamma": "marble"}  # what stands in an answer, and names nobody
RESPONSE = re.compile(r"<<<Response ([A-Z]+) (\w+)\n.*?\b(quartz|basalt|marble)\b.*?\n\2>>>", re.DOTALL)
OF_ONE_MIND = {"alpha": ("beta", "gamma"), "beta": ("alpha", "gamma"), "gamma": ("alpha", "beta")}


def shown(prompt: str) -> dict[str, str]:
    """label → the seat whose answer stands under it."""
    author = {stone: seat for seat, stone in STONES.items()}
    return {label: author[stone] for label, _, stone in RESPONSE.findall(prompt)}


@dataclass
class Readers(Cast):
    """`orders` says in which order each seat puts the others."""

    orders: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(OF_ONE_MIND))

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


def take_seats(table: Table) -> Readers:
    cast = Readers()
    table.cast = cast
    table.provider.answer = cast
    return cast


def keys(phase: str) -> list[str]:
    return [f"{phase}/{seat}" for seat in (SEATS if phase != "synthesise" else ("chair",))]
