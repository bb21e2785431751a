"""The verdict and the report of a run as plain data: what is stored, printed as JSON and read by every view.

The rows are those of any protocol. What only one protocol has is declared in its folder.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from council.types import (
    Agreement,
    ChairNotes,
    CheckedErrorRow,
    Json,
    NotedPoint,
    OutcomeKind,
    RecordedOutcome,
    TrustFactRow,
    UsageCounts,
)

# Rows of a verdict


class FindingDispute(TypedDict):
    """A judge that opposes a finding, and why."""

    seat: str
    why: str


class FindingWords(TypedDict):
    """What one judge of a group said about its finding, or that it only supports it."""

    seat: str
    id: str
    severity: NotRequired[str]
    category: NotRequired[str]
    description: NotRequired[str]
    location: NotRequired[str]
    location_state: NotRequired[str]
    location_note: NotRequired[str]
    fix: NotRequired[str]
    first_severity: NotRequired[str]  # if it changed it
    supports: NotRequired[bool]  # in the second round; then it has no words of its own


class FindingRow(TypedDict):
    """A problem that judges found. Earlier versions and other protocols do not set every field."""

    severity: str
    category: str
    description: str
    location: str  # `path:line`, or as the judge wrote it
    fix: str
    why: str
    ref: str
    recommendation: NotRequired[str]
    found_by: list[str]
    of: int  # judges
    verified: bool  # whether the quote is in the file
    disputed: bool
    fingerprint: NotRequired[str]
    disputed_by: NotRequired[list[str]]
    disputes: NotRequired[list[FindingDispute]]
    id: NotRequired[str]
    quote: NotRequired[str]
    path: NotRequired[str]  # empty if the packet does not have the file
    line: NotRequired[int]
    location_state: NotRequired[str]
    location_note: NotRequired[str]
    by_judge: NotRequired[list[FindingWords]]
    possibly_same: NotRequired[list[str]]
    held_by: NotRequired[list[str]]  # those that found it, and those that support it
    grouped_by: NotRequired[str]
    defect: NotRequired[str]  # the clerk's words
    unchecked: NotRequired[bool]  # of a run that ended before its findings were checked


class SeatPosition(TypedDict):
    """The position of a seat in a disagreement."""

    seat: str
    position: NotRequired[str]
    assumes: NotRequired[str]
    why: NotRequired[str]
    verdict: NotRequired[str]
    family: NotRequired[str]
    stance: NotRequired[str]
    answer: NotRequired[str]
    claim: NotRequired[str]
    id: NotRequired[str]
    evidence: NotRequired[list[int]]
    round2: NotRequired[str | None]  # MAINTAIN | CONCEDE | NUANCE
    disputed_by: NotRequired[list[str]]


class Disagreement(TypedDict):
    """An issue on which seats differ. Without positions only the issue is known."""

    issue: str
    topic: NotRequired[str]
    question: NotRequired[str]
    how: NotRequired[str]  # how it was found; "possible": it may be none
    positions: NotRequired[list[SeatPosition]]


class Dissent(TypedDict):
    """A position against the answer."""

    seat: str
    position: str
    text: str


class SeatText(TypedDict):
    """What a seat says it did not consider."""

    seat: str
    text: str


Shift = TypedDict(
    "Shift",
    {
        "seat": str,
        "from": str,
        "to": str,
        "changed": bool,
        "reason": str,
        "weak": bool,  # a change without evidence
        "topic": NotRequired[str],
        "round": NotRequired[int],
    },
)
Shift.__doc__ = "A seat's position before and after it read the others."


ClaimStatus = Literal["contradicted", "qualified", "supported", "unverified"]


class ClaimRow(TypedDict):
    """A claim, who makes it, and who agrees with it or opposes it."""

    id: str
    topic: str
    question: str
    answer: str
    claim: str
    holds_when: str
    by: list[str]
    agrees: list[str]
    against: list[str]
    conceded: list[str]
    sources: list[int]
    status: ClaimStatus


class RulingRow(TypedDict):
    """The ruling on one issue of an attack."""

    id: str
    severity: str
    landed: bool | None  # None: it was not ruled on
    why: str
    same_as: NotRequired[str | None]  # the issue that says the same; both count as one
    hits: str  # the passage that it is about
    flaw: str
    correction: NotRequired[str]


class AttackPoint(RulingRow):
    """A point of an attack, which joins issues that say the same."""

    ids: list[str]
    raised_by: list[str]
    held_by: str  # the seat whose draft it is about


class SideRow(TypedDict):
    """One position on a point, who holds it, and what it assumes: the fields of types.Side."""

    seats: list[str]
    position: str
    assumes: str


class DifferenceRow(TypedDict):
    """A point on which seats differ: the fields of types.Difference."""

    point: str
    sides: list[SideRow]


class OutcomeRow(TypedDict):
    """The facts of the outcome line: the fields of types.OutcomeFacts."""

    kind: OutcomeKind
    seat: str
    replaced_by: str
    word: str
    count: int
    total: int
    changes: int


class CheckRow(TypedDict):
    """The check of a finished text: the fields of types.CheckFacts."""

    readers: list[str]
    author: str
    errors: list[CheckedErrorRow]
    checks: int
    last_readers: NotRequired[list[str]]  # absent in earlier versions


class VerdictObject(TypedDict, total=False):
    """The fields of types.Verdict as they are stored. Earlier versions and a run without an end have fewer."""

    answer: str
    verdict: str | None
    outcome: str | None
    confidence: str | None
    incomplete: str
    consensus: list[Any]
    disagreements: list[Disagreement]
    insights: list[Any]
    blind_spots: list[SeatText]
    findings: list[FindingRow]
    dissent: list[Dissent]
    shifts: list[Shift]
    sources: list[Any]
    claims: list[ClaimRow]
    caveats: list[str]
    details: Json  # declared by the protocol, which reads them
    assessment: str
    agreement: Agreement
    agreement_on: Literal["answer", "conclusions"]
    shared_by: list[str] | None
    joined: list[str]
    common: list[str]
    differences: list[DifferenceRow]
    result: OutcomeRow | None
    check: CheckRow | None
    trust_facts: list[TrustFactRow]
    notes: ChairNotes | None


# Report


class CallCounts(TypedDict):
    """Requests of the run."""

    made: int
    replayed: int
    in_doubt: int


class QuorumCounts(TypedDict):
    """How many seats had to answer, did answer, and were asked."""

    needed: int
    ok: int
    asked: int


class CostRow(TypedDict):
    """Cost of the run in dollars; `usd` is null if a price is unknown."""

    usd: float | None
    estimated: bool
    unpriced: list[str]
    in_doubt: NotRequired[float]
    cap: NotRequired[float]
    cached_saving: NotRequired[float]


class TrustRow(TypedDict):
    """How far to trust the answer. Earlier versions have no `in_favour` and no `facts`."""

    level: Literal["HIGH", "MEDIUM", "LOW", "CONTESTED"] | None  # None while the run waits or works
    because: list[str]
    in_favour: NotRequired[list[str]]
    facts: NotRequired[list[TrustFactRow]]


class DegradedRow(TypedDict):
    """A seat that did not answer, or (seat null) a problem of the whole council."""

    seat: str | None
    phase: str | None
    state: str
    reason: str


class AbsentSeat(TypedDict):
    """A seat without a verdict that failed, with the reason of its last absence."""

    name: str
    state: str
    reason: str


class StopRow(TypedDict):
    """Phases of the plan that were not needed, and what that saved."""

    what: str
    why: str
    skipped: list[str]
    calls: int
    saved: float | None


class StrongestRow(TypedDict):
    """Whether the council changed the answer of its strongest seat, and what that answer used."""

    seat: str | None  # None only in older reports
    member: str | None
    by: Literal["price", "one_member"] | None
    changed: bool | None  # None: not assessed
    unknown: str  # why `changed` is None: no_prices | not_recorded | disagree
    usd: float | None
    tokens: int


class HedgeRow(TypedDict):
    """A member that was slow, and the member that was asked too."""

    phase: str
    member: str
    by: str
    after: float


class SeatLookupRow(TypedDict):
    """A file, a name or a pattern that a seat looked up before it answered."""

    what: str
    found: int
    why: NotRequired[str]


class SeatFields(TypedDict, total=False):
    """Fields that a protocol adds to a seat of the report, or replaces."""

    text: str | None
    conclusion: str | None
    confidence: str | None


class ReportSeatRow(TypedDict):
    """A seat after the run. `text` and `conclusion` are of protocols that show each seat's whole answer."""

    name: str
    label: str
    role: str | None
    perspective: str | None
    model: str
    served_by: str | None
    vendor: str
    state: str
    verdict: str | None
    confidence: str | None
    file: str | None
    tokens: UsageCounts
    cost: float | None
    attempts: int
    seconds: float
    text: NotRequired[str | None]
    conclusion: NotRequired[str | None]
    hedged: NotRequired[list[HedgeRow]]
    looked_up: NotRequired[list[SeatLookupRow]]


