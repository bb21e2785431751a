"""Replies of the collaborative protocol. Drafts are free text; only `--early-stop` needs a typed conclusion."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from council.engine.reply import Reply, also_named
from council.protocols.common.conclusions import ConclusionReply
from council.protocols.common.replies import require_text
from council.protocols.common.stances import REHEARSED_CHOICE
from council.types import Json


class DraftText(Reply):
    """The draft, which the schema lists before its conclusion."""

    draft: Annotated[str, AfterValidator(require_text)] = Field(
        description="the whole draft as the task asks for it, in Markdown, with its closing sections",
        json_schema_extra=also_named("answer", "text", "content"),
    )


class Draft(ConclusionReply, DraftText):
    """A draft with its conclusion, so that drafts can be compared without another call."""

    answer_field: ClassVar[str] = "draft"

    def prose(self) -> str:
        return self.draft

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        conclusion = REHEARSED_CHOICE if agree else f"{REHEARSED_CHOICE} {n}"
        return plain | {"conclusion": conclusion, "confidence": "HIGH", "doubts": []}
