"""Schema migrations: one function per version, applied in order. Never edit a released one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable


def create_tables(db: sqlite3.Connection) -> None:
    for statement in (
        """CREATE TABLE runs (id TEXT PRIMARY KEY, name TEXT NOT NULL, folder TEXT NOT NULL, created REAL NOT NULL,
           seed TEXT NOT NULL, setup TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'running', report TEXT NOT NULL DEFAULT '',
           cancel INTEGER NOT NULL DEFAULT 0) STRICT""",
        "CREATE TABLE events (run TEXT, seq INTEGER, at REAL, type TEXT, body TEXT, PRIMARY KEY (run, seq)) STRICT, WITHOUT ROWID",
        "CREATE TABLE steps (run TEXT, key TEXT, fingerprint TEXT NOT NULL, PRIMARY KEY (run, key)) STRICT, WITHOUT ROWID",
        "CREATE TABLE results (run TEXT, key TEXT, body TEXT NOT NULL, PRIMARY KEY (run, key)) STRICT, WITHOUT ROWID",
        """CREATE TABLE intents (run TEXT, key TEXT, n INTEGER, member TEXT NOT NULL, body BLOB NOT NULL, at REAL NOT NULL,
           PRIMARY KEY (run, key, n)) STRICT, WITHOUT ROWID""",
        """CREATE TABLE settled (run TEXT, key TEXT, n INTEGER, body TEXT NOT NULL, at REAL NOT NULL,
           PRIMARY KEY (run, key, n)) STRICT, WITHOUT ROWID""",
        "CREATE TABLE phases (run TEXT, phase TEXT, absences TEXT NOT NULL, PRIMARY KEY (run, phase)) STRICT, WITHOUT ROWID",
        "CREATE TABLE live (run TEXT, key TEXT, text TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (run, key)) STRICT, WITHOUT ROWID",
        "CREATE INDEX runs_by_time ON runs (created)",
    ):
        db.execute(statement)


def add_spending(db: sqlite3.Connection) -> None:
    """Add spending in billionths of a dollar. `reserved` is null if the price is unknown, `charged` until there is an answer."""
    db.execute(
        """CREATE TABLE spending (run TEXT, key TEXT, n INTEGER, member TEXT NOT NULL, at REAL NOT NULL, day TEXT NOT NULL,
           price TEXT NOT NULL, reserved INTEGER, charged INTEGER, estimated INTEGER NOT NULL DEFAULT 0,
           PRIMARY KEY (run, key, n)) STRICT, WITHOUT ROWID"""
    )
    db.execute("CREATE INDEX spending_by_day ON spending (day)")


def add_asks(db: sqlite3.Connection) -> None:
    """Add detached runs and questions to human seats."""
    db.execute("ALTER TABLE runs ADD COLUMN detached INTEGER NOT NULL DEFAULT 0")
    db.execute(
        """CREATE TABLE asks (run TEXT, key TEXT, seat TEXT NOT NULL, prompt TEXT NOT NULL, schema TEXT NOT NULL, at REAL NOT NULL,
           answer TEXT, PRIMARY KEY (run, key)) STRICT, WITHOUT ROWID"""
    )


MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [create_tables, add_spending, add_asks]
