"""Similarity of two sentences by shared words."""

from __future__ import annotations

import re
from collections.abc import Set

CLOSE = 0.6  # share of common words; with a lower one, a claim would match its opposite
LONGEST = 4_000  # characters read
STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be because been but by can could does for from has have here if in into is it its line lines may "
        "of on or should so than that the their then there these this to was when where which will with would",
    )
)


def tokens(text: str) -> frozenset[str]:
    """Return the words in lower case without stop words; negations are kept."""
    return frozenset(re.findall(r"\w+", text[:LONGEST].lower())) - STOP


def alike(a: Set[str], b: Set[str]) -> float:
    """Return shared words over all words, from 0 to 1; 0 if either is empty."""
    return len(a & b) / len(a | b) if a and b else 0.0


def close(likeness: float) -> bool:
    return likeness >= CLOSE
