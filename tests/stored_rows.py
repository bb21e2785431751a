"""Stored rows as plain JSON: tests read and change them with SQL."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from council.store.texts import TextReader, dump_compact

JSON_COLUMNS = {"events": "body", "results": "body", "settled": "body", "phases": "absences"}


def expand_texts(db: sqlite3.Connection) -> None:
    """Replace the references in all rows by their texts. The rows stay valid."""
    readers: dict[str, TextReader] = {}

    def reader(run: str) -> TextReader:
        return readers.setdefault(run, TextReader(db, run))

    db.create_function("expand", 2, lambda run, body: dump_compact(reader(run).unpack(body)))
    db.create_function("expand_request", 2, lambda run, body: reader(run).unpack_request(body))
    for table, column in JSON_COLUMNS.items():
        db.execute(f"""UPDATE {table} SET {column} = expand(run, {column}) WHERE {column} LIKE '%"$text"%'""")
    db.execute("UPDATE intents SET body = expand_request(run, body) WHERE substr(body, 1, 1) = x'00'")


def open_for(query: str, path: Path) -> sqlite3.Connection:
    """Open a store for a query: the file itself if the query reads no texts and SQLite has the store, otherwise a
    copy.
    """
    if os.environ.get("COUNCIL_DATABASE") or any(column in query for column in ("*", *JSON_COLUMNS.values())):
        return open_copy(path)
    return sqlite3.connect(path)


def open_copy(path: Path) -> sqlite3.Connection:
    """Return a copy of a store in memory, with its texts in the rows: of the file, or of the database in use."""
    if url := os.environ.get("COUNCIL_DATABASE"):
        from tests.databases import copy_to_sqlite

        copy = copy_to_sqlite(url)
    else:
        source, copy = sqlite3.connect(path), sqlite3.connect(":memory:")
        source.backup(copy)
        source.close()
    if copy.execute("SELECT 1 FROM sqlite_master WHERE name = 'texts'").fetchone():  # not in a store of another version
        expand_texts(copy)
    return copy
