"""The parts of a report, `council.report/1`: seats, cost, trust, notes, rulings, findings and positions.

Needs pydantic: import it lazily.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from council.types import Json

Count = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]
Amount = Annotated[float, Field(ge=0)]
KEEP_OTHER_TYPES = {"keep": True}  # validation context: values of other types are kept, such as those of other packages


class Part(BaseModel):
    """A part of the report. It keeps fields that are not declared. `part["name"]` returns plain data."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _keep_other_types(cls, value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        try:
            return validate(value)
        except ValidationError:
            if info.context is KEEP_OTHER_TYPES:
                return value
            raise

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe a field that may be absent by its type alone, without its default."""
        schema = handler.resolve_ref_schema(handler(core))
        schema.pop("additionalProperties", None)
        for value in schema.get("properties", {}).values():
            if value.pop("default", "") is None:
                choices = [choice for choice in value.pop("anyOf") if choice != {"type": "null"}]
                value.update(choices[0] if len(choices) == 1 else {"anyOf": choices})
        return schema

    def to_dict(self) -> Json:
        """Return plain data, which `json.dumps` accepts. Fields that were absent stay absent."""
        return self.model_dump(by_alias=True, exclude_unset=True, warnings=False)

    def __getitem__(self, name: str) -> Any:
        return self.to_dict()[name]

    def __contains__(self, name: object) -> bool:
        return name in self.to_dict()

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field as plain data, or the default if it is absent."""
        return self.to_dict().get(name, default)


class Tokens(Part):
    """Token counts. `in` includes the tokens read from a cache."""

    input: Annotated[Count, Field(alias="in")]
    output: Annotated[Count, Field(alias="out")]
    cached: Count


class Fork(Part):
    """The run that this one is a fork of, and the phase it starts from; absent for other runs."""

    run: str
    from_phase: Annotated[str, Field(alias="from")]


class Hedge(Part):
    """A member that was slow, and the member that was asked too."""

    phase: str
    member: Name
    by: Annotated[Name, Field(description="The member that was asked too.")]
    after: Annotated[Amount, Field(description="Seconds that the first member had had until then.")]


class Comparison(Part):
    """Whether the clerk compared the answers."""

    state: Annotated[str, Field(description="answered, unneeded, unavailable, absent or stopped.")]
    why: Annotated[str, Field(description="The state of the clerk in words.")]
    unknown: Annotated[list[str], Field(description="Labels that the clerk named and that are no answers.")] = []


class SeatLookup(Part):
    """A file, a name or a pattern that a seat looked up in the project before it answered."""

    what: Annotated[str, Field(description="A path with its lines, a name or glob, or a pattern in quotation marks.")]
    found: Annotated[Count, Field(description="0 if nothing was found, or if it was refused.")]
    why: Annotated[str | None, Field(description="Why it, or a part of it, was not shown; absent if all was.")] = None


class ReportSeat(Part):
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
    text: Annotated[
        str | None, Field(description="Only of the panel protocol: the seat's whole answer; null if it gave none.")
    ] = None
    conclusion: Annotated[
        str | None,
        Field(description="Only of the panel protocol: the last line of the answer that says it, else null."),
    ] = None
    hedged: Annotated[
        list[Hedge] | None, Field(description="Phases in which another member was asked too; absent if there are none.")
    ] = None
    looked_up: Annotated[
        list[SeatLookup] | None, Field(description="What it read of the project with --look; absent if nothing.")
    ] = None


class Degraded(Part):
    """A seat that did not answer, or (seat null) a problem of the whole council."""

    seat: str | None
    phase: str | None
    state: str
    reason: str


class Quorum(Part):
    """How many seats had to answer, did answer, and were asked."""

    needed: Count
    ok: Count
    asked: Count


class Calls(Part):
    """Requests of the run."""

    made: Annotated[Count, Field(description="Requests sent, by all processes of the run.")]
    replayed: Annotated[Count, Field(description="Answers that the last process took from the ledger.")]
    in_doubt: Annotated[Count, Field(description="Requests, by all processes, that may be billed without an answer.")]


