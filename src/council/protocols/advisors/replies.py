"""Replies of advisors and their referee. Advisors answer in free text; only `--early-stop` needs a typed stance."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from council.engine.reply import Reply, one_row_per
from council.engine.reply_form import LIST_MARKER, Choices
from council.protocols.common.replies import ConfidenceField, PointList, TextField, one_of
from council.types import Json

StanceField = Annotated[
    Literal["for", "against", "conditional", "undecided"],
    one_of(
        {
            "for": "support, supports, supportive, in favor, in favour, favor, favour, pro, yes, approve",
            "against": "oppose, opposes, opposed, con, contra, no, reject",
            "conditional": "conditionally for, conditional support, for with conditions, depends, it depends, qualified, "
            "conditional yes",
            "undecided": "neutral, unsure, abstain, undetermined",
        }
    ),
]
NO_ADVISORS: Mapping[str, str] = MappingProxyType({})


class Stand(Reply):
    """A statement with a typed stance, so that rounds can be compared without another call."""

    statement: str = Field(description="what you say to the council, in Markdown")
    stance: StanceField = Field(description="your stance on the question's proposal")
    choice: str = Field(description="what you recommend, in at most six words; the same words for the same thing")
    confidence: ConfidenceField
    evidence: TextField = Field(
        default="",
        description="if your stance or choice changed since your last round: the fact or argument that changed it; else empty",
    )

    def prose(self) -> str:
        """Append the stance and choice, so that advisors who agree can use the same words."""
        return f"{self.statement.rstrip()}\n\n**Stance:** {self.stance}. **Choice:** {_one_line(self.choice)}"

    @classmethod
    def vary(cls, plain: Json, n: int) -> Json:
        return plain | {"stance": "against" if n % 2 else "for"}


class Perspective(BaseModel):
    advisor: str = Field(description="the advisor, by its name in lower case")
    view: str = Field(description="its position in two or three sentences, in its strongest form")


class TensionSide(BaseModel):
    advisor: str = Field(description="the advisor, by its name in lower case")
    position: TextField = Field(default="", description="what it holds on the first tension, in at most 15 words")
    assumes: TextField = Field(
        default="", description="the assumption that it rests on, in at most 15 words; else empty"
    )


class PositionChange(BaseModel):
    advisor: str = Field(description="the advisor, by its name in lower case")
    opened_with: str = Field(description="its position in the first round, in one sentence")
    ended_with: str = Field(description="its position in the last round, in one sentence")
    moved: bool = Field(description="true if what it would do changed, not only a date or a number")
    why: str = Field(description="what changed its mind, or why it held")
    evidence: TextField = Field(
        default="", description="the fact or argument it cited when it moved; empty if it cited none or did not move"
    )


class RefereeAccount(Reply):
    """What the referee writes before it decides: the schema lists these fields first."""

    perspectives: list[Perspective] = Field(
        description="one for each advisor that spoke", json_schema_extra=one_row_per("advisor")
    )
    tensions: PointList = Field(
        description="where the advisors truly conflict, and what it turns on; empty if they do not"
    )
    sides: list[TensionSide] = Field(
        default_factory=list, description="who holds what on the first tension, one row for each advisor; else empty"
    )


class PositionChanges(RefereeAccount):
    positions: list[PositionChange] = Field(
        description="one for each advisor: how its position moved from the first round to the last",
        json_schema_extra=one_row_per("advisor"),
    )


class Refereed(RefereeAccount):
    """The referee's ruling after one round."""

    answer_field: ClassVar[str] = "decision"
    open_choices: ClassVar[frozenset[str]] = frozenset({"shared_by", "joined"})  # an unknown name is dropped

    decision: str = Field(description="the verdict: what to do and why, in Markdown; an answer, not a summary")
    shared_by: list[str] = Field(
        default_factory=list,
        description="the advisors who themselves recommend the main action of this verdict, by name; empty if none does",
    )
    next_steps: list[str] = Field(description="what to do first, second, third; each an action a person can take")
    wrong_if: TextField = Field(
        default="", description="what would show that the verdict was wrong, in one or two sentences"
    )

    @property
    def known_shared_by(self) -> list[str] | None:
        """The advisors who share the recommendation, as the referee names them; None if the reply does not say."""
        return self.shared_by if "shared_by" in self.model_fields_set else None

    def check_choices(self, choices: Choices) -> None:
        if not self.decision.strip():
            raise ValueError("decision is empty: decide, and say what to do and why")

    def prose(self) -> str:
        return self.format_answer()

    def format_answer(self, roles: Mapping[str, str] = NO_ADVISORS, weak: Collection[str] = ()) -> str:
        """Format the answer with the advisors' roles (`roles`: name → role).

        Mark advisors that the referee left out, and `weak` ones, who moved without citing evidence.
        """
        if self.missing_parts:
            return self.decision.strip()
        views = [f"- **{_advisor_label(one.advisor, roles)}:** {_one_line(one.view)}" for one in self.perspectives]
        missing = [
            f"- **{_advisor_label(name, roles)}:** {LEFT_OUT_NOTE}"
            for name in _missing_advisors(self.perspectives, roles)
        ]
        parts = [
            ("Perspectives", "\n".join([*views, *missing])),
            ("Tensions", "\n".join(f"- {line}" for line in _clean_items(self.tensions)) or "None that matter."),
            *self.format_moves(roles, weak),
            ("Verdict", VERDICT_HEADING.sub("", self.decision.strip())),
            (
                "Next Steps",
                "\n".join(f"{n}. {step}" for n, step in enumerate(_clean_items(self.next_steps), 1)) or "None.",
            ),
            *(
                [("What Would Show That the Verdict Was Wrong", _one_line(self.wrong_if))]
                if self.wrong_if.strip()
                else []
            ),
        ]
        return "\n\n".join(f"## {heading}\n\n{text}" for heading, text in parts)

    def format_moves(self, roles: Mapping[str, str], weak: Collection[str]) -> list[tuple[str, str]]:
        return []


