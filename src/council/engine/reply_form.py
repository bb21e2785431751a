"""Form of a typed reply: rename fields, convert values and match names, so that a value fits the shape of a reply.

Only the form changes. A value that can mean two things stays as it is, and the reply gets a repair turn.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from council.answer_text import is_placeholder
from council.text_cleanup import squash
from council.types import Json

Choices = Mapping[str, Collection[str]]  # field name → allowed values in this request
NO_TITLES: Mapping[str, str] = MappingProxyType({})
YES_NO = {"yes": True, "true": True, "y": True, "t": True, "no": False, "false": False, "n": False, "f": False}
PUNCTUATION_CHARS = " \t\r\n*_`\"'#.,:;!<>«»“”‘’"  # around a name
LIST_MARKER = re.compile(r"^(?:[-*•]|\(?\d{1,2}[.)])\s+")  # models often write it into the items


class FormReader:
    """Changes the form of a value, never its meaning, so that it fits the shape of a reply."""

    def __init__(self, choices: Choices, titles: Mapping[str, str]) -> None:
        self.choices, self.titles = choices, titles
        self.unknown: list[tuple[str, Any, str]] = []  # values of plain fields that are not among their choices

    def read(self, value: Any, shape: Json, name: str = "", place: str = "") -> Any:
        if "anyOf" in shape:
            return self._read_optional(value, shape, name, place)
        kind = shape.get("type")
        if kind == "object" and isinstance(value, dict):
            return self._read_fields(value, shape.get("properties", {}), place)
        if kind == "array":
            return self._read_list(value, shape, name, place)
        if kind == "boolean" and isinstance(value, str):
            return YES_NO.get(value.strip(PUNCTUATION_CHARS).casefold(), value)
        if kind == "string" or name in self.choices:
            return self._read_string(value, shape, name, place)
        return value

    def _read_optional(self, value: Any, shape: Json, name: str, place: str) -> Any:
        branches = [one for one in shape["anyOf"] if one.get("type") != "null"]
        if value is None or len(branches) != 1:
            return value
        if isinstance(value, str) and is_placeholder(value) and branches[0].get("type") != "string":
            return None
        return self.read(value, branches[0], name, place)

    def _read_fields(self, value: Json, properties: Json, place: str) -> Json:
        """Rename fields whose name is written in another way; unknown ones stay."""
        names = {squash(name): name for name in properties}
        found: Json = {}
        for key, item in value.items():
            name = key if key in properties else names.get(squash(key), key)
            if name == key or name not in value:
                found.setdefault(name, item)
        return {
            name: self.read(item, properties[name], name, f"{place}.{name}".lstrip(".")) if name in properties else item
            for name, item in found.items()
        }

    def _read_list(self, value: Any, shape: Json, name: str, place: str) -> Any:
        items = shape.get("items", {})
        choice = shape.get("each") or name
        rows = self._make_rows(value, items, str(shape.get("each")))
        if not isinstance(rows, list):
            return value
        if items.get("type") == "string" and choice in self.choices:
            return [self._match(item, choice) or item for item in self._split_names(rows, choice)]
        return [self.read(item, items, "", f"{place}.{n}") for n, item in enumerate(rows)]

    def _split_names(self, rows: list[Any], choice: str) -> list[Any]:
        """Split names that were written in one text: "B > A > C"."""
        if len(rows) != 1 or not isinstance(rows[0], str):
            return rows
        names = [part for part in re.split(r"\s*[>,;→\n]\s*", rows[0].strip()) if part]
        return names if len(names) > 1 and all(self._match(name, choice) for name in names) else rows

    def _make_rows(self, value: Any, items: Json, each: str) -> Any:
        kind = items.get("type")
        if value is None or (isinstance(value, str) and kind in ("string", "object") and is_placeholder(value)):
            return []
        if isinstance(value, str) and kind == "string":
            return _split_lines(value)
        if isinstance(value, dict) and kind == "object":
            fields = items.get("properties", {})
            if value.keys() & fields.keys():
                return [value]
            names = [self._match(key, each) for key in value]
            if all(names) and all(isinstance(row, dict) for row in value.values()):  # rows under their names
                return [{each: name, **row} for name, row in zip(names, value.values(), strict=True)]
        if isinstance(value, list) and kind == "object":
            return [item for item in value if not (isinstance(item, str) and is_placeholder(item))]
        return value

    def _read_string(self, value: Any, shape: Json, name: str, place: str) -> Any:
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value) and "enum" not in shape:
            value = value[0] if len(value) == 1 else value if name in self.choices else "\n".join(value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and "enum" not in shape:
            value = str(value)
        if name not in self.choices:
            return value
        if value is None and "" in self.choices[name]:
            return ""
        if (known := self._match(value, name)) is not None:
            return known
        if "enum" not in shape and value is not None:
            self.unknown.append((place, value, name))
        return value

    def _match(self, value: Any, name: str) -> str | None:
        allowed = self.choices.get(name, ())
        return match_choice(value, allowed, self.titles) if isinstance(value, str) else None


def _split_lines(text: str) -> list[str]:
    """Return the items of a list that was written as one text."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    marked = [LIST_MARKER.match(line) for line in lines]
    return [LIST_MARKER.sub("", line) for line in lines] if all(marked) else [text]


