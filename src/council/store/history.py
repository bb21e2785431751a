"""Paged list of past runs, filtered by the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from council.types import Json

REPORT = "NULLIF(report, '')"
SHOWN = {
    "id": "id", "name": "name", "folder": "folder", "created": "created", "status": "status",
    "protocol": "json_extract(setup, '$.protocol')",
    "task": "json_extract(setup, '$.question.task')",
    "question": "json_extract(setup, '$.question.text')",
    "verdict": f"json_extract({REPORT}, '$.verdict')",
    "outcome": f"json_extract({REPORT}, '$.outcome')",
    "confidence": f"json_extract({REPORT}, '$.confidence')",
    "seconds": f"json_extract({REPORT}, '$.seconds')",
    "cost": f"json_extract({REPORT}, '$.cost.usd')",
}  # fmt: skip
FILTERS = {
    "task": f"{SHOWN['task']} = ?",
    "protocol": f"{SHOWN['protocol']} = ?",
    "status": "status = ?",
    "verdict": f"? IN ({SHOWN['verdict']}, {SHOWN['outcome']})",
    "q": f"instr(lower({SHOWN['question']} || ' ' || name || ' ' || id), lower(?)) > 0",
}
AFTER = """(status = 'complete', -created, -rowid) >
           (SELECT status = 'complete', -created, -rowid FROM runs WHERE id = ?)"""
ORDER = "ORDER BY status = 'complete', created DESC, rowid DESC"


def page(db: sqlite3.Connection, wanted: Mapping[str, str], before: str | None, limit: int) -> list[Json]:
    """Return a page of runs that match every filter: unfinished first, then newest. `before` is the last run of the previous page."""
    conditions = [FILTERS[name] for name in wanted] + ([AFTER] if before else [])
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    values = [*wanted.values(), *([before] if before else []), limit]
    rows = db.execute(f"SELECT {', '.join(SHOWN.values())} FROM runs {where} {ORDER} LIMIT ?", values)
    return [dict(zip(SHOWN, row, strict=True)) for row in rows]
