"""Phrase search in a sentence: whole words, any case, hyphen or space."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

GAP = r"(?:\s*[-\u2010\u2011\u2013]\s*|\s+)"
START, END = r"(?<!\w)(?<![/\\])(?<!\w[.@])", r"(?![\w/\\]|\.\w)"  # skip words inside a path or a URL
NO_PROSE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|(?<!\S)[^\s/`]*/\S*[\w/*]", re.DOTALL)  # code, paths, URLs


def as_pattern(phrase: str) -> str:
    return GAP.join(re.escape(word) for word in re.split(r"[\s-]+", phrase))


@cache
def finder(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern for any of the phrases, longest first."""
    choices = "|".join(as_pattern(phrase) for phrase in sorted(phrases, key=len, reverse=True))
    return re.compile(f"{START}(?:{choices}){END}", re.IGNORECASE)


def masked(text: str, exceptions: Iterable[str]) -> str:
    """Mask exceptions, code, paths and URLs in the text; offsets stay the same."""
    return _exception(tuple(exceptions)).sub(_blank, NO_PROSE.sub(_blank, text))


@cache
def _exception(phrases: tuple[str, ...]) -> re.Pattern[str]:
    choices = "|".join(phrase.replace(" ", GAP) for phrase in phrases)
    return re.compile(f"{START}(?:{choices}){END}", re.IGNORECASE)


def _blank(found: re.Match[str]) -> str:
    return "\0" * len(found.group())
