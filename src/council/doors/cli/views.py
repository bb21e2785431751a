"""Views of a running council: JSON lines, nothing, and a guard for closed pipes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from council import events as ev
from council.events import Entry


class View(Protocol):
    """A display of events while a run is active."""

    def catch_up(self, entries: Iterable[Entry]) -> None: ...
    def hear(self, entry: Entry) -> None: ...
    def tick(self, now: float) -> None: ...
    def aside(self) -> AbstractContextManager[None]:
        """Suspend the view while something else uses the terminal."""
        ...

    def close(self) -> None: ...


class NoView:
    """A view that shows nothing."""

    def catch_up(self, entries: Iterable[Entry]) -> None:
        pass

    def hear(self, entry: Entry) -> None:
        pass

    def tick(self, now: float) -> None:
        pass

    def aside(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        pass


class Lines(NoView):
    """Print every event as one JSON object per line (--jsonl)."""

    def hear(self, entry: Entry) -> None:
        sys.stdout.write(json.dumps(entry.as_json(), ensure_ascii=False) + "\n")
        sys.stdout.flush()


@dataclass(slots=True)
class Guarded:
    """A view that survives a closed pipe: it stops printing and calls `gone`, and the run continues."""

    view: View
    gone: Callable[[], None]
    run: str = ""  # id of the shown run, once known

    def catch_up(self, entries: Iterable[Entry]) -> None:
        known = list(entries)
        self._note(known[0].event if known else None)
        self._show(lambda: self.view.catch_up(known))

    def hear(self, entry: Entry) -> None:
        self._note(entry.event)
        self._show(lambda: self.view.hear(entry))

    def tick(self, now: float) -> None:
        self._show(lambda: self.view.tick(now))

    def aside(self) -> AbstractContextManager[None]:
        return self.view.aside()

    def close(self) -> None:
        self._show(self.view.close)

    def _note(self, event: ev.Event | None) -> None:
        if isinstance(event, ev.Convened):
            self.run = event.run

    def _show(self, act: Callable[[], None]) -> None:
        try:
            act()
        except BrokenPipeError:
            self.view = NoView()
            self.gone()
