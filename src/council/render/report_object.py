"""The report of a run, `council.report/1`, as `council.Report`, and the object `council.error/1`.

scripts/make_schemas.py generates their JSON Schemas. Needs pydantic: import it lazily.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, NotRequired, Self

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
from typing_extensions import TypedDict

from council import errors
from council.engine.layout import format_cost
from council.engine.records import ReportObject
from council.money import format_usd
from council.render.tail import format_tail
from council.types import OK_STATES, Json

Count = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]
Amount = Annotated[float, Field(ge=0)]
KEEP_OTHER_TYPES = {"keep": True}  # validation context: values of other types are kept, such as those of other packages


def optional(description: str) -> Any:
    """Describe a field that may be absent."""
    return Field(default=None, description=description)


def optional_list(description: str) -> Any:
    """Describe a list that may be absent."""
    return Field(default=[], description=description)


class Part(BaseModel):
    """A part of the report. It keeps fields that are not declared. `part["name"]` returns plain data."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)
    ADDED_FIELDS: ClassVar[tuple[str, ...]] = ()  # always there, but absent in objects of older versions

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
        required = {*schema.get("required", ()), *cls.ADDED_FIELDS}
        if required:
            schema["required"] = [name for name in schema["properties"] if name in required]
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

    input: Count = Field(alias="in")
    output: Count = Field(alias="out")
    cached: Count


class Fork(Part):
    """The run that this one is a fork of, and the phase it starts from; absent for other runs."""

    run: str
    from_phase: str = Field(alias="from")


class Hedge(Part):
    """A member that was slow, and the member that was asked too."""

    phase: str
    member: Name
    by: Name = Field(description="The member that was asked too.")
    after: Amount = Field(description="Seconds that the first member had had until then.")


class Comparison(Part):
    """Whether the clerk compared the answers."""

    state: str = Field(description="answered, unneeded, unavailable, absent or stopped.")
    why: str = Field(description="The state of the clerk in words.")
    unknown: list[str] = optional_list("Labels that the clerk named and that are no answers.")


class SeatLookup(Part):
    """A file, a name or a pattern that a seat looked up in the project before it answered."""

    what: str = Field(description="A path with its lines, a name or glob, or a pattern in quotation marks.")
    found: Count = Field(description="0 if nothing was found, or if it was refused.")
    why: str | None = optional("Why it, or a part of it, was not shown; absent if all was.")


class ReportSeat(Part):
    """A seat after the run."""

    name: Name
    label: str
    role: str | None
    perspective: str | None
    model: str = Field(description="The requested member.")
    served_by: str | None = Field(description="The member that answered last; null if none did.")
    vendor: str
    state: Name
    verdict: str | None
    confidence: str | None
    file: str | None
    tokens: Tokens
    cost: Amount | None
    attempts: Count = Field(
        description="Requests for this seat in all rounds, with retries and repair turns: 3 after three rounds without a retry."
    )
    seconds: Amount
    text: str | None = optional("Only of the panel protocol: the seat's whole answer; null if it gave none.")
    conclusion: str | None = optional(
        "Only of the panel protocol: the last line of the answer that says it, else null."
    )
    hedged: list[Hedge] | None = optional("Phases in which another member was asked too; absent if there are none.")
    looked_up: list[SeatLookup] | None = optional("What it read of the project with --look; absent if nothing.")


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

    made: Count = Field(description="Requests sent, by all processes of the run.")
    replayed: Count = Field(description="Answers that the last process took from the ledger.")
    in_doubt: Count = Field(description="Requests, by all processes, that may be billed without an answer.")


class Cost(Part):
    """Cost of the run in dollars."""

    usd: Amount | None = Field(description="What was spent. Null if a price is unknown.")
    estimated: bool = Field(description="Whether part of the amount is an estimate.")
    unpriced: list[str]
    in_doubt: Amount | None = optional(
        "The most that requests without an answer may have cost, beside `usd`; absent if there are none."
    )
    cap: Amount | None = optional("The maximum cost; absent without a cap.")
    cached_saving: float | None = Field(
        default=None,
        description="What the tokens read from and written to the vendors' prompt caches would have cost as plain input, "
        "minus what they cost; negative if writing cost more than reading saved. Absent if no cache was used, or its use is not known.",
    )


