"""What advisors and their referee return. An advisor speaks freely; only `--early-stop` asks for its stand in a field."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from council.replies.base import Reply, each
from council.types import Json


class Stand(Reply):
    """A statement with its stance beside it, so that rounds can be compared without another call."""

    statement: str = Field(description="what you say to the council, in Markdown")
    stance: Literal["for", "against", "conditional", "undecided"] = Field(
        description="where you stand on what the question proposes"
    )
    choice: str = Field(description="what you recommend, in at most six words; the same words for the same thing")
    confidence: Literal["HIGH", "MEDIUM", "LOW"]
    evidence: str = Field(
        description="if your stance or choice changed since your last round: the fact or argument that changed it; else empty"
    )

    def prose(self) -> str:
        return self.statement

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
    evidence: str = Field(
        description="the fact or argument it cited when it moved; empty if it cited none or did not move"
    )


class Refereed(Reply):
    """The referee's word after one round."""

    perspectives: list[Perspective] = Field(
        description="one for each advisor that spoke", json_schema_extra=each("advisor")
    )
    tensions: list[str] = Field(
        description="where the advisors truly conflict, and what it turns on; empty if they do not"
    )
    verdict: str = Field(description="the decision and its reasons, in Markdown; an answer, not a summary")
    next_steps: list[str] = Field(description="what to do first, second, third; each a step somebody can take")

    def prose(self) -> str:
        parts = [
            ("Perspectives", "\n".join(f"- **{one.advisor.capitalize()}:** {one.view}" for one in self.perspectives)),
            ("Tensions", _bullets(self.tensions) or "None that matter."),
            *self.moves(),
            ("Verdict", self.verdict.strip()),
            ("Next Steps", "\n".join(f"{n}. {step}" for n, step in enumerate(self.next_steps, 1)) or "None."),
        ]
        return "\n\n".join(f"## {heading}\n\n{text}" for heading, text in parts)

    def moves(self) -> list[tuple[str, str]]:
        return []


class RefereedRounds(Refereed):
    """The referee's word after several rounds: also how positions moved."""

    positions: list[Moved] = Field(
        description="one for each advisor: how its position moved from the first round to the last",
        json_schema_extra=each("advisor"),
    )

    def moves(self) -> list[tuple[str, str]]:
        head = ["| Advisor | Opened with | Ended with | Why |", "|---|---|---|---|"]
        rows = [(one.advisor.capitalize(), one.opened_with, one.ended_with, one.why) for one in self.positions]
        return [("How Positions Moved", "\n".join([*head, *(f"| {' | '.join(map(_cell, row))} |" for row in rows)]))]


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
