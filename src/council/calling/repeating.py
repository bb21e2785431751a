"""Whether a text goes round in circles: the same words again and again, exactly, to its end.

Tables, lists, code, refrains and data repeat themselves too, but not the very same characters for pages. So only a long
end that is nothing but one piece, over and over, is a loop.
"""

from __future__ import annotations

LONG = 4000  # characters that say nothing new
TIMES = 6  # how often a piece is said in them at least
LONGEST = 2000  # characters of a piece
KEPT = TIMES * LONGEST
EVERY = 500  # new characters between two looks: a look costs some microseconds
CLUE = 48  # characters by which the piece before is found
GUESSES = 8


def loop_at_end(text: str) -> str:
    """The piece that the end of a text repeats; nothing if it does not."""
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
    """A stream on its way in."""

    __slots__ = ("_fresh", "_pieces", "_tail")

    def __init__(self) -> None:
        self._tail = ""
        self._pieces: list[str] = []
        self._fresh = 0

    def hear(self, piece: str) -> str:
        """The piece that it repeats by now, looked for now and then; nothing while all is well."""
        self._pieces.append(piece)
        self._fresh += len(piece)
        if self._fresh < EVERY:
            return ""
        self._tail = (self._tail + "".join(self._pieces))[-KEPT:]
        self._pieces, self._fresh = [], 0
        return loop_at_end(self._tail)


def repeats(text: str) -> str:
    """The same for a text that is all there: what a stream of it would have been stopped for."""
    if len(text) < LONG:
        return ""
    stream = Repetition()
    heard = (stream.hear(text[start : start + EVERY]) for start in range(0, len(text), EVERY))
    return next(filter(None, heard), "") or loop_at_end(text[-KEPT:])
