"""Replay of a past run: stream pieces are rebuilt from the text and duration of each statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

from council import events as ev
from council.events import Entry

MAX_PIECES = 40  # per statement


def build_replay(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries in time order, with rebuilt deltas before each statement."""
    pieces = [
        piece for entry in entries if isinstance(entry.event, ev.Stated) for piece in _build_deltas(entry, entry.event)
    ]
    return sorted([*entries, *pieces], key=attrgetter("at"))


def _build_deltas(entry: Entry, stated: ev.Stated) -> Iterator[Entry]:
    words = stated.said.split(" ")
    size = max(1, len(words) // MAX_PIECES)
    starts = range(0, len(words), size)
    began = entry.at - stated.seconds
    for n, start in enumerate(starts, 1):
        at = began + stated.seconds * n / (len(starts) + 1)
        yield Entry(0, at, ev.Delta(stated.key, stated.seat, " ".join(words[start : start + size]) + " "))
