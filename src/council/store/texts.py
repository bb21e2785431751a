"""Texts of runs: each is stored once, rows refer to it by number, and runs are found by its words.

A prompt is part of a request and of an event; an answer is part of the results of an attempt and of its step, of a
statement and of later prompts. Every long text is one row of the table `texts`, compressed from 2 KB on, and the JSON
of the other rows has a reference in its place: a list of numbers, and of pieces that are too short for a row.

A search matches parts of words. The table `search_words` has every word once; SQLite's full-text index says which runs
contain a word. A run is indexed when it is closed; a search reads the texts of other runs, and of all runs if SQLite
has no full-text search.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import Any

from council.store.interface import Connection, Row
from council.store.summaries import NO_FILTERS, ORDER, make_conditions
from council.types import JsonBytes

# Storage

MIN_CHARS = 160  # shorter texts stay in their row
MIN_COMPRESSED_BYTES = 2048  # compressing a shorter text costs more time than its space is worth
PLAIN_MARK = b"\0"  # first byte of a text that is not compressed
REFERENCE, ENCODED = "$text", "$json"
ATTACHED_MARK = '"attachments": [{'  # in the setup of a run with attachments
BASE64_MARK = ";base64,"
REQUEST_MARK = b"\0"  # first byte of a request with references; JSON never starts with it
dump_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class TextWriter:
    """Replaces the long texts of a run's rows by references, and stores the texts."""

    def __init__(self, db: Connection, run: str, *, is_new: bool = False) -> None:
        """`is_new`: nothing of the run is stored yet."""
        self._db, self._run = db, run
        self._numbers: dict[bytes, int] = {}  # by digest
        self._next, self._question = 0, ""
        self._references: dict[str, list[int | str]] = {}  # of the texts of one batch, where most are repeated
        self.save: Callable[[tuple[object, ...]], object] | None = None  # gets the texts instead of the database
        if not is_new:
            self._read_stored(db, run)

    def _read_stored(self, db: Connection, run: str) -> None:
        (setup,) = db.execute("SELECT setup FROM runs WHERE id = ?", (run,)).fetchone() or ("{}",)
        self._question = _find_question(json.loads(setup))  # many prompts contain it
        for n, body in db.execute("SELECT n, body FROM texts WHERE run = ?", (run,)):
            self._next = max(self._next, n + 1)
            with suppress(zlib.error):  # damaged: rows that refer to it cannot be read, but the run can be written
                self._numbers[_digest(decompress_text(body))] = n

    def pack_rows(self, rows: Iterable[Row]) -> list[Row]:
        """Return rows with references instead of long texts: in JSON objects and in requests."""
        packed: list[Row] = []
        for table, values in rows:
            if table in ("run", "queue", "detach"):
                values = (*values[:-1], self._pack_setup(str(values[-1])))
            packed.append((table, tuple([self._pack_value(value) for value in values])))
        self._references.clear()
        return packed

    def _pack_setup(self, stored: str) -> str:
        """Return a setup with references instead of the contents of attachments, which are also parts of requests."""
        setup = json.loads(stored)
        self._question = _find_question(setup)
        if ATTACHED_MARK not in stored:
            return stored
        for one in _list_attachments(setup):
            one["data"] = {REFERENCE: self._refer(one["data"])}
        return json.dumps(setup, ensure_ascii=False)

    def _pack_value(self, value: object) -> object:
        if isinstance(value, dict):
            return self.pack(value)
        return self.pack_request(value) if isinstance(value, bytes) else value

    def pack(self, value: Any) -> str:
        """Return the JSON of a value with references."""
        return dump_compact(self._replace_texts(value))

    def pack_request(self, body: bytes) -> bytes:
        """Return a request with references if it is JSON that can be restored exactly, any other as it is."""
        if isinstance(body, JsonBytes):
            return REQUEST_MARK + self.pack(body.value).encode()
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
        if (known := self._references.get(text)) is not None:
            return known
        pieces = list[str]()
        for part in text.split(self._question) if self._question else [text]:
            pieces += [*_divide(part), self._question]
        pieces.pop()
        found = [piece if len(piece) < MIN_CHARS else self._number(piece) for piece in pieces if piece]
        self._references[text] = found
        return found

    def _number(self, piece: str) -> int:
        data = piece.encode()
        key = _digest(data)
        if key not in self._numbers:
            row = (self._run, self._next, compress_text(data))
            if self.save:
                self.save(row)
            else:
                self._db.execute("INSERT INTO texts (run, n, body) VALUES (?, ?, ?)", row)
            self._numbers[key] = self._next
            self._next += 1
        return self._numbers[key]


