"""Claims of the general protocol: disputes, second-round moves, consensus and the ledger of claims."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, TypedDict

from council.engine.records import ClaimRow, ClaimStatus

MIN_GROUNDS_WORDS = 5  # minimum words of a concession with grounds, including the word CONCEDE
MAX_CLAIMS = 6  # of a seat

Relation = Literal["agree", "conflict", "depends", "possible"]
Pair = frozenset[str]  # two ids of claims


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a seat. `sources` are verified numbers in the RESEARCH CONTEXT."""

    id: str
    seat: str
    question: str
    answer: str
    text: str
    holds_when: str = ""
    confidence: float = 0.5
    sources: tuple[int, ...] = ()

    @property
    def line(self) -> str:
        """The claim on one line, the id first and the sentence last."""
        when = f"condition: {self.holds_when}" if self.holds_when else ""
        return " | ".join(
            " ".join(part.split()) for part in (self.id, self.question, self.answer, when, self.text) if part
        )

    @property
    def own_words(self) -> str:
        when = f" (condition: {self.holds_when})" if self.holds_when else ""
        return f"{self.seat}: {self.text}{when}{_format_numbers(self.sources)}"


@dataclass(frozen=True, slots=True)
class SeatAnswer:
    seat: str
    response: str
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """One seat's position in a dispute. `evidence` are numbers in the RESEARCH CONTEXT; `id` is that of the claim."""

    seat: str
    claim: str
    answer: str = ""
    evidence: tuple[int, ...] = ()
    id: str = ""

    @property
    def line(self) -> str:
        """The answer, the sentence and its sources."""
        return f"{f'{self.answer}: ' if self.answer else ''}{self.claim}{_format_numbers(self.evidence)}"


@dataclass(frozen=True, slots=True)
class Dispute:
    """A question on which seats differ. `how` is values, clerk, possible or chair; `pairs` are claims that conflict."""

    question: str
    positions: tuple[Side, ...]
    how: str
    pairs: frozenset[Pair] = frozenset()

    @property
    def seats(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(side.seat for side in self.positions if side.seat))

    @property
    def is_possible(self) -> bool:
        return self.how == "possible"

    def format_positions(self) -> str:
        return ", ".join(f'{side.seat} "{side.answer or side.claim}"' for side in self.positions)

    def against(self, seat: str) -> tuple[Side, ...]:
        """Return the sides that conflict with a claim of the seat."""
        own = {side.id for side in self.positions if side.seat == seat}
        return tuple(
            side for side in self.positions if side.seat != seat and any({side.id, one} in self.pairs for one in own)
        )

    def list_opponents(self, side: Side) -> list[str]:
        """Return the seats on the other side: of a conflicting claim, or of any other claim if none was compared."""
        others = [one for one in self.positions if one.seat and one.seat != side.seat]
        if self.pairs:
            others = [one for one in others if {one.id, side.id} in self.pairs]
        else:
            others = [one for one in others if one.claim != side.claim]
        return list(dict.fromkeys(one.seat for one in others))


@dataclass(frozen=True, slots=True)
class Group:
    """Claims on one question, and the relation of each compared pair. `coded` are the pairs that code decided."""

    question: str
    claims: tuple[Claim, ...]
    relations: Mapping[Pair, Relation] = field(default_factory=dict)
    coded: frozenset[Pair] = frozenset()

    def pairs(self, relation: Relation, without: Iterable[str] = ()) -> frozenset[Pair]:
        """Return the pairs with this relation, without those of some claims."""
        out = set(without)
        return frozenset(pair for pair, one in self.relations.items() if one == relation and not pair & out)

    def seats_in(self, relation: Relation, claim: Claim) -> list[str]:
        """Return the seats whose claims have this relation to a claim."""
        ids = {one for pair in self.pairs(relation) if claim.id in pair for one in pair - {claim.id}}
        return list(dict.fromkeys(one.seat for one in self.claims if one.id in ids))


