"""Replies of the adversarial protocol: triage, attack, and the ruling of a chair that sees labels without names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from council.engine.reply import Reply, also_named, one_row_per
from council.protocols.common.issues import (
    MAX_ISSUES,
    NONE,
    Issue,
    Point,
    format_issue,
    keep_most_severe,
    none_to_list,
    read_points,
)
from council.protocols.common.replies import PointList, ReplyPart, TextField, one_of, require_text
from council.types import Json

AttackStance = Literal["STAND", "MODIFIED", "REJECTED"]
AttackVerdict = Annotated[
    AttackStance,
    one_of(
        {
            "STAND": "stands, upheld, uphold, accept, accepted, holds, survives, survived",
            "MODIFIED": "modify, modifies, needs modification, stand with modifications, stands with modifications, "
            "stand with changes, accept with changes, accept with modifications, revise, revised, amend, amended",
            "REJECTED": "reject, rejects, overturn, overturned, refuted",
        }
    ),
]
RulingOutcome = Annotated[
    Literal["SURVIVED", "MODIFIED", "OVERTURNED"] | None,
    one_of(
        {
            "SURVIVED": "survives, survive, stand, stands, upheld, unchanged, survived unchanged, survived intact, "
            "survived without modifications, survived with no modifications, stands without modifications",
            "MODIFIED": "modify, modifies, amended, revised, survived with modifications, survives with modifications, "
            "stands with modifications, upheld with modifications, survived after modifications, "
            "survived but modified, modified and survived, modified but survived, survived in modified form, "
            "survives in modified form",
            "OVERTURNED": "overturn, overturns, overruled, rejected, replaced",
        },
        firm="MODIFIED",
    ),
    WithJsonSchema({"type": "string", "enum": ["SURVIVED", "MODIFIED", "OVERTURNED"]}),
]


class TriageSide(ReplyPart):
    """What one draft holds on the first contested point."""

    seat: str = Field(description="the seat of the draft, by its name in lower case")
    position: TextField = Field(
        default="", description="its position on the first contested point, in at most eight words"
    )
    assumes: TextField = Field(
        default="", description="what its position assumes, stated or implied, in at most eight words; else empty"
    )


class Triage(Reply):
    """The chair's triage of the drafts: agreed and contested points, the consensus criteria, and the leader."""

    open_choices: ClassVar[frozenset[str]] = frozenset({"seat", "same_as_leader"})  # an unknown name is dropped

    # A criterion that cannot be read does not favour consensus. Without the contested points there is no triage.
    defaults: ClassVar[Mapping[str, Any]] = {
        "agreed": [],
        "reason": "",
        "same_conclusion": False,
        "no_critical_flag": False,
        "no_contradiction": False,
        "mostly_high": False,
    }

    agreed: PointList = Field(description="conclusions that all drafts share, the most important first")
    contested: PointList = Field(
        description="points on which their conclusions differ, with the positions, the most important first; empty if there is none"
    )
    same_conclusion: bool = Field(description="true if a reader would do the same after each of the drafts")
    no_critical_flag: bool = Field(
        description="true if no draft names a flaw of its own that could defeat its conclusion"
    )
    no_contradiction: bool = Field(
        description="true if no two drafts contradict each other on a claim that a conclusion rests on"
    )
    mostly_high: bool = Field(
        description="true if at least two thirds of the marks on claims that a conclusion rests on are HIGH; false without marks"
    )
    reason: str = Field(description="which draft leads and why, in one or two sentences")
    leader: str = Field(description="the seat whose draft leads, by its name in lower case")
    same_as_leader: list[str] = Field(
        default_factory=list,
        description="every seat whose draft reaches the core conclusion of the leading draft, the leader included",
    )
    sides: list[TriageSide] = Field(
        default_factory=list,
        description="one row for each draft: what it holds on the first contested point; else empty",
    )

    @property
    def consensus(self) -> bool:
        """Return whether all four criteria hold and no conclusion is contested."""
        criteria = (self.same_conclusion, self.no_critical_flag, self.no_contradiction, self.mostly_high)
        return all(criteria) and not self.contested

    @property
    def holders(self) -> tuple[str, ...] | None:
        """The seats whose draft reaches the conclusion of the leading one; None if the triage does not say."""
        if not self.same_as_leader:
            return None
        return tuple(dict.fromkeys((self.leader, *self.same_as_leader)))

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        return plain | {"contested": []} if agree else plain

    def prose(self) -> str:
        lines = [f"Leading position: {self.leader.capitalize()}", f"Reason: {self.reason}"]
        lines += [f"Agreed: {point}" for point in self.agreed] + [f"Contested: {point}" for point in self.contested]
        return "\n".join(lines)