class TextReader:
    """Restores the texts of a run's rows."""

    def __init__(self, db: Connection, run: str) -> None:
        self._db, self._run = db, run
        self._texts: dict[int, str] = {}
        self._stored: dict[int, bytes] = {}

    def read_all(self) -> TextReader:
        """Read all texts of the run at once."""
        rows = self._db.execute("SELECT n, body FROM texts WHERE run = ?", (self._run,))
        self._stored = dict(rows.fetchall())
        return self

    def unpack(self, stored: str) -> Any:
        value = json.loads(stored)
        return self._restore_texts(value) if REFERENCE in stored else value

    def unpack_setup(self, stored: str) -> Any:
        value = json.loads(stored)
        if ATTACHED_MARK in stored:
            for one in _list_attachments(value):
                one["data"] = self._restore_texts(one["data"])
        return value

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
            body = self._stored.get(n) or self._read(n)
            try:
                self._texts[n] = decompress_text(body).decode()
            except zlib.error as error:
                raise ValueError(f"text {n}: {error}") from error
        return self._texts[n]

    def _read(self, n: int) -> bytes:
        row = self._db.execute("SELECT body FROM texts WHERE run = ? AND n = ?", (self._run, n)).fetchone()
        if row is None:
            raise ValueError(f"text {n} is missing")
        return bytes(row[0])


def _list_attachments(setup: Any) -> list[Any]:
    """Return the attachments of a setup."""
    packet = setup.get("packet") or {}
    return [one for one in packet.get("attachments") or () if isinstance(one, dict) and "data" in one]


def _divide(text: str) -> list[str]:
    """Divide a prompt around the lines that begin and end a quotation or the packet.

    A `data:` URL is divided before its content, which other wires send without the start.
    """
    if text.startswith("data:") and (start := text.find(BASE64_MARK, 0, 100)) > 0:
        return [text[: start + len(BASE64_MARK)], text[start + len(BASE64_MARK) :]]
    if "<<<" not in text and ">>>" not in text:
        return [text]
    lines, pieces, start = text.split("\n"), list[str](), 0
    for n, line in enumerate(lines):
        if line[:3] == "<<<" or line[-3:] == ">>>":
            before = ["\n".join(lines[start:n]), "\n"] if n > start else []
            pieces += [*before, line, "\n" if n + 1 < len(lines) else ""]
            start = n + 1
    return [*pieces, "\n".join(lines[start:])]


def _find_question(setup: Any) -> str:
    """Return the question of a run if it is long, or ""."""
    question = (setup.get("question") or {}).get("text") or ""
    return question if len(question) >= MIN_CHARS else ""


def compress_text(data: bytes) -> bytes:
    return zlib.compress(data, 1) if len(data) >= MIN_COMPRESSED_BYTES else PLAIN_MARK + data


def decompress_text(body: bytes) -> bytes:
    return body[1:] if body.startswith(PLAIN_MARK) else zlib.decompress(body)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


# Search

