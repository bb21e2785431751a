"""Phrases: the lists of data/triggers.toml as patterns, and the sentences of a question that they are looked up in."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files as resource_files
from itertools import pairwise
from typing import Any, NamedTuple

WORD_GAP = r"(?:\s*[-\u2010\u2011\u2013]\s*|\s+)"
WORD_START, WORD_END = r"(?<!\w)(?<![/\\])(?<!\w[.@])", r"(?![\w/\\]|\.\w)"  # skip words inside a path or a URL
CODE_OR_PATH = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|(?<!\S)[^\s/`]*/\S*[\w/*]", re.DOTALL)  # code, paths, URLs
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")  # letters of languages without spaces
SENTENCE_END = re.compile(
    r"(?<=[!?])\s+|(?<=[.!?][\"'”)])\s+|(?<=\w\w\w[.])\s+|(?<=[)\"'][.])\s+|\s*[;\n]\s*|(?<=[。！？；])\s*"
)
EDGE_CHARS = 3000  # of a long text at its start and at its end: what is between them is material
UNIFIED = str.maketrans({"\u2019": "'", "\u2010": "-", "\u2011": "-", "\t": " ", "\u00a0": " "})


@cache
def load_triggers() -> dict[str, Any]:
    return tomllib.loads(resource_files("council").joinpath("data/triggers.toml").read_text(encoding="utf-8"))


# Plain words in a text as it was written.


def phrase_pattern(phrase: str) -> str:
    return WORD_GAP.join(re.escape(word) for word in re.split(r"[\s-]+", phrase))


@cache
def compile_phrases(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern for any of the phrases, longest first."""
    choices = "|".join(phrase_pattern(phrase) for phrase in sorted(phrases, key=len, reverse=True))
    return re.compile(f"{WORD_START}(?:{choices}){WORD_END}", re.IGNORECASE)


def mask_text(text: str, exceptions: Iterable[str]) -> str:
    """Mask exceptions, code, paths and URLs in the text; offsets stay the same."""
    return _compile_exceptions(tuple(exceptions)).sub(_blank_match, _mask_code(text))


@cache
def _compile_exceptions(phrases: tuple[str, ...]) -> re.Pattern[str]:
    choices = "|".join(phrase.replace(" ", WORD_GAP) for phrase in phrases)
    return re.compile(f"{WORD_START}(?:{choices}){WORD_END}", re.IGNORECASE)


@lru_cache(maxsize=4)  # one question is masked for each list of phrases
def _mask_code(text: str) -> str:
    return CODE_OR_PATH.sub(_blank_match, text)


def _blank_match(found: re.Match[str]) -> str:
    return "\0" * len(found.group())


# Sentences in lower case with single spaces, and expressions that match them.


class Sentence(NamedTuple):
    """A sentence as it was written, and in lower case with exceptions masked. Offsets are the same."""

    written: str
    text: str

    def cut(self, start: int) -> Sentence:
        return Sentence(self.written[start:], self.text[start:])

    def mask(self, exceptions: Sequence[str]) -> Sentence:
        return Sentence(self.written, compile_words(tuple(exceptions)).sub(_blank_match, self.text))

    def without_opening(self) -> Sentence:
        """Return the sentence without a polite opening such as "can you" or "please"."""
        return self.cut(opening.end()) if (opening := _compile_polite().match(self.text)) else self


def read_sentences(text: str) -> list[Sentence]:
    """Return the first and last sentences, where a request can be, with code, paths and URLs masked."""
    unified = re.sub("  +", " ", unicodedata.normalize("NFC", text).translate(UNIFIED))
    masked = _mask_code(unified)
    return [Sentence(unified[start:end], lower(masked[start:end])) for start, end in _find_sentences(masked)]


def split_sentences(text: str) -> list[str]:
    return [part.strip() for part in SENTENCE_END.split(text)]


def _find_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where sentences start and end, in the first and last EDGE_CHARS of a long text."""
    for start, end in [(0, len(text))] if len(text) <= 2 * EDGE_CHARS else _find_edges(text):
        breaks = [(start, start), *(found.span() for found in SENTENCE_END.finditer(text, start, end)), (end, end)]
        for (_, first), (last, _) in pairwise(breaks):
            sentence = text[first:last].lstrip(" ¿¡")
            if stripped := sentence.rstrip(" "):
                yield last - len(sentence), last - len(sentence) + len(stripped)


def _find_edges(text: str) -> list[tuple[int, int]]:
    """Return the first and the last part of a long text, cut at spaces."""
    first = text.rfind(" ", 0, EDGE_CHARS)
    last = text.find(" ", len(text) - EDGE_CHARS)
    return [(0, EDGE_CHARS if first < 0 else first), (len(text) - EDGE_CHARS if last < 0 else last, len(text))]


def lower(text: str) -> str:
    """Return the text in lower case with the same length."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


def strip_opening(text: str) -> str:
    """Return the text without a polite opening such as "can you" or "please"."""
    opening = _compile_polite().match(lower(text.translate(UNIFIED)))
    return text[opening.end() :] if opening else text


@cache
def _compile_polite() -> re.Pattern[str]:
    return re.compile(rf"(?:(?:{join_starts(load_triggers()['openings']['polite'])})[\s,:，]*)+")


def join_words(expressions: Iterable[str]) -> str:
    """Return one pattern for any of the expressions. A space matches a hyphen too; apostrophes may be missing."""
    return "|".join(expressions).replace(" ", "[ -]").replace("'", "'?")


def join_starts(expressions: Iterable[str]) -> str:
    """Return a pattern for the expressions, up to the end of a word in languages that have spaces."""
    spaced, unspaced = _part_by_spaces(expressions)
    return "|".join([*([f"(?:{join_words(spaced)})(?!\\w)"] if spaced else []), *unspaced])


@cache
def compile_words(expressions: tuple[str, ...]) -> re.Pattern[str]:
    """Compile a pattern for any of the expressions as whole words. In languages without spaces they match anywhere."""
    spaced, unspaced = _part_by_spaces(expressions)
    return re.compile("|".join([*([f"{WORD_START}(?:{join_words(spaced)}){WORD_END}"] if spaced else []), *unspaced]))


def _part_by_spaces(expressions: Iterable[str]) -> tuple[list[str], list[str]]:
    listed = list(expressions)
    return [one for one in listed if not UNSPACED.search(one)], [one for one in listed if UNSPACED.search(one)]


@cache
def compile_opening(name: str) -> re.Pattern[str]:
    """Compile a pattern for the start of a sentence, from a list of openings."""
    return re.compile(join_starts(load_triggers()["openings"][name]))


def find_phrases(phrases: Mapping[str, Sequence[str]], text: str) -> Iterator[re.Match[str]]:
    """Yield the places of phrases, which are listed by a part of every text that they match."""
    for key, expressions in phrases.items():
        if key in text:
            yield from compile_words(tuple(expressions)).finditer(text)
