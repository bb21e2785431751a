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
# A short row for each run, in the order of creation: lists sort and filter by it, and parse no setup and no report.
# A long question is not repeated in it. Triggers keep it current, whatever writes to `runs`.
SUMMARY_COLUMNS = """id, name, folder, created, status, detached, unfinished, protocol, task, question, verdict, outcome, confidence,
       seconds, cost"""
FILL_SUMMARIES = f"INSERT INTO summaries ({SUMMARY_COLUMNS}) SELECT * FROM run_summaries"
FILL_SUMMARIES_IN_ORDER = f"{FILL_SUMMARIES} ORDER BY (SELECT rowid FROM runs WHERE runs.id = run_summaries.id)"
ADD_SUMMARIES = (
    """CREATE TABLE summaries (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, folder TEXT NOT NULL,
       created REAL NOT NULL, status TEXT NOT NULL, detached INTEGER NOT NULL, unfinished INTEGER NOT NULL, protocol ANY, task ANY,
       question ANY, verdict ANY, outcome ANY, confidence ANY, seconds ANY, cost ANY) STRICT""",
    f"""CREATE VIEW run_summaries ({SUMMARY_COLUMNS}) AS SELECT id, name, folder, created, status, detached,
       status NOT IN ('complete', 'failed'), json_extract(setup, '$.protocol'), json_extract(setup, '$.question.task'),
       iif(length(json_extract(setup, '$.question.text')) > 1000, NULL, json_extract(setup, '$.question.text')),
       json_extract(report, '$.verdict'), json_extract(report, '$.outcome'), json_extract(report, '$.confidence'),
       json_extract(report, '$.seconds'), json_extract(report, '$.cost.usd')
       FROM (SELECT id, name, folder, created, status, detached, iif(json_valid(setup), setup, '{{}}') AS setup,
       iif(json_valid(report), report, '{{}}') AS report FROM runs)""",
    FILL_SUMMARIES_IN_ORDER,
    "CREATE INDEX summaries_in_order ON summaries (unfinished)",
    "CREATE INDEX summaries_by_folder ON summaries (folder, unfinished)",
    "CREATE INDEX summaries_by_status ON summaries (status, folder)",
    "CREATE INDEX summaries_by_time ON summaries (created)",
    "CREATE INDEX summaries_detached ON summaries (detached) WHERE detached = 1",
    f"CREATE TRIGGER run_added AFTER INSERT ON runs BEGIN {FILL_SUMMARIES} WHERE id = new.id; END",
    f"""CREATE TRIGGER run_changed AFTER UPDATE OF id, name, folder, created, setup, status, report, detached ON runs BEGIN
       UPDATE summaries SET ({SUMMARY_COLUMNS}) = (SELECT * FROM run_summaries WHERE id = new.id) WHERE id = old.id; END""",
    "CREATE TRIGGER run_removed AFTER DELETE ON runs BEGIN DELETE FROM summaries WHERE id = old.id; END",
)
# Full-text search. SQLite may have been built without it: then a search reads the texts of all runs.
ADD_SEARCH = (
    "ALTER TABLE summaries ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX summaries_not_indexed ON summaries (indexed) WHERE indexed = 0",
    "CREATE TABLE search_words (word TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
    """CREATE VIRTUAL TABLE search_index USING fts5(words, content='', columnsize=0, detail=none, tokenize="ascii tokenchars '_'")""",
)
# The owner and the project of a run, by which lists are filtered.
OWNED_COLUMNS = f"{SUMMARY_COLUMNS}, owner, project"
FILL_OWNED = f"INSERT INTO summaries ({OWNED_COLUMNS}) SELECT * FROM run_summaries"
FILL_OWNED_IN_ORDER = f"{FILL_OWNED} ORDER BY (SELECT rowid FROM runs WHERE runs.id = run_summaries.id)"
ADD_OWNERS = (
    "ALTER TABLE summaries ADD COLUMN owner ANY",
    "ALTER TABLE summaries ADD COLUMN project ANY",
    "DROP TRIGGER run_added",
    "DROP TRIGGER run_changed",
    "DROP VIEW run_summaries",
    ADD_SUMMARIES[1]
    .replace(SUMMARY_COLUMNS, OWNED_COLUMNS)
    .replace(
        "json_extract(report, '$.cost.usd')",
        "json_extract(report, '$.cost.usd'), json_extract(setup, '$.owner'), json_extract(setup, '$.project')",
    ),
    ADD_SUMMARIES[-3].replace(SUMMARY_COLUMNS, OWNED_COLUMNS),  # run_added
    ADD_SUMMARIES[-2].replace(SUMMARY_COLUMNS, OWNED_COLUMNS),  # run_changed
)
# Tokens of users as keyed hashes, with a cap per day in billionths of a dollar; the runs that they started, also removed ones;
# and the keys of requests that a client may repeat.
ADD_USERS = (
    """CREATE TABLE tokens (name TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, salt TEXT NOT NULL, digest TEXT NOT NULL,
       scope TEXT NOT NULL, cap INTEGER, created REAL NOT NULL, revoked REAL) STRICT, WITHOUT ROWID""",
    "CREATE TABLE user_runs (run TEXT PRIMARY KEY, name TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE INDEX user_runs_by_name ON user_runs (name)",
    """CREATE TABLE idempotency (run TEXT NOT NULL, owner TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, at REAL NOT NULL,
       PRIMARY KEY (owner, key)) STRICT, WITHOUT ROWID""",
    "CREATE INDEX summaries_by_owner ON summaries (owner, unfinished)",
)
# The title that a user gave a run, and whether its cost is an estimate.
TITLED_COLUMNS = f"{OWNED_COLUMNS}, title, estimated"
FILL_TITLED = f"INSERT INTO summaries ({TITLED_COLUMNS}) SELECT * FROM run_summaries"
FILL_TITLED_IN_ORDER = f"{FILL_TITLED} ORDER BY (SELECT rowid FROM runs WHERE runs.id = run_summaries.id)"
ADD_TITLES = (
    "ALTER TABLE runs ADD COLUMN title TEXT",
    "ALTER TABLE summaries ADD COLUMN title ANY",
    "ALTER TABLE summaries ADD COLUMN estimated ANY",
    "DROP TRIGGER run_added",
    "DROP TRIGGER run_changed",
    "DROP VIEW run_summaries",
    ADD_OWNERS[5]
    .replace(OWNED_COLUMNS, TITLED_COLUMNS)
    .replace("'$.project')", "'$.project'), title, json_extract(report, '$.cost.estimated')")
    .replace("(SELECT id, name,", "(SELECT title, id, name,"),
    ADD_OWNERS[-2].replace(OWNED_COLUMNS, TITLED_COLUMNS),  # run_added
    ADD_OWNERS[-1].replace(OWNED_COLUMNS, TITLED_COLUMNS).replace("report, detached", "report, detached, title"),
    "UPDATE summaries SET estimated = (SELECT r.estimated FROM run_summaries r WHERE r.id = summaries.id)",
)
# How decisions turned out. The row of a removed run stays without its texts, so that track records remain correct.
ADD_OUTCOMES = (
    """CREATE TABLE outcomes (run TEXT PRIMARY KEY, at REAL NOT NULL, label TEXT NOT NULL, value TEXT NOT NULL, note TEXT NOT NULL,
       seats TEXT NOT NULL) STRICT, WITHOUT ROWID""",
)
# The stops of a run, and what they saved by the plan's estimate, in dollars; null if it is not known.
STOPS_COLUMNS = f"{TITLED_COLUMNS}, stops, saved"
FILL_STOPS = f"INSERT INTO summaries ({STOPS_COLUMNS}) SELECT * FROM run_summaries"
FILL_STOPS_IN_ORDER = f"{FILL_STOPS} ORDER BY (SELECT rowid FROM runs WHERE runs.id = run_summaries.id)"
ADD_STOPS = (
    "ALTER TABLE summaries ADD COLUMN stops ANY",
    "ALTER TABLE summaries ADD COLUMN saved ANY",
    "DROP TRIGGER run_added",
    "DROP TRIGGER run_changed",
    "DROP VIEW run_summaries",
    ADD_TITLES[6]
    .replace(TITLED_COLUMNS, STOPS_COLUMNS)
    .replace(
        "json_extract(report, '$.cost.estimated')",
        """json_extract(report, '$.cost.estimated'), json_array_length(report, '$.stops'),
       iif(json_type(report, '$.stops') = 'array', (SELECT sum(json_extract(value, '$.saved')) FROM json_each(report, '$.stops')), NULL)""",
    ),
    ADD_TITLES[-3].replace(TITLED_COLUMNS, STOPS_COLUMNS),  # run_added
    ADD_TITLES[-2].replace(TITLED_COLUMNS, STOPS_COLUMNS),  # run_changed
)
MIGRATIONS: list[tuple[str, ...]] = [
    CREATE_TABLES,
    ADD_SPENDING,
    ADD_ASKS,
    ADD_LIVE_PARTS,
    ADD_TEXTS,
    ADD_SUMMARIES,
    ADD_SEARCH,
    ADD_OWNERS,
    ADD_USERS,
    ADD_TITLES,
    ADD_OUTCOMES,
    ADD_STOPS,
]
