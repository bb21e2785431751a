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
from council.types import Json, JsonSchema

LONGEST_PATH = "longest path"  # among the options of a rehearsal: its replies lead to every optional step
Choices = Mapping[str, Collection[str]]  # field name → allowed values in this request
NO_TITLES: Mapping[str, str] = MappingProxyType({})
YES_NO = {"yes": True, "true": True, "y": True, "t": True, "no": False, "false": False, "n": False, "f": False}
PUNCTUATION_CHARS = " \t\r\n*_`\"'#.,:;!<>«»“”‘’"  # around a name
LIST_MARKER = re.compile(r"^(?:[-*•]|\(?\d{1,2}[.)])\s+")  # models often write it into the items


# Keys under which models put the text or the word of a field, or of an item, that they wrote as an object.
POINT_KEYS = ("point", "text", "issue", "topic", "claim", "what", "statement", "summary", "description")
WORD_KEYS = ("verdict", "outcome", "decision", "level", "rating", "result", "status", "choice", "seat", "advisor")
MAIN_KEYS = (
    *("value", "text", "answer", "content", "markdown", "label", "name", "id"),
    *WORD_KEYS,
    *("action", "step", *POINT_KEYS, "title"),
)
_NAME_AND_TEXT = re.compile(r"\s*(?P<name>[^:–—\n]{1,60}?)\s*(?::|[–—]|\s-\s)\s*(?P<text>\S.*)", re.DOTALL)


_PREFIX = re.compile(r"^(?:final|overall|my|the)(?=[a-z]{4})")


def also_named(*names: str) -> dict[str, Any]:
    """Name the other keys under which models give a field."""
    return {"also": list(names)}


def main_field() -> dict[str, Any]:
    """Mark the field of a row that a text or value beside the row's name stands for."""
    return {"main": True}