WORD = re.compile(r"\w+")
PIECE_CHARS = 64  # longer words are indexed in pieces, each starting in the middle of the one before
MAX_WORD_CHARS = PIECE_CHARS // 2  # a longer search word may be divided in the index
# A search word with more words or matches is looked up in the texts: runs that contain it are frequent.
MAX_WORDS, MAX_MATCHES = 5000, 300_000
MAX_LISTED = 2000
NOT_INDEXED = (
    "SELECT id FROM summaries WHERE indexed = 0 AND status NOT IN ('queued', 'running') ORDER BY n DESC LIMIT ?"
)
CREATE_SEARCH_INDEX = """CREATE VIRTUAL TABLE search_index USING fts5(words, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_'")"""
KNOWN_WORDS = "SELECT word FROM search_words WHERE word IN (SELECT value FROM json_each(?))"
SEARCHABLE = """SELECT json_extract(setup, '$.question.text', '$.none') FROM runs WHERE id = ?1 AND json_valid(setup) UNION ALL
       SELECT json_extract(body, '$.said', '$.verdict.answer') FROM events WHERE run = ?1 AND type IN ('statement', 'closed') AND json_valid(body)"""


def index_run(db: Connection, run: str) -> None:
    """Index a run that has ended. If that fails, a search reads its texts."""
    n, is_indexed = _find_document(db, run)
    if is_indexed:
        return
    with _only_index(db):
        words = _list_words(db, run)
        db.execute("INSERT INTO search_index (rowid, words) VALUES (?, ?)", (n, " ".join(words)))
        db.execute("INSERT OR IGNORE INTO search_words SELECT value FROM json_each(?)", (json.dumps(words),))
        db.execute("UPDATE summaries SET indexed = 1 WHERE n = ?", (n,))


def unindex_run(db: Connection, run: str, *, forget_words: bool = False) -> None:
    """Remove a run that changes or is deleted from the index; also the words that no other run has."""
    n, is_indexed = _find_document(db, run)
    if not is_indexed:
        return
    with _only_index(db):
        words = _list_words(db, run)
        document = " ".join(words)
        db.execute("INSERT INTO search_index (search_index, rowid, words) VALUES ('delete', ?, ?)", (n, document))
        known = db.execute(KNOWN_WORDS, (json.dumps(words),)).fetchall() if forget_words else []
        unused = [row for row in known if not _find_documents(db, row[0], 1)]
        db.executemany("DELETE FROM search_words WHERE word = ?", unused)
    db.execute("UPDATE summaries SET indexed = 0 WHERE n = ?", (n,))


def index_older_runs(db: Connection, count: int) -> int:
    """Index runs of an older version. Return how many are indexed now: 0 at the end, or without full-text search."""
    runs = [run for (run,) in db.execute(NOT_INDEXED, (count,)).fetchall()] if has_index(db) else []
    for run in runs:
        index_run(db, run)
    return sum(_find_document(db, run)[1] for run in runs)


def reset_index(db: Connection) -> None:
    """Make an empty index."""
    with suppress(db.OperationalError):  # without full-text search
        db.execute("DROP TABLE IF EXISTS search_index")
        db.execute(CREATE_SEARCH_INDEX)
    db.execute("DELETE FROM search_words")
    db.execute("UPDATE summaries SET indexed = 0")


def has_index(db: Connection) -> bool:
    try:
        db.execute("SELECT rowid FROM search_index LIMIT 0")
        return True
    except db.OperationalError:
        return False


def _find_document(db: Connection, run: str) -> tuple[int, bool]:
    row = db.execute("SELECT n, indexed FROM summaries WHERE id = ?", (run,)).fetchone()
    return (row[0], bool(row[1])) if row else (0, True)


@contextmanager
def _only_index(db: Connection) -> Iterator[None]:
    """Undo the changes of the index if they fail: a run is stored without it."""
    db.execute("SAVEPOINT search")
    try:
        yield
    except (db.DatabaseError, ValueError, TypeError):  # the last ones for a damaged run
        if not db.in_transaction:  # a full disk has rolled back everything
            raise
        db.execute("ROLLBACK TO search")
    db.execute("RELEASE search")


