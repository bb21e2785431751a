"""Events of seats that work at the same time, in any order of arrival."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from council.engine.minutes import Minutes
from council.engine.patches import PatchFold
from council.events import Entry, parse_event

Json = dict[str, Any]
PLAN: Json = {
    "seats": [
        {"name": name, "role": "", "perspective": "", "model": "", "vendor": ""} for name in ("alpha", "beta", "gamma")
    ],
    "chair": {"name": "chair", "role": "", "perspective": "", "model": "", "vendor": ""},
}
SEATED: Json = {"type": "convened", "run": "r2345", "name": "a run", "plan": PLAN, "folder": ""}


def ask(phase: str, seat: str, *, is_absent: bool = False) -> list[Json]:
    """Return the events of one step, in order."""
    of_step = {"key": f"{phase}/{seat}", "phase": phase, "seat": seat}
    asked = {"type": "asked", **of_step, "member": "m"}
    if is_absent:
        return [asked, {"type": "absence", **of_step, "state": "refused", "reason": "no"}]
    stated = {"type": "statement", **of_step, "state": "ok", "said": "Yes.", "reply": None, "served_by": "m"}
    return [asked, stated | {"usage": {"in": 1, "out": 1}, "attempts": 1, "seconds": 1.0}]


def list_steps() -> list[list[list[Json]]]:
    """Return the groups of a run that follow one another; each has the events of seats that work at the same time."""
    seats = [
        [
            *[{"type": "phase", "phase": "draft/alpha/look-1"}, *ask("draft/alpha/look-1", "alpha")],
            *[{"type": "phase", "phase": "draft/alpha/look-2"}, *ask("draft/alpha/look-2", "alpha")],
            *ask("draft", "alpha"),
        ],
        [
            {"type": "phase", "phase": "draft/beta/look-1"},
            *ask("draft/beta/look-1", "beta", is_absent=True),
            *ask("draft", "beta", is_absent=True),
        ],
        ask("draft", "gamma"),
        [{"type": "phase", "phase": "draft/gamma/explore"}, *ask("draft/gamma/explore", "gamma-explorer-10")],
        [{"type": "phase", "phase": "draft/gamma/explore"}, *ask("draft/gamma/explore", "gamma-explorer-2")],
    ]
    return [
        [[SEATED, {"type": "phase", "phase": "draft"}]],
        seats,
        [[{"type": "phase", "phase": "merge"}, *ask("merge", "chair")]],
    ]


def merge_randomly(groups: Sequence[Sequence[Sequence[Json]]], chance: random.Random) -> list[Json]:
    """Return all events: each seat's in their order, those of different seats mixed."""
    merged = []
    for group in groups:
        left = [list(events) for events in group]
        while left := [events for events in left if events]:
            merged.append(chance.choice(left).pop(0))
    return merged


def number(events: Sequence[Json]) -> list[Json]:
    """Return the events with numbers and times, as the store has them."""
    return [{"seq": n, "at": float(n), **event} for n, event in enumerate(events, 1)]


def parse_entries(events: Sequence[Json]) -> list[Entry]:
    """Return the entries of numbered events."""
    entries = []
    for event in events:
        fields = {name: value for name, value in event.items() if name not in ("seq", "at", "type")}
        entries.append(Entry(event["seq"], event["at"], parse_event(event["type"], fields)))
    return entries


def add_patches(entries: Sequence[Entry]) -> list[Json]:
    """Return the events as the page gets them."""
    fold = PatchFold()
    return [entry.as_json() | {"patch": fold.apply(entry)} for entry in entries]


def fold(events: Sequence[Json]) -> Minutes:
    return Minutes.fold(parse_entries(number(events)))
