"""Lengths of statements in words, and the length of a text that is built from them."""

from __future__ import annotations

import re
from collections.abc import Iterable

MIN_WORD_LIMIT = 150
WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\s\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
HAS_LETTER = re.compile(r"\w")


def find_word_limit(texts: Iterable[str], least: int = MIN_WORD_LIMIT) -> int:
    """Return the maximum words of a text that is built from others: those of the longest, rounded up to tens."""
    longest = max(map(count_words, texts))
    return max(least, -(-longest // 10) * 10)


def count_words(text: str) -> int:
    """Count the words of a text. Marks of tables are no words; a character of a script without spaces is one."""
    words = text.split() if text.isascii() else WORDS.findall(text)
    return sum(map(bool, map(HAS_LETTER.search, words)))
