"""What may be kept and shown: a secret that a member wrote down ends here. Prompts passed the gate before."""

from __future__ import annotations

from typing import Any

from council import events as ev
from council.packet import scrub

FOREIGN = (ev.Stated, ev.WasAbsent, ev.Faulted, ev.Noted, ev.LookedUp, ev.Closed)  # events that hold what others wrote


def clear_of_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {name: clear_of_secrets(item) for name, item in value.items()}
    return [clear_of_secrets(item) for item in value] if isinstance(value, (list, tuple)) else value


def washed(event: ev.Event) -> ev.Event:
    """Views and reports are made of events, so they are made of these."""
    if not isinstance(event, FOREIGN):
        return event
    return ev.from_payload(event.type, clear_of_secrets(ev.payload(event)))
