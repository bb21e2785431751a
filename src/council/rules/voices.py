"""Data classes of the general protocol: claims, answers, disputes and second-round answers."""

from __future__ import annotations

from dataclasses import dataclass

MIN_GROUNDS_WORDS = 5  # minimum words of a concession with grounds, including the word CONCEDE


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a seat. `sources` are verified numbers in the RESEARCH CONTEXT."""

    seat: str
    topic: str
    stance: str
    text: str
    confidence: float
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SeatAnswer:
    """One seat's answer in a round."""

    seat: str
    response: str
    claims: tuple[Claim, ...] = ()
    confidence: float = 0.5


@dataclass(frozen=True, slots=True)
class Side:
    """One seat's position in a dispute. `evidence` are numbers in the RESEARCH CONTEXT."""

    seat: str
    claim: str
    stance: str = ""
    evidence: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Dispute:
    """A topic on which seats differ. `how` is declared, marker or possible."""

    topic: str
    positions: tuple[Side, ...]
    how: str

    @property
    def seats(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(side.seat for side in self.positions))

    @property
    def is_possible(self) -> bool:
        return self.how == "possible"

    def format_positions(self) -> str:
        """Return each seat's stance on one line."""
        return ", ".join(f"{side.seat} {side.stance}" for side in self.positions)

    def against(self, seat: str) -> tuple[Side, ...]:
        """Return the sides whose stance differs from the seat's."""
        own = {side.stance for side in self.positions if side.seat == seat}
        return tuple(side for side in self.positions if side.seat != seat and side.stance not in own)


@dataclass(frozen=True, slots=True)
class Move:
    """A seat's second-round answer to a dispute: its typed word and its paragraph."""

    seat: str
    topic: str
    word: str
    text: str
    confidence: float = 0.5  # in its current claim

    @property
    def is_weak(self) -> bool:
        """Whether it is a concession without grounds."""
        return self.word == "CONCEDE" and len(self.text.split()) < MIN_GROUNDS_WORDS
