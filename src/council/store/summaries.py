"""Summaries of runs: one short row for each, so that lists read no setup and no report. Triggers keep them current."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from council.store.interface import Connection, RunStatus, StoredRun, list_fields

FIELDS = list_fields(StoredRun)
FLAGS = [field.name for field in FIELDS if field.type is bool]  # stored as 0, 1 or null
QUESTION = "coalesce(question, (SELECT json_extract(setup, '$.question.text') FROM runs r WHERE r.id = summaries.id))"
DECISION_OUTCOME = "(SELECT label FROM outcomes o WHERE o.run = summaries.id)"
# Expressions of fields that are no columns.
SELECTED = {"run": "id", "question": QUESTION, "decision_outcome": DECISION_OUTCOME}
COLUMNS = ", ".join(SELECTED.get(field.name, field.name) for field in FIELDS)
SELECT_SUMMARIES = f"SELECT {COLUMNS} FROM summaries"
BY_TIME = "INDEXED BY summaries_by_time"  # of SQLite
FILTERS = {
    "task": "task = ?",
    "protocol": "protocol = ?",
    "status": "status IN (SELECT value FROM json_each(?))",
    "verdict": "? IN (verdict, outcome)",
    "folder": "folder = ?",
    "owner": "owner = ?",
    "project": "project = ?",
    "evaluation": "+evaluation = ?",
    "only_evaluations": "evaluation = 1 AND 1 = ?",  # with its own index
    "ids": "id IN (SELECT value FROM json_each(?))",
    "indexed": "indexed = ?",
    "prefix": "instr(id, ?) = 1",
    "unfinished": "unfinished = ?",
    "ended_before": f"+unfinished = 0 AND n IN (SELECT n FROM summaries {BY_TIME} WHERE created < ?)",
    "from": "created >= ?",
    "to": "created < ?",
    "q": f"instr(lower({QUESTION} || ' ' || name || ' ' || id || ' ' || coalesce(title, '')), lower(?)) > 0",
}
ORDER = "ORDER BY unfinished DESC, n DESC"  # the order of creation, also if the clock was set back
AFTER_CURSOR = "(unfinished, n) < (SELECT unfinished, n FROM summaries WHERE id = ?)"
OPEN_DETACHED = "SELECT id FROM summaries WHERE +detached = 1 AND status IN ('queued', 'running') ORDER BY n"
ENDED_DETACHED = "SELECT id FROM summaries WHERE detached = 1 AND status = 'complete' ORDER BY n DESC LIMIT ?"
NEWEST_OF_FOLDER = "SELECT n, id FROM summaries WHERE folder = ? AND unfinished = ? ORDER BY n DESC LIMIT 1"
NEWEST_RESUMABLE = f"SELECT id FROM summaries WHERE folder = ? AND {FILTERS['status']} ORDER BY n DESC LIMIT 1"
RESUMABLE = json.dumps(sorted({*RunStatus} - {RunStatus.COMPLETE}))
NO_LIMIT = 1 << 62  # rows
NO_FILTERS: Mapping[str, object] = {}


def select_summaries(
    db: Connection, filters: Mapping[str, object], before: str | None, limit: int | None
) -> list[StoredRun]:
    """Return the runs that match every filter, unfinished first, then newest, after the run `before`."""
    where, values = make_conditions(filters)
    if before:
        where, values = f"{where} AND {AFTER_CURSOR}", [*values, before]
    most = NO_LIMIT if limit is None else limit
    rows = db.execute(f"{SELECT_SUMMARIES} WHERE {where} {ORDER} LIMIT ?", (*values, most))
    return [_make_summary(row) for row in rows]


def make_conditions(filters: Mapping[str, object]) -> tuple[str, list[object]]:
    """Return the condition of filters, and its values."""
    return " AND ".join(["1 = 1", *(FILTERS[name] for name in filters)]), list(filters.values())


def _make_summary(values: Sequence[object]) -> StoredRun:
    row: dict[str, object] = {field.name: value for field, value in zip(FIELDS, values, strict=True)}
    row |= {name: bool(row[name]) for name in FLAGS}
    row |= {"status": RunStatus(str(row["status"])), "question": row["question"] or ""}
    return cast(StoredRun, row)


def count_summaries(db: Connection, filters: Mapping[str, object]) -> int:
    where, values = make_conditions(filters)
    (count,) = db.execute(f"SELECT count(*) FROM summaries WHERE {where}", values).fetchone()
    return int(count)


def select_newest(db: Connection, folder: str) -> str | None:
    """Return the newest run of a folder."""
    found = [db.execute(NEWEST_OF_FOLDER, (folder, unfinished)).fetchone() for unfinished in (0, 1)]
    return max((row for row in found if row), default=(0, None))[1]
