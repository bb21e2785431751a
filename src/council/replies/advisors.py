"""Replies of advisors and their referee. Advisors answer in free text; only `--early-stop` needs a typed stance."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from pydantic import BaseModel, Field

from council.replies.base import Choices, Reply, each
from council.replies.judges import Confidence, Text
from council.types import Json

NOBODY: Mapping[str, str] = MappingProxyType({})


class Stand(Reply):
    """A statement with a typed stance, so that rounds can be compared without another call."""

    statement: str = Field(description="what you say to the council, in Markdown")
    stance: Literal["for", "against", "conditional", "undecided"] = Field(
        description="your stance on the question's proposal"
    )
    choice: str = Field(description="what you recommend, in at most six words; the same words for the same thing")
    confidence: Confidence
    evidence: Text = Field(
        default="",
        description="if your stance or choice changed since your last round: the fact or argument that changed it; else empty",
    )

    def prose(self) -> str:
        """Append the stance and choice, so that advisors who agree can use the same words."""
        return f"{self.statement.rstrip()}\n\n**Stance:** {self.stance}. **Choice:** {_line(self.choice)}"

    @classmethod
    def differing(cls, plain: Json, n: int) -> Json:
        return plain | {"stance": "against" if n % 2 else "for"}


class Perspective(BaseModel):
    advisor: str = Field(description="the advisor, by its name in lower case")
    view: str = Field(description="its position in two or three sentences, in its strongest form")


class Moved(BaseModel):
    advisor: str = Field(description="the advisor, by its name in lower case")
    opened_with: str = Field(description="its position in the first round, in one sentence")
    ended_with: str = Field(description="its position in the last round, in one sentence")
    moved: bool = Field(description="true if its recommendation changed")
    why: str = Field(description="what changed its mind, or why it held")
    evidence: Text = Field(
        default="", description="the fact or argument it cited when it moved; empty if it cited none or did not move"
    )


class Refereed(Reply):
    """The referee's ruling after one round."""

    perspectives: list[Perspective] = Field(
        description="one for each advisor that spoke", json_schema_extra=each("advisor")
    )
    tensions: list[str] = Field(
        description="where the advisors truly conflict, and what it turns on; empty if they do not"
    )
    decision: str = Field(description="the verdict: what to do and why, in Markdown; an answer, not a summary")
    next_steps: list[str] = Field(description="what to do first, second, third; each an action a person can take")

    def fits(self, choices: Choices) -> None:
        if not self.decision.strip():
            raise ValueError("decision is empty: decide, and say what to do and why")

    def prose(self) -> str:
        return self.told()

    def told(self, heard: Mapping[str, str] = NOBODY, weak: Collection[str] = ()) -> str:
        """Format the answer with the advisors' roles (`heard`: name → role).

        Mark advisors that the referee left out, and `weak` ones, who moved without citing evidence.
        """
        views = [f"- **{_called(one.advisor, heard)}:** {_line(one.view)}" for one in self.perspectives]
        missing = [f"- **{_called(name, heard)}:** {LEFT_OUT}" for name in _missing(self.perspectives, heard)]
        parts = [
            ("Perspectives", "\n".join([*views, *missing])),
            ("Tensions", "\n".join(f"- {line}" for line in _items(self.tensions)) or "None that matter."),
            *self.moves(heard, weak),
            ("Verdict", HEADING.sub("", self.decision.strip())),
            ("Next Steps", "\n".join(f"{n}. {step}" for n, step in enumerate(_items(self.next_steps), 1)) or "None."),
        ]
        return "\n\n".join(f"## {heading}\n\n{text}" for heading, text in parts)

    def moves(self, heard: Mapping[str, str], weak: Collection[str]) -> list[tuple[str, str]]:
        return []


class RefereedRounds(Refereed):
    """The referee's ruling after several rounds, including how positions moved."""

    positions: list[Moved] = Field(
        description="one for each advisor: how its position moved from the first round to the last",
        json_schema_extra=each("advisor"),
    )

    @property
    def moved(self) -> dict[str, Moved]:
        """The first row of each advisor."""
        first: dict[str, Moved] = {}
        for one in self.positions:
            first.setdefault(one.advisor, one)
        return first

    def moves(self, heard: Mapping[str, str], weak: Collection[str]) -> list[tuple[str, str]]:
        rows = [["Advisor", "Opened with", "Ended with", "Why"], ["---"] * 4]
        for one in self.moved.values():
            why = f"{one.why} {WEAK}" if one.advisor in weak else one.why
            rows.append([_called(one.advisor, heard), one.opened_with, one.ended_with, why])
        rows += [[_called(name, heard), "", "", LEFT_OUT] for name in _missing(self.positions, heard)]
        return [("How Positions Moved", "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows))]


LEFT_OUT = "left out by the referee; see the minutes for its statement."
WEAK = "**Weak flip: it cites nothing, possible anchoring.**"
MARKER = re.compile(r"^(?:[-*•]|\(?\d{1,2}[.)])\s+")  # models often write it into the items
HEADING = re.compile(r"\A#{1,6}\s*Verdict\s*:?\s*\n+", re.IGNORECASE)  # added by the code


def _called(name: str, heard: Mapping[str, str]) -> str:
    return heard.get(name) or name.capitalize()


def _missing(said: Sequence[Perspective | Moved], heard: Mapping[str, str]) -> list[str]:
    named = {one.advisor for one in said}
    return [name for name in heard if name not in named]


def _line(text: str) -> str:
    return " ".join(text.split())


def _items(lines: Sequence[str]) -> list[str]:
    return [item for line in lines if (item := MARKER.sub("", _line(line)))]


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")
