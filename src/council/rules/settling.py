"""Dispute resolution by the typed answer words, never by words in the paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from council.rules.topics import topic_key
from council.rules.voices import Dispute, Move

ANSWER_WORDS = ("CONCEDE", "NUANCE", "MAINTAIN")  # by precedence: the last one counts if a seat typed several
_FIRST_WORD = re.compile(r"\A[\W\d_]*([^\W\d_]+)")


def resolve_disputes(disputes: Sequence[Dispute], moves: Sequence[Move]) -> tuple[list[Dispute], list[Dispute]]:
    """Split into resolved and open disputes. A missing answer counts as MAINTAIN; possible disputes stay open."""
    resolved = [
        one for one in disputes if not one.is_possible and _is_resolved(one, words_by_seat(moves, topic_key(one.topic)))
    ]
    return resolved, [one for one in disputes if one not in resolved]


def words_by_seat(moves: Iterable[Move], key: str) -> dict[str, str]:
    """Map each seat to its word on a topic; any other word counts as MAINTAIN."""
    found: dict[str, str] = {}
    for move in moves:
        if topic_key(move.topic) == key:
            word = move.word if move.word in ANSWER_WORDS else "MAINTAIN"
            found[move.seat] = max(word, found.get(move.seat, word), key=ANSWER_WORDS.index)
    return found


def _is_resolved(dispute: Dispute, words: Mapping[str, str]) -> bool:
    """Return whether the seats that did not concede agree, or all seats answered CONCEDE or NUANCE."""
    said = [words.get(seat, "MAINTAIN") for seat in dispute.seats]
    left = {side.stance for side in dispute.positions if words.get(side.seat) != "CONCEDE"}
    return ("CONCEDE" in said and len(left) <= 1) or (bool(said) and "MAINTAIN" not in said)


def starts_with_word(word: str, text: str) -> bool:
    """Return whether the paragraph starts with the word; later occurrences ("I will not concede") do not count."""
    first = _FIRST_WORD.match(text)
    return first is not None and first[1].casefold() == word.strip().casefold()
