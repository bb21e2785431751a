"""What the seats of a general council say, and where they stand against each other: values alone."""

from __future__ import annotations

from dataclasses import dataclass

GROUNDS = 5  # words, the first of which is the concession itself


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a seat. `sources` are numbers in the RESEARCH CONTEXT, verified ones only."""

    seat: str
    topic: str
    stance: str
    text: str
    confidence: float
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Voice:
    """What one seat said in a round."""

    seat: str
    response: str
    claims: tuple[Claim, ...] = ()
    confidence: float = 0.5


@dataclass(frozen=True, slots=True)
class Side:
    """Where one seat stands in a dispute. `evidence` are numbers in the RESEARCH CONTEXT."""

    seat: str
    claim: str
    stance: str = ""
    evidence: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Dispute:
    """A topic on which seats differ. `how` it was found: declared, marker or possible."""

    topic: str
    positions: tuple[Side, ...]
    how: str

    @property
    def seats(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(side.seat for side in self.positions))

    @property
    def possible(self) -> bool:
        return self.how == "possible"

    def told(self) -> str:
        """Who stands where, on one line."""
        return ", ".join(f"{side.seat} {side.stance}" for side in self.positions)

    def against(self, seat: str) -> tuple[Side, ...]:
        """What is held against a seat's own stand. One who stands with it is no opponent."""
        own = {side.stance for side in self.positions if side.seat == seat}
        return tuple(side for side in self.positions if side.seat != seat and side.stance not in own)


@dataclass(frozen=True, slots=True)
class Move:
    """What a seat answered to a dispute in the second round: its typed word and its paragraph."""

    seat: str
    topic: str
    word: str
    text: str
    confidence: float = 0.5  # in its claim as it stands now

    @property
    def weak(self) -> bool:
        """A concession that gives no grounds."""
        return self.word == "CONCEDE" and len(self.text.split()) < GROUNDS
