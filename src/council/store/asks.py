"""Questions to human seats: one row each, open until answered through any door."""

from __future__ import annotations

import json
import sqlite3

from council.types import Json

ASK_STATEMENTS = {
    "ask": "INSERT OR REPLACE INTO asks (run, key, seat, prompt, schema, at) VALUES (?, ?, ?, ?, ?, ?)",
    "withdraw": "DELETE FROM asks WHERE run = ?1 AND key = ?2 AND answer IS NULL",
}
SELECT_OPEN_ASKS = """SELECT a.run, a.key, a.seat, a.prompt, a.schema, a.at FROM asks a JOIN runs r ON r.id = a.run
          WHERE a.answer IS NULL AND r.status IN ('queued', 'running') AND (?1 IS NULL OR a.run = ?1) ORDER BY a.at, a.key"""


def select_open_asks(db: sqlite3.Connection, run: str | None) -> list[Json]:
    """Return the unanswered questions of one run or of all, oldest first."""
    names = ("run", "key", "seat", "prompt", "schema", "at")
    rows = (dict(zip(names, row, strict=True)) for row in db.execute(SELECT_OPEN_ASKS, (run,)))
    return [row | {"schema": json.loads(row["schema"])} for row in rows]


def save_answer(db: sqlite3.Connection, run: str, key: str, text: str) -> bool:
    """Save an answer and return whether the question was still open; the first answer counts."""
    taken = db.execute("UPDATE asks SET answer = ? WHERE run = ? AND key = ? AND answer IS NULL", (text, run, key))
    return taken.rowcount == 1


def select_answer(db: sqlite3.Connection, run: str, key: str, prompt: str) -> str | None:
    """Return the answer to this exact prompt, or None."""
    found = db.execute(
        "SELECT answer FROM asks WHERE run = ? AND key = ? AND prompt = ?", (run, key, prompt)
    ).fetchone()
    return found[0] if found else None
