"""Replies of the refine protocol: the attack on a draft, and the author's new version."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from council.engine.reply import Reply, also_named, one_row_per
from council.protocols.common.check import Critique
from council.protocols.common.issues import Point, none_to_list, read_points
from council.protocols.common.replies import YesOrNo, require_text
from council.types import Json


class Attack(Critique):
    """The errors in another seat's draft, and whether its conclusion is that of the attacker's own draft."""

    same_conclusion: Annotated[
        YesOrNo,
        WithJsonSchema(
            {
                "type": "boolean",
                "description": "true if a reader would do the same after this draft and after your own",
            }
            | also_named("same_as_mine", "agrees")
        ),
    ] = None

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        return super().rehearse(plain, options, agree=agree, n=n) | {"same_conclusion": agree}


class Rewrite(Reply):
    """The author's rulings on the errors in its draft, and its new answer."""

    answer_field: ClassVar[str] = "answer"
    open_choices: ClassVar[frozenset[str]] = frozenset({"issue", "same_as"})

    rulings: Annotated[list[Point], BeforeValidator(none_to_list), BeforeValidator(read_points)] = Field(
        default=[],
        description="one ruling for each listed error, by its id",
        json_schema_extra=one_row_per("issue") | also_named("points", "errors", "decisions"),
    )
    answer: Annotated[str, AfterValidator(require_text)] = Field(
        description="the whole new answer, complete, in Markdown, without mentioning errors or rulings"
    )

    def prose(self) -> str:
        return self.answer
