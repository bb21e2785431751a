"""Notification when a run is done: the terminal bell, the terminal's own notification, and the desktop's."""

from __future__ import annotations

import html
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO

from council.engine.minutes import Minutes
from council.settings.config_files import find_command
from council.text_cleanup import single_line

TITLE = "Council"
MAX_QUESTION_CHARS = 80
BELL = "\a"
DESKTOP_TIMEOUT_S = 2.0  # the answer is already printed
PLAIN_TERMINALS = ("", "dumb", "linux")  # TERM of terminals that would print the sequence of a notification
APPLESCRIPT = (
    "on run argv",
    "display notification (item 1 of argv) with title (item 2 of argv)",
    "end run",
)


def notify(minutes: Minutes, env: Mapping[str, str]) -> None:
    """Announce the end of a run. A notification that cannot be shown is no error."""
    text = format_notification(minutes)
    with suppress(OSError, ValueError):
        _notify_terminal(text, env, sys.stderr)
    if command := desktop_command(text, env):
        with suppress(OSError, subprocess.TimeoutExpired):
            quiet: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            subprocess.run(command, timeout=DESKTOP_TIMEOUT_S, check=False, env=dict(env), **quiet)


def format_notification(minutes: Minutes) -> str:
    """Format `complete, SURVIVED: Should we …?`."""
    ruled = minutes.verdict.get("verdict") or minutes.verdict.get("outcome")
    result = f"{minutes.status}, {ruled}" if ruled else minutes.status
    return single_line(f"{result}: {minutes.plan.get('question') or minutes.run}", MAX_QUESTION_CHARS)


def _notify_terminal(text: str, env: Mapping[str, str], terminal: TextIO) -> None:
    """Ring the bell. Terminals that know the sequence OSC 9 also show the text."""
    if not terminal.isatty():
        return
    shown = "" if env.get("TERM", "") in PLAIN_TERMINALS else f"\x1b]9;{TITLE}: {text}{BELL}"
    terminal.write(shown + BELL)
    terminal.flush()


def desktop_command(text: str, env: Mapping[str, str], platform: str = sys.platform) -> Sequence[str]:
    """Return the command that shows a desktop notification; an empty one if there is no desktop."""
    if platform == "darwin":
        script = find_command("osascript", env)
        return [str(script), *(part for line in APPLESCRIPT for part in ("-e", line)), text, TITLE] if script else []
    has_desktop = any(env.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"))
    sender = find_command("notify-send", env) if has_desktop and os.name == "posix" else None
    return [str(sender), f"--app-name={TITLE}", "--", TITLE, html.escape(text, quote=False)] if sender else []