class Stop(Part):
    """Phases of the plan that were not held, because they were not needed."""

    what: str
    why: str
    skipped: list[str] = Field(description="The phases.")
    calls: Count = Field(description="Their calls, by the plan.")
    saved: Amount | None = Field(description="Their expected cost in dollars, by the plan; null if a price is unknown.")


class TrustFactRow(Part):
    """A fact for or against trust."""

    kind: str
    detail: str = ""
    seats: list[str] = []
    count: int = 0
    total: int = 0


class Trust(Part):
    """How far to trust the answer, computed from the facts of the run; never a model's claim about itself."""

    level: Literal["HIGH", "MEDIUM", "LOW", "CONTESTED"] | None = Field(description="Null until the run has ended.")
    because: list[str] = Field(
        description="Decisions that turned out wrong, then every reason that limits the level, which HIGH has none of."
    )
    in_favour: list[str] | None = optional("The facts that speak for the answer; for HIGH also its limit.")
    facts: list[TrustFactRow] = optional_list("The same facts as typed values.")


class ReportOutcome(Part):
    """How the decision turned out, as a person recorded it after the run. The newest outcome counts."""

    at: float = Field(description="When it was recorded, in seconds since 1970.")
    label: Literal["right", "wrong"]
    value: str = Field(description="The value that was right, if it was named; else empty.")
    note: str


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

    verdict: Literal["PASS", "WARN", "FAIL", "DISAGREE"] | None = Field(description="By the rule of the gate.")
    exit: int = Field(description="0 passed, 10 failed, 3 inconclusive; else that of the run.")
    why: str
    rule: Literal["corroborated", "consensus"]
    fail_on: Literal["fail", "warn", "critical", "significant", "never"]


class Notes(Part):
    """The chair's notes on a free-text answer. Texts are the chair's; seats that it could not name are left out."""

    agreed: list[str]
    contested: list[ContestedPoint]
    unique: list[NotedPoint] = Field(description="Points that only one seat made.")
    taken_from: list[NotedPoint]
    closest_draft: str | None
    recommendation_shared_by: list[str] | None = Field(
        description="The seats that share the recommendation; null if the notes do not say."
    )


class RulingRow(Part):
    """The chair's ruling on one issue of an attack."""

    id: Name
    severity: Literal["FATAL", "MAJOR", "MINOR"]
    landed: bool | None = Field(description="Null if the chair did not rule on it: the issue is open.")
    why: str
    same_as: str | None = Field(description="The issue that says the same; both count as one.")
    hits: str = Field(description="The passage that the issue is about.")
    flaw: str
    correction: str = ""


class CheckedErrorRow(Part):
    """An error that a reader found in the finished text."""

    id: str = Field(description="The seat that found it, and a number.")
    severity: Literal["FATAL", "MAJOR", "MINOR"]
    hits: str = Field(description="The words that are wrong, or after which something is missing.")
    flaw: str
    harm: str
    correction: str
    landed: bool | None = Field(description="Whether the author ruled that it is right; null without a ruling.")
    why: str
    state: Literal["corrected", "dismissed", "open"] = Field(
        description="Open: without a ruling, or right but nothing in the text changed because of it."
    )
    same_as: str | None = Field(description="The error that says the same; both count once.")
    check: int = Field(description="2 for an error of the second check.")


class Check(Part):
    """The check of the finished text. Absent if there was none."""

    readers: list[str] = Field(description="The seats that read the text; empty if none answered.")
    author: str = Field(description="The seat that corrected it, or wrote it if nothing had to be corrected.")
    errors: list[CheckedErrorRow]
    checks: int = Field(description="2 if the corrected text was read again.")
    last_readers: list[str] = optional_list("The seats that read the text last.")


