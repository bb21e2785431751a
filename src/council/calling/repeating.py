"""Loop detection: a text that ends in exact repetitions of one piece.

Tables, lists, code and data also repeat, but not exactly the same characters for pages. So only a long ending that
consists of one repeated piece is a loop.
"""

from __future__ import annotations

MIN_LOOP_CHARS = 4000  # minimum length of the repeated ending, in characters
MIN_REPEATS = 6  # minimum repetitions of the piece
MAX_PIECE_CHARS = 2000  # maximum length of the piece, in characters
TAIL_CHARS = MIN_REPEATS * MAX_PIECE_CHARS
CHECK_INTERVAL_CHARS = 500  # new characters between checks; a check takes microseconds
ANCHOR_CHARS = 48  # length of the suffix that is searched for in the text before it
MAX_CANDIDATES = 8


def find_loop_at_end(text: str) -> str:
    """Return the piece that the end of a text repeats, or an empty string."""
    if len(text) < MIN_LOOP_CHARS:
        return ""
    end, clue = len(text) - 1, text[-ANCHOR_CHARS:]
    for _ in range(MAX_CANDIDATES):
        found = text.rfind(clue, 0, end)
        size = len(text) - ANCHOR_CHARS - found
        if found < 0 or size > MAX_PIECE_CHARS:
            return ""
        length = max(MIN_LOOP_CHARS, MIN_REPEATS * size)
        if length <= len(text) and text[-length:-size] == text[size - length :]:
            return text[-size:]
        end = found + ANCHOR_CHARS - 1
    return ""


class LoopDetector:
    """Loop detector for a stream."""

    __slots__ = ("_fresh", "_pieces", "_tail")

    def __init__(self) -> None:
        self._tail = ""
        self._pieces: list[str] = []
        self._fresh = 0

    def feed(self, piece: str) -> str:
        """Add text and return the repeated piece, or an empty string. Checks only every 500 characters."""
        self._pieces.append(piece)
        self._fresh += len(piece)
        if self._fresh < CHECK_INTERVAL_CHARS:
            return ""
        self._tail = (self._tail + "".join(self._pieces))[-TAIL_CHARS:]
        self._pieces, self._fresh = [], 0
        return find_loop_at_end(self._tail)


def find_loop(text: str) -> str:
    """Return the piece for which a stream of this text would have been stopped, or an empty string."""
    if len(text) < MIN_LOOP_CHARS:
        return ""
    stream = LoopDetector()
    found = (
        stream.feed(text[start : start + CHECK_INTERVAL_CHARS]) for start in range(0, len(text), CHECK_INTERVAL_CHARS)
    )
    return next(filter(None, found), "") or find_loop_at_end(text[-TAIL_CHARS:])
