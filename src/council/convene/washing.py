"""Redaction of secrets in events before they are stored or shown. Prompts are filtered earlier, in the packet gate."""

from __future__ import annotations

from typing import Any

from council import events as ev
from council.packet import scrub

FOREIGN = (
    ev.Stated,
    ev.WasAbsent,
    ev.Faulted,
    ev.Noted,
    ev.LookedUp,
    ev.Closed,
)  # events with text from models or the web


def clear_of_secrets(value: Any) -> Any:
    """Mask secrets in every string of a JSON value."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {name: clear_of_secrets(item) for name, item in value.items()}
    return [clear_of_secrets(item) for item in value] if isinstance(value, (list, tuple)) else value


def washed(event: ev.Event) -> ev.Event:
    """Return the event with secrets masked. Views and reports are built from these events only."""
    if not isinstance(event, FOREIGN):
        return event
    return ev.from_payload(event.type, clear_of_secrets(ev.payload(event)))
