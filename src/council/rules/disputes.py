"""Where seats disagree: found by rule from what they declared and wrote, and settled by typed words alone."""

from __future__ import annotations

from collections.abc import Sequence

from council.rules.voices import Dispute, Move, Side, Voice

__all__ = ["Dispute", "Move", "Side", "disputing", "find_disputes", "settle", "word_agrees"]


def find_disputes(voices: Sequence[Voice]) -> list[Dispute]:
    raise NotImplementedError


def disputing(disputes: Sequence[Dispute]) -> tuple[str, ...]:
    raise NotImplementedError


def settle(disputes: Sequence[Dispute], moves: Sequence[Move]) -> tuple[list[Dispute], list[Dispute]]:
    raise NotImplementedError


def word_agrees(word: str, text: str) -> bool:
    raise NotImplementedError
