"""Fault table: retries, request change and final seat state for each kind of fault.

money.py lists the kinds that are never billed, because reports use that list too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """Policy for one kind of fault."""

    retries: int
    state: str  # seat state when the retries are used up
    waits: bool = True  # whether to back off before the next attempt
    change: str = ""  # how the next request differs: a name in calling/changes.py
    vendors: bool = False  # it concerns the vendor, not the request
    slows: bool = False  # it reduces the concurrency limit


TABLE = {
    "net": Row(4, "failed(net)", vendors=True),
    "rate": Row(6, "failed(rate)", vendors=True, slows=True),
    "quota": Row(0, "failed(quota)", vendors=True),
    "overload": Row(6, "failed(overload)", vendors=True),
    "server": Row(2, "failed(server)", vendors=True),
    "cut": Row(1, "in_doubt", waits=False, vendors=True),
    "doubt": Row(0, "in_doubt"),  # a request from before a crash, with --no-resend
    "stall": Row(1, "timed_out", waits=False, vendors=True),
    "empty": Row(1, "degenerate", waits=False, change="warmer"),
    "loop": Row(1, "degenerate", waits=False, change="warmer"),
    "stub": Row(1, "degenerate", waits=False, change="warmer"),
    "length": Row(1, "truncated", waits=False, change="doubled"),
    "refused": Row(0, "refused"),
    "schema": Row(1, "failed(schema)", waits=False, change="repaired"),
    "size": Row(1, "failed(size)", waits=False, change="shrunk"),
    "model": Row(0, "failed(model)"),
    "auth": Row(0, "failed(auth)", vendors=True),
    "endpoint": Row(0, "failed(endpoint)", vendors=True),  # a server answers, but it is not a model endpoint
    "parameter": Row(1, "failed(parameter)", waits=False, change="bare"),
    "script": Row(0, "failed(script)"),
    # Failures of a command-line agent. A silent one uses up its timeout, so it is not retried.
    **{
        f"cli:{why}": Row(1, f"failed(cli:{why})", waits=False) for why in ("start", "exit", "error", "output", "flood")
    },
    "cli:silent": Row(0, "failed(cli:silent)"),
}
CHAIR = 2  # the chair cannot be replaced, so it gets at least two retries


def retries(kind: str, *, chair: bool = False) -> int:
    """Return the number of retries. A stall uses up the timeout, so the chair gets no extra retry for it."""
    count = TABLE[kind].retries
    return max(count, CHAIR) if chair and count and kind != "stall" else count
