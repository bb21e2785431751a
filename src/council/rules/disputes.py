"""Detection of disputes from declared stances and from the text.

A declared stance decides. A claim's text is not searched for "not": two seats that both declare "supports" agree,
whatever their sentences say. A marker ("I disagree with …") counts only for a seat that declared nothing on the topic.
A seat that declares both sides of a topic counts for neither. "Qualifies" is not "contradicts".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from council.rules.claims import by_topic, stands, strongest
from council.rules.likeness import alike
from council.rules.opposing import spoken_against
from council.rules.prose import read
from council.rules.queries import cut_at_word
from council.rules.settling import settle, word_agrees
from council.rules.voices import Claim, Dispute, Move, Side, Voice

__all__ = ["Dispute", "Move", "Side", "all_disputes", "beyond", "disputing", "find_disputes", "settle", "word_agrees"]

MOST = 10  # disputes put to the members; the rest are only reported
HOW = ("declared", "marker", "possible")  # most reliable first
DIVERGING = 0.3  # recommendations below this word similarity (but above 0) diverge
TOPIC = 50  # characters of each recommendation in a possible dispute's topic
_RECOMMENDS = re.compile(
    r"\b(?:recommend\w*|best\s+approach|should\s+use|I\s+suggest|the\s+answer\s+is|the\s+right\s+choice\s+is)\b",
    re.IGNORECASE,
)


def find_disputes(voices: Sequence[Voice]) -> list[Dispute]:
    """Return the ten most important disputes; topics must be aligned."""
    return all_disputes(voices)[:MOST]


def beyond(disputes: Sequence[Dispute]) -> list[Dispute]:
    """Return the disputes over the limit, which are only reported; possible ones are dropped."""
    return [one for one in disputes[MOST:] if not one.possible]


def all_disputes(voices: Sequence[Voice]) -> list[Dispute]:
    """Return every dispute, declared ones first, then by number of seats and evidence."""
    topics = by_topic(voices)
    found = {key: _declared(claims) for key, claims in topics.items()}
    declared = {key for key, sides in found.items() if len({side.stance for side in sides.values()}) > 1}
    found = {key: found[key] for key in declared}
    for key, side, others in spoken_against(voices, topics):
        sides = found.setdefault(key, {})
        sides.setdefault(side.seat, side)
        for seat, other in _declared(topics[key]).items():
            if seat in others:
                sides.setdefault(seat, other)
    seats = [answer.seat for answer in voices]
    disputes = [
        Dispute(min(claim.topic for claim in topics[key]), _seated(sides.values(), seats), HOW[key not in declared])
        for key, sides in found.items()
    ]
    return sorted([*disputes, *_possible(voices)], key=_rank)


def disputing(disputes: Iterable[Dispute]) -> tuple[str, ...]:
    """Return the seats of the second round; possible disputes do not count."""
    return tuple(dict.fromkeys(seat for one in disputes if not one.possible for seat in one.seats))


def _declared(claims: Sequence[Claim]) -> dict[str, Side]:
    """Map each seat for or against the topic to its strongest claim and all its evidence."""
    sides = {}
    for seat, stance in stands(claims).items():
        own = [claim for claim in claims if claim.seat == seat and claim.stance == stance]
        evidence = sorted({number for claim in own for number in claim.sources})
        sides[seat] = Side(seat, strongest(own).text, stance, tuple(evidence))
    return sides


def _possible(voices: Sequence[Voice]) -> Iterator[Dispute]:
    """Yield pairs of seats without claims whose recommendations overlap but diverge."""
    silent = sorted((answer for answer in voices if not answer.claims), key=lambda answer: answer.seat)
    advice = [Side(answer.seat, said) for answer in silent if (said := read(answer.response).first(_RECOMMENDS))]
    for a, b in combinations(advice, 2):
        if a.seat != b.seat and 0 < alike(_words(a.claim), _words(b.claim)) < DIVERGING:
            yield Dispute(f"{cut_at_word(a.claim, TOPIC)} vs {cut_at_word(b.claim, TOPIC)}", (a, b), "possible")


def _words(text: str) -> frozenset[str]:
    """Return all words of three or more letters, including stop words: the limits were measured with them."""
    return frozenset(word for word in re.findall(r"\w+", text.lower()) if len(word) > 2)


def _seated(sides: Iterable[Side], seats: Sequence[str]) -> tuple[Side, ...]:
    return tuple(sorted(sides, key=lambda side: seats.index(side.seat) if side.seat in seats else len(seats)))


def _rank(dispute: Dispute) -> tuple[int, int, int, str]:
    evidence = {number for side in dispute.positions for number in side.evidence}
    return HOW.index(dispute.how), -len(dispute.seats), -len(evidence), dispute.topic