class Cost(Part):
    """Cost of the run in dollars."""

    usd: Annotated[Amount | None, Field(description="What was spent. Null if a price is unknown.")]
    estimated: Annotated[bool, Field(description="Whether part of the amount is an estimate.")]
    unpriced: list[str]
    in_doubt: Annotated[
        Amount | None,
        Field(
            description="The most that requests without an answer may have cost, beside `usd`; absent if there are none."
        ),
    ] = None
    cap: Annotated[Amount | None, Field(description="The maximum cost; absent without a cap.")] = None
    cached_saving: Annotated[
        float | None,
        Field(
            description="What the tokens read from and written to the vendors' prompt caches would have cost as plain input, "
            "minus what they cost; negative if writing cost more than reading saved. Absent if no cache was used, or its use is not known."
        ),
    ] = None


class Stop(Part):
    """Phases of the plan that were not held, because they were not needed."""

    what: str
    why: str
    skipped: Annotated[list[str], Field(description="The phases.")]
    calls: Annotated[Count, Field(description="Their calls, by the plan.")]
    saved: Annotated[
        Amount | None, Field(description="Their expected cost in dollars, by the plan; null if a price is unknown.")
    ]


class TrustFactRow(Part):
    """A fact for or against trust."""

    kind: str
    detail: str = ""
    seats: list[str] = []
    count: int = 0
    total: int = 0


class Trust(Part):
    """How far to trust the answer, computed from the facts of the run; never a model's claim about itself."""

    level: Literal["HIGH", "MEDIUM", "LOW", "CONTESTED"]
    because: Annotated[list[str], Field(description="Every reason that limits the level; empty for HIGH.")]
    in_favour: Annotated[
        list[str] | None, Field(description="The facts that speak for the answer; for HIGH also its limit.")
    ] = None
    facts: Annotated[list[TrustFactRow], Field(description="The same facts as typed values.")] = []


class OpinionRow(Part):
    """The last word of one judge."""

    seat: str
    verdict: str
    confidence: str
    key_insight: str
    recommendation: str


class NotedPoint(Part):
    """A point, and the seat that made it."""

    seat: Name
    point: str


class ContestedSide(Part):
    """The position of one seat on a contested point, and what it assumes."""

    seat: Name
    position: str
    assumes: str


class ContestedPoint(Part):
    """A point on which the seats differ."""

    point: str
    sides: list[ContestedSide]


class Gate(Part):
    """What `council report --fail-on fail` decides about a finished run."""

    verdict: Annotated[
        Literal["PASS", "WARN", "FAIL", "DISAGREE"] | None, Field(description="By the rule of the gate.")
    ]
    exit: Annotated[int, Field(description="0 passed, 10 failed, 3 inconclusive; else that of the run.")]
    why: str
    rule: Literal["corroborated", "consensus"]
    fail_on: Literal["fail", "warn", "critical", "significant", "never"]


class Notes(Part):
    """The chair's notes on a free-text answer. Texts are the chair's; seats that it could not name are left out."""

    agreed: list[str]
    contested: list[ContestedPoint]
    unique: Annotated[list[NotedPoint], Field(description="Points that only one seat made.")]
    taken_from: list[NotedPoint]
    closest_draft: str | None
    recommendation_shared_by: Annotated[
        list[str] | None, Field(description="The seats that share the recommendation; null if the notes do not say.")
    ]


class RulingRow(Part):
    """The chair's ruling on one issue of an attack."""

    id: Name
    severity: Literal["FATAL", "MAJOR", "MINOR"]
    landed: Annotated[bool | None, Field(description="Null if the chair did not rule on it: the issue is open.")]
    why: str
    same_as: Annotated[str | None, Field(description="The issue that says the same; both count as one.")]
    hits: Annotated[str, Field(description="The passage that the issue is about.")]
    flaw: str
    correction: str = ""


class CheckedErrorRow(Part):
    """An error that a reader found in the finished text."""

    id: Annotated[str, Field(description="The seat that found it, and a number.")]
    severity: Literal["FATAL", "MAJOR", "MINOR"]
    hits: Annotated[str, Field(description="The words that are wrong, or after which something is missing.")]
    flaw: str
    harm: str
    correction: str
    landed: Annotated[
        bool | None, Field(description="Whether the author ruled that it is right; null without a ruling.")
    ]
    why: str
    state: Annotated[
        Literal["corrected", "dismissed", "open"],
        Field(description="Open: without a ruling, or right but nothing in the text changed because of it."),
    ]
    same_as: Annotated[str | None, Field(description="The error that says the same; both count once.")]
    check: Annotated[int, Field(description="2 for an error of the second check.")]