class PositionCell(TypedDict):
    """The position of one seat on a row: agrees, opposes, qualifies, silent or absent."""

    seat: str
    position: str
    why: str


class PositionRow(TypedDict):
    """One finding, point or topic, and the position of every seat; the fields from `location` on are not of topics."""

    kind: Literal["finding", "point", "dispute", "claim", "note"]
    topic: str
    text: str
    status: str
    severity: str
    disputed_by: list[str]
    seats: list[PositionCell]
    ids: list[str]
    location: NotRequired[str]
    fix: NotRequired[str]
    why: NotRequired[str]
    ref: NotRequired[str]
    location_note: NotRequired[str]
    landed: NotRequired[bool]
    ruling: NotRequired[str]
    correction: NotRequired[str]


class SectionRow(TypedDict):
    """A part of the answer: a stable name, its heading and its Markdown."""

    name: str
    title: str
    text: str


class ClosestDraft(TypedDict):
    """The first statement whose wording the answer shares most."""

    seat: str
    phase: str
    share: float


class OneModelCost(TypedDict):
    """What one draft cost, and what the council cost, in dollars."""

    low: float
    high: float
    council: float


class ChangedRow(TypedDict):
    """What the council changed. A fact that the run does not support is null, empty or 0."""

    closest_draft: ClosestDraft | None
    taken_from: list[NotedPoint]
    shared_by: list[str] | None
    differed: list[str]
    agree: int
    differ: int
    only_one: int
    one_model: OneModelCost | None


