"""Excerpts of runs for a search: the part of a question, answer or statement that has the words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from council.text_cleanup import clean

EXCERPT_CHARS = 140
LEAD_CHARS = 40  # characters before the first match
MAX_COMPARED = 200  # matches of one text that may be the first of the excerpt


def make_excerpt(texts: Iterable[str], words: Sequence[str]) -> str:
    """Return one line without control characters around the words, from the text with the most of them, or ""."""
    pattern = compile_words(words)
    best, most = "", 0
    for text in texts:
        line = " ".join(clean(text).split())
        found = {match[0].casefold() for match in pattern.finditer(line)}
        if len(found) > most:
            best, most = _cut_around(line, pattern), len(found)
        if most == len(words):
            break
    return best


def compile_words(words: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that matches each of the words in any case; the longest is tried first."""
    return re.compile("|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)), re.IGNORECASE)


def _cut_around(line: str, pattern: re.Pattern[str]) -> str:
    """Return the part of a line with the most different words, cut between words."""
    matches = list(islice(pattern.finditer(line), MAX_COMPARED))

    def count_words(first: int) -> int:
        end = first + EXCERPT_CHARS - LEAD_CHARS
        return len({match[0].casefold() for match in matches if first <= match.start() and match.end() <= end})

    first = max((match.start() for match in matches), key=lambda start: (count_words(start), -start))
    start, end = max(0, first - LEAD_CHARS), min(len(line), first - LEAD_CHARS + EXCERPT_CHARS)
    if start:
        start = next((at + 1 for at in range(start, first) if line[at] == " "), start)
    if end < len(line):
        end = next((at for at in range(end, first, -1) if line[at] == " "), end)
    before, after = "…" if start else "", "…" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"
