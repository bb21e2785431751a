"""Confidence levels, computed by rule instead of taken from a model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from council.rules.voices import Dispute


def compute_confidence(outcome: str, landed: Collection[str], stances: Collection[str]) -> str:
    """Return the confidence of an attacked answer: `landed` holds severities of landed issues, `stances` the attackers' verdicts."""
    if outcome == "OVERTURNED" or ("FATAL" in landed and "REJECTED" in stances):
        return "CONTESTED"
    if outcome == "MODIFIED" or "FATAL" in landed or "MAJOR" in landed:
        return "MEDIUM"
    return "HIGH"


def compute_general_confidence(
    consensus: Sequence[Any], persisting: Sequence[Dispute], answered: int, asked: int, sourced: bool
) -> str:
    """Return the confidence of a general answer: open disputes decide first, then consensus, then sources."""
    if any(not one.is_possible for one in persisting):
        return "CONTESTED"
    if not consensus or answered < 2:
        return "LOW"
    return "HIGH" if sourced and answered == asked and not persisting else "MEDIUM"
