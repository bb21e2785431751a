"""Split documents into passages and index them with in-memory SQLite full-text search."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from threading import Lock

from council.rules.queries import STOP

WORDS = 100  # per passage, about the size of a snippet
LETTERS = 6  # average characters of a word, for text without spaces
MOST_TERMS = 64
SCHEMA = "CREATE VIRTUAL TABLE words USING fts5(name, heading, body, content='', tokenize='porter unicode61 remove_diacritics 2')"
MARKDOWN = {".md", ".markdown", ".mdx"}
PAGES = {".html", ".htm", ".xhtml"}
HEADING = re.compile(r"#{1,6}\s+(.+?)[\s#]*")
CODE = re.compile(r"\s*(?:```|~~~)")
UNSPACED = re.compile(
    r"([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff])"
)  # scripts without spaces
BLOCK = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)", re.I | re.S)
TAG = re.compile(r"<!--[^<>]*-->|</?[a-zA-Z!][^<>]*>")

Lines = Iterable[tuple[int, str]]  # a number and a line


@dataclass(frozen=True, slots=True)
class Passage:
    name: str
    heading: str
    where: str  # line 40, page 3
    text: str

    @property
    def title(self) -> str:
        return f"{self.name}{': ' if self.heading else ''}{self.heading} ({self.where})"


def passages(name: str, text: str) -> Iterator[Passage]:
    """Yield the passages of one document, each with its heading and its first line or page."""
    suffix = PurePosixPath(name.lower()).suffix
    if suffix == ".pdf":
        for n, page in enumerate(text.split("\f"), 1):
            yield from (Passage(name, "", f"page {n}", piece) for _, piece in _pieces(_numbered(page)))
        return
    if suffix in PAGES:
        text = TAG.sub("", BLOCK.sub(lambda found: "\n" * found[0].count("\n"), text))
    for heading, lines in _sections(text) if suffix in MARKDOWN else [("", _numbered(text))]:
        yield from (Passage(name, heading, f"line {line}", piece) for line, piece in _pieces(lines))


def _numbered(text: str) -> Lines:
    return enumerate(text.split("\n"), 1)


def _sections(text: str) -> Iterator[tuple[str, Lines]]:
    heading, lines, in_code = "", list[tuple[int, str]](), False
    for number, line in _numbered(text):
        in_code ^= bool(CODE.match(line))
        if not in_code and (found := HEADING.fullmatch(line)):
            yield heading, lines
            heading, lines = found[1], []
        else:
            lines.append((number, line))
    yield heading, lines


def _pieces(lines: Lines) -> Iterator[tuple[int, str]]:
    """Group whole lines into passages; after half a passage, split at an empty line."""
    start, kept, size = 0, list[str](), 0
    for number, line in _short(lines):
        weight = _weight(line)
        if kept and (size + weight > WORDS or (not weight and size > WORDS // 2)):
            yield start, "\n".join(kept)
            kept, size = [], 0
        if weight:
            start = start if kept else number
            kept.append(line)
            size += weight
    if kept:
        yield start, "\n".join(kept)


def _weight(line: str) -> int:
    return max(len(line.split()), len(line.strip()) // LETTERS) or bool(line.strip())


def _short(lines: Lines) -> Iterator[tuple[int, str]]:
    """Split lines that are longer than a passage."""
    longest = WORDS * LETTERS
    for number, line in lines:
        while len(line) > longest:
            at = line.rfind(" ", longest // 2, longest) + 1 or longest
            yield number, line[:at]
            line = line[at:]
        yield number, line


class Index:
    """Thread-safe full-text index of passages."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self._lock = Lock()
        self._rows = sqlite3.connect(":memory:", check_same_thread=False)
        self._rows.execute(SCHEMA)

    def add(self, name: str, text: str) -> None:
        made = list(passages(name, text))
        first = len(self.passages)
        rows = [(first + n, _spaced(one.name), _spaced(one.heading), _spaced(one.text)) for n, one in enumerate(made)]
        with self._lock:
            self.passages += made
            self._rows.executemany("INSERT INTO words (rowid, name, heading, body) VALUES (?, ?, ?, ?)", rows)

    def find(self, query: str, most: int) -> list[tuple[int, Passage]]:
        """Return the best matching passages with their numbers; ties keep document order."""
        terms = expression(query)
        if not terms:
            return []
        asked = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words, 2.0, 3.0, 1.0), rowid LIMIT ?"
        with self._lock:
            rows = self._rows.execute(asked, (terms, most)).fetchall()
        return [(n, self.passages[n]) for (n,) in rows]

    def close(self) -> None:
        with self._lock:
            self._rows.close()


def expression(query: str) -> str:
    """Return an FTS5 expression that matches any word. Words are quoted, so they cannot contain query syntax."""
    words = re.findall(r"[^\W_]+", _spaced(unicodedata.normalize("NFC", query)).lower())
    telling = [word for word in words if word not in STOP] or words
    return " OR ".join(f'"{word}"' for word in list(dict.fromkeys(telling))[:MOST_TERMS])


def _spaced(text: str) -> str:
    """Separate each character of scripts without spaces, so that it is indexed as a word."""
    return UNSPACED.sub(r" \1 ", text)
