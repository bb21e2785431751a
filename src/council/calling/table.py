"""The one retry table: what each kind of fault is worth, and what the seat is called afterwards."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    retries: int
    state: str  # the seat's state when the retries are used up
    waits: bool = True  # whether to back off before the next attempt


TABLE = {
    "net": Row(4, "failed(net)"),
    "rate": Row(6, "failed(rate)"),
    "quota": Row(0, "failed(quota)"),
    "overload": Row(6, "failed(overload)"),
    "server": Row(2, "failed(server)"),
    "cut": Row(1, "in_doubt", waits=False),
    "doubt": Row(0, "in_doubt"),  # a request from before a crash that may not be sent again
    "stall": Row(1, "timed_out", waits=False),
    "empty": Row(1, "degenerate", waits=False),
    "length": Row(1, "truncated", waits=False),
    "refused": Row(0, "refused"),
    "schema": Row(1, "failed(schema)", waits=False),
    "size": Row(0, "failed(size)"),
    "model": Row(0, "failed(model)"),
    "auth": Row(0, "failed(auth)"),
    "endpoint": Row(0, "failed(endpoint)"),  # something answers there, but no model does
    "parameter": Row(1, "failed(parameter)", waits=False),
    "script": Row(0, "failed(script)"),
}
