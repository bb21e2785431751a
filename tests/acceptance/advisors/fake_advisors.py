"""Fake advisors: deterministic statements, marked by seat and round."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acceptance.helpers import FixedAnswers, Json, Workspace, mark
from tests.fake_provider import Seen

ADVISORS = ("pragmatist", "visionary", "skeptic")
MARK = re.compile(r"mark-(\w+)-(r\d)-mark")
WHO = re.compile(r"You are the ([^,]+), an advisor")
ROUND = re.compile(r"This is round (\d) of \d")
SEATED = "\n".join(f'[seats.{name}]\nmodel = "sim:{name}"\nfallback = []' for name in ADVISORS)


def stance_fields(stance: str = "for", choice: str = "move it", confidence: str = "HIGH", evidence: str = "") -> Json:
    return {"stance": stance, "choice": choice, "confidence": confidence, "evidence": evidence}


def moved(advisor: str, *, moved: bool = False, evidence: str = "") -> Json:
    words = {"opened_with": f"{advisor} opens", "ended_with": f"{advisor} ends", "why": f"why {advisor} is there"}
    return {"advisor": advisor, "moved": moved, "evidence": evidence, **words}


@dataclass
class FakeAdvisors(FixedAnswers):
    """Fake endpoint: statements by key such as `r1/skeptic`; `ruling` overrides the referee's reply."""

    said: dict[str, Any] = field(default_factory=dict)
    ruling: Json = field(default_factory=dict)

    def who(self, seen: Seen) -> tuple[str, str]:
        asked = seen.body["messages"][1]["content"]
        if "You are the referee" in asked:
            return "referee", "referee"
        (role,) = WHO.findall(asked)
        found = ROUND.search(asked)
        return role.lower(), f"r{found[1] if found else 1}"

    def words(self, seat: str, phase: str, seen: Seen) -> str:
        if seat == "referee":
            return json.dumps(self.ruling_reply(seen))
        said = self.said.get(f"{phase}/{seat}", {})
        text = said if isinstance(said, str) else f"The {phase} of {seat}: {mark(seat, phase)}."
        if seen.schema is None:
            return text
        return json.dumps({"statement": text, **stance_fields(), **(said if isinstance(said, dict) else {})})

    def ruling_reply(self, seen: Seen) -> Json:
        assert seen.schema is not None
        parts = seen.schema["properties"]
        names = parts["perspectives"]["items"]["properties"]["advisor"]["enum"]
        told: Json = {
            "perspectives": [{"advisor": name, "view": f"the view of {name}"} for name in names],
            "tensions": ["speed against safety"],
            "decision": f"Move half of it: {mark('referee', 'referee')}.",
            "next_steps": ["Measure it.", "Move it."],
        }
        if "positions" in parts:
            told["positions"] = [moved(name) for name in names]
        return told | self.ruling


def take_seats(workspace: Workspace, more: str = SEATED) -> FakeAdvisors:
    """Configure the advisors, each on a model named like its seat; the referee is the [chair]."""
    answers = FakeAdvisors()
    workspace.answers = answers
    workspace.provider.answer = answers
    workspace.configure(more=more)
    return answers


def words_in(prompt: str) -> set[str]:
    """Return the keys of the statements in a prompt, such as `r1/skeptic`."""
    return {f"{phase}/{seat}" for seat, phase in MARK.findall(prompt)}


def keys(*phases: str, seats: tuple[str, ...] = ADVISORS) -> set[str]:
    return {f"{phase}/{seat}" for phase in phases for seat in seats}


def text_of(workspace: Workspace, report: Json) -> str:
    return Path(workspace.folder / report["report_path"]).read_text(encoding="utf-8")
