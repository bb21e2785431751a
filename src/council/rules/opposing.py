"""Contradictions: disagreement markers matched with the claims of other seats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from council.rules.claims import OPPOSITE, stands
from council.rules.markers import Marker, markers
from council.rules.topics import gist, sign
from council.rules.voices import Claim, Side, Voice

ENOUGH = 0.6  # of the smaller word set: the topic's or the marker's
HALF = 0.5  # the same for the claim's text; at least two words
CLOSELY = 0.75  # of the marker's words are in the claim's text

Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class Matter:
    """A claim for or against a topic, with the word sets to match it by."""

    key: str
    claim: Claim
    topic: Words
    text: Words


def spoken_against(
    voices: Sequence[Voice], topics: Mapping[str, Sequence[Claim]]
) -> Iterator[tuple[str, Side, frozenset[str]]]:
    """Yield a topic, the side of a seat that disagrees without a declared claim on it, and the seats it contradicts."""
    matters = [matter for key, claims in topics.items() for matter in _matters(key, claims)]
    for answer in voices:
        theirs = [matter for matter in matters if matter.claim.seat != answer.seat]
        for marker in markers(answer.response) if theirs else ():
            opposed = _opposed(marker, theirs)
            if opposed and all(claim.seat != answer.seat for claim in topics[opposed[0].key]):
                side = Side(answer.seat, marker.sentence, OPPOSITE[opposed[0].claim.stance])
                yield opposed[0].key, side, frozenset(matter.claim.seat for matter in opposed)


def _matters(key: str, claims: Sequence[Claim]) -> Iterator[Matter]:
    stand = stands(claims)
    for claim in claims:
        if stand.get(claim.seat) == claim.stance:
            yield Matter(key, claim, gist(claim.topic), gist(claim.text))


def _opposed(marker: Marker, matters: Sequence[Matter]) -> list[Matter]:
    """Return the claims that the marker denies, on the topic and stance with the most shared words.

    The denied text is matched first. Only if no claim is about it ("contrary to popular belief, …") is the alternative
    compared with the claims.
    """
    for words, held in ((gist(marker.denied), -sign(marker.denied)), (gist(marker.said), sign(marker.said))):
        about = [matter for matter in matters if _is_about(words, matter)]
        if about:
            most = max(_shared(words, matter) for matter in about)
            denied = [one for one in about if _shared(words, one) == most and _holds(words, one) != held]
            chosen = min(((one.key, one.claim.stance) for one in denied), default=None)
            return [one for one in about if (one.key, one.claim.stance) == chosen and _holds(words, one) != held]
    return []


def _is_about(words: Words, matter: Matter) -> bool:
    return _overlap(words, matter.topic) >= ENOUGH or (
        _overlap(words, matter.text) >= HALF and len(words & matter.text) > 1
    )


def _overlap(a: AbstractSet[str], b: AbstractSet[str]) -> float:
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0


def _shared(words: Words, matter: Matter) -> int:
    return len(words & (matter.topic | matter.text))


def _holds(words: Words, matter: Matter) -> int:
    """Return 1 if the claim's seat is for these words, -1 if it is against them.

    Use the sentence if the words come from the claim's text ("the idea that microservices are premature"), and the
    stance if they only name the topic ("microservices").
    """
    in_text = len(words & matter.text)
    if in_text >= CLOSELY * len(words) and in_text > len(words & matter.topic):
        return sign(matter.claim.text)
    return sign(matter.claim.topic) * (1 if matter.claim.stance == "supports" else -1)
