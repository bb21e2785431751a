"""Cost confirmation at a terminal, when the estimate is above `confirm_above`."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from council.money import format_usd
from council.types import Json


def confirm_cost(plan: Json, budget: Mapping[str, Any], *, may_confirm: bool) -> bool:
    """Return whether to start the run. Off a terminal, do not ask: only the cap applies."""
    why = confirmation_reason(plan, budget.get("confirm_above"))
    if not (why and may_confirm and sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    with _allow_interrupt():
        return click.confirm(f"{why} Continue?", default=False, err=True)


def confirmation_reason(plan: Json, limit: float | None) -> str:
    """Return the reason to ask for confirmation, or "". An unknown price always needs one."""
    if limit is None:
        return ""
    if plan["unpriced"]:
        return f"No price for {', '.join(plan['unpriced'])} (confirm_above is {format_usd(limit)})."
    cost = plan["cost"] or {"expected": 0.0, "worst": 0.0}
    if cost["expected"] <= limit:
        return ""
    return f"Estimated {format_usd(cost['expected'])} (at most {format_usd(cost['worst'])})."


@contextlib.contextmanager
def _allow_interrupt() -> Iterator[None]:
    """Let Ctrl-C end the prompt; the event loop's handler would wait for an answer."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
