"""Replies of the general protocol: queries, positions, topic pairs, second-round answers and the synthesis."""

from __future__ import annotations

import re
from textwrap import indent
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from council.engine.reply import Choices, Reply, one_row_per
from council.protocols.common.replies import LIST_MARKER, Probability, ReplyPart, one_of
from council.types import Json

ANSWER_WORDS = ("MAINTAIN", "CONCEDE", "NUANCE")
_FIRST_WORD = re.compile(r"^[\W_]*([A-Za-z]+)")


def _parse_numbers(value: Any) -> Any:
    """Parse source numbers, including those written as "[2]"."""
    if not isinstance(value, list):
        return value
    return [int(found[0]) for item in value if (found := re.search(r"\d{1,6}", str(item)))]


SourceNumbers = Annotated[list[int], BeforeValidator(_parse_numbers)]
Stance = Annotated[
    Literal["supports", "opposes", "qualifies"],
    one_of(
        {
            "supports": "support, supporting, for, in favor, in favour, pro",
            "opposes": "oppose, opposing, opposed, against, con",
            "qualifies": "qualify, qualified, conditional, supports with conditions, depends",
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
    topic: str = Field(description="what the claim is about, in two to six words, neutral: no stance in it")
    stance: Stance = Field(description="whether you are for it, against it, or for it only under a condition")
    text: str = Field(description="the claim itself, in one sentence")
    confidence: Probability = Field(description="from 0 to 1")
    sources: SourceNumbers = Field(
        description="the numbers of the sources in the research context it rests on; empty if none"
    )


class QuotedSource(ReplyPart):
    """A source that a member copied from the research context."""

    title: str
    url: str
    snippet: str = Field(description="the relevant words, at most twenty")
    query: str = Field(description="the query that found it, if the context names it; else empty")


class Position(Reply):
    """A member's first answer, written without the others' answers."""

    response: str = Field(description="your answer, in Markdown; sources cited as [1]")
    claims: list[DeclaredClaim] = Field(description="the claims your answer rests on, at most six")
    sources: list[QuotedSource] = Field(description="the sources you used, from the research context only")
    confidence: Probability = Field(description="in your answer as a whole, from 0 to 1")
    areasOfUncertainty: list[str] = Field(description="what you do not know, and what would settle it")

    def prose(self) -> str:
        claims = [
            f"- {one.stance} {one.topic}: {one.text} ({one.confidence:g}){_format_citations(one.sources)}"
            for one in self.claims
        ]
        unsure = [f"- {line}" for line in self.areasOfUncertainty]
        parts = [("", [self.response.strip()]), ("Claims", claims), ("Uncertain", unsure)]
        return "\n\n".join(
            "\n".join([*([f"**{heading}**", ""] if heading else []), *lines]) for heading, lines in parts if lines
        )

    @classmethod
    def vary(cls, plain: Json, n: int) -> Json:
        stance = "opposes" if n % 2 else "supports"
        return plain | {"claims": [claim | {"stance": stance} for claim in plain["claims"]]}


def _format_citations(numbers: list[int]) -> str:
    return " " + "".join(f"[{n}]" for n in numbers) if numbers else ""


class TopicPair(ReplyPart):
    topic: str = Field(description="a topic of the list, by its letter and number")
    same_as: str = Field(description="another topic of the list that is about the same thing")


class Topics(Reply):
    """Pairs of topics that mean the same thing; it can only name existing topics."""

    same: list[TopicPair] = Field(
        description="one pair for each topic that repeats another in other words; empty if all differ"
    )

    def prose(self) -> str:
        return "\n".join(f"- {one.topic} is {one.same_as}" for one in self.same) or "All topics differ."


class DisputeAnswer(ReplyPart):
    topic: str = Field(description="the disagreement, by its letter and number")
    word: AnswerWord
    paragraph: str = Field(description="your answer in one paragraph that begins with that word")
    confidence: Probability = Field(description="in your current claim, from 0 to 1")


class Reconsidered(Reply):
    """Second-round answers to disputes, one paragraph each; they do not replace the first answer."""

    takes_a_position: ClassVar[bool] = False

    answers: list[DisputeAnswer] = Field(description="one for each disagreement that was put to you")

    def check_choices(self, choices: Choices) -> None:
        if not self.answers:
            raise ValueError("answers is empty: answer each disagreement that was put to you")
        for one in self.answers:
            said = _FIRST_WORD.match(one.paragraph)
            begins = said[1].upper() if said else ""
            if begins in ANSWER_WORDS and begins != one.word:
                raise ValueError(
                    f"{one.topic}: the paragraph begins with {begins}, but `word` says {one.word}; make them match"
                )

    def prose(self) -> str:
        return "\n\n".join(f"**{one.topic}** {_with_leading_word(one)}" for one in self.answers)


def _with_leading_word(one: DisputeAnswer) -> str:
    said = _FIRST_WORD.match(one.paragraph)
    text = one.paragraph.strip()
    return text if said and said[1].upper() == one.word else f"{one.word}: {text}"


class SideSummary(ReplyPart):
    position: str = Field(description="what this side holds, in a few words")
    case: str = Field(description="the strongest case for it, with its sources")


class DisagreementSummary(ReplyPart):
    disagreement: str = Field(description="the disagreement, by its letter and number")
    because: str = Field(description="why the experts disagree on it, in one sentence")
    sides: list[SideSummary] = Field(description="every side, at least two")


class Synthesis(Reply):
    """The chair's answer, based only on the members' statements."""

    answer_field: ClassVar[str] = "answer"

    answer: str = Field(description="the answer to the question, in Markdown, sources cited as [1]")
    disagreements: list[DisagreementSummary] = Field(
        description="one for each disagreement that persists", json_schema_extra=one_row_per("disagreement")
    )

    def prose(self) -> str:
        return self.answer


class SpecSynthesis(Synthesis):
    """A synthesis for a specification review, with proposed changes."""

    changes: list[str] = Field(description="each change to the specification that should be made, ready to be applied")

    def prose(self) -> str:
        if self.missing_parts:
            return self.answer
        return f"{self.answer.strip()}\n\n## Proposed Spec Changes\n\n{self.format_changes()}"

    def format_changes(self) -> str:
        """Format the changes as a list, one item each, without duplicate list markers."""
        items = [indent(LIST_MARKER.sub("", change.strip()), "  ").strip() for change in self.changes]
        return "\n".join(f"- {item}" for item in items if item) or "None."
