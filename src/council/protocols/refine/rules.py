"""Rules of the refine protocol: who attacks whom, whose drafts agree, and which version is chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from council.engine.agreement import join_sides
from council.protocols.common.ballots import ReaderBallot
from council.protocols.common.tally import RankingTable, Standing
from council.protocols.refine.replies import Choice
from council.types import Difference, Seat, Side, TrustFact

MAX_DIFFERENCES = 4


def assign_attackers(seats: Sequence[Seat]) -> dict[str, str]:
    """Return whose draft each seat attacks: each draft once, of another vendor where possible.

    The seats of one vendor stand together, the largest group first. A shift by the size of that group pairs no two
    seats of a vendor unless it has more than half of them.
    """
    sizes = Counter(seat.vendor for seat in seats)
    groups = [vendor for vendor, _ in sizes.most_common()]
    ordered = sorted(seats, key=lambda seat: groups.index(seat.vendor))
    shift = max(sizes.values()) % len(ordered) or 1
    targets = {seat.name: ordered[(n + shift) % len(ordered)].name for n, seat in enumerate(ordered)}
    return {seat.name: targets[seat.name] for seat in seats}


def find_holders(
    winner: str, verdicts: Mapping[tuple[str, str], bool | None], names: Iterable[str]
) -> tuple[str, ...] | None:
    """Return the seats whose draft reaches the conclusion of the winner's; None if the attacks do not tell.

    `verdicts` says for an attacker and an author whether their drafts reach the same conclusion. Two seats without a
    verdict of their own are compared through others: equal conclusions of a chain are equal, and one that differs from
    any of them differs from all.
    """
    names = tuple(names)
    direct: dict[frozenset[str], bool | None] = {}
    for pair, same in verdicts.items():
        known = direct.get(frozenset(pair))
        direct[frozenset(pair)] = same if known is None else known if same is None else same and known
    same_pairs = [pair for pair, same in direct.items() if same]
    group = _reach(winner, same_pairs)
    is_consistent = not any(pair <= group for pair, same in direct.items() if same is False)
    holders = []
    for name in names:
        same = True if name == winner else direct.get(frozenset((winner, name)))
        if same is None and name in group and is_consistent:
            same = True
        elif same is None:
            others = _reach(name, same_pairs)
            differs = any(pair & group and pair & others for pair, one in direct.items() if one is False)
            if not differs or name in group:
                return None
        if same:
            holders.append(name)
    return tuple(holders)


def _reach(start: str, pairs: Sequence[frozenset[str]]) -> set[str]:
    """Return the names that pairs connect with the first one."""
    reached = {start}
    while True:
        found = {name for pair in pairs if pair & reached for name in pair} - reached
        if not found:
            return reached
        reached |= found


def list_candidates(table: RankingTable, names: Sequence[str]) -> list[str]:
    """Return the versions that share the first place; all of them if no ballot compares two."""
    first = [row.seat for row in table.standings if row.place == 1]
    return first or list(names)


def order_by_rank(table: RankingTable, winner: str) -> list[str]:
    """Return the seats in the order in which they correct the text: its author, then the others by rank."""
    return [winner, *(row.seat for row in table.standings if row.seat != winner)]


def list_ballot_facts(standing: Standing | None, *, is_unanimous: bool) -> list[TrustFact]:
    """Return a fact if not all readers put the chosen version first; nothing if all drafts agree: then it is taste."""
    if is_unanimous or standing is None or not standing.ballots or standing.firsts == standing.ballots:
        return []
    return [TrustFact("ballots_differ", "", (standing.seat,), standing.firsts, standing.ballots)]


def list_differences(ballots: Iterable[ReaderBallot[Choice]], winner: str) -> list[Difference]:
    """Return what other versions decide differently from the chosen one, each point once."""
    found: dict[str, Difference] = {}
    for point, sides in chain.from_iterable(map(_read_differences, ballots)):
        holders = {seat for side in sides for seat in side.seats}
        if len(sides) > 1 and winner in holders:
            ordered = sorted(sides, key=lambda side: winner not in side.seats)
            found.setdefault(" ".join(point.casefold().split()), Difference(point, tuple(ordered)))
    return list(found.values())[:MAX_DIFFERENCES]


def _read_differences(slip: ReaderBallot[Choice]) -> list[tuple[str, tuple[Side, ...]]]:
    rows = []
    for difference in slip.ballot.differences:
        sides = [
            (slip.labels[label], side.position, side.assumes)
            for side in difference.sides
            if (label := side.label.strip().upper().removeprefix("RESPONSE").strip()) in slip.labels
        ]
        rows.append((difference.point, join_sides(sides)))
    return rows
