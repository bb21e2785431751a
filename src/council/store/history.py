"""Paged list of past runs, filtered by the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from council.types import Json

REPORT_JSON = "NULLIF(report, '')"
HISTORY_COLUMNS = {
    "id": "id", "name": "name", "folder": "folder", "created": "created", "status": "status",
    "protocol": "json_extract(setup, '$.protocol')",
    "task": "json_extract(setup, '$.question.task')",
    "question": "json_extract(setup, '$.question.text')",
    "verdict": f"json_extract({REPORT_JSON}, '$.verdict')",
    "outcome": f"json_extract({REPORT_JSON}, '$.outcome')",
    "confidence": f"json_extract({REPORT_JSON}, '$.confidence')",
    "seconds": f"json_extract({REPORT_JSON}, '$.seconds')",
    "cost": f"json_extract({REPORT_JSON}, '$.cost.usd')",
}  # fmt: skip
HISTORY_FILTERS = {
    "task": f"{HISTORY_COLUMNS['task']} = ?",
    "protocol": f"{HISTORY_COLUMNS['protocol']} = ?",
    "status": "status = ?",
    "verdict": f"? IN ({HISTORY_COLUMNS['verdict']}, {HISTORY_COLUMNS['outcome']})",
    "q": f"instr(lower({HISTORY_COLUMNS['question']} || ' ' || name || ' ' || id), lower(?)) > 0",
}
AFTER_CURSOR = """(status = 'complete', -created, -rowid) >
           (SELECT status = 'complete', -created, -rowid FROM runs WHERE id = ?)"""
HISTORY_ORDER = "ORDER BY status = 'complete', created DESC, rowid DESC"


def select_history_page(
    db: sqlite3.Connection, filters: Mapping[str, str], before: str | None, limit: int
) -> list[Json]:
    """Return a page of runs that match every filter: unfinished first, then newest. `before` is the last run of the previous page."""
    conditions = [HISTORY_FILTERS[name] for name in filters] + ([AFTER_CURSOR] if before else [])
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    values = [*filters.values(), *([before] if before else []), limit]
    rows = db.execute(f"SELECT {', '.join(HISTORY_COLUMNS.values())} FROM runs {where} {HISTORY_ORDER} LIMIT ?", values)
    return [dict(zip(HISTORY_COLUMNS, row, strict=True)) for row in rows]
