"""The objects `council.report/1` and `council.error/1`. scripts/make_schemas.py generates their JSON Schemas. Needs pydantic: import it lazily."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

Count = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]
Amount = Annotated[float, Field(ge=0)]

Tokens = TypedDict("Tokens", {"in": Count, "out": Count, "cached": Count})
Tokens.__doc__ = "Token counts. `in` includes the tokens read from a cache."
Fork = TypedDict("Fork", {"run": str, "from": str})
Fork.__doc__ = "The run that this one is a fork of, and the phase it starts from; absent for other runs."


class ReportSeat(TypedDict):
    """A seat after the run."""

    name: Name
    label: str
    role: str | None
    perspective: str | None
    model: Annotated[str, Field(description="The requested member.")]
    served_by: Annotated[str | None, Field(description="The member that answered last; null if none did.")]
    vendor: str
    state: Name
    verdict: str | None
    confidence: str | None
    file: str | None
    tokens: Tokens
    cost: Amount | None
    attempts: Annotated[
        Count,
        Field(
            description="Requests for this seat in all rounds, with retries and repair turns: 3 after three rounds without a retry."
        ),
    ]
    seconds: Amount


class Degraded(TypedDict):
    """A seat that did not answer, or (seat null) a problem of the whole council."""

    seat: str | None
    phase: str | None
    state: str
    reason: str


class Quorum(TypedDict):
    """How many seats had to answer, did answer, and were asked."""

    needed: Count
    ok: Count
    asked: Count


class Calls(TypedDict):
    """Requests of the run."""

    made: Annotated[Count, Field(description="Requests sent by this process.")]
    replayed: Annotated[Count, Field(description="Answers taken from the ledger.")]
    in_doubt: Annotated[Count, Field(description="Requests sent again because a crash left them open.")]


class Cost(TypedDict):
    """Cost of the run in dollars."""

    usd: Annotated[Amount | None, Field(description="Null if a price is unknown.")]
    estimated: Annotated[bool, Field(description="Whether part of the amount is an estimate.")]
    unpriced: list[str]
    cap: NotRequired[Annotated[Amount, Field(description="The maximum cost; absent without a cap.")]]


class Trust(TypedDict):
    """How far to trust the answer, computed from the facts of the run; never a model's claim about itself."""

    level: Literal["HIGH", "MEDIUM", "LOW", "CONTESTED"]
    because: Annotated[list[str], Field(description="Every reason that limits the level; empty for HIGH.")]


class OpinionRow(TypedDict):
    """The last word of one judge."""

    seat: str
    verdict: str
    confidence: str
    key_insight: str
    recommendation: str


class NotedPoint(TypedDict):
    """A point, and the seat that made it."""

    seat: Name
    point: str


class ContestedSide(TypedDict):
    """The position of one seat on a contested point, and what it assumes."""

    seat: Name
    position: str
    assumes: str


class ContestedPoint(TypedDict):
    """A point on which the seats differ."""

    point: str
    sides: list[ContestedSide]


class Notes(TypedDict):
    """The chair's notes on a free-text answer. Texts are the chair's; seats that it could not name are left out."""

    agreed: list[str]
    contested: list[ContestedPoint]
    unique: Annotated[list[NotedPoint], Field(description="Points that only one seat made.")]
    taken_from: list[NotedPoint]
    closest_draft: str | None
    recommendation_shared_by: Annotated[
        list[str] | None, Field(description="The seats that share the recommendation; null if the notes do not say.")
    ]


class RulingRow(TypedDict):
    """The chair's ruling on one issue of an attack."""

    id: Name
    severity: Literal["FATAL", "MAJOR", "MINOR"]
    landed: Annotated[bool | None, Field(description="Null if the chair did not rule on it: the issue is open.")]
    why: str
    same_as: Annotated[str | None, Field(description="The issue that says the same; both count as one.")]
    hits: Annotated[str, Field(description="The passage that the issue is about.")]
    flaw: str


class RankedSeat(TypedDict):
    """A row of the ranking table."""

    seat: Any
    place: Any
    mean_rank: Any
    borda: Any
    ballots: Any
    firsts: Any


class ReaderAgreement(TypedDict):
    """How often two readers agreed."""

    readers: Any
    same: Any
    compared: Any


class CastBallot(TypedDict):
    """The ballot of one reader."""

    dispute: Any
    order: Any


class Ranking(TypedDict):
    """Only of the ranking protocol: the table by mean rank, the winner, the agreement of readers, and every ballot."""

    table: list[RankedSeat]
    winner: str | None
    differ: Annotated[bool, Field(description="Whether the order by Borda points differs from the table.")]
    agreement: list[ReaderAgreement]
    ballots: dict[str, CastBallot]


class ReportObject(TypedDict):
    """What a run with --json prints when it ends, for every status."""

    schema: Literal["council.report/1"]
    run: Name
    name: str
    status: Literal["complete", "incomplete", "failed"]
    task: Literal["ask", "validate", "brainstorm", "research"]
    protocol: Name
    question: str
    target: str | None
    verdict: Literal["PASS", "WARN", "FAIL", "DISAGREE"] | None
    outcome: Literal["SURVIVED", "MODIFIED", "OVERTURNED"] | None
    confidence: Literal["HIGH", "MEDIUM", "LOW", "CONTESTED"] | None
    trust: NotRequired[Trust]
    notes: NotRequired[Notes]
    answer: str
    seats: list[ReportSeat]
    chair: NotRequired[ReportSeat | None]
    consensus: list[Any]
    disagreements: list[Any]
    insights: list[Any]
    blind_spots: list[Any]
    findings: list[Any]
    dissent: list[Any]
    shifts: list[Any]
    sources: list[Any]
    claims: NotRequired[
        Annotated[list[Any], Field(description="Each claim with its status, supporters, opponents and sources.")]
    ]
    leader: NotRequired[
        Annotated[str, Field(description="Only of the adversarial protocol: the seat whose draft led.")]
    ]
    leader_reason: NotRequired[str]
    agreed: NotRequired[Annotated[list[str], Field(description="Points on which all drafts agree, by the triage.")]]
    contested: NotRequired[Annotated[list[str], Field(description="Points on which the drafts differ, by the triage.")]]
    rulings: NotRequired[list[RulingRow]]
    ranking: NotRequired[Ranking]
    opinions: NotRequired[
        Annotated[
            list[OpinionRow], Field(description="Only of a review: verdict, key insight and advice of each judge.")
        ]
    ]
    withdrawn: NotRequired[
        Annotated[
            list[Any], Field(description="Only of a debate: findings that their judge withdrew, with the reason.")
        ]
    ]
    settled: NotRequired[
        Annotated[list[Any], Field(description="Only of a debate: findings whose judge changed the severity.")]
    ]
    degraded: list[Degraded]
    quorum: Quorum
    calls: Calls
    tokens: Tokens
    cost: Cost
    seconds: Annotated[Amount, Field(description="Working time of the run, without pauses between processes.")]
    report_path: str | None
    fork: NotRequired[Fork]
    continues: NotRequired[
        Annotated[
            str, Field(description="The run whose question and answer were in the packet; absent if there is none.")
        ]
    ]


class ErrorObject(TypedDict):
    """What a command with --json prints when it fails."""

    schema: Literal["council.error/1"]
    error: Annotated[Name, Field(description="The problem and the fix, in one line.")]
    exit: Annotated[int, Field(ge=1, le=255, description="The exit code of the process.")]
