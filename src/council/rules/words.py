"""Phrase search in a sentence: whole words, any case, hyphen or space."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

WORD_GAP = r"(?:\s*[-\u2010\u2011\u2013]\s*|\s+)"
WORD_START, WORD_END = r"(?<!\w)(?<![/\\])(?<!\w[.@])", r"(?![\w/\\]|\.\w)"  # skip words inside a path or a URL
CODE_OR_PATH = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|(?<!\S)[^\s/`]*/\S*[\w/*]", re.DOTALL)  # code, paths, URLs


def phrase_pattern(phrase: str) -> str:
    return WORD_GAP.join(re.escape(word) for word in re.split(r"[\s-]+", phrase))


@cache
def compile_phrases(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern for any of the phrases, longest first."""
    choices = "|".join(phrase_pattern(phrase) for phrase in sorted(phrases, key=len, reverse=True))
    return re.compile(f"{WORD_START}(?:{choices}){WORD_END}", re.IGNORECASE)


def mask_text(text: str, exceptions: Iterable[str]) -> str:
    """Mask exceptions, code, paths and URLs in the text; offsets stay the same."""
    return _compile_exceptions(tuple(exceptions)).sub(_blank_match, CODE_OR_PATH.sub(_blank_match, text))


@cache
def _compile_exceptions(phrases: tuple[str, ...]) -> re.Pattern[str]:
    choices = "|".join(phrase.replace(" ", WORD_GAP) for phrase in phrases)
    return re.compile(f"{WORD_START}(?:{choices}){WORD_END}", re.IGNORECASE)


def _blank_match(found: re.Match[str]) -> str:
    return "\0" * len(found.group())