class Check(Part):
    """The check of the finished text. Absent if there was none."""

    readers: Annotated[list[str], Field(description="The seats that read the text; empty if none answered.")]
    author: Annotated[str, Field(description="The seat that corrected it, or wrote it if nothing had to be corrected.")]
    errors: list[CheckedErrorRow]
    checks: Annotated[int, Field(description="2 if the corrected text was read again.")]
    last_readers: Annotated[list[str], Field(description="The seats that read the text last.")] = []


class AttackRow(Part):
    """An error that another seat found in a draft, and its author's ruling."""

    id: Annotated[str, Field(description="The seat that found it, and a number.")]
    author: Annotated[str, Field(description="The seat whose draft it is about.")]
    severity: Literal["FATAL", "MAJOR", "MINOR"]
    hits: str
    flaw: str
    harm: str
    correction: str
    landed: Annotated[
        bool | None, Field(description="Whether the author ruled that it is right; null without a ruling.")
    ]
    why: str


class StopDecision(Part):
    """Why an adaptive run stopped or went on after a phase."""

    after: Annotated[str, Field(description="The phase after which it was decided.")]
    reason: Annotated[
        Literal[
            "agreed",
            "one_answer",
            "one_vendor",
            "no_conclusion",
            "different",
            "not_sure",
            "doubts",
            "confirmed",
            "errors",
            "not_confirmed",
            "not_checked",
        ],
        Field(description="confirmed: the check confirmed the answer. All others are reasons to go on."),
    ]
    why: str
    skipped: Annotated[list[str], Field(description="The phases that a stop left out.")] = []


class ArgumentSide(Part):
    """One position on a disputed point, and who holds it."""

    seats: list[str]
    position: str
    assumes: str


class SeatArgument(Part):
    """What a seat said on a disputed point."""

    seat: str
    stance: Literal["holds", "concedes"]
    argument: str


class ArguedPoint(Part):
    """A point on which the answers differ, its sides, and the arguments."""

    id: str
    point: str
    sides: list[ArgumentSide]
    arguments: list[SeatArgument]


class ReportFinding(Part):
    """A problem that judges found. A field that its protocol does not set has its default."""

    id: str = ""
    severity: str = ""
    category: str = ""
    description: str = ""
    fix: str = ""
    location: Annotated[str, Field(description="`path:line`, or as the judge wrote it.")] = ""
    path: str = ""
    line: int | None = Field(default_factory=lambda: None)
    quote: str = ""
    verified: Annotated[
        bool | None, Field(description="Whether the quote is in the file; null if it was not checked.")
    ] = Field(default_factory=lambda: None)
    disputed: bool = False
    disputed_by: Annotated[
        list[str], Field(description="The judges that oppose it; never empty if it is disputed.")
    ] = []
    found_by: Annotated[list[str], Field(description="The judges that found it.")] = []
    held_by: Annotated[
        list[str], Field(description="The judges that found it, and those that support it in a debate.")
    ] = []
    of: Annotated[int, Field(description="The number of judges.")] = 0
    grouped_by: Annotated[
        str, Field(description="What joined the findings of several judges: clerk, rule or support; else empty.")
    ] = ""
    defect: Annotated[str, Field(description="The clerk's words for the defect, if it joined the findings.")] = ""
    fingerprint: str = ""


class Grouping(Part):
    """Only of a review: who grouped the findings of several judges."""

    by: Annotated[str, Field(description="clerk or rule.")]
    clerk: Annotated[str, Field(description="answered, off, unneeded, unavailable or absent.")]
    why: Annotated[str, Field(description="The state of the clerk in words.")]


class RankedSeat(Part):
    """A row of the ranking table."""

    seat: Any
    place: Any
    mean_rank: Any
    borda: Any
    ballots: Any
    firsts: Any


class ReaderAgreement(Part):
    """How often two readers agreed."""

    readers: Any
    same: Any
    compared: Any


