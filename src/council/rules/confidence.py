"""How far to trust a contested answer: computed from what happened, never from what was claimed."""

from __future__ import annotations

from collections.abc import Collection


def confidence(outcome: str, landed: Collection[str], stances: Collection[str]) -> str:
    """`landed` are the severities of the issues that landed, `stances` the attackers' words for the whole. First match decides."""
    if outcome == "OVERTURNED" or ("FATAL" in landed and "REJECTED" in stances):
        return "CONTESTED"
    if outcome == "MODIFIED" or "FATAL" in landed or "MAJOR" in landed:
        return "MEDIUM"
    return "HIGH"
