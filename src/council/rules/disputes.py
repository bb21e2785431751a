"""Where seats disagree, found by rule from what they declared and what they wrote.

A stance that was declared decides. Nobody reads a claim's words for a "not": two seats that both say "supports" agree,
whatever their sentences look like, and a marker ("I disagree with …") speaks only for a seat that declared nothing on
the topic. A seat that declares both sides of a topic stands on neither. "Qualifies" is not "contradicts".
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

MOST = 10  # that are put to the members; what lies beyond is told, and asked of nobody
HOW = ("declared", "marker", "possible")  # the surest first
DIVERGING = 0.3  # recommendations that share some words, and fewer than this part of them
TOPIC = 50  # characters of each recommendation that name a possible dispute
_RECOMMENDS = re.compile(
    r"\b(?:recommend\w*|best\s+approach|should\s+use|I\s+suggest|the\s+answer\s+is|the\s+right\s+choice\s+is)\b",
    re.IGNORECASE,
)


def find_disputes(voices: Sequence[Voice]) -> list[Dispute]:
    """The ten that weigh most, of voices whose topics are aligned."""
    return all_disputes(voices)[:MOST]


def beyond(disputes: Sequence[Dispute]) -> list[Dispute]:
    """What is disputed besides the ten: less weighty, and not to be lost. Of possible ones ten are enough."""
    return [one for one in disputes[MOST:] if not one.possible]


def all_disputes(voices: Sequence[Voice]) -> list[Dispute]:
    """Declared ones first, then those with most seats and evidence."""
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
    seats = [voice.seat for voice in voices]
    disputes = [
        Dispute(min(claim.topic for claim in topics[key]), _seated(sides.values(), seats), HOW[key not in declared])
        for key, sides in found.items()
    ]
    return sorted([*disputes, *_possible(voices)], key=_rank)


def disputing(disputes: Iterable[Dispute]) -> tuple[str, ...]:
    """The seats of the second round. A possible dispute is no cause for one."""
    return tuple(dict.fromkeys(seat for one in disputes if not one.possible for seat in one.seats))


def _declared(claims: Sequence[Claim]) -> dict[str, Side]:
    """Each seat that stands for or against the topic, with its best claim and all its evidence."""
    sides = {}
    for seat, stance in stands(claims).items():
        own = [claim for claim in claims if claim.seat == seat and claim.stance == stance]
        evidence = sorted({number for claim in own for number in claim.sources})
        sides[seat] = Side(seat, strongest(own).text, stance, tuple(evidence))
    return sides


def _possible(voices: Sequence[Voice]) -> Iterator[Dispute]:
    """Seats that declared nothing at all and recommend in different words about the same."""
    silent = sorted((voice for voice in voices if not voice.claims), key=lambda voice: voice.seat)
    advice = [Side(voice.seat, said) for voice in silent if (said := read(voice.response).first(_RECOMMENDS))]
    for a, b in combinations(advice, 2):
        if a.seat != b.seat and 0 < alike(_words(a.claim), _words(b.claim)) < DIVERGING:
            yield Dispute(f"{cut_at_word(a.claim, TOPIC)} vs {cut_at_word(b.claim, TOPIC)}", (a, b), "possible")


def _words(text: str) -> frozenset[str]:
    """All of three letters or more, small words included: the bounds are measured with them."""
    return frozenset(word for word in re.findall(r"\w+", text.lower()) if len(word) > 2)


def _seated(sides: Iterable[Side], seats: Sequence[str]) -> tuple[Side, ...]:
    return tuple(sorted(sides, key=lambda side: seats.index(side.seat) if side.seat in seats else len(seats)))


def _rank(dispute: Dispute) -> tuple[int, int, int, str]:
    evidence = {number for side in dispute.positions for number in side.evidence}
    return HOW.index(dispute.how), -len(dispute.seats), -len(evidence), dispute.topic
