"""Contradictions: disagreement markers matched with the claims of other seats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from council.rules.claims import OPPOSITE_STANCE, stances_by_seat
from council.rules.markers import Marker, find_markers
from council.rules.topics import content_stems, polarity
from council.rules.voices import Claim, SeatAnswer, Side

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
