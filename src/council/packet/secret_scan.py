"""A text in the forms in which secrets are searched, and the position of a secret."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MIN_KEY_CHARS = 20  # shortest key with a known format


class Secret(NamedTuple):
    """Kind and position of a secret in a text; never the secret itself."""

    kind: str
    start: int
    end: int


# Search. Most texts have no secret, so cheap substring tests on bytes come before any regular expression.

# All characters that no key contains; they separate words.
_SEPARATORS = bytes(32 if byte in b"\t\n\r\f\v\"'`,;(){}[]<>|" else byte for byte in range(256))


# The longest word of a hint, which is a part of some word of the text if the hint is in the text
_HINT_WORD = re.compile(rb"[a-z0-9_]+")
LIVE_KEY = re.compile(rb"\d|[A-Za-z]{20}")  # every key has this; most identifiers do not


class LongestWords(dict[bytes, bytes]):
    """The longest word of each hint. A dictionary costs no call for a hint that is known."""

    def __missing__(self, hint: bytes) -> bytes:
        self[hint] = max(_HINT_WORD.findall(hint), key=len, default=b"")
        return self[hint]


LONGEST_WORDS = LongestWords()


class Scan:
    """A text with the two forms in which substrings are searched. All positions are equal in the three."""

    __slots__ = ("lower", "raw", "text", "vocabulary", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = text.encode("ascii", "replace")  # one byte per character
        self.lower = self.raw.lower()
        # Every word once: much shorter than the text, so that a hint is searched there first.
        self.vocabulary = b" ".join(set(self.lower.translate(_SEPARATORS).split()))
        words = self.raw.translate(_SEPARATORS).split()
        shorter = MIN_KEY_CHARS - 1
        has_key = max(map(len, words), default=0) > shorter  # most prose has no such word
        long_words = [word for word in words if word[shorter:]] if has_key else []
        self.words = b"\n".join([word for word in long_words if LIVE_KEY.search(word)])

    def has(self, *substrings: bytes) -> bool:
        for substring in substrings:  # noqa: SIM110  # a generator would cost a call for each
            if LONGEST_WORDS[substring] in self.vocabulary and substring in self.lower:
                return True
        return False

    def find_all(self, substrings: Iterable[bytes]) -> Iterator[int]:
        """Yield every position of these lower-case substrings, for each substring in order."""
        for substring in substrings:
            if LONGEST_WORDS[substring] not in self.vocabulary:
                continue
            at = self.lower.find(substring)
            while at >= 0:
                yield at
                at = self.lower.find(substring, at + len(substring))

    def match_all(self, pattern: re.Pattern[str], *starts: bytes) -> list[re.Match[str]]:
        """Return the matches that begin with one of these lower-case substrings, without overlaps for each."""
        found = []
        for start in starts:
            read_to = 0
            for at in self.find_all((start,)):
                if at >= read_to and (match := pattern.match(self.text, at)):
                    found.append(match)
                    read_to = match.end()
        return found

    def line_around(self, start: int, end: int, reach: int = 300) -> str:
        """Return the rest of the line on both sides of a position, at most `reach` characters each."""
        before = self.text[max(0, start - reach) : start].rpartition("\n")[2]
        return before + " " + self.text[end : end + reach].partition("\n")[0]
