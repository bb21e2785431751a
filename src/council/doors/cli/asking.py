"""Cost confirmation at a terminal, when the estimate is above `confirm_above`."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from council.money import shown
from council.types import Json


def agreed(plan: Json, budget: Mapping[str, Any], *, ask: bool) -> bool:
    """Return whether to start the run. Off a terminal, do not ask: only the cap applies."""
    why = dear(plan, budget.get("confirm_above"))
    if not (why and ask and sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    with _interruptible():
        return click.confirm(f"{why} Continue?", default=False, err=True)


def dear(plan: Json, limit: float | None) -> str:
    """Return the reason to ask for confirmation, or "". An unknown price always needs one."""
    if limit is None:
        return ""
    if plan["unpriced"]:
        return f"No price for {', '.join(plan['unpriced'])} (confirm_above is {shown(limit)})."
    cost = plan["cost"] or {"expected": 0.0, "worst": 0.0}
    if cost["expected"] <= limit:
        return ""
    return f"Estimated {shown(cost['expected'])} (at most {shown(cost['worst'])})."


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the prompt; the event loop's handler would wait for an answer."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
