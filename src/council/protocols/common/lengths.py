"""Lengths of statements in words, and the length of a text that is built from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

MIN_WORD_LIMIT = 150
WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\s\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
OPENING_WORDS = 60  # of each first draft, for the chair's notes on who recommended what before reading the others
HEADING_LINE = re.compile(r"^#+ .*$", re.MULTILINE)
HAS_LETTER = re.compile(r"\w")
CODE_BLOCK = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


def find_word_limit(texts: Iterable[str], least: int = MIN_WORD_LIMIT) -> int:
    """Return the maximum words of a text that is built from others: those of the longest, rounded up to tens."""
    longest = max(map(count_words, texts))
    return max(least, -(-longest // 10) * 10)


def count_words(text: str) -> int:
    """Count the words of a text as in prose. Code blocks and marks of tables do not count.

    A character of a script without spaces is one word.
    """
    prose = CODE_BLOCK.sub(" ", text)
    words = prose.split() if prose.isascii() else WORDS.findall(prose)
    return sum(map(bool, map(HAS_LETTER.search, words)))


def find_opening(text: str) -> str:
    """Return the first words of a draft without its headings: its recommendation, which it begins with."""
    body = HEADING_LINE.sub("", text).strip()
    words = list(islice(WORDS.finditer(body), OPENING_WORDS + 1))
    return body if len(words) <= OPENING_WORDS else f"{body[: words[OPENING_WORDS - 1].end()]} …"
