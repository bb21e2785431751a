"""Detection of disputes from declared stances and from the text.

A declared stance decides. A claim's text is not searched for "not": two seats that both declare "supports" agree,
whatever their sentences say. A marker ("I disagree with …") counts only for a seat that declared nothing on the topic.
A seat that declares both sides of a topic counts for neither. "Qualifies" is not "contradicts".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from council.rules.claims import claims_by_topic, stances_by_seat, strongest_claim
from council.rules.likeness import jaccard
from council.rules.opposing import find_contradictions
from council.rules.prose import parse_prose
from council.rules.queries import truncate_at_word
from council.rules.settling import resolve_disputes, starts_with_word
from council.rules.voices import Claim, Dispute, Move, SeatAnswer, Side

__all__ = [
    "Dispute",
    "Move",
    "Side",
    "disputing_seats",
    "find_all_disputes",
    "find_disputes",
    "overflow_disputes",
    "resolve_disputes",
    "starts_with_word",
]

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