class FormReader:
    """Changes the form of a value, never its meaning, so that it fits the shape of a reply."""

    def __init__(self, choices: Choices, titles: Mapping[str, str]) -> None:
        self.choices, self.titles = choices, titles
        self.unknown: list[tuple[str, Any, str]] = []  # values of plain fields that are not among their choices

    def read(self, value: Any, shape: JsonSchema, name: str = "", place: str = "") -> Any:
        if "anyOf" in shape:
            return self._read_optional(value, shape, name, place)
        kind = shape.get("type")
        if kind == "object" and isinstance(value, dict):
            return self._read_fields(value, shape.get("properties", {}), place)
        if kind == "array":
            return self._read_list(value, shape, name, place)
        if kind == "boolean":
            value = _pick(value, name)
            return YES_NO.get(value.strip(PUNCTUATION_CHARS).casefold(), value) if isinstance(value, str) else value
        if kind == "string" or name in self.choices:
            return self._read_string(value, shape, name, place)
        return value

    def _read_optional(self, value: Any, shape: JsonSchema, name: str, place: str) -> Any:
        branches = [one for one in shape["anyOf"] if one.get("type") != "null"]
        if value is None or len(branches) != 1:
            return value
        if isinstance(value, str) and is_placeholder(value) and branches[0].get("type") != "string":
            return None
        return self.read(value, branches[0], name, place)

    # Fields

    def _read_fields(self, value: Json, properties: Mapping[str, JsonSchema], place: str) -> Json:
        """Rename fields whose name is written in another way; unknown ones stay."""
        found = rename_fields(value, properties)
        return {
            name: self.read(item, properties[name], name, f"{place}.{name}".lstrip(".")) if name in properties else item
            for name, item in found.items()
        }

    # Lists

    def _read_list(self, value: Any, shape: JsonSchema, name: str, place: str) -> Any:
        items = shape.get("items", {})
        each = str(shape.get("each") or "")
        rows = self._make_rows(value, items, each, name)
        if not isinstance(rows, list):
            return value
        choice = each or name
        if items.get("type") == "string" and choice in self.choices:
            if not each and len(rows) == 1 and names_all(rows[0], len(self.choices[choice])):
                return list(self.choices[choice])
            return [self._match(_pick(item, choice), choice) or item for item in self._split_names(rows, choice)]
        return [self.read(item, items, "", f"{place}.{n}") for n, item in enumerate(rows)]

    def _split_names(self, rows: list[Any], choice: str) -> list[Any]:
        """Split names that were written in one text: "B > A > C", "alpha and beta"."""
        if len(rows) != 1 or not isinstance(rows[0], str):
            return rows
        parts = re.split(r"\s*[>,;→\n]\s*|\s+(?:and|und|et|y)\s+", rows[0].strip())
        names = [LIST_MARKER.sub("", part) for part in parts if part]
        return names if len(names) > 1 and all(self._match(name, choice) for name in names) else rows

    def _make_rows(self, value: Any, items: JsonSchema, each: str, name: str) -> Any:
        kind = items.get("type")
        if value is None or (isinstance(value, str) and kind in ("string", "object") and is_placeholder(value)):
            return []
        if isinstance(value, str) and kind == "string":
            return _split_lines(value)
        if isinstance(value, str) and kind == "object":
            rows = [self._make_row(line, items, each) for line in _split_lines(value, always=True)]
            return rows if any(isinstance(row, dict) for row in rows) else value
        if kind == "string" and each in self.choices:
            return _sort_by_rank(value)
        if isinstance(value, dict) and kind == "string":
            return _list_texts(value, is_choice=name in self.choices)
        if isinstance(value, dict) and kind == "object":
            return self._make_rows_of_object(value, items, each)
        if isinstance(value, list) and kind == "object":
            rows = [item for item in value if not (isinstance(item, str) and is_placeholder(item))]
            return [self._make_row(row, items, each) for row in rows]
        return value

    def _make_rows_of_object(self, value: Json, items: JsonSchema, each: str) -> Any:
        """Return the rows of a list that was written as an object: one row, or rows under their names or numbers."""
        fields = items.get("properties", {})
        if _rename_spellings(value, fields).keys() & fields.keys():
            return [value]
        if all(re.fullmatch(r"\W*\d+\W*", key) for key in value):
            return list(value.values())
        if not any(self._match(key, each) for key in value):
            return value
        main = _find_main_field(items, each)
        if not main and not all(isinstance(row, dict) for row in value.values()):
            return value
        return [{each: name, **(row if isinstance(row, dict) else {main: row})} for name, row in value.items()]

    def _make_row(self, row: Any, items: JsonSchema, each: str) -> Any:
        """Return the row of a text such as `Pragmatist: Do it.`, or of an object with the name as its key."""
        main, pair = _find_main_field(items, each), None
        if isinstance(row, str) and (found := _NAME_AND_TEXT.fullmatch(row)):
            pair = (found["name"], found["text"].lstrip("*_ "))
        elif isinstance(row, dict) and len(row) == 1:
            ((key, item),) = row.items()
            pair = (key, item)
        return {each: pair[0], main: pair[1]} if pair and main and self._match(pair[0], each) else row

    # Texts and words

    def _read_string(self, value: Any, shape: JsonSchema, name: str, place: str) -> Any:
        is_word = "enum" in shape or "const" in shape or name in self.choices
        if isinstance(value, dict):
            value = _pick(value, name) if is_word else _format_object(value, name) if name else _format_row(value)
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
            value = value[0]
        elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            value = value if is_word else _join_texts(value)
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


def rename_fields(value: Json, properties: Mapping[str, JsonSchema]) -> Json:
    """Return the fields under their own names, also those in another spelling, with another name or a level deeper."""
    found = _rename_spellings(value, properties)
    groups = {key: _rename_spellings(item, properties) for key, item in found.items() if isinstance(item, dict)}
    groups = {key: item for key, item in groups.items() if key not in properties and item.keys() & properties.keys()}
    for name, field in properties.items():
        inside = [one[name] for one in groups.values() if name in one]
        if name not in found and len(inside) == 1:  # {"verdict": {"outcome": …}}
            found[name] = inside[0]
        elif name not in found and (other := _find_other_name(found.keys() - groups.keys(), name, field, properties)):
            found[name] = found.pop(other)
    return found


def _rename_spellings(value: Json, properties: Mapping[str, JsonSchema]) -> Json:
    names = {squash(name): name for name in properties}
    found: Json = {}
    for key, item in value.items():
        name = key if key in properties else names.get(squash(key), key)
        if name == key or name not in value:
            found.setdefault(name, item)
    return found


