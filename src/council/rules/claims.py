"""What seats claim: topics made one, points of consensus, and the ledger that closes the report."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from council.rules.voices import Claim, Dispute, Move, Voice
from council.types import Json

__all__ = ["Claim", "Voice", "aligned", "claim_ledger", "consensus_points"]


def aligned(voices: Sequence[Voice], same: Sequence[tuple[str, str]]) -> list[Voice]:
    raise NotImplementedError


def consensus_points(voices: Sequence[Voice], members: int) -> list[Json]:
    raise NotImplementedError


def claim_ledger(
    voices: Sequence[Voice], disputes: Sequence[Dispute], resolved: Collection[str], moves: Sequence[Move] = ()
) -> list[Json]:
    raise NotImplementedError