class AttackRow(Part):
    """An error that another seat found in a draft, and its author's ruling."""

    id: str = Field(description="The seat that found it, and a number.")
    author: str = Field(description="The seat whose draft it is about.")
    severity: Literal["FATAL", "MAJOR", "MINOR"]
    hits: str
    flaw: str
    harm: str
    correction: str
    landed: bool | None = Field(description="Whether the author ruled that it is right; null without a ruling.")
    why: str


class StopDecision(Part):
    """Why an adaptive run stopped or went on after a phase."""

    after: str = Field(description="The phase after which it was decided.")
    reason: Literal[
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
    ] = Field(description="confirmed: the check confirmed the answer. All others are reasons to go on.")
    why: str
    skipped: list[str] = optional_list("The phases that a stop left out.")


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
    location: str = Field(default="", description="`path:line`, or as the judge wrote it.")
    path: str = ""
    line: int | None = Field(default_factory=lambda: None)
    quote: str = ""
    verified: bool | None = Field(
        default_factory=lambda: None, description="Whether the quote is in the file; null if it was not checked."
    )
    disputed: bool = False
    disputed_by: list[str] = optional_list("The judges that oppose it; never empty if it is disputed.")
    found_by: list[str] = optional_list("The judges that found it.")
    held_by: list[str] = optional_list("The judges that found it, and those that support it in a debate.")
    of: int = Field(default=0, description="The number of judges.")
    grouped_by: str = Field(
        default="", description="What joined the findings of several judges: clerk, rule or support; else empty."
    )
    defect: str = Field(default="", description="The clerk's words for the defect, if it joined the findings.")
    fingerprint: str = ""


class Grouping(Part):
    """Only of a review: who grouped the findings of several judges."""

    by: str = Field(description="clerk or rule.")
    clerk: str = Field(description="answered, off, unneeded, unavailable or absent.")
    why: str = Field(description="The state of the clerk in words.")


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
    differ: bool = Field(description="Whether the order by Borda points differs from the table.")
    agreement: list[ReaderAgreement]
    ballots: dict[str, CastBallot]


class SeatPosition(Part):
    """The position of one seat on a row."""

    seat: Name
    position: Literal["agrees", "opposes", "qualifies", "silent", "absent"] = Field(
        description="silent: it answered and said nothing about this; absent: it never answered."
    )
    why: str = Field(description="Its words or reason, in one line; may be empty.")


class PositionRow(Part):
    """One finding, point or topic, and the position of every seat."""

    kind: Literal["finding", "point", "dispute", "claim", "note"] = Field(
        description="point: of an attack; note: of the chair's notes."
    )
    topic: str
    text: str
    status: str = Field(
        description="disputed (only if a seat opposes it), possible, contested, qualified, settled, agreed, `2 of 3`, "
        "`only NAME`; of a point landed, dismissed or open."
    )
    severity: str
    disputed_by: list[str] = Field(description="The seats that oppose it; for a point, those that raised it.")
    seats: list[SeatPosition]
    ids: list[str] = Field(description="The findings, claims or issues that the row joins.")
    landed: bool | None = optional("Only of a point that the chair ruled on.")
    ruling: str | None = optional("Only of a point: the chair's reason.")


class AnswerSection(Part):
    """A part of the answer."""

    name: str = Field(description="A stable name, such as decision, next_steps or disagreements.")
    title: str
    text: str = Field(description="Markdown.")


class ClosestDraft(Part):
    """The first statement whose wording the answer shares most."""

    seat: Name
    phase: str
    share: float = Field(
        description="Share of the answer's sequences of three words that the draft has, from 0.3 to 1."
    )


class OneModel(Part):
    """What one draft cost, and what the council cost, in dollars."""

    low: Amount
    high: Amount
    council: Amount