def _list_words(db: Connection, run: str) -> list[str]:
    found = set(chain.from_iterable(text.casefold().split() for text in _iter_texts(db, run)))
    words = {word for word in found if word.isalnum()}  # the pattern is slower
    words.update(WORD.findall(" ".join(found - words)))
    long = [word for word in words if len(word) > PIECE_CHARS]
    words.difference_update(long)
    for word in long:
        words.update(word[at : at + PIECE_CHARS] for at in range(0, len(word) - MAX_WORD_CHARS, MAX_WORD_CHARS))
    return sorted(words)


def _iter_texts(db: Connection, run: str) -> Iterator[str]:
    """Yield the question, statements and answers of a run."""
    texts = TextReader(db, run).read_all()
    for (found,) in db.execute(SEARCHABLE, (run,)):
        yield from (text for text in texts.unpack(found) if isinstance(text, str))


def list_texts(db: Connection, run: str) -> list[str]:
    """Return the question of a run, then its answer and its statements, the newest first; of a damaged run none."""
    with suppress(ValueError, TypeError):
        question, *others = _iter_texts(db, run)
        return [question, *reversed(others)]
    return []


def search_runs(
    db: Connection, words: Sequence[str], limit: int | None, filters: Mapping[str, object] = NO_FILTERS
) -> list[str]:
    """Return the runs that match the filters and whose question, statements and answer contain all of the words, in
    the order of lists.
    """
    wanted = [word.casefold() for word in words]
    found, unsure = _look_up(db, wanted) if has_index(db) else (None, wanted)
    matches = (
        run
        for n, run, is_indexed in _iter_candidates(db, found, filters)
        if (found is None or n in found or not is_indexed) and _contains(db, run, unsure if is_indexed else wanted)
    )
    return list(islice(matches, limit))


def _look_up(db: Connection, wanted: Sequence[str]) -> tuple[set[int] | None, list[str]]:
    """Return the numbers of the runs that may match, None for all, and the words to look up in their texts."""
    found: set[int] | None = None
    unsure: list[str] = []
    for word in wanted:
        if [word[:MAX_WORD_CHARS]] != WORD.findall(word):
            unsure.append(word)  # several words, or part of a long one
        for part in WORD.findall(word):
            documents = _find_part(db, part[:MAX_WORD_CHARS])
            if documents is None:
                unsure.append(word)
            else:
                found = documents if found is None else found & documents
    return found, list(dict.fromkeys(unsure))


def _find_part(db: Connection, part: str) -> set[int] | None:
    """Return the runs with a word that contains this part, or None if these are too many to look up."""
    query = "SELECT word FROM search_words WHERE instr(word, ?) LIMIT ?"
    words = [word for (word,) in db.execute(query, (part, MAX_WORDS + 1))]
    if len(words) > MAX_WORDS:
        return None
    found: set[int] = set()
    left = MAX_MATCHES
    for word in words:
        documents = _find_documents(db, word, left)
        found.update(documents)
        left -= len(documents)
        if left <= 0:
            return None
    return found


def _find_documents(db: Connection, word: str, limit: int) -> list[int]:
    query = "SELECT rowid FROM search_index WHERE search_index MATCH ? LIMIT ?"
    return [n for (n,) in db.execute(query, (f'"{word}"', limit))]


def _iter_candidates(
    db: Connection, found: set[int] | None, filters: Mapping[str, object]
) -> Iterator[tuple[int, str, bool]]:
    """Yield number, run and whether it is indexed, in the order of lists."""
    where, values = make_conditions(filters)
    if found is not None and len(found) <= MAX_LISTED:
        where += " AND (n IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) OR indexed = 0)"
        values.append(json.dumps(list(found)))
    return iter(db.execute(f"SELECT n, id, indexed FROM summaries WHERE {where} {ORDER}", values))


def _contains(db: Connection, run: str, words: Sequence[str]) -> bool:
    """Return whether each of the words is in a text of the run."""
    missing = set(words)
    with suppress(ValueError, TypeError):  # a damaged run does not hide the others
        texts = _iter_texts(db, run)
        while missing and (text := next(texts, None)) is not None:
            text = text.casefold()
            missing = {word for word in missing if word not in text}
    return not missing
