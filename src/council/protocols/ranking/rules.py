"""Ranking rules: labels, the table of ballots, agreement between readers, and confidence."""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Literal, TypedDict

from council.types import OutcomeFacts, TrustFact, TrustFactKind

Ballots = Mapping[str, Sequence[str]]  # reader → the seats whose answers it ranked, best first
# First places needed for HIGH; with two ballots, one answer is first on both by chance in 3 of 4 cases.
MIN_BALLOTS_FOR_HIGH = 3


class StandingRow(TypedDict):
    seat: str
    place: int | None
    mean_rank: float | None
    borda: float | None
    ballots: int
    firsts: int


class LabelledStanding(StandingRow):
    """A row of the table with the label under which the chair sees the answer."""

    label: str


class ReaderPairRow(TypedDict):
    """Two readers: how many pairs of answers both ranked, and how many in the same order."""

    readers: list[str]
    same: int
    compared: int


class RankedAnswer(TypedDict):
    seat: str
    why: str


class BallotRow(TypedDict):
    """The ballot of one reader, the best answer first."""

    dispute: str
    order: list[RankedAnswer]


class RankingObject(TypedDict):
    table: list[StandingRow]
    winner: str | None
    differ: bool
    agreement: list[ReaderPairRow]
    ballots: dict[str, BallotRow]  # by reader


class RankingDetails(RankingObject):
    labels: dict[str, dict[str, str]]  # by reader: label → seat


@dataclass(frozen=True, slots=True)
class Standing:
    """Result of one answer. Tied answers share a `place`; it is None if no ballot ranks the answer."""

    seat: str
    place: int | None
    mean_rank: Fraction | None
    borda: Fraction | None  # share of pairwise comparisons won
    ballots: int  # that rank it
    firsts: int

    def as_json(self) -> StandingRow:
        return {
            "seat": self.seat,
            "place": self.place,
            "mean_rank": _round_fraction(self.mean_rank),
            "borda": _round_fraction(self.borda),
            "ballots": self.ballots,
            "firsts": self.firsts,
        }


@dataclass(frozen=True, slots=True)
class RankingTable:
    """The answers in order. `differ` is true if Borda would give other places."""

    standings: tuple[Standing, ...]
    winner: str | None
    differ: bool


def filter_ballots(ballots: Ballots) -> dict[str, Sequence[str]]:
    """Return the ballots with at least two answers."""
    return {reader: order for reader, order in ballots.items() if len(order) > 1}


def tally(ballots: Ballots, seats: Sequence[str], weights: Mapping[str, float] | None = None) -> RankingTable:
    """Rank the answers of `seats` by mean rank; ties keep seating order. `weights` are those of readers; others count
    1.

    Borda: on a ballot of m answers, place p earns m - p of m - 1 points. The sum is divided by the maximum, so that an
    answer on fewer or shorter ballots is not penalised. If all ballots have the same length, both orders are equal.
    """
    cast = filter_ballots(ballots)
    ranks = {seat: [(order.index(seat) + 1, len(order)) for order in cast.values() if seat in order] for seat in seats}
    means = {seat: Fraction(sum(rank for rank, _ in of), len(of)) if of else None for seat, of in ranks.items()}
    if weights:
        means = {seat: _weighted_mean(cast, seat, weights) or means[seat] for seat in seats}
    shares = {}
    for seat, of in ranks.items():
        most = sum(length - 1 for _, length in of)
        shares[seat] = Fraction(sum(length - rank for rank, length in of), most) if most else None
    places = _assign_places(means)
    rows = [
        Standing(seat, places.get(seat), means[seat], shares[seat], len(of), sum(rank == 1 for rank, _ in of))
        for seat, of in ranks.items()
    ]
    ordered = tuple(sorted(rows, key=lambda row: row.place or len(rows) + 1))
    by_share = _assign_places({seat: None if share is None else -share for seat, share in shares.items()})
    first = [row.seat for row in ordered if row.place == 1]
    is_alone = len(first) == 1 and all(row.place for row in ordered)  # neither tied nor an answer on no ballot
    return RankingTable(ordered, first[0] if is_alone else None, by_share != places)


