"""The chair's notes in a free text: recognised by their label or by their content, and removed from texts and streams.

Notes are a fenced block, an object, a pair of tags or a list of lines. Two of the known keys make a block notes,
whatever is around it; with the label `council-notes` any content does. What could become notes is held back until it
is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from council.json_text import clean_text, close_json, find_json, load_json
from council.text_cleanup import squash
from council.types import Json

NOTES_LABEL = "council-notes"
NOTES_KEYS = ("agreed", "contested", "unique", "taken_from", "closest_draft", "recommendation_shared_by")
ANSWER_KEYS = [
    "answer",
    "final_answer",
    "final",
    "final_text",
    "final_response",
    "response",
    "text",
    "content",
    "markdown",
    "synthesis",
    "merged_answer",
    "result",
    "output",
]

_KEYS_BY_SQUASHED = {squash(key): key for key in NOTES_KEYS} | {
    "sharedby": "recommendation_shared_by",
    "recommendedby": "recommendation_shared_by",
    "recommendationshared": "recommendation_shared_by",
    "recommendationssharedby": "recommendation_shared_by",
    "closest": "closest_draft",
    "agreements": "agreed",
    "agreedpoints": "agreed",
    "contestedpoints": "contested",
    "uniquepoints": "unique",
    "joined": "joined",
}
_LABEL_KEYS = {"councilnotes", "councilnote", "councilsnotes", "councilrecord"}
MAX_HELD_LINES = 40  # blank lines, rules and titles that are held until it is known whether notes follow
_MAX_DEPTH = 3  # of objects in each other
_MAX_YAML_CHARS = 20_000
_SQUASHED_ANSWERS = [squash(key) for key in ANSWER_KEYS]
# The known keys in any spelling.
_KEY_WORDS = r"agreed|contested|unique|taken[_ -]?from|closest[_ -]?draft|(?:recommendation[_ -]?)?shared[_ -]?by"
_READ_WORDS = f"{_KEY_WORDS}|joined"  # `joined` is read, but it makes no block notes: it is a usual word in data
_HINT = re.compile(r"(?i)council(?:['’]?s)?[-_ ]?notes?|agreed|contested|taken_?from|closest_?draft|shared_?by")


# Content


def load_notes(text: str) -> Json | None:
    """Return the known keys of a block of notes with their raw values; None if it cannot be read or has none."""
    text = _strip_quote_marks(clean_text(text))
    if objects := _load_objects(text):
        found = _find_notes(objects)
        return _rename_keys(found if found is not None else objects[-1])
    if cut := close_json(text):
        known = _rename_keys((_load_objects(cut.text) or [{}])[-1])
        known.pop("recommendation_shared_by", None)  # what else is contested is not known
        return known or None
    if re.search(rf"<(?:{_KEY_WORDS})>", text, re.IGNORECASE):
        return _rename_keys(_load_tags(text)) or None
    has_keys = _KEY_LINE_ANY_CASE.search(text) or _KEY_HEADING.search(text)
    return _rename_keys(_load_lines(text)) or None if has_keys else None


def _strip_quote_marks(text: str) -> str:
    """Return a quotation of Markdown without its marks; any other text as it is."""
    lines = text.split("\n")
    is_quoted = all(line.lstrip().startswith(">") for line in lines[:-1] if line.strip()) and ">" in text
    return "\n".join(re.sub(r"^[ \t]*> ?", "", line) for line in lines) if is_quoted else text


def _load_objects(text: str) -> list[Json]:
    values = find_json(text)[0]
    listed = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [item for item in listed if isinstance(item, dict)]


def _rename_keys(value: Json) -> Json:
    """Return the values under the names of the known keys; other keys are dropped."""
    found: Json = {}
    for key, item in value.items():
        if (name := _KEYS_BY_SQUASHED.get(squash(str(key)))) is not None:
            found.setdefault(name, item)
    return found


def _find_notes(objects: Iterable[Json]) -> Json | None:
    """Return the last object with two of the known keys, or else one under a key such as `council_notes`."""
    found = [one for value in objects for one in _iter_objects(value) if _has_notes(one)]
    labelled = [
        item
        for value in objects
        for one in _iter_objects(value)
        for key, item in one.items()
        if squash(str(key)) in _LABEL_KEYS and isinstance(item, dict) and _rename_keys(item)
    ]
    return found[-1] if found else labelled[-1] if labelled else None


def _iter_objects(value: Json, depth: int = 0) -> Iterator[Json]:
    yield value
    for item in value.values() if depth < _MAX_DEPTH else ():
        if isinstance(item, str) and item.lstrip().startswith("{") and may_have_notes(item):
            item = next(iter(_load_objects(item)), None)
        if isinstance(item, dict):
            yield from _iter_objects(item, depth + 1)


def _has_notes(value: Json) -> bool:
    """Return whether an object has two of the known keys, with values that notes can have."""
    known = [item for key, item in _rename_keys(value).items() if key in NOTES_KEYS]
    return sum(item is None or isinstance(item, list | dict | str) for item in known) > 1


def find_answer(value: Json) -> str:
    """Return the answer in an object, or an empty string."""
    for one in _iter_objects(value):
        by_name = {squash(str(key)): item for key, item in one.items()}
        for name in _SQUASHED_ANSWERS:
            item = by_name.get(name)
            if isinstance(item, list) and item and all(isinstance(part, str) for part in item):
                item = "\n\n".join(item)
            if isinstance(item, str) and item.strip():
                return item
    return ""


class Reading(NamedTuple):
    """What a held block is: notes or not, and the answer that an object holds beside its notes."""

    is_notes: bool
    answer: str = ""
    notes: str | None = None  # in place of the content of the block


_NO_NOTES, _NOTES = Reading(False), Reading(True)
_KEY_MARK = re.compile(rf"""(?im)(?:["'“<]|[{{,]\s*|^[ \t>*+-]*[*_`]*)({_KEY_WORDS})(?:["'”*_`]*\s*[:=]|>)""")
_ANSWER_START = re.compile(rf"""[\s\[]*\{{\s*["'“](?:{"|".join(ANSWER_KEYS)})["'”]\s*:""", re.IGNORECASE)
_ANSWER_STRING = re.compile(rf"""{_ANSWER_START.pattern}\s*(?P<text>"(?:[^"\\]|\\.)*+")""", re.IGNORECASE | re.DOTALL)


def read_block(text: str) -> Reading:
    """Return whether a block is notes by its content, and the answer that it also holds."""
    objects = _load_objects(_strip_quote_marks(clean_text(text))) if may_have_notes(text) else []
    notes = _find_notes(objects)
    if notes is not None:
        answer = next(filter(None, map(find_answer, objects)), "") if notes not in objects or find_answer(notes) else ""
        return Reading(True, answer, json.dumps(_rename_keys(notes))) if answer else _NOTES
    if len(objects) == 1 and (answer := find_answer(objects[0])):
        shown, blocks = split_notes(answer)
        return Reading(True, shown, blocks[-1]) if blocks else _NO_NOTES
    keys = {squash(key) for key in _KEY_MARK.findall(text)}
    if objects or len({_KEYS_BY_SQUASHED.get(key, key) for key in keys}) < 2:
        return _NO_NOTES
    found = _ANSWER_STRING.match(text)  # lines, tags, or an object that cannot be read
    return Reading(True, load_json(found["text"])) if found else _NOTES


# Lines and tags in place of JSON

_KEY_BEFORE = r"""(?:(?:[-*+•]|\d+[.)])[ \t]+)?(?:`|["'*_]{1,3})?"""
_KEY_AFTER = r"""["'`*_]{0,3}[ \t]*[:=]["'`*_]{0,3}"""
_KEY_LINE = re.compile(rf"[ \t>]*{_KEY_BEFORE}({'|'.join(NOTES_KEYS)}){_KEY_AFTER}")
_KEY_LINE_ANY_CASE = re.compile(rf"^[ \t>#]*{_KEY_BEFORE}({_READ_WORDS}){_KEY_AFTER}", re.IGNORECASE | re.MULTILINE)
_KEY_HEADING = re.compile(rf"(?im)^[ \t]*(?:#{{1,6}}[ \t]+|[*_]{{2}})({_READ_WORDS})(?:[*_]{{2}})?[ \t]*:?[ \t]*$")
_LIST_MARK = re.compile(r"^[ \t>]*(?:[-*+•]|\d+[.)])[ \t]+")
_EMPTY_VALUE = re.compile(r"\W*(?:none|nothing|n/?a|null|keine|aucun\w*|ninguno|nessuno|nenhum)?\W*", re.IGNORECASE)


def _load_lines(text: str) -> Json:
    """Return the values of lines such as `agreed: …`, in YAML or in a list of Markdown."""
    if (value := _load_yaml(text)) is not None:
        return value
    found: dict[str, list[str]] = {}
    items: list[str] = []
    for line in text.splitlines():
        if key := _KEY_LINE_ANY_CASE.match(line) or _KEY_HEADING.match(line):
            items = found.setdefault(key[1], [])
            line = line[key.end() :]
        items += [item] if (item := _LIST_MARK.sub("", line).strip(" \t*_`")) else []
    return {key: [item for item in lines if not _EMPTY_VALUE.fullmatch(item)] for key, lines in found.items()}


def _load_yaml(text: str) -> Json | None:
    import yaml

    try:
        value = yaml.safe_load(text) if len(text) < _MAX_YAML_CHARS else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return (
        value if isinstance(value, dict) and all(isinstance(key, str) for key in value) and _has_notes(value) else None
    )


def _load_tags(text: str) -> Json:
    """Return the texts in tags such as `<agreed>`, each as a list of its inner elements or lines."""
    found: Json = {}
    for name, inner in re.findall(rf"<({_READ_WORDS})>(.*?)</\1>", text, re.IGNORECASE | re.DOTALL):
        items = re.findall(r"<(\w+)>(.*?)</\1>", inner, re.DOTALL)
        rows = [item for _, item in items] or [_LIST_MARK.sub("", line) for line in inner.splitlines()]
        found[name] = [row.strip() for row in rows if row.strip() and not _EMPTY_VALUE.fullmatch(row.strip())]
    return found


# Starts of blocks, and the lines before them

_MAX_START_CHARS = 90  # of a line that may become the start of a block or its title
_FENCE = r"[ \t>]{0,12}(?P<fence>`{3,8}|~{3,8})[ \t]{0,4}"
_NOTES_FENCE = re.compile(rf"{_FENCE}(?:json[ \t]{{1,4}})?council[-_]notes(?![\w-])(?P<rest>.*)", re.IGNORECASE)
_OPENING_FENCE = re.compile(rf"{_FENCE}(?P<label>[^`\n{{]{{0,60}}?)[ \t]{{0,8}}(?P<rest>(?:\{{.*)?)")
_FENCE_START = re.compile(r"[ \t>]{0,12}(?:`{0,2}|~{0,2}|(?:```|~~~)[^\n{]*)")
_MARKDOWN_LABELS = ("markdown", "md")
RULE = re.compile(r"[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})")
_RULE_START = re.compile(r"[ \t*_-]*")
_TAG_NAMES = r"council[-_ ]?notes?|notes?|details|metadata|council|record|pre|code"
_TAG = re.compile(rf"[ \t]{{0,12}}<(?P<name>{_TAG_NAMES})(?:[ \t][^<>\n]{{0,60}})?>", re.IGNORECASE)
_SQUARE_TAG = re.compile(r"[ \t]{0,12}\[(?P<name>council[-_ ]?notes?)\]", re.IGNORECASE)
_TAG_IN_LINE = re.compile(r"<(?P<name>council[-_ ]?notes?|notes)>", re.IGNORECASE)
_COMMENT = re.compile(r"[ \t]{0,12}<!--")
_TAG_START = re.compile(rf"[ \t]{{0,12}}<(?:!-?|[a-z_ -]{{0,14}}|(?:{_TAG_NAMES})[ \t][^<>\n]{{0,60}})", re.IGNORECASE)
_LABEL = re.compile(r"council[-_ ]?notes?", re.IGNORECASE)
_OBJECT_START = re.compile(r"[ \t>]{0,12}(?=\{|\[[ \t]*\{)")
_LIST_START = re.compile(r"[ \t>]{0,12}(?=\[\s*$)")  # a complete line
_BRACKET_START = re.compile(r"[ \t]{0,12}\[[a-z_ -]{0,14}", re.IGNORECASE)
# An object inside a line: the text before it is passed on, so its first key has to be a known one.
_OBJECT_IN_LINE = re.compile(rf"""\{{[ \t]*["'“]?(?:{_KEY_WORDS}|council[_ -]?notes)["'”]?[ \t]*:""", re.IGNORECASE)
_MARK_IN_LINE = re.compile(r"[{<]")
_MARK_IN_LINE_START = re.compile(r"""\{[ \t]{0,8}["'“]?[a-z_ -]{0,26}["'”]?[ \t]{0,8}|<[a-z_ -]{0,13}""", re.IGNORECASE)

# Words of a title in the order in which they can stand, and its noun.
_TITLE_WORDS = (
    ("and", "now"),
    ("here is", "here are", "these are", "below is", "below are"),
    ("the", "my", "our"),
    ("internal", "final", "chair s", "additional", "requested", "following"),
)
_LABEL_NOUNS = (
    "council notes",
    "council note",
    "council s notes",
    "councilnotes",
    "end council notes",
    "end of council notes",
)
_TITLE_NOUNS = (
    *("notes", "note", "records", "record", "metadata", "json", "tail block", "block of notes", "minutes"),
    *("notizen", "anmerkungen", "notas", "for the record", "for the records", "for the council s records"),
)
_OPENING_WORDS = "".join(f"(?:(?:{'|'.join(group)}) )?" for group in _TITLE_WORDS)
_LABEL_TITLE = re.compile(
    rf"{_OPENING_WORDS}(?:{'|'.join(_LABEL_NOUNS)})"
    r"(?: (?:block|section|json|in|as|below|follows?|for|the|council|s|records?|internal|only|not|part|of|answer))*"
)
_TITLE = re.compile(rf"{_OPENING_WORDS}(?:{'|'.join(_TITLE_NOUNS)})(?: .{{0,50}})?")


def _simplify(line: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", line.lower()).lstrip(" 0123456789").rstrip()


def _is_title(line: str, pattern: re.Pattern[str]) -> bool:
    return len(line) <= _MAX_START_CHARS and pattern.fullmatch(_simplify(line)) is not None


def _may_become_title(start: str) -> bool:
    """Return whether the start of a line may become a title, as far as its words are known."""
    text = _simplify(start)
    for group in _TITLE_WORDS:
        if any(word.startswith(text) for word in group):
            return True
        text = next((text[len(word) + 1 :] for word in group if text.startswith(f"{word} ")), text)
    return any(noun.startswith(text) or text.startswith(f"{noun} ") for noun in (*_LABEL_NOUNS, *_TITLE_NOUNS))


def _may_become_key(start: str) -> bool:
    bare = re.sub(rf"^[ \t>#]*{_KEY_BEFORE}", "", start).lower().rstrip(" \t\"'`*_")
    word = re.sub(r"[ -]", "_", bare)
    return any(key.startswith(word) for key in (*NOTES_KEYS, "shared_by"))


_STARTS: tuple[Callable[[str], object], ...] = (
    _FENCE_START.fullmatch,
    _TAG_START.fullmatch,
    _RULE_START.fullmatch,
    _BRACKET_START.fullmatch,
    _may_become_title,
    _may_become_key,
)


def _may_become_start(start: str) -> bool:
    """Return whether the start of a line may become the start of a block, or a line that belongs to one."""
    return len(start) <= _MAX_START_CHARS and any(test(start) for test in _STARTS)


def _line_kind(line: str) -> str:
    """Return what a complete line may be before a block of notes, or an empty string."""
    if len(line) > _MAX_START_CHARS:
        return ""
    if not line.strip():
        return "blank"
    if RULE.fullmatch(line.rstrip()):
        return "rule"
    return "label" if _is_title(line, _LABEL_TITLE) else "title" if _is_title(line, _TITLE) else ""


def closes_fence(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and set(bare) == {fence[0]}


# Blocks: what is held back, and where it ends


class Block:
    """Text that may be notes. `is_labelled`: it is notes whatever its content is."""

    def __init__(self, opening: str, is_labelled: bool) -> None:
        self.opening, self.is_labelled = opening, is_labelled
        self.void_at: int | None = None  # it is certain that it is no notes; its text up to here was read
        self.is_closed = False
        self._pieces: list[str] = []
        self._line: list[str] = []  # of the unfinished line
        self._closing = ""  # at the end of the text, not part of the content
        self._size = 0
        self._is_probed = False

    @property
    def raw(self) -> str:
        return "".join([self.opening, *self._pieces, *self._line])

    @property
    def content(self) -> str:
        return "".join(self._pieces).removesuffix(self._closing)

    def add(self, part: str, end: str) -> str | None:
        """Add a part of a line and its line end; return the rest of the part after the end of the block, or None."""
        raise NotImplementedError

    def end_text(self) -> str:
        """End the block with the text; return the last line if it is not part of the block."""
        return ""

    def _keep(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)

    def _probe(self, other: re.Pattern[str] | None = None) -> None:
        """Give up a long block whose start has no known key and does not match the other pattern."""
        if self._is_probed or self.void_at is not None or self._size < _PROBE_CHARS:
            return
        self._is_probed = True
        start = "".join(self._pieces)[:_PROBE_CHARS]
        if not self.is_labelled and not _KEY_MARK.search(start) and not (other and other.match(start)):
            self.void_at = _PROBE_CHARS


class FencedBlock(Block):
    """A code fence and its content. The start of the content says whether it can be notes."""

    def __init__(self, opening: str, fence: str, label: str, *, is_labelled: bool, is_checked: bool = False) -> None:
        super().__init__(opening, is_labelled)
        self.fence, self.label = fence, label
        self._is_checked = is_checked

    def add(self, part: str, end: str) -> str | None:
        self._line.append(part)
        if not self._is_checked:
            self._check_start(end)
        if self.void_at is not None:
            self._line.append(end)
            return None
        return self._end_line(end) if end else None

    def end_text(self) -> str:
        self._end_line("")
        return ""

    def _check_start(self, end: str) -> None:
        start = "".join([*self._pieces, *self._line]).lstrip(" \t\n\r>")
        if not start:
            return
        has_label = bool(end) and len(start) <= _MAX_START_CHARS and _simplify(start) in _LABEL_NOUNS
        self.is_labelled = self.is_labelled or has_label
        self._is_checked = start[0] in "{[" or has_label or _KEY_LINE.match(start) is not None
        may_become_label = any(noun.startswith(_simplify(start)) for noun in _LABEL_NOUNS)
        may_be_notes = len(start) <= _MAX_START_CHARS and (may_become_label or _may_become_key(start))
        if not self._is_checked and (end or not may_be_notes):
            self.void_at = 0

    def _end_line(self, end: str) -> str | None:
        line = "".join(self._line)
        self._line.clear()
        if line.rstrip().endswith(self.fence):
            self._closing, self.is_closed = line[len(line.rstrip().rstrip(self.fence[0])) :], True
            self._keep(line)
            return ""
        self._keep(line + end)
        return None


_JSON_TOKEN = re.compile(r'["\\{}\[\]]')
_OBJECT_OPENING = re.compile(r"\[?\s*(?:\{\s*)?")
_FIRST_KEY = re.compile(r"""\[?\s*\{\s*["'“A-Za-z_}]""")
_PROBE_CHARS = 2000  # of a held object or tag; without a known key in them it is passed on


class ObjectBlock(Block):
    """A JSON object without a fence."""

    def __init__(self, opening: str, is_labelled: bool) -> None:
        super().__init__(opening, is_labelled)
        self._depth = 0
        self._is_string = self._is_escaped = self._has_key = False

    def add(self, part: str, end: str) -> str | None:
        if not self._has_key:
            self._check_key(part + end)
        stop = self._find_end(part)
        self._keep(part + end if stop is None else part[:stop])
        self._probe(_ANSWER_START)
        if self.void_at is not None and stop is not None:
            self._keep(part[stop:] + end)
        if self.void_at is not None or stop is None:
            return None
        self.is_closed = True
        return part[stop:]

    def _check_key(self, more: str) -> None:
        start = "".join([*self._pieces, more])
        self._has_key = _FIRST_KEY.match(start) is not None
        opening = _OBJECT_OPENING.match(start)
        if not self._has_key and opening and opening.end() < len(start):
            self.void_at = opening.end()

    def _find_end(self, part: str) -> int | None:
        """Return the place after the bracket that closes the object."""
        at = 1 if self._is_escaped and part else 0
        self._is_escaped = self._is_escaped and not part
        while found := _JSON_TOKEN.search(part, at):
            at, char = found.end(), found[0]
            if char == "\\":
                self._is_escaped = self._is_string and at == len(part)
                at += self._is_string
            elif char == '"':
                self._is_string = not self._is_string
            elif not self._is_string:
                self._depth += 1 if char in "{[" else -1
                if not self._depth:
                    return at
        return None


class TaggedBlock(Block):
    """A pair of tags, or a comment of HTML."""

    def __init__(self, opening: str, closing: str, is_labelled: bool) -> None:
        super().__init__(opening, is_labelled)
        self._end_tag = closing
        self._tail = ""  # that may be the start of the closing tag

    def add(self, part: str, end: str) -> str | None:
        text = self._tail + part
        at = text.lower().find(self._end_tag)
        if at < 0:
            self._tail = "" if end else text[-len(self._end_tag) + 1 :]
            self._keep(part + end)
            self._probe()
            return None
        stop = at + len(self._end_tag)
        self._keep(text[len(text) - len(part) : stop])
        self._probe()
        if self.void_at is not None:
            self._keep(text[stop:] + end)
            return None
        self._closing, self.is_closed = text[at:stop], True
        return text[stop:]


def _make_tagged(tag: re.Match[str]) -> TaggedBlock:
    name, is_square = tag["name"].lower(), tag[0].lstrip().startswith("[")
    return TaggedBlock(tag[0], f"[/{name}]" if is_square else f"</{name}>", _LABEL.fullmatch(name) is not None)


def _has_key(line: str) -> bool:
    """Return whether a line begins with one of the known keys, in any spelling or as a heading."""
    return bool(_KEY_LINE_ANY_CASE.match(line) or _KEY_HEADING.match(line))


class LinesBlock(Block):
    """Lines such as `agreed: …`. They end at a heading, or at a paragraph that is none of them."""

    def __init__(self, is_labelled: bool) -> None:
        super().__init__("", is_labelled)
        self._has_blank = False  # the last line is blank

    def add(self, part: str, end: str) -> str | None:
        self._line.append(part)
        return self._end_line(end) if end else None

    def end_text(self) -> str:
        self.is_closed = True
        return self._end_line("") or ""

    def _end_line(self, end: str) -> str | None:
        line = "".join(self._line)
        self._line.clear()
        if line.strip() and not _has_key(line):
            is_item = line[:1] in " \t" or _LIST_MARK.match(line) is not None
            if line.startswith("#") or (not is_item and (self._has_blank or not self.is_labelled)):
                return line
        self._has_blank = not line.strip()
        self._keep(line + end)
        return None


# The filter


class HeldLine(NamedTuple):
    kind: str  # blank | rule | title | label
    text: str


class LineFilter:
    """Filters the lines of a text that arrives in pieces."""

    def __init__(self) -> None:
        self._line = ""  # part of the current line that is not decided yet
        self._is_inside_line = False  # the start of this line was passed on
        self._shown: list[str] = []  # since the last call

    def feed(self, text: str) -> str:
        """Return what can be shown."""
        self._take(text)
        return self._take_shown()

    def _take(self, text: str) -> None:
        *lines, rest = text.split("\n")
        for line in lines:
            self._take_part(line, "\n")
        if rest:
            self._take_part(rest, "")

    def _take_part(self, part: str, end: str) -> None:
        """Take a part of a line, and its line end if it is the last one."""
        raise NotImplementedError

    def _take_shown(self) -> str:
        shown = "".join(self._shown)
        self._shown.clear()
        return shown


class NotesFilter(LineFilter):
    """Remove the chair's notes from a text that arrives in pieces. An unclosed block extends to the end of the text."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = []  # the contents of the removed blocks, in order
        self.is_open = False  # the text ended inside a block
        self._has_shown = False
        self._is_after_block = False  # nothing was shown since a block was removed
        self._held: list[HeldLine] = []  # lines that belong to the block if one follows
        self._has_label = False  # one of them is the label of notes
        self._fences: list[tuple[str, str]] = []  # open code fences: the fence and its label
        self._block: Block | None = None

    def flush(self) -> str:
        """Return the rest of the text after its last piece."""
        while self._block or self._line:
            if self._block:
                self._line = self._end_block_with_text(self._block)
            else:
                line, self._line = self._line, ""
                self._take_line(line, "", is_complete=True)
        if self.blocks:
            while self._held and self._held[-1].kind != "title":
                self._held.pop()
        self._show_held()
        return self._take_shown()

    def _take_part(self, part: str, end: str) -> None:
        if self._block:
            self._add_to_block(self._block, part, end)
        else:
            line, self._line = self._line + part, ""
            self._take_line(line, end, is_complete=bool(end))

    # Lines

    def _take_line(self, line: str, end: str, *, is_complete: bool) -> None:
        """Pass on, hold or begin a block with a line, or with its start if it is not complete."""
        if self._is_inside_line:
            self._pass(line, end, is_complete)
        elif opening := _NOTES_FENCE.match(line):
            if is_complete or opening["rest"]:
                block = FencedBlock("", opening["fence"], NOTES_LABEL, is_labelled=True, is_checked=True)
                self._open(block, opening["rest"], end)
            else:
                self._line = line  # the label may go on
        elif self._is_in_code:
            self._take_code_line(line, end, is_complete)
        elif not self._begin_block(line, end, is_complete):
            self._take_text_line(line, end, is_complete)

    @property
    def _is_in_code(self) -> bool:
        return bool(self._fences) and self._fences[-1][1] not in _MARKDOWN_LABELS

    def _take_code_line(self, line: str, end: str, is_complete: bool) -> None:
        if not is_complete and len(line) <= _MAX_START_CHARS and _FENCE_START.fullmatch(line):
            self._line = line
            return
        is_last = is_complete and closes_fence(line, self._fences[-1][0])
        self._pass(line, end, is_complete)
        if is_last:
            self._fences.pop()

    def _take_text_line(self, line: str, end: str, is_complete: bool) -> None:
        if not is_complete and _may_become_start(line):
            self._line = line
        elif is_complete and (kind := _line_kind(line)):
            if len(self._held) == MAX_HELD_LINES:
                self._show_held()
            is_gap = kind == "blank" and self._is_after_block and bool(self._held)
            self._held += [] if is_gap else [HeldLine(kind, line + end)]
            self._has_label = self._has_label or kind == "label"
        else:
            self._pass(line, end, is_complete)

    def _pass(self, text: str, end: str, is_complete: bool) -> None:
        """Show text of the current line, up to an object whose first key is a known one, or to a tag of notes."""
        for found in () if self._is_in_code else _MARK_IN_LINE.finditer(text):
            at = found.start()
            block: Block | None = None
            if _OBJECT_IN_LINE.match(text, at):
                block, stop = ObjectBlock("", is_labelled=False), at
            elif tag := _TAG_IN_LINE.match(text, at):
                block, stop = _make_tagged(tag), tag.end()
            if block:
                self._show(text[:at])
                self._open(block, text[stop:], end)
                return
            if not is_complete and _MARK_IN_LINE_START.fullmatch(text, at):
                self._show(text[:at])
                self._line, self._is_inside_line = text[at:], True
                return
        self._show(text + end)
        self._is_inside_line = not end

    def _show(self, text: str) -> None:
        if text:
            self._show_held()
            self._shown.append(text)
            self._has_shown, self._is_after_block = True, False

    def _show_held(self) -> None:
        """Show the held lines, but no blank lines at the start of a text whose first block was removed."""
        while self._held and self.blocks and not self._has_shown and self._held[0].kind == "blank":
            self._held.pop(0)
        self._shown += [one.text for one in self._held]
        self._held.clear()
        self._has_label = False

    # Blocks

    def _begin_block(self, line: str, end: str, is_complete: bool) -> bool:
        """Begin a block if the line starts one."""
        is_labelled = self._has_label
        at = line.find("{")
        if (fence := _OPENING_FENCE.fullmatch(line)) and (is_complete or fence["rest"]):
            self._begin_fence(fence, end, is_labelled)
        elif tag := _TAG.match(line) or _SQUARE_TAG.match(line):
            self._open(_make_tagged(tag), line[tag.end() :], end)
        elif comment := _COMMENT.match(line):
            self._open(TaggedBlock(comment[0], "-->", is_labelled=False), line[comment.end() :], end)
        elif at >= 0 and _is_title(line[:at], _LABEL_TITLE):
            self._open(ObjectBlock(line[:at], is_labelled=True), line[at:], end)
        elif start := _OBJECT_START.match(line) or (_LIST_START.match(line) if is_complete else None):
            self._open(ObjectBlock(start[0], is_labelled), line[start.end() :], end)
        elif at >= 0 and _is_title(line[:at], _TITLE):
            self._open(ObjectBlock(line[:at], is_labelled), line[at:], end)
        elif _KEY_LINE.match(line) or (is_labelled and is_complete and _has_key(line)):
            self._open(LinesBlock(is_labelled), line, end)
        else:
            return False
        return True

    def _begin_fence(self, fence: re.Match[str], end: str, is_labelled: bool) -> None:
        label, rest = fence["label"].strip().lower(), fence["rest"]
        if label in _MARKDOWN_LABELS and not rest:
            self._fences.append((fence["fence"], label))
            self._pass(fence[0], end, is_complete=True)
            return
        opening = fence[0].removesuffix(rest) + ("" if rest else end)
        self._open(FencedBlock(opening, fence["fence"], label, is_labelled=is_labelled), rest, end if rest else "")

    def _open(self, block: Block, part: str, end: str) -> None:
        self._block = block
        if part or end:
            self._add_to_block(block, part, end)

    def _add_to_block(self, block: Block, part: str, end: str) -> None:
        rest = block.add(part, end)
        if block.void_at is not None:
            self._release(block, block.void_at)
        elif rest is not None:
            self._decide(block)
            self._take_part(rest, end)

    def _decide(self, block: Block) -> None:
        """Remove a block if it is notes, or show it."""
        self._block = None
        reading = _NOTES if block.is_labelled else read_block(block.content)
        if not reading.is_notes:
            self._show(block.raw)
            self._is_inside_line = not block.raw.endswith("\n")
            return
        self.blocks.append(block.content if reading.notes is None else reading.notes)
        self._held, self._has_label = [one for one in self._held if one.kind == "blank"][:1], False
        self._is_inside_line, self._is_after_block = False, True
        if reading.answer:
            self._show(reading.answer.rstrip() + "\n")

    def _end_block_with_text(self, block: Block) -> str:
        """Decide on the last block of the text; return the line after it."""
        rest, known = block.end_text(), len(self.blocks)
        self._decide(block)
        self.is_open = len(self.blocks) > known and not block.is_closed
        self._is_inside_line = False
        return rest

    def _release(self, block: Block, read: int) -> None:
        """Pass on a block that cannot be notes, and read the text after its first `read` characters again."""
        self._block = None
        if isinstance(block, FencedBlock):
            if not block.label and self._fences and block.fence.startswith(self._fences[-1][0]):
                self._fences.pop()  # it closes the fence around everything
            else:
                self._fences.append((block.fence, block.label))
        shown = block.raw[: len(block.opening) + read]
        self._show(shown)
        self._is_inside_line = not shown.endswith("\n")
        self._take(block.raw[len(shown) :])


# Whole texts


def may_have_notes(text: str) -> bool:
    return _HINT.search(text) is not None


def split_notes(text: str) -> tuple[str, list[str]]:
    """Return the text without its notes, and the contents of the removed blocks in order."""
    if not may_have_notes(text):
        return text, []
    stream = NotesFilter()
    shown = stream.feed(text) + stream.flush()
    return (shown.rstrip(), stream.blocks) if stream.blocks else (text, [])


def without_notes(text: str) -> str:
    """Return the text without its notes."""
    return split_notes(text)[0]


def ends_in_notes(text: str) -> bool:
    """Return whether the text ends inside a block of notes that is not closed."""
    stream = NotesFilter()
    stream.feed(text)
    stream.flush()
    return stream.is_open