class CastBallot(Part):
    """The ballot of one reader."""

    dispute: Any
    order: Any


class Ranking(Part):
    """Only of the ranking protocol: the table by mean rank, the winner, the agreement of readers, and every ballot."""

    table: list[RankedSeat]
    winner: str | None
    differ: Annotated[bool, Field(description="Whether the order by Borda points differs from the table.")]
    agreement: list[ReaderAgreement]
    ballots: dict[str, CastBallot]


class SeatPosition(Part):
    """The position of one seat on a row."""

    seat: Name
    position: Annotated[
        Literal["agrees", "opposes", "qualifies", "silent", "absent"],
        Field(description="silent: it answered and said nothing about this; absent: it never answered."),
    ]
    why: Annotated[str, Field(description="Its words or reason, in one line; may be empty.")]


class PositionRow(Part):
    """One finding, point or topic, and the position of every seat."""

    kind: Annotated[
        Literal["finding", "point", "dispute", "claim", "note"],
        Field(description="point: of an attack; note: of the chair's notes."),
    ]
    topic: str
    text: str
    status: Annotated[
        str,
        Field(
            description="disputed (only if a seat opposes it), possible, contested, qualified, settled, agreed, `2 of 3`, "
            "`only NAME`; of a point landed, dismissed or open."
        ),
    ]
    severity: str
    disputed_by: Annotated[list[str], Field(description="The seats that oppose it; for a point, those that raised it.")]
    seats: list[SeatPosition]
    ids: Annotated[list[str], Field(description="The findings, claims or issues that the row joins.")]
    landed: Annotated[bool | None, Field(description="Only of a point that the chair ruled on.")] = None
    ruling: Annotated[str | None, Field(description="Only of a point: the chair's reason.")] = None


class AnswerSection(Part):
    """A part of the answer."""

    name: Annotated[str, Field(description="A stable name, such as decision, next_steps or disagreements.")]
    title: str
    text: Annotated[str, Field(description="Markdown.")]


class ClosestDraft(Part):
    """The first statement whose wording the answer shares most."""

    seat: Name
    phase: str
    share: Annotated[
        float, Field(description="Share of the answer's sequences of three words that the draft has, from 0.3 to 1.")
    ]


class OneModel(Part):
    """What one draft cost, and what the council cost, in dollars."""

    low: Amount
    high: Amount
    council: Amount


class Changed(Part):
    """What the council changed. A fact that the run does not support is null, empty or 0."""

    closest_draft: Annotated[
        ClosestDraft | None, Field(description="Null if no draft shares 0.3 of the wording, and for a review.")
    ]
    taken_from: Annotated[list[NotedPoint], Field(description="By the chair's notes.")]
    shared_by: Annotated[
        list[str] | None, Field(description="The seats whose recommendation is that of the answer; null if unknown.")
    ]
    differed: Annotated[list[str], Field(description="The other seats that answered; empty if `shared_by` is null.")]
    agree: Annotated[Count, Field(description="Points that seats share and none disputes.")]
    differ: Annotated[Count, Field(description="Topics that a seat disputes.")]
    only_one: Annotated[Count, Field(description="Points that only one seat made.")]
    one_model: Annotated[OneModel | None, Field(description="Null if a price is unknown or nothing was billed.")]


class StrongestSeat(Part):
    """Whether the council changed the answer of its strongest seat, and what that answer used."""

    seat: Annotated[
        str | None, Field(description="Its member has the highest price for equal work. Null only in older reports.")
    ]
    member: str | None
    by: Annotated[
        Literal["price", "one_member"] | None,
        Field(description="By the highest price. Older reports: or the first seat, because all have one member."),
    ]
    changed: Annotated[
        bool | None, Field(description="Whether the answer recommends something else; null if it was not assessed.")
    ]
    unknown: Annotated[
        Literal["", "no_prices", "not_recorded", "disagree"], Field(description="Why `changed` is null; else empty.")
    ]
    usd: Annotated[float | None, Field(description="Cost of the seat's first answer; null if nothing was billed.")]
    tokens: Annotated[int | None, Field(description="Tokens of the seat's first answer, in and out.")]
