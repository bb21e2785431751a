"""Locations of findings: parse them, look the file up in the packet, and find quoted lines in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from council.engine.prompting import neutralize_marks
from council.protocols.judges.defects import find_words
from council.protocols.judges.scopes import Definition, Line, find_definition, read_hunk_header
from council.types import LINE_BREAK, Packet, PacketFile
from council.unified_diff import FileDiff, parse_diff

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
# Makefile:3, with nothing around it
_NAMED = re.compile(rf"\s*(?P<path>[A-Za-z]\w{{1,60}}){_LINE_MARK}\s*", re.IGNORECASE)
_PATH_WORD = re.compile(r"(?<![\w/:.\\-])[\w./\\@+~\[\]-]{1,300}")
_TICKED = re.compile(r"`([^`\n]{1,400})`")
_LINE_NUMBER_PREFIX = re.compile(r"^[ \t]*(?:\d{1,7}[ \t]*[+-]?|[+-])[ \t]*\|[ \t]?", re.MULTILINE)
_LOOSE_PREFIX = re.compile(r"^[ \t]*\d{1,7}(?::|[ \t]+[+-])[ \t]", re.MULTILINE)
_DIFF_PREFIX = re.compile(r"^[+-](?![+-])", re.MULTILINE)
_UNICODE_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
ESCAPES = (("\\r\\n", "\n"), ('\\"', '"'), ("\\t", "\t"), ("\\n", "\n"), ("\\\\", "\\"))
_CODE_FENCE = re.compile(r"^\s*```\w*\s*$", re.MULTILINE)
_COMMIT_ID = re.compile(r"\b[0-9a-f]{7,40}\b")
COMMIT = "commit "  # start of the name of a commit message among the paths


def parse_location(text: str) -> tuple[str, int] | None:
    """Return the first file and line in the text, or None. URLs and times of day do not count."""
    short = text[:MAX_TEXT_CHARS]
    if alone := _NAMED.fullmatch(short):
        return alone["path"], int(alone["line"])
    quoted = filter(None, (_QUOTED.fullmatch(ticked[1]) for ticked in _TICKED.finditer(short)))
    places = (place for place in (*quoted, *_BARE.finditer(_TICKED.sub(r"\1", short))) if _is_file_path(place["path"]))
    return next(((normalize_path(place["path"]), int(place["line"])) for place in places), None)


def _is_file_path(path: str) -> bool:
    return ("/" in path or "." in path or "\\" in path) and any(sign.isalpha() for sign in path) and "//" not in path


def parse_path(text: str) -> str:
    """Return the first file in a text without a usable line: `src/auth.py`, `src/auth.py:0`; empty if there is none."""
    words = (normalize_path(found[0]).rstrip(".:,;") for found in _PATH_WORD.finditer(text[:MAX_TEXT_CHARS]))
    return next(filter(_is_file_path, words), "")


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
    ends = [name for name in paths if f"/{name}".endswith(f"/{wanted}") or _is_absolute_form(wanted, name)]
    return ends[0] if len(ends) == 1 else None


def _is_absolute_form(wanted: str, name: str) -> bool:
    """Return whether `wanted` is an absolute path that ends with `name`."""
    return wanted.startswith("/") and wanted.endswith(f"/{name}")


# Lines of the packet


Rows = Sequence[Line | None]  # None where lines are left out: no quote goes over it


class Side:
    """Lines of a file, or of one side of its diff, prepared for the search of quotes."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    @cached_property
    def squeezed(self) -> tuple[str, list[int], set[int]]:
        return _squeeze(self.rows)

    @cached_property
    def shown(self) -> Side:
        """The lines as the packet shows them, if it changes marks that they imitate; else none."""
        shown, marks = neutralize_marks("\n".join(row.text for row in self.rows if row))
        texts = iter(shown.split("\n"))
        return Side([row and row._replace(text=next(texts)) for row in self.rows] if marks else [])


