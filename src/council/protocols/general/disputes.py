"""Disputes of the general protocol: declared ones, markers of disagreement in the text, and possible ones."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice

from council.protocols.general.claims import (
    OPPOSITE_STANCE,
    Claim,
    Dispute,
    SeatAnswer,
    Side,
    claims_by_topic,
    content_stems,
    polarity,
    stances_by_seat,
    strongest_claim,
)
from council.search.queries import truncate_at_word
from council.similarity import jaccard

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
    """A text and its sentence ends; `masked_text` is the text with code and quotations masked, with the same offsets."""

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


# Markers of disagreement

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
    """`denied` is the text the seat disagrees with, `alternative` what it holds instead, if the same sentence says so."""

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


# Contradictions

MIN_TOPIC_OVERLAP = 0.6  # of the smaller word set: the topic's or the marker's
MIN_TEXT_OVERLAP = 0.5  # the same for the claim's text; at least two words
MIN_TEXT_SHARE = 0.75  # of the marker's words are in the claim's text

WordSet = frozenset[str]


@dataclass(frozen=True, slots=True)
class ClaimWords:
    """A claim for or against a topic, with the word sets to match it by."""

    key: str
    claim: Claim
    topic: WordSet
    text: WordSet


def find_contradictions(
    answers: Sequence[SeatAnswer], topics: Mapping[str, Sequence[Claim]]
) -> Iterator[tuple[str, Side, frozenset[str]]]:
    """Yield a topic, the side of a seat that disagrees without a declared claim on it, and the seats it contradicts."""
    matters = [matter for key, claims in topics.items() for matter in _claim_words(key, claims)]
    for answer in answers:
        theirs = [matter for matter in matters if matter.claim.seat != answer.seat]
        for marker in find_markers(answer.response) if theirs else ():
            opposed = _contradicted_claims(marker, theirs)
            if opposed and all(claim.seat != answer.seat for claim in topics[opposed[0].key]):
                side = Side(answer.seat, marker.sentence, OPPOSITE_STANCE[opposed[0].claim.stance])
                yield opposed[0].key, side, frozenset(matter.claim.seat for matter in opposed)


def _claim_words(key: str, claims: Sequence[Claim]) -> Iterator[ClaimWords]:
    stand = stances_by_seat(claims)
    for claim in claims:
        if stand.get(claim.seat) == claim.stance:
            yield ClaimWords(key, claim, content_stems(claim.topic), content_stems(claim.text))


def _contradicted_claims(marker: Marker, claims: Sequence[ClaimWords]) -> list[ClaimWords]:
    """Return the claims that the marker denies, on the topic and stance with the most shared words.

    The denied text is matched first. Only if no claim is about it ("contrary to popular belief, …") is the alternative
    compared with the claims.
    """
    for words, held in (
        (content_stems(marker.denied), -polarity(marker.denied)),
        (content_stems(marker.alternative), polarity(marker.alternative)),
    ):
        about = [matter for matter in claims if _is_about(words, matter)]
        if about:
            most = max(_count_shared(words, matter) for matter in about)
            denied = [one for one in about if _count_shared(words, one) == most and _claim_polarity(words, one) != held]
            chosen = min(((one.key, one.claim.stance) for one in denied), default=None)
            return [
                one for one in about if (one.key, one.claim.stance) == chosen and _claim_polarity(words, one) != held
            ]
    return []


def _is_about(words: WordSet, claim_words: ClaimWords) -> bool:
    return _overlap(words, claim_words.topic) >= MIN_TOPIC_OVERLAP or (
        _overlap(words, claim_words.text) >= MIN_TEXT_OVERLAP and len(words & claim_words.text) > 1
    )


def _overlap(a: AbstractSet[str], b: AbstractSet[str]) -> float:
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0


def _count_shared(words: WordSet, claim_words: ClaimWords) -> int:
    return len(words & (claim_words.topic | claim_words.text))


def _claim_polarity(words: WordSet, claim_words: ClaimWords) -> int:
    """Return 1 if the claim's seat is for these words, -1 if it is against them.

    Use the sentence if the words come from the claim's text ("the idea that microservices are premature"), and the
    stance if they only name the topic ("microservices").
    """
    in_text = len(words & claim_words.text)
    if in_text >= MIN_TEXT_SHARE * len(words) and in_text > len(words & claim_words.topic):
        return polarity(claim_words.claim.text)
    return polarity(claim_words.claim.topic) * (1 if claim_words.claim.stance == "supports" else -1)


# Disputes

MAX_DISPUTES = 10  # disputes put to the members; the rest are only reported
DETECTION_ORDER = ("declared", "marker", "possible")  # most reliable first
MAX_DIVERGENT_SIMILARITY = 0.3  # recommendations below this word similarity (but above 0) diverge
MAX_TOPIC_CHARS = 50  # characters of each recommendation in a possible dispute's topic
_RECOMMENDS = re.compile(
    r"\b(?:recommend\w*|best\s+approach|should\s+use|I\s+suggest|the\s+answer\s+is|the\s+right\s+choice\s+is)\b",
    re.IGNORECASE,
)


def find_disputes(answers: Sequence[SeatAnswer]) -> list[Dispute]:
    """Return the ten most important disputes; topics must be aligned."""
    return find_all_disputes(answers)[:MAX_DISPUTES]


def overflow_disputes(disputes: Sequence[Dispute]) -> list[Dispute]:
    """Return the disputes over the limit, which are only reported; possible ones are dropped."""
    return [one for one in disputes[MAX_DISPUTES:] if not one.is_possible]


def find_all_disputes(answers: Sequence[SeatAnswer]) -> list[Dispute]:
    """Return every dispute, declared ones first, then by number of seats and evidence."""
    topics = claims_by_topic(answers)
    found = {key: _declared_sides(claims) for key, claims in topics.items()}
    declared = {key for key, sides in found.items() if len({side.stance for side in sides.values()}) > 1}
    found = {key: found[key] for key in declared}
    for key, side, others in find_contradictions(answers, topics):
        sides = found.setdefault(key, {})
        sides.setdefault(side.seat, side)
        for seat, other in _declared_sides(topics[key]).items():
            if seat in others:
                sides.setdefault(seat, other)
    seats = [answer.seat for answer in answers]
    disputes = [
        Dispute(
            min(claim.topic for claim in topics[key]),
            _sort_by_seat(sides.values(), seats),
            DETECTION_ORDER[key not in declared],
        )
        for key, sides in found.items()
    ]
    return sorted([*disputes, *_possible_disputes(answers)], key=_sort_key)


def disputing_seats(disputes: Iterable[Dispute]) -> tuple[str, ...]:
    """Return the seats of the second round; possible disputes do not count."""
    return tuple(dict.fromkeys(seat for one in disputes if not one.is_possible for seat in one.seats))


def _declared_sides(claims: Sequence[Claim]) -> dict[str, Side]:
    """Map each seat for or against the topic to its strongest claim and all its evidence."""
    sides = {}
    for seat, stance in stances_by_seat(claims).items():
        own = [claim for claim in claims if claim.seat == seat and claim.stance == stance]
        evidence = sorted({number for claim in own for number in claim.sources})
        sides[seat] = Side(seat, strongest_claim(own).text, stance, tuple(evidence))
    return sides


def _possible_disputes(answers: Sequence[SeatAnswer]) -> Iterator[Dispute]:
    """Yield pairs of seats without claims whose recommendations overlap but diverge."""
    silent = sorted((answer for answer in answers if not answer.claims), key=lambda answer: answer.seat)
    advice = [
        Side(answer.seat, said)
        for answer in silent
        if (said := parse_prose(answer.response).first_sentence(_RECOMMENDS))
    ]
    for a, b in combinations(advice, 2):
        if a.seat != b.seat and 0 < jaccard(_long_words(a.claim), _long_words(b.claim)) < MAX_DIVERGENT_SIMILARITY:
            yield Dispute(
                f"{truncate_at_word(a.claim, MAX_TOPIC_CHARS)} vs {truncate_at_word(b.claim, MAX_TOPIC_CHARS)}",
                (a, b),
                "possible",
            )


def _long_words(text: str) -> frozenset[str]:
    """Return all words of three or more letters, including stop words: the limits were measured with them."""
    return frozenset(word for word in re.findall(r"\w+", text.lower()) if len(word) > 2)


def _sort_by_seat(sides: Iterable[Side], seats: Sequence[str]) -> tuple[Side, ...]:
    return tuple(sorted(sides, key=lambda side: seats.index(side.seat) if side.seat in seats else len(seats)))


def _sort_key(dispute: Dispute) -> tuple[int, int, int, str]:
    evidence = {number for side in dispute.positions for number in side.evidence}
    return DETECTION_ORDER.index(dispute.how), -len(dispute.seats), -len(evidence), dispute.topic
