"""How far to trust a contested answer: computed from what happened, never from what was claimed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from council.rules.voices import Dispute


def confidence(outcome: str, landed: Collection[str], stances: Collection[str]) -> str:
    """`landed` are the severities of the issues that landed, `stances` the attackers' words for the whole. First match decides."""
    if outcome == "OVERTURNED" or ("FATAL" in landed and "REJECTED" in stances):
        return "CONTESTED"
    if outcome == "MODIFIED" or "FATAL" in landed or "MAJOR" in landed:
        return "MEDIUM"
    return "HIGH"


def general_confidence(
    consensus: Sequence[Any], persisting: Sequence[Dispute], heard: int, asked: int, sourced: bool
) -> str:
    """How far an answer can be stood by: what is disputed decides first, then what is agreed, then on which grounds."""
    if any(not one.possible for one in persisting):
        return "CONTESTED"
    if not consensus or heard < 2:
        return "LOW"
    return "HIGH" if sourced and heard == asked and not persisting else "MEDIUM"
