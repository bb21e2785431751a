"""Statements of PostgreSQL that differ from those of SQLite.

The tables have the names and columns of those in SQLite, so that one set of queries reads both. Differences:

- `summaries` is a view: a trigger keeps the short columns in `runs`.
- `texts` and requests are BYTEA. JSON is TEXT, because the type jsonb refuses characters that answers may contain.
- `leases` has the owners of runs, `writers` the last transaction of each process.
- `search_index` has the words of each run as one text.

Functions with the names of those of SQLite have the meaning that the queries use.
"""

from __future__ import annotations

from functools import lru_cache

from council.store import queries
from council.store.texts import CREATE_SEARCH_INDEX

SCHEMA = "council"
LEASE_LOST = "CL001"  # error code of `check_leases` in the first migration

# Statements of the queries that PostgreSQL spells differently.
REPLACED = {
    "SELECT word FROM search_words WHERE instr(word, ?) LIMIT ?": "SELECT CAST(? AS TEXT) LIMIT ?",
    "SELECT rowid FROM search_index WHERE search_index MATCH ? LIMIT ?": (
        r"SELECT n FROM search_index WHERE words LIKE '%' || replace(trim(both '\"' from ?), '_', '\_') || '%' LIMIT ?"
    ),
    "SELECT rowid FROM search_index LIMIT 0": "SELECT n FROM search_index LIMIT 0",
    # Two processes may index a run at once: the one that has handed it on, and the one that ends it.
    "INSERT INTO search_index (rowid, words) VALUES (?, ?)": (
        "INSERT INTO search_index (n, words) VALUES (?, ?) ON CONFLICT (n) DO UPDATE SET words = excluded.words"
    ),
    "INSERT INTO search_index (search_index, rowid, words) VALUES ('delete', ?, ?)": (
        "DELETE FROM search_index WHERE n = ? AND CAST(? AS TEXT) IS NOT NULL"
    ),
    "INSERT OR IGNORE INTO search_words SELECT value FROM json_each(?)": "SELECT CAST(? AS TEXT) WHERE false",
    "DROP TABLE IF EXISTS search_index": "DELETE FROM search_index",
    queries.KEEP_TOTALS: "SELECT CAST(? AS TEXT) WHERE false",
    queries.WRITE_STATEMENTS["withdraw_attempt"]: (
        "WITH gone AS (DELETE FROM intents WHERE run = ? AND key = ? AND n = ? RETURNING member) "
        "SELECT add_total('requests', split_part(member, ':', 1), '', -1) FROM gone"
    ),
    queries.WAITING_RUNS: """SELECT r.id, coalesce(r.owner, ''), r.queue, r.priority, CAST(extract(epoch FROM r.waits_since) AS FLOAT8),
                     coalesce(r.title, r.question, '') FROM runs r WHERE r.detached = 1 AND r.status IN ('queued', 'running')
                     AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.run = r.id AND l.expires > clock_timestamp())
                     AND NOT EXISTS (SELECT 1 FROM claims c WHERE c.run = r.id AND c.expires > clock_timestamp())
                     ORDER BY r.waits_since, r.n LIMIT ?""",
    CREATE_SEARCH_INDEX: "SELECT 1",
    "DELETE FROM live WHERE run = ?": "SELECT CAST(? AS TEXT) WHERE false",  # a table of older versions
    "UPDATE settled SET body = json_object('usage', json_extract(body, '$.usage')) WHERE run = ?": (
        "UPDATE settled SET body = json_build_object('usage', body::json -> 'usage')::text WHERE run = ?"
    ),
}

# Checks

INVALID_INDEXES = """SELECT 'the index ' || c.relname || ' is invalid' FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
                     WHERE NOT i.indisvalid AND c.relnamespace = 'council'::regnamespace"""
LOST_ROWS = " UNION ALL ".join(
    f"SELECT '{table}: rows of the unknown run ' || run FROM {table} WHERE run NOT IN (SELECT id FROM runs) GROUP BY run"
    for table in ("events", "steps", "results", "intents", "phases", "texts", "asks")
)

# Grouped rows

INSERTED = ("run", "event", "step", "result", "intent", "settled", "phase", "text", "live", "reserve")
# Statements over a list of values, after the inserts.
CHANGED = {
    "charge": (
        "text text bigint bigint integer",
        """UPDATE spending s SET charged = v.c4, estimated = v.c5 FROM (VALUES {}) v (c1, c2, c3, c4, c5)
           WHERE s.run = v.c1 AND s.key = v.c2 AND s.n = v.c3""",
    ),
    "discard_stream": (
        "text text",
        "DELETE FROM live_parts l USING (VALUES {}) v (c1, c2) WHERE l.run = v.c1 AND l.key = v.c2",
    ),
    "discard_streams": ("text", "DELETE FROM live_parts l USING (VALUES {}) v (c1) WHERE l.run = v.c1"),
    "close": (
        "text text text",
        "UPDATE runs r SET status = v.c2, report = v.c3, cancel = 0 FROM (VALUES {}) v (c1, c2, c3) WHERE r.id = v.c1",
    ),
    "release_lease": (
        "text text bigint",  # its rows belong to no run, so that a run whose rows failed is released too
        "DELETE FROM leases l USING (VALUES {}) v (c1, c2, c3) WHERE l.run = v.c2 AND l.token = v.c3",
    ),
}
ADD_LEASE = """INSERT INTO leases (run, token, owner, host, pid, started, expires)
               VALUES (?, ?, ?, ?, ?, ?, clock_timestamp() + make_interval(secs => ?))"""
RELEASE_LEASE = "DELETE FROM leases WHERE run = ? AND token = ?"
# Numbers only grow: a transaction with an older one, which arrives late, violates NOT NULL.
MARK_BATCH = """INSERT INTO writers AS w (id, batch) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE
                SET batch = CASE WHEN w.batch < excluded.batch THEN excluded.batch END, at = clock_timestamp()"""
# Returns the number $2 if it was committed; otherwise a higher one, $3, so that $2 cannot be committed any more.
READ_BATCH = """INSERT INTO writers AS w (id, batch) VALUES ($1, $3) ON CONFLICT (id) DO UPDATE
                SET batch = CASE WHEN w.batch = $2 THEN w.batch ELSE excluded.batch END RETURNING batch"""
PACKED = frozenset({"run", "event", "result", "intent", "settled", "phase"})  # rows that may have long texts
GROUPED = frozenset({*INSERTED, *CHANGED, "lease"})
PUBLIC_KINDS = frozenset({"event", "live", "close", "cancel", "queue", "detach"})  # followers of a run wait for them


@lru_cache(maxsize=4096)
def make_inserts(kind: str, count: int) -> str:
    width = len(queries.INSERTED[kind][1].split())
    rows = (", ".join(f"${at}" for at in range(start, start + width)) for start in range(1, count * width + 1, width))
    return queries.make_insert(kind, f"({'), ('.join(rows)})")


@lru_cache(maxsize=4096)
def make_change(kind: str, count: int) -> str:
    types, statement = CHANGED[kind]
    kinds = types.split()
    starts = range(1, count * len(kinds) + 1, len(kinds))
    rows = (", ".join(f"${start + at}::{type_}" for at, type_ in enumerate(kinds)) for start in starts)
    return statement.format(", ".join(f"({row})" for row in rows))
