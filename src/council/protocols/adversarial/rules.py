"""Confidence levels, computed by rule instead of taken from a model."""

from __future__ import annotations

from collections.abc import Collection


def compute_confidence(outcome: str, landed: Collection[str], stances: Collection[str]) -> str:
    """Return the confidence of an attacked answer: `landed` holds severities of landed issues, `stances` the attackers' verdicts."""
    if outcome == "OVERTURNED" or ("FATAL" in landed and "REJECTED" in stances):
        return "CONTESTED"
    if outcome == "MODIFIED" or "FATAL" in landed or "MAJOR" in landed:
        return "MEDIUM"
    return "HIGH"
