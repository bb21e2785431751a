"""Replies of the general protocol: queries, positions, groups of claims, second-round answers and the synthesis."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import indent
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from council.engine.reply import Reply, also_named, one_row_per
from council.engine.reply_form import LIST_MARKER, Choices
from council.language import detect_language
from council.protocols.common.replies import Probability, ReplyPart, TextField, none_to_empty, one_of
from council.types import Json
from council.wording import load_wording

ANSWER_WORDS = ("MAINTAIN", "CONCEDE", "NUANCE")
_FIRST_WORD = re.compile(r"^[\W_]*([A-Za-z]+)")


def _parse_numbers(value: Any) -> Any:
    """Parse source numbers, including those written as "[2]"."""
    if not isinstance(value, list):
        return value
    return [int(found[0]) for item in value if (found := re.search(r"\d{1,6}", str(item)))]


def _parse_short_answer(value: Any) -> Any:
    """Return a JSON true or false as an answer in words."""
    return ("yes" if value else "no") if isinstance(value, bool) else none_to_empty(value)


SourceNumbers = Annotated[list[int], BeforeValidator(_parse_numbers)]
ShortAnswer = Annotated[str, BeforeValidator(_parse_short_answer)]
ClaimRelation = Annotated[
    Literal["agree", "conflict", "depends"],
    one_of(
        {
            "agree": "agrees, agreed, agreement, same, consistent",
            "conflict": "conflicts, conflicting, disagree, disagreement, contradict, contradicts, contradiction",
            "depends": "depend, conditional, qualified, compatible",
        }
    ),
]
AnswerWord = Annotated[
    Literal["MAINTAIN", "CONCEDE", "NUANCE"],
    one_of({"MAINTAIN": "maintains, maintained", "CONCEDE": "concedes, conceded", "NUANCE": "nuanced, nuances"}),
]


class Queries(Reply):
    """The search queries the chair asks for."""

    queries: list[str] = Field(description="one to three specific keyword queries, each under 500 characters")

    def prose(self) -> str:
        return "\n".join(f"- {query}" for query in self.queries)


class DeclaredClaim(ReplyPart):
    question: str = Field(description="the question this claim answers, as other members would also ask it")
    answer: ShortAnswer = Field(
        default="", description="one to eight words: yes, no, a number with its unit, a date, or a name"
    )
    text: TextField = Field(default="", description="the claim itself, in one sentence")
    holds_when: TextField = Field(default="", description="the condition under which it holds; empty if there is none")
    confidence: Probability = Field(default=0.5, description="from 0 to 1")
    sources: SourceNumbers = Field(
        default=[], description="the numbers of the sources in the research context it rests on; empty if none"
    )


class QuotedSource(ReplyPart):
    """A source that a member copied from the research context instead of giving its number."""

    title: TextField = ""
    url: TextField = ""


class Position(Reply):
    """A member's first answer, written without the others' answers."""

    decisive: ClassVar[frozenset[str]] = frozenset({"confidence"})

    response: str = Field(
        description="your answer, in Markdown",
        json_schema_extra=also_named("answer", "final_answer", "text"),
    )
    claims: list[DeclaredClaim] = Field(default=[], description="the claims your answer rests on, at most six")
    sources: SourceNumbers = Field(
        default=[], description="the numbers of the sources you used, from the research context only"
    )
    copied_sources: SkipJsonSchema[list[QuotedSource]] = Field(default=[])
    confidence: Probability = Field(default=0.5, description="in your answer as a whole, from 0 to 1")
    areasOfUncertainty: list[str] = Field(default=[], description="what you do not know, and what would settle it")

    @classmethod
    def convert_older(cls, value: Json) -> Json:
        """Read claims of version 0.1, which had a topic and a stance."""
        if not isinstance(value.get("claims"), list):
            return value
        claims = []
        for one in value["claims"]:
            is_older = isinstance(one, dict) and "topic" in one and "question" not in one
            answer = str(one.get("stance", "")).strip().lower() if is_older else ""
            claims.append(one | {"question": one["topic"], "answer": answer} if is_older else one)
        return value | {"claims": claims}

    @model_validator(mode="before")
    @classmethod
    def _split_sources(cls, value: Any) -> Any:
        """Separate numbers from copied sources, which version 0.1 asked for."""
        if not isinstance(value, dict) or not isinstance(value.get("sources"), list):
            return value
        copied = [one for one in value["sources"] if isinstance(one, dict)]
        return value | {"sources": [one for one in value["sources"] if one not in copied], "copied_sources": copied}

    def prose(self) -> str:
        claims = [_format_claim(one) for one in self.claims]
        unsure = [f"- {line}" for line in self.areasOfUncertainty]
        parts = [("", [self.response.strip()]), ("Claims", claims), ("Uncertain", unsure)]
        return "\n\n".join(
            "\n".join([*([f"**{heading}**", ""] if heading else []), *lines]) for heading, lines in parts if lines
        )

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        """Return claims on one question, so that they can be compared."""
        same = {"question": "Is it needed?", "answer": "no" if n % 2 and not agree else "yes", "holds_when": ""}
        return plain | {"claims": [claim | same for claim in plain["claims"]]}


def _format_claim(one: DeclaredClaim) -> str:
    when = f" (when {one.holds_when.strip()})" if one.holds_when.strip() else ""
    answer = f" {one.answer.strip()}" if one.answer.strip() else ""
    citations = " " + "".join(f"[{n}]" for n in one.sources) if one.sources else ""
    return f"- {one.question}{answer}{when}: {one.text} ({one.confidence:g}){citations}"


class GroupOfClaims(ReplyPart):
    question: TextField = Field(default="", description="the question that these claims answer")
    claims: list[str] = Field(description="the ids of the claims, by at least two members")
    relation: ClaimRelation = Field(
        description="agree: they say the same; conflict: they cannot all be true; depends: both can be true, under different conditions or about different things"
    )


class ClaimGroups(Reply):
    """Groups of claims on one question; the clerk can only name existing claims."""

    takes_a_position: ClassVar[bool] = False
    open_choices: ClassVar[frozenset[str]] = frozenset(("claims",))

    groups: list[GroupOfClaims] = Field(
        description="one for each question that two or more members answer; empty if there is none"
    )

    def prose(self) -> str:
        lines = [f"- {one.relation}: {', '.join(one.claims)} ({one.question})" for one in self.groups]
        return "\n".join(lines) or "No two members answer the same question."

    @classmethod
    def convert_older(cls, value: Json) -> Json:
        """Read the pairs of topics of version 0.1 as no group: topics are not compared any more."""
        return {"groups": []} if "same" in value and "groups" not in value else value

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        return {"groups": []}


class DisputeAnswer(ReplyPart):
    topic: str = Field(description="the question, by its letter and number")
    word: AnswerWord
    paragraph: str = Field(description="your answer in one paragraph that begins with that word")
    confidence: Probability = Field(description="in your current claim, from 0 to 1")

    @property
    def first_word(self) -> str:
        found = _FIRST_WORD.match(self.paragraph)
        return found[1].upper() if found else ""


class Reconsidered(Reply):
    """Second-round answers to disputes, one paragraph each; they do not replace the first answer."""

    takes_a_position: ClassVar[bool] = False

    answers: list[DisputeAnswer] = Field(description="one for each question that was put to you")

    def check_choices(self, choices: Choices) -> None:
        if not self.answers:
            raise ValueError("answers is empty: answer each question that was put to you")
        for one in self.answers:
            begins = one.first_word
            if begins in ANSWER_WORDS and begins != one.word:
                raise ValueError(
                    f"{one.topic}: the paragraph begins with {begins}, but `word` says {one.word}; make them match"
                )

    def prose(self) -> str:
        words = ["" if one.first_word == one.word else f"{one.word}: " for one in self.answers]
        rows = zip(words, self.answers, strict=True)
        return "\n\n".join(f"**{one.topic}** {word}{one.paragraph.strip()}" for word, one in rows)


class SideSummary(ReplyPart):
    position: str = Field(description="what this side holds, in a few words")
    case: str = Field(description="the strongest case for it, with its sources")


class DisagreementSummary(ReplyPart):
    disagreement: str = Field(description="the disagreement, by its letter and number")
    because: str = Field(description="why the experts disagree on it, in one sentence")
    sides: list[SideSummary] = Field(description="every side, at least two")


class AddedSide(ReplyPart):
    member: TextField = Field(default="", description="the member that holds it, by its name above")
    position: str = Field(description="what this member says, close to its own words")


class AddedDisagreement(ReplyPart):
    question: str = Field(description="the question on which they differ")
    sides: list[AddedSide] = Field(description="every side, at least two")


class Synthesis(Reply):
    """The chair's answer, based only on the members' statements."""

    answer_field: ClassVar[str] = "answer"
    decoration: ClassVar[frozenset[str]] = frozenset({"disagreements"})

    answer: str = Field(description="the answer to the question, in Markdown, sources cited as [1]")
    disagreements: list[DisagreementSummary] = Field(
        description="one for each disagreement that persists", json_schema_extra=one_row_per("disagreement")
    )
    added_disagreements: list[AddedDisagreement] = Field(
        default=[], description="disagreements between members that the lists above missed; usually empty"
    )

    @property
    def texts(self) -> list[str]:
        """The answer, and what the chair says of each side."""
        return [self.answer, *(side.case for one in self.disagreements for side in one.sides)]

    def edit(self, change: Callable[[str], str]) -> Self:
        """Return the synthesis with a change of each of its texts."""
        rows = [
            one.model_copy(
                update={"sides": [side.model_copy(update={"case": change(side.case)}) for side in one.sides]}
            )
            for one in self.disagreements
        ]
        return self.model_copy(update={"answer": change(self.answer), "disagreements": rows})

    def prose(self) -> str:
        return self.answer


class SpecSynthesis(Synthesis):
    """A synthesis for a specification review, with proposed changes."""

    changes: list[str] = Field(description="each change to the specification that should be made, ready to be applied")

    @property
    def texts(self) -> list[str]:
        return [*super().texts, *self.changes]

    def edit(self, change: Callable[[str], str]) -> Self:
        return super().edit(change).model_copy(update={"changes": list(map(change, self.changes))})

    def prose(self) -> str:
        if self.missing_parts:
            return self.answer
        t = load_wording(detect_language(self.answer)).heading
        changes = self.format_changes() or t("none_sentence")
        return f"{self.answer.strip()}\n\n## {t('proposed_spec_changes')}\n\n{changes}"

    def format_changes(self) -> str:
        """Format the changes as a list, one item each, without duplicate list markers."""
        items = [indent(LIST_MARKER.sub("", change.strip()), "  ").strip() for change in self.changes]
        return "\n".join(f"- {item}" for item in items if item)
