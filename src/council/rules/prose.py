"""Text split into sentences, with code and quotations masked."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_SENTENCE_REACH = 400  # characters read on either side of a match

CODE_PATTERN = r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`"
_QUOTED_OR_CODE = re.compile(
    rf"{CODE_PATTERN}|^[ \t]*>[^\n]*"
    r"|“[^“”\n]{1,1000}”|„[^„“”\n]{1,1000}[“”]|«[^«»\n]{1,1000}»|(?<!\w)‘[^‘\n]{1,1000}?’(?!\w)"
    r"|(?<!\w)\"(?=\S)[^\"\n]{1,1000}\"(?!\w)|(?<!\w)'(?=\S)[^'\n]{1,1000}'(?!\w)",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bcf)[.!?…]+[\"'”’)\]*_]*(?=\s+[^a-z\s]|\s*\Z)"
    r"|[。！？]|\n\s*\n|\n(?=[ \t]*(?:[-*+•#>|]|\d+[.)])\s)"
)
_EMPHASIS = str.maketrans({"*": " ", "_": " ", "~": " ", "’": "'", "ʼ": "'"})


@dataclass(frozen=True, slots=True)
class Prose:
    """A text and its sentence ends; `spoken` is the masked text, with the same offsets."""

    text: str
    masked_text: str
    ends: tuple[int, ...]

    def sentence_span(self, start: int, end: int) -> tuple[int, int]:
        """Return start and end of the sentence that contains this span."""
        first, last = bisect_right(self.ends, start), bisect_left(self.ends, end)
        begin = self.ends[first - 1] if first else 0
        stop = self.ends[last] if last < len(self.ends) else len(self.text)
        return max(begin, start - MAX_SENTENCE_REACH), min(stop, end + MAX_SENTENCE_REACH)

    def previous_sentence(self, begin: int) -> str:
        """Return the sentence that ends at this offset."""
        place = bisect_left(self.ends, begin)
        start = self.ends[place - 1] if place else 0
        return self.text[max(start, begin - MAX_SENTENCE_REACH) : begin]

    def first_sentence(self, pattern: re.Pattern[str]) -> str:
        """Return the first sentence with the pattern outside code and quotations, or an empty string."""
        found = pattern.search(self.masked_text)
        return clean_sentence(self.text[slice(*self.sentence_span(*found.span()))]) if found else ""

    def find_matches(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        return pattern.finditer(self.masked_text)


@lru_cache(maxsize=16)  # each text is read twice: for markers and for recommendations
def parse_prose(text: str) -> Prose:
    blank = _QUOTED_OR_CODE.sub(lambda found: "\0" * len(found.group()), text)
    return Prose(text, blank.translate(_EMPHASIS), tuple(found.end() for found in _SENTENCE_END.finditer(blank)))


def clean_sentence(text: str) -> str:
    """Return the text on one line, without leading list or heading markers."""
    return re.sub(r"\A(?:[-*+•#>]+\s+|\d+[.)]\s+)+", "", " ".join(text.split()))
