"""Following a run that another process works on: what is new since the last look."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from council import events as ev
from council.events import Entry

PATIENCE = 20  # looks at a run without an owner until it is taken for dead


@dataclass(slots=True)
class Seen:
    """How far a follower has come."""

    seq: int = 0
    streamed: dict[str, int] = field(default_factory=dict)  # characters of what streams, by key
    orphaned: int = 0

    def news(self, entries: Sequence[Entry], live: Mapping[str, str]) -> Iterator[Entry]:
        """Events that are kept, and what has been added to statements under way."""
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
        """Whether nobody has worked on a run for a while that somebody had begun."""
        self.orphaned = 0 if owned or status == "queued" else self.orphaned + 1
        return self.orphaned > PATIENCE