class Changed(Part):
    """What the council changed. A fact that the run does not support is null, empty or 0."""

    closest_draft: ClosestDraft | None = Field(
        description="Null if no draft shares 0.3 of the wording, and for a review."
    )
    taken_from: list[NotedPoint] = Field(description="By the chair's notes.")
    shared_by: list[str] | None = Field(
        description="The seats whose recommendation is that of the answer; null if unknown."
    )
    differed: list[str] = Field(description="The other seats that answered; empty if `shared_by` is null.")
    agree: Count = Field(description="Points that seats share and none disputes.")
    differ: Count = Field(description="Topics that a seat disputes.")
    only_one: Count = Field(description="Points that only one seat made.")
    one_model: OneModel | None = Field(description="Null if a price is unknown or nothing was billed.")


class StrongestSeat(Part):
    """Whether the council changed the answer of its strongest seat, and what that answer used."""

    seat: str | None = Field(description="Its member has the highest price for equal work. Null only in older reports.")
    member: str | None
    by: Literal["price", "one_member"] | None = Field(
        description="By the highest price. Older reports: or the first seat, because all have one member."
    )
    changed: bool | None = Field(
        description="Whether the answer recommends something else; null if it was not assessed."
    )
    unknown: Literal["", "no_prices", "not_recorded", "disagree"] = Field(
        description="Why `changed` is null; else empty."
    )
    usd: float | None = Field(description="Cost of the seat's first answer; null if nothing was billed.")
    tokens: int | None = Field(description="Tokens of the seat's first answer, in and out.")


UNKNOWN_TRUST = Trust(level="LOW", because=["made by a version that did not compute trust"])


