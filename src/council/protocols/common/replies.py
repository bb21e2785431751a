"""Fields of typed replies that two or more protocols share."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

LIST_MARKER = re.compile(r"^(?:[-*•]|\(?\d{1,2}[.)])\s+")  # models often write it into the items


def uppercase(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def _none_to_empty(value: Any) -> Any:
    return "" if value is None else value


ConfidenceField = Annotated[Literal["HIGH", "MEDIUM", "LOW"], BeforeValidator(uppercase)]
TextField = Annotated[str, BeforeValidator(_none_to_empty)]


class ReplyPart(BaseModel):
    """Part of a reply; extra fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)
