"""Similarity of two sentences by shared words."""

from __future__ import annotations

import re
from collections.abc import Set
from functools import lru_cache

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


# Stems

_WORD_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")  # parts of camelCase and snake_case
_SUFFIXES = (
    "ization", "isation", "ations", "ation", "ingly", "ities", "ments", "ness", "ings", "ions", "able", "ible", "ally", "ment",
    "ing", "ion", "ity", "ise", "ize", "ers", "ies", "ed", "er", "es", "ly", "al", "s", "e",
)  # fmt: skip
_MIN_STEM = 3  # letters that a stem keeps; one more before a long suffix


def stem(word: str) -> str:
    """Return a rough English stem: injection, injected and injects have the same."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM + (len(suffix) > 3):
            word = word[: -len(suffix)]
            break
    word = word[:-1] if len(word) > _MIN_STEM and word[-1] == word[-2] and word[-1] not in "s" else word
    return word.removesuffix("e") if len(word) > _MIN_STEM else word


@lru_cache(maxsize=1_024)
def stems(text: str) -> frozenset[str]:
    """Return the stems of the content words; the parts of an identifier count as words."""
    parts = (part.lower() for part in _WORD_PARTS.findall(text[:MAX_CHARS]))
    return frozenset(stem(part) for part in parts if part not in STOP_WORDS and (len(part) > 1 or part.isdigit()))
