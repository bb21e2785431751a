"""Notes: what the chair says about the drafts in the block `council-notes` at the end of a free-text answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from council.answer_text import says_none
from council.engine.json_text import clean_text, find_json
from council.text_cleanup import replace_labels, single_line, split_notes
from council.types import Json, Seat

MAX_NOTES = 20  # items of a list
MAX_NOTE_CHARS = 400
Names = Mapping[str, str]  # a name that the chair may use, in lower case → the seat


def seat_names(seats: Iterable[Seat]) -> Names:
    """Return the names under which a chair may refer to these seats: their names and their titles."""
    names = [(key.lower(), seat.name) for seat in seats for key in (seat.name, seat.role)]
    return {key: name for key, name in names if key}


def response_names(seats_by_label: Mapping[str, str]) -> Names:
    """Return the names under which a chair may refer to anonymous responses: `A`, `Response A`."""
    return {key.lower(): name for label, name in seats_by_label.items() for key in (label, f"Response {label}")}


def parse_notes(text: str, names: Names, labels: Mapping[str, str] | None = None) -> Json | None:
    """Return the notes in the last block of an answer, or None if there is none or it is not a JSON object.

    Unknown keys and seats are dropped. Anonymous labels in the texts are replaced with the names of their seats.
    """
    blocks = split_notes(text)[1]
    raw = _load_object(blocks[-1]) if blocks else None
    if raw is None:
        return None
    reader = NotesReader(names, labels or {})
    return {
        "agreed": [text for item in _as_list(raw.get("agreed")) if not says_none(text := reader.read_text(item))],
        "contested": [
            point
            for item in _as_list(raw.get("contested"))
            if (point := reader.read_contested(item)) and not says_none(point["point"])
        ],
        "unique": reader.read_points(raw.get("unique")),
        "taken_from": reader.read_points(raw.get("taken_from")),
        "closest_draft": next(iter(reader.read_seats(raw.get("closest_draft"))), None),
        "recommendation_shared_by": reader.read_shared(raw.get("recommendation_shared_by")),
        "joined": reader.read_seats(raw.get("joined")),
    }


def _load_object(text: str) -> Json | None:
    """Return the only JSON object of a text, or None."""
    objects = [value for value in find_json(clean_text(text))[0] if isinstance(value, dict)]
    return objects[0] if len(objects) == 1 else None


def _as_list(value: Any) -> list[Any]:
    items = value if isinstance(value, list) else [value] if value else []
    return items[:MAX_NOTES]


class NotesReader(NamedTuple):
    """Reads the values of a block of notes, and drops what cannot be read."""

    names: Names
    labels: Mapping[str, str]  # label of an anonymous response → its seat

    def read_text(self, value: Any) -> str:
        if isinstance(value, dict):
            value = value.get("point") or value.get("text")
        return single_line(replace_labels(value, self.labels), MAX_NOTE_CHARS) if isinstance(value, str) else ""

    def read_seats(self, value: Any) -> list[str]:
        """Return the known seats that a value names: a name, a name with a title, several names in one text, or a list."""
        if isinstance(value, list):
            return list(dict.fromkeys(seat for item in value for seat in self.read_seats(item)))
        if not isinstance(value, str):
            return []
        bare = re.sub(r"\([^)]*\)", "", value).lower()
        whole = [bare, *re.split(r"[,;/&]|\band\b", bare)]
        found = [self.names.get(re.sub(r"^\W+|\W+$|^(?:the|seat)\s+", "", name)) for name in whole]
        return list(dict.fromkeys(seat for seat in found if seat))

    def read_shared(self, value: Any) -> list[str] | None:
        """Return the seats, or None if the value does not say which."""
        seats = self.read_seats(value)
        return seats if seats or value == [] else None

    def read_points(self, value: Any) -> list[Json]:
        rows = [
            (seat, self.read_text(item.get("point")))
            for item in _as_list(value)
            if isinstance(item, dict)
            for seat in self.read_seats(item.get("seat"))[:1]
        ]
        return [{"seat": seat, "point": point} for seat, point in rows if point]

    def read_contested(self, value: Any) -> Json | None:
        point = self.read_text(value)
        sides = _as_list(value.get("sides")) if isinstance(value, dict) else []
        rows = [
            {"seat": seat, **{key: self.read_text(side.get(key)) for key in ("position", "assumes")}}
            for side in sides
            if isinstance(side, dict)
            for seat in self.read_seats(side.get("seat"))
        ]
        return {"point": point, "sides": rows} if point else None
