"""Fake seats of four vendors that answer, check, argue and write, and a clerk."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.acceptance.helpers import SEATS, FixedAnswers, Json, Workspace, mark
from tests.fake_provider import Reply, Seen
from tests.trusted_project import trust_project

QUESTION = "What is 17 * 24?"
VENDORS = {"alpha": "north", "beta": "east", "gamma": "south", "chair": "west", "clerk": "west"}
PHASES = {"Answer": "answer", "Confirmation": "check", "Points": "points", "Arguments": "argue"}
LABEL = re.compile(r"<<<Response ([A-Z]+) (\w+)\n.*?\bmark-(\w+)-answer-mark\b.*?\n\2>>>", re.DOTALL)


def make_answer(
    seat: str, conclusion: str = "408", confidence: object = "HIGH", doubts: Sequence[str] | None = ()
) -> Json:
    said: Json = {
        "answer": f"It is {conclusion}. {mark(seat, 'answer')}",
        "conclusion": conclusion,
        "confidence": confidence,
    }
    return said | ({} if doubts is None else {"doubts": list(doubts)})


def make_error(severity: str = "MAJOR") -> Json:
    return {
        "severity": severity,
        "hits": "It is 408",
        "flaw": "It is 418.",
        "correction": "418",
        "harm": "A wrong sum.",
    }


@dataclass
class Solvers(FixedAnswers):
    """Fake endpoint: all seats answer 408 and the check finds nothing. `said` maps a seat to its answer.

    `disputed` maps a position to the seats that hold it, for the clerk; `conceding` are the seats that give in.
    """

    said: dict[str, Json] = field(default_factory=dict)
    confirmation: Json = field(default_factory=lambda: {"same_conclusion": True, "errors": []})
    disputed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shared: Sequence[str] = SEATS
    conceding: Sequence[str] = ()
    notes: Json | None = field(
        default_factory=lambda: {
            "agreed": [],
            "contested": [],
            "closest_draft": "alpha",
            "recommendation_shared_by": list(SEATS),
        }
    )

    def who(self, seen: Seen) -> tuple[str, str]:
        name = (seen.body.get("response_format") or {}).get("json_schema", {}).get("name", "")
        return self.seat_of.get(seen.model, seen.model), PHASES.get(name, "write")

    def words(self, seat: str, phase: str, seen: Seen) -> str:
        match phase:
            case "answer":
                return json.dumps(self.said.get(seat) or make_answer(seat))
            case "check":
                return json.dumps(self.confirmation)
            case "points":
                return json.dumps(self.compare(seen.prompt))
            case "argue":
                return json.dumps(self.argue(seat, seen))
        return self.write(seat)

    def compare(self, prompt: str) -> Json:
        labels = {author: label for label, _, author in LABEL.findall(prompt)}
        sides = [
            {"answers": [labels[seat] for seat in seats if seat in labels], "position": position, "assumes": ""}
            for position, seats in self.disputed.items()
        ]
        rows = [{"point": "The product", "sides": sides}] if sides else []
        shared = [labels[seat] for seat in self.shared if seat in labels]
        return {"agreed": [], "disputed": rows, "unique": [], "shared_conclusion": shared}

    def argue(self, seat: str, seen: Seen) -> Json:
        assert seen.schema is not None
        ids = seen.schema["properties"]["points"]["items"]["properties"]["point"]["enum"]
        stance = "concedes" if seat in self.conceding else "holds"
        return {"points": [{"point": one, "stance": stance, "argument": mark(seat, "argue")} for one in ids]}

    def write(self, seat: str) -> str:
        notes = f"\n\n```council-notes\n{json.dumps(self.notes)}\n```" if self.notes else ""
        return f"It is 408: {mark(seat, 'write')}.{notes}"


def seat_vendors(workspace: Workspace, vendors: Mapping[str, str] | None = None, more: str = "") -> None:
    """Write council.toml: each seat has a model of its name, of its vendor."""
    held = VENDORS | dict(vendors or {})
    lines = []
    for vendor in dict.fromkeys(held.values()):
        lines += [
            f"[providers.{vendor}]",
            'wire = "openai"',
            f'base_url = "{workspace.provider.base_url}"',
            "backoff = 0.01",
            "",
        ]
    for seat, vendor in held.items():
        table = "[chair]" if seat == "chair" else f"[seats.{seat}]"
        lines += [table, f'model = "{vendor}:{seat}"', "fallback = []", ""]
    (workspace.folder / "council.toml").write_text("\n".join([*lines, more]), encoding="utf-8")
    trust_project(workspace.folder)


def take_seats(workspace: Workspace, vendors: Mapping[str, str] | None = None, more: str = "") -> Solvers:
    answers = Solvers()
    answers.seat_of["clerk"] = "clerk"
    workspace.answers = answers
    workspace.provider.answer = answers
    seat_vendors(workspace, vendors, more)
    return answers


ABSENT = Reply(status=500)
