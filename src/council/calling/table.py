"""The one retry table: what each kind of fault is worth, and what the seat is called afterwards.

Which of them cannot have been paid for stands in money.py, where reports look it up too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    retries: int
    state: str  # the seat's state when the retries are used up
    waits: bool = True  # whether to back off before the next attempt
    change: str = ""  # what the next attempt has changed: a name in calling/changes.py
    vendors: bool = False  # it says something of the vendor, not of what was asked
    slows: bool = False  # it asks for fewer calls at once


TABLE = {
    "net": Row(4, "failed(net)", vendors=True),
    "rate": Row(6, "failed(rate)", vendors=True, slows=True),
    "quota": Row(0, "failed(quota)", vendors=True),
    "overload": Row(6, "failed(overload)", vendors=True),
    "server": Row(2, "failed(server)", vendors=True),
    "cut": Row(1, "in_doubt", waits=False, vendors=True),
    "doubt": Row(0, "in_doubt"),  # a request from before a crash that may not be sent again
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
    "endpoint": Row(0, "failed(endpoint)", vendors=True),  # something answers there, but no model does
    "parameter": Row(1, "failed(parameter)", waits=False, change="bare"),
    "script": Row(0, "failed(script)"),
    # A command-line agent that failed as a program. Silence costs its clock, so it is waited for once.
    **{
        f"cli:{why}": Row(1, f"failed(cli:{why})", waits=False) for why in ("start", "exit", "error", "output", "flood")
    },
    "cli:silent": Row(0, "failed(cli:silent)"),
}
CHAIR = 2  # nobody speaks in the chair's place: what is worth one retry is worth two


def retries(kind: str, *, chair: bool = False) -> int:
    """How often a fault is met with another attempt. Silence costs its clock once, also the chair's."""
    worth = TABLE[kind].retries
    return max(worth, CHAIR) if chair and worth and kind != "stall" else worth
