"""Views of a run on the command line: JSON lines, no output, and a guard for closed pipes."""

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
    def on_event(self, entry: Entry) -> None: ...
    def tick(self, now: float) -> None: ...
    def suspend(self) -> AbstractContextManager[None]:
        """Suspend the view while something else uses the terminal."""
        ...

    def close(self) -> None: ...


class NoView:
    """A view that shows nothing."""

    def catch_up(self, entries: Iterable[Entry]) -> None:
        pass

    def on_event(self, entry: Entry) -> None:
        pass

    def tick(self, now: float) -> None:
        pass

    def suspend(self) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        pass


class JsonlView(NoView):
    """Print every event as one JSON object per line (--jsonl)."""

    def on_event(self, entry: Entry) -> None:
        sys.stdout.write(json.dumps(entry.as_json(), ensure_ascii=False) + "\n")
        sys.stdout.flush()


@dataclass(slots=True)
class PipeSafeView:
    """A view that survives a closed pipe: it stops printing and calls `gone`, and the run continues."""

    view: View
    on_broken_pipe: Callable[[], None]
    run: str = ""  # id of the shown run, once known

    def catch_up(self, entries: Iterable[Entry]) -> None:
        known = list(entries)
        self._remember_run(known[0].event if known else None)
        self._guard(lambda: self.view.catch_up(known))

    def on_event(self, entry: Entry) -> None:
        self._remember_run(entry.event)
        self._guard(lambda: self.view.on_event(entry))

    def tick(self, now: float) -> None:
        self._guard(lambda: self.view.tick(now))

    def suspend(self) -> AbstractContextManager[None]:
        return self.view.suspend()

    def close(self) -> None:
        self._guard(self.view.close)

    def _remember_run(self, event: ev.Event | None) -> None:
        if isinstance(event, ev.Convened):
            self.run = event.run

    def _guard(self, act: Callable[[], None]) -> None:
        try:
            act()
        except BrokenPipeError:
            self.view = NoView()
            self.on_broken_pipe()
