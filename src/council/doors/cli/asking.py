"""The question before a dear council: asked at a terminal, when it is expected to cost more than `confirm_above`."""

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
    """Whether to convene. Off a terminal nobody is asked, and the cap alone decides."""
    why = dear(plan, budget.get("confirm_above"))
    if not (why and ask and sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    with _interruptible():
        return click.confirm(f"{why}: convene it?", default=False, err=True)


def dear(plan: Json, limit: float | None) -> str:
    """Why somebody should be asked, or nothing. A price nobody knows may be above any limit."""
    if limit is None:
        return ""
    if plan["unpriced"]:
        return f"nobody knows what {', '.join(plan['unpriced'])} will cost, and confirm_above is {shown(limit)}"
    cost = plan["cost"] or {"expected": 0.0, "worst": 0.0}
    if cost["expected"] <= limit:
        return ""
    return f"this council is expected to cost {shown(cost['expected'])}, at worst {shown(cost['worst'])}; confirm_above is {shown(limit)}"


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """The first Ctrl-C ends the question; the loop's own handler would wait for an answer."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