class Material:
    """The lines of a packet by file, as they were sent: the contents, the diff with the removed lines, and the
    commits.
    """

    def __init__(self, files: Mapping[str, str], diff: str = "", more: Iterable[PacketFile] = ()) -> None:
        found: dict[str, dict[int, Line]] = {}
        for file in (*(PacketFile(path, text) for path, text in files.items()), *more):
            found.setdefault(file.path, {}).update((row[0], Line(*row)) for row in file.number_lines())
        self._contents = {path: [Side(_mark_gaps(rows))] for path, rows in found.items()}
        self._changes: dict[str, list[Side]] = {}
        # The text of the header of each hunk, and the lines of the new file.
        self._hunks: dict[str, list[tuple[str, list[Line]]]] = {}
        self._words: dict[str, frozenset[str]] = {}
        for section in parse_diff(diff):
            if section.path:
                path = normalize_path(section.path)
                self._changes.setdefault(path, []).extend(_list_sides(section))
                self._hunks.setdefault(path, []).extend(_list_hunks(section))
        self.paths = frozenset((*self._contents, *self._changes))

    @classmethod
    def from_packet(cls, packet: Packet) -> Material:
        spec = {packet.spec_source: packet.spec} if packet.spec and packet.spec_source else {}
        commits = {f"{COMMIT}{text.split()[0]}": text for text in packet.commits if text.strip()}
        return cls(spec | commits, packet.diff, packet.files)

    def find_line(self, path: str, number: int) -> Line | None:
        """Return a line with this number that was sent and is not blank.

        A removed line also counts with its old number.
        """
        rows = [row for side in self._list_sides(path) for row in side.rows if row and row.text.strip()]
        exact = next((row for row in rows if row.number == number and not row.old), None)
        return exact or next((row for row in rows if number in (row.number, row.old)), None)

    def find_quote(self, path: str, quote: str, line: int = 0) -> list[tuple[int, int]]:
        """Return the first and last line of every place where the file contains the quote; whitespace is ignored.

        A quote without letters and digits counts only as whole lines at the named line.
        """
        sides, forms = self._list_sides(path), tuple(_quote_forms(quote))
        for side in (*sides, *(side.shown for side in sides)):
            for form in forms:
                if found := _find_text(side, form, line):
                    return found
        return []

    def find_commit(self, *texts: str) -> str | None:
        """Return the only commit of the packet that a text names by the start of its id."""
        named = [found[0] for text in texts for found in _COMMIT_ID.finditer(text[:MAX_TEXT_CHARS])]
        known = [path for path in self._contents if path.startswith(COMMIT)]
        ids = {path for path in known for name in named if _is_same_id(path.removeprefix(COMMIT), name)}
        return ids.pop() if len(ids) == 1 else None

    def words(self, path: str) -> frozenset[str]:
        """Return the identifiers and words of a file, as far as it was sent."""
        if path not in self._words:
            rows = [row.text for side in self._list_sides(path) for row in side.rows if row]
            self._words[path] = find_words("\n".join(rows))
        return self._words[path]

    def find_definition(self, place: Place, quote: str) -> Definition | None:
        """Return the definition that encloses a checked place, or None if it is not known."""
        if not place.line:
            return None
        wanted = "".join(quote.split()) if place.first else ""
        contents = [row for side in self._contents.get(place.path, []) for row in side.rows if row]
        for header, rows in [("", contents), *self._hunks.get(place.path, [])]:
            text = next((row.text for row in rows if row.number == place.line), "")
            if not text or (wanted and not _overlaps(text, wanted)):  # a removed line has the number of the next one
                continue
            found = find_definition(place.path, rows, place.line)
            found = found or (read_hunk_header(place.path, header, rows, place.line) if header else None)
            if found:
                return found
        return None

    def _list_sides(self, path: str) -> list[Side]:
        return [*self._contents.get(path, []), *self._changes.get(path, [])]


def _is_same_id(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _mark_gaps(lines: Mapping[int, Line]) -> Rows:
    """Return the lines in order, with None where lines are left out."""
    rows: list[Line | None] = []
    last = 0
    for number in sorted(lines):
        if number != last + 1:
            rows.append(None)
        rows.append(lines[number])
        last = number
    return rows


def _list_sides(section: FileDiff) -> list[Side]:
    """Return the lines of the new file, of the old file, and of both as the diff shows them.

    A removed line has the number of the line that now follows it; if the file is deleted, its own.
    """
    both: list[Line | None] = []
    for hunk in section.hunks:
        for line in hunk.list_lines():
            removed = line.sign == "-"
            number = (line.following or line.number) if removed else line.number
            both.append(Line(number, line.text, line.number if removed else 0))
        both.append(None)
    signs = [sign for hunk in section.hunks for sign in (*(line.sign for line in hunk.list_lines()), "")]
    added = {n for n, sign in enumerate(signs) if sign == "+"}
    new = [row for row in both if row is None or not row.old]
    old = [row for n, row in enumerate(both) if n not in added]
    return [Side(new), Side(old), Side(both)]


def _overlaps(text: str, squeezed: str) -> bool:
    line = "".join(text.split())
    return line in squeezed or squeezed in line


def _list_hunks(section: FileDiff) -> list[tuple[str, list[Line]]]:
    """Return the text after `@@` and the lines of the new file of each hunk."""
    return [
        (hunk.where.strip(), [Line(line.number, line.text) for line in hunk.list_lines() if line.sign != "-"])
        for hunk in section.hunks
    ]


def _quote_forms(quote: str) -> Iterable[str]:
    """Return the quote, then without what models add to a copy: line numbers, fences, diff signs, escapes."""
    bare = _CODE_FENCE.sub("", quote).strip().strip("`").strip()
    unnumbered = _LINE_NUMBER_PREFIX.sub("", bare)
    unmarked = _DIFF_PREFIX.sub("", unnumbered)
    loose = _LOOSE_PREFIX.sub("", bare)
    unescaped = unnumbered
    for escape, sign in ESCAPES:
        unescaped = unescaped.replace(escape, sign)
    unescaped = _UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)), unescaped)
    forms = [quote, bare, unnumbered, unmarked, unescaped, loose]
    return dict.fromkeys([*forms, *(form.rstrip(" .…") for form in forms)])


