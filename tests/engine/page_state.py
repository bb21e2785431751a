"""The minutes of a run as a page has them: one object, changed by patches."""

from __future__ import annotations

from council.engine.minutes import Minutes
from council.engine.patches import list_records
from council.types import Json


def merge(target: Json, patch: Json) -> Json:
    """Apply a JSON merge patch (RFC 7396)."""
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = merge(target.get(name, {}), value) if isinstance(value, dict) else value
    return target


def build(minutes: Minutes) -> Json:
    """Return the records of the minutes as one object."""
    state: Json = {}
    for place, record in list_records(minutes):
        inner = state
        for name in place:
            inner = inner.setdefault(name, {})
        inner |= record
    return state