class Attack(Reply):
    """The issues an attacker found; an empty list is valid."""

    issues: Annotated[list[Issue], BeforeValidator(none_to_list)] = Field(
        description=f"at most {MAX_ISSUES} flaws that you can support, those that would change what the reader does first; empty if there is none"
    )
    case: TextField = Field(
        default="",
        description="where the leading draft contradicts your own and yours is right, with evidence; else empty",
    )
    concedes: Annotated[list[str], BeforeValidator(none_to_list)] = Field(
        default=[], description="where the leading draft is right and your own is not, one line each; empty if nowhere"
    )
    verdict: AttackVerdict = Field(description="your judgement of the leading draft as a whole")

    @property
    def counted_issues(self) -> dict[int, Issue]:
        """The issues that count, by their number: all, or the most severe six."""
        return keep_most_severe(self.issues)

    @property
    def stance(self) -> AttackStance:
        """The judgement that follows from the issues that count. `verdict` is the attacker's own word."""
        found = {issue.severity for issue in self.counted_issues.values()}
        return "REJECTED" if "FATAL" in found else "MODIFIED" if "MAJOR" in found else "STAND"

    def prose(self) -> str:
        issues = [f"{n}. {format_issue(issue)}" for n, issue in enumerate(self.issues, 1)] or ["No issue found."]
        concedes = [f"Concedes: {point}" for point in self.concedes]
        said = "" if self.verdict == self.stance else f" (the attacker wrote {self.verdict})"
        parts = ["\n".join(issues), self.case, "\n".join(concedes), f"Verdict: {self.stance}{said}"]
        return "\n\n".join(filter(None, parts))


_MINOR_CHANGES = re.compile(
    r"\W*surviv\w*\W+with (?:only )?(?:minor|small|slight|light|few|trivial|cosmetic)\b.*", re.I | re.DOTALL
)


def _read_minor_changes(value: Any) -> Any:
    """Read "SURVIVED with minor modifications" by its rulings: if no issue landed, nothing was modified."""
    if not isinstance(value, dict) or not _MINOR_CHANGES.fullmatch(str(value.get("outcome"))):
        return value
    rows = read_points(value.get("points")) or []
    landed = [Point.model_validate(row).landed for row in rows if isinstance(row, dict) and "issue" in row]
    return {**value, "outcome": "MODIFIED" if any(landed) else "SURVIVED"}


class Change(ReplyPart):
    """What an issue changed in the leading draft."""

    issue: TextField = Field(default="", description="the id of the issue that made it necessary")
    change: str = Field(description="what is different now, in one short sentence")


class Ruling(Reply):
    """The chair's verdict on the leading draft after the attack."""

    answer_field: ClassVar[str] = "answer"
    open_choices: ClassVar[frozenset[str]] = frozenset({"issue", "same_as", "outcome", "replaced_by"})
    decisive: ClassVar[frozenset[str]] = frozenset({"outcome"})
    _read_outcome = model_validator(mode="before")(_read_minor_changes)

    points: Annotated[list[Point], BeforeValidator(none_to_list), BeforeValidator(read_points)] = Field(
        default=[],
        description="one ruling for each listed issue, by its id",
        json_schema_extra=one_row_per("issue") | also_named("rulings", "issues", "decisions", "rulings_on_issues"),
    )
    outcome: Annotated[RulingOutcome, Field(json_schema_extra=also_named("verdict", "ruling", "result"))] = None
    replaced_by: TextField = Field(
        default="",
        description=f'if the outcome is OVERTURNED: the label of the draft that the answer is built from; else "{NONE}"',
    )
    changes: Annotated[list[Change], BeforeValidator(none_to_list)] = Field(
        default=[], description="if the outcome is MODIFIED: what changed because of which issue; else empty"
    )
    answer: Annotated[str, AfterValidator(require_text)] = Field(
        description="the final answer itself, complete, in Markdown, without mentioning the process"
    )
    assessment: TextField = Field(
        default="",
        description="how contested the answer was, what it rests on and what is still uncertain, two to four sentences",
        json_schema_extra=also_named("confidence_assessment"),
    )

    def prose(self) -> str:
        return self.answer
