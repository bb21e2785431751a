"""The report of a run, `council.report/1`, as `council.Report`, and the object `council.error/1`.

scripts/make_schemas.py generates their JSON Schemas. Needs pydantic: import it lazily.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, Self

from pydantic import BaseModel, Field, ValidationError
from typing_extensions import TypedDict

from council import errors
from council.engine.layout import format_cost
from council.engine.records import ReportObject
from council.money import format_usd
from council.render.report_parts import (
    KEEP_OTHER_TYPES,
    Amount,
    AnswerSection,
    ArguedPoint,
    AttackRow,
    Calls,
    Changed,
    Check,
    Comparison,
    Cost,
    Degraded,
    Fork,
    Gate,
    Grouping,
    Name,
    Notes,
    OpinionRow,
    Part,
    PositionRow,
    Quorum,
    Ranking,
    ReportFinding,
    ReportSeat,
    RulingRow,
    Stop,
    StopDecision,
    StrongestSeat,
    Tokens,
    Trust,
)
from council.render.tail import format_tail
from council.types import OK_STATES, Json


def _unknown_trust() -> Trust:
    return Trust(level="LOW", because=["made by a version that did not compute trust"])


class Report(Part, BaseModel):
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
    gate: Annotated[Gate | None, Field(description="Only with `report --fail-on`.")] = None
    answer: Annotated[
        str,
        Field(
            description="The answer as Markdown; a digest of the statements if the run is incomplete, empty if it failed."
        ),
    ]
    tail: Annotated[
        list[str],
        Field(description="The lines after the answer: the outcome, who differs, and how far to trust it."),
    ] = []
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
    attacks: Annotated[
        list[AttackRow], Field(description="Only of the refine protocol: the errors in the drafts, with the rulings.")
    ] = []
    check: Check | None = None
    stopped: Annotated[
        StopDecision | None, Field(description="Only of the adaptive protocol: why it stopped early.")
    ] = None
    continued: Annotated[
        list[StopDecision], Field(description="Only of the adaptive protocol: why it did not stop earlier.")
    ] = []
    argued: Annotated[
        list[ArguedPoint], Field(description="Only of the adaptive protocol: the disputed points and the arguments.")
    ] = []
    opinions: Annotated[
        list[OpinionRow], Field(description="Only of a review: verdict, key insight and advice of each judge.")
    ] = []
    withdrawn: Annotated[
        list[Any], Field(description="Only of a debate: findings that their judge withdrew, with the reason.")
    ] = []
    settled: Annotated[
        list[Any], Field(description="Only of a debate: findings whose judge changed the severity.")
    ] = []
    by_rule: Annotated[
        dict[str, str | None],
        Field(description="Only of a review: the verdict by each rule, consensus and corroborated."),
    ] = {}
    uncorroborated: Annotated[
        list[str],
        Field(description="Only of a review: the judges whose FAIL the rule corroborated counts as a WARN."),
    ] = []
    grouping: Grouping | None = None
    comparison: Annotated[
        Comparison | None, Field(description="Only of the panel protocol: whether the clerk compared the answers.")
    ] = None
    positions: Annotated[
        list[PositionRow],
        Field(
            description="The positions of the seats: one row per finding, point or topic. In the report of a stored run."
        ),
    ] = []
    sections: Annotated[
        list[AnswerSection],
        Field(
            description="The answer in parts, the decision first; empty if it has no parts. In the report of a stored run."
        ),
    ] = []
    changed: Annotated[
        Changed | None, Field(description="What the council changed. In the report of a stored run.")
    ] = None
    strongest: Annotated[
        StrongestSeat | None,
        Field(
            description="Whether the council changed its strongest seat's answer; absent without two answers or if prices do not tell."
        ),
    ] = None
    stops: Annotated[
        list[Stop], Field(description="Phases that were not needed, and what that saved; absent if there are none.")
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
    facts = [
        f"{report.quorum.ok} of {report.quorum.asked} seats",
        format_cost(report["cost"]),
        f"run {report.run}",
    ]
    lines.append(format_tail(report.tail))
    lines.append(" · ".join(filter(None, facts)))
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