class ReportObject(TypedDict):
    """The object `council.report/1` without the fields of single protocols, which render.report_object has."""

    schema: Literal["council.report/1"]
    run: str
    name: str
    status: Literal["complete", "incomplete", "failed"] | None  # None while the run waits or works
    task: str
    protocol: str
    question: str
    target: str | None
    verdict: str | None
    outcome: str | None
    confidence: str | None
    trust: TrustRow
    notes: NotRequired[ChairNotes]
    answer: str
    tail: list[str]
    seats: list[ReportSeatRow]
    chair: ReportSeatRow | None
    consensus: list[Any]
    disagreements: list[Disagreement]
    insights: list[Any]
    blind_spots: list[SeatText]
    findings: list[FindingRow]
    dissent: list[Dissent]
    shifts: list[Shift]
    sources: list[Any]
    claims: list[ClaimRow]
    check: NotRequired[CheckRow]
    by_rule: NotRequired[dict[str, str | None]]  # the verdict of a review by each rule
    uncorroborated: NotRequired[list[str]]  # judges whose FAIL the rule corroborated counts as a WARN
    positions: NotRequired[list[PositionRow]]  # of `read_report`, as are `sections` and `changed`
    sections: NotRequired[list[SectionRow]]
    changed: NotRequired[ChangedRow]
    strongest: NotRequired[StrongestRow]
    stops: NotRequired[list[StopRow]]
    degraded: list[DegradedRow]
    quorum: QuorumCounts
    calls: CallCounts
    tokens: UsageCounts
    cost: CostRow
    seconds: float
    report_path: str | None
    fork: NotRequired[dict[str, str]]
    continues: NotRequired[str]
    decision_outcome: NotRequired[RecordedOutcome]
