"""Conclusions of answers: the typed part of a reply that states one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from council.answer_text import says_none
from council.engine.reply import Reply, also_named
from council.protocols.common.replies import TextField, read_confidence

Level = Literal["HIGH", "MEDIUM", "LOW", ""]
LEVELS = ("HIGH", "MEDIUM", "LOW")


def _read_level(value: Any) -> Any:
    """Return the level of a confidence; empty for one that says nothing, such as 300 %."""
    level = read_confidence(value)
    return level if level in LEVELS else ""


def _read_doubts(value: Any) -> Any:
    if value is None:
        return None
    rows = value if isinstance(value, list | tuple) else [value]
    return [str(next(iter(row.values()), "")) if isinstance(row, Mapping) else str(row) for row in rows]


def _drop_empty_doubts(doubts: list[str] | None) -> list[str] | None:
    return None if doubts is None else [doubt for doubt in doubts if doubt.strip() and not says_none(doubt)]


def _keep_first_line(value: str) -> str:
    return next((line.strip() for line in value.splitlines() if line.strip()), "")


LevelField = Annotated[
    Level,
    BeforeValidator(_read_level),
    WithJsonSchema({"type": "string", "enum": list(LEVELS), "description": "how sure you are of the conclusion"}),
]
DoubtsField = Annotated[
    list[str] | None,
    BeforeValidator(_read_doubts),
    AfterValidator(_drop_empty_doubts),
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "string"},
            "description": "what could make the conclusion wrong and you could not rule out, one line each; empty if nothing",
        }
        | also_named("doubt", "open_doubts", "uncertainties", "concerns")
    ),
]


class ConclusionReply(Reply):
    """The part of a reply that states its conclusion. A value that cannot be read says nothing: it is never guessed."""

    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({"conclusion": "", "confidence": "", "doubts": None})

    conclusion: Annotated[TextField, AfterValidator(_keep_first_line)] = Field(
        default="",
        description="the conclusion in one short line: the value with its unit, the name, yes or no, the option, or the "
        "recommended action; the same words for the same thing, and no reasons",
        json_schema_extra=also_named("final_answer", "short_answer", "bottom_line"),
    )
    confidence: LevelField = ""
    doubts: DoubtsField = None  # None if the reply does not say

    @property
    def is_firm(self) -> bool:
        """Return whether the reply states a conclusion with HIGH confidence, and says that there is no doubt."""
        return bool(self.conclusion) and self.confidence == "HIGH" and self.doubts == []
