"""Full-text index of the questions, statements and answers of runs, so that a search reads only the runs that match.

A search matches parts of words. The table `search_words` has every word once; SQLite's full-text index says which runs contain
a word. A run is indexed when it is closed; a search reads the texts of other runs, and of all runs if SQLite has no full-text
search.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice

from council.store.migrations import ADD_SEARCH
from council.store.summaries import ORDER
from council.store.texts import TextReader

WORD = re.compile(r"\w+")
PIECE_CHARS = 64  # longer words are indexed in pieces, each starting in the middle of the one before
MAX_WORD_CHARS = PIECE_CHARS // 2  # a longer search word may be divided in the index
MAX_WORDS, MAX_MATCHES = (
    5000,
    300_000,
)  # a search word with more is looked up in the texts: runs that contain it are frequent
MAX_LISTED = 2000
NOT_INDEXED = (
    "SELECT id FROM summaries WHERE indexed = 0 AND status NOT IN ('queued', 'running') ORDER BY n DESC LIMIT ?"
)
SEARCHABLE = """SELECT json_extract(setup, '$.question.text', '$.none') FROM runs WHERE id = ?1 AND json_valid(setup) UNION ALL
       SELECT json_extract(body, '$.said', '$.verdict.answer') FROM events WHERE run = ?1 AND type IN ('statement', 'closed') AND json_valid(body)"""


# Write


def add_run(db: sqlite3.Connection, run: str) -> None:
    """Index a run that has ended. If that fails, a search reads its texts."""
    n, is_indexed = _find_document(db, run)
    if is_indexed:
        return
    with _only_index(db):
        words = _list_words(db, run)
        db.execute("INSERT INTO search_index (rowid, words) VALUES (?, ?)", (n, " ".join(words)))
        db.execute("INSERT OR IGNORE INTO search_words SELECT value FROM json_each(?)", (json.dumps(words),))
        db.execute("UPDATE summaries SET indexed = 1 WHERE n = ?", (n,))


def remove_run(db: sqlite3.Connection, run: str, *, forget_words: bool = False) -> None:
    """Remove a run that changes or is deleted from the index; also the words that no other run has."""
    n, is_indexed = _find_document(db, run)
    if not is_indexed:
        return
    with _only_index(db):
        words = _list_words(db, run)
        db.execute(
            "INSERT INTO search_index (search_index, rowid, words) VALUES ('delete', ?, ?)", (n, " ".join(words))
        )
        unused = [(word,) for word in words if forget_words and not list(_find_documents(db, word, 1))]
        db.executemany("DELETE FROM search_words WHERE word = ?", unused)
    db.execute("UPDATE summaries SET indexed = 0 WHERE n = ?", (n,))


def add_older_runs(db: sqlite3.Connection, count: int) -> int:
    """Index runs of an older version. Return how many are indexed now: 0 at the end, or without full-text search."""
    runs = [run for (run,) in db.execute(NOT_INDEXED, (count,)).fetchall()] if has_index(db) else []
    for run in runs:
        add_run(db, run)
    return sum(_find_document(db, run)[1] for run in runs)


def rebuild(db: sqlite3.Connection) -> None:
    """Make an empty index."""
    with suppress(sqlite3.OperationalError):  # without full-text search
        db.execute("DROP TABLE IF EXISTS search_index")
        db.execute(ADD_SEARCH[-1])
    db.execute("DELETE FROM search_words")
    db.execute("UPDATE summaries SET indexed = 0")


def has_index(db: sqlite3.Connection) -> bool:
    try:
        db.execute("SELECT rowid FROM search_index LIMIT 0")
        return True
    except sqlite3.OperationalError:
        return False


def _find_document(db: sqlite3.Connection, run: str) -> tuple[int, bool]:
    row = db.execute("SELECT n, indexed FROM summaries WHERE id = ?", (run,)).fetchone()
    return (row[0], bool(row[1])) if row else (0, True)


@contextmanager
def _only_index(db: sqlite3.Connection) -> Iterator[None]:
    """Undo the changes of the index if they fail: a run is stored without it."""
    db.execute("SAVEPOINT search")
    try:
        yield
    except (sqlite3.DatabaseError, ValueError, TypeError):  # the last ones for a damaged run
        if not db.in_transaction:  # a full disk has rolled back everything
            raise
        db.execute("ROLLBACK TO search")
    db.execute("RELEASE search")


def _list_words(db: sqlite3.Connection, run: str) -> list[str]:
    found = set(chain.from_iterable(text.split() for text in _iter_texts(db, run)))
    words = {word for word in found if word.isalnum()}  # the pattern is slower
    words.update(WORD.findall(" ".join(found - words)))
    long = [word for word in words if len(word) > PIECE_CHARS]
    words.difference_update(long)
    for word in long:
        words.update(word[at : at + PIECE_CHARS] for at in range(0, len(word) - MAX_WORD_CHARS, MAX_WORD_CHARS))
    return sorted(words)


def _iter_texts(db: sqlite3.Connection, run: str) -> Iterator[str]:
    """Yield the question, statements and answers of a run, without case."""
    texts = TextReader(db, run)
    for (found,) in db.execute(SEARCHABLE, (run,)):
        yield from (text.casefold() for text in texts.unpack(found) if isinstance(text, str))


# Search


def search_runs(db: sqlite3.Connection, words: Sequence[str], limit: int | None) -> list[str]:
    """Return the runs whose question, statements and answer contain all of the words, ignoring case, in the order of lists."""
    wanted = [word.casefold() for word in words]
    found, unsure = _look_up(db, wanted) if has_index(db) else (None, wanted)
    matches = (
        run
        for n, run, is_indexed in _iter_candidates(db, found)
        if (found is None or n in found or not is_indexed) and _contains(db, run, unsure if is_indexed else wanted)
    )
    return list(islice(matches, limit))


def _look_up(db: sqlite3.Connection, wanted: Sequence[str]) -> tuple[set[int] | None, list[str]]:
    """Return the numbers of the runs that may match, None for all, and the words that have to be looked up in their texts."""
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


def _find_part(db: sqlite3.Connection, part: str) -> set[int] | None:
    """Return the runs with a word that contains this part, or None if these are too many to look up."""
    query = "SELECT word FROM search_words WHERE instr(word, ?) LIMIT ?"
    words = [word for (word,) in db.execute(query, (part, MAX_WORDS + 1))]
    if len(words) > MAX_WORDS:
        return None
    found: set[int] = set()
    left = MAX_MATCHES
    for word in words:
        documents = list(_find_documents(db, word, left))
        found.update(documents)
        left -= len(documents)
        if left <= 0:
            return None
    return found


def _find_documents(db: sqlite3.Connection, word: str, limit: int) -> Iterator[int]:
    query = "SELECT rowid FROM search_index WHERE search_index MATCH ? LIMIT ?"
    return (n for (n,) in db.execute(query, (f'"{word}"', limit)))


def _iter_candidates(db: sqlite3.Connection, found: set[int] | None) -> Iterator[tuple[int, str, bool]]:
    """Yield number, run and whether it is indexed, in the order of lists."""
    query, values = "SELECT n, id, indexed FROM summaries", list[object]()
    if found is not None and len(found) <= MAX_LISTED:
        query += " WHERE n IN (SELECT value FROM json_each(?)) OR indexed = 0"
        values.append(json.dumps(list(found)))
    return iter(db.execute(f"{query} {ORDER}", values))


def _contains(db: sqlite3.Connection, run: str, words: Sequence[str]) -> bool:
    """Return whether each of the words is in a text of the run."""
    missing = set(words)
    with suppress(ValueError, TypeError):  # a damaged run does not hide the others
        for text in _iter_texts(db, run) if missing else ():
            missing -= {word for word in missing if word in text}
            if not missing:
                break
    return not missing
