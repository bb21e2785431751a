"""Similarity of two sentences by shared words."""

from __future__ import annotations

import re
from collections.abc import Set

SIMILAR_THRESHOLD = 0.6  # share of common words; with a lower one, a claim would match its opposite
MAX_CHARS = 4_000  # characters read
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be because been but by can could does for from has have here if in into is it its line lines may "
        "of on or should so than that the their then there these this to was when where which will with would",
    )
)


def content_words(text: str) -> frozenset[str]:
    """Return the words in lower case without stop words; negations are kept."""
    return frozenset(re.findall(r"\w+", text[:MAX_CHARS].lower())) - STOP_WORDS


def jaccard(a: Set[str], b: Set[str]) -> float:
    """Return shared words over all words, from 0 to 1; 0 if either is empty."""
    return len(a & b) / len(a | b) if a and b else 0.0


def is_similar(similarity: float) -> bool:
    return similarity >= SIMILAR_THRESHOLD
