"""Replies of the adaptive protocol: a sealed answer, the check of an answer, and the arguments on disputed points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from council.engine.reply import Reply, also_named, one_row_per
from council.protocols.common.check import Critique, shorten_words
from council.protocols.common.conclusions import ConclusionReply
from council.protocols.common.issues import none_to_list
from council.protocols.common.replies import ReplyPart, TextField, YesOrNo, one_of, require_text
from council.types import Json

MAX_ARGUMENT_WORDS = 120  # on one point


class Answer(ConclusionReply):
    """A complete answer, its conclusion in one line, how sure its author is, and what could make it wrong."""

    answer_field: ClassVar[str] = "answer"

    answer: Annotated[str, AfterValidator(require_text)] = Field(
        description="the whole answer to the person who asked, in Markdown"
    )

    def prose(self) -> str:
        """Append the conclusion and the doubts, which other seats read."""
        conclusion = [f"**Conclusion:** {self.conclusion}"] if self.conclusion else []
        confidence = [f"**Confidence:** {self.confidence}"] if self.confidence else []
        doubts = ["**Doubts:**\n\n" + "\n".join(f"- {doubt}" for doubt in self.doubts)] if self.doubts else []
        return "\n\n".join([self.answer.rstrip(), *conclusion, *confidence, *doubts])

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        """Return equal firm answers, or opposite ones with a doubt."""
        if agree:
            return plain | {"conclusion": "yes", "confidence": "HIGH", "doubts": []}
        return plain | {
            "conclusion": "no" if n % 2 else "yes",
            "confidence": "LOW",
            "doubts": ["a figure could not be verified"],
        }


class Confirmation(Critique):
    """The errors in another seat's answer, and whether its conclusion is that of the reader's own answer."""

    same_conclusion: Annotated[
        YesOrNo,
        WithJsonSchema(
            {
                "type": "boolean",
                "description": "true if this answer and your own reach the same conclusion: a reader would believe and do the same",
            }
            | also_named("same_as_mine", "agrees", "same")
        ),
    ] = None

    def prose(self) -> str:
        words = {True: "The conclusion is the same.", False: "The conclusion is a different one."}
        said = [words[self.same_conclusion]] if self.same_conclusion is not None else []
        return "\n\n".join([*said, super().prose()])

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        return super().rehearse(plain, options, agree=agree, n=n) | {"same_conclusion": agree}


class ArgumentRow(ReplyPart):
    """What a seat says on one disputed point."""

    point: str = Field(description="the id of the point", json_schema_extra=also_named("id", "point_id"))
    stance: Annotated[
        Literal["holds", "concedes"],
        one_of(
            {
                "holds": "hold, stands, stand, attack, attacks, maintain, maintains, keep, keeps, reject, rejects, no",
                "concedes": "concede, conceded, accept, accepts, yield, yields, withdraw, withdraws, agree, agrees, yes",
            }
        ),
    ] = Field(
        description="holds: your position is right; concedes: the other side is right",
        json_schema_extra=also_named("decision", "verdict", "position"),
    )
    argument: Annotated[TextField, AfterValidator(partial(shorten_words, limit=MAX_ARGUMENT_WORDS))] = Field(
        default="",
        description=f"the evidence against the other side, or why it is right, in at most {MAX_ARGUMENT_WORDS} words",
        json_schema_extra=also_named("reason", "why", "evidence", "text"),
    )


class Arguments(Reply):
    """A seat's arguments on the points on which it holds a side."""

    takes_a_position: ClassVar[bool] = False
    open_choices: ClassVar[frozenset[str]] = frozenset({"point"})
    defaults: ClassVar[Mapping[str, Any]] = {"points": []}

    points: Annotated[list[ArgumentRow], BeforeValidator(none_to_list)] = Field(
        description="one row for each listed point, by its id",
        json_schema_extra=one_row_per("point") | also_named("arguments", "rows", "disputed"),
    )

    def prose(self) -> str:
        rows = [f"- {row.point}: {row.stance}. {row.argument}".rstrip() for row in self.points]
        return "\n".join(rows) or "No argument."

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        return plain | {"points": [row | {"stance": "holds"} for row in plain["points"]]}
