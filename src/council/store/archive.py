"""Search and removal of past runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

RUN_TABLES = ("events", "steps", "results", "intents", "phases", "live", "asks")
# Spending rows and their token counts stay after a run is removed, so that totals remain correct.
HAS_SPENDING = "EXISTS (SELECT 1 FROM spending p WHERE p.run = settled.run AND p.key = settled.key AND p.n = settled.n)"
SEARCHABLE_TEXT = """SELECT run, json_extract(body, '$.said') FROM events WHERE type = 'statement'
          UNION ALL SELECT run, json_extract(body, '$.verdict.answer') FROM events WHERE type = 'closed'
          UNION ALL SELECT id, json_extract(setup, '$.question.text') FROM runs"""


def delete_run(db: sqlite3.Connection, run: str) -> None:
    for table in RUN_TABLES:
        db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
    db.execute(f"DELETE FROM settled WHERE run = ? AND NOT {HAS_SPENDING}", (run,))
    db.execute("UPDATE settled SET body = json_object('usage', json_extract(body, '$.usage')) WHERE run = ?", (run,))
    db.execute("DELETE FROM runs WHERE id = ?", (run,))


def search_runs(db: sqlite3.Connection, words: Sequence[str]) -> list[str]:
    """Return the runs whose question, statements and answer contain all of the words, ignoring case."""
    wanted = [word.casefold() for word in words]
    missing: dict[str, set[str]] = {}
    for run, text in db.execute(SEARCHABLE_TEXT):
        left, said = missing.setdefault(run, set(wanted)), (text or "").casefold()
        left -= {word for word in left if word in said}
    return [run for run, left in missing.items() if not left]


def select_unfinished_forks(db: sqlite3.Connection, run: str) -> list[str]:
    """Return the unfinished forks of this run, which still reuse its answers."""
    query = "SELECT id FROM runs WHERE json_extract(setup, '$.fork.run') = ? AND status != 'complete'"
    return [row[0] for row in db.execute(query, (run,))]
