"""Poll-based following of a run that another process executes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from council import events as ev
from council.events import Entry

MAX_ORPHAN_POLLS = 20  # polls without an owner before a run counts as dead


@dataclass(slots=True)
class FollowCursor:
    """Position of one follower in a run."""

    seq: int = 0
    streamed: dict[str, int] = field(default_factory=dict)  # characters already yielded of each unfinished statement
    orphan_polls: int = 0

    def iter_new(self, entries: Sequence[Entry], live: Mapping[str, str]) -> Iterator[Entry]:
        """Yield the stored events, then the new text of unfinished statements."""
        for entry in entries:
            self.seq = entry.seq
            if isinstance(entry.event, (ev.Stated, ev.WasAbsent, ev.Faulted, ev.Attempted)):
                self.streamed.pop(entry.event.key, None)
            yield entry
        for key, text in live.items():
            had = self.streamed.get(key, 0)
            if len(text) > had:
                self.streamed[key] = len(text)
                yield Entry(0, time.time(), ev.Delta(key, key.rpartition("/")[2], text[had:]))

    def is_orphan(self, owned: bool, status: str) -> bool:
        """Return whether a started run has had no owner for too many polls."""
        self.orphan_polls = 0 if owned or status == "queued" else self.orphan_polls + 1
        return self.orphan_polls > MAX_ORPHAN_POLLS
