"""What a judge answers: the verdict schema, version 2, and the verdict of a debate's second round."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from council.replies.base import Reply
from council.types import Json

T = TypeVar("T")
SCHEMA_VERSION = 2


# How the packet describes a verdict to whoever reads it; the strict schema goes with the request besides.
OUTPUT_SCHEMA: dict[str, Any] = {
    "verdict": "PASS | WARN | FAIL",
    "confidence": "HIGH | MEDIUM | LOW",
    "key_insight": "the whole judgement in a single sentence",
    "findings": [
        {
            "severity": "critical | significant | minor",
            "category": "security | architecture | performance | style | another word",
            "description": "what was found",
            "location": "file:line, if it has one",
            "recommendation": "how to address it",
            "fix": "the specific action that resolves it",
            "why": "the root cause",
            "ref": "the file, passage or document it rests on",
        }
    ],
    "recommendation": "the concrete next step",
    "schema_version": SCHEMA_VERSION,
}


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


def _text(value: Any) -> Any:
    return "" if value is None else value


def _version(value: Any) -> Any:
    return 0 if value is None else value


def _revised(value: Any) -> Any:
    """No verdict before this one, in the words in which models say so."""
    said = _upper(value)
    return None if said in ("", "NULL", "NONE", "N/A") else said


def _some(value: list[T]) -> list[T]:
    if not value:
        raise ValueError("give at least one")
    return value


Verdict = Annotated[Literal["PASS", "WARN", "FAIL"], BeforeValidator(_upper)]
Confidence = Annotated[Literal["HIGH", "MEDIUM", "LOW"], BeforeValidator(_upper)]
Severity = Annotated[Literal["critical", "significant", "minor"], BeforeValidator(_lower)]
Text = Annotated[str, BeforeValidator(_text)]
Version = Annotated[int, BeforeValidator(_version)]
# Checked here and not in the schema: not every provider knows minItems.
Some = Annotated[list[T], AfterValidator(_some)]
Revised = Annotated[Literal["PASS", "WARN", "FAIL"] | None, BeforeValidator(_revised)]


class Part(BaseModel):
    """A piece of a reply; what a member adds of its own is ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Found(Part):
    """One finding as a judge writes it. Older schemas did not ask for fix, why and ref."""

    severity: Severity
    category: Text = Field(default="", description="security, architecture, performance, style, or another one word")
    description: str = Field(description="what was found")
    location: Text = Field(default="", description="file:line as in the packet; empty if it concerns no single place")
    recommendation: Text = Field(default="", description="how to address it")
    fix: Text = Field(default="", description="the specific action that resolves it")
    why: Text = Field(default="", description="the root cause")
    ref: Text = Field(default="", description="the file, passage of the specification or document it rests on")

    def prose(self) -> str:
        place = f" `{self.location}`" if self.location else ""
        lines = [f"**{self.severity}** {self.category}{place}: {self.description}".replace("** :", "**:")]
        parts = (("Fix", self.fix or self.recommendation), ("Why", self.why), ("Ref", self.ref))
        return "\n".join(lines + [f"   - {name}: {said}" for name, said in parts if said])


class Opinion(Reply):
    """A judge's verdict with its findings."""

    verdict: Verdict
    confidence: Confidence
    key_insight: str = Field(description="the whole judgement in a single sentence")
    findings: list[Found] = Field(description="every finding, the worst first; empty if there is none")
    recommendation: str = Field(description="the concrete next step")
    schema_version: Version = Field(default=0, json_schema_extra={"enum": [SCHEMA_VERSION]})

    def prose(self) -> str:
        found = [f"{n}. {finding.prose()}" for n, finding in enumerate(self.findings, 1)]
        head = f"**Verdict: {self.verdict}** (confidence {self.confidence})"
        return "\n\n".join([head, self.key_insight, *found, f"Recommendation: {self.recommendation}"])

    @classmethod
    def differing(cls, plain: Json, n: int) -> Json:
        return plain | {"verdict": "WARN" if n % 2 else "PASS"}


class Objection(Part):
    target_judge: str = Field(description="whose claim it is")
    claim: str = Field(description="the claim that is wrong or incomplete, with its location if it has one")
    response: str = Field(description="what is wrong with it, with the evidence")


class Acknowledgment(Part):
    source_judge: str = Field(description="whose point it is")
    point: str
    impact: str = Field(description="what it strengthens or changes in your own view")


class DebateNotes(Part):
    revised_from: Revised = Field(default=None, description="your first verdict if you change it, else null")
    steel_man: Text = Field(
        default="",
        description="the strongest form of an argument you disagree with; where all agreed, the best case against your own verdict",
    )
    challenges: list[Objection] = Field(default_factory=list)
    acknowledgments: list[Acknowledgment] = Field(default_factory=list)


class _Debated(Reply):
    """What is written down before the verdict, so that the verdict can follow from it."""

    restated: Text = Field(
        default="", description="your first position and its key evidence, in two or three sentences"
    )
    debate_notes: DebateNotes
    reason: Text = Field(
        default="",
        description="the specific detail, location, error or missed case that makes you revise, or why you are not persuaded",
    )


class SecondOpinion(Opinion, _Debated):
    """The verdict of the second round. Its fields stand in the order in which they have to be thought."""

    @property
    def cited(self) -> tuple[str, ...]:
        """Everything that may give a reason for a changed verdict. What it said before the debate is no such reason."""
        notes = self.debate_notes
        heard = [text for point in notes.acknowledgments for text in (point.point, point.impact)]
        return (self.reason, *heard)

    def prose(self) -> str:
        notes = self.debate_notes
        lines = [f"First position: {self.restated}", f"Steel-man: {notes.steel_man}"]
        lines += [f"Challenge to {one.target_judge}: {one.claim} {one.response}" for one in notes.challenges]
        lines += [f"Acknowledged from {one.source_judge}: {one.point} {one.impact}" for one in notes.acknowledgments]
        lines += [
            f"Revised from {notes.revised_from}: {self.reason}" if notes.revised_from else f"Confirmed: {self.reason}"
        ]
        said = [line for line in lines if not line.endswith(": ")]
        return "\n\n".join([super().prose(), *said])
