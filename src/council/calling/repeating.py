"""Loop detection: a text that ends in exact repetitions of one piece.

Tables, lists, code and data also repeat, but not exactly the same characters for pages. So only a long ending that
consists of one repeated piece is a loop.
"""

from __future__ import annotations

LONG = 4000  # minimum length of the repeated ending, in characters
TIMES = 6  # minimum repetitions of the piece
LONGEST = 2000  # maximum length of the piece, in characters
KEPT = TIMES * LONGEST
EVERY = 500  # new characters between checks; a check takes microseconds
CLUE = 48  # length of the suffix that is searched for in the text before it
GUESSES = 8


def loop_at_end(text: str) -> str:
    """Return the piece that the end of a text repeats, or an empty string."""
    if len(text) < LONG:
        return ""
    end, clue = len(text) - 1, text[-CLUE:]
    for _ in range(GUESSES):
        found = text.rfind(clue, 0, end)
        size = len(text) - CLUE - found
        if found < 0 or size > LONGEST:
            return ""
        length = max(LONG, TIMES * size)
        if length <= len(text) and text[-length:-size] == text[size - length :]:
            return text[-size:]
        end = found + CLUE - 1
    return ""


class Repetition:
    """Loop detector for a stream."""

    __slots__ = ("_fresh", "_pieces", "_tail")

    def __init__(self) -> None:
        self._tail = ""
        self._pieces: list[str] = []
        self._fresh = 0

    def hear(self, piece: str) -> str:
        """Add text and return the repeated piece, or an empty string. Checks only every 500 characters."""
        self._pieces.append(piece)
        self._fresh += len(piece)
        if self._fresh < EVERY:
            return ""
        self._tail = (self._tail + "".join(self._pieces))[-KEPT:]
        self._pieces, self._fresh = [], 0
        return loop_at_end(self._tail)


def repeats(text: str) -> str:
    """Return the piece for which a stream of this text would have been stopped, or an empty string."""
    if len(text) < LONG:
        return ""
    stream = Repetition()
    found = (stream.hear(text[start : start + EVERY]) for start in range(0, len(text), EVERY))
    return next(filter(None, found), "") or loop_at_end(text[-KEPT:])
