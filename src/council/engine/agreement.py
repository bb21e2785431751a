"""Whether the seats agree with the answer: independent voices, and the seats that recommend it themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from council.engine.minutes import Minutes
from council.types import Agreement, ChairNotes, Difference, Round, Side, TrustFact


def count_voices(served: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return the voice of each seat, from (name, requested member, member that answered).

    Seats that share a member because of a fallback are one voice: it would agree with itself.
    """
    rows = list(served)
    sharing = Counter(member for _, _, member in rows if member)
    replaced = {member for _, requested, member in rows if member and member != requested}
    return {name: member if sharing[member] > 1 and member in replaced else name for name, _, member in rows}


def round_voices(answers: Round[Any]) -> dict[str, str]:
    """Return the voice of each seat of a round."""
    statements = answers.values()
    return count_voices((said.seat.name, said.seat.member, said.outcome.served_by) for said in statements)


def list_shared_voices(voices: Mapping[str, str]) -> list[TrustFact]:
    """Return a fact for each model that answered for several seats by fallback."""
    seats: dict[str, list[str]] = {}
    for seat, voice in voices.items():
        seats.setdefault(voice, []).append(seat)
    return [
        TrustFact("shared_member", voice, tuple(names), len(names)) for voice, names in seats.items() if len(names) > 1
    ]


def keep_known(named: Iterable[str] | None, known: Iterable[str]) -> tuple[str, ...] | None:
    """Return the known seats that a chair names, in their order; None if it names none of them but others."""
    if named is None:
        return None
    names = set(named)
    found = tuple(name for name in known if name in names)
    return found if found or not names else None


def compute_agreement(shared_by: Iterable[str] | None, contested: bool, voices: Mapping[str, str]) -> Agreement:
    """Return whether the seats share the recommendation of the answer; empty if that was not assessed.

    full: all of them, and nothing is contested. none: no two voices. partial: everything between.
    """
    everyone = set(voices.values())
    if shared_by is None or len(everyone) < 2:
        return ""
    seats = [seat for seat in shared_by if seat in voices]
    holders = {voices[seat] for seat in seats}
    if len(holders) < 2:
        return "none"
    return "full" if set(seats) == voices.keys() and not contested else "partial"


class NotedAgreement(NamedTuple):
    """What the notes of a chair say about agreement, as fields of a verdict."""

    agreement: Agreement = ""
    shared_by: tuple[str, ...] | None = None
    joined: tuple[str, ...] = ()
    common: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    trust_facts: tuple[TrustFact, ...] = ()


def assess_notes(notes: ChairNotes | None, voices: Mapping[str, str]) -> NotedAgreement:
    """Return the agreement that the chair's notes show, the points behind it, and the facts that limit trust."""
    shared = tuple(list_shared_voices(voices))
    if notes is None:
        return NotedAgreement(trust_facts=shared)
    differences = tuple(
        Difference(
            contested["point"],
            join_sides((side["seat"], side["position"], side["assumes"]) for side in contested["sides"]),
        )
        for contested in notes["contested"]
    )
    names = notes["recommendation_shared_by"]
    holders = None if names is None else tuple(name for name in voices if name in names)
    joined = tuple(name for name in notes.get("joined") or () if name in voices and name not in (holders or ()))
    facts = (TrustFact("contested_points", differences[0].point, count=len(differences)),) if differences else ()
    return NotedAgreement(
        compute_agreement(holders, bool(differences), voices),
        holders,
        joined,
        tuple(notes["agreed"]),
        differences,
        (*facts, *shared),
    )


def join_sides(rows: Iterable[tuple[str, str, str]]) -> tuple[Side, ...]:
    """Return the sides of a point from (seat, position, assumption), with the seats of equal positions joined.

    A seat with two positions is left out: the reply does not tell which one it holds.
    """
    told = list(dict.fromkeys(rows))
    positions = Counter(seat for seat, _ in {(seat, _normalize(position)) for seat, position, _ in told})
    sides: dict[tuple[str, str], Side] = {}
    for seat, position, assumes in told:
        if not position.strip() or positions[seat] > 1:
            continue
        key = (_normalize(position), _normalize(assumes))
        known = sides.get(key, Side((), position.strip(), assumes.strip()))
        seats = tuple(dict.fromkeys((*known.seats, seat)))
        sides[key] = Side(seats, known.position, known.assumes)
    return tuple(sides.values())


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def find_shared_by(minutes: Minutes) -> list[str] | None:
    """Return the seats whose own recommendation is that of the answer; None if the run does not say."""
    shared_by = minutes.verdict.get("shared_by")
    if shared_by is not None:
        return list(shared_by)
    notes = minutes.verdict.get("notes")
    noted = notes.get("recommendation_shared_by") if notes else None  # of a run of an earlier version
    return None if noted is None else list(noted)