class Report(Part):
    """The report of a run, as `council.convene` returns it and --json prints it, for every status."""

    ADDED_FIELDS = ("trust", "tail", "chair")

    schema_name: Literal["council.report/1"] = Field(alias="schema")
    run: Name = Field(description="The id of the run.")
    name: str
    status: Literal["complete", "incomplete", "failed"] | None = Field(
        description="complete: the last step finished, possibly with absent seats; failed: no seat answered; null: the run has not ended."
    )
    task: Literal["ask", "validate", "brainstorm", "research"]
    protocol: Name
    question: str
    target: str | None = Field(description="The reviewed target, as written by the user.")
    verdict: Literal["PASS", "WARN", "FAIL", "DISAGREE"] | None = Field(description="Only of a review.")
    outcome: Literal["SURVIVED", "MODIFIED", "OVERTURNED"] | None = Field(
        description="Only of the adversarial protocol: what became of the leading draft."
    )
    confidence: Literal["HIGH", "MEDIUM", "LOW", "CONTESTED"] | None
    trust: Trust = Field(default_factory=lambda: UNKNOWN_TRUST)
    notes: Notes | None = None
    gate: Gate | None = optional("Only with `report --fail-on`.")
    answer: str = Field(
        description="The answer as Markdown; a digest of the statements if the run is incomplete, empty if it failed."
    )
    tail: list[str] = optional_list("The lines after the answer: the outcome, who differs, and how far to trust it.")
    seats: list[ReportSeat]
    chair: ReportSeat | None = Field(default_factory=lambda: None)
    consensus: list[Any] = Field(description="What the seats agree on.")
    disagreements: list[Any] = Field(description="Where they differ, and who holds which side.")
    insights: list[Any] = Field(description="Points that only one seat or vendor made.")
    blind_spots: list[Any] = Field(description="What the seats did not consider, or are unsure about.")
    findings: list[ReportFinding]
    dissent: list[Any] = Field(description="Positions against the answer.")
    shifts: list[Any] = Field(description="Seats that changed their position between rounds.")
    sources: list[Any] = Field(description="Search results that the answer cites.")
    claims: list[Any] = optional_list("Each claim with its status, supporters, opponents and sources.")
    leader: str | None = optional("Only of the adversarial protocol: the seat whose draft led.")
    leader_reason: str | None = None
    agreed: list[str] = optional_list("Points on which all drafts agree, by the triage.")
    contested: list[str] = optional_list("Points on which the drafts differ, by the triage.")
    rulings: list[RulingRow] = []
    ranking: Ranking | None = None
    attacks: list[AttackRow] = optional_list("Only of the refine protocol: the errors in the drafts, with the rulings.")
    check: Check | None = None
    stopped: StopDecision | None = optional("Only of the adaptive protocol: why it stopped early.")
    continued: list[StopDecision] = optional_list("Only of the adaptive protocol: why it did not stop earlier.")
    argued: list[ArguedPoint] = optional_list("Only of the adaptive protocol: the disputed points and the arguments.")
    opinions: list[OpinionRow] = optional_list("Only of a review: verdict, key insight and advice of each judge.")
    withdrawn: list[Any] = optional_list("Only of a debate: findings that their judge withdrew, with the reason.")
    settled: list[Any] = optional_list("Only of a debate: findings whose judge changed the severity.")
    by_rule: dict[str, str | None] = Field(
        default={}, description="Only of a review: the verdict by each rule, consensus and corroborated."
    )
    uncorroborated: list[str] = optional_list(
        "Only of a review: the judges whose FAIL the rule corroborated counts as a WARN."
    )
    grouping: Grouping | None = None
    comparison: Comparison | None = optional("Only of the panel protocol: whether the clerk compared the answers.")
    positions: list[PositionRow] = optional_list(
        "The positions of the seats: one row per finding, point or topic. In the report of a stored run."
    )
    sections: list[AnswerSection] = optional_list(
        "The answer in parts, the decision first; empty if it has no parts. In the report of a stored run."
    )
    changed: Changed | None = optional("What the council changed. In the report of a stored run.")
    strongest: StrongestSeat | None = optional(
        "Whether the council changed its strongest seat's answer; absent without two answers or if prices do not tell."
    )
    stops: list[Stop] = optional_list("Phases that were not needed, and what that saved; absent if there are none.")
    degraded: list[Degraded] = Field(description="Missing or limited parts, such as absent seats.")
    quorum: Quorum
    calls: Calls
    tokens: Tokens
    cost: Cost
    seconds: Amount = Field(description="Working time of the run, without pauses between processes.")
    report_path: str | None = Field(description="The report file: absolute, or relative to the folder of the run.")
    fork: Fork | None = None
    continues: str | None = optional("The run whose question and answer were in the packet; absent if there is none.")
    decision_outcome: ReportOutcome | None = optional("How the decision turned out; absent until it is recorded.")

    @classmethod
    def from_dict(cls, value: Json | ReportObject) -> Self:
        """Return the report of a `council.report/1` object, such as the output of `council report --json`."""
        try:
            return cls.model_validate(value, context=KEEP_OTHER_TYPES)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "it"
            raise errors.UsageError(
                f'not a report, "{where}" is wrong ({first["msg"]}): pass an object with the schema council.report/1'
            ) from None

    def raise_for_status(self) -> Self:
        """Return the report if the run is complete; otherwise raise the exception of the cause, with `report` set."""
        if self.status == "complete":
            return self
        error = explain_status(self)
        error.report = self
        raise error

    def __repr__(self) -> str:
        trust = f"trust {self.trust.level}" if self.trust.level else ""
        words = (self.run, self.status or "unfinished", self.protocol, self.verdict, self.outcome, trust)
        return f"<Report {' '.join(filter(None, words))}>"

    def __str__(self) -> str:
        return render_markdown(self)

    def _repr_markdown_(self) -> str:
        return render_markdown(self)

    def _repr_html_(self) -> str:
        return render_html(self)


# Status

STOPPED_BY = {
    "budget": errors.BudgetSpent,
    "interrupted": errors.RunInterrupted,
    "cancelled": errors.RunInterrupted,
    "quorum": errors.QuorumLost,
    "chair": errors.ChairAbsent,
}
REFUSED_STATES = {
    "failed(auth)": (errors.AuthError, "refused its key or login"),
    "failed(quota)": (errors.QuotaError, "has no quota left"),
}


