"""Spending rows: the amount reserved for each request, and the amount charged.

A reservation is checked and written in one transaction, so all processes on one store share the budget. A request without
an answer keeps its full reservation.
"""

from __future__ import annotations

import json
import sqlite3

from council.record import BudgetRefusal, Hold, SpendingRow
from council.types import Json

SPENDING_STATEMENTS = {
    "reserve": """INSERT OR REPLACE INTO spending (run, key, n, member, at, day, price, reserved)
                  VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
    "release": "DELETE FROM spending WHERE run = ? AND key = ? AND n = ? AND charged IS NULL",
    "charge": "UPDATE spending SET charged = ?4, estimated = ?5 WHERE run = ?1 AND key = ?2 AND n = ?3",
}
SUM_SPENT = "SELECT coalesce(sum(coalesce(charged, reserved)), 0) FROM spending WHERE {} = ? AND NOT (run = ? AND key = ? AND n = ?)"


def reserve_spending(db: sqlite3.Connection, run: str, hold: Hold) -> BudgetRefusal | None:
    """Reserve money within the caps of the run and the day, or return the cap that refuses it."""
    row = hold.as_row()
    for cap, column, whose in ((hold.run_cap, "run", run), (hold.day_cap, "day", hold.day)):
        if cap is None:
            continue
        (spent,) = db.execute(SUM_SPENT.format(column), (whose, run, hold.key, hold.n)).fetchone()
        if spent + hold.reserved > cap:
            return BudgetRefusal(column, cap, spent, hold.reserved)
    db.execute(SPENDING_STATEMENTS["reserve"], (run, *row))
    return None


def load_spending(db: sqlite3.Connection, run: str) -> dict[tuple[str, int], SpendingRow]:
    rows = db.execute("SELECT key, n, member, price, reserved, charged, estimated FROM spending WHERE run = ?", (run,))
    return {
        (key, n): SpendingRow(member, json.loads(price) if price else None, reserved, charged, bool(estimated))
        for key, n, member, price, reserved, charged, estimated in rows
    }


def select_spending_since(db: sqlite3.Connection, day: str) -> list[Json]:
    """Return every request since that day that may cost money, with its token usage. A fault does not count as an answer."""
    rows = db.execute(
        """SELECT p.run, p.key, p.n, p.member, p.at, p.day, p.reserved, p.charged, p.estimated,
                  s.body IS NOT NULL AND json_extract(s.body, '$.fault') IS NULL,
                  json_extract(s.body, '$.usage'), r.name
           FROM spending p LEFT JOIN settled s ON s.run = p.run AND s.key = p.key AND s.n = p.n
                           LEFT JOIN runs r ON r.id = p.run
           WHERE p.day >= ? ORDER BY p.at""",
        (day,),
    )
    names = (
        "run",
        "key",
        "n",
        "member",
        "at",
        "day",
        "reserved",
        "charged",
        "estimated",
        "answered",
        "usage",
        "name",
    )
    return [dict(zip(names, row, strict=True)) | {"usage": json.loads(row[10]) if row[10] else None} for row in rows]
