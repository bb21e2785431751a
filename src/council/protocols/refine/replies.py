"""Replies of the refine protocol: the attack on a draft, the author's new version, and the ballot on the versions."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from council.engine.reply import Reply, also_named, one_row_per
from council.engine.reply_form import LONGEST_PATH
from council.protocols.common.ballots import Ballot
from council.protocols.common.check import Critique
from council.protocols.common.issues import Point, none_to_list, read_points
from council.protocols.common.replies import ReplyPart, TextField
from council.types import Json

YES_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def _read_yes_or_no(value: Any) -> Any:
    """Return True or False for a clear word; None, which says nothing, for any other value."""
    return value if isinstance(value, bool) else YES_WORDS.get(str(value).strip(" .").lower())


YesOrNo = Annotated[bool | None, BeforeValidator(_read_yes_or_no)]


def _describe_flag(description: str, *names: str) -> Json:
    return {"type": "boolean", "description": description} | also_named(*names)


class Attack(Critique):
    """The errors in another seat's draft, and whether its conclusion is that of the attacker's own draft."""

    same_conclusion: Annotated[
        YesOrNo,
        WithJsonSchema(
            _describe_flag(
                "true if a reader would do the same after this draft and after your own", "same_as_mine", "agrees"
            )
        ),
    ] = None

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        return super().rehearse(plain, options, agree=agree, n=n) | {"same_conclusion": agree}


def _require_text(value: str) -> str:
    if not value.strip():
        raise ValueError("it is empty: write the whole answer")
    return value


class Rewrite(Reply):
    """The author's rulings on the errors in its draft, and its new answer."""

    answer_field: ClassVar[str] = "answer"
    open_choices: ClassVar[frozenset[str]] = frozenset({"issue", "same_as"})

    rulings: Annotated[list[Point], BeforeValidator(none_to_list), BeforeValidator(read_points)] = Field(
        default=[],
        description="one ruling for each listed error, by its id",
        json_schema_extra=one_row_per("issue") | also_named("points", "errors", "decisions"),
    )
    answer: Annotated[str, AfterValidator(_require_text)] = Field(
        description="the whole new answer, complete, in Markdown, without mentioning errors or rulings"
    )
    changed_conclusion: Annotated[
        YesOrNo,
        WithJsonSchema(
            _describe_flag(
                "true if a reader would do something else after the new answer than after your draft",
                "conclusion_changed",
            )
        ),
    ] = None

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        return plain | {"changed_conclusion": False}

    def prose(self) -> str:
        return self.answer


class ChoiceSide(ReplyPart):
    """What one response decides on a point."""

    label: str = Field(description="the response's label, its letters alone")
    position: TextField = Field(default="", description="what it decides, in at most eight words")
    assumes: TextField = Field(default="", description="what this assumes, in at most eight words; else empty")


class ChoiceDifference(ReplyPart):
    """A point that responses decide differently."""

    point: str = Field(description="the decision, in a few words")
    sides: Annotated[list[ChoiceSide], BeforeValidator(none_to_list)] = Field(
        default=[], description="one row for each response"
    )


class Choice(Ballot):
    """A ballot, and what the responses decide differently."""

    decoration: ClassVar[frozenset[str]] = frozenset({"reasons", "differences"})
    differences: Annotated[list[ChoiceDifference], BeforeValidator(none_to_list)] = Field(
        default=[],
        description="at most two decisions that exclude each other and would change what the reader does; else empty",
    )

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        return cls.vary(plain, n) if options.get(LONGEST_PATH) else plain  # ballots in a circle: the chair decides
