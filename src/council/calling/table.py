"""Fault table: retries, request change and final seat state for each kind of fault.

money.py lists the kinds that are never billed, because reports use that list too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FaultPolicy:
    """Policy for one kind of fault."""

    retries: int
    state: str  # seat state when the retries are used up
    backs_off: bool = True  # whether to back off before the next attempt
    change: str = ""  # how the next request differs: a name in calling/changes.py
    is_vendor_wide: bool = False  # it concerns the vendor, not the request
    reduces_concurrency: bool = False  # it reduces the concurrency limit


FAULT_TABLE = {
    "net": FaultPolicy(4, "failed(net)", is_vendor_wide=True),
    "rate": FaultPolicy(6, "failed(rate)", is_vendor_wide=True, reduces_concurrency=True),
    "quota": FaultPolicy(0, "failed(quota)", is_vendor_wide=True),
    "overload": FaultPolicy(6, "failed(overload)", is_vendor_wide=True),
    "server": FaultPolicy(2, "failed(server)", is_vendor_wide=True),
    "cut": FaultPolicy(1, "in_doubt", backs_off=False, is_vendor_wide=True),
    "doubt": FaultPolicy(0, "in_doubt"),  # a request from before a crash, with --no-resend
    "stall": FaultPolicy(1, "timed_out", backs_off=False, is_vendor_wide=True),
    "empty": FaultPolicy(1, "degenerate", backs_off=False, change="warmer"),
    "loop": FaultPolicy(1, "degenerate", backs_off=False, change="warmer"),
    "stub": FaultPolicy(1, "degenerate", backs_off=False, change="warmer"),
    "length": FaultPolicy(1, "truncated", backs_off=False, change="doubled"),
    "refused": FaultPolicy(0, "refused"),
    "schema": FaultPolicy(1, "failed(schema)", backs_off=False, change="repaired"),
    "size": FaultPolicy(1, "failed(size)", backs_off=False, change="shrunk"),
    "model": FaultPolicy(0, "failed(model)"),
    "auth": FaultPolicy(0, "failed(auth)", is_vendor_wide=True),
    "endpoint": FaultPolicy(
        0, "failed(endpoint)", is_vendor_wide=True
    ),  # a server answers, but it is not a model endpoint
    "parameter": FaultPolicy(1, "failed(parameter)", backs_off=False, change="bare"),
    "script": FaultPolicy(0, "failed(script)"),
    # Failures of a command-line agent. A silent one uses up its timeout, so it is not retried.
    **{
        f"cli:{why}": FaultPolicy(1, f"failed(cli:{why})", backs_off=False)
        for why in ("start", "exit", "error", "output", "flood")
    },
    "cli:silent": FaultPolicy(0, "failed(cli:silent)"),
}
CHAIR_RETRIES = 2  # the chair cannot be replaced, so it gets at least two retries


def max_retries(kind: str, *, chair: bool = False) -> int:
    """Return the number of retries. A stall uses up the timeout, so the chair gets no extra retry for it."""
    count = FAULT_TABLE[kind].retries
    return max(count, CHAIR_RETRIES) if chair and count and kind != "stall" else count
