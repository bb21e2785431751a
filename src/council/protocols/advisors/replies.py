"""Replies of advisors and their referee. Advisors answer in free text; only `--early-stop` needs a typed stance."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from council.engine.reply import Reply, also_named, one_row_per
from council.engine.reply_form import LIST_MARKER, Choices
from council.language import LANGUAGES, detect_language
from council.protocols.common.replies import ConfidenceField, PointList, TextField, one_of
from council.protocols.common.sections import Section
from council.protocols.common.stances import REHEARSED_CHOICE
from council.types import Json
from council.wording import Wording, load_wording

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
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        stance = "against" if n % 2 and not agree else "for"
        return plain | {"stance": stance, "choice": REHEARSED_CHOICE, "confidence": "HIGH"}


ADVISOR_NAMES = also_named("name", "role", "seat", "who", "member", "speaker")


class Perspective(BaseModel):
    advisor: str = Field(description="the advisor, by its name in lower case", json_schema_extra=ADVISOR_NAMES)
    view: str = Field(
        description="its position in two sentences, in its strongest form",
        json_schema_extra=also_named("perspective", "position", "summary", "text", "stance", "statement"),
    )


class TensionSide(BaseModel):
    advisor: str = Field(description="the advisor, by its name in lower case", json_schema_extra=ADVISOR_NAMES)
    position: TextField = Field(default="", description="what it holds on the first tension, in at most eight words")
    assumes: TextField = Field(
        default="", description="what its position assumes, stated or implied, in at most eight words; else empty"
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

    decision: str = Field(
        description="the verdict: what to do and why, in Markdown; an answer, not a summary",
        json_schema_extra=also_named("verdict", "ruling", "recommendation", "conclusion"),
    )
    shared_by: list[str] = Field(
        default_factory=list,
        description="the advisors who themselves recommend the main action of this verdict, by name; empty if none does",
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
        return self.format_answer(self.build_sections())

    def format_answer(self, sections: Sequence[Section]) -> str:
        """Return the answer: its sections, or the decision alone if the referee answered in prose."""
        return "\n\n".join(section.format() for section in sections) or self.decision.strip()

    def build_sections(
        self, roles: Mapping[str, str] = NO_ADVISORS, weak: Collection[str] = (), question: str = ""
    ) -> list[Section]:
        """Return the sections of the answer with the advisors' roles (`roles`: name → role), in the language of the
        decision.

        The verdict is first; the reply has it last.

        Mark advisors that the referee left out, and `weak` ones, who moved without citing evidence.
        """
        if self.missing_parts:
            return []
        wording = load_wording(detect_language(self._join_texts(), question))
        texts = {
            "decision": _strip_verdict_heading(self.decision.strip()),
            "next_steps": "\n".join(f"{n}. {step}" for n, step in enumerate(_clean_items(self.next_steps), 1))
            or self._note_empty("next_steps", "none_sentence", wording),
            "wrong_if": _one_line(self.wrong_if),
            "tensions": "\n".join(f"- {line}" for line in _clean_items(self.tensions))
            or self._note_empty("tensions", "no_tensions", wording),
            "moves": self.format_moves(roles, weak, wording),
            "perspectives": self._format_views(roles, wording),
        }
        return [Section(name, wording.heading(SECTION_TITLES[name]), text) for name, text in texts.items() if text]

    def _join_texts(self) -> str:
        views = [one.view for one in self.perspectives]
        return "\n".join([self.decision, *self.next_steps, *self.tensions, *views, self.wrong_if])

    def _format_views(self, roles: Mapping[str, str], wording: Wording) -> str:
        views = [(one.advisor, _one_line(one.view)) for one in self.perspectives]
        left_out = self._note_left_out("perspectives", wording)
        views += [(name, left_out) for name in _missing_advisors(self.perspectives, roles)]
        colon = wording.colon.rstrip()
        return "\n".join(f"- **{_advisor_label(name, roles)}{colon}** {view}" for name, view in views)

    def format_moves(self, roles: Mapping[str, str], weak: Collection[str], wording: Wording) -> str:
        """Return the table of how positions moved; empty after one round."""
        return ""

    def _note_empty(self, field: str, key: str, wording: Wording) -> str:
        """Return the text of a section without items; another one if its items could not be read."""
        return wording.heading("unread" if self.is_unread(field) else key)

    def _note_left_out(self, field: str, wording: Wording) -> str:
        return wording.heading("unread_row" if self.is_unread(field) else "left_out")


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

    def format_moves(self, roles: Mapping[str, str], weak: Collection[str], wording: Wording) -> str:
        t = wording.heading
        rows = [[t("advisor"), t("opened_with"), t("ended_with"), t("why")], ["---"] * 4]
        for one in self.changes_by_advisor.values():
            cells = map(_format_cell, [_advisor_label(one.advisor, roles), one.opened_with, one.ended_with])
            note = f"**{t('weak_flip')}**" if one.advisor in weak else ""
            rows.append([*cells, f"{_format_cell(one.why)} {note}".strip()])
        left_out = self._note_left_out("positions", wording)
        for name in _missing_advisors(self.positions, roles):
            rows.append([_format_cell(_advisor_label(name, roles)), "", "", left_out])
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)


SECTION_TITLES = {  # the name of each section in the report, and its heading
    "perspectives": "perspectives",
    "tensions": "tensions",
    "moves": "how_positions_moved",
    "decision": "verdict",
    "next_steps": "next_steps",
    "wrong_if": "wrong_if",
}


def _strip_verdict_heading(decision: str) -> str:
    """Return the decision without a heading that code adds, in any language."""
    if not decision.startswith("#"):
        return decision
    titles = "|".join(re.escape(load_wording(language).heading("verdict")) for language in LANGUAGES)
    return re.sub(rf"\A#{{1,6}}\s*(?:{titles})\s*[:：]?\s*\n+", "", decision, flags=re.IGNORECASE)


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