def _find_other_name(
    found: Collection[str], name: str, field: JsonSchema, properties: Mapping[str, JsonSchema]
) -> str | None:
    """Return the key of a field that is given under another name, or None."""
    others = {squash(key): key for key in found if key not in properties}
    others = {_PREFIX.sub("", key): name for key, name in others.items()} | others
    plain = squash(name)
    listed = [plain.removesuffix("s"), f"{plain}s", *map(squash, field.get("also", ()))]
    return next((others[one] for one in listed if one in others), None)


def _find_main_field(items: JsonSchema, each: str) -> str:
    """Return the field of a row that holds its text: the marked one, or the only required one besides its name."""
    fields = items.get("properties", {})
    marked = [name for name, field in fields.items() if field.get("main")]
    required = [name for name in items.get("required", ()) if name != each]
    return marked[0] if marked else required[0] if len(required) == 1 else ""


def _pick(value: Any, name: str) -> Any:
    """Return the word of a field that was written as an object: `{"verdict": "PASS", "why": "…"}`."""
    if not isinstance(value, dict):
        return value
    by_name = {squash(str(key)): item for key, item in value.items()}
    keys = [squash(name), *MAIN_KEYS]
    return next((by_name[key] for key in keys if isinstance(by_name.get(key), str | int | float)), value)


def _format_object(value: Json, name: str) -> Any:
    """Return the text of a field that was written as an object of texts and lists; other objects stay."""
    texts = {str(key): text for key, item in value.items() if (text := _format_item(item))}
    if len(texts) != len([item for item in value.values() if item not in (None, "", [], {})]) or not texts:
        return value
    if len(texts) == 1 or squash(name) in map(squash, texts):
        return next((text for key, text in texts.items() if squash(key) == squash(name)), next(iter(texts.values())))
    parts = [(key.replace("_", " ").strip().capitalize(), text) for key, text in texts.items()]
    return "\n\n".join(f"**{key}:**{chr(10) if text.startswith('- ') else ' '}{text}" for key, text in parts)


def _join_texts(items: list[str]) -> str:
    """Join the lines or paragraphs of a text that was written as a list."""
    is_prose = any(len(item) > 80 for item in items) and not any(LIST_MARKER.match(item) for item in items)
    return ("\n\n" if is_prose else "\n").join(items)


def _format_row(value: Json) -> Any:
    """Return the text of an item that was written as an object of texts; numbers only count items."""
    items = [" and ".join(item) if _is_list_of_texts(item) else item for item in value.values()]
    texts = [item.strip() for item in items if isinstance(item, str) and item.strip()]
    return ": ".join(texts) if texts and all(isinstance(item, str | int | float | None) for item in items) else value


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _format_item(item: Any) -> str:
    if _is_list_of_texts(item):
        return "\n".join(f"- {one}" for one in item)
    return item.strip() if isinstance(item, str) else str(item) if isinstance(item, int | float) else ""


_RANK_KEYS = ("rank", "place", "position", "order", "number")
_ALL = re.compile(
    r"\W*(?:all|both|everyone|everybody)"
    r"(?: (?:of|the|them|two|three|four|five|six|seven|eight|nine|"
    r"advis[eo]rs|seats|members|judges|drafts|responses|answers|experts))*\W*",
    re.IGNORECASE,
)


_COUNTS = {"both": 2, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}


def names_all(value: Any, count: int) -> bool:
    """Return whether a text names all of a number of things: "all three advisors", but not "both" of three."""
    if not isinstance(value, str) or len(value) >= 40 or not _ALL.fullmatch(value):
        return False
    return all(_COUNTS.get(word, count) == count for word in re.findall(r"[a-z]+", value.casefold()))


def _sort_by_rank(value: Any) -> Any:
    """Return labels in the order of the ranks that are given with them; a list without ranks is in order as it is."""
    pairs: list[tuple[Any, Any]]
    if isinstance(value, dict) and all(str(key).isdigit() for key in value):  # {"1": "B", "2": "A"}
        pairs = [(int(key), label) for key, label in value.items()]
    elif isinstance(value, dict):  # {"A": 2, "B": 1}
        pairs = [(rank, label) for label, rank in value.items()]
    elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        ranked = [next((row[key] for key in _RANK_KEYS if isinstance(row.get(key), int)), None) for row in value]
        if not any(ranked) and not any(isinstance(item, int | float) for row in value for item in row.values()):
            return value
        pairs = list(zip(ranked, value, strict=True))
    else:
        return value
    ranks = [rank for rank, _ in pairs]
    if sorted(ranks, key=str) != sorted(range(1, len(ranks) + 1), key=str):
        return None  # scores, or ranks that are no order
    return [label for _, label in sorted(pairs, key=lambda pair: int(pair[0]))]


