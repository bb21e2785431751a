"""Replies of brainstorm and research: options or facets of a judge, and the chair's consolidation."""

from __future__ import annotations

from pydantic import Field

from council.replies.base import Reply
from council.replies.judges import NonEmptyList, ReplyPart, TextField


class Option(ReplyPart):
    name: str = Field(description="a name of a few words that others could have chosen too")
    what: TextField = Field(default="", description="the option in a sentence or two")
    pros: list[str]
    cons: list[str]
    assessment: str = Field(description="when it would be the right choice, and how you rate it")

    def prose(self) -> str:
        lines = [
            f"### {self.name}",
            *filter(None, [self.what]),
            *_format_list("For", self.pros),
            *_format_list("Against", self.cons),
        ]
        return "\n".join([*lines, f"Assessment: {self.assessment}"])


class Options(Reply):
    """The options a judge sees in a brainstorm."""

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
    """A judge's findings on a subject, grouped by facet."""

    facets: NonEmptyList[Facet]
    findings: list[str] = Field(description="findings that hold across facets, the most important first")
    open_questions: list[str] = Field(
        description="open questions that would change a decision, with how to settle them"
    )
    recommendation: str = Field(description="what you would do with this knowledge")

    def prose(self) -> str:
        parts = [facet.prose() for facet in self.facets]
        parts += [
            "\n".join(_format_list("Findings", self.findings)),
            "\n".join(_format_list("Open questions", self.open_questions)),
        ]
        return "\n\n".join([*filter(None, parts), f"Recommendation: {self.recommendation}"])


class TradeOff(ReplyPart):
    option: str
    buys: str = Field(description="what it brings")
    costs: str = Field(description="what it costs or rules out")


class Theme(ReplyPart):
    name: str
    findings: list[str] = Field(description="each with the judges who found it and how well it is supported")


class Consolidation(Reply):
    """The chair's consolidation. Fields that the task does not need stay empty."""

    trade_offs: list[TradeOff] = Field(
        default_factory=list, description="brainstorm: each serious option once; else empty"
    )
    themes: list[Theme] = Field(default_factory=list, description="research: the findings by subject; else empty")
    open_questions: list[str] = Field(
        default_factory=list, description="research: open questions, the most important first"
    )
    recommendation: str = Field(description="what to do, for which reason, and when something else")

    def prose(self) -> str:
        trades = [f"- **{one.option}**: {one.buys} Costs: {one.costs}" for one in self.trade_offs]
        parts = ["\n".join(["### Trade-offs", *trades])] if trades else []
        parts += ["\n".join([f"### {one.name}", *(f"- {found}" for found in one.findings)]) for one in self.themes]
        parts += ["\n".join(_format_list("Open questions", self.open_questions))]
        return "\n\n".join([*filter(None, parts), f"Recommendation: {self.recommendation}"])


def _format_list(heading: str, items: list[str]) -> list[str]:
    return [f"{heading}:", *(f"- {item}" for item in items)] if items else []
