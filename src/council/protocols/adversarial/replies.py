"""Replies of the adversarial protocol: triage, attack, ruling."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator

from council.engine.reply import Reply, also_named, main_field, one_row_per
from council.protocols.common.replies import ReplyPart, TextField, one_of

MAX_ISSUES = 6  # per attacker
SEVERITIES = ("FATAL", "MAJOR", "MINOR")  # the most severe first
NONE = "none"  # `same_as` of an issue that no other issue repeats

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
AttackVerdict = Annotated[
    Literal["STAND", "MODIFIED", "REJECTED"],
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


class Triage(Reply):
    """The chair's triage of the drafts: agreed and contested points, the consensus criteria, and the leader."""

    # A criterion that cannot be read does not favour consensus. Without the contested points there is no triage.
    defaults: ClassVar[Mapping[str, Any]] = {
        "agreed": [],
        "reason": "",
        "same_conclusion": False,
        "no_critical_flag": False,
        "no_contradiction": False,
        "mostly_high": False,
    }

    agreed: list[str] = Field(description="points on which all drafts agree, the most important first")
    contested: list[str] = Field(description="points on which they differ, the most important first")
    same_conclusion: bool = Field(description="true if all drafts reach the same core conclusion")
    no_critical_flag: bool = Field(description="true if every draft is free of CRITICAL and FATAL flags")
    no_contradiction: bool = Field(description="true if the drafts are compatible on every key claim")
    mostly_high: bool = Field(description="true if the confidence marks are mostly HIGH")
    reason: str = Field(description="which draft leads and why, in one or two sentences")
    leader: str = Field(description="the seat whose draft leads, by its name in lower case")

    @property
    def consensus(self) -> bool:
        """Return whether all four criteria hold."""
        return self.same_conclusion and self.no_critical_flag and self.no_contradiction and self.mostly_high

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
    verdict: AttackVerdict = Field(description="your judgement of the leading draft as a whole")

    @property
    def counted_issues(self) -> dict[int, Issue]:
        """The issues that count, by their number: all, or the most severe six."""
        by_severity = sorted(enumerate(self.issues, 1), key=lambda item: SEVERITIES.index(item[1].severity))
        return dict(sorted(by_severity[:MAX_ISSUES]))

    def prose(self) -> str:
        listed = _format_issues({f"{n}.": issue for n, issue in enumerate(self.issues, 1)})
        return "\n\n".join([listed, *filter(None, [self.case]), f"Verdict: {self.verdict}"])

    def format_issues(self, name: str) -> str:
        """Return the issues that count, under ids that the chair can cite: beta-1, beta-2."""
        return _format_issues({f"{name}-{n}:": issue for n, issue in self.counted_issues.items()})


def _format_issues(issues: Mapping[str, Issue]) -> str:
    return "\n".join(_format_issue(mark, issue) for mark, issue in issues.items()) or "No issue found."


def _format_issue(mark: str, issue: Issue) -> str:
    where = f"{issue.hits}: " if issue.hits else ""
    return f"{mark} **{issue.severity}** {where}{issue.flaw}" + (
        f" Correction: {issue.correction}" if issue.correction else ""
    )


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
        description=f'the id of an earlier issue that says the same, which then gets the same ruling; "{NONE}" if there is none',
    )
    why: TextField = Field(
        default="",
        description="the reason for the ruling, in one sentence",
        json_schema_extra=also_named("reason", "reasoning", "rationale", "explanation", "because"),
    )
    landed: LandedField = None


class Ruling(Reply):
    """The chair's verdict on the leading draft after the attack."""

    answer_field: ClassVar[str] = "answer"
    open_choices: ClassVar[frozenset[str]] = frozenset({"issue", "same_as", "outcome"})
    decisive: ClassVar[frozenset[str]] = frozenset({"outcome"})
    _read_outcome = model_validator(mode="before")(_read_minor_changes)

    points: Annotated[list[Point], BeforeValidator(_none_to_list), BeforeValidator(_read_points)] = Field(
        default=[],
        description="one ruling for each listed issue, by its id",
        json_schema_extra=one_row_per("issue") | also_named("rulings", "issues", "decisions", "rulings_on_issues"),
    )
    outcome: Annotated[RulingOutcome, Field(json_schema_extra=also_named("verdict", "ruling", "result"))] = None
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