_ROW_KEYS = {*POINT_KEYS, "between", "about", "tension", "action", "step", "title", "name"}
_COUNTED = re.compile(r"(?:[a-z]+[ _-]?)?\d+|first|second|third|fourth|fifth|next|then|finally|last", re.IGNORECASE)


def _list_texts(value: Json, *, is_choice: bool) -> list[Any]:
    """Return the items of a list of texts that was written as an object: `{"1": "…"}`, `{"cost": "…"}`, or one item."""
    items = {str(key): item for key, item in value.items()}
    if all(_COUNTED.fullmatch(key) for key in items):
        return list(items.values())
    if not is_choice and any(squash(key) in _ROW_KEYS for key in items):
        return [value]
    if is_choice:
        return [key for key, item in items.items() if item not in (False, None, "", "no")]
    return [f"{key}: {item}" if isinstance(item, str) else item for key, item in items.items()]


def _split_lines(text: str, *, always: bool = False) -> list[str]:
    """Return the items of a list that was written as one text: lines with list markers, or all lines."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    marked = [LIST_MARKER.match(line) for line in lines]
    return [LIST_MARKER.sub("", line) for line in lines] if always or all(marked) else [text]


# Choices

_NOISE_WORDS = {
    "seat", "the", "member", "advisor", "adviser", "judge", "draft", "drafts", "response", "responses",
    "answer", "answers", "option", "issue", "point", "attack", "topic", "claim", "label", "candidate", "position",
    "leader", "id", "by", "from", "of", "expert", "version", "role", "number", "perspective", "view",
}  # fmt: skip
_TAIL = re.compile(r"\s*[:;(\[–—|]|\s+-\s|,\s|[.]\s|'s\b|’s\b")
_OWN_LABEL = re.compile(r"council[-_ ](?:r\d+[-_ ])?", re.IGNORECASE)  # council-r2-skeptic
_IN_BRACKETS = re.compile(r"[^()]*\(([^()]+)\)[^()]*")


def match_choice(value: str, allowed: Collection[str], titles: Mapping[str, str] = NO_TITLES) -> str | None:
    """Return the only allowed value that a text names, also with a title or other words around it, or None."""
    if value in allowed:
        return value
    plain = _plain_choices(allowed, titles)
    text = value.strip(PUNCTUATION_CHARS)
    if (whole := plain.get(_plain(value))) is not None:
        return whole
    if label := _OWN_LABEL.match(text):
        return match_choice(text[label.end() :], allowed, titles)
    head = _TAIL.split(text, maxsplit=1)[0]
    found = _match_words(head, plain)
    if found is None and re.fullmatch(r"[\w ]{1,20}[:#]\s*.*", text):  # "Leader: alpha"
        label_text, _, rest = text.replace("#", ":", 1).partition(":")
        if all(word in _NOISE_WORDS for word in label_text.casefold().split()):
            return match_choice(rest, allowed, titles)
    rest = text[len(head) :]
    if found is None and (inside := _IN_BRACKETS.fullmatch(text)):  # "Deep Explorer (alpha)"
        found, rest = plain.get(_plain(inside[1])), head
    others = {one for one in allowed if one and one != found}
    return None if found is None or any(_contains(rest, one) for one in others) else found


def _plain_choices(allowed: Collection[str], titles: Mapping[str, str]) -> dict[str, str]:
    """Return the allowed values by the plain forms in which a text may name them."""
    plain = {_plain(one): one for one in allowed}
    plain |= {_plain(title): name for title, name in titles.items() if name in allowed and _plain(title) not in plain}
    short: dict[str, list[str]] = {}  # "issue-2" is also "2"
    for one in allowed:
        first, _, rest = _plain(one).partition("-")
        if rest and first in _NOISE_WORDS:
            short.setdefault(rest, []).append(one)
    return {key: names[0] for key, names in short.items() if len(names) == 1} | plain


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
