"""Views of a run on the command line, the signals and the replay that drive them, and text on standard output and
error.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn, Protocol, TextIO

from council import events as ev
from council.events import Entry
from council.render.markdown import TextPart
from council.render.plain import build_replay
from council.render.text_layout import (
    count_rows,
    fit_lines,
    is_drawable,
    needs_ascii,
    terminal_size,
    text_width,
    to_ascii,
)
from council.runs.outcome import StopEvent
from council.text_cleanup import neutralize_commands

BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"
GONE = (errno.EPIPE, errno.EIO, errno.EBADF)  # the reader or the terminal is gone


class View(Protocol):
    """A display of events while a run is active."""

    def catch_up(self, entries: Sequence[Entry]) -> None: ...
    def on_event(self, entry: Entry) -> None: ...
    def tick(self, now: float) -> None: ...
    def suspend(self) -> AbstractContextManager[None]:
        """Suspend the view while something else uses the terminal."""

    def show_stopping(self) -> None:
        """Show that the run is being stopped."""

    def close(self) -> None: ...


class NoView:
    """A view that shows nothing."""

    def catch_up(self, entries: Sequence[Entry]) -> None:
        pass

    def on_event(self, entry: Entry) -> None:
        pass

    def tick(self, now: float) -> None:
        pass

    def suspend(self) -> AbstractContextManager[None]:
        return nullcontext()

    def show_stopping(self) -> None:
        pass

    def close(self) -> None:
        pass


class JsonlView(NoView):
    """Print every event as one JSON object per line (--jsonl)."""

    def on_event(self, entry: Entry) -> None:
        sys.stdout.write(neutralize_commands(json.dumps(entry.as_json(), ensure_ascii=False), "json") + "\n")
        sys.stdout.flush()


class TerminalKeyboard:
    """The echo of typed keys. It is off while the view is drawn, because it would break its lines.

    The keys stay in the input, for the next prompt or program. Ctrl-C keeps them too: a terminal that discards them
    also discards a part of what was just drawn.
    """

    def __init__(self, handle: int | None) -> None:
        self._handle = handle  # None: the view is not drawn, so that typing stays shown
        self._shown_mode: int | None = None  # the local modes while typing was shown, if it is hidden now

    def hide_typing(self) -> None:
        if self._handle is None:
            return
        with suppress(termios.error):
            local_mode = termios.tcgetattr(self._handle)[3]
            if local_mode & termios.ECHO and _is_foreground(self._handle):
                _set_mode(self._handle, (local_mode & ~(termios.ECHO | termios.ECHONL)) | termios.NOFLSH)
                self._shown_mode = local_mode

    def show_typing(self) -> None:
        if self._handle is None or self._shown_mode is None or not _is_foreground(self._handle):
            return
        with suppress(termios.error):
            _set_mode(self._handle, self._shown_mode)
        self._shown_mode = None


def _is_foreground(handle: int) -> bool:
    """Return whether this process may change the terminal: a background process would be stopped."""
    try:
        return os.tcgetpgrp(handle) == os.getpgrp()
    except OSError:
        return False


def _set_mode(handle: int, local_mode: int) -> None:
    modes = termios.tcgetattr(handle)
    modes[3] = local_mode
    termios.tcsetattr(handle, termios.TCSANOW, modes)


@dataclass(slots=True)
class PipeSafeView:
    """A view that survives a closed pipe or terminal: it stops printing and calls `on_broken_pipe`, and the run
    continues.
    """

    view: View
    on_broken_pipe: Callable[[], None]
    keyboard: TerminalKeyboard
    run: str = ""  # id of the shown run, once known

    def __post_init__(self) -> None:
        self.keyboard.hide_typing()

    def catch_up(self, entries: Sequence[Entry]) -> None:
        self._remember_run(entries[0].event)
        self._guard(lambda: self.view.catch_up(entries))

    def on_event(self, entry: Entry) -> None:
        self._remember_run(entry.event)
        self._guard(lambda: self.view.on_event(entry))

    def tick(self, now: float) -> None:
        self._guard(lambda: self.view.tick(now))

    @contextmanager
    def suspend(self) -> Iterator[None]:
        self.keyboard.show_typing()
        try:
            with self.view.suspend():
                yield
        finally:
            self.keyboard.hide_typing()

    def show_stopping(self) -> None:
        self._guard(self.view.show_stopping)

    def close(self) -> None:
        self._guard(self.view.close)
        self.keyboard.show_typing()

    def _remember_run(self, event: ev.Event) -> None:
        if isinstance(event, ev.Convened):
            self.run = event.run

    def _guard(self, act: Callable[[], None]) -> None:
        try:
            act()
        except OSError as error:
            if error.errno not in GONE:
                raise
            self.view = NoView()
            self.on_broken_pipe()


# While a run is shown

TICK_S = 0.1
MAX_REPLAY_GAP_S = 5.0  # longest pause in a replay


async def tick_view(view: View) -> None:
    while True:
        await asyncio.sleep(TICK_S)
        view.tick(time.time())


@contextmanager
def handle_signals(
    stop: StopEvent, view: PipeSafeView, exit_at_once: Callable[[PipeSafeView], NoReturn]
) -> Iterator[None]:
    """Stop the run on the first Ctrl-C and exit on the second; release the terminal on Ctrl-Z.

    The ledger is always kept.
    """
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            exit_at_once(view)
        stop.set()
        view.show_stopping()

    def on_suspend() -> None:
        loop.remove_signal_handler(signal.SIGTSTP)
        with view.suspend():
            os.kill(os.getpid(), signal.SIGTSTP)  # stops here until the shell continues the process
        loop.add_signal_handler(signal.SIGTSTP, on_suspend)

    handlers = dict.fromkeys((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), on_signal) | {signal.SIGTSTP: on_suspend}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


def print_beside(view: View, write: Callable[[list[str]], None]) -> Callable[[str], None]:
    """Return a function that prints a message while the view is suspended; another thread may call it."""
    loop = asyncio.get_running_loop()

    def show(message: str) -> None:
        with view.suspend():
            write([f"council: {message}"])

    def report(message: str) -> None:
        with suppress(RuntimeError):  # the event loop has ended
            loop.call_soon_threadsafe(show, message)

    return report


async def replay_entries(entries: list[Entry], view: View, speed: float) -> None:
    """Show entries at `speed` times their original pace (0: at once). Pauses between processes are skipped."""
    pace = ReplayPace(view, speed)
    for earlier, entry in pairwise([entries[0], *build_replay(entries)]):
        if speed:
            await pace.wait(earlier.at, min(max(0.0, entry.at - earlier.at), MAX_REPLAY_GAP_S))
        view.on_event(entry)
        pace.tick(entry.at)


class ReplayPace:
    """The time of a replay. The view is drawn ten times a second, also during a pause, and drawing delays nothing."""

    def __init__(self, view: View, speed: float) -> None:
        self._view, self._speed = view, speed
        self._due = self._drawn = time.monotonic()

    async def wait(self, start: float, gap: float) -> None:
        """Wait until the next entry is due."""
        self._due += gap / self._speed
        while (left := self._due - time.monotonic()) > 0:
            await asyncio.sleep(min(left, TICK_S))
            passed = gap - max(0.0, self._due - time.monotonic()) * self._speed
            self.tick(start + passed)

    def tick(self, at: float) -> None:
        if not self._speed or time.monotonic() - self._drawn >= TICK_S:
            self._drawn = time.monotonic()
            self._view.tick(at)


# Text


def is_same_file(one: TextIO, other: TextIO) -> bool:
    """Return whether two streams are terminals, or write to the same pipe or file."""
    if one.isatty() and other.isatty():
        return True
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except (OSError, ValueError):  # an object without a file
        return False


def write_status(text: str, *, ascii: bool = False, is_dim: bool = False) -> None:
    """Write lines to standard error, wrapped at their words on a terminal."""
    shown = fit_lines(text, sys.stderr, ascii=ascii)
    if is_dim and is_drawable(sys.stderr):
        shown = "\n".join(f"{DIM}{line}{PLAIN}" if line else "" for line in shown.split("\n"))
    _write(sys.stderr, shown)


def write_lines(text: str, *, ascii: bool = False) -> None:
    """Write lines to standard output, wrapped at their words on a terminal."""
    _write(sys.stdout, fit_lines(text, sys.stdout, ascii=ascii))


def shows_markdown(raw: bool) -> bool:
    """Return whether Markdown on standard output is rendered for a terminal."""
    return not raw and is_drawable(sys.stdout)


def write_parts(parts: Sequence[TextPart], *, raw: bool, ascii: bool = False, color: bool = True) -> None:
    """Write an answer to standard output: rendered for a terminal, else as it is."""
    if not shows_markdown(raw):
        text = join_parts(parts)
        _write(sys.stdout, to_ascii(text) if ascii else text)
        return
    from council.render.terminal_markdown import render_parts

    is_ascii = ascii or needs_ascii(sys.stdout)
    _write(sys.stdout, render_parts(parts, width=terminal_size(sys.stdout)[0], ascii=is_ascii, color=color))


def write_document(parts: Iterable[str], *, ascii: bool = False) -> None:
    """Write a document to standard output as it is, part by part: a large one is never in memory as a whole."""
    for part in parts:
        sys.stdout.write(to_ascii(part) if ascii else part)
    sys.stdout.flush()


def write_commands(text: str) -> None:
    """Write the commands of a CI format to standard output, which neutralizes all other text in a CI job."""
    getattr(sys.stdout, "write_commands", sys.stdout.write)(text)
    sys.stdout.flush()


def join_parts(parts: Sequence[TextPart]) -> str:
    """Return the parts as one text, with a blank line between them."""
    return "\n\n".join(part.text.strip("\n") for part in parts if part.text.strip("\n"))


def erase_lines(stream: TextIO, lines: Sequence[str]) -> None:
    """Remove the last lines from a terminal, one by one: some terminals keep a cleared screen in their history."""
    rows = count_rows(map(text_width, lines), terminal_size(stream)[0], reflows=True)
    stream.write("\r" + "\x1b[1A\x1b[2K" * rows)
    stream.flush()


def _write(stream: TextIO, text: str) -> None:
    stream.write(text if text.endswith("\n") else f"{text}\n")
    stream.flush()
