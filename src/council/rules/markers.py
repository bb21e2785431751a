"""Explicit disagreement in a text, and its object: "I disagree with …", "contrary to …"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from council.rules.prose import Prose, read, tidy
from council.rules.topics import gist

MOST = 50  # per seat

_OFTEN = r"(?:(?:(?!hardly|barely|scarcely|rarely|seldom)\w{1,20}ly|would|will|must|(?:have|need|want|going)\s+to|do|still|also|too|therefore)\s+){0,3}"
_MARKER = re.compile(
    rf"(?<![\w'-])(?:(?P<own>I(?:'d|'m|'ll)?\s+{_OFTEN}"
    r"(?:disagree(?:\s+with|\s+that|(?=\s*[.,;:!—–]))|(?:do\s+not|don't|cannot|can't)\s+agree\s+(?:with|that)|push\s+back\s+on|dispute))"
    r"|(?P<instead>contrary\s+to|unlike(?=\s))"
    r"|(?P<contradicts>(?:this|that|which)\s+(?:\w{1,20}ly\s+)?contradicts)"
    r"|(?P<wrong>(?:that|this)(?:'s|\s+is)\s+(?:\w{1,20}ly\s+|just\s+)?wrong))(?![\w-])",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[;:—–]|(?<!\bthat),|\s-\s|\b(?:but|yet|however|and|so|while|whereas|although|though)\b", re.IGNORECASE)  # fmt: skip
_OBJECT_ENDS = re.compile(rf"{_CLAUSE.pattern}|\b(?:because|since|given|when|if|unless)\b", re.IGNORECASE)
_I_SAY = re.compile(
    r"\bI(?:'d)?\s+(?:(?:would|do|also|still)\s+)*(?:say|think|believe|argue|find|note|feel|fear|suspect)\b(?:\s+that\b)?",
    re.IGNORECASE,
)
_NO = r"(?:\b(?:not|never|no|nobody|none|nothing|neither|nor|without|cannot|hardly|few)\b|n't\b)"
_REPORTED = (
    r"\b(?:say|says|said|claims?|claimed|argues?|argued|thinks?|thought|believes?|believed|writes?|wrote|suggests?|"
    r"suggested|reports?|reported|asks?|asked|according|if|whether|unless|might|may|could|would|as though)\b"
)
_AT_ALL = r"(?:\s+(?:at\s+all|in\s+any\s+way|really|exactly|entirely|necessarily))?"
# Text before a marker in its clause that makes it invalid, by kind of marker.
_DOUBT = {
    "own": re.compile(rf"{_NO}|{_REPORTED}(?:\s+that)?\s*\Z", re.IGNORECASE),
    "instead": re.compile(rf"{_NO}{_AT_ALL}\s*\Z|{_REPORTED}\s+that,?\s*\Z", re.IGNORECASE),
    "contradicts": re.compile(rf"{_NO}|{_REPORTED}", re.IGNORECASE),
    "wrong": re.compile(r"\w"),  # "a number that is wrong" is not a marker
}
_NOBODY = re.compile(r"\s*(?:nobody|no\s+one|none|nothing|my|our|mine|myself)\b", re.IGNORECASE)
_BACK = re.compile(r"\b(?:this|that|these|those|it)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Marker:
    """`denied` is the text the seat disagrees with, `said` what it holds instead, if the same sentence says so."""

    sentence: str
    denied: str
    said: str = ""


def markers(response: str) -> list[Marker]:
    """Return the markers that are not negated, reported, asked, quoted or in code."""
    return list(dict.fromkeys(islice(_read(read(response)), MOST)))


def _read(prose: Prose) -> Iterator[Marker]:
    for found in prose.spoken_places(_MARKER):
        begin, end = prose.around(*found.span())
        if _is_meant(prose, found, begin, end):
            yield _marker(prose, found, begin, end)


def _is_meant(prose: Prose, found: re.Match[str], begin: int, end: int) -> bool:
    kind = str(found.lastgroup)
    clause = _I_SAY.sub("", _CLAUSE.split(prose.spoken[begin : found.start()])[-1])
    after = prose.spoken[found.end() : end]
    if _DOUBT[kind].search(clause) or _NOBODY.match(after) or prose.spoken[begin:end].rstrip().endswith("?"):
        return False
    would = re.search(r"\bwould\b|'d\b", found.group(), re.IGNORECASE)
    return not (would and re.search(r"\b(?:if|unless)\b", after, re.IGNORECASE))


def _marker(prose: Prose, found: re.Match[str], begin: int, end: int) -> Marker:
    stop = _OBJECT_ENDS.search(prose.spoken, found.end(), end)
    until = stop.start() if stop else end
    denied, before = prose.text[found.end() : until], prose.text[begin : found.start()]
    said = f"{before} {prose.text[until:end]}" if found.lastgroup == "instead" else ""
    if found.lastgroup == "wrong" or (not gist(denied) and _points_back(denied)):
        denied = before if gist(before) else prose.before(begin)
    return Marker(tidy(prose.text[begin:end]), denied, said)


def _points_back(denied: str) -> bool:
    """Return whether the object is in the sentence before, as in "I disagree." and "I disagree with that."."""
    return not re.search(r"\w", denied) or bool(_BACK.search(denied))