# Choices

_NOISE_WORDS = {
    "seat", "the", "member", "advisor", "adviser", "judge", "draft", "drafts", "response", "answer", "option", "issue",
    "point", "attack", "topic", "claim", "label", "candidate", "position", "leader", "id", "by", "from", "of", "expert",
    "version", "role", "number",
}  # fmt: skip
_TAIL = re.compile(r"\s*[:;(\[–—|]|\s+-\s|,\s|[.]\s|'s\b|’s\b")


def match_choice(value: str, allowed: Collection[str], titles: Mapping[str, str] = NO_TITLES) -> str | None:
    """Return the allowed value that a text names, also with a title or other words around it; None if it names no single one."""
    if value in allowed:
        return value
    plain = {_plain(one): one for one in allowed}
    plain |= {_plain(title): name for title, name in titles.items() if name in allowed and _plain(title) not in plain}
    if (whole := plain.get(_plain(value))) is not None:
        return whole
    text = value.strip(PUNCTUATION_CHARS)
    head = _TAIL.split(text, maxsplit=1)[0]
    found = _match_words(head, plain)
    if found is None and re.fullmatch(r"[\w ]{1,20}[:#]\s*.*", text):  # "Leader: alpha"
        label, _, rest = text.replace("#", ":", 1).partition(":")
        if all(word in _NOISE_WORDS for word in label.casefold().split()):
            return match_choice(rest, allowed, titles)
    others = {one for one in allowed if one and one != found}
    rest = text[len(head) :]
    return None if found is None or any(_contains(rest, one) for one in others) else found


def _match_words(text: str, plain: Mapping[str, str]) -> str | None:
    """Match a text without the words that only say what it names: "the seat alpha", "Response B"."""
    words = text.split()
    while words:
        if (found := plain.get(_plain(" ".join(words)))) is not None:
            return found
        if words[0].casefold().strip(PUNCTUATION_CHARS) in _NOISE_WORDS:
            words.pop(0)
        elif words[-1].casefold().strip(PUNCTUATION_CHARS) in _NOISE_WORDS:
            words.pop()
        else:
            return None
    return None


def _plain(text: str) -> str:
    return re.sub(r"[\s_./#-]+", "-", text.casefold().strip(PUNCTUATION_CHARS)).strip("-")


def _contains(text: str, value: str) -> bool:
    flags = re.NOFLAG if len(value) < 3 else re.IGNORECASE  # "a" is a word, "A" a label
    return re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", text, flags) is not None
