"""How a dispute ends: by the words that seats typed, never by a word found in their sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from council.rules.topics import topic_key
from council.rules.voices import Dispute, Move

WORDS = ("CONCEDE", "NUANCE", "MAINTAIN")  # the most reluctant last: it counts when a seat typed two
_FIRST_WORD = re.compile(r"\A[\W\d_]*([^\W\d_]+)")


def settle(disputes: Sequence[Dispute], moves: Sequence[Move]) -> tuple[list[Dispute], list[Dispute]]:
    """Those that are resolved and those that persist. A silent seat maintains; a possible dispute was put to nobody."""
    resolved = [
        one for one in disputes if not one.possible and _is_resolved(one, answered(moves, topic_key(one.topic)))
    ]
    return resolved, [one for one in disputes if one not in resolved]


def answered(moves: Iterable[Move], key: str) -> dict[str, str]:
    """Each seat's word on a topic. What is none of the three words counts as MAINTAIN."""
    found: dict[str, str] = {}
    for move in moves:
        if topic_key(move.topic) == key:
            word = move.word if move.word in WORDS else "MAINTAIN"
            found[move.seat] = max(word, found.get(move.seat, word), key=WORDS.index)
    return found


def _is_resolved(dispute: Dispute, words: Mapping[str, str]) -> bool:
    """No opposition is left among those who did not concede, or everyone gave way."""
    said = [words.get(seat, "MAINTAIN") for seat in dispute.seats]
    left = {side.stance for side in dispute.positions if words.get(side.seat) != "CONCEDE"}
    return ("CONCEDE" in said and len(left) <= 1) or (bool(said) and "MAINTAIN" not in said)


def word_agrees(word: str, text: str) -> bool:
    """Whether the paragraph begins with its word; what stands elsewhere in it ("I will not concede") decides nothing."""
    first = _FIRST_WORD.match(text)
    return first is not None and first[1].casefold() == word.strip().casefold()