class RefereedRounds(Refereed, PositionChanges):
    """The referee's ruling after several rounds, including how positions moved."""

    shared_by: list[str] = Field(
        default_factory=list,
        description="the advisors who recommended the main action of this verdict in their first statement, by name; empty if none did",
    )
    joined: list[str] = Field(
        default_factory=list,
        description="the advisors who came to recommend it in a later round, by name; empty if none did",
    )

    @property
    def changes_by_advisor(self) -> dict[str, PositionChange]:
        """The first row of each advisor."""
        first: dict[str, PositionChange] = {}
        for one in self.positions:
            first.setdefault(one.advisor, one)
        return first

    def format_moves(self, roles: Mapping[str, str], weak: Collection[str]) -> list[tuple[str, str]]:
        rows = [["Advisor", "Opened with", "Ended with", "Why"], ["---"] * 4]
        for one in self.changes_by_advisor.values():
            why = f"{one.why} {WEAK_FLIP_NOTE}" if one.advisor in weak else one.why
            rows.append([_advisor_label(one.advisor, roles), one.opened_with, one.ended_with, why])
        rows += [
            [_advisor_label(name, roles), "", "", LEFT_OUT_NOTE] for name in _missing_advisors(self.positions, roles)
        ]
        return [("How Positions Moved", "\n".join(f"| {' | '.join(map(_format_cell, row))} |" for row in rows))]


LEFT_OUT_NOTE = "left out by the referee; see the minutes for its statement."
WEAK_FLIP_NOTE = "**Weak flip: it names no evidence, possible anchoring.**"
VERDICT_HEADING = re.compile(r"\A#{1,6}\s*Verdict\s*:?\s*\n+", re.IGNORECASE)  # added by the code


def _advisor_label(name: str, roles: Mapping[str, str]) -> str:
    return roles.get(name) or name.capitalize()


def _missing_advisors(said: Sequence[Perspective | PositionChange], roles: Mapping[str, str]) -> list[str]:
    named = {one.advisor for one in said}
    return [name for name in roles if name not in named]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _clean_items(lines: Sequence[str]) -> list[str]:
    return [item for line in lines if (item := LIST_MARKER.sub("", _one_line(line)))]


def _format_cell(text: str) -> str:
    return _one_line(text).replace("|", "\\|")
