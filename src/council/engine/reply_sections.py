"""Typed replies that were written as sections of Markdown instead of JSON: headings with the names of fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from council.engine.reply_form import LIST_MARKER, rename_fields
from council.types import JsonSchema

MIN_SECTIONS = 2  # with the names of fields; one heading alone can be part of a text

_HEADING = re.compile(r"[ \t]{0,3}(?:#{1,6}[ \t]+(?P<marked>.+?)|[*_]{2}(?P<bold>[^*_\n]{1,60}?)[*_]{2})[ \t]*:?[ \t]*")
_LABELLED_LINE = re.compile(r"[ \t]*(?:[-*][ \t]+)?[*_]{2}(?P<label>[^*_:\n]{1,40}):?[*_]{2}:?[ \t]*(?P<text>\S.*)")


def read_sections(text: str, shape: JsonSchema) -> dict[str, list[str] | str]:
    """Return the sections of a text by the names of the fields of a reply; empty if there are too few."""
    fields = shape.get("properties", {})
    found = {name: _read_body(lines) for name, lines in _split_sections(text, fields)}
    return found if len(found) >= MIN_SECTIONS else {}


def _split_sections(text: str, fields: Mapping[str, JsonSchema]) -> Iterator[tuple[str, list[str]]]:
    """Yield each field with the lines of its section. Headings that name no field are part of a section."""
    name, lines = "", list[str]()
    for line in text.splitlines():
        heading, labelled = _HEADING.fullmatch(line), _LABELLED_LINE.fullmatch(line)
        if heading and (found := _find_field(heading["marked"] or heading["bold"], fields)):
            if name:
                yield name, lines
            name, lines = found, []
        elif labelled and name and (found := _find_field(labelled["label"], fields)) and found != name:
            yield found, [labelled["text"]]
        else:
            lines.append(line)
    if name:
        yield name, lines


def _find_field(title: str, fields: Mapping[str, JsonSchema]) -> str:
    """Return the field that a title names, or an empty string."""
    return next(iter(rename_fields({title.strip(" *_:"): ""}, fields).keys() & fields.keys()), "")


def _read_body(lines: list[str]) -> list[str] | str:
    """Return the items of a list, or the text."""
    filled = [line for line in lines if line.strip()]
    if filled and all(LIST_MARKER.match(line.strip()) for line in filled):
        return [LIST_MARKER.sub("", line.strip()) for line in filled]
    return "\n".join(lines).strip()
