"""Fake seats that draft, attack, rewrite, check and correct, and a chair that writes the text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from tests.acceptance.helpers import SEATS, FixedAnswers, Json, Workspace, mark
from tests.fake_provider import Seen

RESPONSE = re.compile(r"<<<Response ([A-Z]+) (\w+)\n.*?\bmark-(\w+)-\w+-mark\b.*?\n\2>>>", re.DOTALL)
TYPED_PHASES = {"Rewrite": "rewrite", "Critique": "check", "Correction": "fix"}
SOLO_PHASES = ("draft", "attack", "rewrite", "attack-again", "rewrite-again")


def show_labels(prompt: str) -> dict[str, str]:
    """Return the label of each author's version in the chair's prompt."""
    return {author: label for label, _, author in RESPONSE.findall(prompt)}


def write_text(seat: str, phase: str, euros: str) -> str:
    return f"The {phase} of this: {mark(seat, phase)}. It costs {euros} euros in all. Book the train early."


def make_error(severity: str, hits: str, flaw: str) -> Json:
    return {"severity": severity, "hits": hits, "flaw": flaw, "correction": "Count the train.", "harm": "It is dearer."}


@dataclass
class Authors(FixedAnswers):
    """Fake endpoint: every attack finds an error, every author corrects it, and the first check finds a fatal one.

    `base` is the seat on whose version the chair builds; `errors` maps the phase/seat of a critic to the errors it
    finds.
    """

    base: str = "alpha"
    errors: dict[str, list[Json]] = field(default_factory=dict)
    is_solo: bool = False

    def who(self, seen: Seen) -> tuple[str, str]:
        seat = self.seat_of.get(seen.model, seen.model)
        name = (seen.body.get("response_format") or {}).get("json_schema", {}).get("name", "")
        if self.is_solo:
            return seat, SOLO_PHASES[sum(turn["role"] == "assistant" for turn in seen.body["messages"])]
        phase = TYPED_PHASES.get(name)
        if phase in ("check", "fix"):
            first = str(seen.body["messages"][1]["content"])  # a repair turn repeats the corrected text
            is_corrected = re.search(r"mark-\w+-fix(?:-again)?-mark", first)
            return seat, f"{phase}-again" if is_corrected else phase
        if seat == "chair" and not name and any(mark(author, "rewrite") in seen.prompt for author in SEATS):
            return seat, "synthesise"
        return (seat, phase) if phase else super().who(seen)

    def words(self, seat: str, phase: str, seen: Seen) -> str:
        if seen.schema is None:
            labels = show_labels(seen.prompt)
            euros = "5,000" if labels else "4,000"
            return f"{write_text(seat, phase, euros)}{self.note_base(labels)}"
        for name, act in (("errors", self.find_errors), ("rulings", self.correct)):
            if name in seen.schema["properties"]:
                return json.dumps(act(seat, phase, seen.schema["properties"], seen.prompt))
        return super().words(seat, phase, seen)

    def find_errors(self, seat: str, phase: str, fields: Json, prompt: str) -> Json:
        usual = {
            "attack": [make_error("MAJOR", "It costs 4,000 euros in all", mark(seat, "attack"))],
            "attack-again": [make_error("MINOR", "Book the train early", mark(seat, "attack-again"))],
        }
        found = self.errors.get(f"{phase}/{seat}", usual.get(phase, []))
        same = {"same_conclusion": True} if "same_conclusion" in fields else {}
        return {"errors": found, **same}

    def note_base(self, labels: dict[str, str]) -> str:
        """Return the notes of the chair: all agree, and one version is its base."""
        if len(labels) < 2:
            return ""
        seats = [f"Response {labels[seat]}" for seat in sorted(labels)]
        notes = {"agreed": ["the price"], "contested": [], "closest_draft": f"Response {labels[self.base]}"}
        return f"\n\n```council-notes\n{json.dumps(notes | {'recommendation_shared_by': seats})}\n```"

    def correct(self, seat: str, phase: str, fields: Json, prompt: str) -> Json:
        issues = fields["rulings"]["items"]["properties"]["issue"].get("enum", [])
        euros = {"rewrite": "5,000", "fix": "6,000", "fix-again": "7,000"}[phase]
        rulings = [{"issue": issue, "landed": True, "why": "It is so."} for issue in issues]
        if "edits" in fields:
            place = re.findall(r"It costs [\d,]+ euros in all(?: mark-\S+-mark)?", prompt.split("# The text")[1])[0]
            edit = {"find": place, "replace": f"It costs {euros} euros in all {mark(seat, phase)}"}
            return {"rulings": rulings, "edits": [{"issue": issue, **edit} for issue in issues[:1]]}
        return {"rulings": rulings, "answer": write_text(seat, phase, euros)}


def take_seats(workspace: Workspace) -> Authors:
    answers = Authors()
    workspace.answers = answers
    workspace.provider.answer = answers
    return answers