def explain_status(report: Report) -> errors.CouncilError:
    """Return the exception that says why a run is not complete."""
    if report.status is None:
        return errors.RunIncomplete(f"run {report.run} has not ended: wait for it")
    if report.status == "failed":
        return _explain_failure(report)
    cause = next((row for row in report.degraded if row.seat is None and row.state in STOPPED_BY), None)
    if cause is None and report.chair and report.chair.state not in OK_STATES:
        cause = next((row for row in report.degraded if row.seat == report.chair.name), None)
        reason = cause.reason if cause else report.chair.state
        return errors.ChairAbsent(f"run {report.run} has no answer of its chair ({reason}); {_format_resume(report)}")
    if cause and cause.state == "budget":
        return errors.BudgetSpent(_explain_budget(report))
    kind: type[errors.CouncilError] = STOPPED_BY[cause.state] if cause else errors.RunIncomplete
    reason = cause.reason if cause else next((row.reason for row in report.degraded), "it has not ended")
    return kind(f"run {report.run} is incomplete ({reason}); {_format_resume(report)}")


def _format_resume(report: Report) -> str:
    return f'continue it with `client.resume("{report.run}")`'


def _explain_budget(report: Report) -> str:
    """Say how to raise the cap in Python terms; the stored reason uses those of the command line."""
    cap = f" of {format_usd(report.cost.cap)}" if report.cost.cap is not None else " of the day"
    more = f'raise it with `client.resume("{report.run}", max_cost=…)`'
    return f"run {report.run} is incomplete (the next request could exceed the budget{cap}; {format_cost(report['cost'])}): {more}"


def _explain_failure(report: Report) -> errors.CouncilError:
    """Return AuthError or QuotaError if every seat failed for that reason, AccessError for both, else RunFailed."""
    absent = [seat for seat in report.seats if seat.state not in OK_STATES]
    states = {seat.state for seat in absent}
    if not states or not states <= REFUSED_STATES.keys():
        reasons = dict.fromkeys(f"{row.seat}: {row.reason}" for row in report.degraded if row.seat)
        return errors.RunFailed(f"no seat answered in run {report.run} ({'; '.join(reasons) or 'no reason given'})")
    vendors = {seat.vendor: REFUSED_STATES[seat.state][1] for seat in absent}
    kind = REFUSED_STATES[states.pop()][0] if len(states) == 1 else errors.AccessError
    refused = ", ".join(f"{vendor} {what}" for vendor, what in vendors.items())
    return kind(f"no seat answered in run {report.run}: {refused}; check the keys with `council doctor`")


# Notebooks


def render_markdown(report: Report) -> str:
    """Render a report for a notebook: the missing parts, the answer, the findings and the facts."""
    head = " · ".join(filter(None, (report.verdict, report.outcome)))
    lines = [f"**{head}**"] if head else []
    missing = [row for row in report.degraded if row.state != "notice"]
    lines += [f"> ! {row.seat}: {row.reason}" if row.seat else f"> ! {row.reason}" for row in missing]
    lines.append(report.answer.strip() or "_There is no answer._")
    lines += ["\n".join(f"- {_format_finding(finding)}" for finding in report.findings)] if report.findings else []
    facts = [f"{report.quorum.ok} of {report.quorum.asked} seats", format_cost(report["cost"]), f"run {report.run}"]
    lines += [format_tail(report.tail), " · ".join(filter(None, facts))]
    return "\n\n".join(lines).replace("![", "!\\[")  # a model's image would be loaded from the web


def _format_finding(finding: Any) -> str:
    if not isinstance(finding, ReportFinding):  # of another package
        return str(finding)
    place = f" `{finding.location}`" if finding.location else ""
    return f"**{finding.severity}**{place} {finding.description}".strip()


def render_html(report: Report) -> str:
    """Render the Markdown of a report as HTML. HTML and images in it are shown as text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return f'<div class="council-report">{parser.render(render_markdown(report))}</div>'


class ErrorObject(TypedDict):
    """What a command with --json prints when it fails."""

    schema: Literal["council.error/1"]
    error: Annotated[Name, Field(description="The problem and the fix, in one line.")]
    exit: Annotated[int, Field(ge=1, le=255, description="The exit code of the process.")]
    details: NotRequired[
        Annotated[
            dict[str, Any], Field(description="What a program needs to know, such as the councils that fit a cap.")
        ]
    ]
