"""Replies of the adversarial protocol: triage, attack, ruling. The chair sees issues and drafts under labels, without names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator

from council.engine.reply import Reply, also_named, main_field, one_row_per
from council.protocols.common.replies import PointList, ReplyPart, TextField, one_of
from council.types import Json

MAX_ISSUES = 6  # per attacker
SEVERITIES = ("FATAL", "MAJOR", "MINOR")  # the most severe first
NONE = "none"  # `same_as` of an issue that no other issue repeats, `replaced_by` of a draft that no other replaces

IssueSeverity = Annotated[
    Literal["FATAL", "MAJOR", "MINOR"],
    one_of(
        {
            "FATAL": "critical, blocker, blocking, showstopper, show stopper",
            "MAJOR": "high, medium, moderate, significant, important, serious",
            "MINOR": "low, trivial, nit, nitpick, cosmetic",
        }
    ),
]
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


def _read_landed(value: Any) -> Any:
    """Return whether an issue landed; None, which leaves it open, for anything but a clear yes or no."""
    return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value))


LandedField = Annotated[
    bool | None,
    BeforeValidator(_read_landed),
    one_of(
        {
            "true": "landed, lands, valid, upheld, accepted, sustained, yes, partly, partially, in part, partially landed",
            "false": "not landed, did not land, does not land, invalid, not valid, rejected, dismissed, no",
        }
    ),
    WithJsonSchema(
        {"type": "boolean", "description": "true if the criticism is right and matters"}
        | main_field()
        | also_named("ruling", "verdict", "valid", "upheld", "accepted", "decision", "status")
    ),
]


def _read_points(value: Any) -> Any:
    """Accept rulings as an object with the issues as keys."""
    if not isinstance(value, dict):
        return value
    return [{"issue": name, **(of if isinstance(of, dict) else {"landed": of})} for name, of in value.items()]


def _require_text(value: str) -> str:
    if not value.strip():
        raise ValueError("it is empty: write the final answer")
    return value


def _none_to_list(value: Any) -> Any:
    return [] if value is None else value


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


class Issue(BaseModel):
    severity: IssueSeverity
    hits: TextField = Field(default="", description="the claim or passage of the leading draft that this hits")
    flaw: str = Field(description="the error in it, with the evidence")
    correction: TextField = Field(default="", description="the text that should replace it")


class Attack(Reply):
    """The issues an attacker found; an empty list is valid."""

    issues: Annotated[list[Issue], BeforeValidator(_none_to_list)] = Field(
        description=f"at most {MAX_ISSUES} flaws that you can support, those that would change what the reader does first; empty if there is none"
    )
    case: TextField = Field(
        default="",
        description="where the leading draft contradicts your own and yours is right, with evidence; else empty",
    )
    concedes: Annotated[list[str], BeforeValidator(_none_to_list)] = Field(
        default=[], description="where the leading draft is right and your own is not, one line each; empty if nowhere"
    )
    verdict: AttackVerdict = Field(description="your judgement of the leading draft as a whole")

    @property
    def counted_issues(self) -> dict[int, Issue]:
        """The issues that count, by their number: all, or the most severe six."""
        by_severity = sorted(enumerate(self.issues, 1), key=lambda item: SEVERITIES.index(item[1].severity))
        return dict(sorted(by_severity[:MAX_ISSUES]))

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


def format_issue(issue: Issue) -> str:
    """Return an issue in one paragraph: `**MAJOR** the passage: the flaw Correction: the text`."""
    where = f"{issue.hits}: " if issue.hits else ""
    correction = f" Correction: {issue.correction}" if issue.correction else ""
    return f"**{issue.severity}** {where}{issue.flaw}{correction}"


_MINOR_CHANGES = re.compile(
    r"\W*surviv\w*\W+with (?:only )?(?:minor|small|slight|light|few|trivial|cosmetic)\b.*", re.I | re.DOTALL
)
_REMARK = re.compile(r"\s*[—–;(]\s*|\s-\s|[.:,]\s+")
_CONDITION = re.compile(r"(?:but|except|though|although|however|only|unless|if|provided)\b", re.IGNORECASE)


def _split_remark(value: Any) -> Any:
    """Read the reason that stands beside a ruling: `landed — it is right`, `landed: no. It is cheap.`"""
    if not isinstance(value, dict) or value.get("why") or not isinstance(value.get("landed"), str):
        return value
    ruling, *rest = _REMARK.split(
        re.sub(r"^\W*landed\s*[:=]\s*", "", value["landed"], flags=re.I).strip(" ."), maxsplit=1
    )
    if not rest:
        return {**value, "landed": ruling}
    is_clear = not _CONDITION.match(rest[0])
    return {**value, "landed": ruling if is_clear else value["landed"], "why": rest[0].rstrip(")")}


def _read_minor_changes(value: Any) -> Any:
    """Read "SURVIVED with minor modifications" by its rulings: if no issue landed, nothing was modified."""
    if not isinstance(value, dict) or not _MINOR_CHANGES.fullmatch(str(value.get("outcome"))):
        return value
    rows = _read_points(value.get("points")) or []
    landed = [Point.model_validate(row).landed for row in rows if isinstance(row, dict) and "issue" in row]
    return {**value, "outcome": "MODIFIED" if any(landed) else "SURVIVED"}


class Point(ReplyPart):
    """The ruling on one issue."""

    _read_remark = model_validator(mode="before")(_split_remark)

    issue: str = Field(
        description="the id of the issue, as listed", json_schema_extra=also_named("issue_id", "id", "name", "point")
    )
    same_as: TextField = Field(
        default=NONE,
        description=f'the id of an earlier issue that the same correction settles; "{NONE}" if there is none, or if they only overlap',
    )
    why: TextField = Field(
        default="",
        description="the reason for the ruling, in one sentence",
        json_schema_extra=also_named("reason", "reasoning", "rationale", "explanation", "because"),
    )
    landed: LandedField = None


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

    points: Annotated[list[Point], BeforeValidator(_none_to_list), BeforeValidator(_read_points)] = Field(
        default=[],
        description="one ruling for each listed issue, by its id",
        json_schema_extra=one_row_per("issue") | also_named("rulings", "issues", "decisions", "rulings_on_issues"),
    )
    outcome: Annotated[RulingOutcome, Field(json_schema_extra=also_named("verdict", "ruling", "result"))] = None
    replaced_by: TextField = Field(
        default="",
        description=f'if the outcome is OVERTURNED: the label of the draft that the answer is built from; else "{NONE}"',
    )
    changes: Annotated[list[Change], BeforeValidator(_none_to_list)] = Field(
        default=[], description="if the outcome is MODIFIED: what changed because of which issue; else empty"
    )
    answer: Annotated[str, AfterValidator(_require_text)] = Field(
        description="the final answer itself, complete, in Markdown, without mentioning the process"
    )
    assessment: TextField = Field(
        default="",
        description="how contested the answer was, what it rests on and what is still uncertain, two to four sentences",
        json_schema_extra=also_named("confidence_assessment"),
    )

    def prose(self) -> str:
        return self.answer
