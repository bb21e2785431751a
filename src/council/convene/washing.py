"""Redaction of secrets in events before they are stored or shown. Prompts are filtered earlier, in the packet gate."""

from __future__ import annotations

from typing import Any

from council import events as ev
from council.packet import redact_text

EVENTS_WITH_MODEL_TEXT = (
    ev.Stated,
    ev.WasAbsent,
    ev.Faulted,
    ev.Noted,
    ev.LookedUp,
    ev.Closed,
)  # events with text from models or the web


def redact_value(value: Any) -> Any:
    """Mask secrets in every string of a JSON value."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {name: redact_value(item) for name, item in value.items()}
    return [redact_value(item) for item in value] if isinstance(value, (list, tuple)) else value


def redact_event(event: ev.Event) -> ev.Event:
    """Return the event with secrets masked. Views and reports are built from these events only."""
    if not isinstance(event, EVENTS_WITH_MODEL_TEXT):
        return event
    return ev.parse_event(event.type, redact_value(ev.dump_event(event)))
