"""A past run as if it happened now: the pieces of each statement are made anew from its text and duration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from council import events as ev
from council.events import Entry

PIECES = 40  # at most so many pieces a statement


def replayed(entries: Sequence[Entry]) -> list[Entry]:
    """Every entry in the order of its time, with the pieces of each statement before it."""
    pieces = [piece for entry in entries if isinstance(entry.event, ev.Stated) for piece in _pieces(entry, entry.event)]
    return sorted([*entries, *pieces], key=attrgetter("at"))


def _pieces(entry: Entry, stated: ev.Stated) -> Iterator[Entry]:
    words = stated.said.split(" ")
    size = max(1, len(words) // PIECES)
    starts = range(0, len(words), size)
    began = entry.at - stated.seconds
    for n, start in enumerate(starts, 1):
        at = began + stated.seconds * n / (len(starts) + 1)
        yield Entry(0, at, ev.Delta(stated.key, stated.seat, " ".join(words[start : start + size]) + " "))
