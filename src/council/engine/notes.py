"""Notes: what the chair says about the drafts in the block `council-notes` at the end of a free-text answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from council.answer_filter import restore_line_breaks
from council.answer_text import says_none
from council.engine.reply_form import POINT_KEYS, match_choice
from council.notes_filter import load_notes, split_notes
from council.text_cleanup import replace_labels, single_line
from council.types import ChairNotes, ContestedPoint, Json, NotedPoint, NotedSide, Seat

MAX_NOTES = 20  # items of a list
MAX_NOTE_CHARS = 400
Names = Mapping[str, str]  # a name that the chair may use, in lower case → the seat

_SEPARATORS = re.compile(r"[,;/&+\n]|\band\b|\bund\b|\bet\b|\by\b")
_SEAT_AND_POINT = re.compile(r"\s*(?P<seat>[^:–—]{1,60})(?::|\s[–—-]\s)\s*(?P<point>\S.*)", re.DOTALL)
_SIDE_KEYS = {
    "position": ("position", "view", "says", "stance", "claim", "argument"),
    "assumes": ("assumes", "assumption", "assuming"),
}
_SEAT_KEYS = ("seat", "name", "member", "draft", "response", "by", "who", "from", "seats")


def seat_names(seats: Iterable[Seat]) -> Names:
    """Return the names under which a chair may refer to these seats: their names and their titles."""
    names = [(key.lower(), seat.name) for seat in seats for key in (seat.name, seat.role)]
    return {key: name for key, name in names if key}


def response_names(seats_by_label: Mapping[str, str]) -> Names:
    """Return the names under which a chair may refer to anonymous responses: `A`, `Response A`."""
    return {key.lower(): name for label, name in seats_by_label.items() for key in (label, f"Response {label}")}


def parse_notes(text: str, names: Names, labels: Mapping[str, str] | None = None) -> ChairNotes | None:
    """Return the notes in the last block of an answer, or None if there are none or they cannot be read.

    Unknown keys and seats are dropped. Anonymous labels in the texts are replaced with the names of their seats.
    """
    blocks = split_notes(restore_line_breaks(text.strip()))[1]
    raw = load_notes(blocks[-1]) if blocks else None
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


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, dict) and value and all(str(key).isdigit() for key in value):
        value = list(value.values())
    items = value if isinstance(value, list) else [value] if value else []
    return items[:MAX_NOTES]


def _find(value: Json, keys: Iterable[str]) -> Any:
    return next((value[key] for key in keys if value.get(key)), None)


class NotesReader(NamedTuple):
    """Reads the values of a block of notes, and drops what cannot be read."""

    names: Names
    labels: Mapping[str, str]  # label of an anonymous response → its seat

    def read_text(self, value: Any) -> str:
        if isinstance(value, dict):
            value = _find(value, POINT_KEYS)
        return single_line(replace_labels(value, self.labels), MAX_NOTE_CHARS) if isinstance(value, str) else ""

    def read_seats(self, value: Any) -> list[str]:
        """Return the known seats that a value names: one with or without its title, several, or an object of them."""
        if isinstance(value, dict):
            if named := _find(value, _SEAT_KEYS):
                return self.read_seats(named)
            value = [key for key, item in value.items() if item not in (False, None, "", "no", "false")]
        if isinstance(value, list):
            return list(dict.fromkeys(seat for item in value for seat in self.read_seats(item)))
        if not isinstance(value, str):
            return []
        if found := self._match(value):
            return [found]
        parts = _SEPARATORS.split(re.sub(r"\([^)]*\)", "", value.lower()))
        return list(dict.fromkeys(seat for part in parts if (seat := self._match(part))))

    def _match(self, text: str) -> str | None:
        name = text.strip(" \t.:*_`\"'[]").lower()
        return self.names.get(name) or match_choice(text.strip(" []"), set(self.names.values()), self.names)

    def read_shared(self, value: Any) -> list[str] | None:
        """Return the seats, or None if the value does not say which."""
        seats = self.read_seats(value)
        return seats if seats or value == [] else None

    def read_points(self, value: Any) -> list[NotedPoint]:
        """Return rows of seat and point, also of an object with the seats as keys and of texts like `beta: backups`."""
        if isinstance(value, dict) and not _find(value, POINT_KEYS):
            value = [{"seat": seat, "point": one} for seat, point in value.items() for one in _as_list(point)]
        rows = [self._read_point(item) for item in _as_list(value)]
        return [{"seat": seat, "point": point} for seat, point in rows if seat and point]

    def _read_point(self, item: Any) -> tuple[str, str]:
        if isinstance(item, str) and (found := _SEAT_AND_POINT.fullmatch(item)):
            item = found.groupdict()
        if not isinstance(item, dict):
            return "", ""
        if not _find(item, _SEAT_KEYS) and len(item) == 1:  # {"beta": "backups"}
            ((seat, point),) = item.items()
            item = {"seat": seat, "point": point}
        seats = self.read_seats(_find(item, _SEAT_KEYS))
        return (seats[0] if seats else ""), self.read_text(item)

    def read_contested(self, value: Any) -> ContestedPoint | None:
        point = self.read_text(value)
        rows = [row for side in self._list_sides(value) for row in self._read_side(side)]
        return {"point": point, "sides": rows} if point else None

    def _list_sides(self, value: Any) -> list[Any]:
        sides = _find(value, ("sides", "positions", "views")) if isinstance(value, dict) else None
        if isinstance(sides, dict):
            return [
                {"seat": seat, **(side if isinstance(side, dict) else {"position": side})}
                for seat, side in sides.items()
            ]
        return _as_list(sides)

    def _read_side(self, side: Any) -> list[NotedSide]:
        if isinstance(side, str) and (found := _SEAT_AND_POINT.fullmatch(side)):
            side = {"seat": found["seat"], "position": found["point"]}
        if not isinstance(side, dict):
            return []
        position, assumes = (self.read_text(_find(side, _SIDE_KEYS[name])) for name in ("position", "assumes"))
        seats = self.read_seats(_find(side, _SEAT_KEYS))
        return [{"seat": seat, "position": position, "assumes": assumes} for seat in seats]