def _weighted_mean(cast: Ballots, seat: str, weights: Mapping[str, float]) -> Fraction | None:
    """Return the mean rank by the weights of the readers; None if they are all 0."""
    ranks = {reader: order.index(seat) + 1 for reader, order in cast.items() if seat in order}
    shares = {reader: Fraction(str(weights.get(reader, 1.0))) for reader in ranks}
    total = sum(shares.values())
    return sum((shares[reader] * rank for reader, rank in ranks.items()), Fraction(0)) / total if total else None


def _assign_places(values: Mapping[str, Fraction | None]) -> dict[str, int]:
    """Give the lowest value place 1; equal values share a place and skip the following ones (1, 1, 3)."""
    known = {seat: value for seat, value in values.items() if value is not None}
    return {seat: 1 + sum(other < value for other in known.values()) for seat, value in known.items()}


def reader_agreement(ballots: Ballots) -> list[ReaderPairRow]:
    """Compare every two readers, in seating order."""
    rows: list[ReaderPairRow] = []
    for a, b in combinations(ballots, 2):
        theirs = {seat: n for n, seat in enumerate(ballots[b])}
        places = [theirs[seat] for seat in ballots[a] if seat in theirs]
        compared = len(places) * (len(places) - 1) // 2
        rows.append({"readers": [a, b], "same": compared - _count_inversions(places), "compared": compared})
    return rows


def _count_inversions(places: Sequence[int]) -> int:
    seen: list[int] = []
    turned = 0
    for place in places:
        turned += len(seen) - bisect(seen, place)
        insort(seen, place)
    return turned


def find_split_answers(ballots: Ballots, seats: Sequence[str]) -> dict[str, tuple[list[str], list[str]]]:
    """Return the answers that one reader put first and another last, with these readers.

    Two readers count only if both compared it with the same other answer: of three answers, the second best is first on
    the ballot of the best one's author and last on the third's, without any disagreement.
    """
    found = {}
    for seat in seats:
        firsts, lasts = readers_who_put(ballots, seat, 0), readers_who_put(ballots, seat, -1)
        pairs = [(a, b) for a in firsts for b in lasts if (set(ballots[a]) & set(ballots[b])) - {seat}]
        if pairs:
            found[seat] = list(dict.fromkeys(a for a, _ in pairs)), list(dict.fromkeys(b for _, b in pairs))
    return found


def readers_who_put(ballots: Ballots, seat: str | None, place: Literal[0, -1]) -> list[str]:
    """Return the readers who put an answer first (0) or last (-1)."""
    return [reader for reader, order in filter_ballots(ballots).items() if order[place] == seat]


def ranking_confidence(table: RankingTable, *, is_unanimous: bool = False) -> str:
    """Return HIGH if all answers agree or one is first on all of three or more ballots.

    MEDIUM if one is first on most of two or more ballots, else LOW. If all answers agree, their order is chance.
    """
    top = _find_top(table)
    if is_unanimous:
        return "HIGH"
    if top is None or top.ballots < 2 or 2 * top.firsts <= top.ballots:
        return "LOW"
    return "HIGH" if top.firsts == top.ballots >= MIN_BALLOTS_FOR_HIGH else "MEDIUM"


def _find_top(table: RankingTable) -> Standing | None:
    return next((row for row in table.standings if row.seat == table.winner), None)


def list_trust_facts(table: RankingTable, *, is_unanimous: bool) -> list[TrustFact]:
    """Return what the ballots say against trust; nothing if all answers agree."""
    confidence = ranking_confidence(table, is_unanimous=is_unanimous)
    top = _find_top(table)
    if confidence == "HIGH":
        return []
    if confidence == "LOW" or top is None:
        return [TrustFact("ballots_split")]
    kind: TrustFactKind = "few_ballots" if top.firsts == top.ballots else "ballots_differ"
    return [TrustFact(kind, "", (top.seat,), top.firsts, top.ballots)]


def describe_outcome(table: RankingTable) -> OutcomeFacts | None:
    """Return which answer came first; None if no reader compared two answers."""
    if not any(row.ballots for row in table.standings):
        return None
    top = _find_top(table)
    return OutcomeFacts("first", top.seat, count=top.firsts, total=top.ballots) if top else OutcomeFacts("no_first")


def _round_fraction(value: Fraction | None) -> float | None:
    return None if value is None else round(float(value), 3)
