"""Explicit disagreement in a text, and its object: "I disagree with …", "contrary to …"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from council.rules.prose import Prose, clean_sentence, parse_prose
from council.rules.topics import content_stems

MAX_MARKERS = 50  # per seat

_ADVERBS = r"(?:(?:(?!hardly|barely|scarcely|rarely|seldom)\w{1,20}ly|would|will|must|(?:have|need|want|going)\s+to|do|still|also|too|therefore)\s+){0,3}"
_MARKER = re.compile(
    rf"(?<![\w'-])(?:(?P<own>I(?:'d|'m|'ll)?\s+{_ADVERBS}"
    r"(?:disagree(?:\s+with|\s+that|(?=\s*[.,;:!—–]))|(?:do\s+not|don't|cannot|can't)\s+agree\s+(?:with|that)|push\s+back\s+on|dispute))"
    r"|(?P<instead>contrary\s+to|unlike(?=\s))"
    r"|(?P<contradicts>(?:this|that|which)\s+(?:\w{1,20}ly\s+)?contradicts)"
    r"|(?P<wrong>(?:that|this)(?:'s|\s+is)\s+(?:\w{1,20}ly\s+|just\s+)?wrong))(?![\w-])",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[;:—–]|(?<!\bthat),|\s-\s|\b(?:but|yet|however|and|so|while|whereas|although|though)\b", re.IGNORECASE)  # fmt: skip
_OBJECT_ENDS = re.compile(rf"{_CLAUSE.pattern}|\b(?:because|since|given|when|if|unless)\b", re.IGNORECASE)
_OPINION_PHRASE = re.compile(
    r"\bI(?:'d)?\s+(?:(?:would|do|also|still)\s+)*(?:say|think|believe|argue|find|note|feel|fear|suspect)\b(?:\s+that\b)?",
    re.IGNORECASE,
)
_NEGATIVE = r"(?:\b(?:not|never|no|nobody|none|nothing|neither|nor|without|cannot|hardly|few)\b|n't\b)"
_REPORTED = (
    r"\b(?:say|says|said|claims?|claimed|argues?|argued|thinks?|thought|believes?|believed|writes?|wrote|suggests?|"
    r"suggested|reports?|reported|asks?|asked|according|if|whether|unless|might|may|could|would|as though)\b"
)
_INTENSIFIER = r"(?:\s+(?:at\s+all|in\s+any\s+way|really|exactly|entirely|necessarily))?"
# Text before a marker in its clause that makes it invalid, by kind of marker.
_INVALID_BEFORE = {
    "own": re.compile(rf"{_NEGATIVE}|{_REPORTED}(?:\s+that)?\s*\Z", re.IGNORECASE),
    "instead": re.compile(rf"{_NEGATIVE}{_INTENSIFIER}\s*\Z|{_REPORTED}\s+that,?\s*\Z", re.IGNORECASE),
    "contradicts": re.compile(rf"{_NEGATIVE}|{_REPORTED}", re.IGNORECASE),
    "wrong": re.compile(r"\w"),  # "a number that is wrong" is not a marker
}
_NO_OPPONENT = re.compile(r"\s*(?:nobody|no\s+one|none|nothing|my|our|mine|myself)\b", re.IGNORECASE)
_BACK_REFERENCE = re.compile(r"\b(?:this|that|these|those|it)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Marker:
    """`denied` is the text the seat disagrees with, `said` what it holds instead, if the same sentence says so."""

    sentence: str
    denied: str
    alternative: str = ""


def find_markers(response: str) -> list[Marker]:
    """Return the markers that are not negated, reported, asked, quoted or in code."""
    return list(dict.fromkeys(islice(_iter_markers(parse_prose(response)), MAX_MARKERS)))


def _iter_markers(prose: Prose) -> Iterator[Marker]:
    for found in prose.find_matches(_MARKER):
        begin, end = prose.sentence_span(*found.span())
        if _is_genuine(prose, found, begin, end):
            yield _build_marker(prose, found, begin, end)


def _is_genuine(prose: Prose, found: re.Match[str], begin: int, end: int) -> bool:
    kind = str(found.lastgroup)
    clause = _OPINION_PHRASE.sub("", _CLAUSE.split(prose.masked_text[begin : found.start()])[-1])
    after = prose.masked_text[found.end() : end]
    if (
        _INVALID_BEFORE[kind].search(clause)
        or _NO_OPPONENT.match(after)
        or prose.masked_text[begin:end].rstrip().endswith("?")
    ):
        return False
    would = re.search(r"\bwould\b|'d\b", found.group(), re.IGNORECASE)
    return not (would and re.search(r"\b(?:if|unless)\b", after, re.IGNORECASE))


def _build_marker(prose: Prose, found: re.Match[str], begin: int, end: int) -> Marker:
    stop = _OBJECT_ENDS.search(prose.masked_text, found.end(), end)
    until = stop.start() if stop else end
    denied, before = prose.text[found.end() : until], prose.text[begin : found.start()]
    said = f"{before} {prose.text[until:end]}" if found.lastgroup == "instead" else ""
    if found.lastgroup == "wrong" or (not content_stems(denied) and _refers_back(denied)):
        denied = before if content_stems(before) else prose.previous_sentence(begin)
    return Marker(clean_sentence(prose.text[begin:end]), denied, said)


def _refers_back(denied: str) -> bool:
    """Return whether the object is in the sentence before, as in "I disagree." and "I disagree with that."."""
    return not re.search(r"\w", denied) or bool(_BACK_REFERENCE.search(denied))
