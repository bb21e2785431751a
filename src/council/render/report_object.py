"""The report of a run, `council.report/1`, as `council.Report`, and the object `council.error/1`.

scripts/make_schemas.py generates their JSON Schemas. Needs pydantic: import it lazily.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

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
from council.engine.trust import format_trust
from council.money import format_usd
from council.types import OK_STATES, Json

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
    hedged: Annotated[
        list[Hedge] | None, Field(description="Phases in which another member was asked too; absent if there are none.")
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

    usd: Annotated[Amount | None, Field(description="Null if a price is unknown.")]
    estimated: Annotated[bool, Field(description="Whether part of the amount is an estimate.")]
    unpriced: list[str]
    cap: Annotated[Amount | None, Field(description="The maximum cost; absent without a cap.")] = None


class Trust(Part):
    """How far to trust the answer, computed from the facts of the run; never a model's claim about itself."""

    level: Literal["HIGH", "MEDIUM", "LOW", "CONTESTED"]
    because: Annotated[list[str], Field(description="Every reason that limits the level; empty for HIGH.")]


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
    found_by: Annotated[list[str], Field(description="The judges that hold it.")] = []
    of: Annotated[int, Field(description="The number of judges.")] = 0
    fingerprint: str = ""


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


def _unknown_trust() -> Trust:
    return Trust(level="LOW", because=["made by a version that did not compute trust"])


class Report(Part):
    """The report of a run, as `council.convene` returns it and --json prints it, for every status."""

    schema_name: Annotated[Literal["council.report/1"], Field(alias="schema")]
    run: Annotated[Name, Field(description="The id of the run.")]
    name: str
    status: Annotated[
        Literal["complete", "incomplete", "failed"],
        Field(description="complete: the last step finished, possibly with absent seats; failed: no seat answered."),
    ]
    task: Literal["ask", "validate", "brainstorm", "research"]
    protocol: Name
    question: str
    target: Annotated[str | None, Field(description="The reviewed target, as written by the user.")]
    verdict: Annotated[Literal["PASS", "WARN", "FAIL", "DISAGREE"] | None, Field(description="Only of a review.")]
    outcome: Annotated[
        Literal["SURVIVED", "MODIFIED", "OVERTURNED"] | None,
        Field(description="Only of the adversarial protocol: what became of the leading draft."),
    ]
    confidence: Literal["HIGH", "MEDIUM", "LOW", "CONTESTED"] | None
    trust: Trust = Field(default_factory=_unknown_trust)
    notes: Notes | None = None
    answer: Annotated[
        str,
        Field(
            description="The answer as Markdown; a digest of the statements if the run is incomplete, empty if it failed."
        ),
    ]
    seats: list[ReportSeat]
    chair: ReportSeat | None = Field(default_factory=lambda: None)
    consensus: Annotated[list[Any], Field(description="What the seats agree on.")]
    disagreements: Annotated[list[Any], Field(description="Where they differ, and who holds which side.")]
    insights: Annotated[list[Any], Field(description="Points that only one seat or vendor made.")]
    blind_spots: Annotated[list[Any], Field(description="What the seats did not consider, or are unsure about.")]
    findings: list[ReportFinding]
    dissent: Annotated[list[Any], Field(description="Positions against the answer.")]
    shifts: Annotated[list[Any], Field(description="Seats that changed their position between rounds.")]
    sources: Annotated[list[Any], Field(description="Search results that the answer cites.")]
    claims: Annotated[
        list[Any], Field(description="Each claim with its status, supporters, opponents and sources.")
    ] = []
    leader: Annotated[str | None, Field(description="Only of the adversarial protocol: the seat whose draft led.")] = (
        None
    )
    leader_reason: str | None = None
    agreed: Annotated[list[str], Field(description="Points on which all drafts agree, by the triage.")] = []
    contested: Annotated[list[str], Field(description="Points on which the drafts differ, by the triage.")] = []
    rulings: list[RulingRow] = []
    ranking: Ranking | None = None
    opinions: Annotated[
        list[OpinionRow], Field(description="Only of a review: verdict, key insight and advice of each judge.")
    ] = []
    withdrawn: Annotated[
        list[Any], Field(description="Only of a debate: findings that their judge withdrew, with the reason.")
    ] = []
    settled: Annotated[
        list[Any], Field(description="Only of a debate: findings whose judge changed the severity.")
    ] = []
    degraded: Annotated[list[Degraded], Field(description="Missing or limited parts, such as absent seats.")]
    quorum: Quorum
    calls: Calls
    tokens: Tokens
    cost: Cost
    seconds: Annotated[Amount, Field(description="Working time of the run, without pauses between processes.")]
    report_path: Annotated[
        str | None, Field(description="The report file: absolute, or relative to the folder of the run.")
    ]
    fork: Fork | None = None
    continues: Annotated[
        str | None,
        Field(description="The run whose question and answer were in the packet; absent if there is none."),
    ] = None

    @classmethod
    def from_dict(cls, value: Json) -> Self:
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
        words = (self.run, self.status, self.protocol, self.verdict, self.outcome, f"trust {self.trust.level}")
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
    return f"run {report.run} is incomplete (the next request could exceed the budget{cap}; {format_cost(report.cost.to_dict())}): {more}"


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
    lines += [f"> ! {_format_row(row)}" for row in report.degraded if row.state != "notice"]
    lines.append(report.answer.strip() or "_There is no answer._")
    lines += ["\n".join(f"- {_format_finding(finding)}" for finding in report.findings)] if report.findings else []
    facts = [
        f"confidence {report.confidence}" if report.confidence else "",
        f"{report.quorum.ok} of {report.quorum.asked} seats",
        format_cost(report.cost.to_dict()),
        f"run {report.run}",
    ]
    lines.append(f"{format_trust(report.trust.to_dict())}  \n{' · '.join(filter(None, facts))}")
    return "\n\n".join(lines).replace("![", "!\\[")  # a model's image would be loaded from the web


def _format_row(row: Degraded) -> str:
    return f"{row.seat}: {row.reason}" if row.seat else row.reason


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
