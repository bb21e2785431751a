"""Whether two sentences say nearly the same, by the words they share."""

from __future__ import annotations

import re
from collections.abc import Set

CLOSE = 0.6  # of all their words are shared; below that a claim and its opposite begin to look alike
LONGEST = 4_000  # characters that are read
STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be because been but by can could does for from has have here if in into is it its line lines may "
        "of on or should so than that the their then there these this to was when where which will with would",
    )
)


def tokens(text: str) -> frozenset[str]:
    """The words that carry meaning, in lower case; a negation does."""
    return frozenset(re.findall(r"\w+", text[:LONGEST].lower())) - STOP


def alike(a: Set[str], b: Set[str]) -> float:
    """Shared words over all words: 0 for nothing in common (or nothing said), 1 for the same words."""
    return len(a & b) / len(a | b) if a and b else 0.0


def close(likeness: float) -> bool:
    return likeness >= CLOSE
