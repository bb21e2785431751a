"""Claims: topic alignment, points of consensus, and the claim table of the report.

A seat that declares both sides of a topic counts for neither: it joins no consensus and no dispute on it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from council.rules.settling import words_by_seat
from council.rules.topics import topic_key
from council.rules.voices import Claim, Dispute, Move, SeatAnswer
from council.types import Json

__all__ = [
    "Claim",
    "SeatAnswer",
    "align_topics",
    "claim_ledger",
    "claims_by_topic",
    "find_consensus",
    "stances_by_seat",
    "strongest_claim",
]

OPPOSITE_STANCE = {"supports": "opposes", "opposes": "supports"}
MIN_CONSENSUS_WEIGHT = 0.6  # share of the members' total confidence


def align_topics(answers: Sequence[SeatAnswer], same: Sequence[tuple[str, str]]) -> list[SeatAnswer]:
    """Rename each topic to the first one of its group. `same` are the clerk's pairs of existing topics."""
    written: dict[str, str] = {}
    for claim in _iter_claims(answers):
        written.setdefault(topic_key(claim.topic), claim.topic)
    home = _group_topics(list(written), [(topic_key(a), topic_key(b)) for a, b in same])
    return [
        replace(answer, claims=tuple(replace(one, topic=written[home[topic_key(one.topic)]]) for one in answer.claims))
        for answer in answers
    ]


def _group_topics(keys: Sequence[str], pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Map each topic to the first one of its group; ignore pairs with an unknown or empty topic."""
    members = {key: [key] for key in keys}
    for a, b in pairs:
        if a and b and a in members and b in members and members[a] is not members[b]:
            less, more = sorted((members[a], members[b]), key=len)
            more += less
            members.update(dict.fromkeys(less, more))
    place = {key: n for n, key in enumerate(keys)}
    first = {id(group): min(group, key=place.__getitem__) for group in members.values()}
    return {key: first[id(group)] for key, group in members.items()}


def claims_by_topic(answers: Iterable[SeatAnswer]) -> dict[str, list[Claim]]:
    """Group the claims that have a topic."""
    found: dict[str, list[Claim]] = defaultdict(list)
    for claim in _iter_claims(answers):
        if key := topic_key(claim.topic):
            found[key].append(claim)
    return dict(found)


def stances_by_seat(claims: Iterable[Claim]) -> dict[str, str]:
    """Map each seat to its stance; omit seats that declare both stances or neither."""
    held: dict[str, set[str]] = defaultdict(set)
    for claim in claims:
        if claim.stance in OPPOSITE_STANCE:
            held[claim.seat].add(claim.stance)
    return {seat: stances.pop() for seat, stances in held.items() if len(stances) == 1}


def strongest_claim(claims: Iterable[Claim]) -> Claim:
    """Return the claim with the most sources, then the highest confidence, then the first."""
    return max(claims, key=lambda claim: (len(set(claim.sources)), _clamp_confidence(claim)))


def find_consensus(answers: Sequence[SeatAnswer], members: int) -> list[Json]:
    """Return the claims that at least two seats make with enough confidence, best evidence first."""
    points = [
        point
        for claims in claims_by_topic(answers).values()
        for stance in dict.fromkeys(claim.stance for claim in claims)
        if (point := _consensus_point(_claims_with_stance(claims, stance), members))
    ]
    return sorted(points, key=lambda point: (-len(point["sources"]), -point["weight"]))


def _claims_with_stance(claims: Sequence[Claim], stance: str) -> list[Claim]:
    stand = stances_by_seat(claims)
    return [one for one in claims if one.stance == stance and (stance not in OPPOSITE_STANCE or one.seat in stand)]


def _consensus_point(claims: Sequence[Claim], members: int) -> Json | None:
    sure: dict[str, float] = defaultdict(float)
    for claim in claims:
        sure[claim.seat] = max(sure[claim.seat], _clamp_confidence(claim))
    weight = round(math.fsum(sure.values()) / max(members, 1), 3)
    if len(sure) < 2 or weight < MIN_CONSENSUS_WEIGHT:
        return None
    best = strongest_claim(claims)
    return {
        "topic": best.topic,
        "stance": best.stance,
        "claim": best.text,
        "seats": list(sure),
        "weight": weight,
        "sources": _source_numbers(claims),
    }


def claim_ledger(
    answers: Sequence[SeatAnswer],
    disputes: Sequence[Dispute],
    resolved_topics: Collection[str],
    moves: Sequence[Move] = (),
) -> list[Json]:
    """Return one row per topic and stance with its status; `moves` say who conceded or narrowed it."""
    resolved = {topic_key(topic) for topic in resolved_topics}
    fights = {topic_key(one.topic): one for one in disputes if not one.is_possible}
    rows = _group_claims(answers)
    qualified = {key for key, stance, _ in rows if stance == "qualifies"}
    return [
        _ledger_row(claims, fights.get(key), words_by_seat(moves, key), key in resolved, key in qualified)
        for (key, _, _), claims in rows.items()
    ]


def _group_claims(answers: Iterable[SeatAnswer]) -> dict[tuple[str, str, str], list[Claim]]:
    found: dict[tuple[str, str, str], list[Claim]] = defaultdict(list)
    for claim in _iter_claims(answers):
        key = topic_key(claim.topic)
        found[key, claim.stance, "" if key else topic_key(claim.text)].append(claim)
    return found


def _ledger_row(
    claims: Sequence[Claim], fight: Dispute | None, words: Mapping[str, str], resolved: bool, qualified: bool
) -> Json:
    """Build a row. A claim that all its seats conceded counts as contradicted, even in a resolved dispute."""
    best, by = strongest_claim(claims), list(dict.fromkeys(claim.seat for claim in claims))
    sides = fight.positions if fight and best.stance in OPPOSITE_STANCE else ()
    other = [side.seat for side in sides if side.stance != best.stance]
    conceded = [side.seat for side in sides if side.stance == best.stance and words.get(side.seat) == "CONCEDE"]
    holding, given_up = [seat for seat in by if seat not in conceded], set(by) <= set(conceded)
    against = [seat for seat in other if words.get(seat) != "CONCEDE"] or (other if given_up else [])
    narrowed = bool(sides) and any(words.get(seat) == "NUANCE" for seat in by)
    row = {"claim": best.text, "topic": best.topic, "by": by, "sources": _source_numbers(claims), "conceded": conceded}
    row["against"] = against if given_up or not resolved else []
    row["status"] = (
        "contradicted" if row["against"]
        else "qualified" if best.stance in OPPOSITE_STANCE and (qualified or narrowed)
        else "supported" if row["sources"] or len(holding) > 1
        else "unverified"
    )  # fmt: skip
    return row


def _iter_claims(answers: Iterable[SeatAnswer]) -> Iterable[Claim]:
    return (claim for answer in answers for claim in answer.claims)


def _source_numbers(claims: Iterable[Claim]) -> list[int]:
    return sorted({number for claim in claims for number in claim.sources})


def _clamp_confidence(claim: Claim) -> float:
    return min(1.0, max(0.0, claim.confidence))
