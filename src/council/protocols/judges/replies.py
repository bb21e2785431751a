"""Replies of judges, of their explorers and of the chair that consolidates them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from council.engine.reply import Reply, also_named
from council.language import detect_language
from council.protocols.common.lookups import LookupRequest
from council.protocols.common.replies import ConfidenceField, ReplyPart, TextField, one_of, uppercase
from council.types import Json
from council.wording import load_wording

T = TypeVar("T")
SCHEMA_VERSION = 2


def _none_to_zero(value: Any) -> Any:
    return 0 if value is None else value


def _parse_revised_from(value: Any) -> Any:
    """Map the values models use for "no earlier verdict" to None."""
    verdict = uppercase(value)
    return None if verdict in ("", "NULL", "NONE", "N/A") else verdict


def _require_items(value: list[T]) -> list[T]:
    if not value:
        raise ValueError("give at least one")
    return value


VerdictField = Annotated[
    Literal["PASS", "WARN", "FAIL"],
    one_of(
        {
            "PASS": "passes, passed, passing, approve, approved, approves, accept, accepted, lgtm",
            "WARN": "warning, warnings, warned, pass with warnings, pass with warning, pass with reservations, "
            "pass with concerns, passed with warnings, conditional pass",
            "FAIL": "fails, failed, failing, failure, reject, rejected, rejects, block, blocked",
        }
    ),
]
SeverityField = Annotated[
    Literal["critical", "significant", "minor"],
    one_of(  # on the usual scale of four, "high" is below "critical"
        {
            "critical": "blocker, blocking, fatal, showstopper, show stopper, p0, sev0",
            "significant": "high, medium, moderate, major, important, serious",
            "minor": "low, trivial, nit, nitpick, cosmetic, info, informational, suggestion, style",
        }
    ),
]
VersionField = Annotated[int, BeforeValidator(_none_to_zero)]
# In the schema too, because a model whose output follows it cannot return an empty list then; the dialects move it
# where needed.
NonEmptyList = Annotated[list[T], AfterValidator(_require_items), Field(json_schema_extra={"minItems": 1})]
RevisedFromField = Annotated[Literal["PASS", "WARN", "FAIL"] | None, BeforeValidator(_parse_revised_from)]


class ReportedFinding(ReplyPart):
    """One finding."""

    severity: SeverityField = Field(json_schema_extra=also_named("level", "priority"))
    category: TextField = Field(
        default="", description="security, architecture, performance, style, or another one word"
    )
    description: str = Field(
        description="the problem found",
        json_schema_extra=also_named(
            "issue", "problem", "finding", "message", "text", "summary", "detail", "details", "title"
        ),
    )
    location: TextField = Field(
        default="",
        description="file:line as in the packet; empty if it concerns no single place",
        json_schema_extra=also_named("file", "path", "where", "place"),
    )
    quote: TextField = Field(
        default="",
        description="the line it is about, or up to three lines, copied exactly without line numbers; empty if something is missing there",
    )
    recommendation: TextField = Field(
        default="",
        description="what to do about it, in one sentence to a person",
        json_schema_extra=also_named("advice", "action"),
    )
    fix: TextField = Field(
        default="",
        description="the exact change: the code or text to write instead; empty if there is none to show",
        json_schema_extra=also_named("suggested_fix", "suggestion", "patch"),
    )
    why: TextField = Field(default="", description="the root cause", json_schema_extra=also_named("reason", "cause"))
    ref: TextField = Field(default="", description="the file, passage of the specification or document it rests on")

    def prose(self) -> str:
        place = f" `{self.location}`" if self.location else ""
        line = f"**{self.severity}** {self.category}{place}: {self.description}".replace("** :", "**:")
        parts = {name: getattr(self, name) for name in ("quote", "recommendation", "fix", "why", "ref")}
        if self.recommendation == self.fix:
            del parts["recommendation"]
        return "\n".join([line, *(f"   - {name.capitalize()}: {text}" for name, text in parts.items() if text)])


class Opinion(Reply):
    """Your verdict with its findings."""

    # Without a readable confidence the lowest counts.
    defaults: ClassVar[Mapping[str, Any]] = {
        "confidence": "LOW",
        "key_insight": "",
        "findings": [],
        "recommendation": "",
    }

    verdict: VerdictField
    confidence: ConfidenceField
    key_insight: str = Field(
        description="the whole judgement in a single sentence", json_schema_extra=also_named("insight", "summary")
    )
    findings: list[ReportedFinding] = Field(
        description="every finding, the worst first; empty if there is none",
        json_schema_extra=also_named("issues", "problems"),
    )
    recommendation: str = Field(
        description="the next step you advise, in one sentence", json_schema_extra=also_named("advice", "next_step")
    )
    schema_version: VersionField = Field(default=0, json_schema_extra={"enum": [SCHEMA_VERSION]})

    def prose(self) -> str:
        found = [f"{n}. {finding.prose()}" for n, finding in enumerate(self.findings, 1)]
        head = f"**Verdict: {self.verdict}** (confidence {self.confidence})"
        advice = [f"Recommendation: {self.recommendation}"] if self.recommendation else []
        return "\n\n".join([*filter(None, [head, self.key_insight]), *found, *advice])

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        """Return no findings for judges that agree, so that a plan also counts a review without a clerk."""
        return plain | {"findings": []} if agree else plain | {"verdict": "WARN" if n % 2 else "PASS"}


def output_schema(task: str) -> Json | None:
    """Return the description of a verdict in the packet that `council packet` shows.

    A request has it as its strict reply schema.
    """
    if task != "validate":
        return None
    return {
        "verdict": "PASS | WARN | FAIL",
        "confidence": "HIGH | MEDIUM | LOW",
        **_describe_fields(Opinion),
        "findings": [{"severity": "critical | significant | minor", **_describe_fields(ReportedFinding)}],
        "schema_version": SCHEMA_VERSION,
    }


def _describe_fields(model: type[BaseModel]) -> Json:
    return {name: field.description for name, field in model.model_fields.items() if field.description}


class Objection(ReplyPart):
    target_judge: str = Field(description="the judge whose claim it is")
    finding: TextField = Field(default="", description="the id of the finding it is about; empty if it is about none")
    claim: str = Field(description="the claim that is wrong or incomplete")
    response: str = Field(description="the error in it, with the evidence")


class Acknowledgment(ReplyPart):
    source_judge: str = Field(description="whose point it is")
    point: str
    impact: str = Field(description="what it strengthens or changes in your own view")


class DebateNotes(ReplyPart):
    revised_from: RevisedFromField = Field(default=None, description="your first verdict if you change it, else null")
    steel_man: TextField = Field(
        default="",
        description="the strongest form of an argument you disagree with; where all agreed, the best case against your own verdict",
    )
    challenges: list[Objection] = Field(default_factory=list)
    acknowledgments: list[Acknowledgment] = Field(default_factory=list)


def _id_to_row(value: Any) -> Any:
    return {"id": value} if isinstance(value, str) else value


def _row_to_id(value: Any) -> Any:
    return value["id"] if isinstance(value, dict) and isinstance(value.get("id"), str) else value


class WithdrawnFinding(ReplyPart):
    id: str = Field(description="the id of your finding, such as judge-1.F2")
    why: TextField = Field(default="", description="the specific reason: what you misread or missed")


class SettledSeverity(ReplyPart):
    id: str = Field(description="the id of your finding")
    severity: SeverityField
    why: TextField = Field(default="", description="the reason for this severity")


class _DebateFields(Reply):
    """Fields that come before the verdict, so that the model reasons before it decides."""

    decoration: ClassVar[frozenset[str]] = frozenset({"debate_notes", "supports", "blind_spots"})
    open_choices: ClassVar[frozenset[str]] = frozenset({"id", "supports", "finding"})  # the verdict reports unknown ids

    restated: SkipJsonSchema[TextField] = ""  # asked for by earlier versions
    debate_notes: DebateNotes = Field(default_factory=DebateNotes)
    reason: TextField = Field(
        default="",
        description="the specific detail, location, error or missed case that makes you revise, or why you are not persuaded",
    )
    withdrawn: list[Annotated[WithdrawnFinding, BeforeValidator(_id_to_row)]] = Field(
        default_factory=list, description="findings of yours that you no longer hold; all others remain"
    )
    supports: list[Annotated[str, BeforeValidator(_row_to_id)]] = Field(
        default_factory=list, description="ids of findings of other judges that you checked and hold too"
    )
    settled: list[SettledSeverity] = Field(
        default_factory=list, description="findings of yours whose severity you change"
    )
    blind_spots: list[TextField] = Field(
        default_factory=list, description="what all judges may have missed; empty if you see nothing"
    )


class SecondOpinion(Opinion, _DebateFields):
    """The verdict of the second round, and what changes."""

    key_insight: TextField = Field(default="", description="the whole judgement in a single sentence, as it is now")
    findings: list[ReportedFinding] = Field(
        default_factory=list, description="new findings only; do not repeat those of the first round"
    )
    recommendation: TextField = Field(default="", description="the next step you advise now, in one sentence")

    @property
    def revision_reasons(self) -> tuple[str, ...]:
        """Return the texts that may justify a changed verdict. `restated` is left out: it predates the debate."""
        notes = self.debate_notes
        acknowledged = [text for point in notes.acknowledgments for text in (point.point, point.impact)]
        return (self.reason, *acknowledged, *(one.why for one in self.withdrawn))

    def prose(self) -> str:
        notes = self.debate_notes
        lines = [f"First position: {self.restated}", f"Steel-man: {notes.steel_man}"]
        lines += [f"Withdrawn: {one.id}: {one.why}" for one in self.withdrawn]
        lines += [f"Settled: {one.id} is {one.severity}: {one.why}" for one in self.settled]
        lines += [f"Supports: {', '.join(self.supports)}"] if self.supports else []
        lines += [f"Blind spot: {one}" for one in self.blind_spots]
        lines += [f"Challenge to {one.target_judge}: {one.claim} {one.response}" for one in notes.challenges]
        lines += [f"Acknowledged from {one.source_judge}: {one.point} {one.impact}" for one in notes.acknowledgments]
        change = f"Revised from {notes.revised_from}" if notes.revised_from else "Confirmed"
        lines.append(f"{change}: {self.reason}")
        filled = [line for line in lines if not line.endswith(": ")]
        return "\n\n".join([super().prose(), *filled])


class DefectGroup(ReplyPart):
    findings: list[str] = Field(
        description="the ids of all findings that report this defect, by at least two reviewers",
        json_schema_extra=also_named("ids", "members", "items", "finding_ids", "group"),
    )
    defect: TextField = Field(
        default="",
        description="the defect in one plain sentence",
        json_schema_extra=also_named("description", "name", "title", "summary", "reason"),
    )


class DefectGroups(Reply):
    """Findings that report the same defect; the clerk can only name existing findings."""

    takes_a_position: ClassVar[bool] = False
    open_choices: ClassVar[frozenset[str]] = frozenset(("findings",))

    groups: list[DefectGroup] = Field(
        description="one for each defect that two or more findings report; empty if there is none",
        json_schema_extra=also_named("defects", "duplicates", "clusters", "same"),
    )

    def prose(self) -> str:
        lines = [f"- {', '.join(one.findings)}: {one.defect}".rstrip(": ") for one in self.groups]
        return "\n".join(lines) or "No two findings report the same defect."

    @classmethod
    def convert_older(cls, value: Json) -> Json:
        """Read groups that are written as lists of ids, as texts of ids, or under the name of their defect."""
        groups = value.get("groups")
        if isinstance(groups, dict) and not {"findings", "defect"} & groups.keys():
            named = [(str(key), item) for key, item in groups.items()]
            rows = [{"defect": key, **(item if isinstance(item, dict) else {"findings": item})} for key, item in named]
            return value | {"groups": rows}
        if isinstance(groups, list):
            plain = [row if isinstance(row, dict) else {"findings": row} for row in groups if row]
            return value | {"groups": plain}
        return value

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        return {"groups": []}


class Option(ReplyPart):
    name: str = Field(description="a name of a few words that others could have chosen too")
    what: TextField = Field(default="", description="the option in a sentence or two")
    pros: list[str]
    cons: list[str]
    assessment: str = Field(description="when it would be the right choice, and how you rate it")

    def prose(self) -> str:
        lists = [*_format_list("For", self.pros), *_format_list("Against", self.cons)]
        what = [self.what] if self.what else []
        return "\n".join([f"### {self.name}", *what, *lists, f"Assessment: {self.assessment}"])


class Options(Reply):
    """The options you see."""

    working: TextField = Field(default="", description="the steps of the requested technique, in Markdown; else empty")
    options: NonEmptyList[Option] = Field(description="options that differ in kind")
    recommendation: str = Field(description="the one you would take, and what would change your mind")

    def prose(self) -> str:
        parts = [*filter(None, [self.working]), *(option.prose() for option in self.options)]
        return "\n\n".join([*parts, f"Recommendation: {self.recommendation}"])


class Facet(ReplyPart):
    name: str = Field(description="the facet in a few words")
    findings: list[str] = Field(description="what you find there, what it rests on and how sure you are")

    def prose(self) -> str:
        return "\n".join([f"### {self.name}", *(f"- {finding}" for finding in self.findings)])


class Facets(Reply):
    """Your findings, grouped by facet."""

    facets: NonEmptyList[Facet]
    findings: list[str] = Field(description="findings that hold across facets, the most important first")
    open_questions: list[str] = Field(
        description="open questions that would change a decision, with how to settle them"
    )
    recommendation: str = Field(description="what you would do with this knowledge")

    def prose(self) -> str:
        lists = (("Findings", self.findings), ("Open questions", self.open_questions))
        parts = [*(facet.prose() for facet in self.facets), *("\n".join(_format_list(*one)) for one in lists)]
        return "\n\n".join([*filter(None, parts), f"Recommendation: {self.recommendation}"])


class TradeOff(ReplyPart):
    option: str
    buys: str = Field(description="what it brings")
    costs: str = Field(description="what it costs or rules out")


class Theme(ReplyPart):
    name: str
    findings: list[str] = Field(description="each with the judges who found it and how well it is supported")


class Consolidation(Reply):
    """The judges' work brought together. Fields that the task does not need stay empty."""

    answer_field: ClassVar[str] = "recommendation"

    trade_offs: list[TradeOff] = Field(
        default_factory=list, description="brainstorm: each serious option once; else empty"
    )
    themes: list[Theme] = Field(default_factory=list, description="research: the findings by subject; else empty")
    open_questions: list[str] = Field(
        default_factory=list, description="research: open questions, the most important first"
    )
    recommendation: str = Field(description="what to do, for which reason, and when something else")
    shared_by: list[TextField] = Field(
        default_factory=list, description="the judges whose own recommendation is this one; empty if it is none's"
    )

    def prose(self) -> str:
        if self.missing_parts:
            return self.recommendation
        wording = load_wording(detect_language(self.recommendation))
        t, colon = wording.heading, wording.colon
        trades = [
            f"- **{one.option}**{colon}{one.buys} {t('option_costs')}{colon}{one.costs}" for one in self.trade_offs
        ]
        parts = ["\n".join([f"### {t('trade_offs')}", *trades])] if trades else []
        parts += ["\n".join([f"### {one.name}", *(f"- {found}" for found in one.findings)]) for one in self.themes]
        questions = [f"- {question}" for question in self.open_questions]
        parts += ["\n".join([f"{t('open_questions_list')}{colon.rstrip()}", *questions])] if questions else []
        return "\n\n".join([*parts, f"{t('recommendation')}{colon}{self.recommendation}"])