def _find_text(side: Side, quote: str, line: int) -> list[tuple[int, int]]:
    rows = side.rows
    wanted = "".join(quote.split())
    if not any(sign.isalnum() for sign in wanted):
        return _find_signs(rows, quote, line) if wanted else []
    if len(wanted) < MIN_QUOTE_CHARS:
        return [(row.number, row.number) for row in rows if row and "".join(row.text.split()) == wanted]
    text, numbers, starts = side.squeezed
    found, at = [], text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if _is_boundary(text, starts, at) and _is_boundary(text, starts, end):
            found.append((numbers[at], numbers[end - 1]))
        at = text.find(wanted, at + 1)
    return found


def _find_signs(rows: Rows, quote: str, line: int) -> list[tuple[int, int]]:
    """Return where whole lines of signs are at the named line: such lines occur too often to name a place
    themselves.
    """
    wanted = [one for row in LINE_BREAK.split(quote) if (one := "".join(row.split()))]
    texts = ["".join(row.text.split()) if row else None for row in rows]
    for at in range(len(rows) - len(wanted) + 1):
        if texts[at : at + len(wanted)] == wanted:
            numbers = [row.number for row in rows[at : at + len(wanted)] if row]
            if min(numbers) <= line <= max(numbers):
                return [(min(numbers), max(numbers))]
    return []


def _squeeze(rows: Rows) -> tuple[str, list[int], set[int]]:
    """Return the text without whitespace, the line number of each character, and the characters that follow whitespace.

    A line break, which no quote has then, stands for lines that are left out.
    """
    pieces: list[str] = []
    numbers: list[int] = []
    starts: set[int] = set()
    for row in rows:
        for word in row.text.split() if row else ["\n"]:
            starts.add(len(numbers))
            pieces.append(word)
            numbers += [row.number if row else 0] * len(word)
    return "".join(pieces), numbers, starts


def _is_boundary(text: str, starts: set[int], at: int) -> bool:
    """Return whether a word may start or end here."""
    return at in starts or not all(sign.isalnum() or sign == "_" for sign in (text[at - 1 : at], text[at : at + 1]))


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

    @property
    def is_file(self) -> bool:
        """Return whether the place is in a file, not in the message of a commit."""
        return bool(self.path) and not self.path.startswith(COMMIT)


def find_place(location: str, ref: str, quote: str, material: Material) -> Place:
    """Check a location against the packet; a quote that occurs in the file corrects the line."""
    stated = parse_location(location) or parse_location(ref)
    name = stated[0] if stated else parse_path(location) or parse_path(ref)
    path = match_file(name, material.paths) if name else None
    path = path or material.find_commit(location, ref)
    line = stated[1] if stated else 0
    if path is None:
        return Place(quote="not_found" if quote.strip() else "", stated=bool(stated))
    spans, quoted = _find_spans(path, line, quote, material)
    if spans:
        return _verified_place(path, line, spans, material, bool(stated))
    found = material.find_line(path, line) if line else None
    if not found:
        return Place("unlocated", path, quote=quoted, stated=bool(stated))
    return Place("located", path, found.number, code=found.text, quote=quoted, stated=True)


def _find_spans(path: str, line: int, quote: str, material: Material) -> tuple[list[tuple[int, int]], QuoteState]:
    if not quote.strip():
        return [], ""
    too_long = len(quote) > MAX_QUOTE_CHARS
    if too_long or len([row for row in LINE_BREAK.split(quote) if row.strip()]) > MAX_QUOTE_LINES:
        return [], "too_long"
    spans = material.find_quote(path, quote, line)
    if not spans:
        return [], "not_found"
    return ([], "ambiguous") if len(spans) > 1 and not line else (spans, "found")


def _verified_place(path: str, line: int, spans: list[tuple[int, int]], material: Material, stated: bool) -> Place:
    first, last = min(spans, key=lambda span: (max(span[0] - line, line - span[1], 0), span))
    exact = line if first <= line <= last and material.find_line(path, line) else first
    found = material.find_line(path, exact)
    if last - first >= MAX_SHARED_LINES:
        first, last = max(first, exact - 1), min(last, max(exact + 1, first + MAX_SHARED_LINES - 1))
    return Place("verified", path, exact, first, last, found.text if found else "", "found", stated)
