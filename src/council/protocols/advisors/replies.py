"""Replies of advisors and their referee. Advisors answer in free text; only `--early-stop` needs a typed stance."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from council.engine.reply import Reply, also_named, one_row_per
from council.engine.reply_form import LIST_MARKER, Choices
from council.protocols.common.replies import ConfidenceField, TextField, one_of
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


ADVISOR_NAMES = also_named("name", "role", "seat", "who", "member", "speaker")


class Perspective(BaseModel):
    advisor: str = Field(description="the advisor, by its name in lower case", json_schema_extra=ADVISOR_NAMES)
    view: str = Field(
        description="its position in two or three sentences, in its strongest form",
        json_schema_extra=also_named("perspective", "position", "summary", "text", "stance", "statement"),
    )


class PositionChange(BaseModel):
    advisor: str = Field(description="the advisor, by its name in lower case", json_schema_extra=ADVISOR_NAMES)
    opened_with: str = Field(description="its position in the first round, in one sentence")
    ended_with: str = Field(description="its position in the last round, in one sentence")
    moved: bool = Field(description="true if what it would do changed, not only a date or a number")
    why: str = Field(description="what changed its mind, or why it held")
    evidence: TextField = Field(
        default="", description="the fact or argument it cited when it moved; empty if it cited none or did not move"
    )


class RefereeAccount(Reply):
    """What the referee writes before it decides: the schema lists these fields first."""

    decoration: ClassVar[frozenset[str]] = frozenset({"perspectives", "positions", "next_steps"})

    perspectives: list[Perspective] = Field(
        description="one for each advisor that spoke", json_schema_extra=one_row_per("advisor")
    )
    tensions: list[str] = Field(
        description="where the advisors truly conflict, and what it turns on; empty if they do not"
    )


class PositionChanges(RefereeAccount):
    positions: list[PositionChange] = Field(
        description="one for each advisor: how its position moved from the first round to the last",
        json_schema_extra=one_row_per("advisor"),
    )


class Refereed(RefereeAccount):
    """The referee's ruling after one round."""

    answer_field: ClassVar[str] = "decision"
    open_choices: ClassVar[frozenset[str]] = frozenset({"shared_by"})  # an unknown name is dropped

    decision: str = Field(
        description="the verdict: what to do and why, in Markdown; an answer, not a summary",
        json_schema_extra=also_named("verdict", "ruling", "recommendation", "conclusion"),
    )
    shared_by: list[str] = Field(
        default_factory=list,
        description="the advisors who themselves ended with the main action of this verdict, by name; empty if none did",
    )
    next_steps: list[str] = Field(
        description="what to do first, second, third; each an action a person can take",
        json_schema_extra=also_named("steps", "actions", "action_items"),
    )
    wrong_if: TextField = Field(
        default="", description="what would show that the verdict was wrong, in one or two sentences"
    )

    @property
    def known_shared_by(self) -> list[str] | None:
        """The advisors who share the recommendation; None if the reply does not say, or if tensions are not known."""
        is_known = "shared_by" in self.model_fields_set and not self.is_unread("shared_by")
        return self.shared_by if is_known and not self.is_unread("tensions") else None

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
            f"- **{_advisor_label(name, roles)}:** {self._note_left_out('perspectives')}"
            for name in _missing_advisors(self.perspectives, roles)
        ]
        parts = [
            ("Perspectives", "\n".join([*views, *missing])),
            (
                "Tensions",
                "\n".join(f"- {line}" for line in _clean_items(self.tensions))
                or self._note_empty("tensions", "None that matter."),
            ),
            *self.format_moves(roles, weak),
            ("Verdict", VERDICT_HEADING.sub("", self.decision.strip())),
            (
                "Next Steps",
                "\n".join(f"{n}. {step}" for n, step in enumerate(_clean_items(self.next_steps), 1))
                or self._note_empty("next_steps", "None."),
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

    def _note_empty(self, field: str, text: str) -> str:
        """Return the text of a section without items; another one if its items could not be read."""
        return UNREAD_NOTE if self.is_unread(field) else text

    def _note_left_out(self, field: str) -> str:
        return UNREAD_ROW_NOTE if self.is_unread(field) else LEFT_OUT_NOTE


class RefereedRounds(Refereed, PositionChanges):
    """The referee's ruling after several rounds, including how positions moved."""

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
            [_advisor_label(name, roles), "", "", self._note_left_out("positions")]
            for name in _missing_advisors(self.positions, roles)
        ]
        return [("How Positions Moved", "\n".join(f"| {' | '.join(map(_format_cell, row))} |" for row in rows))]


LEFT_OUT_NOTE = "left out by the referee; see the minutes for its statement."
UNREAD_NOTE = "The referee's reply could not be read here."
UNREAD_ROW_NOTE = "the referee's row could not be read; see the minutes for its statement."
WEAK_FLIP_NOTE = "**Weak flip: it cites nothing, possible anchoring.**"
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
