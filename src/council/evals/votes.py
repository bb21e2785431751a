"""Voting rules over short answers: plurality, with weights or without, and families first.

The self-consistency arm, the replay of recorded answers and the simulations of `benchmarks/` call the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vote:
    """One short answer. An empty one is an abstention."""

    voter: str
    answer: str
    family: str = ""


@dataclass(frozen=True, slots=True)
class Election:
    """Result of a vote. `share` is the part of the weight that the answer has; `dissent` lists the other answers."""

    answer: str = ""
    share: float = 0.0
    holders: tuple[str, ...] = ()
    dissent: tuple[str, ...] = ()  # the most held first
    is_tied: bool = False


def elect_by_plurality(votes: Sequence[Vote], weights: Mapping[str, float] | None = None) -> Election:
    """Return the answer with the most weight. Of tied ones, the one that was given first wins, and the tie is marked.

    Without `weights` each vote counts 1. Weights that are all 0 count as equal.
    """
    given = [vote for vote in votes if vote.answer]
    if not given:
        return Election()
    known = {vote.voter: 1.0 if weights is None else weights.get(vote.voter, 1.0) for vote in given}
    if not any(known.values()):
        known = dict.fromkeys(known, 1.0)
    sums: dict[str, float] = {}
    for vote in given:
        sums[vote.answer] = sums.get(vote.answer, 0.0) + known[vote.voter]
    order = sorted(sums, key=lambda answer: -sums[answer])  # stable: the first given one leads
    top = order[0]
    is_tied = len(order) > 1 and math.isclose(sums[top], sums[order[1]])
    holders = tuple(vote.voter for vote in given if vote.answer == top)
    return Election(top, sums[top] / math.fsum(sums.values()), holders, tuple(order[1:]), is_tied)


def elect_by_families(votes: Sequence[Vote]) -> Election:
    """Return the plurality of the families. A family has one vote: the plurality of its voters.

    A voter without a family counts as one family. The share is that of the families.
    """
    families: dict[str, list[Vote]] = {}
    for vote in votes:
        families.setdefault(vote.family or f"voter {vote.voter}", []).append(vote)
    spoken = [Vote(name, elect_by_plurality(group).answer, name) for name, group in families.items()]
    found = elect_by_plurality(spoken)
    holders = tuple(vote.voter for vote in votes if vote.answer and vote.answer == found.answer)
    others = dict.fromkeys([*found.dissent, *(vote.answer for vote in votes if vote.answer)])
    dissent = tuple(answer for answer in others if answer != found.answer)
    return Election(found.answer, found.share, holders, dissent, found.is_tied)
