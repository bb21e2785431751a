"""Rounds of advice: what each is for, how long it may be, when a debate has nothing left to settle, who changed sides on what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from council.rules.likeness import alike, tokens
from council.types import Json

BUDGETS = {"opening": (200, 400), "rebuttal": (200, 300), "final": (150, 250)}
SAME_CHOICE = 0.5  # of the words of two short recommendations are shared


@dataclass(frozen=True, slots=True)
class Stance:
    """Where a seat stands after a round."""

    seat: str
    stance: str
    choice: str = ""
    confidence: str = ""
    evidence: str = ""


def stage(n: int, rounds: int) -> str:
    """The first round opens, the last is final, what lies between rebuts. A single round is an opening."""
    return "opening" if n == 1 else "final" if n == rounds else "rebuttal"


def budget(n: int, rounds: int) -> tuple[int, int]:
    """From how many words to how many."""
    return BUDGETS[stage(n, rounds)]


def is_long(text: str, most: int) -> bool:
    """Over twice its budget: worth a flag."""
    return len(text.split()) > 2 * most


def unanimous(stances: Sequence[Stance]) -> bool:
    """All hold one stand, recommend one thing and are sure of it. One seat alone agrees with nobody."""
    if len(stances) < 2 or any(one.confidence != "HIGH" or one.stance == "undecided" for one in stances):
        return False
    first, *others = stances
    return all(one.stance == first.stance and _same_choice(one.choice, first.choice) for one in others)


def _same_choice(a: str, b: str) -> bool:
    one, other = tokens(a), tokens(b)
    return one == other or alike(one, other) >= SAME_CHOICE


def changes(rounds: Sequence[Mapping[str, Stance]]) -> list[Json]:
    """Every change of stand from a seat's round to its next: on what evidence, or as a weak flip."""
    found = []
    for seat in dict.fromkeys(name for held in rounds for name in held):
        said = [(n, held[seat]) for n, held in enumerate(rounds, 1) if seat in held]
        found += [_change(n, before, after) for (_, before), (n, after) in pairwise(said) if _moved(before, after)]
    return found


def _moved(before: Stance, after: Stance) -> bool:
    return before.stance != after.stance or not _same_choice(before.choice, after.choice)


def _change(n: int, before: Stance, after: Stance) -> Json:
    return {
        "seat": after.seat, "round": n, "from": _stand(before), "to": _stand(after), "changed": True,
        "reason": after.evidence, "weak": not after.evidence.strip(),
    }  # fmt: skip


def _stand(one: Stance) -> str:
    return f"{one.stance}: {one.choice}" if one.choice else one.stance