def _format_list(heading: str, items: list[str]) -> list[str]:
    return [f"{heading}:", *(f"- {item}" for item in items)] if items else []


class SubQuestions(Reply):
    """Your questions, one per explorer."""

    questions: NonEmptyList[str] = Field(description="specific, answerable by looking, no two alike")

    def prose(self) -> str:
        return "\n".join(f"{n}. {question}" for n, question in enumerate(self.questions, 1))

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        return {"questions": [f"… {number}" for number in range(1, (options.get("explorers") or 1) + 1)]}


class Exploration(Reply):
    """Your report."""

    findings: list[str] = Field(description="facts that you found")
    evidence: list[str] = Field(description="the files, lines and patterns that show it")
    assessment: str = Field(description="the meaning for the question, and what you could not find")

    def prose(self) -> str:
        findings, evidence = (["- " + one for one in many] or ["- none"] for many in (self.findings, self.evidence))
        return "\n".join(["## Findings", *findings, "", "## Evidence", *evidence, "", "## Assessment", self.assessment])


class Lookups(LookupRequest):
    """Files, names and patterns to look up next, or your report."""

    exploration: Exploration | None = Field(
        default=None, description="your report when you are done; null to look further"
    )

    @model_validator(mode="after")
    def _check_not_empty(self) -> Lookups:
        if not (self.exploration or self.list_requests()):
            raise ValueError("ask for files, names or patterns, or write up what you found in exploration")
        return self

    @property
    def is_done(self) -> bool:
        return self.exploration is not None

    def prose(self) -> str:
        return self.exploration.prose() if self.exploration else super().prose()
