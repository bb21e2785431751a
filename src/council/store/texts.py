"""Texts of a run, stored once: rows refer to them by number.

A prompt is part of a request and of an event; an answer is part of the results of an attempt and of its step, of a statement and
of later prompts. Every long text is one row of the table `texts`, compressed from 2 KB on, and the JSON of the other rows has a
reference in its place: a list of numbers, and of pieces that are too short for a row.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from council.store.interface import Row

MIN_CHARS = 160  # shorter texts stay in their row
MIN_COMPRESSED_BYTES = 2048  # compressing a shorter text costs more time than its space is worth
PLAIN_MARK = b"\0"  # first byte of a text that is not compressed
REFERENCE, ENCODED = "$text", "$json"
REQUEST_MARK = b"\0"  # first byte of a request with references; JSON never starts with it
dump_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class TextWriter:
    """Replaces the long texts of a run's rows by references, and stores the texts."""

    def __init__(self, db: sqlite3.Connection, run: str) -> None:
        self._db, self._run = db, run
        self._numbers: dict[bytes, int] = {}  # by digest
        self._next = 0
        (setup,) = db.execute("SELECT setup FROM runs WHERE id = ?", (run,)).fetchone() or ("{}",)
        self._question = _find_question(setup)  # many prompts contain it
        for n, body in db.execute("SELECT n, body FROM texts WHERE run = ?", (run,)):
            self._next = max(self._next, n + 1)
            with suppress(zlib.error):  # damaged: rows that refer to it cannot be read, but the run can be written
                self._numbers[_digest(decompress_text(body))] = n

    def pack_rows(self, rows: Iterable[Row]) -> list[Row]:
        """Return rows with references instead of long texts: in JSON objects and in requests."""
        for table, values in rows:
            if table in ("run", "queue"):
                self._question = _find_question(str(values[-1]))
        return [(table, tuple(map(self._pack_value, values))) for table, values in rows]

    def _pack_value(self, value: object) -> object:
        if isinstance(value, dict):
            return self.pack(value)
        return self.pack_request(value) if isinstance(value, bytes) else value

    def pack(self, value: Any) -> str:
        """Return the JSON of a value with references."""
        return dump_compact(self._replace_texts(value))

    def pack_request(self, body: bytes) -> bytes:
        """Return a request with references if it is JSON that can be restored exactly; any other is returned as it is."""
        with suppress(ValueError, RecursionError):  # not JSON, or a lone surrogate
            value = json.loads(body)
            if dump_compact(value).encode() == body:
                return REQUEST_MARK + self.pack(value).encode()
        return REQUEST_MARK * 2 + body if body.startswith(REQUEST_MARK) else body

    def _replace_texts(self, value: Any) -> Any:
        if isinstance(value, str):
            return value if len(value) < MIN_CHARS else {REFERENCE: self._refer(value)}
        if isinstance(value, dict):
            if REFERENCE in value:  # not ours
                return {REFERENCE: self._refer(dump_compact(value)), ENCODED: True}
            return {key: self._replace_texts(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._replace_texts(item) for item in value]
        return value

    def _refer(self, text: str) -> list[int | str]:
        pieces = list[str]()
        for part in text.split(self._question) if self._question else [text]:
            pieces += [*_divide(part), self._question]
        pieces.pop()
        return [piece if len(piece) < MIN_CHARS else self._number(piece) for piece in pieces if piece]

    def _number(self, piece: str) -> int:
        data = piece.encode()
        key = _digest(data)
        if key not in self._numbers:
            row = (self._run, self._next, compress_text(data))
            self._db.execute("INSERT INTO texts (run, n, body) VALUES (?, ?, ?)", row)
            self._numbers[key] = self._next
            self._next += 1
        return self._numbers[key]


class TextReader:
    """Restores the texts of a run's rows."""

    def __init__(self, db: sqlite3.Connection, run: str) -> None:
        self._db, self._run = db, run
        self._texts: dict[int, str] = {}

    def unpack(self, stored: str) -> Any:
        value = json.loads(stored)
        return self._restore_texts(value) if REFERENCE in stored else value

    def unpack_request(self, stored: bytes) -> bytes:
        if not stored.startswith(REQUEST_MARK):
            return stored
        if stored.startswith(REQUEST_MARK * 2):
            return stored[2:]
        return dump_compact(self.unpack(stored[1:].decode())).encode()

    def _restore_texts(self, value: Any) -> Any:
        if isinstance(value, dict):
            if REFERENCE in value:
                text = "".join(piece if isinstance(piece, str) else self._text(piece) for piece in value[REFERENCE])
                return json.loads(text) if ENCODED in value else text
            return {key: self._restore_texts(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._restore_texts(item) for item in value]
        return value

    def _text(self, n: int) -> str:
        if n not in self._texts:
            row = self._db.execute("SELECT body FROM texts WHERE run = ? AND n = ?", (self._run, n)).fetchone()
            if row is None:
                raise ValueError(f"text {n} is missing")
            try:
                self._texts[n] = decompress_text(row[0]).decode()
            except zlib.error as error:
                raise ValueError(f"text {n}: {error}") from error
        return self._texts[n]


def _divide(text: str) -> list[str]:
    """Divide a prompt around the lines that begin and end a quotation, and after the part of a packet that all seats get."""
    if "<<<" not in text and ">>>" not in text and "\n  },\n" not in text:
        return [text]
    lines, pieces, start = text.split("\n"), list[str](), 0
    for n, line in enumerate(lines):
        if line[:3] == "<<<" or line[-3:] == ">>>" or line == "  },":
            before = ["\n".join(lines[start:n]), "\n"] if n > start else []
            pieces += [*before, line, "\n" if n + 1 < len(lines) else ""]
            start = n + 1
    return [*pieces, "\n".join(lines[start:])]


def _find_question(setup: str) -> str:
    """Return the question of a run if it is long, or ""."""
    question = (json.loads(setup).get("question") or {}).get("text") or ""
    return question if len(question) >= MIN_CHARS else ""


def compress_text(data: bytes) -> bytes:
    return zlib.compress(data, 1) if len(data) >= MIN_COMPRESSED_BYTES else PLAIN_MARK + data


def decompress_text(body: bytes) -> bytes:
    return body[1:] if body.startswith(PLAIN_MARK) else zlib.decompress(body)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
