"""Locations of findings: parse them, look the file up in the packet, and find quoted lines in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from council.types import Packet

LocationState = Literal["verified", "located", "unlocated"]
QuoteState = Literal["", "found", "not_found", "too_long", "ambiguous"]  # empty: no quote was given

MAX_TEXT_CHARS = 1_000  # characters; the rest of a text is ignored
MAX_QUOTE_LINES = 6  # a longer quote names no place
MAX_QUOTE_CHARS = 4_000
MAX_SHARED_LINES = 3  # lines of a quote that count as its place
MIN_QUOTE_CHARS = 4  # a shorter quote counts only as a whole line
_NUMBER = r"(?P<line>[1-9]\d{0,6})(?!\d)"
_LINE_MARK = rf"(?::L?|#L|,?\s+\(?(?:at\s+|on\s+)?(?:lines?|L)\s*){_NUMBER}"
_QUOTED = re.compile(rf"(?P<path>[^:\n]{{1,300}}?){_LINE_MARK}(?:\D.{{0,40}})?", re.IGNORECASE)  # may contain spaces
_BARE = re.compile(rf"(?<![\w/:.\\-])(?P<path>[\w./\\@+~\[\]-]{{1,300}}){_LINE_MARK}", re.IGNORECASE)
_NAMED = re.compile(
    rf"\s*(?P<path>[A-Za-z]\w{{1,60}}){_LINE_MARK}\s*", re.IGNORECASE
)  # Makefile:3, with nothing around it
_PATH_WORD = re.compile(r"(?<![\w/:.\\-])[\w./\\@+~\[\]-]{1,300}")
_TICKED = re.compile(r"`([^`\n]{1,400})`")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_LINE_NUMBER_PREFIX = re.compile(r"^[ \t]*\d{1,7}[ \t]*\|[ \t]?", re.MULTILINE)
_DIFF_PREFIX = re.compile(r"^[+-](?![+-])", re.MULTILINE)
_UNICODE_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_CODE_FENCE = re.compile(r"^\s*```\w*\s*$", re.MULTILINE)
_HUNK = re.compile(r"^@@ -\d{1,9}(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@")


def parse_location(text: str) -> tuple[str, int] | None:
    """Return the first file and line in the text, or None. URLs and times of day do not count."""
    short = text[:MAX_TEXT_CHARS]
    if alone := _NAMED.fullmatch(short):
        return alone["path"], int(alone["line"])
    return _find_quoted(short) or _find_bare(_TICKED.sub(r"\1", short))


def _find_quoted(text: str) -> tuple[str, int] | None:
    places = (_QUOTED.fullmatch(ticked[1]) for ticked in _TICKED.finditer(text))
    return next((_to_location(place) for place in places if place and _is_file_path(place["path"])), None)


def _find_bare(text: str) -> tuple[str, int] | None:
    return next((_to_location(place) for place in _BARE.finditer(text) if _is_file_path(place["path"])), None)


def _to_location(match: re.Match[str]) -> tuple[str, int]:
    return normalize_path(match["path"]), int(match["line"])


def _is_file_path(path: str) -> bool:
    return ("/" in path or "." in path or "\\" in path) and any(sign.isalpha() for sign in path) and "//" not in path


def parse_path(text: str) -> str:
    """Return the first file in a text without a usable line: `src/auth.py`, `src/auth.py:0`; empty if there is none."""
    words = (normalize_path(found[0]).rstrip(".:,;") for found in _PATH_WORD.finditer(text[:MAX_TEXT_CHARS]))
    return next((word for word in words if _is_file_path(word) and not word.startswith("//")), "")


def normalize_path(path: str) -> str:
    """Return the path with forward slashes, without a leading `./` or `[`."""
    plain = path.strip().replace("\\", "/")
    plain = plain if "]" in plain else plain.lstrip("[")
    while plain.startswith("./"):
        plain = plain[2:]
    return plain


def match_file(path: str, paths: Collection[str]) -> str | None:
    """Return the packet file with this path, or the only one whose path ends with it."""
    if path in paths:
        return path
    wanted = path[2:] if path.startswith(("a/", "b/")) else path  # prefixes of a diff
    ends = [name for name in paths if name == wanted or name.endswith(f"/{wanted}") or _is_absolute_form(wanted, name)]
    return ends[0] if len(ends) == 1 else None


def _is_absolute_form(wanted: str, name: str) -> bool:
    """Return whether `wanted` is an absolute path that ends with `name`."""
    return wanted.startswith("/") and wanted.endswith(f"/{name}")


def split_lines(content: str) -> list[str]:
    """Split into lines as an editor numbers them; a final line break does not start a new line."""
    lines = _LINE_BREAK.split(content)
    return lines[:-1] if lines[-1] == "" else lines


# Lines of the packet


class Line(NamedTuple):
    number: int
    text: str


class Material:
    """The lines of a packet by file: the contents, and the lines of the diff, which also has the removed ones."""

    def __init__(self, files: Mapping[str, str], diff: str = "") -> None:
        self._contents = {path: [Line(*row) for row in enumerate(split_lines(text), 1)] for path, text in files.items()}
        self._changes = parse_diff(diff)
        self.paths = frozenset((*self._contents, *self._changes))

    @classmethod
    def from_packet(cls, packet: Packet) -> Material:
        spec = {packet.spec_source: packet.spec} if packet.spec and packet.spec_source else {}
        return cls(spec | {file.path: file.content for file in packet.files}, packet.diff)

    def line(self, path: str, number: int) -> str:
        """Return the text of a line; empty if it does not exist, is blank or was not sent."""
        rows = self._contents.get(path) or self._changes.get(path, [])
        return next((row.text for row in rows if row.number == number and row.text.strip()), "")

    def find_quote(self, path: str, quote: str) -> list[tuple[int, int]]:
        """Return the first and last line of every place where the file contains the quote; whitespace is ignored."""
        for rows in (self._contents.get(path, []), self._changes.get(path, [])):
            for form in _quote_forms(quote):
                if found := _find_text(rows, form):
                    return found
        return []


def parse_diff(diff: str) -> dict[str, list[Line]]:
    """Return the lines of a unified diff by file, numbered as in the new file; a removed line has the number of the next one."""
    files: dict[str, list[Line]] = {}
    path, number = "", 0
    for row in _LINE_BREAK.split(diff):
        if row.startswith(("+++ ", "--- ")):
            name = normalize_path(row[4:].partition("\t")[0].strip('"'))
            path = path if name == "/dev/null" else name.removeprefix("a/").removeprefix("b/")
            number = 0
        elif hunk := _HUNK.match(row):
            number = max(1, int(hunk[1]))
        elif number and path and row[:1] in ("+", " ", "-"):
            files.setdefault(path, []).append(Line(number, row[1:]))
            number += row[0] != "-"
    return files


def _quote_forms(quote: str) -> Iterable[str]:
    """Return the quote, then without what models add to a copy: line numbers, fences, diff signs, escapes."""
    bare = _CODE_FENCE.sub("", quote).strip().strip("`").strip()
    unnumbered = _LINE_NUMBER_PREFIX.sub("", bare)
    unmarked = _DIFF_PREFIX.sub("", unnumbered)
    unescaped = unnumbered.replace('\\"', '"').replace("\\t", "\t").replace("\\n", "\n").replace("\\\\", "\\")
    unescaped = _UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)), unescaped)
    forms = [quote, bare, unnumbered, unmarked, unescaped]
    return dict.fromkeys([*forms, *(form.rstrip(" .…") for form in forms)])


def _find_text(rows: Sequence[Line], quote: str) -> list[tuple[int, int]]:
    wanted = "".join(quote.split())
    if not any(sign.isalnum() for sign in wanted):
        return []
    if len(wanted) < MIN_QUOTE_CHARS:
        return [(row.number, row.number) for row in rows if "".join(row.text.split()) == wanted]
    text, numbers, starts = _squeeze(rows)
    found, at = [], text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if _is_boundary(text, starts, at) and _is_boundary(text, starts, end):
            found.append((numbers[at], numbers[end - 1]))
        at = text.find(wanted, at + 1)
    return found


def _squeeze(rows: Sequence[Line]) -> tuple[str, list[int], set[int]]:
    """Return the text without whitespace, the line number of each character, and the characters that follow whitespace."""
    pieces: list[str] = []
    numbers: list[int] = []
    starts: set[int] = set()
    for row in rows:
        for word in row.text.split():
            starts.add(len(numbers))
            pieces.append(word)
            numbers += [row.number] * len(word)
    return "".join(pieces), numbers, starts


def _is_boundary(text: str, starts: set[int], at: int) -> bool:
    """Return whether a word may start or end here."""
    if at in (0, len(text)) or at in starts:
        return True
    return not (_is_word(text[at - 1]) and _is_word(text[at]))


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


# Place of a finding


@dataclass(frozen=True, slots=True)
class Place:
    """Checked place of a finding.

    `path` is a file of the packet, also if the line does not exist. `line` is 0 without a usable line. `first` and
    `last` are the quoted lines. `code` is the text of the line.
    """

    state: LocationState = "unlocated"
    path: str = ""
    line: int = 0
    first: int = 0
    last: int = 0
    code: str = ""
    quote: QuoteState = ""
    stated: bool = False  # the finding names a file and a line


def find_place(location: str, ref: str, quote: str, material: Material) -> Place:
    """Check a location against the packet; a quote that occurs in the file corrects the line."""
    stated = parse_location(location) or parse_location(ref)
    name = stated[0] if stated else parse_path(location) or parse_path(ref)
    path = match_file(name, material.paths) if name else None
    line = stated[1] if stated else 0
    if path is None:
        return Place(quote="not_found" if quote.strip() else "", stated=bool(stated))
    spans, quoted = _find_spans(path, line, quote, material)
    if spans:
        return _verified_place(path, line, spans, material, bool(stated))
    code = material.line(path, line) if line else ""
    if not code:
        return Place("unlocated", path, quote=quoted, stated=bool(stated))
    return Place("located", path, line, code=code, quote=quoted, stated=True)


def _find_spans(path: str, line: int, quote: str, material: Material) -> tuple[list[tuple[int, int]], QuoteState]:
    if not quote.strip():
        return [], ""
    too_long = len(quote) > MAX_QUOTE_CHARS
    if too_long or len([row for row in _LINE_BREAK.split(quote) if row.strip()]) > MAX_QUOTE_LINES:
        return [], "too_long"
    spans = material.find_quote(path, quote)
    if not spans:
        return [], "not_found"
    return ([], "ambiguous") if len(spans) > 1 and not line else (spans, "found")


def _verified_place(path: str, line: int, spans: list[tuple[int, int]], material: Material, stated: bool) -> Place:
    first, last = min(spans, key=lambda span: (max(span[0] - line, line - span[1], 0), span))
    exact = line if first <= line <= last and material.line(path, line) else first
    code = material.line(path, exact)
    if last - first >= MAX_SHARED_LINES:
        first, last = max(first, exact - 1), min(last, max(exact + 1, first + MAX_SHARED_LINES - 1))
    return Place("verified", path, exact, first, last, code, "found", stated)