@dataclass(frozen=True, slots=True)
class Move:
    """A seat's second-round answer to a dispute: the dispute's name, its typed word and its paragraph."""

    seat: str
    dispute: str
    word: str
    text: str
    confidence: float = 0.5  # in its current claim

    @property
    def is_weak(self) -> bool:
        """Whether it is a concession without grounds."""
        return self.word == "CONCEDE" and len(self.text.split()) < MIN_GROUNDS_WORDS


def _format_numbers(sources: Sequence[int]) -> str:
    listed = ", ".join(map(str, sources))
    return f" (source{'s' if len(sources) > 1 else ''} {listed})" if sources else " (no source)"


# Second round

ANSWER_WORDS = ("CONCEDE", "NUANCE", "MAINTAIN")  # by precedence: the last one counts if a seat typed several


def words_by_seat(moves: Iterable[Move], name: str) -> dict[str, str]:
    """Map each seat to its word on a dispute; any other word counts as MAINTAIN."""
    found: dict[str, str] = {}
    for move in moves:
        if move.dispute == name:
            word = move.word if move.word in ANSWER_WORDS else "MAINTAIN"
            found[move.seat] = max(word, found.get(move.seat, word), key=ANSWER_WORDS.index)
    return found


def is_resolved(dispute: Dispute, words: Mapping[str, str]) -> bool:
    """Return whether no conflict is left, or no seat maintains its claim. A missing answer maintains it."""
    if dispute.is_possible or not dispute.seats:
        return False
    said = [words.get(seat, "MAINTAIN") for seat in dispute.seats]
    conceded = {side.id for side in dispute.positions if words.get(side.seat) == "CONCEDE"}
    left = [pair for pair in dispute.pairs if not pair & conceded]
    return ("CONCEDE" in said and not left) or "MAINTAIN" not in said


# Consensus


class ConsensusStatement(TypedDict):
    id: str
    seat: str
    answer: str
    text: str
    sources: list[int]


class ConsensusPoint(TypedDict):
    """A point on which seats agree, with each seat's own sentence."""

    topic: str
    question: str
    answers: list[str]
    claim: str
    seats: list[str]
    statements: list[ConsensusStatement]
    weight: float  # sum of the seats' confidences
    sources: list[int]


def find_consensus(
    groups: Iterable[Group], words: Mapping[str, str], contested: Iterable[str] = ()
) -> list[ConsensusPoint]:
    """Return the points on which claims of two or more seats were compared and agree, best evidence first.

    `words` maps ids of claims to second-round words, `contested` are ids of claims in a possible dispute. A group with
    a conflict that was not conceded, or with a claim that holds only under a condition, is no consensus.
    """
    conceded = {one for one, word in words.items() if word == "CONCEDE"}
    unsure = {one for one, word in words.items() if word == "NUANCE"} | set(contested)
    points = []
    for group in groups:
        left = [one for one in group.claims if one.id not in conceded]
        if any(one.id in unsure for one in left) or any(
            group.pairs(relation, conceded) for relation in ("conflict", "depends", "possible")
        ):
            continue
        points += [_consensus_point(group, claims) for claims in _agreeing_claims(group, left, conceded)]
    return sorted(points, key=lambda point: (-len(point["sources"]), -point["weight"], point["question"]))


def has_common_claim(groups: Iterable[Group], words: Mapping[str, str]) -> bool:
    """Return whether two seats make the same claim and neither gave it up or qualified it in the second round."""
    given_up = [one for one, word in words.items() if word != "MAINTAIN"]
    return any(group.pairs("agree", given_up) for group in groups)


def _agreeing_claims(group: Group, claims: Sequence[Claim], conceded: set[str]) -> list[list[Claim]]:
    """Return the sets of claims that agree. Claims that were only compared through a third one form pairs."""
    pairs = group.pairs("agree", conceded)
    found = []
    for part in connected(pairs):
        members = [one for one in claims if one.id in part]
        whole = all({a.id, b.id} in pairs for a, b in combinations(members, 2) if a.seat != b.seat)
        sets = [part] if whole else [pair for pair in pairs if pair <= part]
        found += [[one for one in members if one.id in ids] for ids in sorted(sets, key=sorted)]
    return found


