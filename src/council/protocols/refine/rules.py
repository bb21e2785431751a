"""Rules of the refine protocol: who attacks whom, which errors are not settled, and whether the drafts agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NotRequired, TypedDict

from council.protocols.common.check import FoundError, FoundErrorRow, dump_error, format_error, rule_errors
from council.protocols.common.issues import SEVERE, IssueRuling, Point
from council.types import Seat

DraftErrors = Mapping[str, Mapping[str, FoundError]]  # author → the errors in its draft, by id
RulingsByAuthor = Mapping[str, Sequence[Point]]


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


def is_contradicted(shared_by: Collection[str] | None, opposed: Iterable[frozenset[str]]) -> bool:
    """Return whether the chair counts two seats for the answer of which one says that their drafts differ."""
    return any(pair <= set(shared_by or ()) for pair in opposed)


def list_unsettled_errors(errors: DraftErrors, rulings: RulingsByAuthor) -> dict[str, list[str]]:
    """Return for each author the severe errors in its draft that it dismissed or did not rule on, with its reason."""
    found: dict[str, list[str]] = {}
    for author, _, error, ruling in _join_rulings(errors, rulings):
        if error.severity in SEVERE and not ruling.landed:
            reply = f" The author's reply: {ruling.why}" if ruling.why else ""
            found.setdefault(author, []).append(f"{format_error(error)}{reply}")
    return found


class AttackRow(FoundErrorRow):
    """An error that another seat found in a draft, and its author's ruling."""

    id: str
    author: str
    landed: bool | None  # None: its author did not rule on it
    why: str


class RefineDetails(TypedDict):
    attacks: list[AttackRow]
    labels: NotRequired[dict[str, dict[str, str]]]  # by reader: label → seat; without a synthesis there are none


def describe_attacks(errors: DraftErrors, rulings: RulingsByAuthor) -> list[AttackRow]:
    """Return the errors in the drafts for the report, each with its author's ruling."""
    return [
        {"id": name, "author": author, **dump_error(error), "landed": ruling.landed, "why": ruling.why}
        for author, name, error, ruling in _join_rulings(errors, rulings)
    ]


def _join_rulings(errors: DraftErrors, rulings: RulingsByAuthor) -> Iterable[tuple[str, str, FoundError, IssueRuling]]:
    """Yield each error with its author, its id and the author's ruling."""
    for author, found in errors.items():
        ruled = rule_errors(rulings.get(author, ()), found).rows
        for (name, error), ruling in zip(found.items(), ruled, strict=True):
            yield author, name, error, ruling
