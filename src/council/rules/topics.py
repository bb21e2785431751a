"""Topic normalisation: comparison keys, content words, and the polarity of a sentence."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from council.rules.likeness import content_words

ARTICLES = frozenset(("a", "an", "the"))
NO_PLURAL = frozenset(("https", "news", "windows"))  # not plurals
_ES_PLURAL = re.compile(r"(?:ss|x|zz|sh|[tnr]ch)es\Z")
_FILLER_WORDS = frozenset(  # words that say nothing about the topic
    re.findall(
        r"\w+",
        "all always any anyone argument assertion avoid belief believe cannot case claim common commonly d did do don "
        "everyone he here how i idea just ll m many me more most my never no nobody none nor not nothing notion often "
        "opinion others our people point popular position re recommendation s said say says she simply some statement "
        "suggestion t them they think thought us use used uses using ve very view we what who without you your",
    )
)
_NEGATION = re.compile(
    r"\bnot\b(?!\s+(?:only|just|merely|least)\b)|\bno\b(?!\s+(?:doubt|matter)\b)|n't\b"
    r"|\b(?:never|cannot|neither|nor|none|nobody|nothing|without)\b"
    r"|\b(?:avoid|reject|refus|oppos|delay|postpon|abandon)(?:e?s|ed?|ing)?\b",
    re.IGNORECASE,
)


def topic_key(topic: str) -> str:
    """Return a comparison key that ignores case, punctuation, articles and plural; C, C++ and C# stay different."""
    text = unicodedata.normalize("NFKC", topic).casefold()
    words = [word for word in "".join(map(_normalize_char, text)).split() if word.strip("#")]
    named = [word for word in words[:-1] if word not in ARTICLES] + words[-1:]  # keep the A of "vitamin A"
    return " ".join(map(singularize, named)) or topic.strip().casefold()


def singularize(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith("ss") or word in NO_PLURAL:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if _ES_PLURAL.search(word) else word[:-1]


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the content words; "caching" and "caches" have the same stem."""
    return frozenset(map(_stem, content_words(text) - _FILLER_WORDS))


def polarity(text: str) -> int:
    """Return -1 for an odd number of negations, else 1."""
    return -1 if len(_NEGATION.findall(text.replace("’", "'"))) % 2 else 1


def _stem(word: str) -> str:
    word = singularize(word)
    for ending in ("ing", "ed", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@cache
def _normalize_char(char: str) -> str:
    """Replace punctuation by a space and drop apostrophes; keep currency and comparison symbols."""
    kind = unicodedata.category(char)
    if char in "'’ʼ" or kind == "Cf":
        return ""
    if char == "&":
        return " and "
    parts = kind[0] in "PZC" or kind == "Sk" or char in "|~"
    return " " if parts and char not in "#%" else char
