"""Replies of the adversarial protocol: triage, attack, ruling."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field, model_validator

from council.engine.reply import Reply
from council.protocols.common.replies import one_of

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
    Literal["SURVIVED", "MODIFIED", "OVERTURNED"],
    one_of(
        {
            "SURVIVED": "survives, survive, stand, stands, upheld, unchanged",
            "MODIFIED": "modify, modifies, amended, revised, survived with modifications, survives with modifications, "
            "survived with changes, modified and survived",
            "OVERTURNED": "overturn, overturns, overruled, rejected, replaced",
        }
    ),
]
LandedField = Annotated[
    bool,
    one_of(
        {
            "true": "landed, lands, valid, upheld, accepted, sustained, yes",
            "false": "not landed, did not land, does not land, invalid, not valid, rejected, dismissed, no",
        }
    ),
]


class Triage(Reply):
    """The chair's triage of the drafts: the leader, agreed and contested points, and the consensus criteria."""

    leader: str = Field(description="the seat whose draft leads, by its name in lower case")
    reason: str = Field(description="why it leads, in one or two sentences")
    agreed: list[str] = Field(description="points on which all drafts agree")
    contested: list[str] = Field(description="points on which they differ")
    same_conclusion: bool = Field(description="true if all drafts reach the same core conclusion")
    no_critical_flag: bool = Field(description="true if no draft raises a CRITICAL or FATAL flag")
    no_contradiction: bool = Field(description="true if no two drafts contradict each other on a key claim")
    mostly_high: bool = Field(description="true if the confidence marks are mostly HIGH")

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
    hits: str = Field(description="the claim or passage of the leading draft that this hits")
    flaw: str = Field(description="the error in it, with the evidence")
    correction: str = Field(description="the text that should replace it")


class Attack(Reply):
    """The issues an attacker found; an empty list is valid."""

    issues: list[Issue] = Field(description="every flaw found, the worst first; empty if there is none")
    case: str = Field(
        description="where your own draft differs, why yours is better, with evidence; empty if it does not"
    )
    verdict: AttackVerdict = Field(description="your judgement of the leading draft as a whole")

    def prose(self) -> str:
        return "\n\n".join([self.format_issues(), *filter(None, [self.case]), f"Verdict: {self.verdict}"])

    def format_issues(self, name: str = "") -> str:
        """Return the numbered issues; with `name`, under names the chair can cite: beta-1, beta-2."""
        lines = []
        for n, issue in enumerate(self.issues, 1):
            mark = f"{name}-{n}:" if name else f"{n}."
            lines.append(f"{mark} **{issue.severity}** {issue.hits}: {issue.flaw} Correction: {issue.correction}")
        return "\n".join(lines) or "No issue found."


class Point(BaseModel):
    issue: str = Field(description="the number of the attack point, as listed")
    landed: LandedField = Field(description="true if the criticism is valid")
    why: str


class Ruling(Reply):
    """The chair's verdict on the leading draft after the attack."""

    answer_field: ClassVar[str] = "answer"

    points: list[Point] = Field(description="one entry for each numbered attack point")
    outcome: RulingOutcome
    answer: str = Field(description="the final answer itself, complete, in Markdown, without mentioning the process")
    assessment: str = Field(
        description="how contested the answer was and which points are still uncertain, two to four sentences"
    )

    @model_validator(mode="after")
    def _check_overturned(self) -> Ruling:
        if self.outcome == "OVERTURNED" and not any(point.landed for point in self.points):
            raise ValueError(
                "OVERTURNED needs at least one attack point that landed; cite it in points, or rule otherwise"
            )
        return self

    def prose(self) -> str:
        return self.answer
