"""Schema migrations: the SQL statements of each version, applied in order. Never edit a released one."""

from __future__ import annotations

CREATE_TABLES = (
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
)
# Spending in billionths of a dollar. `reserved` is null if the price is unknown, `charged` until there is an answer.
ADD_SPENDING = (
    """CREATE TABLE spending (run TEXT, key TEXT, n INTEGER, member TEXT NOT NULL, at REAL NOT NULL, day TEXT NOT NULL,
       price TEXT NOT NULL, reserved INTEGER, charged INTEGER, estimated INTEGER NOT NULL DEFAULT 0,
       PRIMARY KEY (run, key, n)) STRICT, WITHOUT ROWID""",
    "CREATE INDEX spending_by_day ON spending (day)",
)
# Detached runs and questions to human seats.
ADD_ASKS = (
    "ALTER TABLE runs ADD COLUMN detached INTEGER NOT NULL DEFAULT 0",
    """CREATE TABLE asks (run TEXT, key TEXT, seat TEXT NOT NULL, prompt TEXT NOT NULL, schema TEXT NOT NULL, at REAL NOT NULL,
       answer TEXT, PRIMARY KEY (run, key)) STRICT, WITHOUT ROWID""",
)
# Streamed text in parts, so that a write does not repeat the text before it. Versions before this one write to `live`.
ADD_LIVE_PARTS = (
    "DELETE FROM live",
    "CREATE TABLE live_parts (run TEXT, key TEXT, n INTEGER, text TEXT NOT NULL, PRIMARY KEY (run, key, n)) STRICT, WITHOUT ROWID",
)
# Texts that rows refer to. A table with row ids, because it stores long rows in less space.
ADD_TEXTS = ("CREATE TABLE texts (run TEXT NOT NULL, n INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (run, n)) STRICT",)
MIGRATIONS: list[tuple[str, ...]] = [CREATE_TABLES, ADD_SPENDING, ADD_ASKS, ADD_LIVE_PARTS, ADD_TEXTS]
