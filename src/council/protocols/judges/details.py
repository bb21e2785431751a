"""What a review, a brainstorm or a research of judges stores with its verdict."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict, cast

from council.engine.minutes import Minutes
from council.types import Json


class VerdictHistory(TypedDict):
    """The verdicts of a judge; `r2` is null without a second round."""

    r1: str
    r2: str | None
    confidence: str


class OpinionRow(TypedDict):
    """The last word of one judge."""

    seat: str
    verdict: str
    confidence: str
    key_insight: str
    recommendation: str


class DroppedFinding(TypedDict):
    """A finding of an earlier version's run that its judge no longer holds."""

    seat: str
    finding: str
    severity: str


class ChangedFinding(DroppedFinding):
    """A finding that its judge withdrew or rated anew in a debate, and why."""

    id: str
    why: str
    first_severity: NotRequired[str]


class GroupingRow(TypedDict):
    """Who grouped the findings of several judges."""

    by: Literal["clerk", "rule"]
    clerk: str  # answered | off | unneeded | unavailable | absent
    why: str


class ChallengeRow(TypedDict):
    """What a judge holds against another one."""

    target_judge: str
    finding: str
    claim: str
    response: str


class AcknowledgmentRow(TypedDict):
    """A point of another judge that a judge grants."""

    source_judge: str
    point: str
    impact: str


class DebateNotesRow(TypedDict):
    """A judge's notes on the other verdicts: the fields of replies.DebateNotes."""

    revised_from: str | None
    steel_man: str
    challenges: list[ChallengeRow]
    acknowledgments: list[AcknowledgmentRow]


class SingleFamilyFinding(TypedDict):
    """A finding that only one vendor family reported."""

    family: str
    finding: str
    severity: str


class TradeOffRow(TypedDict):
    """What an option brings and costs, by the chair."""

    option: str
    buys: str
    costs: str


class ThemeRow(TypedDict):
    """Findings of a research on one subject: a theme of the chair, or a facet of a judge's reply."""

    name: str
    findings: list[str]


class ConsolidationRow(TypedDict):
    """The judges' work brought together: the fields of replies.Consolidation."""

    trade_offs: list[TradeOffRow]
    themes: list[ThemeRow]
    open_questions: list[str]
    recommendation: str
    shared_by: list[str]


class ReviewFields(TypedDict, total=False):
    """The details of a review that its report has as fields too."""

    opinions: list[OpinionRow]
    withdrawn: list[ChangedFinding]
    settled: list[ChangedFinding]
    by_rule: dict[str, str | None]
    uncorroborated: list[str]
    grouping: GroupingRow


class ReviewDetails(ReviewFields, total=False):
    """The details of a verdict. Earlier versions have fewer; a brainstorm and a research have only the last two."""

    verdicts: dict[str, VerdictHistory]
    families: dict[str, str]  # the verdict of each vendor family
    n_eff: float  # votes, where those of one family count less
    rule: str
    weakened: list[str]
    inconsistent: list[str]
    critical: bool
    problems: list[str]
    converged: bool
    r2_missing: list[str]
    rounds: int
    fidelity: str  # full | degraded
    notes: dict[str, DebateNotesRow]
    quick: bool
    profile: str | None
    mixed: int  # models of each family; 0: the families were not chosen
    holes: list[str]
    empty: bool
    dropped: list[DroppedFinding]  # of earlier versions
    consolidation: ConsolidationRow
    judges: dict[str, Json]  # their replies


class OptionRow(TypedDict):
    """An option in a judge's brainstorm."""

    name: str
    pros: list[str]
    cons: list[str]
    assessment: str


def read_details(minutes: Minutes) -> ReviewDetails:
    """Return the details that a review stored; empty for a run without a verdict."""
    return cast("ReviewDetails", minutes.verdict.get("details") or {})
