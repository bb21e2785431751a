"""Split documents into passages and index them with in-memory SQLite full-text search."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from threading import Lock

from council.rules.queries import STOP_WORDS

PASSAGE_WORDS = 100  # per passage, about the size of a snippet
CHARS_PER_WORD = 6  # average characters of a word, for text without spaces
MAX_TERMS = 64
INDEX_SCHEMA = "CREATE VIRTUAL TABLE words USING fts5(name, heading, body, content='', tokenize='porter unicode61 remove_diacritics 2')"
MARKDOWN_SUFFIXES = {".md", ".markdown", ".mdx"}
HTML_SUFFIXES = {".html", ".htm", ".xhtml"}
HEADING = re.compile(r"#{1,6}\s+(.+?)[\s#]*")
CODE_FENCE = re.compile(r"\s*(?:```|~~~)")
UNSPACED_SCRIPT = re.compile(
    r"([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff])"
)  # scripts without spaces
SCRIPT_BLOCK = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)", re.I | re.S)
HTML_TAG = re.compile(r"<!--[^<>]*-->|</?[a-zA-Z!][^<>]*>")

Lines = Iterable[tuple[int, str]]  # a number and a line


@dataclass(frozen=True, slots=True)
class Passage:
    name: str
    heading: str
    location: str  # line 40, page 3
    text: str

    @property
    def title(self) -> str:
        return f"{self.name}{': ' if self.heading else ''}{self.heading} ({self.location})"


def split_passages(name: str, text: str) -> Iterator[Passage]:
    """Yield the passages of one document, each with its heading and its first line or page."""
    suffix = PurePosixPath(name.lower()).suffix
    if suffix == ".pdf":
        for n, page in enumerate(text.split("\f"), 1):
            yield from (Passage(name, "", f"page {n}", piece) for _, piece in _split_pieces(_number_lines(page)))
        return
    if suffix in HTML_SUFFIXES:
        text = HTML_TAG.sub("", SCRIPT_BLOCK.sub(lambda found: "\n" * found[0].count("\n"), text))
    for heading, lines in _split_sections(text) if suffix in MARKDOWN_SUFFIXES else [("", _number_lines(text))]:
        yield from (Passage(name, heading, f"line {line}", piece) for line, piece in _split_pieces(lines))


def _number_lines(text: str) -> Lines:
    return enumerate(text.split("\n"), 1)


def _split_sections(text: str) -> Iterator[tuple[str, Lines]]:
    heading, lines, in_code = "", list[tuple[int, str]](), False
    for number, line in _number_lines(text):
        in_code ^= bool(CODE_FENCE.match(line))
        if not in_code and (found := HEADING.fullmatch(line)):
            yield heading, lines
            heading, lines = found[1], []
        else:
            lines.append((number, line))
    yield heading, lines


def _split_pieces(lines: Lines) -> Iterator[tuple[int, str]]:
    """Group whole lines into passages; after half a passage, split at an empty line."""
    start, kept, size = 0, list[str](), 0
    for number, line in _split_long_lines(lines):
        weight = _count_words(line)
        if kept and (size + weight > PASSAGE_WORDS or (not weight and size > PASSAGE_WORDS // 2)):
            yield start, "\n".join(kept)
            kept, size = [], 0
        if weight:
            start = start if kept else number
            kept.append(line)
            size += weight
    if kept:
        yield start, "\n".join(kept)


def _count_words(line: str) -> int:
    return max(len(line.split()), len(line.strip()) // CHARS_PER_WORD) or bool(line.strip())


def _split_long_lines(lines: Lines) -> Iterator[tuple[int, str]]:
    """Split lines that are longer than a passage."""
    longest = PASSAGE_WORDS * CHARS_PER_WORD
    for number, line in lines:
        while len(line) > longest:
            at = line.rfind(" ", longest // 2, longest) + 1 or longest
            yield number, line[:at]
            line = line[at:]
        yield number, line


class PassageIndex:
    """Thread-safe full-text index of passages."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self._lock = Lock()
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute(INDEX_SCHEMA)

    def add(self, name: str, text: str) -> None:
        made = list(split_passages(name, text))
        first = len(self.passages)
        rows = [
            (
                first + n,
                _separate_characters(one.name),
                _separate_characters(one.heading),
                _separate_characters(one.text),
            )
            for n, one in enumerate(made)
        ]
        with self._lock:
            self.passages += made
            self._db.executemany("INSERT INTO words (rowid, name, heading, body) VALUES (?, ?, ?, ?)", rows)

    def search(self, query: str, max_results: int) -> list[tuple[int, Passage]]:
        """Return the best matching passages with their numbers; ties keep document order."""
        terms = match_expression(query)
        if not terms:
            return []
        asked = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words, 2.0, 3.0, 1.0), rowid LIMIT ?"
        with self._lock:
            rows = self._db.execute(asked, (terms, max_results)).fetchall()
        return [(n, self.passages[n]) for (n,) in rows]

    def close(self) -> None:
        with self._lock:
            self._db.close()


def match_expression(query: str) -> str:
    """Return an FTS5 expression that matches any word. Words are quoted, so they cannot contain query syntax."""
    words = re.findall(r"[^\W_]+", _separate_characters(unicodedata.normalize("NFC", query)).lower())
    telling = [word for word in words if word not in STOP_WORDS] or words
    return " OR ".join(f'"{word}"' for word in list(dict.fromkeys(telling))[:MAX_TERMS])


def _separate_characters(text: str) -> str:
    """Separate each character of scripts without spaces, so that it is indexed as a word."""
    return UNSPACED_SCRIPT.sub(r" \1 ", text)