def connected(pairs: Iterable[Pair]) -> list[set[str]]:
    """Return the connected parts of a graph, given by its edges."""
    parts: list[set[str]] = []
    for pair in pairs:
        touching = [part for part in parts if part & pair]
        parts = [part for part in parts if not part & pair] + [set(pair).union(*touching)]
    return parts


def _consensus_point(group: Group, claims: Sequence[Claim]) -> ConsensusPoint:
    sure: dict[str, float] = defaultdict(float)
    for claim in claims:
        confidence = min(1.0, max(0.0, claim.confidence))
        sure[claim.seat] = max(sure[claim.seat], confidence)
    statements: list[ConsensusStatement] = [
        {"id": one.id, "seat": one.seat, "answer": one.answer, "text": one.text, "sources": sorted(set(one.sources))}
        for one in claims
    ]
    return {
        "topic": group.question,
        "question": group.question,
        "answers": [one.answer for one in claims],
        "claim": "; ".join(f"{one.seat}: {one.text}" for one in claims),
        "seats": list(sure),
        "statements": statements,
        "weight": round(math.fsum(sure.values()), 3),
        "sources": sorted({n for one in claims for n in one.sources}),
    }


# Ledger


def claim_ledger(
    answers: Iterable[SeatAnswer], groups: Sequence[Group], words: Mapping[str, str], resolved: Iterable[Dispute] = ()
) -> list[ClaimRow]:
    """Return one row per claim with its status; `words` maps ids of claims to second-round words."""
    group_of = {claim.id: group for group in groups for claim in group.claims}
    closed = frozenset(pair for one in resolved for pair in one.pairs)
    claims = [claim for answer in answers for claim in answer.claims]
    return [_ledger_row(claim, group_of.get(claim.id), words, closed) for claim in claims]


def _ledger_row(claim: Claim, group: Group | None, words: Mapping[str, str], closed: frozenset[Pair]) -> ClaimRow:
    """Build a row. A claim that its seat conceded is contradicted, even in a resolved dispute."""
    group = group or Group(claim.question, (claim,))
    word, opposed = words.get(claim.id, ""), group.seats_in("conflict", claim)
    open_pairs = [pair for pair in group.pairs("conflict") if claim.id in pair and pair not in closed]
    holding = {one for pair in open_pairs for one in pair if words.get(one) != "CONCEDE"} - {claim.id}
    held_by = {one.seat for one in group.claims if one.id in holding}
    against = opposed if word == "CONCEDE" else [seat for seat in opposed if seat in held_by]
    agrees = [] if word == "CONCEDE" else group.seats_in("agree", claim)
    if against or word == "CONCEDE":
        status: ClaimStatus = "contradicted"
    elif word == "NUANCE" or group.seats_in("depends", claim):
        status = "qualified"
    elif claim.sources or agrees:
        status = "supported"
    else:
        status = "unverified"
    return {
        "id": claim.id,
        "topic": claim.question,
        "question": claim.question,
        "answer": claim.answer,
        "claim": claim.text,
        "holds_when": claim.holds_when,
        "by": [claim.seat],
        "agrees": agrees,
        "against": against,
        "conceded": [claim.seat] if word == "CONCEDE" else [],
        "sources": sorted(set(claim.sources)),
        "status": status,
    }


def compute_general_confidence(
    consensus: Sequence[Any],
    persisting: Sequence[Dispute],
    answered: int,
    asked: int,
    sourced: bool,
    *,
    has_common_claim: bool = False,
) -> str:
    """Return the confidence of a general answer: open disputes decide first, then consensus, then sources."""
    if any(not one.is_possible for one in persisting):
        return "CONTESTED"
    if answered < 2 or not (consensus or has_common_claim):
        return "LOW"
    return "HIGH" if consensus and sourced and answered == asked and not persisting else "MEDIUM"
